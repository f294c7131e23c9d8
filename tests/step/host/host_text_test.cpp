// A kernel's text as g++ takes it: what is rewritten, and that lines keep their numbers.
#include "rooftile/step/host_text.hpp"

#include <algorithm>

#include <gmock/gmock.h>

#include "rooftile/error.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(HostText, SharedVariablesAreThreadLocalBehindAGap) {
    for (const char* prefix : {"", "volatile ", "static ", "alignas(16) ", "__align__(8) "}) {
        const std::string out = host_text(std::string("void f() {\n    ") + prefix + "__shared__ float s[32][33];\n}\n");
        EXPECT_THAT(out, HasSubstr("static __thread __attribute__((used)) char rooftile_gap_0[128]; ")) << prefix;
        EXPECT_THAT(out, HasSubstr("__thread float s[32][33];\n}\n")) << prefix;
        EXPECT_THAT(out, Not(HasSubstr("__shared__"))) << prefix;
        EXPECT_THAT(out, Not(HasSubstr("static static"))) << prefix;
    }
    EXPECT_THAT(host_text("__shared__ alignas(16) half s[8];"), HasSubstr(" alignas(16) static __thread  half s[8];"));
    EXPECT_THAT(host_text("#define TILE __shared__ float t[4]\n"), HasSubstr("static __thread float t[4]\n"));
}

TEST(HostText, DynamicSharedMemoryIsAReference) {
    for (const char* text :
         {"extern __shared__ float s[];", "extern  __shared__ __align__(16) float s[];", "extern __shared__ alignas(16) float s[];"}) {
        const std::string out = host_text(text);
        EXPECT_THAT(out, HasSubstr("[[maybe_unused]] static auto& s = *reinterpret_cast<")) << text;
        EXPECT_THAT(out, HasSubstr("float  (*)[1 << 30]>(rooftile_dynamic_shared);")) << text;
    }
    EXPECT_THAT(host_text("extern __shared__ float4 s[][8];"), HasSubstr("(*)[1 << 30][8]>(rooftile_dynamic_shared);"));
}

TEST(HostText, InlinePtxBecomesAStopAndLinesStay) {
    const std::string text =
        "void f(int x) {\n    asm volatile(\"add.s32 %0, %1;\"\n        : \"=r\"(x)\n        : \"r\"(x));\n    x = 1;\n}\n#define PTX(x) "
        "\\\n    asm(\"mov %0;\" \\\n        :: \"r\"(x))\n";
    const std::string out = host_text(text);
    EXPECT_THAT(out, HasSubstr("rooftile_stop(\"ptx\", \"add.s32 %0, %1;\")"));
    EXPECT_THAT(out, HasSubstr("rooftile_stop(\"ptx\", \"mov %0;\")"));
    EXPECT_THAT(out, Not(HasSubstr("asm")));
    EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), std::count(text.begin(), text.end(), '\n'));
    EXPECT_EQ(std::count(out.begin(), out.end(), '\\'), 2);
}

TEST(HostText, DeviceLibrariesAreAnErrorOfTheirLine) {
    for (const char* name : {"mma.h", "cub/cub.cuh", "cuda/barrier", "cuda_fp8.h"})
        EXPECT_EQ(host_text("#include <" + std::string(name) + ">\nint x;"), "#error " + std::string(refused_header) + name + "\nint x;");
    for (const char* kept : {"#include <cuda_fp16.h>\n", "#include \"common.h\"\n", "#include <cstdint>\n", "#define CUB \"cub/\"\n"})
        EXPECT_EQ(host_text(kept), kept);
}

TEST(HostText, WatchesStandBehindTheStatementThatEndsInTheirLine) {
    const std::string text =
        "void f(int n) {\n"         // 1
        "    int a[2] = {1, n};\n"  // 2
        "    for (int i = 0; i < n; ++i)\n"
        "        a[0] += i;\n"  // 4
        "    if (n > 1) {\n"    // 5
        "        n = a[0];\n"
        "    } else\n"
        "        return;\n"  // 8
        "    n += g(\n"
        "        1);\n"        // 10
        "    if (n) n = 2;\n"  // 11
        "    else n = 3;\n"
        "}\n";
    const auto watched = [&](int line) {
        const Watch watch{line, "n"};
        return host_text(text, {&watch, 1});
    };
    EXPECT_THAT(watched(1), HasSubstr("void f(int n) { rooftile_watch(1, \"n\", n);\n"));
    EXPECT_THAT(watched(2), HasSubstr("{1, n}; rooftile_watch(2, \"n\", n);\n"));
    EXPECT_THAT(watched(4), HasSubstr("        { a[0] += i; rooftile_watch(4, \"n\", n); }\n"));
    EXPECT_THAT(watched(5), HasSubstr("if (n > 1) { rooftile_watch(5, \"n\", n);\n"));
    EXPECT_THAT(watched(8), HasSubstr("{ rooftile_watch(8, \"n\", n); return; }\n"));
    EXPECT_THAT(watched(10), HasSubstr("1); rooftile_watch(10, \"n\", n);\n"));
    EXPECT_THAT(watched(11), HasSubstr("if (n) { n = 2; rooftile_watch(11, \"n\", n); }\n"));
    for (const int nothing : {3, 7, 9, 13, 99}) EXPECT_THROW(watched(nothing), RequestError) << nothing;
}

}  // namespace
}  // namespace rooftile
