// sm90_few_quantised, sm90_many_quantised, and sm90_gemm, sm80_gemm and sm80_few_gemm behind a launch that unpacks, on random problems: every
// layout of weights, sizes that end anywhere, tiles that are cut among CTAs; every element against fp64 of the dequantised weights, behind
// unpacking of these rounded to the activations' type.
//
// ROOFTILE_FUZZ_SHAPES sets how many (80), ROOFTILE_FUZZ_SEED repeats a run.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <span>

#include "kernels/measure/numbers.hpp"
#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/pack_weights.hpp"
#include "rooftile/machine/live.hpp"
#include "tests/device/device.hpp"
#include "tests/from_environment.hpp"
#include "tests/gemm/device/gemm_verifier.hpp"
#include "tests/gemm/draw_quantised.hpp"

namespace rooftile {
namespace {

class QuantisedTest : public DeviceTest {
  protected:
    void SetUp() override {
        DeviceTest::SetUp();
        if (!IsSkipped() && live_machine().machine.arch != "sm_90")
            GTEST_SKIP() << "these kernels of packed weights are sm_90's";
    }
};
class UnpackedTest : public DeviceTest {};

struct PackedWay {
    int tile_m, tile_n, warpgroups, ctas_per_sm, stages, tile_k;  ///< 0: the planner's choice
};
constexpr PackedWay packed_ways[] = {{0, 0, 0, 0, 0, 0},     {0, 64, 2, 2, 3, 512},  {0, 64, 2, 1, 0, 512}, {0, 128, 4, 1, 0, 256}, {0, 64, 2, 2, 0, 256},
                                     {0, 128, 2, 1, 0, 256}, {0, 128, 2, 1, 2, 128}, {0, 64, 2, 1, 5, 128}, {0, 64, 4, 1, 0, 256},  {0, 128, 4, 1, 0, 512}};

/// Problems of up to `most_m` rows, a way after the other.
void expect_drawn_right(std::span<const PackedWay> ways, std::int64_t most_m, const char* kernel, int step = 8) {
    const std::uint64_t seed = from_environment("ROOFTILE_FUZZ_SEED", 1);
    const int count = int(from_environment("ROOFTILE_FUZZ_SHAPES", 80));
    const Machine machine = live_machine().machine;
    Random random(seed);
    const std::vector<GemmPlan> plans = drawn_plans(count, [&](int i) {
        const PackedWay& way = ways[std::size_t(i) % ways.size()];
        GemmRequest r;
        const auto fix = [](std::optional<int>& knob, int value) {
            if (value > 0) knob = value;
        };
        fix(r.tile_m, way.tile_m), fix(r.tile_n, way.tile_n), fix(r.tile_k, way.tile_k), fix(r.consumer_warpgroups, way.warpgroups),
            fix(r.ctas_per_sm, way.ctas_per_sm);
        fix(r.stages, way.stages);
        r.top = 1;
        r.kernel = find_gemm_kernel(kernel);
        return derive(machine, drawn_quantised_expressed(random, 6000, 9000, most_m, step), r);
    });
    ASSERT_EQ(plans.size(), std::size_t(count)) << "no problem suits a way";
    expect_every_element_right(plans, seed, kernel, [&](const GemmProblem& p, std::size_t i) {
        return fmt::format(
            "ROOFTILE_FUZZ_SEED={} case {}: {} x {}, {}x{}x{} ld {} {} offsets {} {}, groups of {}, scales "
            "{}, zeros {} {}",
            seed, i, name_of(p.a_type), p.b_name(), p.m, p.n, p.k, p.lda, p.ldc, p.a_offset, p.c_offset,
            p.quantised.group, name_of(p.quantised.scale), name_of(p.quantised.zeros), p.epilogue.text());
    });
}

TEST_F(QuantisedTest, EveryElementIsRight) { expect_drawn_right(packed_ways, 64, "sm90_few_quantised"); }

constexpr PackedWay many_ways[] = {{0, 0, 0, 0, 0, 0},   {128, 0, 2, 0, 0, 0}, {32, 0, 3, 0, 2, 0}, {96, 0, 2, 0, 0, 0},
                                   {0, 128, 2, 0, 3, 0}, {160, 0, 2, 0, 0, 0}, {64, 0, 3, 0, 0, 0}, {0, 0, 0, 0, 2, 0}};
TEST_F(QuantisedTest, EveryElementOfManyRowsIsRight) { expect_drawn_right(many_ways, 4096, "sm90_many_quantised"); }

constexpr PackedWay unpacked_ways[] = {{0, 0, 0, 0, 0, 0}, {128, 256, 2, 1, 0, 64}, {128, 128, 2, 1, 0, 64}, {64, 64, 1, 0, 0, 64}, {0, 0, 0, 2, 0, 64}};
TEST_F(QuantisedTest, EveryElementBehindUnpackingIsRight) { expect_drawn_right(unpacked_ways, 4096, "sm90_gemm"); }

constexpr PackedWay unpacked_sm80_ways[] = {{0, 0, 0, 0, 0, 0}, {64, 128, 1, 0, 0, 32}, {128, 128, 2, 1, 0, 64}, {0, 0, 0, 2, 3, 0}};
TEST_F(UnpackedTest, EveryElementOfSm80GemmIsRight) { expect_drawn_right(unpacked_sm80_ways, 4096, "sm80_gemm", 1); }

constexpr PackedWay unpacked_few_ways[] = {{0, 0, 0, 0, 0, 0}, {0, 128, 0, 0, 0, 128}, {0, 256, 0, 0, 0, 64}};
TEST_F(UnpackedTest, EveryElementOfSm80FewGemmIsRight) { expect_drawn_right(unpacked_few_ways, 64, "sm80_few_gemm", 1); }

// Groups of rows, empty ones among them, each by its own columns of the weights.
TEST_F(QuantisedTest, EveryElementOfGroupsIsRight) {
    const std::uint64_t seed = from_environment("ROOFTILE_FUZZ_SEED", 1);
    Random random(seed);
    const Machine machine = live_machine().machine;
    const std::vector<GemmPlan> plans = drawn_plans(int(from_environment("ROOFTILE_FUZZ_SHAPES", 80)) / 4, [&](int) {
        std::vector<std::int64_t> rows;
        for (std::int64_t i = random.whole(1, 40); i > 0; --i) rows.push_back(random.one_in(4) ? 0 : random.whole(1, random.one_in(3) ? 300 : 20));
        rows.push_back(1);
        std::int64_t m = 0;
        for (const std::int64_t each : rows) m += each;
        GemmProblem p = gemm_problem(m, 64 * random.whole(1, 20), 8 * random.whole(1, 300), random.coin() ? Type::bf16 : Type::fp16);
        p.quantised = drawn_layout(random);
        p.groups = SharedGroups(rows);
        p.b_stride = p.n * p.k;
        check(p);
        return derive(machine, p);
    });
    expect_every_element_right(plans, seed, "groups", [&](const GemmProblem& p, std::size_t i) {
        return fmt::format("ROOFTILE_FUZZ_SEED={} case {}: {} x {}, {}x{}x{}, groups {}, of {} of K", seed, i, name_of(p.a_type), p.b_name(), p.m, p.n,
                           p.k, p.groups.text(), p.quantised.group);
    });
}

// Tiles that CTAs share are added up in the order of K: two launches give the same bits.
TEST_F(QuantisedTest, GivesTheSameBitsEachTime) {
    for (const int m : {3, 300}) {
        GemmProblem p = gemm_problem(m, 1000, 8192);
        p.quantised.weights = WeightType::int4;
        const auto plans = derive(live_machine().machine, p);
        const Kernel kernel = compile(std::get<Plans>(plans).plans.front());
        const MeasureKernels measure_kernels(compile_measure_kernels("sm_90"));
        const DeviceBuffer workspace(kernel.workspace_bytes());
        fill_bytes(workspace.address(), 0, workspace.bytes(), nullptr);
        GemmVerifier verifier(measure_kernels, p);
        const GemmLaunch launch = [&](Stream stream, const void* a, const void* b, void* c) {
            kernel.launch(stream, a, b, c, workspace.data());
        };
        const std::uint64_t first = verifier.fingerprint(5, launch);
        for (int i = 0; i < 5; ++i) EXPECT_EQ(verifier.fingerprint(5, launch), first);
    }
}

// W[n, k] = (n + k) % 16 - 8, by scales of (n + g) % 3 + 1 for the g-th 64 of K; A[m, k] = (m + k) % 5 - 2: sums of whole numbers below 2^24,
// rounded once.
TEST_F(QuantisedTest, MultipliesWhatTheHostPacked) {
    GemmProblem p = gemm_problem(3, 70, 264, Type::fp16);
    p.quantised = {.weights = WeightType::int4, .group = 64};
    std::vector<signed char> q;
    std::vector<float> scales;
    std::vector<std::uint16_t> a;
    for (std::int64_t n = 0; n < p.n; ++n) {
        for (std::int64_t k = 0; k < p.k; ++k) q.push_back(static_cast<signed char>((n + k) % 16 - 8));
        for (std::int64_t g = 0; g < p.quantised.groups(p.k); ++g) scales.push_back(float((n + g) % 3 + 1));
    }
    for (std::int64_t i = 0; i < p.m * p.k; ++i) a.push_back(std::uint16_t(round_to_bits(double((i / p.k + i % p.k) % 5) - 2, p.a_type)));
    const PlainArray arrays[] = {{q.data(), "int8", p.n, p.k}, {scales.data(), "fp32", p.n, p.quantised.groups(p.k)}};
    std::vector<unsigned char> packed(std::size_t(p.quantised.bytes(p.n, p.k)));
    pack_weights(p, {0, p.n}, arrays, packed);
    const auto plans = derive(live_machine().machine, p);
    const Kernel kernel = compile(std::get<Plans>(plans).plans.front());
    const DeviceBuffer workspace(kernel.workspace_bytes()), on_a(a.size() * 2), on_b(packed.size()), on_c(std::size_t(p.m * p.n * 2));
    fill_bytes(workspace.address(), 0, workspace.bytes(), nullptr);
    copy_to_device(on_a.address(), a.data(), on_a.bytes());
    copy_to_device(on_b.address(), packed.data(), on_b.bytes());
    kernel.launch(nullptr, on_a.data(), on_b.data(), on_c.data(), workspace.data());
    synchronize(Stream(nullptr));
    std::vector<std::uint16_t> c(std::size_t(p.m * p.n));
    copy_to_host(c.data(), on_c.address(), on_c.bytes());
    for (std::int64_t m = 0; m < p.m; ++m)
        for (std::int64_t n = 0; n < p.n; ++n) {
            double sum = 0;
            for (std::int64_t k = 0; k < p.k; ++k)
                sum += (double((m + k) % 5) - 2) * q[std::size_t(n * p.k + k)] * scales[std::size_t(n * p.quantised.groups(p.k) + k / 64)];
            ASSERT_EQ(c[std::size_t(m * p.n + n)], round_to_bits(sum, p.c_type)) << m << ' ' << n;
        }
}

// What was packed for another layout or another K says so in its first words: C is NaN, not a plausible number.
TEST_F(QuantisedTest, RefusesWeightsOfAnotherLayout) {
    for (const auto& [m, name] : {std::pair<std::int64_t, const char*>{2, "sm90_few_quantised"}, {130, "sm90_many_quantised"}, {130, "sm90_gemm"}, {130, "sm80_gemm"}, {2, "sm80_few_gemm"}}) {
    GemmProblem p = gemm_problem(m, 200, 512);
    p.quantised.weights = WeightType::int4;
    GemmRequest request;
    request.kernel = find_gemm_kernel(name);
    const auto plans = derive(live_machine().machine, p, request);
    const Kernel kernel = compile(std::get<Plans>(plans).plans.front());
    const DeviceBuffer workspace(kernel.workspace_bytes()), a(std::size_t(m) * 512 * 2),
        b(std::size_t(p.quantised.bytes(p.n, p.k))), c(std::size_t(m) * 200 * 2);
    for (const bool right : {true, false}) {
        for (const DeviceBuffer* buffer : {&workspace, &a, &b, &c})
            fill_bytes(buffer->address(), 0, buffer->bytes(), nullptr);
        QuantisedLayout other = p.quantised;
        if (!right) other.weights = WeightType::uint4;
        const unsigned header[] = {other.fingerprint(), unsigned(p.n), unsigned(p.k)};
        copy_to_device(b.address(), header, sizeof header);
        kernel.launch(nullptr, a.data(), b.data(), c.data(), workspace.data());
        synchronize(Stream(nullptr));
        std::vector<std::uint16_t> got(std::size_t(m) * 200);
        copy_to_host(got.data(), c.address(), got.size() * 2);
        for (const std::uint16_t bits : got) ASSERT_EQ((bits & 0x7fff) > 0x7f80, !right) << name;
    }
  }
}

}  // namespace
}  // namespace rooftile
