// Generated kernels compile clean for Ampere and Hopper, load and store whole vectors, and need no
// more registers than their plans count on.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <regex>

#include "rooftile/expression/expression.hpp"
#include "rooftile/expression/random.hpp"
#include "rooftile/expression/tensor_value.hpp"
#include "rooftile/fuse/device/kernel.hpp"
#include "rooftile/fuse/device/source.hpp"
#include "rooftile/fuse/staging.hpp"
#include "rooftile/machine/registry.hpp"
#include "tests/compile/sample.hpp"

namespace rooftile {
namespace {

ExpressionGraph made(std::string_view text, const std::vector<std::string>& tensors) {
    std::vector<TensorDeclaration> declared;
    for (const std::string& t : tensors) declared.push_back(tensor_declaration(t));
    return expression_graph(text, declared);
}

struct Case {
    const char* text;
    std::vector<std::string> tensors;
};
const std::vector<Case>& cases() {
    static const std::vector<Case> all = {
        {"y = gelu(x)", {"x:bf16[16384,16384]"}},
        {"y = gelu_tanh(x)", {"x:fp32[16384,16384]"}},
        {"y = gelu(x + b)", {"x:bf16[16384,16384]", "b:bf16[16384]"}},
        {"y = 0.5 * x * (1 + tanh(0.79788456 * (x + 0.044715 * x**3)))", {"x:bf16[16384,16384]"}},
        {"y = softmax(x)", {"x:bf16[32768,256]"}},
        {"y = softmax(x)", {"x:bf16[16384,4096]"}},
        {"y = softmax(x)", {"x:bf16[2048,65536]"}},
        {"y = softmax(x)", {"x:bf16[16,1048576]"}},
        {"y = layernorm(x, g, b)", {"x:bf16[8192,16384]", "g:bf16[16384]", "b:bf16[16384]"}},
        {"y = rmsnorm(x, g)", {"x:bf16[1024,262144]", "g:bf16[262144]"}},
        {"y = gelu(dropout(layernorm(x, g, b) + r, 0.1, 7))",
         {"x:bf16[16384,4096]", "g:bf16[4096]", "b:bf16[4096]", "r:bf16[16384,4096]"}},
        {"y = where(m, x, -inf); z = argmax(x); w = logsumexp(x)", {"x:fp16[100,1024]", "m:bool[100,1024]"}},
        {"y = softmax(x)", {"x:bf16[100,1009]"}},
        {"y = x + z", {"x:fp32[2,3,5,8]", "z:fp32[2,1,5,8]"}},
        {"s = max_all(x); t = mean_all(x * x)", {"x:bf16[1000,1001]"}},
        {"y = log(x) * rsqrt(x) + erf(x) / (1 + exp(-z)) + x**2.5",
         {"x:fp32[1000,1001]", "z:fp16[1000,1001]"}},
        {"y = softmax(x * g) + b", {"x:bf16[270,40000]", "g:bf16[40000]", "b:bf16[40000]"}},
        {"y = gelu(dropout(layernorm(x, g, b) + r, 0.1, 7))",
         {"x:bf16[2048,65536]", "g:bf16[65536]", "b:bf16[65536]", "r:bf16[2048,65536]"}},
    };
    return all;
}

constexpr RowStorage row_storages[] = {RowStorage::none, RowStorage::registers, RowStorage::reload, RowStorage::pipelined, RowStorage::shared};

/// The largest number after any match of `pattern` in `text`, or -1.
std::int64_t greatest_after(const std::string& text, const std::string& pattern) {
    std::int64_t greatest = -1;
    const std::regex numbered(pattern + "(\\d+)");
    for (std::sregex_iterator i(text.begin(), text.end(), numbered), end; i != end; ++i)
        greatest = std::max(greatest, std::int64_t(std::stoll((*i)[1])));
    return greatest;
}

/// Bytes of dynamic shared memory up to which `text` reaches, read off the text alone.
std::int64_t dynamic_shared_of(const std::string& text) {
    std::int64_t end = 0;
    const std::regex tensor(
        R"(reinterpret_cast<Pack<(\w+), vector_width>\*>\(staged \+ (\d+)\);  // (\d+) vectors)");
    const std::int64_t vector_width = greatest_after(text, "constexpr int vector_width = ");
    for (std::sregex_iterator i(text.begin(), text.end(), tensor), last; i != last; ++i) {
        const std::string type = (*i)[1];
        const std::int64_t bytes = type == "float" ? 4 : type == "boolean" ? 1 : 2;
        end = std::max<std::int64_t>(end, std::stoll((*i)[2]) + std::stoll((*i)[3]) * vector_width * bytes);
    }
    return end;
}

class FuseCompiles : public testing::TestWithParam<const char*> {};

TEST_P(FuseCompiles, CleanWithinPlannedRegisters) {
    for (const Case& c : cases()) {
        const auto outcome = derive(machine_by_id(GetParam()), made(c.text, c.tensors), {.top = 2});
        for (const FusePlan& plan : std::get<FusePlans>(outcome).plans) {
            ASSERT_TRUE(plan.buildable) << plan.why_not;
            const std::string what = fmt::format("{} plan {}", c.text, plan.rank);
            const Compiled compiled = compile_source(fuse_source(plan));
            EXPECT_EQ(unclean(compiled).value_or(""), "") << what << '\n' << compiled.log;
            const double per_cta = double(compiled.entries[0].registers) * plan.config.threads;
            EXPECT_LE(per_cta * plan.config.ctas_per_sm, 65536) << what;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Machines, FuseCompiles, testing::Values("h200-sxm", "a100-80-sxm"));

TEST(FuseCode, AlignedTensorsMoveInSixteenBytes) {
    const auto ptx = [](const Case& c, FuseRequest request = {}) {
        request.top = 1;
        const auto outcome = derive(machine_by_id("h200-sxm"), made(c.text, c.tensors), request);
        return compile_to_ptx(fuse_source(std::get<FusePlans>(outcome).plans[0]));
    };
    const std::string gelu = ptx(cases()[0]);
    const char* read = "ld.global.L2::cache_hint.v4.u32";
    EXPECT_THAT(gelu, testing::HasSubstr(read));
    EXPECT_THAT(gelu, testing::HasSubstr("st.global.v4.u32"));
    // All of a thread's loads stand before its first store.
    const size_t last_load = gelu.rfind("v4.u32 {", gelu.find("st.global.v4"));
    EXPECT_LT(gelu.find(read), last_load);
    // An arrival does not wait for the loads before it: what they bring goes through the vote before it, else
    // a slot is filled while it is read. A fence would wait for all that the thread has on its way.
    EXPECT_THAT(ptx(cases()[6], {.row_storage = RowStorage::pipelined}),
                testing::AllOf(testing::HasSubstr("cp.async.bulk.shared"), testing::HasSubstr("vote.sync.any"),
                               testing::Not(testing::HasSubstr("fence.proxy.async"))));
    EXPECT_THAT(
        ptx(cases()[7], {.cluster = 16, .row_storage = RowStorage::reload, .grid_reduction = true}),
        testing::AllOf(testing::HasSubstr("ld.relaxed.gpu"), testing::HasSubstr("st.relaxed.gpu"),
                       testing::Not(testing::HasSubstr("barrier.cluster"))));
    EXPECT_THAT(ptx(cases()[0], {.alignment = 4}), testing::Not(testing::HasSubstr("v4.u32")));
}

// Where the rows are as many as the teams of the grid nobody asks whether he has one; else the last one is taken again, so that a
// warp's lanes always reduce together.
TEST(FuseCode, TeamsThatAllHaveARowDoNotAsk) {
    const auto text = [](const char* rows, FuseRequest request) {
        request.top = 1;
        const auto outcome =
            derive(machine_by_id("h200-sxm"),
                   made("y = rmsnorm(x, g)", {fmt::format("x:bf16[{},256]", rows), "g:bf16[256]"}), request);
        return fuse_source(std::get<FusePlans>(outcome).plans[0]).text;
    };
    const FuseRequest eight = {.threads = 64, .threads_per_row = 8, .row_storage = RowStorage::registers};
    const testing::Matcher<std::string> asks = testing::HasSubstr("row = min(team.first_row<unsigned>(), ");
    EXPECT_THAT(text("4096", eight), testing::Not(asks));
    EXPECT_THAT(text("4100", eight), asks);
}

// A warp's rows of 15 elements come and go in 16 bytes, whatever they begin with; elements are taken from shared memory.
TEST(FuseCode, ShortRowsOffVectorsMoveInSixteenBytes) {
    const auto outcome = derive(machine_by_id("h200-sxm"), made("y = softmax(dropout(x, 0.3, 5))", {"x:bf16[100000,15]"}),
                                {.row_storage = RowStorage::shared, .top = 3});
    ASSERT_TRUE(std::holds_alternative<FusePlans>(outcome));
    for (const FusePlan& plan : std::get<FusePlans>(outcome).plans) {
        const FuseKernel kernel = compile(plan);  // with fewer CTAs an SM than planned, where that many spill
        EXPECT_EQ(kernel.entry().spill_store_bytes, 0);
        const std::string ptx = kernel.ptx();
        EXPECT_THAT(ptx, testing::AllOf(testing::HasSubstr("ld.global.L2::cache_hint.v4.u32"),
                                        testing::HasSubstr("st.global.v4.u32"), testing::HasSubstr("ld.shared.u16")));
        EXPECT_THAT(ptx, testing::Not(testing::HasSubstr("ld.global.u16")));
    }
}

// What rows share is loaded before them where nothing but the order of the accesses keeps it before the reduction.
TEST(FuseCode, WeightsComeBeforeTheRow) {
    const auto outcome =
        derive(machine_by_id("h200-sxm"),
               made("y = layernorm(x, g, b)", {"x:bf16[4096,1024]", "g:bf16[1024]", "b:bf16[1024]"}),
               {.threads = 32, .threads_per_row = 32, .row_storage = RowStorage::registers, .top = 4});
    int early = 0;
    for (const FusePlan& plan : std::get<FusePlans>(outcome).plans) {
        if (!plan.config.early_weights) continue;
        ++early;
        const std::string ptx = compile_to_ptx(fuse_source(plan));
        EXPECT_THAT(ptx, testing::HasSubstr("ld.relaxed.cta.global.v4.u32"));
        const std::string text = fuse_source(plan).text;
        const size_t weights = text.find("load_cached_in_order(g_pack"),
                     row = text.find("load_cached_in_order<CachePolicy::evict_last>(x_pack");
        EXPECT_LT(text.find("load_cached_in_order(b_pack"), row);
        ASSERT_NE(weights, std::string::npos);
        ASSERT_NE(row, std::string::npos);
        EXPECT_LT(weights, row);
    }
    EXPECT_GE(early, 1);
}

TEST(FuseCode, LaunchesAskForTheSharedMemoryThatTheTextUses) {
    int staged = 0;
    std::size_t place = 0;
    for (const Case& c : cases())
        for (RowStorage row_storage : row_storages) {
            const auto outcome = derive(machine_by_id("h200-sxm"), made(c.text, c.tensors),
                                        {.row_storage = row_storage, .top = 64});
            const auto* plans = std::get_if<FusePlans>(&outcome);
            if (!plans) continue;
            for (const FusePlan& plan : plans->plans) {
                const std::string what =
                    fmt::format("{} plan {} {}", c.text, plan.rank, name_of(row_storage));
                const Launch launch = fuse_launch(plan, 8);
                const Source source = fuse_source(plan);
                EXPECT_EQ(dynamic_shared_of(source.text), std::int64_t(launch.shared_bytes)) << what;
                const bool held = holds_iterations(plan.program, plan.config);
                EXPECT_EQ(launch.shared_bytes > 0, row_storage == RowStorage::pipelined || held) << what;
                EXPECT_EQ(launch.cooperative, reduces_across_grid(plan.config)) << what;
                EXPECT_EQ(launch.cluster_x, launch.cooperative ? 1u : unsigned(plan.config.cluster)) << what;
                EXPECT_EQ(launch.block_x, unsigned(plan.config.threads)) << what;
                staged += launch.shared_bytes > 0;
                if (plan.rank > 1 || !one_in(4, place++)) continue;
                const bool dynamic = compile_to_ptx(source).find(".extern .shared") != std::string::npos;
                EXPECT_EQ(dynamic, launch.shared_bytes > 0) << what;
                const EntryInfo entry = compile_source(source).entries[0];
                const std::int64_t gathered = gathered_bytes(plan.problem, plan.program, plan.config);
                EXPECT_LE(entry.static_shared_bytes, fuse::exchange_bytes + gathered) << what;
                EXPECT_GE(entry.static_shared_bytes, gathered) << what;
            }
        }
    EXPECT_GE(staged, 20);
}

/// What does not spill at the first attempt costs no second compilation.
TEST(FuseCode, NoCandidateSpills) {
    RandomExpressions random(7);
    std::vector<Case> all = cases();
    std::vector<RandomExpression> kept;
    for (int i = 0; i < 24; ++i) kept.push_back(random.next());
    for (const RandomExpression& e : kept) all.push_back({e.text.c_str(), e.tensors});
    int compiled = 0;
    std::size_t place = 0;
    for (const Case& c : all)
        for (RowStorage row_storage : row_storages) {
            const auto outcome = derive(machine_by_id("h200-sxm"), made(c.text, c.tensors),
                                        {.row_storage = row_storage, .top = 64});
            const auto* plans = std::get_if<FusePlans>(&outcome);
            if (!plans) continue;
            for (const FusePlan& plan : plans->plans) {
                if (!plan.buildable || !compiles_this(place++, 13, 3)) continue;
                const Compiled code = compile_source(fuse_source(plan));
                EXPECT_EQ(unclean(code).value_or(""), "")
                    << c.text << " " << name_of(row_storage) << " " << plan.config.vectors_per_thread
                    << " vectors, " << plan.config.threads << " threads, cluster " << plan.config.cluster;
                EXPECT_LE(code.entries[0].registers * plan.config.threads * plan.config.ctas_per_sm, 65536);
                ++compiled;
            }
        }
    EXPECT_GE(compiled, test_all() ? 60 : 20);
}

/// Rows through a ring, of whole chunks and of others.
TEST(FuseCode, RingsCompileClean) {
    const std::vector<std::string> expressions = {"y = softmax(x)", "y = log_softmax(x)", "y = layernorm(x)",
                                                  "y = rmsnorm(x)",
                                                  "y = gelu(dropout(layernorm(x, g, b) + r, 0.1, 7))"};
    std::size_t place = 0;
    for (const char* type : {"bf16", "fp32"})
        for (const char* columns : {"65536", "262144", "100000"})
            for (const std::string& text : expressions) {
                if (!one_in(4, place++)) continue;
                std::vector<std::string> tensors = {fmt::format("x:{}[2000,{}]", type, columns)};
                if (text == expressions.back()) {
                    tensors.push_back(fmt::format("r:{}[2000,{}]", type, columns));
                    tensors.push_back(fmt::format("g:{}[{}]", type, columns));
                    tensors.push_back(fmt::format("b:{}[{}]", type, columns));
                }
                const auto outcome = derive(machine_by_id("h200-sxm"), made(text, tensors),
                                            {.row_storage = RowStorage::pipelined, .top = 1});
                const auto* plans = std::get_if<FusePlans>(&outcome);
                ASSERT_TRUE(plans) << text << " of " << columns << ' ' << type;
                const FusePlan& plan = plans->plans[0];
                const std::string what = fmt::format("{} of {} {}, cluster {}, {} slots", text, columns, type,
                                                     plan.config.cluster, plan.config.stages);
                const Source source = fuse_source(plan);
                const Compiled code = compile_source(source);
                EXPECT_EQ(unclean(code).value_or(""), "") << what;
                EXPECT_LE(code.entries[0].registers * plan.config.threads, 65536) << what;
                EXPECT_LE(code.entries[0].static_shared_bytes, fuse::ring_exchange_bytes) << what;
                // Rows that chunks do not divide are guarded; others need no test.
                EXPECT_EQ(source.text.find("if (at >= end) break;") == std::string::npos,
                          std::string_view(columns) != "100000")
                    << what;
            }
}

/// A mask of one value a row, or of one of all, is made once where that is known.
TEST(FuseCode, DropoutOfFewerValuesIsMadeOnce) {
    const auto text_of = [](const std::string& text, const std::vector<std::string>& tensors,
                            FuseRequest request) {
        request.top = 1;
        const auto outcome = derive(machine_by_id("h200-sxm"), made("y = " + text, tensors), request);
        EXPECT_TRUE(std::holds_alternative<FusePlans>(outcome)) << text;
        const Source source = fuse_source(std::get<FusePlans>(outcome).plans.at(0));
        EXPECT_EQ(unclean(compile_source(source)).value_or(""), "") << source.text;
        return source.text;
    };
    const auto has = [](const std::string& text, std::string_view part) {
        return text.find(part) != text.npos;
    };
    const std::vector<std::string> rows = {"x:bf16[300,32768]", "c:fp32[300,1]"};
    for (const RowStorage row_storage :
         {RowStorage::registers, RowStorage::reload, RowStorage::pipelined}) {
        const std::string text =
            text_of("x + dropout(mean(x) * c, 0.3, 5)", rows, {.row_storage = row_storage});
        EXPECT_TRUE(has(text, "_keep, row, t.dropout_")) << text;
        EXPECT_TRUE(has(text, "_keep[0] ? ")) << text;
    }
    EXPECT_TRUE(has(text_of("x * dropout(c, 0.4, 7)", rows, {}), "_keep, row, t.dropout_"));
    EXPECT_TRUE(has(text_of("sum_all(x * dropout(c, 0.4, 7))", rows, {}), "_keep, row, t.dropout_"));
    EXPECT_TRUE(has(text_of("x * dropout(c, 0.4, 7)", {"x:bf16[6,50,64]", "c:fp32[50,1]"}, {}),
                    "_keep, (row % 50), t.dropout_"));
    EXPECT_TRUE(
        has(text_of("x + dropout(s, 0.5, 4)", {"x:bf16[1003]", "s:fp32[1]"}, {}), "_keep, 0, t.dropout_"));
    EXPECT_TRUE(has(text_of("softmax(x) + dropout(s, 0.5, 4)", {"x:bf16[64,4096]", "s:fp32[1]"}, {}),
                    "_keep, 0, t.dropout_"));
    const std::vector<std::string> all = {"x:bf16[64,4096]", "s:fp32[]"};
    EXPECT_TRUE(
        has(text_of("dropout(sum_all(x), 0.5, 3)", {"x:fp32[64,1]"}, {}), "kept(y_keep, 0, t.y_key);"));
    EXPECT_TRUE(
        has(text_of("sum_all(x * dropout(1.5, 0.25, 1)) * dropout(s, 0.5)", all, {}), "_keep[0] ? 2.0f"));
}

/// As many slots as a ring may have, with epilogue operands: barriers, row numbers and reductions stay within what the plan leaves.
TEST(FuseCode, RingsOfMostSlotsFit) {
    const std::string full = ":bf16[2048,65536]";
    const ExpressionGraph p =
        made("y = softmax(x) + a + b + c", {"x" + full, "a" + full, "b" + full, "c" + full});
    const auto outcome = derive(machine_by_id("h200-sxm"), p,
                                {.vectors_per_thread = 1,
                                 .threads_per_row = 512,
                                 .cluster = 16,
                                 .stages = 24,
                                 .row_storage = RowStorage::pipelined,
                                 .top = 8});
    ASSERT_TRUE(std::holds_alternative<FusePlans>(outcome));
    for (const FusePlan& plan : std::get<FusePlans>(outcome).plans) {
        const Compiled code = compile_source(fuse_source(plan));
        EXPECT_EQ(unclean(code).value_or(""), "");
        EXPECT_EQ(plan.config.stages, 24);
        EXPECT_LE(code.entries[0].static_shared_bytes, fuse::ring_exchange_bytes);
        EXPECT_GT(code.entries[0].static_shared_bytes, 1024);
    }
}

/// Weights that stay in shared memory, and rows that reduce through device memory.
TEST(FuseCode, KeptWeightsCompileClean) {
    int kept = 0;
    for (const char* x : {"x:bf16[2048,65536]", "x:bf16[1024,262144]", "x:bf16[16,1048576]"}) {
        const std::string row = std::string(x).substr(std::string(x).find(',') + 1);
        const auto outcome = derive(machine_by_id("h200-sxm"),
                                    made("y = layernorm(x, g, b)", {x, "g:bf16[" + row, "b:bf16[" + row}),
                                    {.row_storage = RowStorage::pipelined, .top = 64});
        for (const FusePlan& plan : std::get<FusePlans>(outcome).plans) {
            if (!plan.config.early_weights || !one_in(4, std::size_t(kept++))) continue;
            const Source source = fuse_source(plan);
            const Compiled code = compile_source(source);
            EXPECT_EQ(unclean(code).value_or(""), "") << source.text;
            EXPECT_LE(code.entries[0].registers * plan.config.threads, 65536);
            EXPECT_LE(code.entries[0].static_shared_bytes, fuse::ring_exchange_bytes);
        }
    }
    EXPECT_GE(kept, 4);
}

/// Of rows at once each tensor that is read again is held from the pass on that reads it first.
TEST(FuseCode, GridResidentRowsHoldEachTensorFromItsFirstPassOn) {
    const auto outcome =
        derive(machine_by_id("h200-sxm"),
               made("y = softmax(layernorm(x) + r)", {"x:bf16[16,1048576]", "r:bf16[16,1048576]"}),
               {.row_storage = RowStorage::reload, .grid_reduction = true, .top = 2});
    for (const FusePlan& plan : std::get<FusePlans>(outcome).plans) {
        const Source source = fuse_source(plan);
        const auto at = [&](const char* text) { return source.text.find(text); };
        for (const std::string name : {"x", "r"}) {
            const size_t held = at(("*(" + name + "_staged").c_str());
            EXPECT_LT(held, at(("waiting(" + name + "_staged").c_str())) << source.text;
            EXPECT_NE(held, std::string::npos);
        }
        EXPECT_EQ(unclean(compile_source(source)).value_or(""), "") << source.text;
    }
}

/// Rings some of whose threads only reduce, with parts that end short and without.
TEST(FuseCode, RingsWithWarpSpecialisedReductionCompileClean) {
    struct Rows {
        const char* text;
        std::vector<std::string> tensors;
    };
    constexpr const char* chain = "y = gelu(dropout(layernorm(x, g, b) + r, 0.1, 7, 3))";
    for (const Rows& rows :
         {Rows{"y = layernorm(x, g, b)", {"x:bf16[140,70008]", "g:bf16[70008]", "b:fp32[70008]"}},
          Rows{"y = layernorm(x, g, b)", {"x:bf16[530,16392]", "g:bf16[16392]", "b:fp32[16392]"}},
          Rows{"y = gelu(layernorm(x) + r)", {"x:bf16[400,40000]", "r:bf16[400,40000]"}},
          Rows{chain, {"x:bf16[2048,65536]", "r:bf16[2048,65536]", "g:bf16[65536]", "b:bf16[65536]"}},
          Rows{chain, {"x:bf16[140,65544]", "r:bf16[140,65544]", "g:bf16[65544]", "b:bf16[65544]"}}}) {
        const auto outcome =
            derive(machine_by_id("h200-sxm"), made(rows.text, rows.tensors),
                   {.reduction_threads = 128, .row_storage = RowStorage::pipelined, .top = 2});
        for (const FusePlan& plan : std::get<FusePlans>(outcome).plans) {
            const Source source = fuse_source(plan);
            EXPECT_EQ(unclean(compile_source(source)).value_or(""), "") << source.text;
        }
    }
}

// 2^31 vectors of 8: places need 64 bits, whose type has two words.
TEST(FuseCode, IndicesOfTwoWordsCompile) {
    struct Large {
        const char* text;
        std::vector<std::string> tensors;
        RowStorage row_storage;
        int alignment = 256;
    };
    for (const Large& c :
         {// 2^31 vectors of one element, and of eight.
          Large{"y = x + b", {"x:bf16[46343,46349]", "b:bf16[46349]"}, RowStorage::none},
          Large{"y = dropout(gelu(x), 0.1, 7) * c",
                {"x:bf16[50000,50000]", "c:bf16[50000,1]"},
                RowStorage::none,
                2},
          Large{"y = x > 1", {"x:fp32[2147483648]"}, RowStorage::none, 4},
          Large{"y = gelu(x + b)", {"x:bf16[3000000000,8]", "b:bf16[8]"}, RowStorage::none},
          Large{"y = x + z", {"x:fp32[30000,3,70001]", "z:fp32[30000,1,70001]"}, RowStorage::none},
          Large{"s = sum_all(x); m = max_all(x * x)", {"x:bf16[30000000001]"}, RowStorage::none},
          Large{"s = column_sum(x)", {"x:bf16[30000001,1003]"}, RowStorage::none},
          Large{"s = column_sum(x * b)", {"x:bf16[3,2147483619]", "b:bf16[2147483619]"}, RowStorage::none},
          Large{"y = layernorm(x, g, b) + r",
                {"x:bf16[65536,262144]", "r:bf16[65536,262144]", "g:bf16[262144]", "b:bf16[262144]"},
                RowStorage::pipelined},
          Large{"y = softmax(x) + r", {"x:bf16[400,700,131072]", "r:bf16[700,131072]"}, RowStorage::reload},
          Large{"y = softmax(x) + dropout(r, 0.1, 7, 0)",
                {"x:bf16[400,700,131072]", "r:bf16[700,131072]"},
                RowStorage::reload}}) {
        const auto outcome = derive(machine_by_id("h200-sxm"), made(c.text, c.tensors),
                                    {.row_storage = c.row_storage, .alignment = c.alignment, .top = 1});
        ASSERT_TRUE(std::holds_alternative<FusePlans>(outcome)) << c.text << " of " << c.tensors[0];
        const Source source = fuse_source(std::get<FusePlans>(outcome).plans[0]);
        EXPECT_THAT(source.text, testing::HasSubstr("long long")) << c.text << " of " << c.tensors[0];
        EXPECT_EQ(unclean(compile_source(source)).value_or(""), "") << source.text;
    }
}

/// Two passes of a row that read the same weights from memory.
TEST(FuseCode, WeightsThatTwoPassesReadCompileClean) {
    const auto outcome =
        derive(machine_by_id("h200-sxm"),
               made("y = softmax(x * g) + b", {"x:bf16[270,40000]", "g:bf16[40000]", "b:bf16[40000]"}),
               {.row_storage = RowStorage::pipelined, .top = 64});
    int from_memory = 0;
    for (const FusePlan& plan : std::get<FusePlans>(outcome).plans) {
        if (plan.config.early_weights) continue;
        const Source source = fuse_source(plan);
        EXPECT_EQ(unclean(compile_source(source)).value_or(""), "") << source.text;
        ++from_memory;
    }
    EXPECT_GE(from_memory, 1);
}

/// Rows off vectors that are read again, with operands of two types that are shifted into place, too.
TEST(FuseCode, OperandsOfRowsOffVectorsCompileClean) {
    const auto outcome = derive(machine_by_id("h200-sxm"),
                                made("y = layernorm(x, gamma, beta)",
                                     {"x:fp16[549,95201]", "gamma:fp32[95201]", "beta:fp16[95201]"}),
                                {.cluster = 1, .row_storage = RowStorage::reload, .top = 8});
    for (const FusePlan& plan : std::get<FusePlans>(outcome).plans)
        EXPECT_EQ(unclean(compile_source(fuse_source(plan))).value_or(""), "") << plan.config.threads;
}

/// Which vectors of which rows the threads of a launch store, by the text's own index arithmetic; -1: one
/// that does not exist.
/// How often a launch stores each vector, row after row; what it stores behind a row's end or the tensor's stands last.
struct Coverage {
    std::vector<std::uint8_t> times;
    std::int64_t outside = 0;
};

Coverage covered(const FusePlan& plan) {
    const FuseConfig& c = plan.config;
    const Program& p = plan.program;
    const fuse::FuseSizes sizes = fuse_sizes(plan);
    constexpr std::int64_t fitting = 132 * 4;
    const std::int64_t grid = fuse_grid(plan, fitting / c.cluster * c.cluster);
    const std::string text = fuse_text(plan);
    const bool guarded = text.find(">= end) break;") != std::string::npos
                         || text.find(">= vectors) break;") != std::string::npos
                         || text.find("(first >= vectors) return;") != std::string::npos;
    const bool stacked = text.find("const unsigned stack = ") != std::string::npos;
    const bool interleaved = text.find("stride = chunk * ") != std::string::npos;  // chunks in turn
    if (c.row_storage == RowStorage::shared) {  // all vectors of a warp's rows, of which those at its ends may be two warps'
        const std::int64_t rows = std::int64_t(32) / c.threads_per_row * c.rows_per_thread;
        Coverage seen{.times = std::vector<std::uint8_t>(std::size_t(p.rows * p.columns))};
        for (std::int64_t warp = 0; warp < grid * c.threads / 32; ++warp) {
            const std::int64_t begin = warp * rows * p.columns,
                               end = std::min((warp + 1) * rows, p.rows) * p.columns;
            EXPECT_LE((end + c.vector_width - 1) / c.vector_width - begin / c.vector_width,
                      std::max(gathered_vectors(p, c), (end - begin + c.vector_width - 1) / c.vector_width));
            for (std::int64_t at = begin; at < end; ++at) ++seen.times[std::size_t(at)];
        }
        return seen;
    }
    Coverage seen{.times = std::vector<std::uint8_t>((p.form == FuseForm::row ? p.rows : 1) * sizes.vectors)};
    const auto touch = [&](std::int64_t row, std::int64_t at, std::int64_t end) {
        if (at < end && at < sizes.vectors) ++seen.times[row * sizes.vectors + at];
        else if (!guarded || at < end) ++seen.outside;
    };
    const std::int64_t threads_per_row = c.threads_per_row > 0 ? c.threads_per_row : c.threads;
    for (std::int64_t cta = 0; cta < grid; ++cta) {
        if (stacked) {  // a thread's vectors lie one below the other
            const std::int64_t row = sizes.row_vectors.divisor;
            for (std::int64_t place = cta * c.threads; place < (cta + 1) * c.threads; ++place)
                for (int i = 0; i < c.vectors_per_thread; ++i)
                    touch(0, place / row * c.vectors_per_thread * row + place % row + i * row, sizes.vectors);
            continue;
        }
        if (p.form != FuseForm::row) {
            const std::int64_t piece = std::int64_t(c.threads) * c.vectors_per_thread;
            for (std::int64_t from = cta * piece; from < (c.persistent ? sizes.vectors : (cta + 1) * piece);
                 from += grid * piece)
                for (std::int64_t i = 0; i < piece; ++i) touch(0, from + i, sizes.vectors);
            continue;
        }
        const std::int64_t teams = c.rows_per_cta(), rank = cta % c.cluster;
        const bool ring = c.row_storage == RowStorage::pipelined;
        for (std::int64_t team = 0; team < teams; ++team)
            for (std::int64_t row = cta / c.cluster * teams + team; row < p.rows;
                 row += c.persistent ? grid / c.cluster * teams : p.rows) {
                const std::int64_t taken_together = threads_per_row * c.vectors_per_thread;
                std::int64_t begin = 0, end = sizes.vectors;
                if (ring || (c.cluster > 1 && c.row_storage != RowStorage::reload)) {
                    const std::int64_t part = ring ? ring_part(p, c) : taken_together;
                    begin = rank * (interleaved ? taken_together : part);
                    if (ring && !interleaved) end = std::min(end, begin + part);
                }
                const std::int64_t stride = interleaved ? taken_together * c.cluster : taken_together;
                if (c.row_storage == RowStorage::reload) {
                    for (std::int64_t first = rank * threads_per_row; first < end;
                         first += taken_together * c.cluster)
                        for (int i = 0; i < c.vectors_per_thread; ++i)
                            for (int lane = 0; lane < threads_per_row; ++lane)
                                touch(row, first + i * threads_per_row * c.cluster + lane, end);
                    continue;
                }
                for (std::int64_t from = begin; from < (ring ? end : begin + 1); from += stride)
                    for (std::int64_t i = 0; i < taken_together; ++i) touch(row, from + i, end);
            }
    }
    return seen;
}

/// Every vector is stored once, and none behind a row's or a tensor's end.
TEST(FuseCode, LaunchesCoverEveryVectorOnce) {
    RandomExpressions random(77);
    std::vector<RandomExpression> all;
    for (int i = 0; i < 60; ++i) all.push_back(random.next());
    for (const char* shape : {"3,65536", "2,65544", "140,16392", "131,256", "31,1024", "7,7"})
        all.push_back({"y = softmax(x)", {fmt::format("x:bf16[{}]", shape)}});
    for (const char* shape : {"1", "7", "2,2", "8", "4096", "3,1024", "4097"})  // less than a vector, too
        all.push_back({"y = x * 2", {fmt::format("x:bf16[{}]", shape)}});
    int launches = 0;
    for (const RandomExpression& e : all)
        for (RowStorage row_storage : row_storages) {
            const auto outcome = derive(machine_by_id("h200-sxm"), made(e.text, e.tensors),
                                        {.row_storage = row_storage, .top = 64});
            const auto* plans = std::get_if<FusePlans>(&outcome);
            if (!plans) continue;
            for (const FusePlan& plan : plans->plans) {
                if (!plan.buildable) continue;
                const Coverage seen = covered(plan);
                ASSERT_EQ(seen.outside, 0) << fuse_text(plan);
                ASSERT_EQ(std::int64_t(seen.times.size()),
                          std::count(seen.times.begin(), seen.times.end(), 1))
                    << fuse_text(plan);
                ++launches;
            }
        }
    EXPECT_GE(launches, 300);
}

TEST(FuseCode, LiteralsOfEveryKindCompile) {
    const std::vector<std::string> numbers = {"inf",   "-inf",   "1e38", "1e39",    "-1e300",
                                              "1e-45", "1e-300", "0.1",  "16777217"};
    const auto compiles = [](const ExpressionGraph& p) {
        const auto outcome = derive(machine_by_id("h200-sxm"), p, {.top = 1});
        EXPECT_NO_THROW(compile_source(fuse_source(std::get<FusePlans>(outcome).plans[0]))) << p.text;
    };
    for (const std::string& number : numbers)
        for (const char* form : {"y = where(m > 0, x, {})", "y = softmax(where(m > 0, x, {}))",
                                 "s = sum_all(where(m > 0, x, {}))"}) {
            std::string text = form;
            text.replace(text.find("{}"), 2, number);
            compiles(made(text, {"x:bf16[64,256]", "m:bf16[64,256]"}));
        }
    ExpressionBuilder f;  // the language itself has no NaN
    f.output("y", f.tensor("x", Element::bf16, {64, 256}) + std::nan(""));
    compiles(f.graph());
}

TEST(FuseCode, NamesOfRowsInRingsBreakNothing) {
    for (const char* name : {"next", "of", "row", "ahead", "places"}) {
        const std::string n = name;
        for (const FuseRequest& request :
             {FuseRequest{.row_storage = RowStorage::pipelined, .persistent = true, .top = 1},
              FuseRequest{.reduction_threads = 128, .row_storage = RowStorage::pipelined, .top = 1}}) {
            const auto outcome =
                derive(machine_by_id("h200-sxm"),
                       made("y = layernorm(x) + r * " + n,
                            {"x:bf16[1024,65536]", "r:bf16[1024,65536]", n + ":bf16[1024,1]"}),
                       request);
            EXPECT_NO_THROW(compile_source(fuse_source(std::get<FusePlans>(outcome).plans[0]))) << name;
        }
    }
}

TEST(FuseCode, NamesOfAPersonNeverBreakTheText) {
    for (const char* name : {"int", "asm", "float", "exp", "threadIdx", "row", "t", "size", "Pack", "vectors",
                             "k", "i", "NULL", "infinity", "main", "bf16", "and", "x__y"}) {
        const std::string text = fmt::format("out = softmax({} * 2); template = {} + 1", name, name);
        const auto outcome =
            derive(machine_by_id("h200-sxm"), made(text, {fmt::format("{}:bf16[64,64]", name)}), {.top = 1});
        EXPECT_NO_THROW(compile_source(fuse_source(std::get<FusePlans>(outcome).plans[0]))) << name;
    }
}

// No name of a generated text's own ends as the names of values do ("mean_row", "x_in"), whoever is called "next" or
// "of": numbers of rows and columns in rings that read ahead, reduce in warps of their own and keep weights, and in every other form.
TEST(FuseCode, GeneratedNamesCannotMeetThoseOfValues) {
    // No call, no member.
    const std::regex name(
        R"((?:^|[^.:\w])([A-Za-z]\w*)_(?:all|row|k|in|out|key|keep|pack|next|values|result)\b(?![(<]))");
    const auto check = [&](const std::string& text, const std::vector<std::string>& tensors,
                           const FuseRequest& request) {
        const auto outcome = derive(machine_by_id("h200-sxm"), made(text, tensors), request);
        ASSERT_TRUE(std::holds_alternative<FusePlans>(outcome)) << text;
        const FusePlan& plan = std::get<FusePlans>(outcome).plans[0];
        const Source source = fuse_source(plan);
        for (std::sregex_iterator at(source.text.begin(), source.text.end(), name), end; at != end; ++at) {
            const std::string base = (*at)[1];
            const bool of_value =
                base.find("qq") != std::string::npos || base.find_first_of("0123456789") != std::string::npos;
            EXPECT_TRUE(of_value) << at->str() << " in\n" << source.text;
        }
    };
    const std::vector<std::string> ring = {"xqq:bf16[1024,65536]", "rqq:bf16[1024,65536]", "gqq:bf16[65536]",
                                           "bqq:bf16[65536]", "nqq:bf16[1024,1]"};
    for (const FuseRequest& request :
         {FuseRequest{.row_storage = RowStorage::pipelined, .persistent = true, .top = 1},
          FuseRequest{.reduction_threads = 128, .row_storage = RowStorage::pipelined, .top = 1}})
        check("yqq = dropout(layernorm(xqq, gqq, bqq) + rqq * nqq, 0.1)", ring, request);
    check("yqq = softmax(dropout(xqq * gqq, 0.1) + nqq)", {"xqq:bf16[10000,15]", "gqq:bf16[15]", "nqq:bf16[10000,1]"},
          {.row_storage = RowStorage::shared, .top = 1});
    for (const RowStorage row_storage : {RowStorage::registers, RowStorage::reload})
        check("yqq = dropout(layernorm(xqq, gqq, bqq) + rqq * nqq, 0.1)",
              {"xqq:bf16[1024,4096]", "rqq:bf16[1024,4096]", "gqq:bf16[4096]", "bqq:bf16[4096]",
               "nqq:bf16[1024,1]"},
              {.row_storage = row_storage, .top = 1});
    check("yqq = layernorm(xqq, gqq, bqq) + rqq",
          {"xqq:bf16[16,1048576]", "rqq:bf16[16,1048576]", "gqq:bf16[1048576]", "bqq:bf16[1048576]"},
          {.top = 1});
    check("yqq = dropout(xqq * bqq, 0.1) + nqq", {"xqq:bf16[64,4096]", "bqq:bf16[4096]", "nqq:bf16[64,1]"},
          {.top = 1});
    check("sqq = sum_all(xqq * bqq)", {"xqq:bf16[64,4096]", "bqq:bf16[4096]"}, {.top = 1});
}

TEST(FuseRandom, AnyExpressionIsReadCountedPlannedAndGenerated) {
    RandomExpressions random(20261121);
    int planned = 0, compiled = 0;
    for (int i = 0; i < 4000; ++i) {
        const RandomExpression e = random.next();
        const ExpressionGraph p = made(e.text, e.tensors);
        const auto outcome = derive(machine_by_id(i % 2 ? "h200-sxm" : "a100-80-sxm"), p, {.top = 1});
        const auto* plans = std::get_if<FusePlans>(&outcome);
        if (!plans) continue;
        ++planned;
        ASSERT_GE(*plans->unfused.moved_bytes, *plans->fused.moved_bytes) << e.text;
        const FusePlan& plan = plans->plans[0];
        ASSERT_TRUE(plan.buildable || !plan.why_not.empty());
        if (!plan.buildable) continue;
        const Source source = fuse_source(plan);
        if (!compiles_this(std::size_t(i), 80, 3)) continue;
        const Compiled code = compile_source(source);
        EXPECT_EQ(unclean(code).value_or(""), "") << e.text;
        ++compiled;
    }
    EXPECT_GE(planned, 2800);
    EXPECT_GE(compiled, test_all() ? 25 : 7);
}

}  // namespace
}  // namespace rooftile
