// The shipped machines: all there, all sourced, and agreeing with what vendors publish.
#include "rooftile/machine/registry.hpp"

#include <cmath>
#include <filesystem>

#include <gmock/gmock.h>

#include "rooftile/embedded.hpp"
#include "rooftile/machine/keys.hpp"
#include "rooftile/machine/query.hpp"
#include "tests/machine/machine_text.hpp"

namespace rooftile {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Registry, TheTwelve) {
    EXPECT_THAT(machine_ids(),
                ElementsAre("a100-40-sxm", "a100-80-sxm", "a40", "b200", "h100-pcie", "h100-sxm", "h20",
                            "h200-sxm", "h800-sxm", "l40s", "rtx4090", "v100-sxm2"));
    EXPECT_THAT(arch_ids(), ElementsAre("sm_100", "sm_70", "sm_80", "sm_86", "sm_89", "sm_90"));
}

TEST(Registry, BorrowedNumbersSaySoFirst) {
    for (const auto& id : machine_ids())
        for (const auto& [key, fact] : machine_by_id(id).facts)
            EXPECT_TRUE(is_borrowed(fact) || fact.source.find("not measured on this") == fact.source.npos) << id << " " << key << ": " << fact.source;
    EXPECT_THAT(calibration_note(machine_by_id("h20")), testing::AllOf(HasSubstr("borrowed, not measured on this GPU"), HasSubstr("l2.bandwidth"), HasSubstr("l2.port")));
    EXPECT_EQ(calibration_note(machine_by_id("worked-example")).find("borrowed"), std::string::npos);
}

TEST(Registry, InventedMachinesAreFoundByIdAndSaySo) {
    EXPECT_THAT(invented_ids(), ElementsAre("a100-exercise", "async-units", "h100-exercise", "v100-exercise", "worked-example"));
    for (const auto& id : invented_ids()) {
        const Machine machine = machine_by_id(id);
        EXPECT_EQ(machine.id, id);
        EXPECT_THAT(machine.name, HasSubstr("invented"));
        EXPECT_TRUE(machine.device_names.empty()) << id << ": no driver reports it";
        for (const EmbeddedFile& file : embedded_machines()) {
            if (file.path != "machines/invented/" + id + ".toml") continue;
            for (const auto& [key, fact] : machine.facts) {
                const bool own = file.text.find("\n" + key + " = ") != file.text.npos;
                EXPECT_TRUE(!own || fact.source.starts_with("invented")) << id << " " << key;
            }
        }
        EXPECT_THAT(machine_ids(), testing::Not(testing::Contains(id)));
    }
}

TEST(Registry, EveryMachineLoadsWithUnitAndSource) {
    for (const auto& id : machine_ids()) {
        const Machine machine = machine_by_id(id);
        EXPECT_EQ(machine.id, id);
        EXPECT_FALSE(machine.arch.empty()) << id;
        EXPECT_FALSE(machine.device_names.empty()) << id;
        EXPECT_EQ(machine.features.size(), machine_features().size()) << id << ": every feature is decided";
        for (const auto& [key, fact] : machine.facts) {
            EXPECT_FALSE(fact.source.empty() || fact.source.ends_with(".toml"))
                << id << " " << key << ": no source";
            EXPECT_NE(fact.text.find(' '), fact.text.npos) << id << " " << key << ": no unit";
        }
        for (const char* key : {"sm.count", "clock.boost", "clock.tensor", "shared.per_sm", "shared.per_cta",
                                "sm.registers", "l2.size", "dram.size", "dram.bandwidth", "power.tdp"})
            EXPECT_NE(machine.find(key), nullptr) << id << " " << key;
    }
}

TEST(Registry, CalibrationsAreMarkedAndStandNowhereElse) {
    EXPECT_THAT(calibrated_ids(), ElementsAre("h100-sxm", "h200-sxm"));
    const Machine h200 = machine_by_id("h200-sxm"), h100 = machine_by_id("h100-sxm"),
                  h20 = machine_by_id("h20");
    EXPECT_EQ(h200.find("sm.skew")->calibration, "h200-sxm");
    EXPECT_EQ(h100.find("tma.latency_loaded")->calibration, "h100-sxm");
    // Without one of its own a machine takes what its architecture's nearest says of all its GPUs, and no more.
    EXPECT_EQ(h20.find("cta.interval")->calibration, "h200-sxm");
    EXPECT_EQ(h20.find("sm.skew"), nullptr);
    EXPECT_EQ(h200.find("dram.sustained_read")->calibration, "");
    for (const auto& id : machine_ids())
        for (const auto& [key, fact] : machine_by_id(id).facts) {
            const bool fitted = fact.source.find("fitted to") != fact.source.npos;
            EXPECT_TRUE(!fitted || !fact.calibration.empty()) << id << " " << key;
            if (fact.calibration != id) continue;
            // A number that the machine's file gives as well would hide the calibration's.
            for (const auto& file : embedded_machines())
                if (file.path == "machines/" + id + ".toml") {
                    EXPECT_EQ(file.text.find("\n" + key + " ="), file.text.npos) << id << " " << key;
                }
        }
}

TEST(Registry, EveryArchitectureFileNamesItself) {
    for (const auto& arch : arch_ids())
        EXPECT_NE(arch_text(arch).find("id = \"" + arch + "\"\n"), std::string_view::npos) << arch;
}

TEST(Registry, RatesGiveThePublishedFlops) {
    // Dense, no sparsity. rate x SMs x clock against the data sheet's TFLOP/s, within 2 %.
    struct Row {
        const char *id, *family, *input;
        double tflops;
    };
    const Row rows[] = {
        {"v100-sxm2", "mma_sync", "fp16", 125},
        {"a100-40-sxm", "mma_sync", "bf16", 312},
        {"a100-80-sxm", "mma_sync", "bf16", 312},
        {"a40", "mma_sync", "bf16", 149.7},
        {"rtx4090", "mma_sync", "bf16", 165.2},
        {"l40s", "mma_sync", "bf16", 362},
        {"h100-sxm", "wgmma", "bf16", 989.4},
        {"h100-pcie", "wgmma", "bf16", 756},
        {"h800-sxm", "wgmma", "bf16", 989.4},
        {"h200-sxm", "wgmma", "bf16", 989.4},
        {"h20", "wgmma", "bf16", 148},
        {"b200", "tcgen05", "bf16", 2250},
        {"h100-sxm", "wgmma", "fp8", 1979},
        {"a100-80-sxm", "mma_sync", "tf32", 156},
        {"l40s", "mma_sync", "fp8", 733},
        {"h20", "wgmma", "fp8", 296},
    };
    for (const Row& row : rows) {
        const Machine machine = machine_by_id(row.id);
        const auto peak =
            peak_flops(machine, row.family, row.input, "fp32", machine.number<Clock>("clock.tensor"));
        ASSERT_TRUE(peak) << row.id;
        EXPECT_NEAR(peak->value / 1e12, row.tflops, 0.02 * row.tflops) << row.id << " " << row.input;
    }
}

TEST(Registry, NumbersAgreeWithEachOther) {
    for (const auto& id : machine_ids()) {
        const Machine m = machine_by_id(id);
        const auto shared_sm = m.number<Bytes>("shared.per_sm"),
                   shared_cta = m.number<Bytes>("shared.per_cta");
        EXPECT_LE(*shared_cta + *m.number<Bytes>("shared.reserved_per_cta"), *shared_sm) << id;
        EXPECT_LE(*shared_sm, *m.number<Bytes>("l1.unified")) << id;
        const auto peak = dram_bandwidth(m);
        for (const char* key : {"dram.sustained_read", "dram.sustained_write", "dram.sustained_copy"})
            if (const auto sustained = bandwidth(m, key)) {
                EXPECT_LT(*sustained, *peak) << id << " " << key;
            }
        const auto boost = m.number<Clock>("clock.boost"), tensor = m.number<Clock>("clock.tensor");
        EXPECT_LE(*tensor, *boost) << id;
        for (auto type : input_types())
            if (const auto clock = m.number<Clock>("clock.sustained." + std::string(type))) {
                EXPECT_LT(*clock, *boost) << id << " " << type;
            }
        const auto l1 = latency_cycles(m, "l1.latency", boost), l2 = latency_cycles(m, "l2.latency", boost);
        const auto far = latency_cycles(m, "l2.latency_far", boost),
                   dram = latency_cycles(m, "dram.latency", boost);
        if (l1 && l2) { EXPECT_LT(*l1, *l2) << id; }
        if (l2 && far) { EXPECT_LT(*l2, *far) << id; }
        if (l2 && dram) { EXPECT_LT(*l2, *dram) << id; }
        if (const auto l2_rate = l2_bandwidth(m, boost)) {
            EXPECT_GT(*l2_rate * *boost, *peak) << id;
            EXPECT_LE(*l2_rate / *m.count("sm.count"), *bytes_per_cycle_per_sm(m, "l2.port", boost)) << id;
        }
    }
}

TEST(Registry, RoundTripOfEveryMachine) {
    for (const auto& id : machine_ids()) {
        const Machine machine = machine_by_id(id);
        const Machine again = parse_machine(to_toml(machine), "again.toml");
        EXPECT_EQ(again.hash(), machine.hash()) << id;
        EXPECT_EQ(to_toml(again), to_toml(machine)) << id;
    }
}

TEST(Registry, NoTwoMachinesAreTheSame) {
    std::map<std::string, std::string> ids;
    for (const auto& id : machine_ids()) {
        const auto [other, fresh] = ids.emplace(machine_by_id(id).hash(), id);
        EXPECT_TRUE(fresh) << id << " has every number of " << other->second;
    }
}

TEST(MachineById, IdsAndPaths) {
    EXPECT_EQ(machine_by_id("h20").id, "h20");
    EXPECT_EQ(machine_by_id(ROOFTILE_SOURCE_DIR "/tests/data/machines/two-sm.toml").count("sm.count"), 2);
    EXPECT_EQ(refusal([] { machine_by_id("h100sxm"); }),
              "unknown machine \"h100sxm\"; did you mean \"h100-sxm\"?; there are: a100-40-sxm a100-80-sxm "
              "a40 b200 "
              "h100-pcie h100-sxm h20 h200-sxm h800-sxm l40s rtx4090 v100-sxm2; invented: a100-exercise async-units h100-exercise "
              "v100-exercise worked-example; or name a .toml file");
    EXPECT_THAT(refusal([] { machine_by_id(""); }), HasSubstr("unknown machine \"\"; there are"));
    EXPECT_THAT(refusal([] { machine_by_id("no/such.toml"); }), HasSubstr("no/such.toml: no such file"));
    EXPECT_THAT(refusal([] { machine_by_id("arch/sm_90"); }), HasSubstr("no such file"));
    EXPECT_THAT(refusal([] { machine_by_id("a\nb"); }), HasSubstr("\"a?b\""));
    EXPECT_THAT(refusal([] { machine_by_id(std::string(100'000, 'x')); }), HasSubstr("xxx..."));
}

TEST(MatchDevice, NameAndSmCount) {
    auto id = [](std::string_view name, int sms) {
        const auto machine = match_device(name, sms);
        return machine ? machine->id : "none";
    };
    EXPECT_EQ(id("NVIDIA H100 80GB HBM3", 132), "h100-sxm");
    EXPECT_EQ(id("NVIDIA H100 PCIe", 114), "h100-pcie");
    EXPECT_EQ(id("NVIDIA H200", 132), "h200-sxm");
    EXPECT_EQ(id("NVIDIA H800", 132), "h800-sxm");
    EXPECT_EQ(id("NVIDIA H20", 78), "h20");
    EXPECT_EQ(id("NVIDIA A100-SXM4-40GB", 108), "a100-40-sxm");
    EXPECT_EQ(id("A100-SXM4-80GB", 108), "a100-80-sxm");  // older drivers name no vendor
    EXPECT_EQ(id("NVIDIA A40", 84), "a40");
    EXPECT_EQ(id("NVIDIA GeForce RTX 4090", 128), "rtx4090");
    EXPECT_EQ(id("NVIDIA L40S", 142), "l40s");
    EXPECT_EQ(id("Tesla V100-SXM2-16GB", 80), "v100-sxm2");
    EXPECT_EQ(id("NVIDIA B200", 148), "b200");
    EXPECT_EQ(id("NVIDIA H200", 131), "none");
    EXPECT_EQ(id("NVIDIA H200 NVL", 132), "none");
    EXPECT_EQ(id("", 132), "none");
}

}  // namespace
}  // namespace rooftile
