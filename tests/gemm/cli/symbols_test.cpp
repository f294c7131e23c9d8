// plan --symbols and --form from outside: formulas to be filled in, as text and as Markdown, without problem, machine or GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Symbols, ADerivationWithoutNumbers) {
    const Outcome text = run({"plan", "gemm", "--symbols"}), markdown = run({"plan", "gemm", "--symbols", "--markdown"});
    EXPECT_EQ(text.code, 0) << text.err;
    EXPECT_EQ(text.err, "");
    for (const char* part : {"1. tile_flops = ________ FLOP", "ceil(L / T) + 1   [M5]", "dram.latency", "time_us = ________ us", "Numbers of the machine"})
        EXPECT_THAT(text.out, HasSubstr(part));
    EXPECT_EQ(markdown.code, 0) << markdown.err;
    EXPECT_THAT(markdown.out, StartsWith("# "));
    EXPECT_THAT(markdown.out, HasSubstr("`ceil(L / T) + 1   [M5]`"));
    EXPECT_EQ(run({"plan", "attention", "--symbols"}).code, 0);
}

TEST(Symbols, FormsOfFourKindsAreTheSameWhoeverIsAsked) {
    const Outcome form = run({"plan", "gemm", "--form"});
    EXPECT_EQ(form.code, 0) << form.err;
    for (const char* part : {"Form: a compute-bound kernel", "Form: a convolution", "Form: a memory-bound kernel", "Form: attention",
                             "3 Capacity: does it fit?", "dram.sustained_read"})
        EXPECT_THAT(form.out, HasSubstr(part));
    for (const char* operation : {"fuse", "attention"}) EXPECT_EQ(run({"plan", operation, "--form"}).out, form.out);
    EXPECT_THAT(run({"plan", "fuse", "--form", "--markdown"}).out, StartsWith("# Form: a compute-bound kernel"));
}

TEST(Symbols, RefusesInOneLine) {
    expect_refused({"plan", "gemm", "--symbols", "--json"}, {"--symbols", "no document"});
    expect_refused({"plan", "gemm", "--symbols", "--m", "64"}, {"neither problem nor machine", "--m"});
    expect_refused({"plan", "gemm", "--form", "--machine", "h100-sxm"}, {"neither problem nor machine", "--machine"});
    expect_refused({"plan", "gemm", "--form", "--symbols"}, {"--symbols", "--form"});
    expect_refused({"plan", "gemm", "--shape", "64x64x64", "--markdown"}, {"--markdown", "--symbols"});
}

TEST(Symbols, InventedMachinesAreListedApart) {
    const Outcome list = run({"machine", "list"});
    EXPECT_THAT(list.out, HasSubstr("invented, by id"));
    EXPECT_THAT(list.out, HasSubstr("worked-example"));
    EXPECT_EQ(run({"machine", "show", "worked-example"}).code, 0);
}

}  // namespace
}  // namespace rooftile
