#include "rooftile/report/counters.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "rooftile/report/csv.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/measurement.hpp"
#include "tests/golden.hpp"
#include "tests/json_schema.hpp"
#include "tests/gemm/sample.hpp"

namespace rooftile {
namespace {

/// Every counter has a value of its own; the fabric's is unknown.
Measurement counted() {
    Measurement m = sample::measurement();
    CounterValues c;
    c.chip = "GH100";
    c.launches = 8;
    c.passes = 4;
    c.tensor_active_share = 0.913;
    c.tensor_instructions = 14680064;
    c.sm_active_share = 0.985;
    c.sm_cycles = 975000.4;
    c.sm_clock_mhz = 1512.5;
    c.time_us = 644.75;
    c.shared_wavefront_share = 0.62;
    c.shared_wavefronts = 80000000.25;
    c.shared_bank_conflicts = 1200;
    c.data_bank_read_share = 0.55;
    c.data_bank_write_share = 0.21;
    c.sm_read_bytes = 5637144576;
    c.l2_read_bytes = 5368709120.6;
    c.l2_write_bytes = 117440512;
    c.l2_hit_rate = 0.93;
    c.dram_read_bytes = 410000000;
    c.dram_write_bytes = 117500000;
    m.counters = c;
    return m;
}

/// The baseline has two counters, the fabric's among them.
Measurement beside_baseline() {
    Measurement m = counted();
    CounterValues& theirs = m.baselines[1].counters.emplace();
    theirs.chip = "GH100";
    theirs.launches = 8;
    theirs.passes = 4;
    theirs.tensor_active_share = 0.942;
    theirs.l2_fabric_bytes = 2000000000;
    return m;
}

nlohmann::json rows_of(const std::vector<Measurement>& measurements) {
    return nlohmann::json::parse(json_text(measurement_document(sample::gpu_context(), measurements)))
        .at("rows");
}

TEST(Counters, AreInTheDocumentAsItsSchemaSays) {
    const JsonSchema schema("measurement-1.json");
    const auto document = measurement_document(sample::gpu_context(), {counted(), sample::measurement()});
    EXPECT_EQ(schema.faults(nlohmann::json::parse(json_text(document))), "");
    const auto rows = rows_of({counted(), sample::measurement()});
    const auto& counters = rows.at(0).at("counters");
    EXPECT_EQ(counters.at("chip"), "GH100");
    EXPECT_EQ(counters.at("launches"), 8);
    EXPECT_EQ(counters.at("sm_cycles").dump(), "975000");
    EXPECT_EQ(counters.at("shared_wavefronts").dump(), "80000000");
    EXPECT_EQ(counters.at("l2_read_bytes").dump(), "5368709121");
    EXPECT_EQ(counters.at("tensor_active_share"), 0.913);
    EXPECT_TRUE(counters.at("l2_fabric_bytes").is_null());
    EXPECT_EQ(counters.size(), 3 + counter_fields().size());
    EXPECT_TRUE(rows.at(1).at("counters").empty());
    EXPECT_TRUE(rows.at(0).at("baselines").at("cublaslt_best_counters").empty());
}

TEST(Counters, TheBaselinesStandBesideItsTimes) {
    const JsonSchema schema("measurement-1.json");
    const Measurement m = beside_baseline();
    const auto document = measurement_document(sample::gpu_context(), {m});
    EXPECT_EQ(schema.faults(nlohmann::json::parse(json_text(document))), "");
    const auto baselines = rows_of({m}).at(0).at("baselines");
    EXPECT_EQ(baselines.at("cublaslt_best_counters").at("tensor_active_share"), 0.942);
    EXPECT_TRUE(baselines.at("cublaslt_best_counters").at("l2_hit_rate").is_null());
}

// Every value has a field: CounterValues holds a name, two counts and optional numbers.
TEST(Counters, EveryValueHasAField) {
    EXPECT_EQ(sizeof(CounterValues), sizeof(std::string) + 2 * sizeof(std::int64_t)
                                         + counter_fields().size() * sizeof(std::optional<double>));
}

TEST(Counters, EveryFieldIsAColumn) {
    const std::string csv = csv_text(measurement_document(sample::gpu_context(), {counted()}));
    const std::string header = csv.substr(0, csv.find("\r\n")) + ",";
    for (const CounterField& field : counter_fields())
        EXPECT_NE(header.find(std::string(",counters_") + field.key + ","), std::string::npos) << field.key;
    EXPECT_NE(csv.find(",410000000,117500000,"), std::string::npos);
}

TEST(Counters, Golden) {
    const Measurement m = counted();
    expect_golden("counters.txt", counters_text(*m.counters, {gemm_plan(m).prediction.dram_bytes, gemm_plan(m).prediction.l2_bytes}, {}));
    CounterValues unknown;
    unknown.chip = "GH100";
    unknown.launches = 8;
    unknown.passes = 4;
    expect_golden("counters_unknown.txt", counters_text(unknown, {}, {}));
    expect_golden("measurement_counters.txt",
                  measurement_text(sample::gpu_context(), {beside_baseline()}, {}));
}

}  // namespace
}  // namespace rooftile
