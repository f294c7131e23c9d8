#include "rooftile/chain/model.hpp"

#include <algorithm>
#include <cmath>

#include "rooftile/tiled/pipeline.hpp"

namespace rooftile {
namespace {

constexpr double element_bytes = ChainProblem::element_bytes;

/// The bandwidth of a mixture of reads and writes, known to be no better than either.
double dram_seconds(const ChainHardware& hw, double bytes) { return bytes / min_known(hw.dram_bandwidth, hw.copy_bandwidth); }

/// A kernel's seconds where DRAM sends it `bytes` instead of those it was planned with.
double with_bytes(const ChainHardware& hw, const ProductTime& p, double bytes) {
    const double saved = (p.dram_bytes - bytes) / hw.dram_bandwidth;
    return std::max(p.on_chip_seconds, p.seconds - saved);
}

}  // namespace

ActCost act_cost(ChainAct act) {
    // Counted in the machine code of sm90_chain, an element of a warp each: half an instruction rounds a pair, half a one looks for NaN.
    switch (act) {
        case ChainAct::gelu:
            return {12, 1};  // seven FFMA of a polynomial, exp2, a step and two products
        case ChainAct::silu:
            return {6, 2};  // exp2 and a reciprocal
        case ChainAct::relu:
            return {2, 0};
        case ChainAct::swiglu:
            return {7, 2};
    }
    return {};
}

double function_seconds(const ChainHardware& hw, const ChainProblem& p) {
    const ActCost cost = act_cost(p.act);
    const double lanes = hw.issue_lanes * hw.sms * known_or(hw.top_hz, hw.clock_hz);
    return max_known(double(p.m) * double(p.ff) * (cost.instructions - cost.exponentials) / lanes, 0);
}

ChainTime two_kernels_time(const ChainHardware& hw, const ChainProblem& p, const ProductTime& first, const ProductTime& second, const ChainTraffic& traffic) {
    ChainTime t;
    const double one = with_bytes(hw, first, double(traffic.of_kernel[0])), two = with_bytes(hw, second, double(traffic.of_kernel[1]));
    t.seconds = one + two + function_seconds(hw, p);
    const double dram = dram_seconds(hw, double(traffic.dram_bytes()));
    t.bound = dram > 0.5 * t.seconds && (one > first.on_chip_seconds || two > second.on_chip_seconds) ? Bound::dram : Bound::tensor;
    t.clock_hz = hw.clock_hz;
    return t;
}

QueueTimes queue_times(const ChainHardware& hw, const ChainProblem& p, const ChainConfig& config, const ProductTime& first, const ProductTime& second) {
    const double launch = max_known(hw.launch_seconds, 0), clock = known_or(hw.top_hz, hw.clock_hz);
    const auto a_tile = [&](const ChainProduct& product, const ProductTime& t) {
        const double tiles = std::ceil(double(product.m) / product.tile_m) * std::ceil(double(product.n) / product.tile_n);
        return (t.on_chip_seconds - launch) / std::ceil(tiles / double(product.clusters));
    };
    const ChainProduct& a = config.products[0];
    const double tiles = std::ceil(double(a.m) / a.tile_m) * std::ceil(double(a.n) / a.tile_n);
    const double l2_seconds = known_or(at_clock(hw, clock).load_latency, 0) / clock;
    QueueTimes t;
    // The function's instructions are of the first product's tiles; and whoever stores one waits until L2 has it, in ping-pong beside half of
    // another one's products.
    t.first_tile = a_tile(a, first) + function_seconds(hw, p) * double(a.clusters) / std::max(tiles, double(a.clusters)) + l2_seconds * (a.pingpong ? 0.5 : 1);
    t.second_tile = a_tile(config.products[1], second);
    t.seen = 2 * l2_seconds;  // a count, and the first copies
    t.look = l2_seconds;
    return t;
}

QueueRun queue_run(const ChainHardware& hw, const ChainProblem& p, const ChainConfig& config, const ProductTime& first, const ProductTime& second) {
    const ChainProduct &a = config.products[0], &b = config.products[1];
    return run_queue(a, b, queue_order(a, b, chunks_of(config)), config.room_chunks, queue_times(hw, p, config, first, second), a.clusters);
}

ChainTime persistent_time(const ChainHardware& hw, const ChainProblem& p, const ChainConfig& config, const ProductTime& first, const ProductTime& second,
                          const ChainTraffic& traffic) {
    return persistent_time(hw, p, config, first, second, traffic, queue_run(hw, p, config, first, second));
}

ChainTime persistent_time(const ChainHardware& hw, const ChainProblem& p, const ChainConfig& config, const ProductTime& first, const ProductTime& second,
                          const ChainTraffic& traffic, const QueueRun& run) {
    ChainTime t;
    const double launch = max_known(hw.launch_seconds, 0);
    const double dram = dram_seconds(hw, double(traffic.dram_bytes()));
    double seconds = dram;
    if (config.chunk_rows >= p.m) {
        // One product behind the other: what DRAM takes longer of each, as if it were alone.
        const auto shown = [&](const ProductTime& product, std::int64_t bytes) { return with_bytes(hw, product, double(bytes)) - product.on_chip_seconds; };
        seconds = run.seconds + shown(first, traffic.of_kernel[0]) + shown(second, traffic.of_kernel[1]);
    } else {
        seconds = overlapped(std::max(run.seconds, dram), std::min(run.seconds, dram), hw.dram_overlap_exponent);
    }
    t.seconds = std::isnan(seconds + dram) ? unknown_number : std::max(seconds, dram) + launch;
    t.bound = dram > run.seconds ? Bound::dram : Bound::tensor;
    t.clock_hz = hw.clock_hz;
    return t;
}

ChainBlock chain_block(const ChainHardware& hw, const ChainProblem& p, const ChainTile& tile) {
    const Sm90ChainConfig k = kernel_config(p, tile);
    const double elements = double(tile.tile_m) * tile.tile_ff, warpgroups = tile.consumer_warpgroups();
    const double products = k.hidden_products();
    const ActCost cost = act_cost(p.act);
    ChainBlock b{};
    b.tensor = 2 * elements * k.d * (products + 1) / hw.flops_per_cycle * hw.product_stretch;
    b.special = cost.exponentials > 0 ? max_known(elements * cost.exponentials / hw.exponentials_per_cycle, 0) : 0;
    b.issue = max_known(elements * (cost.instructions - cost.exponentials) / hw.issue_lanes, 0);
    // While a warp issues additions and products of fp32 at their rate, the tensor core keeps a third of its own (docs/facts.md 271): what one
    // gains the other loses. Special functions slow it by nothing, but a warp waits for each.
    b.together = std::hypot(b.tensor, b.special) + b.issue;
    // Each warpgroup reads its rows of X once a block, and W1 and W2; the copies come in by the same port.
    const double filled = tile.resident ? 0 : k.w1_bytes() + k.w2_bytes();
    const double read = element_bytes * (products * tile.tile_m * k.d + warpgroups * tile.tile_ff * k.d * (products + 1));
    b.shared = (filled + read) / hw.shared_bandwidth;
    b.port = filled / hw.l2_port;
    b.l2 = filled / hw.l2_share;
    const Bound own = b.tensor >= std::max(b.special, b.issue) ? Bound::tensor : Bound::issue;
    Pace step;
    step.beside(b.together, own);
    step.beside(b.shared, Bound::shared);
    step.beside(max_known(b.port, b.l2), Bound::l2);
    b.bound = step.bound;
    // Added, not the least as of one product's steps: a block's second product waits for the first one's results. By the least on-chip plans
    // of few rows a tile are told too short, and chosen (docs/facts.md 351).
    b.all = step.time + max_known(hw.step_floor, 0);
    if (std::isnan(b.tensor)) b.all = unknown_number;
    return b;
}

OnChipTime on_chip_time(const ChainHardware& hw, const ChainProblem& p, const ChainTile& tile, double dram_bytes) {
    OnChipTime out;
    const Sm90ChainConfig k = kernel_config(p, tile);
    out.tiles = std::ceil(double(p.m) / tile.tile_m), out.blocks = std::ceil(double(p.ff) / tile.tile_ff);
    const double all_blocks = out.tiles * out.blocks, products = k.hidden_products();
    out.matrix_flops = 2 * all_blocks * tile.tile_m * tile.tile_ff * k.d * (products + 1);
    const double weights = k.w1_bytes() + k.w2_bytes();
    out.filled_bytes = out.tiles * k.x_bytes() + (tile.resident ? min_known(hw.sms, out.tiles) * out.blocks : all_blocks) * weights;
    out.shared_read_bytes = all_blocks * element_bytes
                            * (products * tile.tile_m * k.d + double(tile.consumer_warpgroups()) * tile.tile_ff * k.d * (products + 1));
    // With the SMs at `clock`: what is beyond them takes its own time.
    const auto cycles_at = [&](double clock) {
        const ChainHardware now = at_clock(hw, clock);
        out.block = chain_block(now, p, tile);
        double block = out.block.all;
        // The longer a block, the less busy L2, and the sooner a load comes.
        constexpr int close_enough = 8;
        if (!tile.resident)
            for (int i = 0; i < close_enough; ++i) {
                const double latency = latency_under_load(now.few_loads_latency(), now.load_latency, out.block.l2 / block);
                const double fed = fed_step(RingRule::turn, out.block.all, latency + max_known(out.block.port, out.block.l2), tile.stages);
                block = i == 0 ? fed : (block + fed) / 2;
            }
        // Y leaves by the port that X came by, and a residual comes once more.
        const double row_bytes = double(tile.tile_m) * double(p.d) * element_bytes;
        out.turn = max_known(row_bytes / now.l2_port, 0) * (p.residual ? 2 : 1);
        const double rounds = std::ceil(out.tiles / hw.sms);
        return rounds * (out.blocks * block + out.turn);
    };
    ChainTime& t = out.time;
    const MatrixEnergy joules{.matrix = out.matrix_flops * hw.flop_joules,
                              .fill = out.filled_bytes * hw.fill_joules,
                              .dram = dram_bytes * hw.dram_joules,
                              .shared_read = out.shared_read_bytes * hw.shared_read_joules};
    double on_chip = 0;
    t.clock_hz = PowerLimit(hw).held(joules.sum(), [&](double clock) { return on_chip = cycles_at(clock) / clock; }).clock_hz;
    // The first rows and weights come from DRAM, in front of which nothing waits yet.
    const double first = min_known(at_clock(hw, t.clock_hz).load_latency, hw.dram_latency + hw.tma_latency);
    const double fill = fill_cycles(known_or(first, 0), max_known(out.block.port, out.block.l2)) / t.clock_hz;
    const Pace launch = launch_pace({on_chip, out.block.bound}, dram_seconds(hw, dram_bytes), 0, fill, hw.launch_seconds);
    t.seconds = launch.time, t.bound = launch.bound;
    return out;
}

Sm90ChainConfig kernel_config(const ChainProblem& p, const ChainTile& tile) {
    constexpr std::int64_t box = Sm90ChainConfig::box_elements;
    Sm90ChainConfig k;
    // What the code has of the choices.
    const auto take = [&tile](auto& own) {
#define ROOFTILE_KNOB(TYPE, NAME, ...) \
        if constexpr (requires { own.NAME; }) own.NAME = tile.NAME;
#include "rooftile/chain/knobs.def"
#undef ROOFTILE_KNOB
    };
    take(k);
    k.d = int(std::min<std::int64_t>((p.d + box - 1) / box * box, 1 << 20));
    k.type = p.type;
    k.act = ChainFunction(p.act);
    k.residual = p.residual;
    k.turns = tile.schedule == Schedule::pingpong;
    return k;
}

int registers_needed(const ChainProblem& p, const ChainTile& tile) {
    // Addresses, positions in rings, what the function takes of an element at a time; of gates and ups more is alive between the two.
    constexpr int beside = 32, beside_pairs = 56;
    return kernel_config(p, tile).accumulator_registers() + (p.act == ChainAct::swiglu ? beside_pairs : beside);
}

std::optional<ChainWall> wall_of(const ChainHardware& hw, const ChainProblem& p, const ChainTile& tile) {
    const Sm90ChainConfig k = kernel_config(p, tile);
    constexpr int widest = 256;  // of a matrix instruction, and of a box
    if (k.d > widest || tile.tile_m % 64 != 0 || tile.tile_ff % 64 != 0 || tile.tile_ff > widest)
        return ChainWall{Reason::instruction, double(k.d), widest};
    const double available = role_registers(hw, tile.consumer_warpgroups()).consumer;
    if (registers_needed(p, tile) > available) return ChainWall{Reason::registers, double(registers_needed(p, tile)), available};
    if (tile.resident && std::int64_t{tile.stages} * tile.tile_ff < p.ff) return ChainWall{Reason::shared, double(p.w1_bytes() + p.w2_bytes()), hw.shared_per_cta};
    if (k.shared_bytes() > hw.shared_per_cta) return ChainWall{Reason::shared, double(k.shared_bytes()), hw.shared_per_cta};
    return std::nullopt;
}

}  // namespace rooftile
