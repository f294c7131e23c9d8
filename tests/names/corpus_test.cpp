// Names that libraries hold and that a GPU ran, read by other means than the decoder's: every one says here what it should say there.
#include <array>
#include <cctype>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include <gtest/gtest.h>

#include "rooftile/core/random.hpp"
#include "rooftile/names/launch_agreement.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

std::vector<std::string> lines_of(const char* file) {
    std::ifstream in(std::string(ROOFTILE_SOURCE_DIR "/tests/names/") + file);
    std::vector<std::string> out;
    for (std::string line; std::getline(in, line);)
        if (!line.empty() && line[0] != '#') out.push_back(line);
    return out;
}

std::optional<std::smatch> found(const std::string& text, const char* expression) {
    std::smatch match;
    return std::regex_search(text, match, std::regex(expression)) ? std::optional(match) : std::nullopt;
}

struct Expected {
    std::optional<int> m, n, k, stages;
    std::string layout, first_type;
};

std::string upper_of(std::string text) {
    for (char& c : text) c = char(std::toupper(c));
    return text;
}

/// Of products and convolutions whose names have a grammar of underscores.
Expected expected_of(const std::string& name) {
    Expected out;
    const auto set_tile = [&](const std::smatch& match, std::size_t extents) {
        out.m = std::stoi(match[1]), out.n = std::stoi(match[2]);
        if (extents > 2) out.k = std::stoi(match[3]);
    };
    static const std::map<std::string, std::string> types = {{"f16", "fp16"}, {"bf16", "bf16"}, {"f32", "fp32"},      {"tf32", "tf32"},
                                                             {"f64", "fp64"}, {"i8", "int8"},   {"e4m3", "fp8_e4m3"}, {"e5m2", "fp8_e5m2"}};
    if (found(name, "^sm\\d+_xmma_")) {
        if (const auto tile = found(name, "_tilesize(\\d+)x(\\d+)x(\\d+)_")) set_tile(*tile, 3);
        if (const auto stages = found(name, "_stage(\\d+)_")) out.stages = std::stoi((*stages)[1]);
        if (found(name, "depthwise"))
            return {.m = {}, .n = {}, .k = {}, .stages = out.stages, .layout = "", .first_type = ""};  // a tile of a picture
        if (const auto layout = found(name, "_([tnc][tnc])_n_tilesize")) out.layout = upper_of((*layout)[1]) + "N";
        if (found(name, "_tf32f32_c?f32_")) out.first_type = found(name, "_cf32cf32_") ? "" : "tf32";
        else if (const auto type =
                     found(name, "_(bf16|f16|f32|f64|i8|e4m3|e5m2)[a-z0-9]*_[a-z0-9]+_[a-z0-9]+_(?:[tn]{2}_n|nhwckrsc_nhwc)_tilesize"))
            out.first_type = types.at((*type)[1]);
    } else if (found(name, "cutlass_")) {
        if (const auto tile = found(name, "_(\\d+)x(\\d+)_(\\d+)x(\\d+)_")) {
            set_tile(*tile, 3);
            out.stages = std::stoi((*tile)[4]);
        }
        if (const auto layout = found(name, "_([tnh][tnh])_align")) out.layout = upper_of((*layout)[1]);
        if (const auto type = found(name, "_[shd]\\d+(?:gemm|[fdw](?:prop|grad))(?:_optimized|_analytic|_relu)*_(bf16|f16|tf32)_"))
            out.first_type = types.at((*type)[1]);
    } else if (found(name, "(ampere|turing|volta|hopper)_.*(gemm|cudnn)")) {
        if (const auto tile = found(name, "(?:gemm|cudnn)_?[a-z0-9]*_(\\d+)x(\\d+)_")) set_tile(*tile, 2);
        if (const auto stages = found(name, "_stages_(\\d+)x(\\d+)_"))
            out.k = std::stoi((*stages)[1]), out.stages = std::stoi((*stages)[2]);
        if (const auto layout = found(name, "_([tnc][tnc])$")) out.layout = upper_of((*layout)[1]);
    }
    return out;
}

TEST(NamesOfLibraries, SayTheirPlans) {
    int tiles = 0, stages = 0, layouts = 0, types = 0, names = 0;
    for (const std::string& line : lines_of("libraries.txt")) {
        const KernelName name = decode(line);
        ++names;
        EXPECT_NE(name.family, "unknown") << line;
        EXPECT_FALSE(name.role.empty() && name.family != "nccl") << line;
        EXPECT_LE(describe(name).size(), 60u) << line;
        const Expected expected = expected_of(line);
        if (expected.m) {
            ++tiles;
            EXPECT_EQ(name.tile_m, expected.m) << line;
            EXPECT_EQ(name.tile_n, expected.n) << line;
        }
        EXPECT_EQ(name.tile_k, expected.k) << line;
        EXPECT_EQ(name.stages, expected.stages) << line;
        stages += expected.stages.has_value();
        if (!expected.layout.empty()) {
            ++layouts;
            EXPECT_EQ(name.layout, expected.layout) << line;
        }
        if (!expected.first_type.empty()) {
            ++types;
            EXPECT_EQ(name.types.a, expected.first_type) << line;
        }
        if (name.family == "xmma" || name.family == "cutlass2") { EXPECT_FALSE(name.types.a.empty()) << line; }
    }
    // The sample has what it is for.
    EXPECT_GT(names, 300);
    EXPECT_GT(tiles, 200);
    EXPECT_GT(stages, 150);
    EXPECT_GT(layouts, 100);
    EXPECT_GT(types, 100);
}

TEST(PublicNames, Described) {
    std::string description;
    int names = 0;
    for (const std::string& line : lines_of("public.txt")) {
        if (line[0] != ' ') {
            description = line;
            continue;
        }
        ++names;
        EXPECT_EQ(describe(decode(line.substr(line.find_first_not_of(' ')))), description) << line;
    }
    EXPECT_GT(names, 50);
}

// What the descriptions do not show.
TEST(PublicNames, OfAttentionAndDeepGemm) {
    const auto named = [](std::string_view part) {
        for (const std::string& line : lines_of("public.txt"))
            if (line[0] == ' ' && line.find(part) != line.npos) return decode(line.substr(line.find_first_not_of(' ')));
        ADD_FAILURE() << part;
        return KernelName{};
    };
    const KernelName third = named("FlashAttnFwdSm90");
    EXPECT_EQ(third.family, "flash-attention");
    EXPECT_EQ(third.arch, "sm_90");
    EXPECT_EQ(third.operation, "forward, causal");
    EXPECT_EQ(third.stages, 2);
    EXPECT_EQ(third.cluster_m, 1);
    EXPECT_EQ(named("flash_fwd_splitkv_kernel").operation, "forward, keys split");
    EXPECT_EQ(named("flash_fwd_splitkv_kernel").threads, 128);
    const KernelName deep = named("sm90_fp8_gemm_1d2d");
    EXPECT_EQ(deep.shape_n, 4096);
    EXPECT_EQ(deep.shape_k, 1024);
    EXPECT_EQ(deep.shape_m, std::nullopt);  // 0: given at run time
    EXPECT_EQ(deep.threads, 384);
    EXPECT_EQ(named("sm100_fp8_fp4").cluster_n, 2);
    EXPECT_EQ(named("sm90_bf16_gemm").tile_k, 64);
    EXPECT_EQ(named("fmha_cutlassB").arch, "sm_80");
    EXPECT_EQ(named("sdpa_sm90_flash_fprop").types.a, "");  // f16 of a run on bf16
}

TEST(NamesOfLibraries, Collectives) {
    const KernelName name = decode("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
    EXPECT_EQ(name.role, "collective");
    EXPECT_EQ(name.types.a, "bf16");
    EXPECT_EQ(describe(name), "NCCL bf16 collective: all-reduce sum, ring, LL");
    EXPECT_EQ(decode("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)").operation, "all-reduce sum, ring, LL");
    EXPECT_EQ(decode("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)").operation, "send-recv");
}

// A line of launches_h200.txt.
struct Launch {
    LaunchData data;
    int batch = 0;
    long m = 0, n = 0, k = 0;
    std::string what;
    KernelName name;
};

std::array<int, 3> triple(const std::string& text) {
    const auto match = found(text, "^(\\d+)x(\\d+)x(\\d+)$");
    return {std::stoi((*match)[1]), std::stoi((*match)[2]), std::stoi((*match)[3])};
}

std::vector<Launch> launches() {
    std::vector<Launch> out;
    for (const std::string& line : lines_of("launches_h200.txt")) {
        std::istringstream in(line);
        std::string grid, block, cluster, shape, name;
        Launch launch;
        in >> grid >> block >> cluster >> launch.data.registers >> launch.data.static_shared >> launch.data.dynamic_shared >> shape
            >> launch.what >> name;
        launch.data.grid = triple(grid), launch.data.block = triple(block), launch.data.cluster = triple(cluster);
        if (const auto s = found(shape, "^(\\d+)x(\\d+)x(\\d+)x(\\d+)$"))
            launch.batch = std::stoi((*s)[1]), launch.m = std::stol((*s)[2]), launch.n = std::stol((*s)[3]), launch.k = std::stol((*s)[4]);
        launch.name = decode(name);
        out.push_back(std::move(launch));
    }
    return out;
}

TEST(NamesOfLaunches, AgreeWithNames) {
    int checked = 0, exact = 0;
    for (const Launch& launch : launches()) {
        EXPECT_NE(launch.name.family, "unknown") << launch.name.name;
        const LaunchAgreement agreement = agrees(launch.name, launch.data);
        checked += agreement.checked > 0;
        for (const std::string& sentence : agreement.disagreements) ADD_FAILURE() << launch.name.name << ": " << sentence;
        // Of nvjet and of CUTLASS's pipelines the bytes follow to the last stage.
        if (launch.name.family == "nvjet") exact += agreement.checked >= 4;
    }
    EXPECT_GT(checked, 240);
    EXPECT_GT(exact, 190);
}

// What was called says the types; row-major C = A B is column-major C^T = B^T A^T, so that cuBLAS's m is our n. Where the tiles are fewer
// than CTAs fit, the grid counts them: only one of the two readings gives its number.
TEST(NamesOfLaunches, SayWhichSideIsM) {
    int counted = 0, other = 0, typed = 0;
    const auto ceiling = [](long a, long b) { return (a + b - 1) / b; };
    for (const Launch& launch : launches()) {
        const KernelName& name = launch.name;
        if (name.family != "nvjet" || launch.m == 0) continue;
        ++typed;
        EXPECT_EQ(name.types.a, launch.what == "fp16" ? "fp16" : launch.what == "fp8" ? "fp8_e4m3" : "bf16") << name.name;
        const std::string transposes = launch.what == "nn" ? "NN" : launch.what == "nt" ? "TT" : launch.what == "tt" ? "NT" : "TN";
        EXPECT_EQ(name.layout.substr(0, 2), transposes) << name.name;
        EXPECT_EQ(name.epilogue, launch.what == "bias" ? "bias" : launch.what == "gelu" ? "gelu + bias" : "") << name.name;
        // The side of the tile on the instruction's 64 rows: m, or n where the result is turned.
        EXPECT_EQ((name.layout[2] == 'T' ? *name.tile_m : *name.tile_n) % 64, 0) << name.name;
        if (name.split_k == true) continue;
        const auto ctas = [&](long m, long n) {
            const long cm = *name.cluster_m, cn = *name.cluster_n;
            return ceiling(ceiling(m, *name.tile_m), cm) * cm * ceiling(ceiling(n, *name.tile_n), cn) * cn * launch.batch;
        };
        const long launched = long(launch.data.grid[0]) * launch.data.grid[1] * launch.data.grid[2];
        if (ctas(launch.n, launch.m) > 100) continue;  // a persistent grid
        ++counted;
        EXPECT_EQ(ctas(launch.n, launch.m), launched) << name.name;
        other += ctas(launch.m, launch.n) == launched;
    }
    EXPECT_GT(typed, 190);
    EXPECT_GT(counted, 60);
    EXPECT_LT(other, counted / 4);
}

// Names cut, joined and changed at random: whatever comes of them is within the bounds of what a name can say.
TEST(MutatedNames, StayWithinBounds) {
    std::vector<std::string> names = lines_of("libraries.txt");
    for (const std::string& line : lines_of("public.txt")) names.push_back(line);
    for (const std::string& line : lines_of("launches_h200.txt")) names.push_back(line.substr(line.rfind(' ') + 1));
    Random random(from_environment("ROOFTILE_TEST_SEED", 3));
    const LaunchData launch{
        .grid = {4, 29, 1}, .block = {384, 1, 1}, .cluster = {4, 1, 1}, .registers = 168, .static_shared = 0, .dynamic_shared = 197076};
    const std::string signs = "_x0123456789<>(),: NT";
    for (std::uint64_t i = 0; i < from_environment("ROOFTILE_TEST_COUNT", 3000); ++i) {
        std::string text = names[random.pick(names.size())];
        for (std::int64_t changes = random.whole(1, 6); changes > 0 && !text.empty(); --changes) {
            const std::size_t at = random.pick(text.size());
            if (random.coin()) text[at] = signs[random.pick(signs.size())];
            else if (random.coin()) text.erase(at, std::size_t(random.whole(1, 9)));
            else if (random.coin()) text.insert(at, std::string(1, text[at]));
            else text = text.substr(0, at) + names[random.pick(names.size())].substr(0, 90);
        }
        const KernelName name = decode(text);
        EXPECT_LE(describe(name).size(), 60u) << text;
        for (const auto& extent : {name.tile_m, name.tile_n, name.tile_k, name.stages, name.cluster_m, name.cluster_n, name.threads,
                                   name.consumer_warpgroups, name.alignment_bytes})
            EXPECT_TRUE(!extent || *extent > 0) << text;
        EXPECT_TRUE(!expected_shared_bytes(name) || *expected_shared_bytes(name) > 0) << text;
        agrees(name, launch);
    }
}

TEST(LaunchAgreement, TellsAWrongPlan) {
    const LaunchData launch{
        .grid = {4, 29, 1}, .block = {384, 1, 1}, .cluster = {4, 1, 1}, .registers = 168, .static_shared = 0, .dynamic_shared = 197076};
    EXPECT_TRUE(agrees(decode("nvjet_sm90_hsh_64x24_64x16_4x1_v_bz_TNT"), launch).agrees());
    const auto refused = [&](const char* name) { return !agrees(decode(name), launch).agrees(); };
    EXPECT_TRUE(refused("nvjet_sm90_hsh_64x24_64x15_4x1_v_bz_TNT"));       // a stage less
    EXPECT_TRUE(refused("nvjet_sm90_hsh_64x24_64x17_4x1_v_bz_TNT"));       // a stage more
    EXPECT_TRUE(refused("nvjet_sm90_hsh_64x32_64x16_4x1_v_bz_TNT"));       // a larger tile
    EXPECT_TRUE(refused("nvjet_sm90_hsh_64x24_64x16_2x1_v_bz_TNT"));       // another cluster
    EXPECT_TRUE(refused("nvjet_sm90_sss_tf32_64x24_64x16_4x1_v_bz_TNT"));  // larger elements
    // What is not known is not checked.
    EXPECT_EQ(agrees(decode("nvjet_sm90_hsh_64x24_64x16_4x1_v_bz_TNT"), {}).checked, 0);
    EXPECT_EQ(agrees(decode("main"), launch).checked, 0);
}

}  // namespace
}  // namespace rooftile
