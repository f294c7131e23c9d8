// Public files as the run-time compiler takes them: what is left out, what stays, and that lines keep their numbers.
#include "rooftile/measure/device_text.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include <fmt/core.h>

#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(DeviceText, HostFunctionsGoWithTheirLaunches) {
    const DeviceText out = device_text("#include <vector>\n#include <cstdint>\n"
                                       "void check(int e, const char* file = \"{\") { if (e) { exit(1); } }\n"
                                       "template <int n>\n__global__ void k(float* y) { y[0] = n; }\n"
                                       "template <class T>\nvoid run(T* y) { k<4><<<1, 32>>>(y); }\n"
                                       "int main() { run<float>(nullptr); /* } */ return '}'; }\n");
    EXPECT_THAT(out.left_out, ElementsAre("#include <vector>", "check", "run", "main"));
    EXPECT_THAT(out.kernels, ElementsAre("k"));
    EXPECT_THAT(out.text, HasSubstr("#include <cstdint>\n"));
    EXPECT_THAT(out.text, HasSubstr("template <int n>\n__global__ void k(float* y) { y[0] = n; }\n"));
    for (const char* gone : {"exit", "<<<", "template <class T>", "main", "vector"}) EXPECT_THAT(out.text, Not(HasSubstr(gone)));
}

TEST(DeviceText, WhatKernelsUseStays) {
    const char* kept[] = {"__device__ float f(float x) { return x; }",
                          "#define INLINE static __device__ __forceinline__\nINLINE int g() { return 1; }",
                          "MY_HOST_DEVICE int h() { return 1; }",
                          "constexpr int cdiv(int a, int b) { return (a + b - 1) / b; }",
                          "struct Pair { int a; __device__ int sum() const { return a; } };",
                          "template <class T> struct Wide { T v[4]; };",
                          "enum class Kind : int { one, two };",
                          "__constant__ float table[2] = {1, 2};",
                          "using index = long long;",
                          "typedef float (*function)(float);",
                          "static_assert(sizeof(int) == 4, \"{\");",
                          "namespace cg { __device__ void f(); }",
                          "extern \"C\" { __global__ void c() {} }",
                          "const char* text = R\"(void host() {})\";",
                          "__global__ void __launch_bounds__(256, 2) bounded(float* x) { *x = 0; }"};
    for (const char* text : kept) {
        const DeviceText out = device_text(text);
        EXPECT_THAT(out.text, HasSubstr(text));
        EXPECT_THAT(out.left_out, IsEmpty()) << text;
    }
    EXPECT_THAT(device_text(kept[14]).kernels, ElementsAre("bounded"));
    EXPECT_THAT(device_text("#define KERNEL __global__ void\nKERNEL k(int n) {}").kernels, ElementsAre("k"));
}

TEST(DeviceText, KernelsHaveTheirNamespaces) {
    const DeviceText out = device_text("namespace a::b {\nstruct S { __device__ int f() { return 1; } };\nextern \"C\" { __global__ void c() {} }\n"
                                       "inline namespace c { template <class T> __global__ void t(T* p) {} }\n}\nnamespace { __global__ void n() {} }\n"
                                       "__global__ void last() {}\n");
    EXPECT_THAT(out.kernels, ElementsAre("a::b::c", "a::b::c::t", "n", "last"));
    EXPECT_THAT(out.templates, ElementsAre("a::b::c::t"));
}

TEST(DeviceText, MacrosThatMakeFunctionsOfTheHostGo) {
    EXPECT_THAT(device_text("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"f\", &f); }").left_out, ElementsAre("PYBIND11_MODULE"));
    EXPECT_THAT(device_text("torch::Tensor f(torch::Tensor x, int n = KERNEL_SIZE);").left_out, ElementsAre("f"));
    EXPECT_THAT(device_text("static const std::vector<int> all = {1, 2};\nstd::string name;").left_out, ElementsAre("a declaration"));
    const DeviceText type = device_text("struct S { public: void f() { g(); } __device__ int h() { return v; } std::string s; int v = 1; };");
    EXPECT_THAT(type.left_out, ElementsAre("f", "a declaration"));
    EXPECT_THAT(type.text, HasSubstr("__device__ int h() { return v; }"));
    EXPECT_THAT(type.text, HasSubstr("public:"));
    EXPECT_THAT(type.text, HasSubstr("int v = 1; };"));
    EXPECT_THAT(device_text("std::vector<int> sizes(const std::string& s) { return {}; }").left_out, ElementsAre("sizes"));
}

TEST(DeviceText, MarksAndCarriageReturnsGo) {
    const DeviceText out = device_text("\xef\xbb\xbf#include <iostream>\r\n__global__ void k() {}\r\n");
    EXPECT_EQ(out.text.find('\r'), out.text.npos);
    EXPECT_EQ(out.text.find('\xef'), out.text.npos);
    EXPECT_THAT(out.kernels, ElementsAre("k"));
}

// Of declarations drawn in any order, what is for the host goes, the rest stays where it was, letter for letter.
TEST(DeviceText, LinesKeepTheirNumbers) {
    constexpr const char* device[] = {"__global__ void k{}(int* y) {{\n    // }}\n    *y = {};\n}}\n", "static __device__ int f{}() {{ return {}; }}\n",
                                      "struct S{} {{\n    int v = {};\n}};\n"};
    constexpr const char* host[] = {"int h{}(int x)\n{{\n    const char* s = \"}}\\\"\"; /* {{ */ return {};\n}}\n",
                                    "template <class T,\n          int n>\nvoid t{}() {{ if (n) {{ k<<<1, {}>>>(); }} }}\n", "void p{}(int x = {});\n"};
    std::mt19937_64 random(test_seed());
    for (int i = 0; i < 200; ++i) {
        std::string file, wanted;
        for (int n = 0; n < 12; ++n) {
            const bool stays = random() % 2 == 0;
            const std::string text = fmt::format(fmt::runtime((stays ? device : host)[random() % 3]), n, n);
            file += text;
            for (const char c : text) wanted += stays || c == '\n' ? c : ' ';
        }
        const DeviceText out = device_text(file);
        ASSERT_THAT(out.text, testing::EndsWith("#line 1\n" + wanted)) << file;
    }
}

// Whatever a file has, reading it ends, and a text comes out.
TEST(DeviceText, ReadsWhatIsNoProgram) {
    constexpr const char* pieces[] = {"(", ")", "{", "}", "<", ">", "\"", "'", "/*", "*/", "//", "#include <", "#define", "\\\n", "\n", "R\"(", "__global__", "f", ";", "template", "=", "extern \"C\"", "namespace"};
    std::mt19937_64 random(test_seed());
    for (int i = 0; i < 2000; ++i) {
        std::string file;
        for (std::size_t n = random() % 30; n > 0; --n) file += std::string(pieces[random() % std::size(pieces)]) + (random() % 2 ? " " : "");
        const DeviceText out = device_text(file);
        EXPECT_EQ(std::ranges::count(out.text, '\n'), std::ranges::count(file, '\n') + 5) << file;
    }
}

}  // namespace
}  // namespace rooftile
