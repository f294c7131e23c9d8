// Files of drawn plans, as nvcc takes them.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "rooftile/core/operation.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/emit/emit.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/runtime/child.hpp"
#include "tests/compile/nvcc.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

namespace fs = std::filesystem;

struct Drawn {
    std::shared_ptr<const Machine> machine;
    PlanSet plans;
    const Plan* plan = nullptr;
};

/// A plan of the `i`-th operation in turn; of an older GPU now and then, where the operation has kernels for one.
Drawn draw(std::size_t i) {
    Random random(test_seed() * 1000003 + i);
    // The last one's plans have several kernels, which take seconds each: of few files one is its.
    const std::size_t all = operations().size();
    const Operation& operation = *operations()[i < all || test_all() ? i % all : i % (all - 1)];
    for (int tries = 0; tries < 50; ++tries) {
        Drawn out;
        out.machine =
            std::make_shared<const Machine>(machine_by_id(i / operations().size() % 3 == 2 && tries < 20 ? "a100-80-sxm" : "h100-sxm"));
        out.plans = operation.derive(out.machine, operation.draw(random, {}), operation.request(Given(), {.top = 2}));
        const auto first = std::ranges::find_if(out.plans.plans, &Plan::buildable);
        if (first == out.plans.plans.end()) continue;
        out.plan = &*first;
        return out;
    }
    throw std::runtime_error("no plan is drawn");
}

int registers_in(const std::string& log) {
    int most = 0;
    const std::regex used("Used (\\d+) registers");
    for (auto at = std::sregex_iterator(log.begin(), log.end(), used); at != std::sregex_iterator(); ++at)
        most = std::max(most, std::stoi((*at)[1]));
    return most;
}

class EmittedFiles : public testing::TestWithParam<std::size_t> {};
// Some 3 s each, most of them nvcc's.
INSTANTIATE_TEST_SUITE_P(Drawn, EmittedFiles, testing::Range(std::size_t{0}, test_count(12, 200)));

TEST_P(EmittedFiles, AFileOfADrawnPlanIsOneKernelThatNvccTakesAsItLies) {
    const Drawn drawn = draw(GetParam());
    SCOPED_TRACE(fmt::format("ROOFTILE_SAMPLE_SEED={} {} {}: {}", test_seed(), drawn.plan->operation->name(),
                             drawn.plan->operation->short_name(drawn.plan->problem), drawn.plan->operation->label(*drawn.plan)));
    const EmittedFile file = emit_file(*drawn.machine, drawn.plans, *drawn.plan);
    EXPECT_TRUE(file.is_reduced) << "another kernel came of it without its branches";
    EXPECT_EQ(file.text.find("#include \""), std::string::npos);
    EXPECT_EQ(file.text.find("#pragma once"), std::string::npos);
    EXPECT_EQ(file.text.find("static_assert"), std::string::npos);
    std::set<std::string> includes;
    std::istringstream lines(file.text);
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with("#include") && line != "#include <cmath>") {
            EXPECT_TRUE(includes.insert(line).second) << line;
        }

    if (nvcc().empty()) GTEST_SKIP() << "skipped: no nvcc";
    const Folder folder;
    const std::string source = (folder.path() / file.name).string();
    std::ofstream(source) << file.text;
    const ChildOutcome made =
        run_child({nvcc(), "-std=c++20", "-arch=" + file.arch, "-Xptxas", "-v", "-c", source, "-o", (folder.path() / "x.o").string()});
    ASSERT_EQ(made.code, 0) << made.out << made.err;
    // But of a name that a generated text itself leaves unused.
    EXPECT_FALSE(std::regex_search(made.err, std::regex("warning #(?!177)"))) << made.err;
    EXPECT_FALSE(std::regex_search(made.err, std::regex("[1-9]\\d* bytes spill"))) << made.err;
    EXPECT_LE(registers_in(made.err), file.registers + 2);  // its own ptxas may do with fewer: 64 for 67 of one of dropout
}

TEST(EmittedFile, TheProgramWithItsCheckCompiles) {
    if (nvcc().empty()) GTEST_SKIP() << "skipped: no nvcc";
    const Drawn drawn = draw(test_seed());
    const EmittedFile file = emit_file(*drawn.machine, drawn.plans, *drawn.plan);
    const Folder folder;
    const std::string source = (folder.path() / file.name).string();
    std::ofstream(source) << file.text;
    const ChildOutcome made =
        run_child({nvcc(), "-std=c++20", "-arch=" + file.arch, "-DROOFTILE_EMIT_MAIN", source, "-o", (folder.path() / "x").string()});
    EXPECT_EQ(made.code, 0) << drawn.plan->operation->name() << " " << drawn.plan->operation->short_name(drawn.plan->problem) << "\n"
                            << made.out << made.err;
}

// Without what they are packed for they would be read as NaN. Few rows are unpacked in registers, many by a launch in front.
TEST(EmittedFile, PackedWeightsHaveTheirHeader) {
    if (nvcc().empty()) GTEST_SKIP() << "skipped: no nvcc";
    const Operation& operation = *find_operation("gemm");
    for (const auto& [id, m, types] : {std::tuple{"h200-sxm", "16", "bf16,int4,bf16"}, {"h200-sxm", "16", "fp8_e4m3,mxfp4,bf16"}, {"h200-sxm", "300", "bf16,nf4,bf16"},
                                       {"h200-sxm", "4096", "bf16,int4,bf16"}, {"a100-80-sxm", "300", "fp8_e5m2,int4,bf16"}}) {
        const auto machine = std::make_shared<const Machine>(machine_by_id(id));
        Given given;
        for (const auto& [key, value] : {std::pair{"m", m}, {"n", "4096"}, {"k", "4096"}, {"types", types}}) given.add(key, value);
        const Problem problem = operation.problem(given);
        const PlanSet plans = operation.derive(machine, problem, operation.request(Given(), {.top = 1}));
        ASSERT_FALSE(plans.plans.empty());
        const EmittedFile file = emit_file(*machine, plans, plans.plans.front());
        EXPECT_NE(file.text.find(">> 8 * i & 255 : i < 8 ? 4096 >> 8 * (i - 4) & 255"), std::string::npos);
        const Folder folder;
        const std::string source = (folder.path() / file.name).string();
        std::ofstream(source) << file.text;
        const ChildOutcome made =
            run_child({nvcc(), "-std=c++20", "-arch=" + file.arch, "-DROOFTILE_EMIT_MAIN", source, "-o", (folder.path() / "x").string()});
        EXPECT_EQ(made.code, 0) << m << " " << types << "\n" << made.out << made.err;
    }
}

TEST(EmittedFile, APlanThatCannotBeBuiltIsRefused) {
    const Drawn drawn = draw(0);
    Plan plan = *drawn.plan;
    plan.buildable = false, plan.why_not = "a test says so";
    EXPECT_THROW(emit_file(*drawn.machine, drawn.plans, plan), RequestError);
}

}  // namespace
}  // namespace rooftile
