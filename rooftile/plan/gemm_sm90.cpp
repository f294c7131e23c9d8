#include "rooftile/plan/gemm_sm90.hpp"

namespace rooftile {
namespace {

constexpr int register_step = 8;    // setmaxnreg takes multiples of 8 from 24 on, PTX ISA "setmaxnreg"
constexpr int most_nameable = 255;  // registers an instruction can name
constexpr int roomy_producer = 40, tight_producer = 24;  // tests/compile holds both to no spills

int round_down(double x, int step) { return static_cast<int>(whole(x / step)) * step; }

// The CTA's pool is fixed at launch; what the producer gives up, the consumers share.
RegisterSplit split_with_producer(double registers_per_sm, double registers_per_thread, int consumers,
                                  int ctas, int least_producer) {
    if (std::isnan(registers_per_sm) || std::isnan(registers_per_thread)) return RegisterSplit{};
    registers_per_thread = std::min<double>(registers_per_thread, most_nameable);
    const int threads = Sm90GemmConfig::warpgroup_threads * (1 + consumers);
    const int launch = round_down(registers_per_sm / (double(threads) * ctas), register_step);
    const int most = round_down(registers_per_thread, register_step);
    if (launch > registers_per_thread) return {static_cast<int>(registers_per_thread), 0, 0};
    if (launch < tight_producer) return {launch, 0, 0};
    const int pool = launch * (1 + consumers);
    const int consumer = std::min(round_down(double(pool - least_producer) / consumers, register_step), most);
    return {launch, std::min(round_down(pool - consumer * consumers, register_step), most), consumer};
}

void give_registers(Sm90GemmConfig& config, const GemmCandidate& c, const RegisterSplit& r) {
    config.producer_registers = r.producer;
    config.consumer_registers = r.consumer;
    config.deferred_store = c.deferred_store.value_or(true) && !bars_deferred_store(config)
                            && config.deferring_registers() <= r.consumer;
}

}  // namespace

RegisterSplits::RegisterSplits(double registers_per_sm, double registers_per_thread, int consumers, int ctas)
    : roomy(split_with_producer(registers_per_sm, registers_per_thread, consumers, ctas, roomy_producer)),
      tight(split_with_producer(registers_per_sm, registers_per_thread, consumers, ctas, tight_producer)) {}

const char* bars_deferred_store(const Sm90GemmConfig& c) {
    if (c.schedule == Schedule::pingpong)
        return "no deferred store in pingpong: the other warpgroup's products run beside the store as it is";
    if (c.split_k > 1)
        return "no deferred store with K in parts: they exchange their sums through the ring, at once";
    if (!c.tma_store)
        return "no deferred store without TMA: predicated stores hold addresses and bounds besides";
    return nullptr;
}

bool stores_by_tma(const GemmProblem& p) { return p.n % copy_elements == 0 && p.ldc % copy_elements == 0; }

Sm90GemmConfig kernel_config(const GemmProblem& p, const GemmCandidate& c, int stages,
                             const RegisterSplit& r) {
    Sm90GemmConfig config{.tile_m = c.tile_m,
                          .tile_n = c.tile_n,
                          .tile_k = c.tile_k,
                          .stages = stages,
                          .consumer_warpgroups = c.warpgroups,
                          .schedule = c.schedule,
                          .cluster_m = c.cluster_m,
                          .cluster_n = c.cluster_n,
                          .split_k = c.split_k,
                          .ctas_per_sm = c.ctas_per_sm,
                          .producer_registers = 0,
                          .consumer_registers = 0,
                          .type = p.a_type,
                          .a_major = p.a_major,
                          .b_major = p.b_major,
                          .tma_store = stores_by_tma(p)};
    give_registers(config, c, r);
    return config;
}

Sm90GemmConfig kernel_config(const GemmPlan& plan) {
    const GemmConfig& c = plan.config;
    const GemmCandidate candidate{c.tile_m,   c.tile_n,        c.tile_k,    c.consumer_warpgroups,
                                  c.schedule, c.cluster_m,     c.cluster_n, c.ctas_per_sm,
                                  c.split_k,  c.deferred_store};
    const RegisterSplit registers{0, static_cast<int>(plan.resources.producer_registers.value_or(0)),
                                  static_cast<int>(plan.resources.consumer_registers.value_or(0))};
    Sm90GemmConfig config = kernel_config(plan.problem, candidate, c.stages, registers);
    config.load_policy = c.a_policy != CachePolicy::normal || c.b_policy != CachePolicy::normal;
    config.store_policy = config.tma_store && c.c_policy != CachePolicy::normal;
    return config;
}

Sm90GemmFamily::Sm90GemmFamily(const GemmHardware& hw, const GemmProblem& problem)
    : m_(problem.m), n_(problem.n), k_(problem.k), sms_(hw.sms) {
    for (int consumers = 1; consumers <= most_warpgroups; ++consumers)
        for (int ctas = 1; ctas <= most_ctas; ++ctas)
            splits_[consumers - 1][ctas - 1] =
                RegisterSplits(hw.registers_per_sm, hw.registers_per_thread, consumers, ctas);
}

RegisterSplit Sm90GemmFamily::split(const GemmHardware& hw, const GemmCandidate& c, int need) const {
    // A producer that multicasts a part of K holds more than the tight one has registers for: only the roomy
    // one.
    if (c.split_k > 1 && c.cluster_m * c.cluster_n > 1) need = 0;
    if (c.warpgroups > most_warpgroups || c.ctas_per_sm > most_ctas)
        return RegisterSplits(hw.registers_per_sm, hw.registers_per_thread, c.warpgroups, c.ctas_per_sm)
            .for_need(need);
    return splits_[c.warpgroups - 1][c.ctas_per_sm - 1].for_need(need);
}

namespace {

using Config = Sm90GemmConfig;
constexpr int swizzle_span = Config::swizzle_bytes / Config::element_bytes;  // elements

int sharing_warpgroups(const GemmCandidate& c) { return c.schedule == Schedule::pingpong ? 1 : c.warpgroups; }

// The instruction: 64 rows a wgmma, N in steps of 16 up to 256, one swizzle span along K.
Wall instruction_wall(const GemmCandidate& c) {
    const bool pingpong = c.schedule == Schedule::pingpong;
    const int sharing = sharing_warpgroups(c);
    constexpr int widest_box = 256;  // elements of a TMA box's side, cuTensorMapEncodeTiled
    if (pingpong && c.split_k > 1)
        return Wall::at(
            Reason::instruction, c.split_k, 1,
            "split_k = {needed}: parts of K exchange their sums through the ring, which in pingpong "
            "the other warpgroup's tile is using; take cooperative");
    if (pingpong && c.warpgroups != 2)
        return Wall::at(Reason::instruction, 2, c.warpgroups,
                        "pingpong takes {needed} consumer warpgroups, not {available}");
    if (c.tile_m % (Config::wgmma_m * sharing) != 0)
        return Wall::at(Reason::instruction, Config::wgmma_m * sharing, c.tile_m,
                        "tile_m = {available} must be a multiple of {needed}: 64 rows a wgmma for each "
                        "warpgroup on the tile");
    if (c.tile_m > widest_box)
        return Wall::at(Reason::instruction, widest_box, c.tile_m,
                        "tile_m = {available} must be at most {needed}");
    if (c.tile_n % 16 != 0 || c.tile_n > widest_box)
        return Wall::at(Reason::instruction, 16, c.tile_n,
                        "tile_n = {available} must be a multiple of {needed} up to 256");
    if (c.tile_k != swizzle_span)
        return Wall::at(Reason::instruction, swizzle_span, c.tile_k,
                        "tile_k = {available} must be {needed}: one 128-byte swizzle span");
    if (c.tile_n % (8 * c.split_k) != 0)
        return Wall::at(
            Reason::instruction, 8 * c.split_k, c.tile_n,
            "tile_n = {available} must be a multiple of {needed}: each part of K stores its share of "
            "the columns, eight at a time");
    return Wall::none();
}

// One m64nN must fit the registers a thread has at entry, whatever setmaxnreg gives later (ptxas C7602): 512
// threads leave 128, which holds N = 192 and no more.
Wall entry_wall(const GemmCandidate& c, const RegisterSplit& split) {
    constexpr int beside_one_wgmma = 32;
    const int at_entry = c.tile_n / 2 + beside_one_wgmma;
    if (split.launch >= 0 && at_entry > split.launch)
        return Wall::at(Reason::instruction, at_entry, split.launch,
                        "one wgmma of this tile_n needs {needed} registers a thread at entry, and so many "
                        "threads leave {available}");
    return Wall::none();
}

// A box of an mn-major operand is one swizzle span, 64 elements, wide; a cluster cuts it in whole boxes.
Wall box_wall(const GemmProblem& problem, const GemmCandidate& c) {
    if (problem.a_major == Major::mn && c.tile_m % (swizzle_span * c.cluster_n) != 0)
        return Wall::at(Reason::alignment, swizzle_span * c.cluster_n, c.tile_m,
                        "with A m-major tile_m = {available} must be a multiple of {needed} elements");
    if (problem.b_major == Major::mn && c.tile_n % (swizzle_span * c.cluster_m) != 0)
        return Wall::at(Reason::alignment, swizzle_span * c.cluster_m, c.tile_n,
                        "with B n-major tile_n = {available} must be a multiple of {needed} elements");
    return Wall::none();
}

Wall cluster_wall(const GemmHardware& hw, const GemmProblem& problem, const GemmCandidate& c) {
    const int size = c.cluster_m * c.cluster_n * c.split_k;
    if (size == 1) return Wall::none();
    const std::int64_t rows = ceil_div(problem.m, c.tile_m), columns = ceil_div(problem.n, c.tile_n);
    if (size > 2 * c.split_k)
        return Wall::at(Reason::cluster, c.cluster_m * c.cluster_n, 2,
                        "a cluster of {needed} CTAs; this kernel takes {available}");
    if (size > hw.cluster_ctas)
        return Wall::at(Reason::cluster, size, hw.cluster_ctas,
                        "a cluster of {needed} CTAs; the machine takes {available}");
    if (rows < c.cluster_m)
        return Wall::at(Reason::cluster, c.cluster_m, double(rows),
                        "cluster_m = {needed}, but there is {available} row of tiles");
    if (columns < c.cluster_n)
        return Wall::at(Reason::cluster, c.cluster_n, double(columns),
                        "cluster_n = {needed}, but there is {available} column of tiles");
    return Wall::none();
}

GemmTile tile_of(const GemmCandidate& c, const Config& config) {
    return {.tile_m = c.tile_m,
            .tile_n = c.tile_n,
            .tile_k = c.tile_k,
            .cluster_m = c.cluster_m,
            .cluster_n = c.cluster_n,
            .split_k = c.split_k,
            .ctas_per_sm = c.ctas_per_sm,
            .warp_m = Config::wgmma_m,
            .warp_n = c.tile_n,
            .epilogue_overlapped = c.schedule == Schedule::pingpong || config.deferred_store,
            .store_boxes = config.tma_store ? config.wgmma_rows() * (config.share_n() / config.slab_n()) : 0,
            .store_depth = Config::slabs_in_flight};
}

}  // namespace

Wall Sm90GemmFamily::examine(const GemmHardware& hw, const GemmProblem& problem, const GemmCandidate& c,
                             Footprint& f) const {
    if (const Wall wall = instruction_wall(c); wall.stands) return wall;
    Config config = kernel_config(problem, c, 1, {});
    f.accumulators = config.accumulator_registers();
    f.registers = f.accumulators + config.working_registers();
    const RegisterSplit split = this->split(hw, c, f.registers);
    give_registers(config, c, split);
    f.deferred_store = config.deferred_store;
    const bool defers = c.deferred_store.value_or(false);
    if (const char* bar = bars_deferred_store(config); defers && bar)
        return Wall::at(Reason::instruction, 1, 0, bar);
    if (const Wall wall = residency_wall(hw, config.threads(), c.ctas_per_sm); wall.stands) return wall;
    if (const Wall wall = entry_wall(c, split); wall.stands) return wall;
    if (const Wall wall = box_wall(problem, c); wall.stands) return wall;
    if (const Wall wall = cluster_wall(hw, problem, c); wall.stands) return wall;

    f.tile = tile_of(c, config);
    f.threads = config.threads();
    f.producer_registers = config.producer_registers;
    f.consumer_registers = config.consumer_registers;
    f.registers_limit = split.consumer > 0 ? split.consumer : split.launch >= 0 ? split.launch : std::nan("");
    if (f.registers > f.registers_limit)
        return Wall::at(Reason::registers, f.registers, f.registers_limit,
                        "accumulators and the rest are {needed} registers a thread > {available}; take a "
                        "smaller tile or more warpgroups");

    if (defers && !config.deferred_store)
        return Wall::at(
            Reason::registers, config.deferring_registers(), f.consumer_registers,
            "with its store deferred a tile needs {needed} registers a thread > {available}; take a "
            "smaller tile or more warpgroups");

    f.stage_bytes = config.stage_bytes();
    f.stage_overhead = 2 * Config::barrier_bytes;
    f.reserved_bytes = config.reserved_bytes() - f.stage_overhead;  // config was made with one stage
    f.stages_least =
        std::max(least_stages, static_cast<int>(ceil_div(config.exchange_bytes(), f.stage_bytes)));
    f.shared_limit = shared_limit(hw, c.ctas_per_sm);
    return Wall::none();
}

}  // namespace rooftile
