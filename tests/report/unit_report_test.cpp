// Short kernels: the model by hand, the document and what is shown of it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/picture/page.hpp"
#include "rooftile/picture/pictures.hpp"
#include "rooftile/report/unit_report.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

Machine unit_machine() {
    Machine m = machine_by_id("h200-sxm");
    for (const char* number : {"sm.count=100 SMs", "sm.partitions=4 partitions", "clock.boost=1 GHz", "rate.mufu=16 op/clk/SM",
                               "dram.sustained_read=4 TB/s", "dram.sustained_copy=3 TB/s", "l2.bandwidth=10 TB/s", "l2.port=100 GB/s/SM",
                               "dram.latency=500 clk", "l2.latency=200 clk", "shared.latency=20 clk", "launch.gap_graph=1 us",
                               "sm.max_warps=64 warps", "sm.max_ctas=32 CTAs", "sm.registers=65536 registers",
                               "sm.register_allocation_unit=256 registers"})
        set_number(m, number);
    return m;
}

UnitCode unit_code_of(UnitKind kind, int instructions, int special) {
    UnitCode out;
    out.kind = kind, out.counts = {.instructions = instructions, .special = special}, out.registers = 20;
    return out;
}

// One alone waits for nobody. Two at one server of 1, apart for 1: alone it is there half of the time, so the other one's round is
// 1 + 1.5 and both make 2 / 2.5 a unit of time. Two at two servers of 1: each finds half of the other, 2 * 1.5.
TEST(TakeTurns, ByHand) {
    const double one[] = {1}, two[] = {1, 1}, none[] = {0, 0, 0};
    EXPECT_DOUBLE_EQ(take_turns(1, 3, two).round, 5);
    EXPECT_DOUBLE_EQ(take_turns(2, 1, one).round, 2.5);
    EXPECT_DOUBLE_EQ(take_turns(2, 1, one).rate, 0.8);
    EXPECT_DOUBLE_EQ(take_turns(2, 0, two).rate, 2 / 3.);
    EXPECT_DOUBLE_EQ(take_turns(4, 2, none).rate, 2);  // only apart
    // Many fill the slowest server and no more.
    const double three[] = {0.2, 1, 0.5};
    EXPECT_NEAR(take_turns(200, 5, three).rate, 1, 1e-6);
    EXPECT_LE(take_turns(8, 5, three).rate, 8 / 6.7);
}

// A load is there after 500 cycles, what waits for it issues then, and its own result comes 20 cycles after.
TEST(CyclesAlone, FollowsScoreboards) {
    const std::vector<InstructionTiming> timings = {
        {.stall = 2, .sets = 0, .loads = true}, {.stall = 1, .waits = 1, .sets = 1}, {.stall = 4, .waits = 2}};
    EXPECT_DOUBLE_EQ(cycles_alone(timings, 500, 20), 524);
    EXPECT_DOUBLE_EQ(cycles_alone(timings, 200, 20), 224);
    // Two loads at once, and two of which the second one's address is the first one's result.
    const InstructionTiming first{.stall = 1, .sets = 0, .loads = true}, second{.stall = 1, .sets = 1, .loads = true};
    InstructionTiming next = second;
    next.waits = 1;
    EXPECT_DOUBLE_EQ(cycles_alone({first, second, {.stall = 1, .waits = 3}}, 500, 20), 502);
    EXPECT_DOUBLE_EQ(cycles_alone({first, next, {.stall = 1, .waits = 2}}, 500, 20), 1001);
    EXPECT_DOUBLE_EQ(cycles_alone({}, 500, 20), 0);
}

// 256 MiB of x, bf16: 65536 CTAs of 8 warps, 524288 warps. 80 instructions of each take 524288 * 80 / (100 * 4 * 1e9) = 104.8576 us of
// issue slots, 16 special functions of 32 lanes 524288 * 512 / (100 * 16 * 1e9) = 167.77216 us; 512 MiB at a copy's rate 178.956971 us.
// An SM has 655.36 CTAs; 64 warps are 8 of them at a time.
TEST(UnitModel, CtasTakeTurnsAtItsUnits) {
    const UnitPrediction p = predicted_unit(unit_machine(), unit_code_of(UnitKind::silu_divide, 80, 16), Type::bf16, 256 << 20, true);
    EXPECT_DOUBLE_EQ(p.launch.value(), 1);
    EXPECT_DOUBLE_EQ(p.store.value(), 0.2);
    EXPECT_DOUBLE_EQ(p.latency.value(), 0);
    EXPECT_NEAR(p.issue.value(), 104.8576, 1e-9);
    EXPECT_NEAR(p.special.value(), 167.77216, 1e-9);
    EXPECT_NEAR(p.bytes.value(), (1 << 29) / 3e6, 1e-6);
    EXPECT_DOUBLE_EQ(p.ctas, 655.36);
    EXPECT_EQ(p.in_flight, 8);
    EXPECT_EQ(p.bound, "dram");
    const double services[] = {p.bytes.value() / 655.36, 0.16, 0.256};
    const TakenTurns turns = take_turns(8, 0, services);
    EXPECT_NEAR(p.total().value(), 1.2 + turns.round + (655.36 - 8) / turns.rate, 1e-6);
    EXPECT_GT(p.total().value(), 1.2 + p.bytes.value());
    // From L2 the special function unit is what binds.
    const UnitPrediction held = predicted_unit(unit_machine(), unit_code_of(UnitKind::silu_divide, 80, 16), Type::bf16, 256 << 20, false);
    EXPECT_EQ(held.bound, "special");
    EXPECT_GT(held.total().value(), 1.2 + 167.77216);
    EXPECT_LT(held.total().value(), p.total().value());
    // Registers of which only one CTA fits: 250 are 256 of each thread, 65536 of 256 threads.
    UnitCode large = unit_code_of(UnitKind::silu_divide, 80, 16);
    large.registers = 250;
    EXPECT_EQ(predicted_unit(unit_machine(), large, Type::bf16, 256 << 20, true).in_flight, 1);
}

// One CTA an SM, which waits for a load of 0.5 us and nothing else.
TEST(UnitModel, WhatWaitsForMemoryIsBoundByLatency) {
    UnitCode code = unit_code_of(UnitKind::product, 2, 0);
    code.counts.timings = {{.stall = 1, .sets = 0, .loads = true}, {.stall = 1, .waits = 1}};
    const UnitPrediction p = predicted_unit(unit_machine(), code, Type::bf16, 100 * 4096, true);
    EXPECT_DOUBLE_EQ(p.ctas, 1);
    EXPECT_NEAR(p.latency.value(), 0.499, 1e-9);  // 501 cycles less 2 that it issues in
    EXPECT_EQ(p.bound, "latency");
    EXPECT_NEAR(p.total().value(), 1.2 + 0.499 + p.bytes.value() + p.issue.value(), 1e-9);
}

// A product reads two and writes one: 2/3 of the way between reading (4) and copying (3). GEMV writes next to nothing.
TEST(UnitModel, RatesFollowTheShareThatIsWritten) {
    const double product = predicted_unit(unit_machine(), unit_code_of(UnitKind::product, 50, 0), Type::bf16, 1 << 30, true).bytes.value();
    EXPECT_NEAR(product, 3. * (1 << 30) / ((4 - 2. / 3) * 1e6), 1e-6);
    const double gemv = predicted_unit(unit_machine(), unit_code_of(UnitKind::gemv, 400, 0), Type::bf16, 1 << 30, true).bytes.value();
    EXPECT_NEAR(gemv, double(1 << 30) / 4e6, 1e-6);
}

// 16 KiB of bf16 are 4 CTAs: 4 SMs with 100 GB/s each, and their issue slots alone.
TEST(UnitModel, FewCtasHaveFewSms) {
    const UnitPrediction p = predicted_unit(unit_machine(), unit_code_of(UnitKind::silu_no_division, 80, 8), Type::bf16, 16 << 10, false);
    EXPECT_NEAR(p.bytes.value(), 32768 / 4e5, 1e-9);
    EXPECT_NEAR(p.issue.value(), 32 * 80 / (4. * 4 * 1e3), 1e-9);
}

TEST(UnitModel, WhatIsUnknownIsNoPrediction) {
    Machine m = unit_machine();
    for (const char* key : {"launch.gap_graph", "shared.latency", "sm.max_warps", "rate.mufu"}) {
        m = unit_machine();
        m.facts.erase(key);
        EXPECT_FALSE(predicted_unit(m, unit_code_of(UnitKind::product, 50, 0), Type::bf16, 1 << 20, true).total()) << key;
    }
}

UnitRun unit_run() {
    UnitRun out;
    for (int kind = 0; kind < unit_kinds; ++kind) out.code.push_back(unit_code_of(UnitKind(kind), 50 + kind, kind));
    for (const std::int64_t bytes : {std::int64_t{1} << 20, std::int64_t{1} << 28})
        for (int kind = 0; kind < unit_kinds; ++kind)
            for (const bool from_dram : {true, false}) {
                if (!from_dram && bytes > 1 << 20) continue;
                UnitPoint p;
                p.kind = UnitKind(kind), p.x_bytes = bytes, p.from_dram = from_dram, p.sets = from_dram ? 120 : 1, p.launches = 240;
                p.time_us = 2.5 * predicted_unit(unit_machine(), out.code[std::size_t(kind)], out.type, bytes, from_dram).total().value();
                p.low_us = 0.9 * p.time_us, p.high_us = 1.1 * p.time_us;
                p.worst = 0.5, p.right = true;
                out.points.push_back(p);
            }
    out.chip = "GH100";
    out.points[0].counters = {{"issue_active_percent", 40}, {"special_percent", 12.5}, {"selected", 1}, {"long_scoreboard", 6}, {"wait", 2},
                              {"not_selected", 1}};
    return out;
}

DocumentContext unit_context() {
    DocumentContext out = context_of(unit_machine(), "rooftile measure units");
    out.gpu = GpuContext{"NVIDIA H200", "580", "13.0", "2026-11-29T00:00:00Z", 1};
    return out;
}

TEST(UnitReport, TheDocumentFollowsItsSchema) {
    const Json document = unit_document(unit_context(), unit_machine(), unit_run());
    EXPECT_EQ(JsonSchema("units-1.json").faults(nlohmann::json::parse(document.dump())), "");
    EXPECT_NEAR(document.at("mean_error").get<double>(), 0.6, 1e-9);  // 1 / 2.5 - 1
    const Json& point = document.at("points")[0];
    EXPECT_DOUBLE_EQ(point.at("stall_shares").at("long_scoreboard").get<double>(), 0.6);
    EXPECT_TRUE(point.at("stall_shares").at("barrier").is_null());
    EXPECT_TRUE(document.at("points")[1].at("counters").is_null());
}

TEST(UnitReport, AWrongResultHasNoTime) {
    UnitRun wrong = unit_run();
    wrong.points[0].right = false;
    wrong.points[0].time_us = wrong.points[0].low_us = wrong.points[0].high_us = 0, wrong.points[0].launches = 0;
    const Json document = unit_document(unit_context(), unit_machine(), wrong);
    EXPECT_EQ(JsonSchema("units-1.json").faults(nlohmann::json::parse(document.dump())), "");
    EXPECT_TRUE(document.at("points")[0].at("time_us").is_null());
    EXPECT_NE(unit_text(document, {}).find("wrong"), std::string::npos);
}

TEST(UnitReport, ShowsTimesErrorsAndWaits) {
    const std::string text =
        unit_text(unit_document(unit_context(), unit_machine(), unit_run()), {.color = false, .utf8 = true, .width = 160});
    for (const char* words : {"NVIDIA H200", "from DRAM", "in L2", "SiLU fast /", "256 MiB", "-60 % dram", "off by -60.0 % mean, 60.0 % absolute",
                              "long scoreboard", "60.0 %", "12.5 %"})
        EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
}

// A kernel that has no point of a size leaves its cell empty.
TEST(UnitReport, ColumnsAreTheKernels) {
    UnitRun part = unit_run();
    std::erase_if(part.points, [](const UnitPoint& p) { return p.kind == UnitKind::product && !p.from_dram; });
    for (UnitPoint& point : part.points) point.time_us = 100 + int(point.kind);
    const std::string text = unit_text(unit_document(unit_context(), unit_machine(), part), {.color = false, .utf8 = true, .width = 160});
    std::istringstream from(text.substr(text.find("us a launch, operands in L2")));
    std::string title, head, line;
    std::getline(from, title), std::getline(from, head), std::getline(from, line);
    EXPECT_EQ(line.find("100"), std::string::npos) << line;
    for (const auto& [name, us] : {std::pair{"SiLU /", "101"}, {"GEMV", "106"}})
        EXPECT_EQ(head.find(name) + std::string(name).size(), line.find(us) + 3) << head << "\n" << line;
}

TEST(UnitReport, IsDrawnAndHasASection) {
    const Json document = unit_document(unit_context(), unit_machine(), unit_run());
    const std::vector<Picture> pictures = pictures_of(document);
    ASSERT_EQ(pictures.size(), 2u);
    EXPECT_EQ(pictures[0].id, "units_dram");
    EXPECT_EQ(pictures[0].keys.size(), std::size_t(unit_kinds));
    EXPECT_NE(svg_text(pictures[0]).find("RMSNorm"), std::string::npos);
}

}  // namespace
}  // namespace rooftile
