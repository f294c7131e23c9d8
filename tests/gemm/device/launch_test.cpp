// Driver wrappers, and Kernel::launch of each GEMM kernel, on a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "kernels/gemm/gemm_arguments.hpp"
#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/sm80_space.hpp"
#include "rooftile/gemm/sm90_family.hpp"
#include "rooftile/runtime/nvrtc.hpp"
#include "rooftile/machine/live.hpp"
#include "tests/device/device.hpp"

namespace rooftile {
namespace {

using LaunchTest = DeviceTest;

TEST_F(LaunchTest, BytesGoThereAndBack) {
    std::vector<std::uint32_t> there(1000), back(1000);
    for (std::size_t i = 0; i < there.size(); ++i) there[i] = std::uint32_t(i * 2654435761u);
    DeviceBuffer buffer(4000), other(4000);
    StreamOwner stream;
    copy_to_device(buffer.address(), there.data(), 4000);
    copy_on_device(other.address(), buffer.address(), 4000, stream);
    fill_words(buffer.address(), 0xdeadbeef, 1000, stream);
    stream.synchronize();
    copy_to_host(back.data(), other.address(), 4000);
    EXPECT_EQ(back, there);
    copy_to_host(back.data(), buffer.address(), 4000);
    EXPECT_EQ(std::count(back.begin(), back.end(), 0xdeadbeef), 1000);
}

constexpr const char* small_kernels = R"(
    extern "C" __global__ void add(int* p, int n, int what) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) p[i] += what;
    })";

Module small_module() {
    Source source;
    source.name = "small";
    source.text = small_kernels;
    source.name_expressions = {"add"};
    Compiled compiled = compile_source(source);
    return Module(compiled.cubin);
}

TEST_F(LaunchTest, AKernelRunsEventsTimeItAndAGraphRepeatsIt) {
    Module module = small_module();
    Function add = module.function("add");
    EXPECT_GT(add.attributes().registers, 0);
    EXPECT_EQ(add.attributes().local_bytes, 0);
    EXPECT_GT(add.ctas_per_sm(256, 0), 0);

    const int n = 1000;
    DeviceBuffer buffer(4 * n);
    StreamOwner stream;
    fill_bytes(buffer.address(), 0, 4 * n, stream);
    Launch configuration{.grid_x = 4, .block_x = 256, .stream = stream};
    Event start, stop;
    start.record(stream);
    launch(add, configuration, buffer.address(), n, 3);
    stop.record(stream);
    stop.synchronize();
    EXPECT_TRUE(stop.finished());
    EXPECT_GT(elapsed_us(start, stop), 0);

    begin_capture(stream);
    launch(add, configuration, buffer.address(), n, 5);
    launch(add, configuration, buffer.address(), n, 7);
    Graph graph = end_capture(stream);
    EXPECT_EQ(graph.nodes(), 2u);
    graph.launch(stream);
    graph.launch(stream);
    stream.synchronize();
    std::vector<int> result(n);
    copy_to_host(result.data(), buffer.address(), 4 * n);
    EXPECT_EQ(std::count(result.begin(), result.end(), 3 + 2 * (5 + 7)), n);
}

TEST_F(LaunchTest, PolicyWordsAreWhatTheGpuMakes) {
    Source source;
    source.name = "policies";
    source.text = R"(
        extern "C" __global__ void policies(unsigned long long* to) {
            asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(to[0]));
            asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(to[1]));
            asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(to[2]));
        })";
    source.name_expressions = {"policies"};
    Module module(compile_source(source).cubin);
    DeviceBuffer buffer(24);
    launch(module.function("policies"), Launch{}, buffer.address());
    synchronize();
    unsigned long long words[3];
    copy_to_host(words, buffer.address(), sizeof(words));
    EXPECT_EQ(words[0], cache_policy_word(CachePolicy::normal));
    EXPECT_EQ(words[1], cache_policy_word(CachePolicy::evict_first));
    EXPECT_EQ(words[2], cache_policy_word(CachePolicy::evict_last));
}

TEST_F(LaunchTest, AnImpossibleLaunchIsAnErrorThatNamesTheKernel) {
    Module module = small_module();
    Function add = module.function("add");
    DeviceBuffer buffer(4);
    try {
        launch(add, Launch{.block_x = 2048}, buffer.address(), 1, 1);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::gpu_failed);
        EXPECT_NE(std::string(error.what()).find("add"), std::string::npos);
    }
    EXPECT_THROW(add.allow_shared(1 << 30), Error);
    EXPECT_THROW(module.function("no_such_kernel"), Error);
}

std::uint16_t bf16(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, 4);
    return std::uint16_t(bits >> 16);  // exact for the small integers used here
}

/// A and B of small integers, both k-major, and what C must be, bit for bit: integers to 2^8 are exact
/// in bf16, and 16 products of -2 ... 2 by -2 ... 2 stay within 64.
struct SmallGemm {
    GemmShape shape;
    std::vector<std::uint16_t> a, b, c;
    SmallGemm(GemmShape s, int seed) : shape(s) {
        auto value = [&](std::int64_t i, int salt) {
            return float(int((i * 7919 + salt * 104729 + seed * 1299709) % 31) % 5 - 2);
        };
        a.resize(std::size_t(s.m * s.lda));
        b.resize(std::size_t(s.n * s.ldb));
        c.resize(std::size_t(s.m * s.ldc));
        for (std::size_t i = 0; i < a.size(); ++i) a[i] = bf16(value(std::int64_t(i), 1));
        for (std::size_t i = 0; i < b.size(); ++i) b[i] = bf16(value(std::int64_t(i), 2));
        for (std::int64_t i = 0; i < s.m; ++i)
            for (std::int64_t j = 0; j < s.n; ++j) {
                float sum = 0;
                for (std::int64_t k = 0; k < s.k; ++k)
                    sum += value(i * s.lda + k, 1) * value(j * s.ldb + k, 2);
                c[std::size_t(i * s.ldc + j)] = bf16(sum);
            }
    }
    /// How many elements each operand begins beyond an aligned address.
    struct Shift {
        std::size_t a = 0, b = 0, c = 0;
    };
    /// Elements of C that differ, after `start(a, b, c)` has put the launch into `stream`.
    template <class Start>
    std::int64_t wrong(Stream stream, Start start, Shift shift = {}) const {
        const auto buffer = [](const auto& elements, std::size_t by) {
            return DeviceBuffer((elements.size() + by) * 2);
        };
        DeviceBuffer da = buffer(a, shift.a), db = buffer(b, shift.b), dc = buffer(c, shift.c);
        copy_to_device(da.address() + 2 * shift.a, a.data(), a.size() * 2);
        copy_to_device(db.address() + 2 * shift.b, b.data(), b.size() * 2);
        fill_bytes(dc.address(), 0xff, dc.bytes(), stream);
        const auto begin = [](const DeviceBuffer& of, std::size_t by) {
            return static_cast<void*>(static_cast<std::uint16_t*>(of.data()) + by);
        };
        start(begin(da, shift.a), begin(db, shift.b), begin(dc, shift.c));
        synchronize(stream);
        std::vector<std::uint16_t> got(c.size());
        copy_to_host(got.data(), dc.address() + 2 * shift.c, c.size() * 2);
        std::int64_t count = 0;
        for (std::int64_t i = 0; i < shape.m; ++i)
            for (std::int64_t j = 0; j < shape.ldc; ++j) {
                // Beyond column n nothing may be written.
                const std::uint16_t want = j < shape.n ? c[std::size_t(i * shape.ldc + j)] : 0xffff;
                const std::uint16_t have = got[std::size_t(i * shape.ldc + j)];
                // +0 and -0 are equal sums.
                count += have != want && !((have | want) == 0x8000);
            }
        return count;
    }
};

/// Each kernel that this GPU runs and that is built.
class KernelLaunchTest : public DeviceTest, public testing::WithParamInterface<const char*> {
  protected:
    static GemmRequest request() {
        GemmRequest request;
        request.kernel = find_gemm_kernel(GetParam());
        request.buildable_only = true;
        return request;
    }
    static Kernel kernel_for(const GemmProblem& problem, const GemmRequest& request) {
        const auto derived = derive(live_machine().machine, problem, request);
        return compile(std::get<Plans>(derived).plans.at(0));
    }
    static Kernel kernel_for(std::int64_t m, std::int64_t n, std::int64_t k) {
        return kernel_for(gemm_problem(m, n, k), request());
    }
    static bool stores_by_element(const Kernel& kernel) {
        const GemmPlan& plan = kernel.plan();
        return std::string_view(GetParam()) == "sm90_gemm" ? !kernel_config(plan).tma_store
                                                           : !sm80_config(plan.problem, plan.config).vector_store;
    }
};

INSTANTIATE_TEST_SUITE_P(Kernels, KernelLaunchTest, testing::Values("sm90_gemm", "sm80_gemm"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_P(KernelLaunchTest, OneKernelIsRightForItsShapeAndForOthers) {
    Kernel kernel = kernel_for(512, 384, 16);
    StreamOwner stream;
    for (GemmShape shape : {GemmShape{512, 384, 16, 16, 16, 384}, GemmShape{1, 8, 8, 8, 8, 8},
                            GemmShape{129, 200, 16, 24, 16, 208}, GemmShape{700, 1000, 8, 8, 16, 1000}}) {
        SmallGemm gemm(shape, 1);
        EXPECT_EQ(gemm.wrong(stream, [&](auto a, auto b, auto c) { kernel.launch(stream, a, b, c, shape); }),
                  0)
            << shape.m << 'x' << shape.n << 'x' << shape.k;
    }
}

TEST_P(KernelLaunchTest, PaddingBeyondAnOddNIsLeftAlone) {
    GemmProblem problem = gemm_problem(130, 77, 16);
    problem.ldc = 80;
    const Kernel kernel = kernel_for(problem, request());
    StreamOwner stream;
    SmallGemm gemm({130, 77, 16, 16, 16, 80}, 2);
    EXPECT_EQ(gemm.wrong(stream, [&](auto a, auto b, auto c) { kernel.launch(stream, a, b, c); }), 0);
}

TEST_P(KernelLaunchTest, AnOddLeadingDimensionOfCIsStoredByElement) {
    Kernel kernel = kernel_for(130, 77, 16);
    EXPECT_TRUE(stores_by_element(kernel));
    StreamOwner stream;
    SmallGemm gemm({130, 77, 16, 16, 16, 77}, 2);
    EXPECT_EQ(gemm.wrong(stream, [&](auto a, auto b, auto c) { kernel.launch(stream, a, b, c); }), 0);
}

TEST_P(KernelLaunchTest, ItCanBeCapturedAndReplayed) {
    Kernel kernel = kernel_for(256, 256, 16);
    kernel.load();
    StreamOwner stream;
    SmallGemm gemm({256, 256, 16, 16, 16, 256}, 3);
    EXPECT_EQ(gemm.wrong(stream,
                         [&](auto a, auto b, auto c) {
                             begin_capture(stream);
                             kernel.launch(stream, a, b, c);
                             Graph graph = end_capture(stream);
                             EXPECT_EQ(graph.nodes(), 1u);
                             graph.launch(stream);
                             synchronize(stream);  // before `graph` goes
                         }),
              0);
}

TEST_P(KernelLaunchTest, AScheduleFromATableIsReadyOnceItsShapeIsLoaded) {
    for (Order order : {Order::hilbert, Order::morton}) {
        GemmRequest fixed = request();
        fixed.order = order;
        fixed.tile_m = fixed.tile_n = 64;
        fixed.cluster_m = fixed.cluster_n = 1;
        const Kernel kernel = kernel_for(gemm_problem(640, 1000, 16), fixed);
        const GemmShape other{1000, 328, 16, 16, 16, 328};
        kernel.load();
        kernel.load(other);
        StreamOwner stream;
        for (const GemmShape& shape : {shape_of(kernel.plan().problem), other}) {
            SmallGemm gemm(shape, 4);
            const auto captured = [&](auto a, auto b, auto c) {
                begin_capture(stream);
                kernel.launch(stream, a, b, c, shape);
                Graph graph = end_capture(stream);
                graph.launch(stream);
                synchronize(stream);
            };
            EXPECT_EQ(gemm.wrong(stream, captured), 0) << name_of(order) << ' ' << shape.m;
        }
    }
}

// Its code and its table are gone with it, unless the graph keeps them; other code and memory then takes their place.
TEST_P(KernelLaunchTest, AGraphKeepsTheKernelThatItLaunches) {
    for (const std::optional<Order>& order : {std::optional<Order>(), std::optional(Order::hilbert)}) {
        GemmRequest fixed = request();
        if (order) fixed.order = *order, fixed.tile_m = fixed.tile_n = 64, fixed.cluster_m = fixed.cluster_n = 1;
        std::optional<Kernel> kernel = kernel_for(gemm_problem(640, 1000, 16), fixed);
        kernel->load();
        StreamOwner stream;
        SmallGemm gemm(shape_of(kernel->plan().problem), 6);
        EXPECT_EQ(gemm.wrong(stream,
                             [&](auto a, auto b, auto c) {
                                 begin_capture(stream);
                                 for (int i = 0; i < 3; ++i) kernel->launch(stream, a, b, c);
                                 const Graph graph = end_capture(stream);
                                 EXPECT_EQ(graph.nodes(), 3u);
                                 kernel.reset();
                                 std::vector<Module> others;
                                 std::vector<DeviceBuffer> memory;
                                 for (int i = 0; i < 8; ++i) {
                                     others.push_back(small_module());
                                     others.back().function("add");
                                     fill_bytes(memory.emplace_back(1 << 16).address(), 0xff, 1 << 16, stream);
                                 }
                                 graph.launch(stream);
                                 synchronize(stream);
                             }),
                  0);
    }
    destroy_what_graphs_let_go();
}

TEST_P(KernelLaunchTest, ThreadsShareOneKernel) {
    Kernel kernel = kernel_for(300, 264, 16);  // loaded by whichever thread comes first
    std::vector<std::int64_t> wrong(4, -1);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            try {
                Context context(0);
                StreamOwner stream;
                SmallGemm gemm({300, 264, 16, 16, 16, 264}, 10 + t);
                wrong[std::size_t(t)] = gemm.wrong(stream, [&](auto a, auto b, auto c) {
                    for (int i = 0; i < 20; ++i) kernel.launch(stream, a, b, c);
                });
            } catch (const std::exception& error) { ADD_FAILURE() << error.what(); }
        });
    for (auto& thread : threads) thread.join();
    for (std::int64_t count : wrong) EXPECT_EQ(count, 0);
}

TEST_P(KernelLaunchTest, AMisalignedPointerIsRefusedBeforeTheLaunch) {
    Kernel kernel = kernel_for(256, 256, 16);
    DeviceBuffer buffer(1 << 20);
    char* base = static_cast<char*>(buffer.data());
    EXPECT_THROW(kernel.launch(nullptr, base + 2, base, base), RequestError);
    EXPECT_THROW(kernel.launch(nullptr, base, nullptr, base), RequestError);
    EXPECT_NO_THROW(synchronize());
}

// Rows of 36 B are copied 4 B at a time, so A and B may begin at any multiple of 4 B; C, stored by element, at any.
TEST_F(LaunchTest, Sm80TakesPointersAlignedToItsCopies) {
    GemmRequest request;
    request.kernel = find_gemm_kernel("sm80_gemm");
    const auto derived = derive(live_machine().machine, gemm_problem(130, 77, 18), request);
    const Kernel kernel = compile(std::get<Plans>(derived).plans.at(0));
    const Sm80GemmConfig config = sm80_config(kernel.plan().problem, kernel.plan().config);
    ASSERT_EQ(config.a_copy_bytes, 4);
    ASSERT_EQ(config.b_copy_bytes, 4);
    ASSERT_FALSE(config.vector_store);
    StreamOwner stream;
    const SmallGemm gemm({130, 77, 18, 18, 18, 77}, 5);
    const auto launched = [&](auto a, auto b, auto c) { kernel.launch(stream, a, b, c); };
    for (const SmallGemm::Shift shift : {SmallGemm::Shift{2, 4, 1}, {6, 2, 3}, {0, 6, 7}})
        EXPECT_EQ(gemm.wrong(stream, launched, shift), 0) << shift.a << ' ' << shift.b << ' ' << shift.c;
    for (const SmallGemm::Shift shift : {SmallGemm::Shift{1, 0, 0}, {0, 3, 0}})
        EXPECT_THROW(gemm.wrong(stream, launched, shift), RequestError) << shift.a << ' ' << shift.b;
}

// Lines of 15 and 17 elements begin at every even address; both launches are captured, with the workspace they share.
TEST_F(LaunchTest, PackedOperandsTakeAnyAddressAndAGraph) {
    if (!live_machine().machine.has("wgmma")) GTEST_SKIP() << "skipped: no wgmma";
    GemmProblem problem = gemm_problem(130, 72, 15);
    problem.ldb = 17;
    GemmRequest request;
    request.kernel = find_gemm_kernel("sm90_gemm");
    const Kernel kernel = compile(std::get<Plans>(derive(live_machine().machine, problem, request)).plans.at(0));
    // A's 130 lines and B's 72, each of 64 elements.
    ASSERT_EQ(kernel.workspace_bytes(), std::size_t((130 + 72) * 64 * 2));
    kernel.load();
    DeviceBuffer workspace(kernel.workspace_bytes());
    fill_bytes(workspace.address(), 0xff, workspace.bytes(), nullptr);
    synchronize();
    StreamOwner stream;
    const SmallGemm gemm({130, 72, 15, 15, 17, 72}, 6);
    const auto launched = [&](auto a, auto b, auto c) { kernel.launch(stream, a, b, c, workspace.data()); };
    for (std::size_t a = 0; a < 8; ++a)
        EXPECT_EQ(gemm.wrong(stream, launched, {a, (3 * a + 1) % 8, 0}), 0) << a;
    const auto captured = [&](auto a, auto b, auto c) {
        begin_capture(stream);
        launched(a, b, c);
        Graph graph = end_capture(stream);
        EXPECT_EQ(graph.nodes(), 2u);
        graph.launch(stream);
        graph.launch(stream);
        synchronize(stream);
    };
    EXPECT_EQ(gemm.wrong(stream, captured, {1, 3, 0}), 0);
    EXPECT_THROW(gemm.wrong(stream, [&](auto a, auto b, auto c) { kernel.launch(stream, a, b, c); }), RequestError);
    const auto amid_a_line = [&](auto a, auto b, auto c) {
        kernel.launch(stream, a, b, c, static_cast<char*>(workspace.data()) + 16);
    };
    EXPECT_THROW(gemm.wrong(stream, amid_a_line), RequestError);
}

}  // namespace
}  // namespace rooftile
