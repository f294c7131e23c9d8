// The short kernels compile clean and without loops, and the counts in their machine code are what their text has.
#include "rooftile/measure/unit_kernels.hpp"

#include <gtest/gtest.h>

#include "rooftile/error.hpp"

namespace rooftile {
namespace {

std::vector<UnitCode> counted(Type type, const char* arch) {
    const Compiled compiled = compile_source(unit_source(type, arch));
    EXPECT_EQ(unclean(compiled).value_or(""), "") << compiled.log;
    return unit_code(compiled);
}

// An exponential each, and a reciprocal where there is a division, which `/` also checks; RMSNorm has one root a thread. bf16 has 8
// elements in 16 bytes, fp32 4.
TEST(UnitKernelsCompile, SpecialFunctionsAreThoseOfTheText) {
    for (const char* arch : {"sm_80", "sm_90", "sm_100"})
        for (const Type type : {Type::bf16, Type::fp32}) {
            SCOPED_TRACE(std::string(arch) + " " + std::to_string(int(type)));
            const std::vector<UnitCode> code = counted(type, arch);
            const int pack = unit_pack(type), expected[] = {0, 3 * pack, 2 * pack, 2 * pack, pack, 1, 0};
            ASSERT_EQ(code.size(), std::size_t(unit_kinds));
            for (int kind = 0; kind < unit_kinds; ++kind)
                EXPECT_EQ(code[std::size_t(kind)].counts.special, expected[kind]) << unit_words()[std::size_t(kind)].id;
        }
}

// A division that rounds takes more than half of what SiLU does; GEMV has at least a product and its sum for each element.
TEST(UnitKernelsCompile, InstructionsTellTheKernelsApart) {
    const std::vector<UnitCode> code = counted(Type::bf16, "sm_90");
    const auto of = [&](UnitKind kind) { return code[std::size_t(kind)].counts.instructions; };
    EXPECT_LT(of(UnitKind::product), of(UnitKind::silu_no_division));
    EXPECT_LT(of(UnitKind::silu_no_division), of(UnitKind::silu_fast_divide));
    EXPECT_GT(of(UnitKind::silu_divide), of(UnitKind::silu_fast_divide) + 4 * 8);
    EXPECT_GT(of(UnitKind::gemv), unit_columns / 32);
    EXPECT_LT(of(UnitKind::gemv), 8 * unit_columns / 32);
}

// Of a thread alone, in trips to memory: a load, two that need nothing of each other, rows that come in several parts.
TEST(UnitKernelsCompile, LoadsThatWaitForEachOtherAreTrips) {
    constexpr double trip = 10000;
    const auto trips = [&](const UnitCode& code) { return cycles_alone(code.counts.timings, trip, 20) / trip; };
    for (const Type type : {Type::bf16, Type::fp32}) {
        const std::vector<UnitCode> code = counted(type, "sm_90");
        for (const UnitCode& each : code) EXPECT_EQ(each.counts.timings.size(), std::size_t(each.counts.instructions));
        EXPECT_NEAR(trips(code[std::size_t(UnitKind::product)]), 1, 0.1);
        EXPECT_NEAR(trips(code[std::size_t(UnitKind::silu_divide)]), 1, 0.2);
        EXPECT_GE(trips(code[std::size_t(UnitKind::gemv)]), 2);
        EXPECT_LE(trips(code[std::size_t(UnitKind::gemv)]), unit_columns / unit_pack(type) / 32 + 1);
        // A division that rounds is a chain of its own for each element: longer than its instructions.
        const UnitCode &rounded = code[std::size_t(UnitKind::silu_divide)], &fast = code[std::size_t(UnitKind::silu_fast_divide)];
        EXPECT_GT(cycles_alone(rounded.counts.timings, 0, 20), 1.5 * cycles_alone(fast.counts.timings, 0, 20));
    }
}

TEST(UnitKernelsCompile, ALoopIsNotCounted) {
    Source source;
    source.name = "loop";
    source.text =
        "__global__ void loop(int* x, int n) { for (int i = 0; i < n; ++i) x[i * i] = i; }\n"
        "__global__ void straight(int* x) { x[threadIdx.x] = 1; }\n";
    source.name_expressions = {"loop", "straight"};
    source.arch = "sm_90a";
    const Compiled compiled = compile_source(source);
    EXPECT_FALSE(straight_counts(compiled.cubin, compiled.lowered_names[0]));
    const auto straight = straight_counts(compiled.cubin, compiled.lowered_names[1]);
    ASSERT_TRUE(straight);
    EXPECT_GE(straight->instructions, 4);
    EXPECT_LE(straight->instructions, 12);
    EXPECT_FALSE(straight_counts(compiled.cubin, "nothing"));
    EXPECT_FALSE(straight_counts("no ELF file", "loop"));
}

}  // namespace
}  // namespace rooftile
