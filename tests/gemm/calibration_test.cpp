// How many numbers of the time model were settled by runs of our own kernels: at most ten for each kernel.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/plan.hpp"
#include "rooftile/machine/registry.hpp"
#include "tests/calibrated_keys.hpp"

namespace rooftile {
namespace {

constexpr std::size_t most_calibrated = 10;

/// Problems that meet every term between them: small, deep, wide, off the line, stored by element, two tiles in turn.
std::vector<std::pair<GemmProblem, GemmRequest>> asked(const GemmKernel& kernel) {
    GemmProblem off = gemm_problem(2048, 2048, 2048), odd = gemm_problem(2047, 2045, 2048);
    off.lda = 2056, off.ldc = 2056;
    std::vector<std::pair<GemmProblem, GemmRequest>> all;
    for (const GemmProblem& p : {gemm_problem(16, 2048, 2048), gemm_problem(16, 4096, 8192), gemm_problem(64, 8192, 8192),
                                 gemm_problem(256, 3072, 16384), gemm_problem(8192, 8192, 8192), gemm_problem(16384, 16384, 8192), off, odd})
        for (const bool programmatic : {true, false}) {
            GemmRequest request;
            request.kernel = &kernel;
            if (kernel.name() == "sm90_gemm") request.programmatic_launch = programmatic;
            all.emplace_back(p, request);
        }
    return all;
}

std::set<std::string> calibrated_keys(const Machine& machine, const GemmKernel& kernel) {
    const auto all = asked(kernel);
    // What comes of one: of every plan its time and its traffic.
    return calibrated_keys(machine, all.size(), [&](const Machine& m, std::size_t i) {
        std::ostringstream text;
        text.precision(17);
        const auto result = derive(m, all[i].first, all[i].second);
        if (const auto* plans = std::get_if<Plans>(&result))
            for (const GemmPlan& plan : plans->plans)
                text << plan.prediction.time_us.value_or(-1) << ' ' << plan.prediction.dram_bytes.value_or(-1) << '\n';
        else text << std::get<Infeasible>(result).message << '\n';
        return text.str();
    });
}

TEST(CalibratedNumbers, AreAtMostTenForEachKernel) {
    for (const char* gpu : {"h200-sxm", "h100-sxm"}) {
        const Machine machine = machine_by_id(gpu);
        std::set<std::string> all;
        for (const char* name : {"sm90_gemm", "sm80_gemm"}) {
            const std::set<std::string> keys = calibrated_keys(machine, *find_gemm_kernel(name));
            EXPECT_LE(keys.size(), most_calibrated) << testing::PrintToString(keys);
            all.insert(keys.begin(), keys.end());
        }
        // The count sees them: these are.
        for (const char* key : {"wgmma.turn", "tma.latency_loaded", "dram.per_sm"}) EXPECT_TRUE(all.count(key)) << key;
        RecordProperty(std::string("calibrated_") + gpu, testing::PrintToString(all));
    }
}

// A number fitted anywhere else counts too.
TEST(CalibratedNumbers, AreFoundByTheirSource) {
    Machine machine = machine_by_id("h200-sxm");
    const GemmKernel& kernel = *find_gemm_kernel("sm90_gemm");
    const std::size_t before = calibrated_keys(machine, kernel).size();
    machine.facts.at("l2.bandwidth").source = "fitted to times of GEMMs";
    EXPECT_EQ(calibrated_keys(machine, kernel).size(), before + 1);
}

}  // namespace
}  // namespace rooftile
