#include <algorithm>
#include <cmath>

#include "rooftile/gemm/bounds.hpp"
#include "rooftile/gemm/derivation_writer.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/packing.hpp"

namespace rooftile {
namespace {

// What L2 takes longer for rows that begin off its lines, where they do.
void write_line_cost(DerivationWriter& w, double a_rows, double b_rows) {
    const GemmHardware& hw = w.hw();
    if (hw.a_lines.on_line() && hw.b_lines.on_line()) return;
    const GemmProblem& p = w.problem();
    const TileGrid clusters = cluster_grid(p, w.candidate());
    const auto key = [](double readers, std::int64_t leading, Type type) {
        return fmt::format("tma.off_line_{}{}", readers > 1 ? "shared_" : "",
                           line_step(leading * bytes_of(type)));
    };
    const double a_readers = double(clusters.columns), b_readers = double(clusters.rows);
    const int ctas = w.candidate().cluster_m * w.candidate().cluster_n;
    const double times_a = hw.a_lines.of(a_readers, w.candidate().cluster_n, ctas), times_b = hw.b_lines.of(b_readers, w.candidate().cluster_m, ctas);
    std::vector<Input> inputs{Derivation::given("rows_a", a_rows, "", "that reach L2"),
                              Derivation::given("columns_b", b_rows, "", "that reach L2")};
    const auto times = [&](const char* name, double value, bool of_image, int sharing, const LineCost& lines, const std::string& off_line) {
        inputs.push_back(Derivation::given(name, value, "",
                                           lines.on_line() ? "its lines begin on those of L2"
                                           : of_image      ? fmt::format("tma.image inside the image, tma.image_outside{} of the {:.3g} % of pixels that are not{}", sharing > 1 ? "_multicast" : "",
                                                                         100 * (1 - p.image->share_inside()), ctas > 1 ? ", tma.image_clustered" : "")
                                                           : off_line));
    };
    times("times_a", times_a, p.image && !p.image_is_b(), w.candidate().cluster_n, hw.a_lines, key(a_readers, p.lda, p.a_type));
    times("times_b", times_b, p.image_is_b(), w.candidate().cluster_m, hw.b_lines, key(b_readers, p.ldb, p.b_type));
    w.steps.add(gemm_formula::l2_line_cost, std::move(inputs),
                (a_rows * times_a + b_rows * times_b) / (a_rows + b_rows),
                p.image ? "times that L2 takes for the bytes above: of an image no two SMs' loads become one, and zeros outside take longer than pixels"
                        : "times that L2 takes for the bytes above: lines of an operand do not begin on its lines of 128 B");
}

// Intensity at every level: what one SM asks for in a cycle of full-rate products, and what it is given.
void levels(DerivationWriter& w) {
    const GemmHardware& hw = w.hw();
    const GemmCandidate& t = w.candidate();
    const double T = w.candidate().step.tensor, k_bytes = double(t.tile_k) * w.element();
    const auto verdict = [](double asked, double given) {
        if (std::isnan(asked) || std::isnan(given)) return std::string("not checked: a rate is unknown");
        return fmt::format("asks {:.3g} B/clk of {:.3g}: {}", asked, given,
                           asked <= given
                               ? "the level keeps up"
                               : fmt::format("this level takes {:.2f} x the products' time", asked / given));
    };
    std::vector<Input> moved{w.step("D", w.candidate().stage_bytes, "B"), w.read_input(), w.steps.fact("shared.bandwidth")};
    if (w.warps_share_a_port()) moved.push_back(w.steps.fact("mma_sync.overlap_exponent"));
    w.steps.add(
        w.warps_share_a_port() ? gemm_formula::shared_step_cycles_shared : gemm_formula::shared_step_cycles, std::move(moved),
        w.candidate().step.shared,
        "instruction against shared memory: "
            + verdict(w.candidate().step.shared * hw.shared_bandwidth / T, hw.shared_bandwidth));
    const auto [own_a, own_b] = own_rows(t, w.problem());
    const double own = (own_a + own_b) * k_bytes;
    w.steps.add(gemm_formula::port_bytes_per_cycle,
                {w.config("tile_m", t.tile_m), Derivation::given("m", double(w.problem().m), "", "problem"), w.config("cluster_n", t.cluster_n),
                 w.config("tile_n", t.tile_n), Derivation::given("n", double(w.problem().n), "", "problem"), w.config("cluster_m", t.cluster_m),
                 w.config("tile_k", t.tile_k), w.element_input(), w.step("T", T, "cycles"), w.steps.fact("l2.port")},
                own / T,
                "what a CTA asks for itself against the SM's port: " + verdict(own / T, hw.l2_port));
    const OrderChoice order = w.candidate().order_choice();
    const auto [a_rows, b_rows] =
        l2_rows(hw, t, w.problem(), neighbours(w.problem(), t, order.order, order.group));
    const double from_l2 = (a_rows + b_rows) * k_bytes;
    std::vector<Input> asked{Derivation::given("rows_a", a_rows, "", "that reach L2"), Derivation::given("columns_b", b_rows, "", "that reach L2"),
                             w.config("tile_k", t.tile_k), w.element_input(), w.config("cluster_m", t.cluster_m),
                             w.config("cluster_n", t.cluster_n), w.step("T", T, "cycles"), w.steps.fact("l2.bandwidth")};
    if (hw.l2_coalesced > 1) asked.push_back(w.steps.fact("l2.coalesced"));
    if (hw.l2_multicast > 1) asked.push_back(w.steps.fact("l2.multicast"));
    w.steps.add(
        gemm_formula::l2_bytes_per_cycle, std::move(asked), from_l2 / T,
        "what reaches L2 against its bandwidth, all SMs pulling: " + verdict(from_l2 / T, hw.l2_share));
    write_line_cost(w, a_rows, b_rows);
    // Of what the tiles ask for, the share that DRAM does not have to deliver. C is written either way.
    const double written = double(w.problem().m) * double(w.problem().result_n()) * bytes_of(w.problem().c_type);
    const double hit = 1 - (w.kept.dram - written) / (asked_bytes(t, w.problem()) - written);
    w.steps.add(gemm_formula::dram_bytes_per_cycle,
                {w.step("D", w.candidate().stage_bytes, "B"),
                 Derivation::given("hit_share", hit, "", "traffic of the tile schedule, below"), w.step("T", T, "cycles"),
                 w.steps.fact(w.dram())},
                w.candidate().stage_bytes * (1 - hit) / T,
                "wave against DRAM: " + verdict(w.candidate().stage_bytes * (1 - hit) / T, hw.dram_share));
}

void schedule_traffic(DerivationWriter& w) {
    const GemmHardware& hw = w.hw();
    const GemmProblem& p = w.problem();
    const Waves& waves = w.kept.waves;
    w.steps.add(
        gemm_formula::waves,
        {Derivation::given("tiles", double(waves.tiles), "",
                           fmt::format("{} x ceil({} / {}), whole clusters",
                                       p.groups ? fmt::format("{} rows of tiles of all groups", p.groups->tiles(std::int64_t{w.candidate().tile_m} * w.candidate().cluster_m) * w.candidate().cluster_m)
                                                : fmt::format("ceil({} / {})", p.m, w.candidate().tile_m),
                                       p.n, w.candidate().tile_n)),
         w.config("split_k", w.candidate().split_k), w.config("grid_split_k", w.candidate().grid_split_k),
         Derivation::given("slots", waves.slots, "", "whole clusters within GPCs"), w.steps.fact("sm.count"),
         w.steps.fact("sm.per_gpc"), w.config("ctas_per_sm", w.candidate().ctas_per_sm)},
        waves.waves,
        unless_unknown(waves.waves,
                       "{:.1f} % of the last wave's and all other slots hold a tile or a part of one",
                       100 * waves.efficiency));
    w.steps.add(gemm_formula::dram_bytes,
                {Derivation::given("group", w.candidate().group, "",
                                   std::string("order ") + std::string(name_of(w.candidate().order))),
                 w.steps.fact("l2.size")},
                std::round(w.kept.dram),
                unless_unknown(w.kept.dram,
                               "least of the orders tried; no schedule can move less than {:.4g} B [M33]",
                               dram_lower_bound_bytes(hw, p)));
}

// Where the clock of the SMs comes from: what power leaves, where its energies are known.
void clock_under_power(DerivationWriter& w) {
    const GemmHardware& hw = w.hw();
    const GemmTime& t = w.kept.time;
    const MatrixEnergy joules = gemm_energy(hw, w.candidate(), w.problem(), w.kept.dram);
    if (std::isnan(t.watts)) {
        w.steps.add(gemm_formula::stated_clock, {w.steps.fact(w.clock())}, t.clock_hz / 1e6, "no power model");
        return;
    }
    std::vector<Input> energies{w.steps.fact("energy.flop." + std::string(rate_name_of(w.problem().a_type))),
                                w.steps.fact("energy.fill"), w.steps.fact("energy.dram")};
    if (hw.shared_read_joules > 0) energies.push_back(w.steps.fact("energy.shared_read"));
    w.steps.add(
        gemm_formula::joules, std::move(energies), joules.sum(),
        fmt::format("at {:.0f} MHz: {:.0f} % products, {:.0f} % shared memory, {:.0f} % DRAM",
                    hw.sustained_hz / 1e6, 100 * joules.matrix / joules.sum(),
                    100 * (joules.fill + joules.shared_read) / joules.sum(),
                    100 * joules.dram / joules.sum()));
    w.steps.add(gemm_formula::clock_under_power,
                {w.step("joules", joules.sum(), "J"), w.steps.fact("power.static"),
                 w.steps.fact("power.sustained"), w.steps.fact("energy.exponent"), w.steps.fact(w.clock())},
                t.clock_hz / 1e6,
                t.clock_hz < hw.top_hz ? "power holds the clock: fewer bytes for each FLOP would raise it"
                                       : fmt::format("about {:.0f} W: power does not bind", t.watts));
}

void time(DerivationWriter& w) {
    const GemmTime& t = w.kept.time;
    const GemmCandidate& tile = w.candidate();
    std::vector<Input> resources{w.step("products", w.candidate().step.tensor, "cycles"),
                                 w.step("shared", w.candidate().step.shared, "cycles"),
                                 w.step("L2", w.candidate().step.l2, "cycles"),
                                 w.step("port", w.candidate().step.port, "cycles")};
    const double streamed = streamed_cycles(w.hw(), tile, w.problem(), w.candidate().tiles);
    if (!std::isnan(streamed)) {
        resources.push_back(
            Derivation::given("streamed", streamed, "cycles", "its share of lines from DRAM"));
        resources.push_back(w.steps.fact("dram.per_sm"));
        if (streams_alone(w.hw(), w.candidate().tiles, tile.cluster_m * tile.cluster_n, tile.split_k)
            && w.hw().dram_per_sm_alone > w.hw().dram_per_sm)
            resources.push_back(w.steps.fact("dram.per_sm_alone"));
    }
    if (tile.promoting_warpgroups > 0) {
        std::vector<Input> chain{Derivation::given("wgmmas", double(tile.tile_m) * tile.tile_n / (double(tile.warp_m) * tile.warp_n * tile.promoting_warpgroups), "",
                                                   "of one warpgroup a k-step, each added up before the next"),
                                 Derivation::given("elements", double(tile.warp_m) * tile.warp_n, "", "of one wgmma")};
        chain.push_back(w.steps.fact("sm.partitions"));
        if (!std::isnan(w.hw().wgmma_latency)) chain.push_back(w.steps.fact("wgmma.latency"));
        w.steps.add(gemm_formula::promoting_step_cycles, std::move(chain), promoting_step_cycles(w.hw(), tile),
                    "one warpgroup alone; products of others run during its additions, and bound the step where they take longer");
    }
    if (w.hw().l2_loaded_latency < w.hw().loaded_latency)
        for (const char* key : {"tma.latency_loaded", "tma.latency_loaded_l2"})
            resources.push_back(w.steps.fact(key));
    w.steps.add(gemm_formula::step_cycles, std::move(resources), t.step, fmt::format("bound by {}", name_of(t.bound)));
    const double sums = 4.0 * tile.tile_m * tile.tile_n;
    if (tile.grid_split_k > 1)
        w.steps.add(gemm_formula::pieces_cycles,
                    {Derivation::given("S", sums, "B", "tile_m * tile_n * 4"), w.config("split_k", tile.split_k),
                     w.config("grid_split_k", tile.grid_split_k),
                     w.steps.fact("l2.port"), w.steps.fact("shared.bandwidth"), w.steps.fact("l2.latency")},
                    pieces_cycles(w.hw(), tile),
                    "each piece leaves its share in L2 and counts itself there; the last one reads that of all");
    if (tile.split_k > 1)
        w.steps.add(
            gemm_formula::exchange_cycles,
            {Derivation::given("S", sums, "B", "exchange_bytes, above"), w.config("split_k", tile.split_k),
             w.steps.fact("shared.bandwidth"), w.steps.fact("dsmem.bandwidth"), w.steps.fact("dsmem.latency"),
             w.steps.fact("barrier.cluster")},
            t.exchange,
            "each part writes its sums, the cluster synchronises, each part reads its share from all and "
            "stores it");
    std::vector<Input> store{
        Derivation::given("C of a tile", sums / 4 * bytes_of(w.problem().c_type) / tile.split_k * stored_share(w.problem()), "B",
                          w.problem().pairs() == Pairs::none ? "tile_m * tile_n / split_k" : "tile_m * tile_n / 2 / split_k"),
        w.steps.fact("l2.port")};
    if (tile.store_boxes > 0) {
        store.push_back(w.config("boxes a warp stores", tile.store_boxes));
        store.push_back(w.config("in flight", tile.store_depth));
        store.push_back(w.steps.fact("tma.store_latency"));
    }
    const bool told = !std::isnan(epilogue_issue_cycles(w.hw(), tile, w.problem()));
    if (const SharedEpilogue& e = w.problem().epilogue) {
        std::vector<Input> takes{Derivation::given("issue slots", e->issue, "an element", "the operators of the epilogue"), w.steps.fact("sm.partitions")};
        const bool staged = tile.operand_staged;
        if (const double waits = operand_wait_cycles(w.hw(), tile); waits > 0) {
            takes.push_back(Derivation::given("waits for operands", waits, "cycles",
                                              staged ? "boxes after those that are asked for beside the first products, two in flight"
                                                     : "loads when the sums are there, as many pairs at once as registers hold"));
            takes.push_back(w.steps.fact(staged ? "tma.latency_loaded" : "tma.latency_loaded_l2"));
        }
        const double cycles = epilogue_cycles(w.hw(), tile, w.problem());
        w.steps.add(gemm_formula::expression_cycles, std::move(takes), cycles, "of each element of a tile");
        store.push_back(w.step("expression_cycles", cycles, "cycles"));
    }
    w.steps.add(
        tile.store_boxes > 0 ? gemm_formula::epilogue_cycles_by_tma : gemm_formula::epilogue_cycles, std::move(store),
        told ? t.epilogue : unknown_number,
        tile.epilogue_overlapped ? "beside the next tile's products; after the last tile it shows once"
        : tile.ctas_per_sm > 1   ? "shows where the other CTA's ring does not keep the matrix units busy"
                                 : "shows: nobody multiplies meanwhile");
    std::vector<Input> parts{Derivation::given("k_steps", double(k_steps(tile, w.problem())), "",
                                               fmt::format("ceil({} / {})", k_blocks_text(w.problem()), tile.grid_split_k > 1 ? "(split_k * grid_split_k)" : "split_k")),
                             w.step("step_cycles", t.step, "cycles")};
    if (!std::isnan(w.hw().tile_turn)) parts.push_back(w.steps.fact("wgmma.turn"));
    w.steps.add(gemm_formula::tile_cycles, std::move(parts), t.tile_cycles, "one CTA's tile, all SMs at work");
    clock_under_power(w);
    std::vector<Input> terms{w.step("waves", w.kept.waves.waves, ""), w.step("tile_cycles", t.tile_cycles, "cycles"),
                             w.step("sm_clock_mhz", t.clock_hz / 1e6, "MHz"), w.steps.fact(w.dram()),
                             w.steps.fact("launch.gap_stream")};
    const GemmRequest& request = w.context.request;
    const bool plain = !following(*w.context.kernel, request.programmatic_launch.value_or(true), false).programmatic;
    if (plain && !std::isnan(w.hw().programmatic_saving)) terms.push_back(w.steps.fact("launch.programmatic_saving"));
    if (request.early_weights.value_or(false)) terms.push_back(w.step("early_saving", w.hw().early_saving * 1e6, "us"));
    if (w.hw().packing_seconds > 0) terms.push_back(w.step("packing", w.hw().packing_seconds * 1e6, "us"));
    if (!std::isnan(w.hw().dram_overlap_exponent)) terms.push_back(w.steps.fact("wgmma.overlap_exponent"));
    w.steps.add(
        gemm_formula::time_us, std::move(terms), t.seconds * 1e6,
        unless_unknown(t.seconds, "{:.1f} TFLOP/s", w.problem().flops().value / t.seconds / 1e12));
}

}  // namespace

void write_levels(DerivationWriter& w) {
    levels(w);
    schedule_traffic(w);
}

void write_time(DerivationWriter& w) { time(w); }

}  // namespace rooftile
