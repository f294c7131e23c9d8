#include "rooftile/fuse/suite.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/fuse/operation.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;

constexpr const char* head = "schema = \"rooftile/suite/1\"\nname = \"s\"\nop = \"fuse\"\n";
constexpr const char* group =
    "[[group]]\nname = \"add\"\nexpression = \"y = x + b\"\ntensors = [\"x:TYPE[ROWS,COLUMNS]\", "
    "\"b:TYPE[COLUMNS]\"]\ntypes = [\"bf16\", \"fp32\"]\nshapes = [[2, 8], [4, 16]]\n";

std::string refusal(const std::string& text) {
    try {
        fuse_suite(text, "s.toml");
    } catch (const RequestError& error) { return error.what(); }
    return "";
}

std::string with(std::string text, std::string_view what, std::string_view by) {
    return text.replace(text.find(what), what.size(), by);
}

TEST(FuseSuite, GroupsTimesTypesTimesShapesInTheFilesOrder) {
    const Suite suite = fuse_suite(std::string(head) + group, "s.toml");
    EXPECT_EQ(suite.name, "s");
    ASSERT_EQ(suite.problems.size(), 4u);
    EXPECT_EQ(suite.problems[1].layers[0], (SuiteLayer{"add", "4x16 bf16"}));
    const auto& p = suite.problems[3].problem.own.as<ExpressionGraph>();
    EXPECT_EQ(p.nodes[std::size_t(p.inputs[0])].shape, (Shape{4, 16}));
    EXPECT_EQ(p.nodes[std::size_t(p.inputs[1])].shape, (Shape{16}));
    EXPECT_EQ(p.nodes[std::size_t(p.inputs[1])].element, Element::fp32);
    EXPECT_EQ(filtered(suite, "add 4x16").problems.size(), 2u);
    EXPECT_EQ(filtered(suite, "fp32").problems.size(), 2u);
    EXPECT_TRUE(filtered(suite, "z").problems.empty());
}

TEST(FuseSuite, ProblemsWithoutANameAreNumberedByTheirPlaceInTheFile) {
    const std::string tensor = "tensor = [\"x:bf16[8,8]\"]\n";
    std::string sum = "x";  // longer than a name may be
    for (int i = 0; i < 100; ++i) sum += " + x";
    const Suite suite = fuse_suite(std::string(head) + "[[problem]]\nexpression = \"y = gelu(x)\"\n" + tensor
                                       + "[[problem]]\nexpression = \"y = gelu(x)\"\n" + tensor
                                       + "[[problem]]\nexpression = \"y = " + sum + "\"\n" + tensor,
                                   "s.toml");
    ASSERT_EQ(suite.problems.size(), 2u);
    EXPECT_EQ(suite.problems[0].layers, (std::vector<SuiteLayer>{{"s", "1"}, {"s", "2"}}));
    EXPECT_EQ(suite.problems[1].layers, (std::vector<SuiteLayer>{{"s", "3"}}));
}

TEST(FuseSuite, DrawnSuitesAreOfAnyUsefulLength) {
    std::string text(head);
    for (int i = 1; i <= 1000; ++i)
        text += "[[problem]]\nexpression = \"y = gelu(x)\"\ntensor = [\"x:bf16[" + std::to_string(i) + ",4096]\"]\n";
    ASSERT_GT(text.size(), machine_limits.bytes);
    EXPECT_EQ(fuse_suite(text, "s.toml").problems.size(), 1000u);
}

TEST(FuseSuite, TheShippedOneHoldsWhatItSays) {
    const Suite suite = read_suite(fuse_operation(), ROOFTILE_SOURCE_DIR "/bench/suites/memory.toml");
    // 4 groups x 7 shapes; sums and maxima at 4 shapes; 4 point-wise groups in 2 types.
    EXPECT_EQ(suite.problems.size(), 4u * 7 + 2 * 4 + 4 * 2);
    std::set<std::string> groups;
    for (const SuiteProblem& p : suite.problems) groups.insert(p.layers.front().model);
    EXPECT_EQ(groups.size(), 10u);
    const Suite ten = filtered(suite, "chain_of_ten 16384x16384 fp32");
    ASSERT_EQ(ten.problems.size(), 1u);
    int operations = 0;
    for (const GraphNode& n : ten.problems[0].problem.own.as<ExpressionGraph>().nodes)
        operations += n.op != Op::input && n.op != Op::number;
    EXPECT_EQ(operations, 10);
}

TEST(FuseSuite, RefusalsNameFilePlaceAndWhatIsAccepted) {
    const std::string all = std::string(head) + group;
    EXPECT_EQ(refusal(all), "");
    EXPECT_THAT(refusal(head), HasSubstr("[[group]]"));
    EXPECT_THAT(refusal(with(all, "op = \"fuse\"", "op = \"x\"")), HasSubstr("s.toml:3: op: accepted: \""));
    EXPECT_THAT(refusal(with(all, "x + b", "x + c")), HasSubstr("s.toml:4: group:"));
    EXPECT_THAT(refusal(with(all, "[4, 16]", "[4]")), HasSubstr("[[ROWS, COLUMNS], ...]"));
    EXPECT_THAT(refusal(with(all, "[4, 16]", "[2, 8]")), HasSubstr("add 2x8 bf16 is there twice"));
    EXPECT_THAT(refusal(with(all, "\"fp32\"", "\"fp64\"")), HasSubstr("s.toml:4: group:"));
    EXPECT_THAT(refusal(with(all, "types =", "kinds =")), HasSubstr("unknown key; accepted:"));
}

}  // namespace
}  // namespace rooftile
