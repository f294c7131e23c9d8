// Weights that are asked for before the kernel in front has ended: whatever that one still writes, the bits are those of plain launches.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/knobs.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/runtime/nvrtc.hpp"
#include "tests/device/device.hpp"
#include "tests/gemm/mutants.hpp"

namespace rooftile {
namespace {

/// Lets the next kernel begin at once, takes its time, and writes at the very end.
constexpr const char* late_writer = R"(
    extern "C" __global__ void late(unsigned short* to, const unsigned short* from, long long count, unsigned long long ns) {
        asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
        unsigned long long begin, now;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
        do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); while (now - begin < ns);
        for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) to[i] = from[i];
    })";
constexpr unsigned long long late_ns =
    200'000;  // far more than any of these products takes to ask for all that it may

std::uint16_t small_whole_number(std::size_t i, int salt) {
    const float value = float(int((i * 7919 + std::size_t(salt) * 104729) % 31) % 5 - 2);
    std::uint32_t bits;
    std::memcpy(&bits, &value, 4);
    return std::uint16_t(bits >> 16);  // exact in bf16
}

class EarlyWeightsTest : public DeviceTest {
  protected:
    void SetUp() override {
        DeviceTest::SetUp();
        if (IsSkipped()) return;
        Source source;
        source.name = "late";
        source.text = late_writer;
        source.name_expressions = {"late"};
        source.arch = nvrtc_arch("sm_90");
        module_ = Module(compile_source(source).cubin);
        late_ = module_.function("late");
    }
    void TearDown() override {
        late_ = {};
        module_ = {};
        DeviceTest::TearDown();
    }

    static GemmPlan plan_of(const std::string& words) {
        const Mutant as_it_is{"", words};
        const PlanSet set = planned(gemm_operation(), as_it_is);
        EXPECT_FALSE(set.plans.empty()) << words << ": " << (set.refusal ? set.refusal->message : "");
        return set.plans.empty() ? GemmPlan{} : set.plans.front().own.as<GemmPlan>();
    }

    /// C of the product whose A is written late, by a launch that may ask for B before. All of them plain: the right bits.
    std::vector<std::uint16_t> result_of(const Kernel& kernel) const {
        const GemmProblem& p = kernel.plan().problem;
        const std::size_t a_count = std::size_t(p.lda * (p.a_major == Major::k ? p.m : p.k)),
                          b_count = std::size_t(p.ldb * (p.b_major == Major::k ? p.n : p.k)),
                          c_count = std::size_t(p.m * p.ldc);
        std::vector<std::uint16_t> a(a_count), b(b_count), c(c_count);
        for (std::size_t i = 0; i < a.size(); ++i) a[i] = small_whole_number(i, 1);
        for (std::size_t i = 0; i < b.size(); ++i) b[i] = small_whole_number(i, 2);
        const DeviceBuffer from(a_count * 2), da(a_count * 2), db(b_count * 2), dc(c_count * 2),
            workspace(std::max<std::size_t>(kernel.workspace_bytes(), 256));
        copy_to_device(from.address(), a.data(), from.bytes());
        copy_to_device(db.address(), b.data(), db.bytes());
        StreamOwner stream;
        fill_bytes(workspace.address(), 0, workspace.bytes(), stream);
        fill_bytes(da.address(), 0xff, da.bytes(), stream);  // NaN
        fill_bytes(dc.address(), 0xff, dc.bytes(), stream);
        kernel.load();
        stream.synchronize();
        // Few CTAs, which leave the product's the SMs.
        launch(late_, Launch{.grid_x = 8, .block_x = 256, .stream = stream}, da.address(), from.address(),
               static_cast<long long>(a_count), late_ns);
        kernel.launch(stream, da.data(), db.data(), dc.data(), workspace.data());
        stream.synchronize();
        copy_to_host(c.data(), dc.address(), dc.bytes());
        return c;
    }

    /// The same configuration without the promise, launched plainly.
    static Kernel plain(GemmPlan plan) {
        plan.config.early_weights = plan.config.programmatic_launch = false;
        return compile(plan);
    }

  private:
    Module module_;
    Function late_;
};

/// Rings that K fills and that it does not, clusters that share either operand, parts and pieces of K, both sides, several tiles a CTA; and
/// the kernel of few rows.
const std::vector<std::string>& early_products() {
    static const std::vector<std::string> all = {
        "--m 16 --n 4096 --k 4096 --early-weights on",
        "--m 64 --n 1024 --k 2048 --early-weights on",
        "--m 1 --n 512 --k 64 --early-weights on",
        "--m 256 --n 256 --k 512 --tile 128x128x64 --cluster 2x1 --split-k 1 --swap-ab off --early-weights "
        "on",
        "--m 256 --n 256 --k 512 --tile 128x128x64 --cluster 1x2 --split-k 1 --swap-ab off --early-weights "
        "on",
        "--m 1792 --n 1792 --k 512 --tile 128x128x64 --schedule cooperative --split-k 1 --swap-ab off "
        "--cluster 1x1 --early-weights on",
        "--m 1792 --n 1792 --k 512 --tile 64x128x64 --schedule pingpong --split-k 1 --swap-ab off --cluster "
        "1x1 --early-weights on",
        "--m 256 --n 256 --k 1536 --tile 128x128x64 --split-k 2 --grid-split-k 3 --swap-ab off --cluster 1x1 "
        "--early-weights on",
        "--m 256 --n 256 --k 512 --tile 64x128x64 --split-k 4 --swap-ab off --cluster 1x1 --early-weights on",
        "--m 128 --n 640 --k 320 --a-major m --b-major n --early-weights on",
        "--kernel sm80_few_gemm --m 9 --n 2500 --k 1021 --early-weights on",
        "--kernel sm80_few_gemm --m 40 --n 1000 --k 3000 --grid-split-k 3 --early-weights on",
        "--kernel sm80_few_gemm --m 5 --n 1001 --k 900 --b-major n --early-weights on",
    };
    return all;
}

TEST_F(EarlyWeightsTest, ALateAIsWaitedFor) {
    for (const std::string& words : early_products()) {
        SCOPED_TRACE(words);
        const GemmPlan plan = plan_of(words);
        ASSERT_TRUE(plan.config.early_weights && plan.config.programmatic_launch);
        EXPECT_EQ(result_of(compile(plan)), result_of(plain(plan)));
    }
}

// Each product's A is the C of the one before; more of them than may be under way at once.
TEST_F(EarlyWeightsTest, AChainHasTheBitsOfPlainLaunches) {
    for (const char* words : {"--m 16 --n 2048 --k 2048 --early-weights on",
                              "--kernel sm80_few_gemm --m 16 --n 2048 --k 2048 --early-weights on"}) {
        SCOPED_TRACE(words);
        const GemmPlan plan = plan_of(words);
        constexpr int products = 24, weights = 6;
        const std::size_t count = 16 * 2048;
        std::vector<std::uint16_t> first(count), b(std::size_t(weights) * 2048 * 2048);
        for (std::size_t i = 0; i < first.size(); ++i) first[i] = small_whole_number(i, 3);
        // One element of each row: results are a permutation's, and never leave bf16.
        for (std::size_t w = 0; w < weights; ++w)
            for (std::size_t row = 0; row < 2048; ++row)
                b[(w * 2048 + row) * 2048 + (row * 31 + 7 * w) % 2048] = 0x3f80;
        const DeviceBuffer db(b.size() * 2);
        copy_to_device(db.address(), b.data(), db.bytes());
        const auto run = [&](const Kernel& kernel) {
            const DeviceBuffer x(count * 2 * (products + 1)),
                workspace(std::max<std::size_t>(kernel.workspace_bytes(), 256));
            StreamOwner stream;
            fill_bytes(workspace.address(), 0, workspace.bytes(), stream);
            fill_bytes(x.address(), 0xff, x.bytes(), stream);
            stream.synchronize();
            copy_to_device(x.address(), first.data(), count * 2);
            kernel.load();
            begin_capture(stream);
            char* at = static_cast<char*>(x.data());
            for (int i = 0; i < products; ++i, at += count * 2)
                kernel.launch(stream, at,
                              static_cast<char*>(db.data()) + std::size_t(i % weights) * 2048 * 2048 * 2,
                              at + count * 2, workspace.data());
            const Graph graph = end_capture(stream);
            graph.launch(stream);
            graph.launch(stream);
            stream.synchronize();
            std::vector<std::uint16_t> last(count);
            copy_to_host(last.data(), x.address() + count * 2 * products, count * 2);
            return last;
        };
        EXPECT_EQ(run(compile(plan)), run(plain(plan)));
    }
}

// Who asks for A early multiplies what was there before: the test above must see it.
TEST_F(EarlyWeightsTest, AnAAskedForEarlyIsSeen) {
    for (const Mutant& mutant : {gemm_mutants::a_asked_for_early(), gemm_mutants::few_a_asked_for_early()}) {
        SCOPED_TRACE(mutant.name);
        const GemmPlan plan = plan_of(mutant.problem);
        ASSERT_TRUE(plan.config.early_weights);
        const std::vector<std::uint16_t> right = result_of(plain(plan));
        EXPECT_EQ(result_of(compile(plan)), right);
        EXPECT_NE(result_of(compile(plan, {.alter = alteration(mutant)})), right);
    }
}

}  // namespace
}  // namespace rooftile
