// Rows that pass through rings in shared memory, and rows that are all resident in the grid, on a GPU: every cluster,
// chunk and reduction against fp64, with weights, epilogue operands and warp-specialised reductions.
#include <tuple>

#include "tests/fuse/device/fixture.hpp"

namespace rooftile {
namespace {

class FuseRingsTest : public FuseTest {
  protected:
    /// All functions on rows of one shape, through rings.
    void check_rings(const std::string& shape) {
        for (const char* f :
             {"softmax(x)", "log_softmax(x)", "layernorm(x)", "rmsnorm(x)", "x - mean(x)",
              "softmax(layernorm(x) * 2)", "sum(x)", "argmax(x)", "where(x > max(x) - 1, x, 0.0)"})
            check(std::string("y = ") + f, {"x:bf16[" + shape + "]"}, 1,
                  {.row_storage = RowStorage::pipelined});
        for (const char* f : {"softmax(x)", "layernorm(x)", "sum(x)"})
            check(std::string("y = ") + f, {"x:fp32[" + shape + "]"}, 1,
                  {.row_storage = RowStorage::pipelined});
    }

    /// The first `most` launches in which all rows are resident in the grid; how many there were.
    int check_grid_resident(const std::string& text, const std::vector<std::string>& tensors, int most,
                            int times = 1, std::optional<int> cluster = {}) {
        return check(text, tensors, most,
                     {.cluster = cluster, .row_storage = RowStorage::reload, .grid_reduction = true},
                     grid_resident_rows, times);
    }

    /// `cluster` CTAs that share rows and reduce through device memory.
    void check_grid_reductions(int cluster, const std::vector<std::string>& rows,
                               const std::vector<std::string>& functions) {
        for (const std::string& x : rows)
            for (const std::string& f : functions)
                EXPECT_EQ(check_grid_resident("y = " + f, {x}, 1, 2, cluster), 1) << f << " of " << x;
    }
};

// Rows of whole chunks and of others, more rows than clusters, the shortest last part of a cluster.
TEST_F(FuseRingsTest, RingsOfManyRows) { check_rings("140,16392"); }
TEST_F(FuseRingsTest, RingsOfWholeChunks) { check_rings("5,65536"); }
TEST_F(FuseRingsTest, RingsThatEndShort) { check_rings("3,100000"); }
TEST_F(FuseRingsTest, RingsOfSeveralCtas) { check_rings("2,262144"); }

// No chunk that is short, then one of one vector: every cluster and chunk that the plan offers.
TEST_F(FuseRingsTest, RingsOfEveryChunk) {
    check("y = softmax(x)", {"x:bf16[3,65536]"}, 64, {.row_storage = RowStorage::pipelined});
}
TEST_F(FuseRingsTest, RingsOfEveryChunkThatEndShort) {
    check("y = softmax(x)", {"x:bf16[3,65544]"}, 64, {.row_storage = RowStorage::pipelined});
}

/// A slot that is given back before it is read goes wrong once in many launches.
TEST_F(FuseRingsTest, RingsGiveSlotsBackInTime) {
    check("y = x * 2 - max(z + c); s = sum(x)", {"x:bf16[150,20000]", "z:fp16[150,20000]", "c:fp32[150,1]"},
          4, {.row_storage = RowStorage::pipelined}, {}, 8);
}

// Whoever takes a row, and without a workspace everybody in turn: the same bits, launch after launch.
TEST_F(FuseRingsTest, RowsAreScheduledDynamicallyOrStatically) {
    const ExpressionGraph p =
        made("y = gelu(dropout(layernorm(x, g, b) + r, 0.1, 7, 3))",
             {"x:bf16[700,65536]", "r:bf16[700,65536]", "g:bf16[65536]", "b:bf16[65536]"});
    FuseTrial trial(p, 5);
    int dynamic = 0;
    std::vector<std::vector<char>> in_fixed_order;
    for (const int cluster : {1, 2, 4, 8})
        for (const FusePlan& plan :
             plans_of(p, {.cluster = cluster, .row_storage = RowStorage::pipelined, .top = 1})) {
            if (!schedules_dynamically(plan.program, plan.config)) continue;
            std::cerr << fmt::format("  {} CTAs a row\n", cluster);
            if (dynamic++ == 0) trial.expect_right(plan);
            in_fixed_order = trial.run(plan, {});
            for (int i = 0; i < 3; ++i) EXPECT_EQ(trial.run(plan), in_fixed_order) << cluster;
            // A counter that says three were taken: rows of nobody stay as they were.
            constexpr unsigned taken = 3;
            const std::vector<char> some = trial.run(plan, taken)[0];
            const std::size_t row = 65536 * 2, teams = std::size_t(plan.config.grid / cluster);
            for (std::size_t r = 0; r < 700; ++r) {
                const bool nobodys = r >= teams && r < teams + taken;
                const bool same = std::equal(some.begin() + std::ptrdiff_t(r * row),
                                             some.begin() + std::ptrdiff_t((r + 1) * row),
                                             in_fixed_order[0].begin() + std::ptrdiff_t(r * row));
                EXPECT_EQ(same, !nobodys) << cluster << " CTAs, row " << r;
            }
        }
    EXPECT_EQ(dynamic, 4);
}

// Slots that are given back before all CTAs have reduced, over many rows; a slot for a row and an epilogue operand behind it.
TEST_F(FuseRingsTest, RowsAreScheduledDynamicallyInAnyRing) {
    check("y = sum(x)", {"x:bf16[1100,65536]"}, 12, {.row_storage = RowStorage::pipelined}, {}, 3);
    for (const int cluster : {2, 8})
        check("y = sum(x)", {"x:bf16[700,262144]"}, 4,
              {.cluster = cluster, .row_storage = RowStorage::pipelined});
    check("y = softmax(x) + r", {"x:bf16[300,32768]", "r:bf16[300,32768]"}, 4,
          {.stages = 1, .row_storage = RowStorage::pipelined}, {}, 3);
}

// Weights that stay in shared memory: more rows than clusters, parts and chunks that end short, types of
// other widths.
constexpr auto keeps_weights = [](const FuseConfig& c) { return c.early_weights; };

TEST_F(FuseRingsTest, RingsThatKeepWeights) {
    EXPECT_GE(check("y = layernorm(x, g, b)", {"x:bf16[140,65536]", "g:bf16[65536]", "b:fp32[65536]"}, 6,
                    {.row_storage = RowStorage::pipelined}, keeps_weights),
              1);
}
TEST_F(FuseRingsTest, RingsThatKeepWeightsAndEndShort) {
    EXPECT_GE(check("y = layernorm(x, g, b)", {"x:bf16[140,70008]", "g:bf16[70008]", "b:fp32[70008]"}, 6,
                    {.row_storage = RowStorage::pipelined}, keeps_weights),
              1);
}
TEST_F(FuseRingsTest, RingsOfOneCtaThatKeepWeights) {
    EXPECT_GE(check("y = layernorm(x, g, b)", {"x:bf16[530,16392]", "g:bf16[16392]", "b:fp32[16392]"}, 6,
                    {.row_storage = RowStorage::pipelined}, keeps_weights),
              1);
}
TEST_F(FuseRingsTest, RingsThatKeepWeightsOfOtherTypes) {
    EXPECT_GE(check("y = rmsnorm(x, g)", {"x:fp32[140,40000]", "g:fp32[40000]"}, 6,
                    {.row_storage = RowStorage::pipelined}, keeps_weights),
              1);
}
// Read once: the first row's chunks and the weights behind them are all on their way before a slot comes back.
TEST_F(FuseRingsTest, RingsThatKeepWeightsForOnePass) {
    EXPECT_GE(check("y = sum(x * g)", {"x:bf16[1100,65536]", "g:bf16[65536]"}, 64,
                    {.row_storage = RowStorage::pipelined}, keeps_weights),
              1);
}
TEST_F(FuseRingsTest, RingsThatReadKeptWeightsTwice) {
    EXPECT_GE(check("y = softmax(x * g) + b", {"x:bf16[270,40000]", "g:bf16[40000]", "b:bf16[40000]"}, 6,
                    {.row_storage = RowStorage::pipelined}, keeps_weights),
              1);
}

// Tensors that only the last pass reads, a chunk ahead over the ends of rows: every launch; whole chunks,
// chunks that end short, a last chunk of one vector; one row a cluster and many;
// with weights kept and without; flags and floats beside bf16.
class FuseAheadTest : public FuseRingsTest, public testing::WithParamInterface<std::string> {};
TEST_P(FuseAheadTest, RingsReadEpilogueOperandsAhead) {
    const std::string shape = GetParam(), row = shape.substr(shape.find(',') + 1);
    int kept = 0;
    check("y = gelu(dropout(layernorm(x, g, b) + r, 0.1, 7, 3))",
          {"x:bf16[" + shape + "]", "r:bf16[" + shape + "]", "g:bf16[" + row + "]", "b:bf16[" + row + "]"},
          64, {.row_storage = RowStorage::pipelined}, [&](const FuseConfig& c) {
              kept += c.early_weights;
              return true;
          });
    if (shape.starts_with("300")) { EXPECT_GE(kept, 1); }
}
INSTANTIATE_TEST_SUITE_P(Shapes, FuseAheadTest,
                         testing::Values<std::string>("5,65536", "300,65536", "3,65544", "300,32776",
                                                      "270,16392", "2,262152"));
TEST_F(FuseRingsTest, RingsReadEpilogueOperandsOfOtherTypes) {
    for (const char* shape : {"5,65536", "270,20000"})
        check("y = where(m, x - mean(x), r) * s + z",
              {fmt::format("x:bf16[{}]", shape), fmt::format("m:bool[{}]", shape),
               fmt::format("r:fp32[{}]", shape), "s:fp32[]", fmt::format("z:fp16[{}]", shape)},
              8, {.row_storage = RowStorage::pipelined});
    // Rows that share epilogue operands by a band, and a last pass that reads nothing of the slots.
    check("y = softmax(x) + z", {"x:bf16[6,4,20000]", "z:bf16[6,1,20000]"}, 8,
          {.row_storage = RowStorage::pipelined});
    check("y = r + max(x)", {"x:bf16[140,40000]", "r:bf16[140,40000]"}, 8,
          {.row_storage = RowStorage::pipelined});
}
TEST_F(FuseRingsTest, RingsReadEpilogueOperandsInTime) {
    check("y = gelu(layernorm(x) + r)", {"x:bf16[400,40000]", "r:bf16[400,40000]"}, 6,
          {.row_storage = RowStorage::pipelined}, {}, 8);
}
// Few rows and many, parts that end short or are empty, weights that stay and epilogue operands; again and again, since a
// row handed over too early shows but now and then.
class FuseWarpSpecialisedTest : public FuseRingsTest,
                                public testing::WithParamInterface<std::tuple<int, std::string>> {};
TEST_P(FuseWarpSpecialisedTest, RingsWithWarpSpecialisedReduction) {
    const auto specialised = [](const FuseConfig& c) { return c.reduction_threads > 0; };
    constexpr int most = 6, times = 3;
    const FuseRequest request = {.reduction_threads = std::get<0>(GetParam()),
                                 .row_storage = RowStorage::pipelined};
    const std::string shape = std::get<1>(GetParam()), row = shape.substr(shape.find(',') + 1);
    const std::string x = "x:bf16[" + shape + "]", r = "r:bf16[" + shape + "]";
    EXPECT_GE(check("y = softmax(x)", {x}, most, request, specialised, times), 1);
    EXPECT_GE(check("y = x * 0.5 - mean(x); m = max(x)", {x}, most, request, specialised, times), 1);
    EXPECT_GE(check("y = gelu(dropout(layernorm(x, g, b) + r, 0.1, 7, 3))",
                    {x, r, "g:bf16[" + row + "]", "b:bf16[" + row + "]"}, most, request, specialised, times),
              1);
}
INSTANTIATE_TEST_SUITE_P(Threads, FuseWarpSpecialisedTest,
                         testing::Combine(testing::Values(128),
                                          testing::Values<std::string>("1,65536", "300,65536", "300,32776",
                                                                       "400,40000", "140,65544")));

// Rows whose CTAs are no cluster: any number of them, fewer than a warp's lanes and more than they hear of at once; parts that
// end short or are empty; one and two reductions, of rows that are read once and again.
class FuseAnyTeamTest : public FuseRingsTest, public testing::WithParamInterface<int> {};
TEST_P(FuseAnyTeamTest, AnyNumberOfCtasReducesAcrossTheGrid) {
    if (GetParam() <= 33)
        check_grid_reductions(GetParam(), {"x:bf16[3,524288]", "x:bf16[4,524297]"},
                              {"softmax(x)", "argmax(x)", "sum(x * x)"});
    else
        check_grid_reductions(GetParam(), {"x:bf16[1,1048576]", "x:fp32[1,1048583]"},
                              {"softmax(layernorm(x) * 2)", "logsumexp(x)"});
}
INSTANTIATE_TEST_SUITE_P(Teams, FuseAnyTeamTest, testing::Values(2, 3, 13, 31, 32, 33, 64, 129, 132));

// Rows that are all resident in the grid: parts and iterations that end short, vectors of one element, one to three passes of
// each kind of accumulator, several times, since what one launch leaves in the workspace the next one finds.
TEST_F(FuseRingsTest, GridResidentRowsOfEveryAccumulator) {
    for (const char* x : {"x:bf16[16,262144]", "x:bf16[5,524296]", "x:fp16[33,131080]", "x:fp32[3,100001]"})
        for (const char* f : {"softmax(x)", "log_softmax(x)", "layernorm(x)", "rmsnorm(x)", "x - mean(x)",
                              "softmax(layernorm(x) * 2)", "where(x > max(x) - 1, x, 0.0)"})
            EXPECT_EQ(check_grid_resident(std::string("y = ") + f, {x}, 1, 3), 1) << f << " of " << x;
}
TEST_F(FuseRingsTest, GridResidentRowsWithSeveralResults) {
    EXPECT_GE(check_grid_resident("y = softmax(x); a = argmax(x); l = logsumexp(x); m = mean(x)",
                                  {"x:bf16[7,200008]"}, 4),
              1);
    EXPECT_GE(check_grid_resident("h = x + r; y = rmsnorm(h, g); s = sum(h)",
                                  {"x:bf16[9,131072]", "r:bf16[9,131072]", "g:fp32[131072]"}, 4),
              1);
}
TEST_F(FuseRingsTest, GridResidentRowsWhoseTensorsEnterLater) {
    for (const char* f :
         {"softmax(layernorm(x) + r)", "layernorm(layernorm(x) * r)", "softmax(x - mean(x) + r) * r"})
        for (const char* shape : {"16,262144", "9,131080"})
            EXPECT_GE(check_grid_resident(
                          std::string("y = ") + f,
                          {fmt::format("x:bf16[{}]", shape), fmt::format("r:bf16[{}]", shape)}, 2, 2),
                      1)
                << f << " of " << shape;
}
TEST_F(FuseRingsTest, GridResidentRowsWithWeightsAndEpilogueOperands) {
    for (const char* shape : {"16,262144", "9,131080", "2,1000008"}) {
        const std::string row = std::string(shape).substr(std::string(shape).find(',') + 1);
        EXPECT_GE(check_grid_resident("y = gelu(dropout(layernorm(x, g, b) + r, 0.1, 7, 3))",
                                      {fmt::format("x:bf16[{}]", shape), fmt::format("r:bf16[{}]", shape),
                                       fmt::format("g:bf16[{}]", row), fmt::format("b:fp32[{}]", row)},
                                      3),
                  3)
            << shape;
    }
    check_grid_resident(
        "y = where(m, x - mean(x), r) * s + z",
        {"x:bf16[5,131072]", "m:bool[5,131072]", "r:fp32[5,131072]", "s:fp32[]", "z:fp16[5,131072]"}, 3);
    check_grid_resident("y = softmax(x) + z", {"x:bf16[3,4,65536]", "z:bf16[3,1,65536]"}, 3);
}
TEST_F(FuseRingsTest, GridResidentRowsOfEveryTeam) {
    for (int cluster : {2, 4, 8, 16, 32, 64})
        EXPECT_EQ(
            check_grid_resident("y = layernorm(x, g, b)",
                                {"x:bf16[6,262152]", "g:bf16[262152]", "b:bf16[262152]"}, 1, 1, cluster),
            1)
            << cluster;
    check_grid_resident("y = softmax(x)", {"x:bf16[16,262144]"}, 64);
}
// More CTAs than fit do not begin.
TEST_F(FuseRingsTest, GridResidentRowsAreRefusedWhereTheyDoNotFit) {
    const ExpressionGraph p = made("y = softmax(x)", {"x:bf16[4096,65536]"});
    const auto outcome =
        derive(machine(), p, {.threads_per_row = 512, .row_storage = RowStorage::reload, .top = 1});
    FusePlan plan = std::get<FusePlans>(outcome).plans[0];
    plan.config.grid_reduction = true;
    plan.config.cluster = 2;
    ASSERT_TRUE(grid_resident_rows(plan.config));
    const FuseKernel kernel = compile(plan);
    EXPECT_THROW(kernel.load(), Error);
}

}  // namespace
}  // namespace rooftile
