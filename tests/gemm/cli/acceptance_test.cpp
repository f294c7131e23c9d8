// The method's worked numbers through the program: hand-derived, to the integer.
#include <cmath>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace rooftile {
namespace {

using Value = nlohmann::json;


Value plan_json(std::vector<std::string> arguments, int code = 0) {
    arguments.insert(arguments.begin(), {"plan", "gemm"});
    arguments.insert(arguments.end(), {"--json", "--explain=all"});
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    return Value::parse(outcome.out);
}

/// The value of a step of plan 1's derivation.
Value step(const Value& document, const std::string& quantity) {
    for (const Value& s : document.at("plans").at(0).at("derivation"))
        if (s.at("quantity") == quantity) return s.at("value");
    ADD_FAILURE() << "the derivation has no step " << quantity;
    return nullptr;
}

bool names(const Value& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
}

// M7: F = 2 * 128 * 128 * 32 = 1048576; D = (128 + 128) * 32 * 2 = 16384 B; I = 64;
// I_crit = 50e12 / 1e12 = 50; T = ceil(1048576 / 500) = ceil(2097.152) = 2098;
// S_min = ceil(500 / 2097.152) + 1 = 2.
TEST(Acceptance, WorkedExample) {
    const Value document = plan_json({"--shape", "4096x4096x4096", "--tile", "128x128x32", "--type", "fp16",
                                      "--machine", "worked-example"});
    EXPECT_EQ(step(document, "tile_flops"), 1048576);
    EXPECT_EQ(step(document, "stage_bytes"), 16384);
    EXPECT_EQ(step(document, "arithmetic_intensity"), 64);
    EXPECT_EQ(step(document, "intensity_critical"), 50);
    EXPECT_EQ(step(document, "tile_compute_cycles"), 2098);
    const Value& plan = document.at("plans").at(0);
    EXPECT_EQ(plan.at("prediction").at("arithmetic_intensity"), 64);
    EXPECT_EQ(plan.at("prediction").at("tile_compute_cycles"), 2098);
    EXPECT_EQ(plan.at("prediction").at("stages_min"), 2);
    // No SM count: no waves, no time, no share of DRAM; and each is named.
    for (const char* key : {"waves", "wave_efficiency", "time_us", "tflops", "stages_for_full_rate"}) {
        EXPECT_TRUE(plan.at("prediction").at(key).is_null()) << key;
        EXPECT_TRUE(names(plan.at("unknown"), "prediction." + std::string(key))) << key;
    }
    EXPECT_TRUE(names(document.at("unknown"), "sm.count"));
    EXPECT_TRUE(names(document.at("unchecked_constraints"), "waves"));
    for (const char* quantity : {"steady_step_all_miss", "load_dram_isolated", "dram_bytes_per_cycle"})
        EXPECT_TRUE(step(document, quantity).is_null()) << quantity;
}

// M7's other reading: 500 cycles as bare latency, and 50e12 / (500 * 1e9) = 100 SMs that share 1 TB/s,
// 10 B/clk each: 1638 cycles of transfer, ceil(2138 / 2098) + 1 = 3 stages.
TEST(Acceptance, WorkedExampleShowsBothReadings) {
    const Outcome outcome =
        run({"plan", "gemm", "--shape", "4096x4096x4096", "--tile", "128x128x32", "--type", "fp16",
             "--machine", "worked-example", "--explain=all"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("stages_min = 2"), std::string::npos);
    EXPECT_NE(outcome.out.find("1638"), std::string::npos);
    EXPECT_NE(outcome.out.find("3 stages"), std::string::npos);
}

// M36: 2 * 256 * 128 * 16 / 2048 = 512; 200 + 12288 / 47.41 = 459.2; 290 + 12288 / 11.84 = 1327.8;
// in a full pipe 512 / 259.2 / 1037.8.
TEST(Acceptance, OverlapExercise) {
    const std::vector<std::string> words = {
        "--shape", "4096x4096x4096", "--tile",    "256x128x16",
        "--type",  "fp16",           "--machine", "a100-exercise"};
    const Value document = plan_json(words);
    EXPECT_EQ(step(document, "tile_compute_cycles"), 512);
    EXPECT_EQ(step(document, "load_l2_isolated"), 459);
    EXPECT_EQ(step(document, "load_dram_isolated"), 1328);
    EXPECT_EQ(step(document, "steady_step_all_miss"), 1038);
    EXPECT_TRUE(document.at("plans").at(0).at("resources").at("stages_max").is_null())
        << "shared memory is unknown";

    std::vector<std::string> explain = {"plan", "gemm", "--explain=all"};
    explain.insert(explain.end(), words.begin(), words.end());
    const std::string text = run(explain).out;
    for (const char* shown :
         {"512 cycles", "459 cycles", "1328 cycles", "compute 512, L2 259, DRAM 1038", "twice"})
        EXPECT_NE(text.find(shown), std::string::npos) << shown;
}

const std::vector<std::string> big_tile = {"--shape",  "8192x8192x8192", "--machine",
                                           "h100-sxm", "--tile",         "128x256x64"};

// M12: 128 * 256 / 256 = 128. M13: (128 + 256) * 64 * 2 = 49152 B; floor((232448 - reserved) / 49152) = 4.
// M14: 2 * 128 * 256 * 64 / 4096 = 1024.
TEST(Acceptance, HopperConstraints) {
    const Value document =
        plan_json(with(big_tile, {"--consumer-warpgroups", "2", "--schedule", "cooperative"}));
    const Value& plan = document.at("plans").at(0);
    EXPECT_EQ(plan.at("resources").at("accumulator_registers"), 128);
    EXPECT_EQ(plan.at("resources").at("stage_bytes"), 49152);
    EXPECT_EQ(plan.at("resources").at("stages_max"), 4);
    EXPECT_EQ(plan.at("prediction").at("tile_compute_cycles"), 1024);
    EXPECT_EQ(plan.at("config").at("stages"), 4);
}

TEST(Acceptance, FiveStagesDoNotFit) {
    const Outcome outcome = run(with({"plan", "gemm", "--json", "--stages", "5"}, big_tile));
    EXPECT_EQ(outcome.code, 10);
    EXPECT_EQ(outcome.error_lines(), 1) << outcome.err;
    EXPECT_NE(outcome.err.find("5 x 49152 = 245760 B"), std::string::npos) << outcome.err;
    const Value document = Value::parse(outcome.out);
    EXPECT_TRUE(document.at("plans").empty());
    EXPECT_EQ(document.at("infeasible").at("reason"), "shared");
    EXPECT_NE(document.at("infeasible").at("message").get<std::string>().find("5 x 49152 = 245760 B"),
              std::string::npos);
}

// Twice the rate halves T. 330 KiB of shared memory are 337920 B: 6 x 49152 = 294912 B and about 34 KB of C
// epilogue tiles and barriers fit, 7 x 49152 = 344064 B do not.
TEST(Acceptance, SetChangesWhatFollows) {
    const auto fixed = with(big_tile, {"--consumer-warpgroups", "2", "--schedule", "cooperative"});
    const Value fast = plan_json(with(fixed, {"--set", "rate.wgmma.bf16.fp32=8192 FLOP/clk/SM"}));
    EXPECT_EQ(fast.at("plans").at(0).at("prediction").at("tile_compute_cycles"), 512);
    const Value roomy =
        plan_json(with(fixed, {"--set", "shared.per_cta=330 KiB", "--set", "shared.per_sm=331 KiB"}));
    EXPECT_EQ(roomy.at("plans").at(0).at("resources").at("stages_max"), 6);
    EXPECT_NE(roomy.at("context").at("machine_hash"), fast.at("context").at("machine_hash"));
    // 10 TB/s against 132 * 4096 * 1.59 GHz = 859.67 TFLOP/s.
    const Value wide =
        plan_json(with(fixed, {"--set", "dram.sustained_read=10 TB/s", "--set", "dram.bandwidth=10 TB/s",
                               "--set", "clock.sustained.bf16=1.59 GHz"}));
    EXPECT_NEAR(step(wide, "intensity_critical").get<double>(), 85.97, 0.01);
}

TEST(Acceptance, MlpUpProjection) {
    const Value document = plan_json({"--m", "4096", "--n", "14336", "--k", "4096", "--machine", "h100-sxm"});
    ASSERT_EQ(document.at("plans").size(), 8u);
    for (const Value& plan : document.at("plans")) {
        EXPECT_GE(plan.at("derivation").size(), 15u);
        for (const Value& s : plan.at("derivation")) {
            EXPECT_NE(s.at("formula"), "") << s.at("quantity");
            EXPECT_FALSE(s.at("inputs").empty()) << s.at("quantity");
            for (const Value& input : s.at("inputs")) EXPECT_NE(input.at("source"), "") << s.at("quantity");
        }
    }
    EXPECT_GE(document.at("rejected").at("count"), 500);
    long sum = 0;
    for (const Value& reason : document.at("rejected").at("reasons")) sum += reason.get<long>();
    EXPECT_EQ(document.at("rejected").at("count"), sum);
}

TEST(Acceptance, OddKIsPackedOrSaysWhatToChange) {
    const std::vector<std::string> shape = {"--m", "4096", "--n", "4096", "--k", "7"};
    const Value config = plan_json(with(shape, {"--machine", "h100-sxm"})).at("plans").at(0).at("config");
    EXPECT_EQ(config.at("pack_a"), true);
    EXPECT_EQ(config.at("pack_b"), true);
    const Outcome outcome = run({"plan", "gemm", "--m", "4096", "--n", "4096", "--k", "7", "--machine", "h100-sxm",
                                 "--pack-a", "off"});
    EXPECT_EQ(outcome.code, 10);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.error_lines(), 1);
    EXPECT_NE(outcome.err.find("lda = 7"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("8"), std::string::npos) << outcome.err;
}

TEST(Acceptance, OtherArchitectures) {
    const std::vector<std::string> shape = {"--shape", "4096x4096x4096"};
    for (const char* id : {"a100-80-sxm", "rtx4090", "l40s", "a40"}) {
        const Value document = plan_json(with(shape, {"--machine", id}));
        ASSERT_FALSE(document.at("plans").empty()) << id;
        EXPECT_EQ(document.at("plans").at(0).at("buildable"), true) << id;
        EXPECT_EQ(document.at("plans").at(0).at("config").at("kernel"), "sm80_gemm") << id;
    }
    plan_json(with(shape, {"--machine", "v100-sxm2"}), 10);  // no bf16
    EXPECT_FALSE(plan_json(with(shape, {"--machine", "v100-sxm2", "--type", "fp16"})).at("plans").empty());
    const Value b200 = plan_json(with(shape, {"--machine", "b200"}));
    EXPECT_NE(b200.at("notes").dump().find("tcgen05"), std::string::npos);
    for (const char* id : {"h100-sxm", "h100-pcie", "h800-sxm", "h200-sxm", "h20"})
        EXPECT_EQ(plan_json(with(shape, {"--machine", id})).at("plans").at(0).at("buildable"), true) << id;
}

TEST(Acceptance, BuildShowsWhatPtxasReports) {
    const Outcome outcome = run({"build", "gemm", "--shape", "4096x4096x4096", "--machine", "h100-sxm",
                                 "--tile", "128x256x64", "--json"});
    if (outcome.code == 5 && outcome.err.find("libnvrtc") != std::string::npos)
        GTEST_SKIP() << "skipped: no NVRTC";
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const Value document = Value::parse(outcome.out);
    EXPECT_EQ(document.at("spill_store_bytes"), 0);
    EXPECT_EQ(document.at("spill_load_bytes"), 0);
    EXPECT_GT(document.at("registers"), 0);
    EXPECT_GT(document.at("cubin_bytes"), 1000);
    EXPECT_EQ(document.at("context").at("kernel_hash").get<std::string>().size(), 32u);
    const std::string ptx = run({"build", "gemm", "--shape", "4096x4096x4096", "--machine", "h100-sxm",
                                 "--tile", "128x256x64", "--ptx"})
                                .out;
    EXPECT_NE(ptx.find("wgmma.mma_async"), std::string::npos);
    expect_refused({"build", "gemm", "--shape", "4096x4096x4096", "--machine", "h100-sxm", "--tile",
                    "128x256x64", "--cubin", "/nonexistent/x"},
                   {"--cubin /nonexistent/x: cannot write"});
    const Outcome sass = run({"build", "gemm", "--shape", "4096x4096x4096", "--machine", "h100-sxm", "--tile",
                              "128x256x64", "--sass"});
    EXPECT_EQ(sass.code, 0) << sass.err;
    EXPECT_NE(sass.out, "");
    EXPECT_EQ(sass.error_lines(), document.at("disassembler") == true ? 0 : 1) << sass.err;
}

TEST(Acceptance, BuildShowsThePlansNotes) {
    const Outcome outcome = run({"build", "gemm", "--batch", "180", "--shape", "17x768x1280", "--stride-b", "0", "--machine", "h100-sxm"});
    if (outcome.code == 5 && outcome.err.find("libnvrtc") != std::string::npos)
        GTEST_SKIP() << "skipped: no NVRTC";
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("note  the 180 products share B"), std::string::npos) << outcome.out;
}

TEST(Acceptance, WhatCannotBeBuiltSaysWhy) {
    expect_refused({"build", "gemm", "--shape", "4096x4096x4096", "--type", "fp16", "--machine", "v100-sxm2"},
                   {"v100-sxm2", "built"});
    expect_refused({"build", "gemm", "--shape", "4096x4096x4096", "--machine", "h100-sxm", "--rank", "99"},
                   {"--rank 99", "1 .. 64"});
}

}  // namespace
}  // namespace rooftile
