#include "rooftile/gemm/suite.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rooftile/core/random.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/operation.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;

constexpr const char* head = "schema = \"rooftile/suite/1\"\nname = \"s\"\nm = [1, 64]\n";

Suite parsed_suite(const std::string& rest) { return gemm_suite(head + rest, "s.toml"); }

const GemmProblem& gemm(const Suite& suite, std::size_t i) { return suite.problems[i].problem.own.as<GemmProblem>(); }

std::string refusal(const std::string& text) {
    try {
        gemm_suite(text, "s.toml");
    } catch (const RequestError& error) { return error.what(); }
    return "";
}

TEST(Suite, LayersTimesSizesInTheFilesOrder) {
    const Suite suite = parsed_suite(
        "[[model]]\nname = \"a\"\nsource = \"x\"\nlayers = [{name = \"up\", n = 8, k = 16}, {name = "
        "\"down\", "
        "n = 16, k = 8}]\n[[model]]\nname = \"sq\"\nsource = \"x\"\nsquares = [32]\n");
    ASSERT_EQ(suite.problems.size(), 5u);
    EXPECT_EQ(gemm(suite, 1).m, 64);
    EXPECT_EQ(gemm(suite, 1).n, 8);
    EXPECT_EQ(gemm(suite, 1).k, 16);
    EXPECT_EQ(gemm(suite, 1).lda, 16);
    EXPECT_EQ(gemm(suite, 1).ldb, 16);
    EXPECT_EQ(gemm(suite, 1).ldc, 8);
    EXPECT_EQ(suite.problems[2].layers[0], (SuiteLayer{"a", "down"}));
    EXPECT_EQ(suite.problems[4].layers[0], (SuiteLayer{"sq", "square"}));
}

TEST(Suite, NumbersMayBeNumbersOrTexts) {
    Random random(8);
    for (int i = 0; i < 50; ++i) {
        const std::string alpha = std::to_string(random.uniform(-4, 4)), m = std::to_string(random.whole(1, 100000));
        const auto of = [&](const char* quote) {
            return parsed_suite(fmt::format("[[problem]]\nm = {0}{1}{0}\nn = 64\nk = 64\nalpha = {0}{2}{0}\n", quote, m, alpha));
        };
        EXPECT_EQ(gemm(of(""), 0), gemm(of("\""), 0));
        EXPECT_EQ(gemm(of(""), 0).alpha, std::stod(alpha));
    }
    const std::string rest = "[[problem]]\nm = 64\nn = 64\nk = 64\nalpha = ";
    for (const char* wrong : {"inf", "-inf", "nan", "true", "1979-05-27"})
        EXPECT_THAT(refusal(head + rest + wrong + "\n"), HasSubstr("s.toml:8: problem.alpha: accepted: a number")) << wrong;
    EXPECT_THAT(refusal(head + rest + "1\nbatch = 2.5\n"), HasSubstr("batch 2.5"));
}

TEST(Suite, EqualProblemsAreOneWithAllTheirNames) {
    const Suite suite = parsed_suite(
        "[[model]]\nname = \"a\"\nsource = \"x\"\nlayers = [{name = \"o\", n = 64, k = 64}]\n"
        "[[model]]\nname = \"b\"\nsource = \"x\"\nm = [64]\nlayers = [{name = \"q\", n = 64, k = 64}]\n"
        "[[model]]\nname = \"sq\"\nsource = \"x\"\nsquares = [64, 64]\n");
    ASSERT_EQ(suite.problems.size(), 2u);
    EXPECT_THAT(suite.problems[1].layers,
                testing::ElementsAre(SuiteLayer{"a", "o"}, SuiteLayer{"b", "q"}, SuiteLayer{"sq", "square"}));
}

TEST(Suite, AProblemHasTheMostRoundsThatAModelNames) {
    const std::string first =
        "[[model]]\nname = \"a\"\nsource = \"x\"\nlayers = [{name = \"o\", n = 64, k = 64}]\n";
    const std::string squares = "[[model]]\nname = \"sq\"\nsource = \"x\"\nsquares = [64, 32]\nrounds = 16\n";
    for (const Suite& suite : {parsed_suite(first + squares), parsed_suite(squares + first)})
        for (const SuiteProblem& p : suite.problems)
            EXPECT_EQ(p.rounds, p.layers.front().model == "sq" || p.layers.size() > 1 ? 16 : 0)
                << name_of(p);
    EXPECT_THAT(refusal("schema = \"rooftile/suite/1\"\nname = \"x\"\n[[model]]\nname = \"sq\"\nsource = "
                        "\"x\"\nsquares = [64]\nrounds = 1001\n"),
                HasSubstr("1 to 1000"));
}

TEST(Suite, FiltersByWhatItIsCalled) {
    const Suite suite = parsed_suite(
        "[[model]]\nname = \"a\"\nsource = \"x\"\nlayers = [{name = \"up\", n = 8, k = 16}, {name = "
        "\"down\", "
        "n = 16, k = 8}]\n");
    EXPECT_EQ(filtered(suite, "").problems.size(), 4u);
    EXPECT_EQ(filtered(suite, "a down").problems.size(), 2u);
    EXPECT_EQ(filtered(suite, "64x8x16").problems.size(), 1u);
    EXPECT_TRUE(filtered(suite, "z").problems.empty());
}

TEST(Suite, TheShippedOneHoldsWhatItSays) {
    const Suite suite = read_suite(gemm_operation(), ROOFTILE_SOURCE_DIR "/bench/suites/gemm.toml");
    // 18 layers x 11 sizes + 6 squares; 4096^3 is Llama-3-8B's o, 8192^3 Llama-3-70B's.
    EXPECT_EQ(suite.problems.size(), 202u);
    int shared = 0;
    for (const SuiteProblem& p : suite.problems) shared += p.layers.size() > 1;
    EXPECT_EQ(shared, 2);
    EXPECT_EQ(filtered(suite, "DeepSeek-V3 expert_down 16384x7168x2048").problems.size(), 1u);
    EXPECT_EQ(filtered(suite, "Llama-3-70B gate_up").problems.size(), 11u);
}

TEST(Suite, RefusalsNameFilePlaceAndWhatIsAccepted) {
    const std::string layer = "[[model]]\nname = \"a\"\nsource = \"x\"\n";
    EXPECT_THAT(refusal("name = \"s\"\n"), HasSubstr("s.toml:1: schema: missing"));
    EXPECT_THAT(refusal("schema = \"rooftile/suite/2\"\nname = \"s\"\n"),
                HasSubstr("accepted: \"rooftile/suite/1\""));
    EXPECT_THAT(refusal(head), HasSubstr("[[model]]"));
    EXPECT_THAT(refusal(head + layer), HasSubstr("either layers or squares"));
    EXPECT_THAT(refusal(head + layer + "layers = [{name = \"o\", n = 0, k = 8}]\n"),
                HasSubstr("s.toml:7: n:"));
    EXPECT_THAT(refusal(head + layer + "layers = [{name = \"o\", n = 8}]\n"), HasSubstr("k: missing"));
    EXPECT_THAT(refusal(head + layer + "layers = [{name = \"o\", n = 8, k = 8, j = 1}]\n"),
                HasSubstr("model.layers.j: unknown key"));
    EXPECT_THAT(refusal(head + layer + "squares = [\"64\"]\n"), HasSubstr("squares: accepted"));
    EXPECT_THAT(refusal(head + std::string("typo = 1\n") + layer + "squares = [64]\n"), HasSubstr("typo"));
    EXPECT_THAT(refusal(head + layer + "squares = [2147483647]\n"), HasSubstr("2 m n k"));
    EXPECT_THAT(refusal("schema = [[["), HasSubstr("not valid TOML"));
}

}  // namespace
}  // namespace rooftile
