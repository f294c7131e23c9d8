#include "rooftile/gemm/simulation_report.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rooftile/error.hpp"
#include "rooftile/picture/pictures.hpp"
#include "rooftile/report/csv.hpp"
#include "tests/golden.hpp"
#include "tests/json_schema.hpp"
#include "tests/gemm/sample.hpp"

namespace rooftile {
namespace {

/// 1024 x 1024 x 512 in 32 tiles of 128 x 256, two pairs at a time, over 1 MiB.
Simulation sample_simulation() {
    Simulation s;
    s.machine_id = "made-up";
    s.machine_name = "A made-up GPU";
    s.plan = sample::plan(1);
    s.plan.problem = gemm_problem(1024, 1024, 512);
    s.plan.config.cluster_m = 2;
    s.tile_schedule = {.m = 1024,
                       .n = 1024,
                       .k = 512,
                       .tile_m = 128,
                       .tile_n = 256,
                       .tile_k = 64,
                       .cluster_m = 2,
                       .clusters = 2,
                       .order = s.plan.config.order,
                       .group = s.plan.config.group};
    s.l2 = {.part_bytes = 1 << 20, .parts = 2};
    s.dram_bound = 4e6;
    s.l2_bound = 5e6;
    for (TileOrder order :
         {TileOrder{s.tile_schedule.order, s.tile_schedule.group}, TileOrder{Order::hilbert, 1}}) {
        TileSchedule tile_schedule = s.tile_schedule;
        tile_schedule.order = order.order, tile_schedule.group = order.group;
        s.orders.push_back({order, s.orders.empty(), simulate(tile_schedule, s.l2), {}});
    }
    s.orders[0].model_dram_bytes = 5000000;
    s.notes = {"a note"};
    return s;
}

nlohmann::json parsed_document(const Json& document) { return nlohmann::json::parse(json_text(document)); }

TEST(SimulationReport, TheDocumentFollowsItsSchema) {
    const JsonSchema schema("simulation-1.json");
    Simulation s = sample_simulation();
    EXPECT_EQ(schema.faults(parsed_document(simulation_document(sample::context(), s))), "");
    s.dram_bound.reset();
    s.l2_bound.reset();
    s.l2.layout = L2Layout::halves;
    const auto document = parsed_document(simulation_document(sample::context(), s));
    EXPECT_EQ(schema.faults(document), "");
    EXPECT_TRUE(document.at("bounds").at("dram_lower_bound_bytes").is_null());
    EXPECT_TRUE(document.at("rows").at(0).at("l2_over_bound").is_null());
    EXPECT_TRUE(document.at("rows").at(0).at("fabric_bytes").is_number_integer());
}

TEST(SimulationReport, EveryLevelIsInTheDocument) {
    const Simulation s = sample_simulation();
    const auto row = parsed_document(simulation_document(sample::context(), s)).at("rows").at(0);
    const GemmTraffic& t = s.orders[0].traffic;
    EXPECT_EQ(row.at("dram_bytes"), t.dram_a_bytes + t.dram_b_bytes + t.dram_c_bytes + t.dram_operand_bytes);
    EXPECT_DOUBLE_EQ(row.at("dram_over_bound"), double(t.dram_bytes()) / 4e6);
    // A for each of the 4 columns, B for each of the 4 rows of pairs: 2 * 1 MiB * 4; twice B into SMs.
    EXPECT_EQ(row.at("l2_read_bytes"), (1 << 20) * 8);
    EXPECT_EQ(row.at("sm_bytes"), (1 << 20) * 12);
    EXPECT_EQ(row.at("model_dram_bytes"), 5000000);
    EXPECT_EQ(row.at("steps"), 32 * 8);
}

TEST(SimulationReport, CsvHasALineAnOrder) {
    const std::string csv = csv_text(simulation_document(sample::context(), sample_simulation()), {"config", "l2"});
    EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
    const auto commas = [&](std::size_t line) {
        std::size_t begin = 0;
        while (line-- > 0) begin = csv.find('\n', begin) + 1;
        return std::count(csv.begin() + long(begin), csv.begin() + long(csv.find('\n', begin)), ',');
    };
    EXPECT_EQ(commas(0), commas(1));
    EXPECT_EQ(commas(0), commas(2));
    EXPECT_EQ(csv.rfind("machine,op,m,n,k,", 0), 0u);
    EXPECT_NE(csv.find("made-up,gemm,1024,1024,512,"), std::string::npos);
}

TEST(SimulationReport, TheTable) {
    expect_golden("simulation.txt", simulation_text(sample_simulation(), {}));
    expect_golden("simulation_narrow_ascii.txt",
                  simulation_text(sample_simulation(), {.color = false, .utf8 = false, .width = 60}));
}

TEST(SimulationReport, ThePicture) {
    const Simulation s = sample_simulation();
    std::vector<TileHits> tiles;
    simulate_lru(s.tile_schedule, s.l2.capacity(), &tiles);
    Json document = simulation_document(sample::context(), s);
    document["tiles"] = tiles_json(tiles);
    EXPECT_EQ(JsonSchema("simulation-1.json").faults(document), "");
    const std::vector<Picture> pictures = pictures_of(document);
    ASSERT_EQ(pictures.size(), 2u);
    const Picture& schedule = pictures[0];
    EXPECT_EQ(schedule.id, "tile_schedule");
    EXPECT_EQ(std::count_if(schedule.marks.begin(), schedule.marks.end(), [](const PictureMark& m) { return m.shape == MarkShape::box; }), 32);
    // The line passes every tile of the first round, in the order in which the kernel takes them.
    ASSERT_EQ(schedule.marks.back().shape, MarkShape::line);
    std::size_t i = 0;
    for (const TileHits& tile : tiles)
        if (tile.round == 0) { EXPECT_EQ(schedule.marks.back().points.at(i++), std::pair(double(tile.column) + 0.5, double(tile.row) + 0.5)); }
    EXPECT_EQ(schedule.marks.back().points.size(), i);
    const std::string svg = svg_text(schedule);
    EXPECT_NE(svg.find("<title>row 0, column 0, round 0"), svg.npos);
    EXPECT_EQ(pictures[1].id, "orders");
}

}  // namespace
}  // namespace rooftile
