// What kernels of rows tell L2 about their lines, and which places of a row they ask DRAM for together.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rooftile/fuse/device/kernel.hpp"
#include "rooftile/fuse/device/source.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/expression/expression.hpp"

namespace rooftile {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Source source_of(const std::string& text, const std::vector<std::string>& tensors, FuseRequest request) {
    std::vector<TensorDeclaration> declared;
    for (const std::string& t : tensors) declared.push_back(tensor_declaration(t));
    request.top = 1;
    const auto outcome = derive(machine_by_id("h200-sxm"), expression_graph(text, declared), request);
    return fuse_source(std::get<FusePlans>(outcome).plans.at(0));
}

constexpr const char* chain = "y = gelu(dropout(layernorm(x, g, b) + r, 0.1, 7))";
const std::vector<std::string> chain_tensors = {"x:bf16[1024,262144]", "r:bf16[1024,262144]",
                                                "g:bf16[262144]", "b:bf16[262144]"};
constexpr const char* last = "CachePolicy::evict_last";

/// L2 gives up what a kernel writes before what it reads, but where it only reads.
TEST(FusePolicies, RowsThatAreReadGoLastWhereOthersAreWritten) {
    for (const RowStorage row_storage : {RowStorage::registers, RowStorage::reload}) {
        const std::vector<std::string> x = {"x:bf16[4096,4096]"};
        EXPECT_THAT(source_of("y = softmax(x)", x, {.row_storage = row_storage}).text, HasSubstr(last))
            << int(row_storage);
        EXPECT_THAT(source_of("y = sum(x)", x, {.row_storage = row_storage}).text, Not(HasSubstr(last)))
            << int(row_storage);
    }
    const Source ring =
        source_of("y = softmax(x)", {"x:bf16[1024,262144]"}, {.row_storage = RowStorage::pipelined});
    EXPECT_THAT(ring.text, HasSubstr("fetch<CachePolicy::evict_last>(x_staged"));
    EXPECT_THAT(compile_to_ptx(ring), HasSubstr("complete_tx::bytes.L2::cache_hint"));
    EXPECT_THAT(source_of("y = x * 2", {"x:bf16[4096,4096]"}, {}).text, HasSubstr(last));
    // A result of one byte for sixteen that are read is little.
    EXPECT_THAT(
        source_of("y = a + b + c + d > 0",
                  {"a:fp32[4096,4096]", "b:fp32[4096,4096]", "c:fp32[4096,4096]", "d:fp32[4096,4096]"}, {})
            .text,
        Not(HasSubstr(last)));
    EXPECT_THAT(source_of("y = sum_all(x)", {"x:bf16[4096,4096]"}, {}).text, Not(HasSubstr(last)));
}

/// Rows that wait in L2 for the last pass would go before what that pass writes.
TEST(FusePolicies, ResultsGoFirstWhereRowsWaitInL2) {
    const std::string with = source_of(chain, chain_tensors, {.row_storage = RowStorage::pipelined}).text;
    EXPECT_THAT(with, AllOf(HasSubstr("bring_to_l2<vector_width>(t.r_in, start"),
                            HasSubstr("store_streamed(t.y_out")));
    EXPECT_THAT(with, AllOf(HasSubstr("load(r_pack"), Not(HasSubstr("evict_last>(r_pack")),
                            Not(HasSubstr("evict_last>(g_kept"))));
    const std::string without =
        source_of("y = layernorm(x, g, b)", {"x:bf16[1024,262144]", "g:bf16[262144]", "b:bf16[262144]"},
                  {.row_storage = RowStorage::pipelined})
            .text;
    EXPECT_THAT(without, AllOf(Not(HasSubstr("store_streamed(")), HasSubstr("store(t.y_out")));
}

/// The CTAs of a row take its chunks in turn; a row that is no whole chunks of all is parted evenly.
TEST(FuseRings, ClustersAskForNeighbouringChunks) {
    const auto text = [](const char* columns, int cluster) {
        return source_of("y = layernorm(x, g, b)",
                         {fmt::format("x:bf16[512,{}]", columns), fmt::format("g:bf16[{}]", columns),
                          fmt::format("b:bf16[{}]", columns)},
                         {.threads_per_row = 512, .cluster = cluster, .row_storage = RowStorage::pipelined})
            .text;
    };
    const std::string whole = text("262144", 16);
    EXPECT_THAT(whole, AllOf(HasSubstr("constexpr unsigned stride = chunk * 16;"),
                             HasSubstr("mine = part, begin = team.part_begin(chunk), end = vectors;")));
    // Weights lie in shared memory chunk behind chunk.
    EXPECT_THAT(whole, AllOf(HasSubstr("fetch(g_kept + (from - begin) / (stride / chunk), t.g_in, from,"),
                             HasSubstr("waiting(g_kept + (from - begin) / (stride / chunk) + ")));
    const testing::Matcher<std::string> parted =
        AllOf(HasSubstr("constexpr unsigned stride = chunk;"),
              HasSubstr("begin = team.part_begin(part), end = begin + mine;"));
    EXPECT_THAT(text("262152", 16), parted);
    EXPECT_THAT(text("65536", 1), parted);
}

/// What runs hardly ever is short: its compile time counts in every kernel.
TEST(FuseRings, TheExactPassTakesAVectorAtATime) {
    const std::string text = source_of(chain, chain_tensors, {.row_storage = RowStorage::pipelined}).text;
    const size_t exact = text.find("slots = begun;\n"), cancelled = text.find(".cancelled()) break;");
    ASSERT_NE(exact, std::string::npos);
    ASSERT_NE(cancelled, std::string::npos);
    const std::string pass = text.substr(exact, cancelled - exact);
    EXPECT_THAT(pass, AllOf(HasSubstr("RunningMoments"), HasSubstr("#pragma unroll 1\n"),
                            HasSubstr("const Pack<bf16, vector_width> x_pack = waiting(x_staged"),
                            Not(HasSubstr("arrived"))));
    // Both ways reduce by the same text.
    ASSERT_NE(text.find("within_cta"), std::string::npos);
    EXPECT_EQ(text.find("within_cta"), text.rfind("within_cta"));
}

}  // namespace
}  // namespace rooftile
