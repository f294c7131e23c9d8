// Exports of drawn plans: texts are complete, and what Triton is given fits the machine by the model of its compiler.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "rooftile/core/exports.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/draw.hpp"
#include "rooftile/gemm/export/exports.hpp"
#include "rooftile/gemm/export/triton_model.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/machine/registry.hpp"
#include "tests/folder.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<const Machine> machine_of(const char* id) { return std::make_shared<const Machine>(machine_by_id(id)); }

Exported export_to(std::string_view target, const std::shared_ptr<const Machine>& machine, const Problem& problem,
                   const Given& given = Given()) {
    const Operation& gemm = gemm_operation();
    const auto& exports = *facet_of<Exports>(gemm);
    for (std::size_t i = 0; i < exports.targets().size(); ++i)
        if (exports.targets()[i].name == target) {
            const Own request = gemm.request(given, {.top = 64});
            return exports.exported(i, machine, problem, request, gemm.derive(machine, problem, request), given);
        }
    throw std::runtime_error("no such target");
}

/// Plain, of any alignment, or in groups.
GemmProblem drawn_for_export(Random& random, int i) {
    static constexpr const char* laws[] = {"", "any", "group"};
    return drawn_gemm(random, {laws[i % 3]});
}

TEST(GemmExport, FilesForTritonAreCompletePython) {
    const Folder folder;
    const std::string name = folder.path().string();
    Random random(test_seed());
    std::string files;
    for (int i = 0; i < int(test_count(9, 90)); ++i) {
        const GemmProblem p = drawn_for_export(random, i);
        const auto machine = machine_of(i % 4 == 3 ? "a100-80-sxm" : "h100-sxm");
        if (p.groups && (p.a_major != Major::k || p.b_major != Major::k)) continue;
        const Exported made = export_to("triton", machine, {&gemm_operation(), Own::of(p)});
        SCOPED_TRACE(made.text);
        EXPECT_FALSE(std::regex_search(made.text, std::regex("@[A-Z_]+@")));
        EXPECT_TRUE(made.file.ends_with(".py"));
        EXPECT_GT(made.time_us.value_or(0), 0);
        EXPECT_NE(made.text.find("num_warps="), made.text.npos);
        EXPECT_EQ(made.text.find("TensorDescriptor") != made.text.npos,
                  machine->has("tma") && !p.groups && (p.lda | p.ldb | p.ldc | p.a_offset | p.b_offset | p.c_offset) % 8 == 0);
        const std::string file = fmt::format("{}/{}.py", name, i);
        std::ofstream(file) << made.text;
        files += " " + file;
    }
    EXPECT_EQ(std::system(fmt::format("{} -m py_compile{}", ROOFTILE_PYTHON, files).c_str()), 0);
}

// By the arithmetic of the compiler's rules: sums a thread, buffers of the ring, threads and registers of an SM.
TEST(GemmExport, WhatTritonIsGivenFitsTheMachine) {
    Random random(test_seed());
    for (int i = 0; i < int(test_count(12, 120)); ++i) {
        const GemmProblem p = drawn_for_export(random, i);
        const auto loads = p.groups ? TritonLoads::gathered : TritonLoads::descriptors;
        const TritonModel model(*machine_of(random.coin() ? "h100-sxm" : "h20"), p, loads);
        const auto plans = fastest_triton({model}, {});
        ASSERT_EQ(plans.size(), 1u);
        const auto& [t, use] = std::tie(plans[0].config, plans[0].use);
        SCOPED_TRACE(
            fmt::format("{}x{}x{}: {}x{}x{}, {} stages, {} warps", p.m, p.n, p.k, t.block_m, t.block_n, t.block_k, t.stages, t.warps));
        for (const int side : {t.block_m, t.block_n, t.block_k}) EXPECT_EQ(side & (side - 1), 0);
        EXPECT_LE(t.block_m * t.block_n, 128 * 32 * t.warps);
        EXPECT_EQ(use.wgmma, t.block_m >= 64);
        const int buffers = use.wgmma ? t.stages : t.stages - 1;
        EXPECT_GE(use.shared_bytes, buffers * (t.block_m + t.block_n) * t.block_k * 2);
        EXPECT_GE(use.shared_bytes, t.block_m * t.block_n * 2);
        EXPECT_LE(use.ctas_per_sm * (use.shared_bytes + 1024), 228 * 1024);
        EXPECT_LE(use.shared_bytes, 227 * 1024);
        EXPECT_LE(use.ctas_per_sm * t.warps * 32 * use.registers, 65536);
        EXPECT_LE(use.registers, 255);
        // No other configuration is faster by more than what no model tells apart.
        for (const TritonConfig& other : TritonModel::space({}, p.a_type))
            if (random.one_in(20))
                if (const auto plan = model.plan(other)) {
                    EXPECT_LE((plans[0].seconds + plans[0].slow_seconds) / 1.031, plan->seconds + plan->slow_seconds);
                }
    }
}

TEST(GemmExport, SpillsAreNeverExported) {
    const TritonModel model(*machine_of("h100-sxm"), gemm_problem(4096, 4096, 4096), TritonLoads::pointers);
    EXPECT_FALSE(model.use({256, 256, 64, 8, 8, 2}));  // 256 sums a thread
    EXPECT_FALSE(model.use({128, 256, 64, 8, 4, 2}));
    EXPECT_TRUE(model.use({128, 256, 64, 8, 8, 4}));   // 4 x 48 KiB
    EXPECT_FALSE(model.use({128, 256, 64, 8, 8, 5}));  // 5 x 48 KiB are 240
}

TEST(GemmExport, WhatIsFixedIsExported) {
    Given given;
    given.add("tile", "16x32x128"), given.add("stages", "3");
    const Exported made = export_to("triton", machine_of("h100-sxm"), {&gemm_operation(), Own::of(gemm_problem(64, 4096, 4096))}, given);
    EXPECT_NE(made.text.find("'BLOCK_M': 16, 'BLOCK_N': 32, 'BLOCK_K': 128"), made.text.npos) << made.text;
    EXPECT_NE(made.text.find("num_stages=3"), made.text.npos) << made.text;
    Given odd;
    odd.add("tile", "128x144x64");
    EXPECT_THROW(export_to("triton", machine_of("h100-sxm"), {&gemm_operation(), Own::of(gemm_problem(64, 4096, 4096))}, odd),
                 RequestError);
}

TEST(GemmExport, AFileOfExpertsHasAllItsReadersAskFor) {
    Random random(test_seed());
    for (int i = 0; i < int(test_count(2, 12)); ++i) {
        const std::int64_t experts = random.whole(8, 128), n = 64 * random.whole(2, 40), k = 64 * random.whole(8, 64),
                           top_k = random.whole(1, 8);
        Given given;
        given.add("groups", fmt::format("{}x[16..64]", experts)), given.add("n", std::to_string(n)), given.add("k", std::to_string(k));
        const Problem problem = gemm_operation().problem(given);
        given.add("top_k", std::to_string(top_k));
        const Exported made = export_to("vllm-moe", machine_of("h100-sxm"), problem, given);
        SCOPED_TRACE(made.text);
        EXPECT_EQ(made.file, fmt::format("E={},N={},device_name=NVIDIA_H100_80GB_HBM3.json", experts, n / 2));
        const auto lines = nlohmann::json::parse(made.text);
        EXPECT_EQ(lines.size(), 18u);
        for (const auto& [tokens, line] : lines.items()) {
            EXPECT_GE(std::stoi(tokens), 1);
            std::set<std::string> keys;
            for (const auto& [key, value] : line.items()) {
                keys.insert(key);
                EXPECT_GE(value.get<int>(), 1);
            }
            EXPECT_EQ(keys,
                      (std::set<std::string>{"BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "GROUP_SIZE_M", "num_warps", "num_stages"}));
            // 128 sums a thread; a ring of gathered rows.
            EXPECT_LE(line["BLOCK_SIZE_M"].get<int>() * line["BLOCK_SIZE_N"].get<int>(), 128 * 32 * line["num_warps"].get<int>());
            EXPECT_LE((line["num_stages"].get<int>() - 1) * (line["BLOCK_SIZE_M"].get<int>() + line["BLOCK_SIZE_N"].get<int>())
                          * line["BLOCK_SIZE_K"].get<int>() * 2,
                      227 * 1024);
        }
    }
}

// Rows of one token go to few experts, of many to all: no expert's tile is as tall as all rows together.
TEST(GemmExport, MoreTokensNeverMakeTilesOfAFileFlatter) {
    Given given;
    given.add("groups", "64x32"), given.add("n", "2816"), given.add("k", "2048");
    const Exported made = export_to("vllm-moe", machine_of("h100-sxm"), gemm_operation().problem(given), given);
    const auto lines = nlohmann::json::parse(made.text);
    EXPECT_LE(lines["1"]["BLOCK_SIZE_M"], lines["256"]["BLOCK_SIZE_M"]);
    EXPECT_LE(lines["256"]["BLOCK_SIZE_M"], lines["4096"]["BLOCK_SIZE_M"]);
    EXPECT_GE(lines["4096"]["BLOCK_SIZE_M"], 64);
}

// What CUTLASS computes is the plan's product, transposed where the plan swaps: then its rows are C's columns.
TEST(GemmExport, ATypeOfCutlassIsThePlans) {
    Random random(test_seed());
    int swapped = 0;
    for (int i = 0; i < int(test_count(30, 300)); ++i) {
        const GemmProblem p = drawn_gemm(random, {i % 2 == 0 ? "" : "batch"});
        const auto machine = machine_of(i % 5 == 4 ? "a100-80-sxm" : "h100-sxm");
        const Exported made = export_to("cutlass", machine, {&gemm_operation(), Own::of(p)});
        SCOPED_TRACE(made.text);
        EXPECT_FALSE(std::regex_search(made.text, std::regex("@[A-Z_]+@")));
        EXPECT_GT(made.time_us.value_or(0), 0);
        const bool swaps = made.text.find("{n, m, k, batch}") != made.text.npos;
        swapped += swaps;
        const bool hopper = made.text.find("Sm90") != made.text.npos;
        EXPECT_EQ(hopper, machine->has("wgmma"));
        if (!hopper) continue;
        const auto has = [&](const std::string& text) { return made.text.find(text) != made.text.npos; };
        EXPECT_TRUE(has(fmt::format("int m = {}, int n = {}, int k = {}, int batch = {}", p.m, p.n, p.k, p.batch)));
        EXPECT_TRUE(has(fmt::format("a = {}, b = {}, d = {}", p.lda, p.ldb, p.ldc)));
        // A is M x K: row-major where K is contiguous; B, K x N, column-major. Transposed they are the other way round, and so is C.
        const bool a_k = p.a_major == Major::k, b_k = p.b_major == Major::k;
        EXPECT_TRUE(has(fmt::format("LayoutA = cutlass::layout::{};", (swaps ? b_k : a_k) ? "RowMajor" : "ColumnMajor")));
        EXPECT_TRUE(has(fmt::format("LayoutB = cutlass::layout::{};", (swaps ? a_k : b_k) ? "ColumnMajor" : "RowMajor")));
        EXPECT_TRUE(has(fmt::format("LayoutD = cutlass::layout::{};", swaps ? "ColumnMajor" : "RowMajor")));
        EXPECT_TRUE(has("gemm.run(stream, nullptr, programmatic_launch)") && has("#ifdef CUTLASS_ENABLE_GDC_FOR_SM90"));
        std::smatch tile;
        ASSERT_TRUE(std::regex_search(made.text, tile, std::regex("TileShape = Shape<_(\\d+), _(\\d+), _(\\d+)>")));
        const int rows = std::stoi(tile[1]), columns = std::stoi(tile[2]);
        EXPECT_EQ(rows % (has("Cooperative>") ? 128 : 64), 0);
        EXPECT_EQ(columns % 16, 0);
    }
    EXPECT_GT(swapped, 0);
}

TEST(GemmExport, WhatIsNotExportedIsRefusedInALine) {
    const auto refused = [](std::string_view target, std::initializer_list<std::pair<const char*, const char*>> fields, const char* says) {
        Given given;
        for (const auto& [key, text] : fields) given.add(key, text);
        try {
            export_to(target, machine_of("h100-sxm"), gemm_operation().problem(given), given);
            ADD_FAILURE() << says;
        } catch (const RequestError& error) {
            EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
            EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
        }
    };
    refused("triton", {{"shape", "64x64x64"}, {"alpha", "2"}}, "alpha");
    refused("triton", {{"shape", "64x64x64"}, {"batch", "3"}}, "batch");
    refused("triton", {{"shape", "64x64x64"}, {"stages", "9"}}, "stages 9");
    refused("vllm-moe", {{"shape", "64x64x64"}}, "--groups");
    refused("vllm-moe", {{"groups", "8x64"}, {"n", "63"}, {"k", "64"}}, "even");
    refused("cutlass", {{"shape", "64x64x64"}, {"lda", "65"}}, "leading dimension 65");
    refused("cutlass", {{"groups", "8x64"}, {"n", "64"}, {"k", "64"}}, "groups");
    refused("cutlass", {{"shape", "4096x4096x4096"}, {"tile", "192x128x64"}, {"consumer_warpgroups", "3"}}, "3 consumer warpgroups");
    const Problem plain{&gemm_operation(), Own::of(gemm_problem(64, 64, 64))};
    EXPECT_THROW(export_to("triton", machine_of("v100-sxm2"), plain), RequestError);
}

}  // namespace
}  // namespace rooftile
