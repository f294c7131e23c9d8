// What is exported to CUTLASS, by nvcc with CUTLASS's headers (tools/setup --cutlass).
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>

#include "rooftile/core/exports.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/draw.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/runtime/child.hpp"
#include "tests/compile/nvcc.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

/// The folder that holds cutlass/cutlass.h; empty: there is none.
std::string cutlass_headers() {
    const char* named = std::getenv("ROOFTILE_CUTLASS");
    const std::string folder = named && *named ? named : ROOFTILE_SOURCE_DIR "/.cutlass/include";
    return std::filesystem::exists(folder + "/cutlass/cutlass.h") ? folder : "";
}

/// A file of a drawn product, its namespace called `name`; of what is not exported another is drawn.
std::string drawn_export(Random& random, const char* machine_id, const std::string& name) {
    const Operation& gemm = gemm_operation();
    const auto machine = std::make_shared<const Machine>(machine_by_id(machine_id));
    const auto& exports = *facet_of<Exports>(gemm);
    std::size_t target = 0;
    while (exports.targets()[target].name != "cutlass") ++target;
    static constexpr const char* laws[] = {"", "batch", "fp8"};
    for (int tries = 0; tries < 50; ++tries) {
        const Problem problem{&gemm, Own::of(drawn_gemm(random, {laws[random.pick(machine->has("wgmma") ? 3 : 2)]}))};
        const Own request = gemm.request(Given(), {.top = 64});
        const PlanSet plans = gemm.derive(machine, problem, request);
        if (plans.refusal) continue;
        try {
            const std::string text = exports.exported(target, machine, problem, request, plans, Given()).text;
            return std::regex_replace(text, std::regex("namespace gemm_\\w+"), "namespace " + name);
        } catch (const RequestError&) {}
    }
    throw std::runtime_error("no plan is drawn");
}

// One text, so that the headers are read once: some 10 s, and 30 s for the one kernel that is made.
TEST(ExportedToCutlass, TypesAreThoseOfCutlassAndAKernelCompilesWithoutSpills) {
    if (nvcc().empty()) GTEST_SKIP() << "skipped: no nvcc";
    if (cutlass_headers().empty()) GTEST_SKIP() << "skipped: no headers of CUTLASS; tools/setup --cutlass fetches them";
    Random random(test_seed());
    const int made = int(test_count(1, 4)), types = made + int(test_count(4, 36));
    std::string text, macro = "-DCUTLASS_ENABLE_GDC_FOR_SM90=1";
    for (int i = 0; i < types; ++i) {
        const std::string name = fmt::format("drawn_{}", i);
        const bool hopper = i < made || i % 3 != 0;
        const std::string one = drawn_export(random, hopper ? "h100-sxm" : "a100-80-sxm", name);
        text += one;
        // As the file's own command has it.
        if (i < made && one.find("-DCUTLASS_ENABLE_GDC_FOR_SM90=1") == one.npos) macro = "-DWITHOUT_PROGRAMMATIC_LAUNCH";
        EXPECT_EQ(text.find('@'), text.npos);
        if (hopper) text += fmt::format("\nstatic_assert({}::Kernel::MaxThreadsPerBlock > 0);\n", name);
        if (i < made) text += fmt::format("cutlass::Status make_{0}() {{ return drawn_{0}::run(nullptr, nullptr, nullptr); }}\n", i);
    }
    const Folder folder;
    const std::string source = (folder.path() / "drawn.cu").string();
    std::ofstream(source) << text;
    const ChildOutcome done =
        run_child({nvcc(), "-std=c++17", "-arch=sm_90a", "-DNDEBUG", macro, "--expt-relaxed-constexpr", "-I", cutlass_headers(), "-Xptxas",
                   "-v", "-cubin", source, "-o", (folder.path() / "drawn.cubin").string()});
    ASSERT_EQ(done.code, 0) << done.out << done.err.substr(0, 4000) << "\n" << text;
    EXPECT_NE(done.err.find("Used"), done.err.npos);
    EXPECT_EQ(done.err.find("C7510"), done.err.npos) << "wgmma is serialised\n" << text;
    EXPECT_FALSE(std::regex_search(done.err, std::regex("[1-9]\\d* bytes spill"))) << text;
}

}  // namespace
}  // namespace rooftile
