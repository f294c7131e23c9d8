// Fused kernels on a GPU: every function and form against fp64 on odd shapes, the edges of IEEE, dropout's
// mask, misaligned tensors, every launch that the plan offers; a few hundred random expressions.
#include "rooftile/measure/fuse.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <optional>

#include "rooftile/kernel/fuse_kernel.hpp"
#include "rooftile/machine/live.hpp"
#include "rooftile/measure/fuse_data.hpp"
#include "rooftile/plan/fuse_staging.hpp"
#include "rooftile/problem/evaluate.hpp"
#include "rooftile/problem/expression.hpp"
#include "tests/device/device.hpp"
#include "tests/random_expression.hpp"

namespace rooftile {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

class FuseTest : public DeviceTest {
  protected:
    const Machine& machine() {
        static const Machine live = live_machine(0).machine;
        return live;
    }

    static FuseProblem made(std::string_view text, const std::vector<std::string>& tensors) {
        std::vector<TensorDeclaration> declared;
        for (const std::string& t : tensors) declared.push_back(tensor_declaration(t));
        return expression_graph(text, declared);
    }

    /// Runs one plan on given values; tensors begin `shift` bytes behind a multiple of 256.
    static std::vector<std::vector<double>> run(const FusePlan& plan,
                                                const std::vector<std::vector<double>>& inputs,
                                                std::int64_t shift = 0) {
        const FuseProblem& p = plan.problem;
        const FuseKernel kernel = compile(plan);
        std::vector<DeviceBuffer> buffers;
        std::vector<const void*> in;
        std::vector<void*> out;
        for (size_t i = 0; i < inputs.size(); ++i) {
            const auto bytes = size_t(bytes_of(p.nodes[size_t(p.inputs[i])]));
            buffers.emplace_back(bytes + 512);
            in.push_back(reinterpret_cast<const void*>(buffers.back().address() + DevicePointer(shift)));
        }
        for (const GraphOutput& o : p.outputs) {
            buffers.emplace_back(size_t(bytes_of(p.nodes[size_t(o.node)])) + 512);
            out.push_back(reinterpret_cast<void*>(buffers.back().address() + DevicePointer(shift)));
        }
        DeviceBuffer workspace(std::max<size_t>(16, kernel.workspace_bytes()));
        fill_bytes(workspace.address(), 0, workspace.bytes(), nullptr);
        // The second launch finds the workspace as the first left it, which saw the same values in another order.
        std::vector<decltype(elements_of_values({}, Element::fp32))> elements;
        for (size_t i = 0; i < inputs.size(); ++i)
            elements.push_back(elements_of_values(inputs[i], p.nodes[size_t(p.inputs[i])].element));
        for (const bool backwards : {true, false}) {
            for (size_t i = 0; i < inputs.size(); ++i) {
                auto bytes = elements[i];
                const auto size = size_t(bytes_of(p.nodes[size_t(p.inputs[i])].element));
                for (size_t at = 0; backwards && at < bytes.size(); at += size)
                    std::copy_n(elements[i].end() - std::ptrdiff_t(at + size), size,
                                bytes.begin() + std::ptrdiff_t(at));
                const auto at = reinterpret_cast<DevicePointer>(in[i]);
                if (!bytes.empty()) copy_to_device(at, bytes.data(), bytes.size());
            }
            for (size_t o = inputs.size(); o < buffers.size(); ++o)
                fill_bytes(buffers[o].address(), 0xff, buffers[o].bytes(), nullptr);
            kernel.launch(nullptr, in, out, workspace.data());
        }
        synchronize(Stream(nullptr));
        std::vector<std::vector<double>> results;
        for (size_t i = 0; i < out.size(); ++i) {
            const GraphNode& n = p.nodes[size_t(p.outputs[i].node)];
            std::vector<char> bytes(size_t(bytes_of(n)) + 16);
            copy_to_host(bytes.data(), reinterpret_cast<DevicePointer>(out[i]), bytes.size());
            results.push_back(values_of_elements(bytes.data(), elements_of(n.shape), n.element));
            const auto written = [](char byte) { return static_cast<unsigned char>(byte) != 0xff; };
            const auto behind = std::find_if(bytes.begin() + bytes_of(n), bytes.end(), written);
            EXPECT_TRUE(behind == bytes.end())
                << p.outputs[i].name << " has " << bytes_of(n) << " bytes; byte " << behind - bytes.begin()
                << " is written too, " << std::count_if(behind, bytes.end(), written) << " of "
                << bytes.end() - behind << " from there on\n"
                << kernel.text();
        }
        return results;
    }

    static std::vector<std::vector<double>> random_inputs(const FuseProblem& p, std::uint64_t seed) {
        std::vector<std::vector<double>> inputs;
        for (int i : p.inputs) {
            const GraphNode& n = p.nodes[size_t(i)];
            inputs.push_back(random_values(elements_of(n.shape), n.element, seed++));
        }
        return inputs;
    }

    static void expect_right(const FusePlan& plan, const std::vector<std::vector<double>>& inputs,
                             std::int64_t shift = 0) {
        expect_equal(plan, run(plan, inputs, shift), evaluate(plan.problem, inputs));
    }

    static void expect_equal(const FusePlan& plan, const std::vector<std::vector<double>>& got,
                             const std::vector<BoundedTensor>& expected) {
        int wrong = 0;
        for (size_t o = 0; o < got.size(); ++o) {
            const Element element = plan.problem.nodes[size_t(plan.problem.outputs[o].node)].element;
            for (size_t i = 0; i < got[o].size() && wrong < 3; ++i) {
                if (agrees(got[o][i], expected[o][i], element)) continue;
                ++wrong;
                ADD_FAILURE() << plan.problem.text << "\nplan " << plan.rank << " "
                              << name_of(plan.config.home) << " of " << plan.config.threads_per_row << " x "
                              << plan.config.cluster << ", width " << plan.config.width << ", element " << i
                              << ": got " << got[o][i] << ", expected " << expected[o][i].value << " within "
                              << expected[o][i].error;
            }
        }
    }

    /// Every plan of a problem, or the first `most`; how many of them satisfied `wanted`. What runs is said
    /// before it does: a kernel that does not end leaves its name.
    int check(std::string_view text, const std::vector<std::string>& tensors, int most = 4,
              FuseRequest request = {}, const std::function<bool(const FuseConfig&)>& wanted = {},
              int times = 1) {
        const FuseProblem p = made(text, tensors);
        request.top = most;
        const auto outcome = derive(machine(), p, request);
        const auto* plans = std::get_if<FusePlans>(&outcome);
        EXPECT_TRUE(plans) << text << " of " << tensors[0] << ": "
                           << std::get<FuseInfeasible>(outcome).message;
        if (!plans) return 0;
        const auto inputs = random_inputs(p, 11);
        const auto expected = evaluate(p, inputs);
        int found = 0;
        for (const FusePlan& plan : plans->plans) {
            const FuseConfig& c = plan.config;
            if (c.home == FuseHome::ring || all_rows_at_once(c))
                std::cerr << fmt::format(
                    "  {} of {}: {} CTAs a row meet in a {}, {} x {} vectors, {} slots{}\n", text, tensors[0],
                    c.cluster, meeting_of(c), c.threads_per_row, c.items, c.stages,
                    c.early_weights ? ", weights kept" : "");
            for (int i = 0; i < times; ++i) expect_equal(plan, run(plan, inputs), expected);
            found += wanted && wanted(c);
        }
        return found;
    }

    /// All functions on rows of one shape, through rings.
    void check_rings(const std::string& shape) {
        for (const char* f :
             {"softmax(x)", "log_softmax(x)", "layernorm(x)", "rmsnorm(x)", "x - mean(x)",
              "softmax(layernorm(x) * 2)", "sum(x)", "argmax(x)", "where(x > max(x) - 1, x, 0.0)"})
            check(std::string("y = ") + f, {"x:bf16[" + shape + "]"}, 1, {.home = FuseHome::ring});
        for (const char* f : {"softmax(x)", "layernorm(x)", "sum(x)"})
            check(std::string("y = ") + f, {"x:fp32[" + shape + "]"}, 1, {.home = FuseHome::ring});
    }

    /// `cluster` CTAs that share rows and meet in device memory.
    void check_meetings(int cluster, const std::vector<std::string>& rows,
                        const std::vector<std::string>& functions) {
        for (const std::string& x : rows)
            for (const std::string& f : functions)
                EXPECT_EQ(check("y = " + f, {x}, 1,
                                {.cluster = cluster, .home = FuseHome::ring, .grid_meeting = true},
                                meets_in_memory),
                          1);
    }

    /// The first `most` launches in which all rows are under way at once; how many there were.
    int check_at_once(const std::string& text, const std::vector<std::string>& tensors, int most,
                      int times = 1, std::optional<int> cluster = {}) {
        return check(text, tensors, most, {.cluster = cluster, .home = FuseHome::twice, .grid_meeting = true},
                     all_rows_at_once, times);
    }
};

TEST_F(FuseTest, EveryFunctionInEveryType) {
    for (const char* f : {"exp(x)",         "log(abs(x))",
                          "tanh(x)",        "erf(x)",
                          "sqrt(abs(x))",   "rsqrt(abs(x) + 0.01)",
                          "sigmoid(x)",     "silu(x)",
                          "relu(x)",        "gelu(x)",
                          "gelu_tanh(x)",   "-x",
                          "abs(x)",         "x**2",
                          "x**-3",          "x**0.5",
                          "abs(x)**1.7",    "1/x",
                          "x/(x*x+1)",      "maximum(x, 0.5)",
                          "minimum(x, -x)", "where(x > 0, x, exp(x) - 1)",
                          "(x > 0.5) * x",  "bf16(x) * 2",
                          "fp16(x*3) + x",  "fp32(x) - 1"})
        for (const char* type : {"fp32", "bf16", "fp16"})
            check(std::string("y = ") + f, {fmt::format("x:{}[3,1001]", type)}, 1);
}

// Two vectors of a thread in two rows, and in one where rows are odd in number or shorter than a warp's vectors: rows of one
// vector, of 32 and 33, of none that a CTA's pieces end with; a last piece that is not full.
TEST_F(FuseTest, VectorsBelowOneAnother) {
    for (const char* shape :
         {"2,8", "6,248", "7,264", "2,256", "128,264", "34,1000", "4,131072", "1000,2056"})
        for (const char* f : {"gelu(x + b)", "x * b - dropout(x, 0.3, 5)", "where(x > b, x, b) * s"}) {
            const std::string of = shape, columns = of.substr(of.find(',') + 1),
                              rows = of.substr(0, of.find(','));
            std::vector<std::string> tensors = {"x:bf16[" + of + "]", "b:bf16[" + columns + "]"};
            if (std::string(f).ends_with("* s")) tensors.push_back("s:fp32[" + rows + ",1]");
            for (const int threads : {128, 512})
                check(std::string("y = ") + f, tensors, 1, {.items = 2, .threads = threads});
        }
    check("y = x + b * r", {"x:bf16[6,4,264]", "b:bf16[264]", "r:bf16[6,1,264]"}, 2, {.items = 2});
    check("y = x + b", {"x:fp32[6,132]", "b:fp32[132]"}, 2, {.items = 2});
    check("y = x + b", {"x:bf16[6,37]", "b:bf16[37]"}, 2, {.items = 2});
}

TEST_F(FuseTest, RowOperationsOnAnyShape) {
    for (const char* f : {"softmax(x)", "log_softmax(x)", "layernorm(x)", "rmsnorm(x)", "sum(x)", "mean(x)",
                          "max(x)", "argmax(x)", "logsumexp(x)", "x - mean(x)", "softmax(layernorm(x) * 2)"})
        for (const char* shape :
             {"1,1", "1,7", "5,1", "3,33", "7,256", "130,1000", "9,1009", "2,4096", "3,20000", "2,70000"})
            for (const char* type : {"bf16", "fp32"})
                check(std::string("y = ") + f, {fmt::format("x:{}[{}]", type, shape)}, 2);
}

TEST_F(FuseTest, EveryLaunchOfEveryHomeIsRight) {
    for (const char* shape : {"300,512", "40,8192", "5,65536"})
        for (FuseHome home : {FuseHome::registers, FuseHome::shared, FuseHome::twice, FuseHome::ring}) {
            if (home == FuseHome::ring && std::string_view(shape) != "5,65536") continue;  // too short
            check("y = gelu(dropout(layernorm(x, g, b) + r, 0.1, 7, 3))",
                  {fmt::format("x:bf16[{}]", shape), fmt::format("r:bf16[{}]", shape),
                   fmt::format("g:bf16[{}]", std::string(shape).substr(std::string(shape).find(',') + 1)),
                   fmt::format("b:bf16[{}]", std::string(shape).substr(std::string(shape).find(',') + 1))},
                  64, {.home = home});
        }
}

// Rows of whole chunks and of others, more rows than clusters, the shortest last part of a cluster.
TEST_F(FuseTest, RingsOfManyRows) { check_rings("140,16392"); }
TEST_F(FuseTest, RingsOfWholeChunks) { check_rings("5,65536"); }
TEST_F(FuseTest, RingsThatEndShort) { check_rings("3,100000"); }
TEST_F(FuseTest, RingsOfSeveralCtas) { check_rings("2,262144"); }

// No chunk that is short, then one of one vector: every cluster and chunk that the plan offers.
TEST_F(FuseTest, RingsOfEveryChunk) {
    check("y = softmax(x)", {"x:bf16[3,65536]"}, 64, {.home = FuseHome::ring});
}
TEST_F(FuseTest, RingsOfEveryChunkThatEndShort) {
    check("y = softmax(x)", {"x:bf16[3,65544]"}, 64, {.home = FuseHome::ring});
}

/// A slot that is given back before it is read goes wrong once in many launches.
TEST_F(FuseTest, RingsGiveSlotsBackInTime) {
    check("y = x * 2 - max(z + c); s = sum(x)", {"x:bf16[150,20000]", "z:fp16[150,20000]", "c:fp32[150,1]"},
          4, {.home = FuseHome::ring}, {}, 8);
}

// Weights that stay in shared memory: more rows than clusters, parts and chunks that end short, types of
// other widths.
constexpr auto keeps_weights = [](const FuseConfig& c) { return c.early_weights; };

TEST_F(FuseTest, RingsThatKeepWeights) {
    EXPECT_GE(check("y = layernorm(x, g, b)", {"x:bf16[140,65536]", "g:bf16[65536]", "b:fp32[65536]"}, 6,
                    {.home = FuseHome::ring}, keeps_weights),
              1);
}
TEST_F(FuseTest, RingsThatKeepWeightsAndEndShort) {
    EXPECT_GE(check("y = layernorm(x, g, b)", {"x:bf16[140,70008]", "g:bf16[70008]", "b:fp32[70008]"}, 6,
                    {.home = FuseHome::ring}, keeps_weights),
              1);
}
TEST_F(FuseTest, RingsOfOneCtaThatKeepWeights) {
    EXPECT_GE(check("y = layernorm(x, g, b)", {"x:bf16[530,16392]", "g:bf16[16392]", "b:fp32[16392]"}, 6,
                    {.home = FuseHome::ring}, keeps_weights),
              1);
}
TEST_F(FuseTest, RingsThatKeepWeightsOfOtherTypes) {
    EXPECT_GE(check("y = rmsnorm(x, g)", {"x:fp32[140,40000]", "g:fp32[40000]"}, 6, {.home = FuseHome::ring},
                    keeps_weights),
              1);
}
TEST_F(FuseTest, RingsThatReadKeptWeightsTwice) {
    EXPECT_GE(check("y = softmax(x * g) + b", {"x:bf16[270,40000]", "g:bf16[40000]", "b:bf16[40000]"}, 6,
                    {.home = FuseHome::ring}, keeps_weights),
              1);
}

// Tensors that only the last walk reads, a chunk ahead over the ends of rows: every launch; whole chunks,
// chunks that end short, a last chunk of one vector; one row a cluster and many; one and several CTAs an SM,
// CTAs of one row; with weights kept and without; flags and floats beside bf16.
class FuseAheadTest : public FuseTest, public testing::WithParamInterface<std::string> {};
TEST_P(FuseAheadTest, RingsReadLateTensorsAhead) {
    const std::string shape = GetParam(), row = shape.substr(shape.find(',') + 1);
    int kept = 0, alone = 0, one_row = 0;
    check("y = gelu(dropout(layernorm(x, g, b) + r, 0.1, 7, 3))",
          {"x:bf16[" + shape + "]", "r:bf16[" + shape + "]", "g:bf16[" + row + "]", "b:bf16[" + row + "]"},
          64, {.home = FuseHome::ring}, [&](const FuseConfig& c) {
              kept += c.early_weights;
              alone += c.ctas_per_sm == 1;
              one_row += !c.persistent;
              return true;
          });
    EXPECT_GE(alone, 1);
    EXPECT_GE(one_row, 1);
    if (shape.starts_with("300")) { EXPECT_GE(kept, 1); }
}
INSTANTIATE_TEST_SUITE_P(Shapes, FuseAheadTest,
                         testing::Values<std::string>("5,65536", "300,65536", "3,65544", "300,32776",
                                                      "270,16392", "2,262152"));
TEST_F(FuseTest, RingsReadLateTensorsOfOtherTypes) {
    for (const char* shape : {"5,65536", "270,20000"})
        check("y = where(m, x - mean(x), r) * s + z",
              {fmt::format("x:bf16[{}]", shape), fmt::format("m:bool[{}]", shape),
               fmt::format("r:fp32[{}]", shape), "s:fp32[]", fmt::format("z:fp16[{}]", shape)},
              8, {.home = FuseHome::ring});
    // Rows that share what is late by a band, and a last walk that reads nothing of the slots.
    check("y = softmax(x) + z", {"x:bf16[6,4,20000]", "z:bf16[6,1,20000]"}, 8, {.home = FuseHome::ring});
    check("y = r + max(x)", {"x:bf16[140,40000]", "r:bf16[140,40000]"}, 8, {.home = FuseHome::ring});
}
TEST_F(FuseTest, RingsReadLateTensorsInTime) {
    check("y = gelu(layernorm(x) + r)", {"x:bf16[400,40000]", "r:bf16[400,40000]"}, 6,
          {.home = FuseHome::ring}, {}, 8);
}
// Few rows and many, parts that end short or are empty, weights that stay and late tensors; again and again, since a
// row handed over too early shows but now and then.
class FuseReducingTest : public FuseTest, public testing::WithParamInterface<std::tuple<int, std::string>> {};
TEST_P(FuseReducingTest, RingsWhoseThreadsReduceApart) {
    const auto apart = [](const FuseConfig& c) { return c.reducing > 0; };
    constexpr int most = 6, times = 3;
    const FuseRequest request = {.reducing = std::get<0>(GetParam()), .home = FuseHome::ring};
    const std::string shape = std::get<1>(GetParam()), row = shape.substr(shape.find(',') + 1);
    const std::string x = "x:bf16[" + shape + "]", r = "r:bf16[" + shape + "]";
    EXPECT_GE(check("y = softmax(x)", {x}, most, request, apart, times), 1);
    EXPECT_GE(check("y = x * 0.5 - mean(x); m = max(x)", {x}, most, request, apart, times), 1);
    EXPECT_GE(check("y = gelu(dropout(layernorm(x, g, b) + r, 0.1, 7, 3))",
                    {x, r, "g:bf16[" + row + "]", "b:bf16[" + row + "]"}, most, request, apart, times),
              1);
}
INSTANTIATE_TEST_SUITE_P(Threads, FuseReducingTest,
                         testing::Combine(testing::Values(128, 256),
                                          testing::Values<std::string>("1,65536", "300,65536", "300,32776",
                                                                       "400,40000", "140,65544")));

// As many rows as teams: nobody asks whether he has one, and lanes of a warp meet all at once. Also one row more.
TEST_F(FuseTest, ShortRowsInCtasOfOneWarpAndMore) {
    const auto all_forms = [&](const FuseRequest& request, int rows) {
        const int lanes = *request.threads_per_row;
        const std::string row = fmt::format("{}", lanes * 8 * 3 - 8);
        const std::string x = fmt::format("x:bf16[{},{}]", rows, row);
        const auto asked = [&](const FuseConfig& c) { return c.threads == request.threads; };
        const std::vector<std::string> weighed = {x, "g:bf16[" + row + "]", "b:bf16[" + row + "]"};
        EXPECT_GE(check("y = layernorm(x, g, b)", weighed, 2, request, asked), 1) << x;
        EXPECT_GE(check("y = softmax(x); m = max(x)", {x}, 1, request, asked), 1) << x;
        if (request.home == FuseHome::shared) return;
        EXPECT_GE(check("y = argmax(x); s = sum(x * x)", {x}, 1, request, asked), 1) << x;
    };
    for (const int lanes : {8, 16, 32})
        for (const int threads : {32, 64, 128, 256})
            for (const FuseHome home : {FuseHome::registers, FuseHome::shared, FuseHome::twice}) {
                if (home == FuseHome::shared && lanes < 32) continue;
                for (const int rows : {512, 513})
                    all_forms({.threads = threads, .threads_per_row = lanes, .home = home}, rows);
            }
}
TEST_F(FuseTest, RingsOfTwoCtasAnSm) {
    EXPECT_GE(check("y = gelu(layernorm(x, g, b) + r)",
                    {"x:bf16[1100,32768]", "r:bf16[1100,32768]", "g:bf16[32768]", "b:bf16[32768]"}, 3,
                    {.ctas_per_sm = 2, .home = FuseHome::ring},
                    [](const FuseConfig& c) { return c.ctas_per_sm == 2; }),
              1);
}

// Rows whose CTAs are no cluster: one row; more than the grid takes at once, the last round with fewer; parts
// that end short; one, two and three reductions.
TEST_F(FuseTest, EightCtasMeetInDeviceMemory) {
    check_meetings(8, {"x:bf16[1,524288]", "x:bf16[5,524296]"}, {"softmax(x)", "layernorm(x)", "argmax(x)"});
}
TEST_F(FuseTest, SixteenCtasMeetInDeviceMemory) {
    check_meetings(16, {"x:bf16[1,1048576]", "x:bf16[5,1048584]"},
                   {"softmax(x)", "layernorm(x)", "argmax(x)"});
}
TEST_F(FuseTest, ThirtyTwoCtasMeetInDeviceMemory) {
    check_meetings(32, {"x:bf16[1,1048576]", "x:bf16[5,1048584]"},
                   {"softmax(x)", "layernorm(x)", "argmax(x)"});
}
TEST_F(FuseTest, RowsOfSeveralRoundsMeetInDeviceMemory) {
    for (int cluster : {16, 32})
        check_meetings(cluster, {"x:fp32[17,262152]"}, {"softmax(layernorm(x) * 2)"});
}
TEST_F(FuseTest, MeetingsInDeviceMemoryWithWeights) {
    EXPECT_GE(check("y = layernorm(x, g, b)", {"x:bf16[17,524288]", "g:bf16[524288]", "b:bf16[524288]"}, 4,
                    {.home = FuseHome::ring, .grid_meeting = true}, meets_in_memory),
              1);
}

TEST_F(FuseTest, MeetingsInDeviceMemoryWithLateTensors) {
    for (const char* shape : {"17,524288", "9,524296"})
        EXPECT_GE(check("y = gelu(dropout(layernorm(x) + r, 0.1, 7, 3))",
                        {fmt::format("x:bf16[{}]", shape), fmt::format("r:bf16[{}]", shape)}, 6,
                        {.home = FuseHome::ring, .grid_meeting = true}, meets_in_memory),
                  1);
}

// Rows that are all under way at once: parts and turns that end short, vectors of one element, one to three walks of
// each kind of accumulator, several times, since what one launch leaves in the workspace the next one finds.
TEST_F(FuseTest, RowsAtOnceOfEveryAccumulator) {
    for (const char* x : {"x:bf16[16,262144]", "x:bf16[5,524296]", "x:fp16[33,131080]", "x:fp32[3,100001]"})
        for (const char* f : {"softmax(x)", "log_softmax(x)", "layernorm(x)", "rmsnorm(x)", "x - mean(x)",
                              "softmax(layernorm(x) * 2)", "where(x > max(x) - 1, x, 0.0)"})
            EXPECT_EQ(check_at_once(std::string("y = ") + f, {x}, 1, 3), 1) << f << " of " << x;
}
TEST_F(FuseTest, RowsAtOnceWithSeveralResults) {
    EXPECT_GE(check_at_once("y = softmax(x); a = argmax(x); l = logsumexp(x); m = mean(x)",
                            {"x:bf16[7,200008]"}, 4),
              1);
    EXPECT_GE(check_at_once("h = x + r; y = rmsnorm(h, g); s = sum(h)",
                            {"x:bf16[9,131072]", "r:bf16[9,131072]", "g:fp32[131072]"}, 4),
              1);
}
TEST_F(FuseTest, RowsAtOnceWhoseTensorsEnterLater) {
    for (const char* f :
         {"softmax(layernorm(x) + r)", "layernorm(layernorm(x) * r)", "softmax(x - mean(x) + r) * r"})
        for (const char* shape : {"16,262144", "9,131080"})
            EXPECT_GE(
                check_at_once(std::string("y = ") + f,
                              {fmt::format("x:bf16[{}]", shape), fmt::format("r:bf16[{}]", shape)}, 2, 2),
                1)
                << f << " of " << shape;
}
TEST_F(FuseTest, RowsAtOnceWithWeightsAndLateTensors) {
    for (const char* shape : {"16,262144", "9,131080", "2,1000008"}) {
        const std::string row = std::string(shape).substr(std::string(shape).find(',') + 1);
        EXPECT_GE(check_at_once("y = gelu(dropout(layernorm(x, g, b) + r, 0.1, 7, 3))",
                                {fmt::format("x:bf16[{}]", shape), fmt::format("r:bf16[{}]", shape),
                                 fmt::format("g:bf16[{}]", row), fmt::format("b:fp32[{}]", row)},
                                3),
                  3)
            << shape;
    }
    check_at_once(
        "y = where(m, x - mean(x), r) * s + z",
        {"x:bf16[5,131072]", "m:bool[5,131072]", "r:fp32[5,131072]", "s:fp32[]", "z:fp16[5,131072]"}, 3);
    check_at_once("y = softmax(x) + z", {"x:bf16[3,4,65536]", "z:bf16[3,1,65536]"}, 3);
}
TEST_F(FuseTest, RowsAtOnceOfEveryTeam) {
    for (int cluster : {2, 4, 8, 16, 32, 64})
        EXPECT_EQ(check_at_once("y = layernorm(x, g, b)",
                                {"x:bf16[6,262152]", "g:bf16[262152]", "b:bf16[262152]"}, 1, 1, cluster),
                  1)
            << cluster;
    check_at_once("y = softmax(x)", {"x:bf16[16,262144]"}, 64);
}
// More CTAs than fit do not begin.
TEST_F(FuseTest, RowsAtOnceAreRefusedWhereTheyDoNotFit) {
    const FuseProblem p = made("y = softmax(x)", {"x:bf16[4096,65536]"});
    const auto outcome = derive(machine(), p, {.threads_per_row = 512, .home = FuseHome::twice, .top = 1});
    FusePlan plan = std::get<FusePlans>(outcome).plans[0];
    plan.config.grid_meeting = true;
    plan.config.cluster = 2;
    ASSERT_TRUE(all_rows_at_once(plan.config));
    const FuseKernel kernel = compile(plan);
    EXPECT_THROW(kernel.load(), Error);
}

TEST_F(FuseTest, WholeReductions) {
    for (const char* shape : {"1", "7", "1000,1001", "3,5,7", "4096,4096"}) {
        check("s = sum_all(x)", {fmt::format("x:bf16[{}]", shape)}, 2);
        check("m = max_all(x * x); a = mean_all(x)", {fmt::format("x:fp32[{}]", shape)}, 2);
    }
    check("s = sum_all(x + b)", {"x:fp32[100,1000]", "b:fp32[1000]"}, 2);
}

TEST_F(FuseTest, BroadcastsOfEveryKind) {
    check("y = x + b", {"x:bf16[64,1000]", "b:bf16[1000]"});
    check("y = x + b", {"x:bf16[64,1009]", "b:bf16[1009]"});
    check("y = x * c", {"x:bf16[64,1000]", "c:fp32[64,1]"});
    check("y = x + z", {"x:fp32[2,3,5,8]", "z:fp32[2,1,5,8]"});
    check("y = x + z", {"x:fp32[4,3,8]", "z:fp32[3,1]"});
    check("y = a * b", {"a:bf16[4096,1]", "b:bf16[1,4096]"}, 1);
    check("y = softmax(x * s + m)", {"x:bf16[2,4,16,64]", "s:fp32[]", "m:bf16[2,1,16,64]"});
    check("y = where(m, x, -inf)", {"x:fp16[33,100]", "m:bool[33,100]"});
    check("h = x + r; y = rmsnorm(h, g); z = h; s = sum(h)",
          {"x:bf16[77,640]", "r:bf16[77,640]", "g:fp32[640]"});
}

TEST_F(FuseTest, MisalignedTensors) {
    const FuseProblem p = made("y = gelu(x)", {"x:bf16[999]"});
    const auto inputs = random_inputs(p, 3);
    for (int shift : {2, 4, 8, 16}) {
        const auto outcome = derive(machine(), p, {.alignment = shift, .top = 1});
        expect_right(std::get<FusePlans>(outcome).plans[0], inputs, shift);
    }
    const auto aligned = derive(machine(), p, {.top = 1});
    EXPECT_THROW(run(std::get<FusePlans>(aligned).plans[0], inputs, 2), RequestError);
}

TEST_F(FuseTest, EmptyTensorsAreLeftAlone) {
    check("y = gelu(x)", {"x:bf16[0]"}, 1);
    check("y = softmax(x)", {"x:bf16[0,64]"}, 1);
    check("y = softmax(x)", {"x:bf16[64,0]"}, 1);
    check("s = sum_all(x)", {"x:fp32[0,64]"}, 1);
}

TEST_F(FuseTest, InfinitiesAndLargeArguments) {
    const std::vector<double> edges = {10.1, 100,  1e4,      -10.1,     -100,         -1e4,
                                       0,    -0.0, infinity, -infinity, std::nan(""), 88.8};
    for (const char* f : {"gelu(x)", "gelu_tanh(x)", "tanh(x)", "exp(x)", "sigmoid(x)", "silu(x)", "relu(x)",
                          "erf(x)", "sqrt(x)", "log(x)", "1/x", "maximum(x, 0.0)", "x > 0"}) {
        const FuseProblem p = made(std::string("y = ") + f, {"x:fp32[12]"});
        expect_right(std::get<FusePlans>(derive(machine(), p, {.top = 1})).plans[0], {edges});
    }
    const std::vector<double> rows = {infinity,  1, 2, 3, -infinity,    -infinity, -infinity, -infinity,
                                      -infinity, 0, 1, 2, std::nan(""), 1,         2,         3};
    for (const char* f :
         {"softmax(x)", "log_softmax(x)", "logsumexp(x)", "max(x)", "argmax(x)", "sum(x)", "layernorm(x)"}) {
        const FuseProblem p = made(std::string("y = ") + f, {"x:fp32[4,4]"});
        const auto found = derive(machine(), p, {.top = 4});
        for (const FusePlan& plan : std::get<FusePlans>(found).plans) expect_right(plan, {rows});
        const FuseProblem narrow = made(std::string("y = ") + f, {"x:bf16[4,4]"});
        const auto others = derive(machine(), narrow, {.top = 4});
        for (const FusePlan& plan : std::get<FusePlans>(others).plans) expect_right(plan, {rows});
    }
}

// Of 16 bits softmax takes its powers from a base near the greatest value, and another one beyond 2^20: rows around
// that, up to the types' ends, of one sign and of both, rising along the row; with Inf, -Inf alone and NaN in some.
// In every home, short rows and such that several threads, warps and CTAs share.
TEST_F(FuseTest, SoftmaxOfHugeValues) {
    struct Rows {
        const char* type;
        double middle, spread;
    };
    constexpr std::int64_t rows = 8;
    for (const std::int64_t columns : {std::int64_t(64), std::int64_t(1000), std::int64_t(65544)})
        for (const Rows& r : {Rows{"bf16", 1048576, 65536}, Rows{"bf16", -1048576, 65536},
                              Rows{"bf16", 0, 4e6}, Rows{"bf16", 0, 1e30}, Rows{"bf16", -1e30, 1e29},
                              Rows{"bf16", 3e38, 5e36}, Rows{"bf16", 1000, 30}, Rows{"fp16", 64000, 250},
                              Rows{"fp16", -64000, 250}, Rows{"fp16", 0, 50}}) {
            const FuseProblem p = made("y = softmax(x)", {fmt::format("x:{}[{},{}]", r.type, rows, columns)});
            const Element element = p.nodes[size_t(p.inputs[0])].element;
            const std::int64_t count = rows * columns;
            std::vector<double> x = random_values(count, element, 5);
            for (std::int64_t i = 0; i < count; ++i) {
                const std::int64_t row = i / columns, column = i % columns;
                const double rise = row == 1 ? 2.0 * double(column) / double(columns) - 1 : 0;
                x[size_t(i)] = rounded_to(r.middle + r.spread * (x[size_t(i)] + rise), element);
            }
            x[size_t(2 * columns + columns / 2)] = infinity;
            x[size_t(3 * columns + columns - 1)] = std::nan("");
            for (std::int64_t column = 0; column < columns; ++column) {
                x[size_t(4 * columns + column)] = -infinity;
                if (column != columns / 3) x[size_t(5 * columns + column)] = -infinity;
            }
            x[size_t(6 * columns)] = infinity;
            x[size_t(6 * columns + 1)] = -infinity;
            for (FuseHome home : {FuseHome::registers, FuseHome::shared, FuseHome::twice, FuseHome::ring}) {
                const auto outcome = derive(machine(), p, {.home = home, .top = 2});
                if (const auto* plans = std::get_if<FusePlans>(&outcome))
                    for (const FusePlan& plan : plans->plans) expect_right(plan, {x});
            }
        }
}

// Rows of any mean, of one value, of huge ones, with an outlier, with what is not finite, side by side; lanes, a warp, a
// CTA, a cluster, a ring a row.
TEST_F(FuseTest, MomentsOfEveryKindOfRow) {
    constexpr double means[] = {0, 1, 3.5, 8, 100, 30000}, huge = 1e30;
    for (const char* type : {"bf16", "fp16"})
        for (const auto& [rows, columns] : {std::pair{36, 64},
                                            {35, 64},
                                            {48, 256},
                                            {24, 1024},
                                            {24, 4096},
                                            {24, 16384},
                                            {13, 65536},
                                            {13, 262144},
                                            {300, 65536}}) {
            const std::string shape = fmt::format("[{},{}]", rows, columns);
            const FuseProblem p = made("y = layernorm(x, g) + r", {fmt::format("x:{}{}", type, shape),
                                                                   fmt::format("g:{}[{}]", type, columns),
                                                                   fmt::format("r:{}{}", type, shape)});
            auto inputs = random_inputs(p, 5);
            const Element element = p.nodes[size_t(p.inputs[0])].element;
            for (int row = 0; row < rows; ++row)
                for (int column = 0; column < columns; ++column) {
                    double& x = inputs[0][size_t(row) * size_t(columns) + size_t(column)];
                    const int kind = row % 13;
                    if (kind < 6) x += means[kind];
                    else if (kind == 6) x = 3;
                    else if (kind == 7) x = 0;
                    else if (kind == 8 && column == columns / 3) x = 20000;
                    else if (kind == 9 && column == columns - 1) x = infinity;
                    else if (kind == 10 && column < columns / 2) x += 50;
                    else if (kind == 11) x = element == Element::bf16 ? huge : 60000;
                    else if (kind == 12) x = element == Element::bf16 ? 1e19 * (1 + x / 100) : 300 + x;
                    x = rounded_to(x, element);
                }
            const auto expect_all_right = [&](const FuseRequest& request) {
                const auto outcome = derive(machine(), p, request);
                if (const auto* plans = std::get_if<FusePlans>(&outcome))
                    for (const FusePlan& plan : plans->plans) expect_right(plan, inputs);
            };
            for (FuseHome home : {FuseHome::registers, FuseHome::shared, FuseHome::twice, FuseHome::ring})
                expect_all_right({.home = home, .top = 2});
            // Rows that are gone over again among rows that are not.
            if (rows > 100) expect_all_right({.reducing = 128, .home = FuseHome::ring, .top = 2});
        }
}

TEST_F(FuseTest, RowsOfLargeMean) {
    const FuseProblem p = made("y = layernorm(x)", {"x:fp32[4,8192]"});
    std::vector<double> x;
    for (int i = 0; i < 4 * 8192; ++i) x.push_back(double(float(1e4 + std::sin(i * 0.37))));
    const auto found = derive(machine(), p, {.top = 16});
    for (const FusePlan& plan : std::get<FusePlans>(found).plans) expect_right(plan, {x});
}

TEST_F(FuseTest, DropoutReplaysElementByElement) {
    const FuseProblem p = made("y = dropout(x, 0.25, 123456789012345, 42)", {"x:fp32[1000,1003]"});
    std::vector<double> ones(1003000, 1.0);
    const auto y = run(std::get<FusePlans>(derive(machine(), p, {.top = 1})).plans[0], {ones})[0];
    std::int64_t kept = 0;
    for (size_t i = 0; i < y.size(); ++i) {
        ASSERT_EQ(y[i] != 0, dropout_keeps(i, 0.25, 123456789012345, 42)) << i;
        kept += y[i] != 0;
    }
    EXPECT_NEAR(double(kept), 0.75 * 1003000, 5 * std::sqrt(1003000 * 0.25 * 0.75));
}

TEST_F(FuseTest, RandomExpressions) {
    const std::uint64_t seed = fresh_seed();
    fmt::print("seed {}\n", seed);
    RandomExpressions random(seed);
    int compared = 0;
    for (int i = 0; i < 300; ++i) {
        const RandomExpression e = random.next();
        const FuseProblem p = made(e.text, e.tensors);
        const auto outcome = derive(machine(), p, {.top = 1});
        const auto* plans = std::get_if<FusePlans>(&outcome);
        if (!plans || !plans->plans[0].buildable) continue;
        ++compared;
        expect_right(plans->plans[0], random_inputs(p, seed + std::uint64_t(i)));
    }
    EXPECT_GE(compared, 200);
}

TEST_F(FuseTest, MeasuresBesideCopiesAndTheUnfusedChain) {
    const FuseProblem p = made("y = gelu(x + b)", {"x:bf16[8192,8192]", "b:bf16[8192]"});
    const auto outcome = derive(machine(), p, {.top = 2});
    MeasureOptions options;
    options.mode = Mode::burst;
    options.timing.rounds = 3;
    options.seed = 5;
    const FuseRun run = measure(std::get<FusePlans>(outcome).plans, machine(), options);
    for (const FuseMeasurement& row : run.rows) {
        EXPECT_TRUE(row.verified.ok()) << row.verified.failure;
        ASSERT_TRUE(row.time_us) << row.invalid;
        EXPECT_LT(*row.time_us, *run.baselines.unfused_us);
    }
    EXPECT_TRUE(run.baselines.copy_us);
    EXPECT_TRUE(run.baselines.memcpy_us);
}

}  // namespace
}  // namespace rooftile
