// Kernels of a source as functions to call, without a GPU: what is compiled, what each parameter is, and what is refused.
#include "rooftile/measure/source_module.hpp"

#include <gmock/gmock.h>

#include <random>

#include <fmt/format.h>

#include "rooftile/error.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;

struct Kind {
    const char* type;
    ParameterKind kind;
    int bytes;
};
constexpr Kind kinds[] = {{"float*", ParameterKind::pointer, 8},
                          {"const void* const*", ParameterKind::pointer, 8},
                          {"float* __restrict__", ParameterKind::pointer, 8},
                          {"int", ParameterKind::int_, 4},
                          {"unsigned", ParameterKind::uint, 4},
                          {"long long", ParameterKind::int_, 8},
                          {"size_t", ParameterKind::uint, 8},
                          {"bool", ParameterKind::uint, 1},
                          {"short", ParameterKind::int_, 2},
                          {"float", ParameterKind::float_, 4},
                          {"double", ParameterKind::float_, 8},
                          {"const float", ParameterKind::float_, 4},
                          {"T", ParameterKind::struct_, 12},
                          {"float4", ParameterKind::struct_, 16},
                          {"Colour", ParameterKind::uint, 1},
                          {"const __grid_constant__ T", ParameterKind::struct_, 12},
                          {"__half", ParameterKind::struct_, 2}};

std::string message_of(const std::string& source, std::vector<std::string> functions) {
    try {
        load(source, std::move(functions), {.arch = "sm_90"});
    } catch (const Error& error) { return error.what(); }
    return "loaded";
}

TEST(SourceModule, KnowsEachParameter) {
    std::mt19937 random(test_seed());
    for (int round = 0; round < 3; ++round) {
        std::string text =
            "#include <cuda_fp16.h>\n#include <iostream>\nstruct T { float a[3]; };\nenum class Colour : unsigned char { red };\n#define N "
            "4\n";
        std::vector<std::vector<Kind>> drawn(4);
        for (std::size_t k = 0; k < drawn.size(); ++k) {
            std::string list;
            for (unsigned i = random() % 9; i > 0; --i) {
                drawn[k].push_back(kinds[random() % std::size(kinds)]);
                list += fmt::format("{}{} p{}", list.empty() ? "" : ", ", drawn[k].back().type, i);
            }
            const std::string kernel = fmt::format("__global__ void k{}({}) {{}}", k, list);
            text += k % 2 ? "extern \"C\" " + kernel + "\n" : "namespace n { " + kernel + " }\n";
        }
        text += "int main() { return 0; }\n";
        const SourceModule module = load(text, {}, {.arch = "sm_90"});
        ASSERT_EQ(module.functions().size(), drawn.size());
        for (std::size_t k = 0; k < drawn.size(); ++k) {
            const ModuleFunction& f = module.functions()[std::size_t(module.find(fmt::format("k{}", k)))];
            EXPECT_EQ(f.name, fmt::format("{}k{}", k % 2 ? "" : "n::", k));
            ASSERT_EQ(f.parameters.size(), drawn[k].size()) << text;
            for (std::size_t i = 0; i < drawn[k].size(); ++i) {
                EXPECT_EQ(f.parameters[i].kind, drawn[k][i].kind) << drawn[k][i].type;
                EXPECT_EQ(f.parameters[i].bytes, drawn[k][i].bytes) << drawn[k][i].type;
            }
        }
        EXPECT_THAT(module.left_out(), testing::ElementsAre("#include <iostream>", "main"));
    }
}

TEST(SourceModule, TemplatesAreAskedForWithTheirArguments) {
    const std::string text =
        "template <class T, int n>\n__global__ void gelu(T* y, T s) { y[n] = s; }\n__global__ void plain(int* p) { *p = 1; }\n";
    const SourceModule module = load(text, {"gelu<float, 2>", "plain"}, {.arch = "sm_90"});
    EXPECT_EQ(module.find("gelu"), 0);
    EXPECT_EQ(module.functions()[0].parameters[1].kind, ParameterKind::float_);
    EXPECT_THROW(module.find("other"), RequestError);
    const SourceModule alone = load(text, {}, {.arch = "sm_90"});
    ASSERT_EQ(alone.functions().size(), 1u);
    EXPECT_EQ(alone.functions()[0].name, "plain");
    const SourceModule two = load(text, {"gelu<float, 2>", "gelu<int, 1>"}, {.arch = "sm_90"});
    EXPECT_THROW(two.find("gelu"), RequestError);
    EXPECT_THAT(message_of(text, {"gelu"}), HasSubstr("gelu is a template: give its arguments"));
    EXPECT_THAT(message_of("template <class T>\n__global__ void k(T* y) {}\n", {}), HasSubstr("as k<float>"));
}

TEST(SourceModule, NamespacesMayBeLeftOut) {
    const std::string text =
        "namespace a { template <class T> __global__ void k(T s) {}\nnamespace b { __global__ void k2(int n) {} } }\n"
        "#if 1\n__global__ void k3(int n) {}\n#else\n__global__ void k3(float x) {}\n#endif\n";
    const SourceModule module = load(text, {"k<float>", "k2"}, {.arch = "sm_90"});
    EXPECT_EQ(module.functions()[0].name, "k<float>");
    EXPECT_EQ(module.functions()[0].parameters[0].kind, ParameterKind::float_);
    EXPECT_EQ(module.find("k2"), 1);
    EXPECT_THAT(message_of(text, {"k"}), HasSubstr("k is a template"));
    const SourceModule all = load(text, {}, {.arch = "sm_90"});
    ASSERT_EQ(all.functions().size(), 2u);
    EXPECT_EQ(all.functions()[1].parameters[0].kind, ParameterKind::int_);
}

TEST(SourceModule, KernelsThatThePreprocessorLeavesOutAreNone) {
    const std::string text =
        "#ifdef NOWHERE\n__global__ void a(int* p) {}\nnamespace n { __global__ void b(int* p) {} }\n#endif\n"
        "namespace n { __global__ void c(int* p) {} }\n";
    const SourceModule module = load(text, {}, {.arch = "sm_90"});
    ASSERT_EQ(module.functions().size(), 1u);
    EXPECT_EQ(module.functions()[0].name, "n::c");
    EXPECT_THAT(message_of(text, {"a", "b", "c"}), HasSubstr("source.cu has no kernel a, n::b; there is n::c"));
}

TEST(SourceModule, SaysWhatIsWrong) {
    const std::string text = "__global__ void a(int* p) {}\n__global__ void b(int* p) {}\n";
    EXPECT_THAT(message_of(text, {"a", "c"}), HasSubstr("source.cu has no kernel c; there is a, b"));
    EXPECT_THAT(message_of(text, {"a", "a"}), HasSubstr("a is given twice"));
    EXPECT_THAT(message_of("int main() {\n}\n", {}), HasSubstr("source.cu has no __global__ function"));
    EXPECT_THAT(message_of("\n__global__ void a(int* p) { *p = q; }\n", {}),
                HasSubstr("source.cu(2): error: identifier \"q\" is undefined"));
    EXPECT_THAT(message_of("/nowhere/a.cu", {}), HasSubstr("/nowhere/a.cu"));
}

TEST(SourceModule, RefusesArgumentsThatTheKernelDoesNotTakeBeforeAnyGpuIsAsked) {
    const SourceModule module = load("__global__ void scale(float* y, float s, int n) {}\n", {}, {.arch = "sm_90"});
    const auto refusal = [&](auto... arguments) {
        try {
            module.launch("scale", Launch{}, arguments...);
        } catch (const RequestError& error) { return std::string(error.what()); }
        return std::string("launched");
    };
    float* y = nullptr;
    EXPECT_THAT(refusal(y, 1.0f), HasSubstr("scale takes 3 arguments (pointer 8 B, float 4 B, int 4 B); given are 2"));
    EXPECT_THAT(refusal(y, 1.0, 3), HasSubstr("argument 2 of scale has 8 B; the kernel takes 4 B"));
    module.launch("scale", Launch{.grid_x = 0}, y, 1.0f, 3);  // nothing to launch, so that no GPU is needed
}

}  // namespace
}  // namespace rooftile
