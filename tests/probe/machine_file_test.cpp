// What a probe found as a machine file and as documents, without a GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "rooftile/error.hpp"
#include "rooftile/machine/keys.hpp"
#include "rooftile/machine/read.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/machine/units_text.hpp"
#include "rooftile/probe/document.hpp"
#include "rooftile/probe/launch_sampler.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

ProbeRun made_up_run() {
    ProbeRun run;
    run.gpu.machine = machine_by_id("h200-sxm");
    run.gpu.name = "NVIDIA H200";
    run.gpu.driver = "580.1";
    run.seconds = 71.3;
    ProbeResult tma;
    tma.probe = "tma";
    tma.values = {{"tma.latency.dram", "tma.latency_dram", 681.234567, "ns", 3.1, 9, "one box of 8 KiB"},
                  {"tma.in_flight.dram", "tma.in_flight", 38760.4, "B", 12, 9, ""},
                  {"l2.port", "l2.port", 63.21, "B/clk/SM", 0.2, 9, ""},
                  {"tma.rate.dram.all_sms", "", 4210, "GB/s", 8, 9, ""}};
    ProbePoint point{"tma.stream", "dram 2d", {}};
    point.add("ctas", 132);
    point.add("gbps_per_sm", 31.9);
    tma.points.push_back(point);
    ProbeResult energy;
    energy.probe = "energy";
    energy.values = {{"energy.flop.bf16", "energy.flop.bf16", 0.5132, "pJ/FLOP", 0.01, 20, ""},
                     {"energy.exponent", "energy.exponent", 1.55, "1", 0.1, 20, ""},
                     {"energy.fill", "energy.fill", 16.2, "pJ/B", 1, 20, ""},
                     {"energy.dram", "energy.dram", 46, "pJ/B", 1, 20, ""},
                     {"energy.shared_read", "energy.shared_read", 1.75, "pJ/B", 1, 20, ""},
                     {"power.static", "power.static", 139, "W", 3, 20, ""},
                     {"power.idle", "power.idle", 121.4, "W", 0, 1, ""},
                     {"cluster.sms_4", "cluster.sms_4", 120, "SMs", 0, 1, ""},
                     {"clock.matrix", "clock.sustained.bf16", 1335, "MHz", 9, 40, ""}};
    energy.failure = "ended after 70 s without an answer";
    energy.notes = {"energy: 3 of 20 loads left out"};
    run.results = {tma, energy};
    return run;
}

TEST(ProbeMachineFile, ReadsBackWithNoError) {
    std::vector<std::string> notes;
    const std::string command = "rooftile machine probe --out " + std::string(300, 'x') + "\"\\";
    const Machine machine = probed_machine(made_up_run(), "2026-11-21", command, notes);
    EXPECT_TRUE(notes.empty()) << notes.front();
    const std::string text = to_toml(machine);
    const Machine read = parse_machine(text, "probed.toml");
    EXPECT_EQ(read.hash(), machine.hash());
    EXPECT_NEAR(read.find("tma.latency_dram")->value, 681.235e-9, 1e-12);
    EXPECT_EQ(read.find("tma.in_flight")->value, 38760);
    EXPECT_NEAR(read.find("energy.flop.bf16")->value, 0.5132e-12, 1e-18);
    EXPECT_EQ(read.find("cluster.sms_4")->value, 120);
    EXPECT_EQ(read.find("clock.sustained.bf16")->value, 1335e6);
    for (const char* part :
         {"NVIDIA H200", "2026-11-21", "+- 3.1 ns over 9 samples", "rooftile machine probe"})
        EXPECT_NE(read.find("tma.latency_dram")->source.find(part), std::string::npos) << part;
    // What was not measured keeps its number and source.
    EXPECT_EQ(read.find("dram.latency")->source, machine_by_id("h200-sxm").find("dram.latency")->source);
}

TEST(ProbeMachineFile, WhatAKeyRefusesIsLeftOutAndNamed) {
    ProbeRun run = made_up_run();
    run.results[0].values[0].value = std::nan("");
    run.results[0].values[2].value = -1;
    std::vector<std::string> notes;
    const Machine machine = probed_machine(run, "2026-11-21", "x", notes);
    ASSERT_EQ(notes.size(), 2u);
    EXPECT_NE(notes[0].find("tma.latency.dram"), std::string::npos);
    EXPECT_NE(notes[1].find("l2.port"), std::string::npos);
    EXPECT_EQ(machine.find("l2.port")->value, machine_by_id("h200-sxm").find("l2.port")->value);
    EXPECT_NO_THROW(parse_machine(to_toml(machine), "probed.toml"));
}

TEST(ProbeMachineFile, AFactorOfTwoIsNoticed) {
    ProbeRun run = made_up_run();
    EXPECT_TRUE(differences(run).empty()) << differences(run).front().key;
    set_fact(run.gpu.machine, "l2.port", "128 B/clk/SM", "wrong on purpose");
    const auto found = differences(run);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].key, "l2.port");
    EXPECT_NEAR(found[0].ratio, 63.21 / 128, 1e-9);
    EXPECT_NE(probe_text(run, {}, Terminal{}).find("l2.port: measured 63.21 B/clk/SM, the file says 128"),
              std::string::npos)
        << probe_text(run, {}, Terminal{});
    // Ten per cent is the limit: 10.1 % off is told, 9.9 % is not.
    set_fact(run.gpu.machine, "l2.port", "57.41 B/clk/SM", "");
    EXPECT_EQ(differences(run).size(), 1u);
    set_fact(run.gpu.machine, "l2.port", "57.52 B/clk/SM", "");
    EXPECT_TRUE(differences(run).empty());
    // Another form of the same number: 681.2 ns are 906 clk at 1.33 GHz and 1349 at 1.98.
    set_fact(run.gpu.machine, "clock.sustained.bf16", "1.33 GHz", "");
    set_fact(run.gpu.machine, "clock.boost", "1.98 GHz", "");
    for (const auto& [clocks, noticed] :
         {std::pair{"2000 clk", true}, {"1400 clk", false}, {"1000 clk", false}, {"810 clk", true}}) {
        set_fact(run.gpu.machine, "tma.latency_dram", clocks, "");
        EXPECT_EQ(!differences(run).empty(), noticed) << clocks;
    }
}

/// What a probe would measure on a GPU that is just as its machine file says, every key in the probe's unit.
ProbeRun as_the_file_says(const Machine& machine) {
    ProbeRun run;
    run.gpu.machine = machine;
    ProbeResult& all = run.results.emplace_back();
    for (const Probe& probe : probes()) {
        std::istringstream keys{std::string(probe.keys)}, units{std::string(probe.units)};
        std::string key, text;
        while (keys >> key && units >> text) {
            const Fact* fact = machine.find(key);
            if (!fact) continue;
            const auto unit = std::get<NumberText>(parse_number(text == "1" ? text : "1 " + text)).unit;
            const auto value = in_form(*fact, unit.dimension, unit.per, machine.find("clock.boost")->value,
                                       machine.find("sm.count")->value);
            EXPECT_TRUE(value) << key << ": " << fact->text << " cannot be compared with " << text;
            all.values.push_back({key, key, value.value_or(0) / unit.scale, text, 0, 1, ""});
        }
    }
    return run;
}

TEST(ProbeMachineFile, AFactorOfTwoInAnyNumberIsNoticed) {
    for (const char* id : {"h200-sxm", "h100-sxm"}) {
        const ProbeRun right = as_the_file_says(machine_by_id(id));
        EXPECT_GE(right.results[0].values.size(), id == std::string("h200-sxm") ? 30u : 5u) << id;
        for (const ProbeDifference& d : differences(right))
            ADD_FAILURE() << id << ": " << d.key << " " << d.measured << " " << d.shipped;
        for (const ProbeValue& v : right.results[0].values) {
            for (const double factor : {2.0, 0.5}) {
                ProbeRun wrong = right;
                wrong.gpu.machine.facts.find(v.key)->second.value *= factor;
                const auto found = differences(wrong);
                EXPECT_TRUE(
                    std::any_of(found.begin(), found.end(), [&](const auto& d) { return d.key == v.key; }))
                    << id << ": " << v.key << " x " << factor;
            }
        }
    }
}

TEST(ProbeMachineFile, EnergiesAreOneSetOrNone) {
    for (const std::string_view key : energy_keys()) {
        ProbeRun run = made_up_run();
        std::erase_if(run.results[1].values, [&](const ProbeValue& v) { return v.key == key; });
        ASSERT_EQ(run.results[1].values.size(), made_up_run().results[1].values.size() - 1) << key;
        std::vector<std::string> notes;
        const Machine machine = probed_machine(run, "2026-11-21", "x", notes);
        ASSERT_EQ(notes.size(), 1u) << key;
        EXPECT_NE(notes[0].find(key), std::string::npos) << notes[0];
        const Machine shipped = machine_by_id("h200-sxm");
        for (const std::string_view other : energy_keys()) {
            ASSERT_TRUE(shipped.find(other)) << other;
            EXPECT_EQ(machine.find(other)->source, shipped.find(other)->source) << other;
        }
        EXPECT_NE(machine.find("power.idle")->source,
                  shipped.find("power.idle") ? shipped.find("power.idle")->source : "");
    }
}

TEST(ProbeRoofs, AValueAboveItsRoofFailsTheProbe) {
    ProbeRun run = made_up_run();
    for (ProbeResult& result : run.results) hold_to_roofs(result, run.gpu.machine);
    EXPECT_EQ(run.results[0].failure, "");
    ProbeResult sm;
    sm.probe = "sm";
    sm.values = {{"shared.bandwidth.threads_1024", "shared.bandwidth", 495.5, "B/clk/SM", 0.1, 9, ""},
                 {"shared.latency", "shared.latency", 23.1, "clk", 0, 9, ""},
                 {"rate.fma", "rate.fma.fp32.fp32", 255.1, "FLOP/clk/SM", 0.1, 9, ""}};
    hold_to_roofs(sm, run.gpu.machine);
    EXPECT_NE(
        sm.failure.find("shared.bandwidth.threads_1024: measured 495.5 B/clk/SM, above the roof of 128"),
        std::string::npos)
        << sm.failure;
    EXPECT_EQ(sm.failure.find("rate.fma"), std::string::npos);
    EXPECT_EQ(sm.values[0].key, "");
    EXPECT_EQ(sm.values[1].key, "shared.latency");
    run.results = {sm};
    std::vector<std::string> notes;
    const Machine machine = probed_machine(run, "2026-11-21", "x", notes);
    EXPECT_EQ(machine.find("shared.bandwidth")->value, run.gpu.machine.find("shared.bandwidth")->value);
    EXPECT_NE(probe_text(run, notes, Terminal{}).find("above the roof"), std::string::npos);
    // 264 of 256 is a failure of rate.fma, 258 is a timer's.
    for (const auto& [value, fails] : {std::pair{264.0, true}, {258.0, false}}) {
        ProbeResult fma;
        fma.values = {{"rate.fma", "rate.fma.fp32.fp32", value, "FLOP/clk/SM", 0.1, 9, ""}};
        hold_to_roofs(fma, run.gpu.machine);
        EXPECT_EQ(!fma.failure.empty(), fails) << value;
    }
}

// mma.sync uses the matrix units that wgmma does: 4096 FLOP/clk/SM on an H200.
TEST(ProbeRoofs, MmaSyncIsNoFasterThanWgmma) {
    ProbeRun run = made_up_run();
    ProbeResult mma;
    mma.probe = "mma_sync";
    mma.values = {{"mma_sync.rate_bf16", "rate.mma_sync.bf16.fp32", 2047.5, "FLOP/clk/SM", 0.4, 18, "m16n8k16"},
                  {"mma_sync.rate_fp16", "rate.mma_sync.fp16.fp32", 4300, "FLOP/clk/SM", 0.4, 18, ""}};
    hold_to_roofs(mma, run.gpu.machine);
    EXPECT_NE(mma.failure.find("mma_sync.rate_fp16: measured 4300 FLOP/clk/SM, above the roof of 4096"),
              std::string::npos)
        << mma.failure;
    run.results = {mma};
    std::vector<std::string> notes;
    const Machine machine = probed_machine(run, "2026-11-24", "rooftile machine probe", notes);
    EXPECT_EQ(machine.find("rate.mma_sync.bf16.fp32")->text, "2047.5 FLOP/clk/SM");
    EXPECT_NE(machine.find("rate.mma_sync.bf16.fp32")->source.find("`rooftile machine probe`"), std::string::npos);
    EXPECT_EQ(machine.find("rate.mma_sync.fp16.fp32")->text,
              run.gpu.machine.find("rate.mma_sync.fp16.fp32")->text);
}

TEST(ProbeDocument, FollowsItsSchema) {
    const JsonSchema schema("probe-1.json");
    ProbeRun run = made_up_run();
    set_fact(run.gpu.machine, "l2.port", "128 B/clk/SM", "");  // a difference to write down
    DocumentContext context = context_of(run.gpu.machine, "rooftile machine probe");
    context.gpu = GpuContext{"NVIDIA H200", "580.1", "13.0", "2026-11-21T00:00:00Z", 1};
    Json document = probe_document(context, run, {"a note"});
    EXPECT_EQ(document["differences"].size(), 1u);
    EXPECT_EQ(schema.faults(document), "");
    run.gpu.power_limit_w = 700;
    EXPECT_EQ(schema.faults(probe_document(context, run, {})), "");
    document["values"][0].erase("unit");
    document["points"][0]["ctas"] = "many";
    EXPECT_NE(schema.faults(document).find("unit"), std::string::npos);
    EXPECT_NE(schema.faults(document).find("ctas"), std::string::npos);
}

TEST(ProbeDocument, GoesThroughAPipe) {
    const ProbeRun run = made_up_run();
    for (const ProbeResult& result : run.results) {
        const Json json = result_json(result);
        const ProbeResult back = result_of(Json::parse(json.dump()));
        EXPECT_EQ(result_json(back).dump(), json.dump());
        EXPECT_EQ(back.failure, result.failure);
    }
    EXPECT_EQ(result_of(result_json(run.results[0])).points[0].at("gbps_per_sm"), 31.9);
}

TEST(ProbeDocument, HoldsEveryRow) {
    const Json document = probe_document(context_of("rooftile machine probe"), made_up_run(), {"a note"});
    EXPECT_EQ(document["schema"], "rooftile/probe/1");
    EXPECT_EQ(document["values"].size(), 13u);
    EXPECT_EQ(document["points"].size(), 1u);
    EXPECT_EQ(document["points"][0]["probe"], "tma");
    EXPECT_EQ(document["probes"][1]["failure"], "ended after 70 s without an answer");
    EXPECT_EQ(document["notes"].size(), 2u);
}

TEST(ProbeList, NamesKeysThatExistInUnitsTheyTake) {
    std::set<std::string_view> names;
    for (const Probe& probe : probes()) {
        EXPECT_TRUE(names.insert(probe.name).second) << probe.name;
        std::istringstream keys{std::string(probe.keys)}, units{std::string(probe.units)};
        std::string key, unit;
        while (keys >> key) {
            ASSERT_TRUE(units >> unit) << probe.name << " has no unit for " << key;
            Machine machine;
            const std::string number = unit == "1" ? "2 " : "16 ";  // an exponent is at most 10
            EXPECT_NO_THROW(set_fact(machine, key, number + unit, "x")) << key << " in " << unit;
        }
        EXPECT_FALSE(units >> unit) << probe.name << " has a unit too many: " << unit;
        EXPECT_NE(probe.run, nullptr);
    }
    EXPECT_EQ(probes_named({}).size(), names.size());
    ASSERT_EQ(probes_named({"cluster", "tma"}).size(), 2u);
    EXPECT_EQ(probes_named({"cluster", "tma"})[0]->name, "tma");
    EXPECT_THROW(probes_named({"tma", "dice"}), RequestError);
}

TEST(ProbeSamples, FromRecords) {
    // Two CTAs: 1000 and 3000 cycles in 1000 ns and 1500 ns, the second begun 500 ns later.
    std::vector<ProbeRecord> records(3);
    records[0] = {.begin_cycles = 5,
                  .end_cycles = 1005,
                  .begin_nanoseconds = 100,
                  .end_nanoseconds = 1100,
                  .boxes = 4,
                  .sm = 0,
                  .sink = 0};
    records[2] = {.begin_cycles = 7,
                  .end_cycles = 3007,
                  .begin_nanoseconds = 600,
                  .end_nanoseconds = 2100,
                  .boxes = 8,
                  .sm = 1,
                  .sink = 0};
    LaunchSamples samples;
    add_sample(samples, records);  // the one in between wrote nothing
    EXPECT_DOUBLE_EQ(samples.seconds[0], 2000e-9);
    EXPECT_DOUBLE_EQ(samples.cycles[0], 2000);
    EXPECT_DOUBLE_EQ(samples.clock_hz[0], 1.5e9);  // of 1 and 2 GHz
    EXPECT_DOUBLE_EQ(samples.boxes[0], 6);
    EXPECT_THROW(add_sample(samples, std::vector<ProbeRecord>(2)), Error);
}

}  // namespace
}  // namespace rooftile
