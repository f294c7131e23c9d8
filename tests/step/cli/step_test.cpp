// `step`: drawn kernels of several kinds step clean; with a fault planted, it is found at its line; public files step as they lie.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/folder.hpp"
#include "tests/from_environment.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

using nlohmann::json;
using testing::HasSubstr;
namespace fs = std::filesystem;

class StepTest : public testing::Test {
  protected:
    std::string file(const std::string& text, const std::string& name = "kernel.cu") const {
        std::ofstream(folder_ / name) << text;
        return (folder_ / name).string();
    }
    const Folder own_folder_;
    const fs::path& folder_ = own_folder_.path();
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
    return text;
}

Outcome step(const std::string& file, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"step", file});
    return run(arguments);
}

/// Of a text's copy in which a fault stands in the place of what is right.
struct Plant {
    std::string from, to;
    std::vector<std::string> kinds;  ///< one of these is found
    std::string at;                  ///< in the line that is named; empty: the one that was changed
};
struct Kind {
    std::string name, text;  ///< $N and $B are drawn
    std::vector<std::string> arguments;
    std::vector<Plant> plants;
    int block_step = 32;
};

// Grids have a block more than n fills, so that each bound is needed.
const std::vector<Kind>& kinds() {
    static const std::vector<Kind> all = {
        {"saxpy",
         R"(#include <cstdio>
__global__ void saxpy(int n, float a, const float* __restrict__ x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i];
}
int main() { saxpy<<<1, 2>>>(1, 2.f, nullptr, nullptr); }
)",
         {"--tensor", "x:fp32[$N]", "--tensor", "y:fp32[$N]", "--arg", "int32:$N", "--arg", "fp32:2.5", "--grid", "$G", "--reference",
          "y = 2.5 * x"},
         {{"i < n", "i <= n", {"outside"}, "y[i] ="}, {"y[i] =", "y[i - 1] =", {"outside"}, ""}, {"y[i] =", "y[0] =", {"race"}, ""}}},
        {"vectors",
         R"(#define FLOAT4(v) (reinterpret_cast<float4*>(&(v))[0])
__global__ void copy4(float* y, float* x, int n) {
    int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i + 3 < n) {
        float4 v = FLOAT4(x[i]);
        FLOAT4(y[i]) = v;
    } else
        for (; i < n; ++i) y[i] = x[i];
}
)",
         {"--tensor", "y:fp32[$N]", "--tensor", "x:fp32[$N]", "--arg", "int32:$N", "--grid", "$G", "--reference", "y = x"},
         {{"FLOAT4(x[i])", "FLOAT4(x[i + 1])", {"misaligned"}, ""}, {"i + 3 < n", "i + 2 < n + 3", {"outside"}, "FLOAT4(x[i])"}}},
        {"block sum",
         R"(__global__ void block_sum(const float* x, float* y, int n) {
    __shared__ float before[$B], part[$B];
    int t = threadIdx.x, i = blockIdx.x * $B + t;
    before[t] = i < n ? x[i] : 0.f;
    part[t] = before[t];
    __syncthreads();
    for (int s = $B / 2; s > 0; s /= 2) {
        if (t < s)
            part[t] += part[t + s];
        __syncthreads(); // of the loop
    }
    if (t == 0)
        atomicAdd(y, part[0]);
}
)",
         {"--tensor", "x:fp32[$N]", "--tensor", "y:fp32[]", "--fill", "y=0", "--arg", "int32:$N", "--grid", "$G", "--reference",
          "y = sum_all(x)"},
         {{"    __syncthreads();\n    for", "    for", {"race"}, "part[t] +="},
          {"__syncthreads(); // of the loop", "// of the loop", {"race"}, "part[t] +="},
          {"__syncthreads(); // of the loop", "if (t < s) __syncthreads();", {"divergent"}, ""},
          {"part[t + s]", "part[t + s + 1]", {"index", "outside"}, ""},
          {"part[t] = before[t]", "if (t > 0) part[t] = before[t]", {"unwritten"}, "part[t] +="},
          {"atomicAdd(y, part[0])", "*y += part[0]", {"race"}, ""}},
         0},  // a power of two
        {"transpose",
         R"(constexpr int tile = 32;
__global__ void transpose(float* out, const float* in, int w, int h) {
    __shared__ float s[tile][tile + 1];
    int x = blockIdx.x * tile + threadIdx.x, y = blockIdx.y * tile + threadIdx.y;
    for (int j = 0; j < tile; j += 8)
        if (x < w && y + j < h)
            s[threadIdx.y + j][threadIdx.x] = in[(y + j) * w + x];
    __syncthreads();
    x = blockIdx.y * tile + threadIdx.x, y = blockIdx.x * tile + threadIdx.y;
    for (int j = 0; j < tile; j += 8)
        if (x < h && y + j < w)
            out[(y + j) * h + x] = s[threadIdx.x][threadIdx.y + j];
}
)",
         {"--tensor", "out:fp32[$W,$H]", "--tensor", "in:fp32[$H,$W]", "--arg", "int32:$W", "--arg", "int32:$H", "--grid", "4x3", "--block",
          "32x8"},
         {{"    __syncthreads();\n", "\n", {"race"}, "out["},
          {"y + j < h)", "y + j <= h)", {"outside"}, "in["},
          {"s[threadIdx.x]", "s[threadIdx.x + 1]", {"index", "outside", "unwritten"}, ""}}},
        {"stencil",
         R"(__global__ void stencil(const float* x, float* y, int n) {
    extern __shared__ __align__(16) float s[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t + 1] = i < n ? x[i] : 0.f;
    if (t == 0) s[0] = i > 0 && i <= n ? x[i - 1] : 0.f;
    if (t == blockDim.x - 1)
        s[t + 2] = i + 1 < n ? x[i + 1] : 0.f;
    __syncthreads();
    if (i < n)
        y[i] = s[t] + s[t + 1] + s[t + 2];
}
)",
         {"--tensor", "x:fp32[$N]", "--tensor", "y:fp32[$N]", "--arg", "int32:$N", "--grid", "$G", "--shared", "$S"},
         {{"    __syncthreads();\n", "", {"race"}, "y[i] ="},
          {"s[t + 2] = i + 1", "s[t + 3] = i + 1", {"outside"}, ""},
          {"if (t == 0) s[0] =", "if (t == 0) s[2] =", {"race"}, "s[t + 1] ="}}},
        {"scan",
         R"(template <typename T>
__device__ T add(T a, T b) { return a + b; }
template <typename T>
__global__ void scan(const T* x, T* y, int n) {
    __shared__ T s[$B];
    const int t = threadIdx.x, i = blockIdx.x * $B + t;
    s[t] = i < n ? x[i] : T(0);
    __syncthreads();
    for (int d = 1; d < $B; d *= 2) {
        T v = s[t];
        if (t >= d)
            v = add(v, s[t - d]);
        __syncthreads();  // after the reads
        s[t] = v;
        __syncthreads();
    }
    if (i < n) y[i] = s[t];
}
)",
         {"--entry", "scan<int>", "--tensor", "x:int32[$N]", "--tensor", "y:int32[$N]", "--fill", "x=below:100", "--arg", "int32:$N",
          "--grid", "$G"},
         {{"__syncthreads();  // after the reads", "", {"race"}, "s["},
          {"t >= d", "t + 1 >= d", {"index", "outside"}, "add(v"},
          {"if (t >= d)", "if (t < d) return; else", {"divergent"}, "after the reads"}}},
        {"warps",
         R"(#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void counts(const unsigned char* v, unsigned* c, int n) {
    __shared__ unsigned own[8];
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    if (threadIdx.x < 8) own[threadIdx.x] = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 8; ++k) {
        unsigned hits = __popc(__ballot_sync(0xffffffffu, i < n && v[i] == k));
        unsigned sum = i < n && v[i] == k;
        for (int o = 16; o > 0; o /= 2) sum += warp.shfl_down(sum, o);
        if (warp.thread_rank() == 0 && hits == sum)
            atomicAdd(&own[k], sum);
    }
    __syncthreads();
    if (threadIdx.x < 8)
        atomicAdd(&c[threadIdx.x], own[threadIdx.x]);
}
)",
         {"--tensor", "v:uint8[$N]", "--fill", "v=below:8", "--tensor", "c:uint32[8]", "--arg", "int32:$N", "--grid", "$G"},
         {{"atomicAdd(&own[k], sum);", "own[k] += sum;", {"race"}, ""},
          {"k < 8;", "k < 9;", {"index", "outside"}, "own[k]"},
          {"i < n && v[i] == k));", "v[i] == k));", {"outside"}, ""}},
         64},
    };
    return all;
}

struct Drawn {
    std::string text;
    std::vector<std::string> arguments;
};
Drawn drawn(const Kind& kind, std::mt19937_64& random) {
    const auto between = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
    const int block = kind.block_step == 0 ? 32 << between(1, 4) : kind.block_step * between(2, 8), blocks = between(2, 4);
    const int n = blocks * block - between(1, block - 1);
    // Not multiples of a tile, and rows of the last tile that a block reaches are no rows.
    const int w = 32 * between(1, 3) + between(1, 31), h = 32 * between(1, 2) + between(1, 7);
    const std::map<std::string, int> numbers = {{"$N", n},          {"$B", kind.name == "scan" ? (block > 128 ? 256 : 128) : block},
                                                {"$G", blocks + 1}, {"$W", w},
                                                {"$H", h},          {"$S", 4 * (block + 2)}};
    Drawn out{kind.text, kind.arguments};
    if (std::ranges::find(out.arguments, "--block") == out.arguments.end())
        out.arguments.insert(out.arguments.end(), {"--block", kind.name == "scan" ? "$B" : std::to_string(block)});
    for (const auto& [name, number] : numbers) {
        out.text = replaced(out.text, name, std::to_string(number));
        for (std::string& argument : out.arguments) argument = replaced(argument, name, std::to_string(number));
    }
    return out;
}

int line_of(const std::string& text, const std::string& what) {
    return 1 + int(std::count(text.begin(), text.begin() + std::ptrdiff_t(text.find(what)), '\n'));
}

TEST_F(StepTest, DrawnKernelsStepCleanAndPlantedFaultsAreFoundAtTheirLine) {
    struct Run {
        const Kind* kind;
        const Plant* plant;
    };
    std::vector<Run> runs;
    for (const Kind& kind : kinds()) {
        runs.push_back({&kind, nullptr});
        for (const Plant& plant : kind.plants) runs.push_back({&kind, &plant});
    }
    std::mt19937_64 random(test_seed());
    for (const Run& one : drawn_few(runs, 8)) {
        const Drawn right = drawn(*one.kind, random);
        const std::string text = one.plant ? replaced(right.text, one.plant->from, one.plant->to) : right.text;
        std::vector<std::string> arguments = right.arguments;
        arguments.push_back("--json");
        const Outcome got = step(file(text), arguments);
        std::string about = one.kind->name + (one.plant ? ": " + one.plant->to : "") + "\n" + text;
        for (const std::string& argument : arguments) about += " " + argument;
        if (!one.plant) {
            ASSERT_EQ(got.code, 0) << about << got.err;
            const json document = json::parse(got.out);
            EXPECT_EQ(JsonSchema("step-1.json").faults(document), "") << about;
            EXPECT_EQ(document["stepped"], document["blocks"]) << about;
            if (std::ranges::find(arguments, "--reference") != arguments.end()) {
                EXPECT_EQ(document["reference"]["right"], true) << about;
            }
            continue;
        }
        ASSERT_NE(text, right.text) << about;
        ASSERT_EQ(got.code, 3) << about << got.err << got.out;
        EXPECT_EQ(got.error_lines(), 1) << about << got.err;
        const json document = json::parse(got.out);
        EXPECT_EQ(JsonSchema("step-1.json").faults(document), "") << about;
        const json& fault = document["fault"];
        EXPECT_THAT(one.plant->kinds, testing::Contains(fault["kind"].get<std::string>())) << about << fault.dump(2);
        const int line = fault["at"]["line"].get<int>();
        if (one.plant->at.empty()) {
            EXPECT_EQ(line, line_of(text, one.plant->to)) << about << fault.dump(2);
        } else {
            EXPECT_THAT(fault["at"]["text"].get<std::string>(), HasSubstr(one.plant->at)) << about << fault.dump(2);
        }
    }
}

TEST_F(StepTest, PublicFilesStepAsTheyLieOrAreRefusedByName) {
    struct Public {
        std::string file;
        std::vector<std::string> arguments;
        int code;
        std::string says;  ///< in what is written, of either stream
    };
    const std::vector<Public> all = {
        {"block_tiled_product.cu",
         {"--tensor",        "A:fp32[128,64]", "--tensor",  "B:fp32[64,128]", "--tensor",
          "C:fp32[128,128]", "--arg",          "int32:128", "--arg",          "int32:128",
          "--arg",           "int32:64",       "--arg",     "fp32:1",         "--arg",
          "fp32:0",          "--grid",         "2x2",       "--block",        "512"},
         0,
         "16384 of 16384 elements changed"},
        {"cooperative_softmax.cu",
         {"--tensor", "out:fp32[20,100]", "--tensor", "inp:fp32[20,100]", "--arg", "int32:20", "--arg", "int32:100", "--grid", "3"},
         0,
         "2000 of 2000 elements changed"},
        {"gelu_lecture.cu",
         {"--tensor", "x:fp32[1500]", "--tensor", "y:fp32[1500]", "--arg", "int32:1500", "--grid", "2", "--block", "1024", "--reference",
          "y = gelu_tanh(x)"},
         0,
         "right at every element"},
        {"half_vectors.cu",
         {"--tensor", "a:fp16[1000]", "--tensor", "b:fp16[1000]", "--tensor", "c:fp16[1000]", "--arg", "int32:1000", "--grid", "2",
          "--reference", "c = a + b"},
         0,
         "right at every element"},
        {"histogram.cu",
         {"--tensor", "v:uint8[5000]", "--fill", "v=below:200", "--tensor", "c:uint32[256]", "--arg", "uint64:5000", "--grid", "3"},
         0,
         "200 of 256 elements changed"},
        {"layernorm_forward.cu",
         {"--tensor", "out:fp32[30,96]", "--tensor", "inp:fp32[30,96]", "--tensor", "w:fp32[96]", "--arg", "int32:30", "--arg", "int32:96",
          "--grid", "4"},
         0,
         "2880 of 2880 elements changed"},
        // Its warps go without __syncwarp(), which was right before Volta.
        {"reduction_ladder.cu",
         {"--tensor", "x:fp32[4096]", "--tensor", "y:fp32[4]", "--arg", "uint32:4096", "--grid", "4", "--block", "512", "--shared", "2048"},
         3,
         "__syncwarp()"},
        {"tensor_core.cu",
         {"--tensor", "a:fp16[64,64]", "--tensor", "b:fp16[64,64]", "--tensor", "c:fp32[64,64]", "--arg", "int32:64", "--arg", "int32:64",
          "--arg", "int32:64", "--grid", "4x4", "--block", "32"},
         2,
         "tensor_core.cu:2:2: #include <mma.h> cannot be stepped"},
        {"torch_extension.cu",
         {"--tensor", "x:bf16[8,100]", "--tensor", "y:fp32[8,1]", "--arg", "int64:100", "--grid", "8", "--block", "32", "--reference",
          "y = fp32(max(x))"},
         0,
         "right at every element"},
        {"transpose_c.cu",
         {"--tensor", "o:fp32[40,50]", "--tensor", "i:fp32[50,40]", "--arg", "int32:40", "--arg", "int32:50", "--grid", "2x2", "--block",
          "32x8"},
         0,
         "2000 of 2000 elements changed"},
        {"windows_file.cu",
         {"--tensor", "y:fp32[100]", "--tensor", "x:fp32[100]", "--arg", "fp32:2", "--arg", "int32:100", "--grid", "1", "--reference",
          "y = 2 * x"},
         0,
         "right at every element"}};
    const fs::path folder = ROOFTILE_SOURCE_DIR "/tests/data/public";
    std::size_t files = 0;
    for (const auto& entry : fs::directory_iterator(folder)) files += entry.path().extension() == ".cu";
    EXPECT_EQ(files, all.size()) << "a public file is not stepped";
    for (const Public& one : drawn_few(all, 3)) {
        std::ifstream in(folder / one.file);
        std::string first;
        std::getline(in, first);
        std::vector<std::string> arguments = one.arguments;
        const std::string mark = "// entry: ";
        std::string entry = first.substr(first.find(mark) + mark.size());
        if (entry.ends_with('\r')) entry.pop_back();
        arguments.insert(arguments.end(), {"--entry", entry});
        const Outcome got = step((folder / one.file).string(), arguments);
        EXPECT_EQ(got.code, one.code) << one.file << got.err;
        EXPECT_THAT(got.out + got.err, HasSubstr(one.says)) << one.file;
    }
}

/// Words of a shell's line, as far as double quotes go.
std::vector<std::string> words_of(const std::string& line) {
    std::vector<std::string> out(1);
    bool quoted = false;
    for (const char c : line) {
        if (c == '"') quoted = !quoted;
        else if (c == ' ' && !quoted) out.emplace_back();
        else out.back() += c;
    }
    return out;
}

TEST_F(StepTest, WhatTeachingTextUsesSteps) {
    const std::string file = ROOFTILE_SOURCE_DIR "/tests/data/step/teaching.cu", mark = "// step: ";
    std::vector<std::vector<std::string>> all;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);)
        if (line.starts_with(mark)) all.push_back(words_of(line.substr(mark.size())));
    ASSERT_GE(all.size(), 10u);
    for (const std::vector<std::string>& arguments : drawn_few(all, 2)) {
        const Outcome got = step(file, arguments);
        EXPECT_EQ(got.code, 0) << arguments[1] << "\n" << got.err << got.out;
        EXPECT_THAT(got.out, HasSubstr("elements changed")) << arguments[1];
        EXPECT_THAT(got.err, testing::IsEmpty()) << arguments[1];
    }
}

TEST_F(StepTest, WatchesPrintsAndCallersAreShown) {
    const std::string text = R"(#include <cstdio>
__device__ float at(const float* x, int i) {
    return x[i];
}
__global__ void k(const float* x, float* y, int n) {
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += 2)
        sum += at(x, i);
    printf("%d: %.0f\n", threadIdx.x, sum);
    y[threadIdx.x] = sum;
}
)";
    const std::vector<std::string> arguments = {"--tensor", "x:fp32[4]", "--fill",  "x=index", "--tensor", "y:fp32[2]",
                                                "--grid",   "1",         "--block", "2",       "--arg"};
    std::vector<std::string> right = arguments, wrong = arguments;
    right.insert(right.end(), {"int32:4", "--watch", "8:sum", "--watch", "8:i", "--thread", "1", "--json"});
    wrong.insert(wrong.end(), {"int32:5", "--json"});
    const Outcome got = step(file(text), right);
    ASSERT_EQ(got.code, 0) << got.err;
    const json document = json::parse(got.out);
    EXPECT_EQ(JsonSchema("step-1.json").faults(document), "");
    std::string watched;
    for (const json& w : document["watched"]) watched += w["expression"].get<std::string>() + "=" + w["value"].get<std::string>() + " ";
    EXPECT_EQ(watched, "sum=1 i=1 sum=4 i=3 ");
    EXPECT_EQ(document["printed"], "0: 2\n1: 4\n");
    const json fault = json::parse(step(file(text), wrong).out)["fault"];
    EXPECT_EQ(fault["message"], "out of bounds: reads element 4 of x; fp32[4] has elements 0 to 3");
    EXPECT_EQ(fault["at"]["line"], 3);
    EXPECT_EQ(fault["called_from"][0]["line"], 8);
}

TEST_F(StepTest, HeadersOfTheUserHaveTheirLines) {
    fs::create_directories(folder_ / "inc" / "deep"), fs::create_directories(folder_ / "src");
    file(
        "#pragma once\n#include <vector>\n#include \"deep/more.cuh\"\nstatic void host(std::vector<float>& v) { v.clear(); }\nextern "
        "__shared__ float scratch[];\n",
        "inc/common.cuh");
    file("#pragma once\n__device__ inline void put(float* to, int i) {\n    to[i] = i;\n}\n", "inc/deep/more.cuh");
    const std::string text =
        "#include \"../inc/common.cuh\"\nnamespace mine {\n__global__ void k(float* y) {\n    scratch[threadIdx.x] = 1;\n    put(y, "
        "threadIdx.x + OFF);\n}\n}\n";
    const std::vector<std::string> arguments = {"--tensor", "y:fp32[64]", "--grid", "1", "--block", "64", "--shared", "256"};
    const Outcome right = step(file(replaced(text, "OFF", "0"), "src/right.cu"), arguments),
                  wrong = step(file(replaced(text, "OFF", "1"), "src/wrong.cu"), arguments);
    EXPECT_EQ(right.code, 0) << right.err << right.out;
    EXPECT_EQ(wrong.code, 3) << wrong.err;
    EXPECT_THAT(wrong.err, HasSubstr("deep/more.cuh:3: out of bounds: writes element 64 of y"));
    EXPECT_THAT(wrong.out, HasSubstr("src/wrong.cu:5: put(y, threadIdx.x + 1);"));
}

TEST_F(StepTest, EachKindOfFaultIsNamedWithItsLine) {
    const std::string path = ROOFTILE_SOURCE_DIR "/tests/data/step/faults.cu", mark = "__global__ void ";
    std::vector<std::string> kinds;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);)
        if (line.starts_with(mark)) kinds.push_back(line.substr(mark.size(), line.find('(') - mark.size()));
    std::ifstream schema_file(ROOFTILE_SOURCE_DIR "/docs/schema/step-1.json");
    EXPECT_EQ(json::parse(schema_file)["properties"]["fault"]["properties"]["kind"]["enum"].size(), kinds.size()) << "a kind has no kernel";
    for (const std::string& kind : drawn_few(kinds, 3)) {
        const Outcome got = step(path, {"--entry", kind, "--tensor", "x:fp32[64]", "--tensor", "y:fp32[64]", "--arg", "int32:64", "--grid",
                                        "2", "--block", "64", "--timeout", "0.5", "--json"});
        ASSERT_EQ(got.code, 3) << kind << got.err;
        const json document = json::parse(got.out);
        EXPECT_EQ(JsonSchema("step-1.json").faults(document), "") << kind;
        EXPECT_EQ(document["fault"]["kind"], kind == "failed_assertion" ? "assert" : kind) << kind;
        EXPECT_THAT(document["fault"]["at"].dump(), HasSubstr("// here")) << document["fault"].dump(2);
    }
}

TEST_F(StepTest, WhatCannotBeSteppedIsRefusedInOneLine) {
    const std::string good = file("__global__ void k(float* x, int n) {\n    asm volatile(\"bar.sync 0;\");\n    x[0] = n;\n}\n");
    const std::vector<std::string> call = {"step", good, "--grid", "1", "--block", "32"};
    const auto with = [&](std::vector<std::string> more) {
        more.insert(more.begin(), call.begin(), call.end());
        return more;
    };
    expect_refused(with({"--tensor", "x:fp32[1]", "--arg", "int32:1"}), {"kernel.cu:2: inline PTX (bar.sync 0;) cannot be stepped"});
    expect_refused(with({"--tensor", "x:fp32[1]"}), {"has 2 parameters; given are 1"});
    expect_refused(with({"--tensor", "x:fp16[1]", "--arg", "int32:1"}), {"parameter 1 is float*", "tensor x"});
    expect_refused(with({"--tensor", "x:fp32[1]", "--arg", "fp32:1"}), {"parameter 2 is int", "fp32:1"});
    expect_refused(with({"--tensor", "x:fp32[1]", "--arg", "int32:1", "--watch", "99:n"}), {"--watch 99:n"});
    expect_refused(with({"--tensor", "x:fp32[1]", "--arg", "int32:1", "--cta", "1"}), {"--cta 1: there are 1x1x1"});
    expect_refused(with({"--tensor", "x:fp32[1]", "--arg", "int32:1", "--fill", "z=1"}), {"--fill z=1"});
    expect_refused({"step", file("#include \"nowhere.h\"\n__global__ void k(float* x) {}\n"), "--grid", "1"},
                   {"kernel.cu:1:", "nowhere.h"});
    const Outcome wrong = step(file("__global__ void k(float* x) {\n    x[0] = y;\n}\n"), {"--grid", "1", "--tensor", "x:fp32[1]"});
    EXPECT_EQ(wrong.code, 5);
    EXPECT_THAT(wrong.err, HasSubstr("kernel.cu:2:12: error:"));
    Environment nothing = plain_environment();
    nothing["PATH"] = folder_.string();
    const Outcome none = run({"step", good, "--grid", "1", "--tensor", "x:fp32[1]", "--arg", "int32:1"}, nothing);
    EXPECT_EQ(none.code, 2);
    EXPECT_THAT(none.err, HasSubstr("finds no g++"));
}

}  // namespace
}  // namespace rooftile
