// Requests for fused expressions that are refused, and the help that names them.
#include "tests/cli/program.hpp"

namespace rooftile {
namespace {

TEST(FuseRequests, AreRefusedWhereTheyAreWrong) {
    expect_refused({"plan", "fuse", "y = gelux(x)", "--tensor", "x:bf16[8]"}, {"column 5", "did you mean gelu?"});
    expect_refused({"plan", "fuse"}, {"missing the expression"});
    for (const char* verb : {"plan", "measure"})
        expect_refused({verb, "fuse", "y = gelu(x)", "--tensor", "x:bf16[8,8]", "--energy"}, {"--energy", "not modelled"});
    expect_refused({"measure", "fuse", "y = x", "--tensor", "x:bf16[8]", "--baseline", "cudnn"},
                   {"--baseline cudnn", "copy, none"});
    expect_refused({"measure", "fuse", "y = x", "--suite", "some.toml"}, {"--suite", "an expression"});
    expect_refused({"build", "suite", "some.toml"}, {"--into FOLDER"});
    expect_refused({"build", "suite", "--into", "/tmp/x"}, {"a suite's file"});
}

TEST(FuseRequests, HelpNamesTheFields) {
    const Outcome help = run({"plan", "fuse", "--help"});
    EXPECT_EQ(help.code, 0);
    for (const char* word : {"--tensor", "--alignment", "--threads-per-row", "--explain"})
        EXPECT_NE(help.out.find(word), std::string::npos) << word;
}

}  // namespace
}  // namespace rooftile
