// accumulators + working_registers, the planner's register need, against ptxas: the least setmaxnreg value of
// the consumers that compiles clean, found by bisection. With setmaxnreg ptxas reports the launch cap instead
// of the need, so trying is the only way to learn it.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/device/sm90_launch.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {

void PrintTo(const Sm90GemmConfig& c, std::ostream* out) {
    *out << c.tile_m << 'x' << c.tile_n << (c.schedule == Schedule::pingpong ? " pingpong" : " cooperative")
         << (c.tma_store ? "" : " by element") << (c.swap_ab ? " swapped" : "");
    if (c.in_pieces) *out << " in pieces";
    if (c.split_k > 1) *out << " in " << c.split_k << " parts";
}

namespace {

bool compiles_clean(Sm90GemmConfig config, int consumer_registers) {
    config.consumer_registers = consumer_registers;
    try {
        return !unclean(compile_source(gemm_source(config)));
    } catch (const Error&) { return false; }
}

// Multiples of 8 up to 240; clean at `high`.
int min_clean(const Sm90GemmConfig& config) {
    int low = 24, high = 240;  // the answer lies in (low, high]
    while (high - low > 8) {
        const int middle = (low + high) / 16 * 8;
        (compiles_clean(config, middle) ? high : low) = middle;
    }
    return high;
}

Sm90GemmConfig two_consumers(int tile_m, int tile_n, Schedule schedule = Schedule::cooperative) {
    return {.tile_m = tile_m,
            .tile_n = tile_n,
            .tile_k = 64,
            .stages = 3,
            .consumer_warpgroups = 2,
            .schedule = schedule,
            .cluster_m = 1,
            .cluster_n = 1,
            .ctas_per_sm = 1,
            .producer_registers = 24,
            .consumer_registers = 240,
            .type = Type::bf16,
            .a_major = Major::k,
            .b_major = Major::k,
            .tma_store = true};
}

Sm90GemmConfig by_element(int tile_m, int tile_n) {
    Sm90GemmConfig config = two_consumers(tile_m, tile_n);
    config.tma_store = false;
    return config;
}

// Fewer stages than fit: the ring must still hold a tile's sums.
Sm90GemmConfig in_parts(int tile_m, int tile_n, int split_k) {
    Sm90GemmConfig config = two_consumers(tile_m, tile_n);
    config.split_k = split_k;
    return config;
}

Sm90GemmConfig in_pieces(int tile_m, int tile_n, int split_k) {
    Sm90GemmConfig config = in_parts(tile_m, tile_n, split_k);
    config.in_pieces = true;
    return config;
}

/// Whose producer has most to hold: it gets the registers that the planner gives it.
Sm90GemmConfig mn_major(Sm90GemmConfig config) {
    config.producer_registers = 40;
    config.a_major = config.b_major = Major::mn;
    config.tma_store = false;
    return config;
}

Sm90GemmConfig swapped(Sm90GemmConfig config) {
    config.swap_ab = true;
    return config;
}

class MinCleanRegisters : public testing::TestWithParam<Sm90GemmConfig> {};

TEST_P(MinCleanRegisters, IsWhatThePlannerPredicts) {
    const Sm90GemmConfig& config = GetParam();
    const int predicted = config.accumulator_registers() + config.working_registers();
    // Never more than predicted, or plans would spill; and the prediction not idle by more than two steps.
    const int most = std::min(240, (predicted + 7) / 8 * 8), least = std::max(config.accumulator_registers(), predicted - 24);
    EXPECT_TRUE(compiles_clean(config, most)) << sm90_name_expression(config) << " with " << most;
    EXPECT_FALSE(compiles_clean(config, (least + 7) / 8 * 8 - 8)) << "the planner asks for more than the kernel needs";
    if (!test_all()) return;
    const int found = min_clean(config);
    RecordProperty("min_clean", found);
    EXPECT_LE(found, most) << sm90_name_expression(config);
    EXPECT_GE(found, config.accumulator_registers())
        << "below the accumulators the bisection itself is wrong";
    EXPECT_GE(found, predicted - 24) << "the planner asks for more than the kernel needs";
}

INSTANTIATE_TEST_SUITE_P(Tiles, MinCleanRegisters,
                         testing::ValuesIn(drawn_few<Sm90GemmConfig>({two_consumers(128, 64), two_consumers(128, 128),
                                         two_consumers(128, 192), two_consumers(128, 256),
                                         two_consumers(256, 128), two_consumers(256, 160),
                                         two_consumers(64, 256, Schedule::pingpong),
                                         two_consumers(128, 160, Schedule::pingpong), by_element(128, 256),
                                         by_element(256, 192), in_parts(128, 128, 4), in_parts(128, 256, 2),
                                         swapped(two_consumers(136, 128)), swapped(two_consumers(200, 256)),
                                         swapped(by_element(152, 256)), swapped(in_parts(144, 128, 2)), in_pieces(128, 256, 1), in_pieces(256, 128, 2),
                                         mn_major(in_parts(256, 128, 2)), mn_major(in_parts(128, 256, 2))}, 6)));

}  // namespace
}  // namespace rooftile
