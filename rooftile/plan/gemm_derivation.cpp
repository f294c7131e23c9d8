#include "rooftile/plan/gemm_derivation.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/machine/query.hpp"
#include "rooftile/model/gemm_bounds.hpp"
#include "rooftile/plan/gemm_choices.hpp"
#include "rooftile/plan/steps.hpp"

namespace rooftile {
namespace {

// What every section of the derivation needs at hand.
struct Writer {
    const GemmContext& context;
    const Kept& kept;
    Derivation steps;

    const Machine& machine() const { return *context.machine; }
    const GemmProblem& problem() const { return context.problem; }
    const GemmHardware& hw() const { return context.hw; }
    const GemmTile& tile() const { return kept.candidate.tile; }
    const Footprint& footprint() const { return kept.footprint; }
    int element() const { return bytes_of(problem().a_type); }
    double tile_flops() const { return 2.0 * tile().tile_m * tile().tile_n * tile().tile_k; }
    double tile_bytes() const { return double(tile().tile_m + tile().tile_n) * tile().tile_k * element(); }
    std::string rate() const { return rate_key(context.family, name_of(problem().a_type), "fp32"); }
    std::string clock() const {
        const auto named = matrix_clock(machine(), name_of(problem().a_type));
        return named ? named->key : "clock.boost";
    }
    std::string dram() const {
        return machine().find("dram.sustained_read") ? "dram.sustained_read" : "dram.bandwidth";
    }
    Input config(std::string name, double value) const {
        return Derivation::given(std::move(name), value, "", "this plan");
    }
    Input step(std::string name, double value, std::string unit) const {
        return Derivation::given(std::move(name), value, std::move(unit), "an earlier step");
    }
    std::string on() const { return " on " + machine().id; }
};

// A clause for a limit, or what is missing where a number is unknown.
template <class... Args>
std::string unless_unknown(double value, fmt::format_string<Args...> text, Args&&... args) {
    if (std::isnan(value)) return "not checked: a number it needs is unknown";
    return fmt::format(text, std::forward<Args>(args)...);
}

void intensity(Writer& w) {
    const GemmTile& t = w.tile();
    const double flops = w.tile_flops(), bytes = w.tile_bytes();
    w.steps.add("tile_flops", "F = 2 * tile_m * tile_n * tile_k   [M1]",
                {w.config("tile_m", t.tile_m), w.config("tile_n", t.tile_n), w.config("tile_k", t.tile_k)},
                flops, "FLOP", "the work of one k-step of one tile");
    w.steps.add("stage_bytes", "D = (tile_m + tile_n) * tile_k * b   [M1, M13]",
                {w.config("tile_m", t.tile_m), w.config("tile_n", t.tile_n), w.config("tile_k", t.tile_k),
                 Derivation::given("b", w.element(), "B", std::string(name_of(w.problem().a_type)))},
                bytes, "B",
                fmt::format("A {} B and B {} B a stage", t.tile_m * t.tile_k * w.element(),
                            t.tile_n * t.tile_k * w.element()));
    w.steps.add("arithmetic_intensity", "I = F / D   [M1]",
                {w.step("F", flops, "FLOP"), w.step("D", bytes, "B")}, flops / bytes, "FLOP/B",
                "tile_k cancels: only a larger tile raises it");
    const double critical = w.hw().peak_flops / w.hw().dram_bandwidth;
    const std::string peak = peak_key(w.context.family, name_of(w.problem().a_type), "fp32");
    std::vector<Input> inputs{
        Derivation::given("peak", w.hw().peak_flops, "FLOP/s",
                          w.machine().find(peak) ? w.machine().find(peak)->source : "SMs x rate x clock"),
        w.steps.fact(w.dram())};
    w.steps.add("intensity_critical", "I_crit = peak / bandwidth   [M2]", std::move(inputs), critical,
                "FLOP/B",
                unless_unknown(critical, "a tile alone against DRAM is {}: I = {:.4g} {} {:.4g}",
                               flops / bytes >= critical ? "compute-bound" : "memory-bound", flops / bytes,
                               flops / bytes >= critical ? ">=" : "<", critical)
                    + (flops / bytes < critical
                           ? "; tiles that run together share operands in L2, see the levels below"
                           : ""));
}

void register_wall(Writer& w) {
    const Footprint& f = w.footprint();
    const GemmCandidate& c = w.kept.candidate;
    const bool wgmma = w.context.kernel == GemmKernel::sm90_gemm;
    const bool own_tile = c.schedule == Schedule::pingpong;
    const int sharers = wgmma ? 128 * (own_tile ? 1 : c.warpgroups) : f.threads;
    w.steps.add("accumulator_registers",
                own_tile ? "tile_m * tile_n / 128, each warpgroup owns a tile   [M12]"
                : wgmma  ? "tile_m * tile_n / (128 * consumer_warpgroups)   [M12]"
                         : "tile_m * tile_n / threads   [M4]",
                {w.config("tile_m", c.tile.tile_m), w.config("tile_n", c.tile.tile_n),
                 w.config("threads that share it", sharers)},
                f.accumulators, "registers", "32-bit sums held by each multiplying thread");
    const std::string limit =
        f.consumer_registers > 0
            ? fmt::format("setmaxnreg gives consumers {} and leaves the producer {}", f.consumer_registers,
                          f.producer_registers)
            : std::string("registers an SM / threads on it, at most what an instruction can name");
    w.steps.add("registers_per_thread", "accumulators + fragments, addresses, loop state   [M4, M12]",
                {w.step("accumulator_registers", f.accumulators, "registers"),
                 Derivation::given("the rest", f.registers - f.accumulators, "registers",
                                   wgmma ? "least clean value found by bisection with ptxas"
                                         : "fragments, and 40 as the method has it"),
                 w.steps.fact("sm.registers"), w.steps.fact("sm.max_registers_per_thread"),
                 w.config("threads", f.threads), w.config("ctas_per_sm", c.tile.ctas_per_sm)},
                f.registers, "registers",
                unless_unknown(f.registers_limit, "{} <= {}: {}", f.registers, f.registers_limit, limit));
}

void capacity_wall(Writer& w) {
    const Footprint& f = w.footprint();
    const double per_stage = f.stage_bytes + f.stage_overhead;
    const double most = std::floor((f.shared_limit - f.reserved_bytes) / per_stage);
    const int fit = f.stages_max(1 << 20);
    std::string limit = "not checked: shared.per_cta is unknown";
    if (!std::isnan(f.shared_limit))
        limit = fmt::format("{} stages fit; {} x {} = {} B + {} B > {:.0f} B{}", fit, fit + 1, f.stage_bytes,
                            std::int64_t{fit + 1} * f.stage_bytes,
                            f.reserved_bytes + (fit + 1) * f.stage_overhead, f.shared_limit, w.on());
    w.steps.add("stages_max",
                "floor((shared memory of a CTA - reserved) / (stage_bytes + barriers))   [M3, M13]",
                {w.steps.fact("shared.per_cta"), w.config("ctas_per_sm", w.kept.candidate.tile.ctas_per_sm),
                 Derivation::given("reserved", f.reserved_bytes, "B", "C slabs and alignment of this kernel"),
                 w.step("stage_bytes", f.stage_bytes, "B"),
                 Derivation::given("barriers", f.stage_overhead, "B", "full and empty mbarrier")},
                std::fmin(most, f.stages_limit), "stages", std::move(limit));
    if (w.context.kernel == GemmKernel::generic && !std::isnan(w.hw().shared_per_cta)) {
        const double one = std::floor(w.hw().shared_per_cta / f.stage_bytes),
                     two = std::floor(w.hw().shared_per_cta / (2.0 * f.stage_bytes));
        const double by_registers = std::floor(w.hw().registers_per_sm / (double(f.registers) * f.threads));
        w.steps.add(
            "ctas_by_shared", "floor(shared memory / (stages * stage_bytes))   [M3, M6]",
            {w.steps.fact("shared.per_cta"), w.step("stage_bytes", f.stage_bytes, "B")}, two, "CTAs",
            fmt::format(
                "{:.0f} blocks an SM at one stage, {:.0f} at two; registers allow {}", one, two,
                std::isnan(by_registers) ? "an unknown number" : fmt::format("{:.0f}", by_registers)));
    }
}

double least_stages_for_latency(const Writer& w) {
    return std::ceil(w.hw().dram_latency / w.kept.footprint.step.tensor) + 1;
}
// What one SM gets from L2 with every SM pulling, in B/clk.
double l2_rate(const Writer& w) { return std::fmin(w.hw().l2_port, w.hw().l2_share); }

// How many k-steps of the ring a load's latency spans [M5].
void latency_wall(Writer& w) {
    const GemmHardware& hw = w.hw();
    const double compute = std::ceil(w.kept.footprint.step.tensor);
    w.steps.add("tile_compute_cycles", "T = F / (FLOP per cycle of an SM)   [M5]",
                {w.step("F", w.tile_flops(), "FLOP"), w.steps.fact(w.rate())}, compute, "cycles",
                "the matrix units' time for one k-step; a load must be hidden behind (stages - 1) of these");
    const double stages_min = least_stages_for_latency(w);
    w.steps.add("stages_min", "ceil(L / T) + 1   [M5]",
                {w.steps.fact("dram.latency"), w.step("T", compute, "cycles")}, stages_min, "stages",
                "with the machine's stated latency taken as the whole time from issue to use");

    const GemmTile& t = w.tile();
    const double pace = w.kept.time.step;
    const bool short_k = double(ceil_div(w.problem().k, t.tile_k)) < stages_min;
    w.steps.add("stages_needed",
                "min(ceil(L / (slowest resource's step * ctas_per_sm)) + 1, k-steps, at least 2)   [M5]",
                {w.steps.fact("dram.latency"), w.step("step_cycles", pace, "cycles"),
                 w.config("ctas_per_sm", t.ctas_per_sm)},
                std::isnan(hw.dram_latency)
                    ? std::nan("")
                    : w.footprint().stages_against_latency(hw.dram_latency, t.ctas_per_sm),
                "stages",
                short_k ? "the wall: K has fewer steps than the ring would need"
                        : "the wall: at the pace of the slowest resource, not of the matrix units alone");
}

// One load alone, and the step that a full pipe settles into [M36].
void loads(Writer& w) {
    const GemmHardware& hw = w.hw();
    const double bytes = w.footprint().stage_bytes, compute = std::ceil(w.kept.footprint.step.tensor);
    const double l2 = bytes / l2_rate(w), dram = bytes / hw.dram_share;
    w.steps.add("load_l2_isolated", "L_l2 + D / (an SM's share of L2)   [M36]",
                {w.steps.fact("l2.latency"), w.step("D", bytes, "B"),
                 Derivation::given("share", l2_rate(w), "B/clk/SM", "l2.bandwidth and l2.port")},
                std::round(hw.l2_latency + l2), "cycles", "one load alone that hits L2");
    w.steps.add("load_dram_isolated", "L_dram + D / (an SM's share of DRAM)   [M36]",
                {w.steps.fact("dram.latency"), w.step("D", bytes, "B"),
                 Derivation::given("share", hw.dram_share, "B/clk/SM", w.dram())},
                std::round(hw.dram_latency + dram), "cycles",
                "one load alone that misses L2. The trip through L2 is inside it: adding the L2 time on top "
                "would count it twice, "
                "since the legs are pipelined");
    // Unlike a wall, a maximum is unknown as soon as one of its terms is.
    const bool all_known = !std::isnan(w.kept.footprint.step.tensor) && !std::isnan(l2) && !std::isnan(dram);
    const double steady = all_known ? std::max({w.kept.footprint.step.tensor, l2, dram}) : std::nan("");
    std::string binding = "not known: a rate is unknown";
    if (all_known)
        binding = fmt::format(
            "compute {:.0f}, L2 {:.0f}, DRAM {:.0f} cycles a step in a full pipe, where no latency is paid: "
            "{}; "
            "DRAM carries it only if all bytes miss L2",
            compute, l2, dram,
            steady == dram ? "DRAM-bound unless enough of the bytes hit L2"
            : steady == l2 ? "L2-bound"
                           : "compute-bound");
    w.steps.add("steady_step_all_miss", "max(T, D / L2 share, D / DRAM share)   [M36]",
                {w.step("T", compute, "cycles"), w.step("L2 transfer", std::round(l2), "cycles"),
                 w.step("DRAM transfer", std::round(dram), "cycles")},
                std::round(steady), "cycles", std::move(binding));
}

// The ring's depth: what full rate would want, and what is taken [M5, M14].
void depth(Writer& w) {
    const GemmHardware& hw = w.hw();
    const double bytes = w.footprint().stage_bytes, compute = std::ceil(w.kept.footprint.step.tensor);
    const double l2 = bytes / l2_rate(w);
    const double load = hw.dram_latency + hw.tma_latency + l2;
    const double full_rate = std::ceil(load / w.kept.footprint.step.tensor) + 1;
    std::string limit = "not known: T_load needs a rate and the SM count";
    if (!std::isnan(full_rate)) limit = fmt::format("(stages - 1) * {:.0f} >= {:.0f}", compute, load);
    else if (!std::isnan(hw.peak_flops) && std::isnan(hw.sms) && !std::isnan(hw.dram_bandwidth)) {
        const double sms = hw.peak_flops / (hw.flops_per_cycle * hw.clock_hz);
        const double transfer = bytes / (hw.dram_bandwidth / hw.clock_hz / sms);
        limit += fmt::format(
            ". Were there peak / (rate x clock) = {:.0f} SMs, {:.0f} cycles of bare latency + {:.0f} of "
            "transfer "
            "would ask for {:.0f} stages",
            sms, hw.dram_latency, transfer,
            std::ceil((hw.dram_latency + transfer) / w.kept.footprint.step.tensor) + 1);
    }
    w.steps.add("stages_for_full_rate", "ceil((L + TMA + T_load) / T) + 1   [M5, M14]",
                {w.steps.fact("dram.latency"), w.steps.fact("tma.latency_extra"),
                 w.step("T_load", l2, "cycles"), w.step("T", compute, "cycles")},
                full_rate, "stages", std::move(limit));
    w.steps.add("stages",
                w.context.request.stages
                    ? "fixed by the request"
                    : "all that fit: above the least they are slack for refresh and congestion   [M14]",
                {w.step("stages_min", least_stages_for_latency(w), "stages"),
                 w.step("stages_max", w.footprint().stages_max(1 << 20), "stages")},
                w.kept.stages, "stages",
                fmt::format("{} B of shared memory", w.footprint().shared_bytes(w.kept.stages)));
}

// Intensity at every level: what one SM asks for in a cycle of full-rate products, and what it is given.
void levels(Writer& w) {
    const GemmHardware& hw = w.hw();
    const GemmTile& t = w.tile();
    const double T = w.kept.footprint.step.tensor, k_bytes = double(t.tile_k) * w.element();
    const auto verdict = [](double asked, double given) {
        if (std::isnan(asked) || std::isnan(given)) return std::string("not checked: a rate is unknown");
        return fmt::format("asks {:.3g} B/clk of {:.3g}: {}", asked, given,
                           asked <= given
                               ? "the level keeps up"
                               : fmt::format("this level takes {:.2f} x the products' time", asked / given));
    };
    w.steps.add(
        "shared_step_cycles", "max(bytes written, bytes read by the instructions) / shared bandwidth   [M11]",
        {w.step("D", w.footprint().stage_bytes, "B"),
         Derivation::given(
             "read",
             (double(t.tile_m) * t.tile_n / t.warp_n + double(t.tile_m) * t.tile_n / t.warp_m) * k_bytes, "B",
             "A once a column, B once a row of instruction tiles"),
         w.steps.fact("shared.bandwidth")},
        w.kept.footprint.step.shared, "cycles",
        "instruction against shared memory: "
            + verdict(w.kept.footprint.step.shared * hw.shared_bandwidth / T, hw.shared_bandwidth));
    const auto [own_a, own_b] = own_rows(t, w.problem());
    const double own = (own_a + own_b) * k_bytes;
    w.steps.add("port_bytes_per_cycle",
                "(rows of A / cluster_n + columns of B / cluster_m) * tile_k * b / T   [M1, M17, section 9]",
                {w.config("cluster_m", t.cluster_m), w.config("cluster_n", t.cluster_n),
                 w.step("T", T, "cycles"), w.steps.fact("l2.port")},
                own / T, "B/clk",
                "what a CTA asks for itself against the SM's port: " + verdict(own / T, hw.l2_port));
    const auto [a_rows, b_rows] = l2_rows(hw, t, w.problem());
    const double from_l2 = (a_rows + b_rows) * k_bytes;
    std::vector<Input> asked{w.config("cluster_m", t.cluster_m), w.config("cluster_n", t.cluster_n),
                             w.step("T", T, "cycles"), w.steps.fact("l2.bandwidth")};
    if (hw.l2_coalesced > 1) asked.push_back(w.steps.fact("l2.coalesced"));
    if (hw.l2_multicast > 1) asked.push_back(w.steps.fact("l2.multicast"));
    w.steps.add(
        "l2_bytes_per_cycle",
        "(rows of A + columns of B) * tile_k * b / T, each divided by the CTAs that share it: by "
        "multicast, or because SMs of a GPC load it at about the same time   [M17, section 9]",
        std::move(asked), from_l2 / T, "B/clk",
        "what reaches L2 against its bandwidth, all SMs pulling: " + verdict(from_l2 / T, hw.l2_share));
    // Of what the tiles ask for, the share that DRAM does not have to deliver. C is written either way.
    const double written = double(w.problem().m) * w.problem().n * bytes_of(w.problem().c_type);
    const double hit = 1 - (w.kept.dram - written) / (asked_bytes(t, w.problem()) - written);
    w.steps.add(
        "dram_bytes_per_cycle", "D * (1 - share of bytes that hit L2) / T   [M29, M32, section 9]",
        {w.step("D", w.footprint().stage_bytes, "B"),
         Derivation::given("hit share", hit, "", "traffic of the walk, below"), w.steps.fact(w.dram())},
        w.footprint().stage_bytes * (1 - hit) / T, "B/clk",
        "wave against DRAM: " + verdict(w.footprint().stage_bytes * (1 - hit) / T, hw.dram_share));
}

void walk(Writer& w) {
    const GemmHardware& hw = w.hw();
    const GemmProblem& p = w.problem();
    const Waves& waves = w.kept.waves;
    w.steps.add(
        "waves", "ceil(tiles * split_k / slots), slots = SMs * ctas_per_sm in whole clusters   [M29]",
        {Derivation::given("tiles", double(waves.tiles), "",
                           fmt::format("ceil({} / {}) x ceil({} / {}), whole clusters", p.m, w.tile().tile_m,
                                       p.n, w.tile().tile_n)),
         w.config("split_k", w.tile().split_k),
         Derivation::given("slots", waves.slots, "", "whole clusters within GPCs"), w.steps.fact("sm.count"),
         w.steps.fact("sm.per_gpc"), w.config("ctas_per_sm", w.tile().ctas_per_sm)},
        waves.waves, "waves",
        unless_unknown(waves.waves,
                       "{:.1f} % of the last wave's and all other slots hold a tile or a part of one",
                       100 * waves.efficiency));
    w.steps.add("dram_bytes", "operands once for every time they leave L2, C once   [M32]",
                {Derivation::given("group", w.kept.order.group, "",
                                   std::string("order ") + std::string(name_of(w.kept.order.order))),
                 w.steps.fact("l2.size")},
                std::round(w.kept.dram), "B",
                unless_unknown(w.kept.dram,
                               "least of the orders tried; no schedule can move less than {:.4g} B [M33]",
                               dram_lower_bound_bytes(hw, p)));
}

// Where the clock of the SMs comes from: what power leaves, where its energies are known.
void clock_under_power(Writer& w) {
    const GemmHardware& hw = w.hw();
    const GemmTime& t = w.kept.time;
    const GemmEnergy joules = gemm_energy(hw, w.tile(), w.problem(), w.kept.dram);
    if (std::isnan(t.watts)) {
        w.steps.add("sm_clock_mhz", "the clock of sustained matrix work: energies of operations are unknown",
                    {w.steps.fact(w.clock())}, t.clock_hz / 1e6, "MHz", "no power model");
        return;
    }
    std::vector<Input> energies{w.steps.fact("energy.flop." + std::string(name_of(w.problem().a_type))),
                                w.steps.fact("energy.fill"), w.steps.fact("energy.dram")};
    if (hw.shared_read_joules > 0) energies.push_back(w.steps.fact("energy.shared_read"));
    w.steps.add(
        "joules",
        "E_flop * FLOP + E_read * bytes read by the instructions + E_fill * bytes into shared memory + "
        "E_dram * bytes   [M46]",
        std::move(energies), joules.sum(), "J",
        fmt::format("at {:.0f} MHz: {:.0f} % products, {:.0f} % shared memory, {:.0f} % DRAM",
                    hw.clock_hz / 1e6, 100 * joules.matrix / joules.sum(),
                    100 * (joules.fill + joules.shared_read) / joules.sum(),
                    100 * joules.dram / joules.sum()));
    w.steps.add(
        "sm_clock_mhz",
        "P_static + joules * (clock / clock.sustained)^exponent / time = P_held, or the top clock   [M46]",
        {w.step("joules", joules.sum(), "J"), w.steps.fact("power.static"), w.steps.fact("power.held"),
         w.steps.fact("energy.exponent"), w.steps.fact(w.clock())},
        t.clock_hz / 1e6, "MHz",
        t.clock_hz < hw.top_hz ? "power holds the clock: fewer bytes for each FLOP would raise it"
                               : fmt::format("about {:.0f} W: power does not bind", t.watts));
}

void time(Writer& w) {
    const GemmTime& t = w.kept.time;
    const GemmTile& tile = w.tile();
    std::vector<Input> resources{w.step("products", w.kept.footprint.step.tensor, "cycles"),
                                 w.step("shared", w.kept.footprint.step.shared, "cycles"),
                                 w.step("L2", w.kept.footprint.step.l2, "cycles")};
    const double streamed = streamed_cycles(w.hw(), tile, w.problem(), w.footprint().tiles);
    if (!std::isnan(streamed)) {
        resources.push_back(
            Derivation::given("streamed", streamed, "cycles", "its share of lines from DRAM"));
        resources.push_back(w.steps.fact("dram.per_sm"));
        if (!std::isnan(w.hw().dram_per_sm_pair)) resources.push_back(w.steps.fact("dram.per_sm_pair"));
    }
    w.steps.add(
        "step_cycles",
        "max(products, shared memory, L2, (latency + L2) / stages in flight, what one SM streams from DRAM, "
        "the least step); L2 is the slower of bandwidth and port, in time, whatever the SMs' clock   [M36]",
        std::move(resources), t.step, "cycles", fmt::format("bound by {}", name_of(t.bound)));
    const double sums = 4.0 * tile.tile_m * tile.tile_n;
    if (tile.split_k > 1)
        w.steps.add(
            "exchange_cycles",
            "(S + S / split_k) / shared memory + (S - S / split_k) / DSMEM + latency + barrier   [M22, M39]",
            {Derivation::given("S", sums, "B", "exchange_bytes, above"), w.config("split_k", tile.split_k),
             w.steps.fact("shared.bandwidth"), w.steps.fact("dsmem.bandwidth"), w.steps.fact("dsmem.latency"),
             w.steps.fact("barrier.cluster")},
            t.exchange, "cycles",
            "each part writes its sums, the cluster meets, each part reads its share from all and stores it");
    std::vector<Input> store{
        Derivation::given("C of a tile", sums / 4 * bytes_of(w.problem().c_type) / tile.split_k, "B",
                          "tile_m * tile_n / split_k"),
        w.steps.fact("l2.port")};
    if (tile.store_boxes > 0) {
        store.push_back(w.config("boxes a warp stores", tile.store_boxes));
        store.push_back(w.config("in flight", tile.store_depth));
        store.push_back(w.steps.fact("tma.store_latency"));
    }
    w.steps.add(
        "epilogue_cycles", tile.store_boxes > 0 ? "boxes * store latency / in flight + C / port" : "C / port",
        std::move(store), t.epilogue, "cycles",
        tile.epilogue_overlapped ? "beside the next tile's products; after the last tile it shows once"
        : tile.ctas_per_sm > 1   ? "shows where the other CTA's ring does not keep the matrix units busy"
                                 : "shows: nobody multiplies meanwhile");
    std::vector<Input> parts{Derivation::given("k-steps", double(k_steps(tile, w.problem())), "",
                                               "ceil(ceil(k / tile_k) / split_k)"),
                             w.step("step_cycles", t.step, "cycles")};
    const bool beside =
        tile.turn_overlapped && w.kept.waves.waves > 1 && w.hw().pingpong_turn < w.hw().tile_turn;
    if (!std::isnan(w.hw().tile_turn))
        parts.push_back(w.steps.fact(beside ? "wgmma.turn_pingpong" : "wgmma.turn"));
    w.steps.add("tile_cycles", "k-steps * step_cycles + turn + the exchange + the epilogue where it shows",
                std::move(parts), t.tile_cycles, "cycles", "one CTA's tile, all SMs at work");
    clock_under_power(w);
    w.steps.add(
        "time_us",
        "(waves - 1) * full wave + the last wave by its own load + fill + launch; a wave is the slowest "
        "of its tiles' cycles, its DRAM bytes and its L2 bytes",
        {w.step("waves", w.kept.waves.waves, ""), w.step("tile_cycles", t.tile_cycles, "cycles"),
         w.step("sm_clock_mhz", t.clock_hz / 1e6, "MHz"), w.steps.fact(w.dram()),
         w.steps.fact("launch.gap_stream")},
        t.seconds * 1e6, "us",
        unless_unknown(t.seconds, "{:.1f} TFLOP/s", w.problem().flops().value / t.seconds / 1e12));
}

Prediction predict(const Writer& w) {
    const GemmHardware& hw = w.hw();
    const double load =
        hw.dram_latency + hw.tma_latency + w.footprint().stage_bytes / std::fmin(hw.l2_port, hw.l2_share);
    Prediction p;
    p.time_us = known(w.kept.time.seconds * 1e6);
    if (p.time_us) p.tflops = known(w.problem().flops().value / w.kept.time.seconds / 1e12);
    if (p.time_us) p.bound = w.kept.time.bound;
    p.arithmetic_intensity = known(w.tile_flops() / w.tile_bytes());
    p.tile_compute_cycles = known_count(std::ceil(w.kept.footprint.step.tensor));
    p.stages_min = known_count(least_stages_for_latency(w));
    p.stages_for_full_rate = known_count(std::ceil(load / w.kept.footprint.step.tensor) + 1);
    p.waves = known_count(w.kept.waves.waves);
    p.wave_efficiency = known(w.kept.waves.efficiency);
    p.moved_bytes = known_count(w.problem().compulsory_bytes().value);
    p.l2_bytes = known_count(l2_bytes(w.tile(), w.problem()));
    p.dram_bytes = known_count(w.kept.dram);
    p.dram_lower_bound_bytes = known_count(dram_lower_bound_bytes(hw, w.problem()));
    p.l2_lower_bound_bytes = known_count(l2_lower_bound_bytes(hw, w.tile(), w.problem()));
    p.shared_traffic_bytes = known_count(shared_traffic_bytes(w.tile(), w.problem()));
    p.shared_lower_bound_bytes = known_count(shared_lower_bound_bytes(hw, w.problem()));
    return p;
}

std::vector<Step> write_derivation(const GemmContext& context, const Kept& kept, const GemmConfig& config) {
    Writer writer{context, kept, Derivation(*context.machine)};
    intensity(writer);
    register_wall(writer);
    capacity_wall(writer);
    latency_wall(writer);
    loads(writer);
    depth(writer);
    levels(writer);
    walk(writer);
    write_choices(context, kept, config, writer.steps);
    time(writer);
    return writer.steps.take();
}

}  // namespace

GemmPlan write_plan(const std::shared_ptr<const GemmContext>& shared, std::size_t index) {
    const GemmContext& context = *shared;
    const Kept& kept = context.kept[index];
    const GemmCandidate& c = kept.candidate;
    const Footprint& f = kept.footprint;
    GemmPlan plan;
    plan.problem = context.problem;
    plan.config = {.kernel = context.kernel,
                   .tile_m = c.tile.tile_m,
                   .tile_n = c.tile.tile_n,
                   .tile_k = c.tile.tile_k,
                   .stages = kept.stages,
                   .consumer_warpgroups = c.warpgroups,
                   .schedule = c.schedule,
                   .cluster_m = c.tile.cluster_m,
                   .cluster_n = c.tile.cluster_n,
                   .order = kept.order.order,
                   .group = kept.order.group,
                   .split_k = c.tile.split_k,
                   .ctas_per_sm = c.tile.ctas_per_sm,
                   .programmatic_launch = context.request.programmatic_launch.value_or(true),
                   .deferred_store = f.deferred_store};
    set_cache_policies(context, plan.config);
    Resources& r = plan.resources;
    r.threads = f.threads;
    r.accumulator_registers = f.accumulators;
    if (f.consumer_registers > 0) {
        r.producer_registers = f.producer_registers;
        r.consumer_registers = f.consumer_registers;
    }
    r.stage_bytes = f.stage_bytes;
    r.stages_max =
        std::isnan(f.shared_limit) ? std::nullopt : std::optional<std::int64_t>(f.stages_max(1 << 20));
    r.shared_bytes = f.shared_bytes(kept.stages);
    r.ctas_per_sm = c.tile.ctas_per_sm;

    plan.prediction = predict({context, kept, Derivation(*context.machine)});
    plan.derivation = Steps([shared, index, config = plan.config] {
        return write_derivation(*shared, shared->kept[index], config);
    });
    return plan;
}

}  // namespace rooftile
