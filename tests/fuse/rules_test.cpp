// Rules of the search: each leaves something out, is documented, and changes nothing but what is left out.
#include "rooftile/fuse/rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "rooftile/expression/expression.hpp"
#include "rooftile/fuse/plan.hpp"
#include "rooftile/fuse/search.hpp"
#include "rooftile/machine/registry.hpp"

namespace rooftile {
namespace {

constexpr const char* chain = "y = gelu(layernorm(x) * g + r)";

/// What a search for the best of a problem came to.
FuseSearch searched(const Machine& machine, const char* text, const std::string& shape, FuseRequest request) {
    std::vector<TensorDeclaration> declared = {tensor_declaration("x:bf16" + shape)};
    if (std::string_view(text) == chain)
        for (const std::string& tensor : {"r:bf16" + shape, "g:bf16[" + shape.substr(shape.find(',') + 1)})
            declared.push_back(tensor_declaration(tensor));
    const ExpressionGraph graph = expression_graph(text, declared);
    std::vector<std::string> unknown;
    return search_launches(machine, fuse_hardware(machine, unknown), graph,
                           std::get<Program>(fuse_program(graph)), request);
}

constexpr const char* texts[] = {"y = gelu(x)", "y = sum_all(x)", "y = sum(x)", "y = softmax(x)",
                                 "y = softmax(gelu(tanh(gelu(x))))", chain};
constexpr const char* shapes[] = {"[65536,8]",    "[32768,1024]", "[7,1009]",
                                  "[512,1792]",
                                  "[16384,4096]", "[8192,16384]", "[2048,65536]",
                                  "[16,1048576]", "[128,262144]", "[3,4194304]"};

std::int64_t candidates(const FuseSearch& search) {
    return std::int64_t(search.kept.size()) + search.rejected.count();
}

TEST(FuseRules, TheSpaceDoesNotDependOnThem) {
    for (const char* id : {"h200-sxm", "b200", "a100-80-sxm"})
        for (const char* text : texts)
            for (const char* shape : shapes) {
                const Machine machine = machine_by_id(id);
                const FuseSearch some = searched(machine, text, shape, {.top = 1 << 20});
                const FuseSearch all = searched(machine, text, shape, {.top = 1 << 20, .exhaustive = true});
                EXPECT_EQ(candidates(some), candidates(all)) << id << " " << text << " " << shape;
                EXPECT_TRUE(all.rejected.by_rule.empty());
                // What rules leave is among all.
                std::size_t found = 0;
                for (const FuseCandidate& one : some.kept)
                    found += std::size_t(
                        std::any_of(all.kept.begin(), all.kept.end(), [&](const FuseCandidate& c) {
                            return c.config == one.config && c.flow.time.seconds == one.flow.time.seconds;
                        }));
                EXPECT_EQ(found, some.kept.size()) << id << " " << text << " " << shape;
            }
}

TEST(FuseRules, EachLeavesSomethingOut) {
    std::map<std::string_view, std::int64_t> left_out;
    for (const char* text : texts)
        for (const char* shape : shapes)
            for (const FuseRequest& request :
                 {FuseRequest{}, FuseRequest{.row_storage = RowStorage::pipelined}})
                for (const LeftOutByRule& left :
                     searched(machine_by_id("h200-sxm"), text, shape, request).rejected.by_rule)
                    left_out[left.rule->name] += left.count;
    for (const Rule* rule : fuse_rules::all) EXPECT_GT(left_out[rule->name], 0) << rule->name;
    EXPECT_EQ(left_out.size(), std::size(fuse_rules::all));
}

// Point-wise: three numbers of threads, four of vectors. Four and eight vectors are left out.
TEST(FuseRules, AreCountedOneByOne) {
    const FuseSearch s = searched(machine_by_id("h200-sxm"), "y = gelu(x)", "[16384,4096]", {.top = 1 << 20});
    EXPECT_EQ(candidates(s), 3 * 4);
    std::map<std::string_view, std::int64_t> left_out;
    for (const LeftOutByRule& left : s.rejected.by_rule) left_out[left.rule->name] = left.count;
    EXPECT_EQ(left_out["pointwise_vectors"], 3 * 2);
    EXPECT_EQ(s.kept.size(), 3u * 2);
}

TEST(FuseRules, WhatTheyLeaveOutIsNamedWhereNothingFits) {
    const std::vector<TensorDeclaration> x = {tensor_declaration("x:bf16[32768,8]")};
    const ExpressionGraph graph = expression_graph("y = softmax(x)", x);
    FuseRequest request{.row_storage = RowStorage::pipelined};
    const auto none = derive(machine_by_id("h200-sxm"), graph, request);
    EXPECT_THAT(std::get<FuseInfeasible>(none).message, testing::HasSubstr("--exhaustive"));
}

TEST(FuseRules, AreDocumented) {
    std::ifstream file(ROOFTILE_SOURCE_DIR "/docs/rules.md");
    std::stringstream text;
    text << file.rdbuf();
    std::set<std::string_view> names;
    for (const Rule* rule : fuse_rules::all) {
        EXPECT_TRUE(names.insert(rule->name).second) << rule->name;
        const std::string row = "| `" + std::string(rule->name) + "` | " + std::string(rule->why) + " |\n";
        EXPECT_NE(text.str().find(row), std::string::npos) << "docs/rules.md lacks the row\n" << row;
    }
}

}  // namespace
}  // namespace rooftile
