// Real compiles of small kernels; needs libnvrtc, no GPU.
#include "rooftile/runtime/nvrtc.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "rooftile/runtime/library.hpp"

namespace rooftile {
namespace {

struct NvrtcTest : testing::Test {
    void SetUp() override {
        Library library = open_library(nvrtc_soname);
        if (!library) GTEST_SKIP() << "skipped: " << library.not_found();
    }
};

Source small(std::string text, std::vector<std::string> names = {"k"}) {
    Source source;
    source.name = "small";
    source.text = std::move(text);
    source.name_expressions = std::move(names);
    return source;
}

TEST_F(NvrtcTest, KnowsItsVersionAndBuild) {
    EXPECT_TRUE(nvrtc().version.starts_with("13.")) << nvrtc().version;
    EXPECT_GE(nvrtc().build.size(), 16u);
    EXPECT_NE(nvrtc().path.find("libnvrtc.so"), std::string::npos);
}

TEST_F(NvrtcTest, AnEmbeddedHeaderAndATemplateGiveACubin) {
    Compiled compiled = compile_source(small(R"(
        #include "kernels/types.hpp"
        template <rooftile::Order O> __global__ void t(int* p) { *p = static_cast<int>(O); }
        __global__ void k(int* p) { *p = 1; })",
                                             {"k", "t<rooftile::Order::hilbert>"}));
    EXPECT_EQ(compiled.cubin.substr(0, 4),
              "\x7f"
              "ELF");
    ASSERT_EQ(compiled.lowered_names.size(), 2u);
    ASSERT_EQ(compiled.entries.size(), 2u);
    EXPECT_EQ(compiled.lowered_names[0], "_Z1kPi");
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(compiled.entries[i].name, compiled.lowered_names[i]);
        EXPECT_GT(compiled.entries[i].registers, 0);
    }
    EXPECT_FALSE(unclean(compiled));
}

TEST_F(NvrtcTest, TheSameSourceGivesTheSameBytes) {
    Source source = small("__global__ void k(float* p) { p[threadIdx.x] *= 2; }");
    EXPECT_EQ(compile_source(source).cubin, compile_source(source).cubin);
}

// 96 live floats a thread where __launch_bounds__(1024, 2) leaves 32 registers.
constexpr const char* spilling = R"(
    __global__ void __launch_bounds__(1024, 2) k(float* p) {
        float a[96];
        for (int i = 0; i < 96; ++i) a[i] = p[threadIdx.x + i * 1024];
        __syncthreads();
        for (int r = 0; r < 4; ++r)
            for (int i = 0; i < 96; ++i) a[i] = a[i] * a[(i + 7) % 96] + r;
        for (int i = 0; i < 96; ++i) p[threadIdx.x + i * 1024] = a[i];
    })";

TEST_F(NvrtcTest, AKernelThatSpillsIsRefused) {
    Compiled compiled = compile_source(small(spilling));
    EXPECT_LE(compiled.entries[0].registers, 32);
    EXPECT_GT(compiled.entries[0].spill_store_bytes, 0);
    EXPECT_THROW(check_clean(compiled, "k"), Error);
}

TEST_F(NvrtcTest, AStackFrameIsRefused) {
    Compiled compiled = compile_source(small(R"(
        __device__ __noinline__ int f(int* p, int n) {
            int a[64];
            for (int i = 0; i < 64; ++i) a[i] = p[i];
            return a[n];
        }
        __global__ void k(int* p, int n) {
            __shared__ int s[10];
            s[threadIdx.x] = f(p, n);
            __syncthreads();
            *p = s[n];
        })"));
    EXPECT_GE(compiled.entries[0].stack_bytes, 256);
    EXPECT_EQ(compiled.entries[0].static_shared_bytes, 40);
    EXPECT_TRUE(unclean(compiled));
}

// setmaxnreg where ptxas cannot know the registers at launch: no __launch_bounds__, no maxrregcount.
TEST_F(NvrtcTest, AnIgnoredSetmaxnregIsRefused) {
    Compiled compiled = compile_source(small(
        R"(__global__ void k(int* p) { asm volatile("setmaxnreg.dec.sync.aligned.u32 24;"); *p = 1; })"));
    EXPECT_TRUE(unclean(compiled)) << compiled.log;
}

TEST_F(NvrtcTest, TheFirstErrorIsTheMessageAndTheLogTheDetail) {
    try {
        compile_source(small("__global__ void k(int* p) {\n  *p = nothing;\n  *p = nobody; }"));
        FAIL();
    } catch (const Error& error) {
        std::string message = error.what();
        EXPECT_EQ(error.code(), ExitCode::compile_failed);
        EXPECT_NE(message.find("small(2): error: identifier \"nothing\" is undefined"), std::string::npos)
            << message;
        EXPECT_EQ(message.find('\n'), std::string::npos);
        EXPECT_NE(error.detail().find("nobody"), std::string::npos);
    }
}

TEST_F(NvrtcTest, PtxIsForReading) {
    Source source = small("__global__ void k(int* p) { *p = 1; }");
    std::string ptx = compile_to_ptx(source);
    EXPECT_NE(ptx.find(".target sm_90a"), std::string::npos);
    EXPECT_NE(ptx.find(".entry _Z1kPi"), std::string::npos);
}

TEST_F(NvrtcTest, ManyAtOnceKeepTheirOrderAndTheirErrors) {
    std::vector<Source> sources;
    for (int i = 0; i < 5; ++i)
        sources.push_back(small("__global__ void k" + std::to_string(i) + "(int* p) { *p = "
                                    + (i == 3 ? std::string("broken") : std::to_string(i)) + "; }",
                                {"k" + std::to_string(i)}));
    auto outcomes = compile_all(sources, 2);
    ASSERT_EQ(outcomes.size(), 5u);
    for (int i = 0; i < 5; ++i) {
        if (i == 3) {
            ASSERT_TRUE(std::holds_alternative<Error>(outcomes[i]));
            EXPECT_EQ(std::get<Error>(outcomes[i]).code(), ExitCode::compile_failed);
        } else {
            ASSERT_TRUE(std::holds_alternative<Compiled>(outcomes[i]));
            EXPECT_EQ(std::get<Compiled>(outcomes[i]).lowered_names[0], "_Z2k" + std::to_string(i) + "Pi");
        }
    }
}

TEST(NvrtcOptions, TheArchitectureHasItsSuffix) {
    EXPECT_EQ(nvrtc_arch("sm_90"), "sm_90a");
    EXPECT_EQ(nvrtc_arch("sm_100"), "sm_100a");
    EXPECT_EQ(nvrtc_arch("sm_80"), "sm_80");
    Source source = small("");
    source.line_info = true;
    auto options = compile_options(source);
    EXPECT_EQ(options.front(), "--gpu-architecture=sm_90a");
    EXPECT_NE(std::find(options.begin(), options.end(), "--generate-line-info"), options.end());
}

}  // namespace
}  // namespace rooftile
