// Every probe kernel compiles clean: a probe that spills measures its own spills.
#include <gtest/gtest.h>

#include "rooftile/probe/lab.hpp"

namespace rooftile {
namespace {

TEST(ProbeKernelsCompile, WithoutSpillsOrStack) {
    const std::vector<ProbeProgram> programs = probe_programs();
    ASSERT_EQ(programs.size(), 21u);  // tma, fill, memory, sm, cluster, 16 widths of wgmma
    std::vector<Source> sources;
    for (const ProbeProgram& program : programs) sources.push_back(probe_source(program, "sm_90"));
    const std::vector<CompileOutcome> outcomes = compile_all(sources);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        if (const auto* error = std::get_if<Error>(&outcomes[i])) {
            ADD_FAILURE() << sources[i].name << ": " << error->what() << "\n" << error->detail();
            continue;
        }
        const Compiled& compiled = std::get<Compiled>(outcomes[i]);
        EXPECT_EQ(unclean(compiled).value_or(""), "") << sources[i].name << "\n" << compiled.log;
        EXPECT_EQ(compiled.lowered_names.size(), programs[i].kernels.size());
    }
}

/// The instructions that a probe is about are there, as often as its figures count them.
TEST(ProbeKernelsCompile, KeepWhatTheyMeasure) {
    struct Mark {
        const char* program;
        const char* text;
        int least;
    };
    constexpr Mark marks[] = {{"tma", "cp.async.bulk.tensor.2d", 1},
                              {"tma", "cp.async.bulk.shared::cluster.global", 1},
                              {"wgmma_256", "wgmma.mma_async.sync.aligned.m64n256k16", 4},
                              {"sm", "ld.shared.v4.u32", 8},
                              {"sm", "ex2.approx.ftz.f32", 32},
                              {"sm", "fma.rn.f32", 32},
                              {"cluster", "barrier.cluster.wait.acquire", 1},
                              {"memory", "ld.global.cg.v4", 5}};
    for (const Mark& mark : marks) {
        for (const ProbeProgram& program : probe_programs()) {
            if (program.name != mark.program) continue;
            const std::string ptx = compile_to_ptx(probe_source(program, "sm_90"));
            int count = 0;
            for (auto at = ptx.find(mark.text); at != ptx.npos; at = ptx.find(mark.text, at + 1)) ++count;
            EXPECT_GE(count, mark.least) << mark.program << ": " << mark.text;
        }
    }
}

}  // namespace
}  // namespace rooftile
