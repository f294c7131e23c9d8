// The measure station's kernels compile cleanly for the architectures of the machine files.
#include "rooftile/measure/measure_kernels.hpp"
#include "rooftile/measure/expression_reference.hpp"
#include "rooftile/measure/stream_kernels.hpp"

#include <gtest/gtest.h>

#include <fmt/core.h>

namespace rooftile {
namespace {

class MeasureKernelsCompile : public testing::TestWithParam<const char*> {};

TEST_P(MeasureKernelsCompile, WithoutSpillsOrStack) {
    const std::vector<Source> sources = measure_sources(GetParam());
    const std::vector<CompileOutcome> outcomes = compile_all(sources);
    ASSERT_EQ(outcomes.size(), 4u);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        if (const auto* error = std::get_if<Error>(&outcomes[i])) {
            ADD_FAILURE() << error->what() << "\n" << error->detail();
            continue;
        }
        const Compiled& compiled = std::get<Compiled>(outcomes[i]);
        EXPECT_EQ(unclean(compiled), std::nullopt) << sources[i].name << "\n" << compiled.log;
        ASSERT_EQ(compiled.lowered_names.size(), sources[i].name_expressions.size());
        // Two CTAs of 256 threads of the reference share 65536 registers.
        for (const EntryInfo& entry : compiled.entries) EXPECT_LE(entry.registers, 128) << entry.name;
    }
}

/// Every operator's meaning in fp64, in one program.
TEST_P(MeasureKernelsCompile, ExpressionsReference) {
    const Source source = expression_reference_source(GetParam());
    try {
        const Compiled compiled = compile_source(source);
        EXPECT_EQ(unclean(compiled), std::nullopt) << compiled.log;
        ASSERT_EQ(compiled.lowered_names.size(), source.name_expressions.size());
        // Four CTAs of 256 threads share 65536 registers.
        for (const EntryInfo& entry : compiled.entries) EXPECT_LE(entry.registers, 64) << entry.name;
        RecordProperty("seconds", fmt::format("{:.2f}", compiled.seconds));
    } catch (const Error& error) { ADD_FAILURE() << error.what() << "\n" << error.detail(); }
}

/// What every thread of a copy has in flight must be in registers, and 1024 threads share 65536 of these.
TEST_P(MeasureKernelsCompile, CopiesAndReadsInEveryForm) {
    const std::vector<Source> sources = stream_sources(GetParam());
    ASSERT_EQ(sources.size(), GetParam() == std::string("sm_80") ? 1u : 2u);
    for (const CompileOutcome& outcome : compile_all(sources)) {
        const auto* compiled = std::get_if<Compiled>(&outcome);
        if (!compiled) {
            ADD_FAILURE() << std::get<Error>(outcome).what() << "\n" << std::get<Error>(outcome).detail();
            continue;
        }
        EXPECT_EQ(unclean(*compiled), std::nullopt) << compiled->log;
        for (const EntryInfo& entry : compiled->entries) EXPECT_LE(entry.registers, 64) << entry.name;
    }
}

INSTANTIATE_TEST_SUITE_P(Archs, MeasureKernelsCompile, testing::Values("sm_80", "sm_90"));

}  // namespace
}  // namespace rooftile
