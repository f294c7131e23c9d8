// Probes on a real GPU: quick ones, whose answers no Hopper can miss by much.
#include "rooftile/probe/probe.hpp"

#include <cmath>
#include <map>

#include "rooftile/machine/read.hpp"
#include "tests/device/device.hpp"

namespace rooftile {
namespace {

class ProbeDeviceTest : public DeviceTest {
    bool is_alone() const override { return true; }
};

TEST_F(ProbeDeviceTest, MeasuresWhatCannotBeOtherwise) {
    ProbeOptions options;
    options.only = {"sm", "cluster", "wgmma", "mma_sync", "launch", "lines"};
    const ProbeRun run = run_probes_here(options);
    std::map<std::string, double> values;
    for (const ProbeResult& result : run.results) {
        EXPECT_EQ(result.failure, "") << result.probe;
        for (const ProbeValue& v : result.values) {
            EXPECT_TRUE(std::isfinite(v.value) && v.value > 0) << v.name << " = " << v.value;
            values[v.name] = v.value;
        }
    }
    EXPECT_NEAR(values["shared.bandwidth.threads_1024"], 128, 8);  // 32 banks x 4 B
    EXPECT_NEAR(values["rate.fma"], 256, 5);                       // 128 lanes
    EXPECT_NEAR(values["rate.mufu"], 16, 1);
    EXPECT_LE(values["dsmem.bandwidth_2"], 128);
    EXPECT_GE(values["dsmem.bandwidth_2"], 4);
    EXPECT_NEAR(values["wgmma.interval_256"], 128, 4);  // N / 2
    for (const char* rate : {"mma_sync.rate_bf16", "mma_sync.rate_fp16"}) {
        EXPECT_GE(values[rate], 2000) << rate;  // no less than an A100's 2048
        EXPECT_LE(values[rate], 4096) << rate;  // wgmma's
    }
    EXPECT_GE(values["tma.off_line_16"], values["tma.off_line_64"]);  // five sectors of a row for four
    EXPECT_GT(values["tma.off_line_shared_16"], values["tma.off_line_16"]);
    EXPECT_GT(values["stores.tma.dram_0"], values["stores.tma.dram_16"]);
    EXPECT_GT(values["stores.tma.dram_16"], values["stores.element_turned.dram_2"]);
    EXPECT_GT(values["stores.element_turned.dram_2"], values["stores.element.dram_2"]);
    EXPECT_LE(values["cluster.sms_2"], run.gpu.machine.count("sm.count").value_or(0));
    std::vector<std::string> notes;
    const Machine machine = probed_machine(run, "2026-11-21", "test", notes);
    EXPECT_TRUE(notes.empty()) << notes.front();
    EXPECT_EQ(parse_machine(to_toml(machine), "probed").hash(), machine.hash());
}

}  // namespace
}  // namespace rooftile
