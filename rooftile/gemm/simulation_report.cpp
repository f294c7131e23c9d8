#include "rooftile/gemm/json.hpp"
#include "rooftile/gemm/simulation_report.hpp"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "rooftile/report/number.hpp"
#include "rooftile/gemm/plan_text.hpp"

namespace rooftile {
namespace {

std::optional<double> ratio(double bytes, const std::optional<double>& bound) {
    return bound ? std::optional(bytes / *bound) : std::nullopt;
}

double l2_bytes(const GemmTraffic& t) { return double(t.l2_read_bytes + t.l2_write_bytes + t.dram_operand_bytes); }

Json whole_bytes(const std::optional<double>& bytes) {
    return bytes ? Json(std::int64_t(std::ceil(*bytes))) : Json(nullptr);
}

Json row_json(const Simulation& s, const SimulatedOrder& o) {
    const GemmTraffic& t = o.traffic;
    Json row = {{"order", name_of(o.order.order)},
            {"group", o.order.group},
            {"planned", o.planned},
            {"sm_bytes", t.sm_bytes},
            {"l2_read_bytes", t.l2_read_bytes},
            {"l2_write_bytes", t.l2_write_bytes},
            {"dram_a_bytes", t.dram_a_bytes},
            {"dram_b_bytes", t.dram_b_bytes},
            {"dram_c_bytes", t.dram_c_bytes},
            {"dram_operand_bytes", t.dram_operand_bytes},
            {"dram_bytes", t.dram_bytes()},
            {"model_dram_bytes", o.model_dram_bytes ? Json(*o.model_dram_bytes) : Json(nullptr)},
            {"fabric_bytes", s.l2.layout == L2Layout::halves ? Json(t.fabric_bytes) : Json(nullptr)},
            {"dram_over_bound", json_number(ratio(double(t.dram_bytes()), s.dram_bound))},
            {"l2_over_bound", json_number(ratio(l2_bytes(t), s.l2_bound))},
            {"l2_hit_rate", json_number(t.hit_rate())},
            {"steps", t.steps},
            {"a_hit_share", json_number(double(t.a_hits) / double(t.steps))},
            {"b_hit_share", json_number(double(t.b_hits) / double(t.steps))},
            {"both_hit_share", json_number(t.both_hit_share())},
            {"wait_share", json_number(t.wait_share())}};
    if (o.energy) row["energy_j"] = json_number(o.energy->total);
    return row;
}

std::vector<std::string> joules_of(const std::vector<SimulatedOrder>& orders) {
    std::vector<std::string> out;
    for (const SimulatedOrder& o : orders) out.push_back(o.energy->total ? number_text(*o.energy->total) : "?");
    return out;
}

std::string cache_text(const L2Model& l2) {
    const std::string bytes = scaled_text(double(l2.capacity()), "B");
    const char* policy = l2.policy == L2Policy::lru ? "LRU" : "OPT";
    if (l2.layout == L2Layout::halves)
        return fmt::format("two halves of {}, an LRU each; a far line is kept on both sides",
                           scaled_text(double(l2.part_bytes), "B"));
    if (l2.layout == L2Layout::whole || l2.parts == 1)
        return fmt::format("{} of {}, all of L2", policy, bytes);
    return fmt::format(
        "{} of {}, one of {} partitions: each keeps what its SMs read, and all read much the same", policy,
        bytes, l2.parts);
}

}  // namespace

Json simulation_document(const DocumentContext& context, const Simulation& s) {
    Json rows = Json::array();
    for (const SimulatedOrder& order : s.orders) rows.push_back(row_json(s, order));
    const auto [tile_rows, tile_columns, products] = s.tile_schedule.cluster_tiles();
    return {{"schema", "rooftile/simulation/1"},
            {"context", context_json(context)},
            {"machine", {{"id", s.machine_id}, {"name", s.machine_name}}},
            {"problem", problem_json(s.plan.problem)},
            {"config", config_json(s.plan.config)},
            {"tile_schedule",
             {{"clusters_in_flight", s.tile_schedule.clusters},
              {"cluster_rows", tile_rows},
              {"cluster_columns", tile_columns},
              {"rounds", s.tile_schedule.rounds()},
              {"k_steps", ceil_div(s.tile_schedule.k_blocks(), s.tile_schedule.split_k)}}},
            {"l2",
             {{"policy", name_of(s.l2.policy)},
              {"layout", name_of(s.l2.layout)},
              {"part_bytes", s.l2.part_bytes},
              {"parts", s.l2.parts}}},
            {"bounds",
             {{"dram_lower_bound_bytes", whole_bytes(s.dram_bound)},
              {"l2_lower_bound_bytes", whole_bytes(s.l2_bound)}}},
            {"rows", rows},
            {"unknown", s.unknown},
            {"notes", s.notes}};
}

Json tiles_json(const std::vector<TileHits>& tiles) {
    Json out = {{"row", Json::array()}, {"column", Json::array()}, {"round", Json::array()}, {"a_hit_share", Json::array()}, {"b_hit_share", Json::array()}};
    for (const TileHits& tile : tiles) {
        out["row"].push_back(tile.row), out["column"].push_back(tile.column), out["round"].push_back(tile.round);
        out["a_hit_share"].push_back(json_number(tile.a)), out["b_hit_share"].push_back(json_number(tile.b));
    }
    return out;
}

std::string simulation_text(const Simulation& s, const Terminal& terminal) {
    return heading_text(s.plan.problem, s.machine_id, s.machine_name, terminal) + simulation_body(s, terminal);
}

std::string simulation_body(const Simulation& s, const Terminal& terminal) {
    std::string out;
    const auto [rows, columns, products] = s.tile_schedule.cluster_tiles();
    out += fmt::format("plan {}  {}\n", s.plan.rank, label_of(s.plan.config));
    out += fmt::format(
        "tiles   {} in flight over {} {} {} of them, {} round{} of {} steps\n",
        s.tile_schedule.clusters == 1 ? "1 cluster" : fmt::format("{} clusters", s.tile_schedule.clusters),
        rows, terminal.sign("×", "x"), columns, s.tile_schedule.rounds(),
        s.tile_schedule.rounds() == 1 ? "" : "s",
        ceil_div(s.tile_schedule.k_blocks(), s.tile_schedule.split_k));
    out += "L2      " + wrapped(cache_text(s.l2), terminal.prose() - 8, 8) + "\n\n";
    using Align = Table::Align;
    Table table({{"order", Align::left},
                 {"DRAM traffic"},
                 {"A read", Align::right, 3},
                 {"B read", Align::right, 3},
                 {"C written", Align::right, 4},
                 {"of the bound", Align::right, 1},
                 {"closed form", Align::right, 5},
                 {"hit in L2", Align::right, 2},
                 {"A and B both", Align::right, 0},
                 {"waits", Align::right, 6},
                 {"", Align::left}});
    const auto bytes = [](std::int64_t value) { return scaled_text(double(value), "B"); };
    for (const SimulatedOrder& o : s.orders) {
        const GemmTraffic& t = o.traffic;
        const Tone tone = o.planned ? Tone::strong : Tone::plain;
        const auto over = ratio(double(t.dram_bytes()), s.dram_bound);
        table.row({{order_text(o.order.order, o.order.group), tone},
                   {bytes(t.dram_bytes()), tone},
                   {bytes(t.dram_a_bytes)},
                   {bytes(t.dram_b_bytes)},
                   {bytes(t.dram_c_bytes)},
                   {over ? fmt::format("{:.2f} {}", *over, terminal.sign("×", "x")) : "?"},
                   {o.model_dram_bytes ? bytes(*o.model_dram_bytes) : "none"},
                   {percent_text(t.hit_rate())},
                   {percent_text(t.both_hit_share())},
                   {percent_text(t.wait_share())},
                   {o.planned ? "planned" : "", Tone::faint}});
    }
    if (s.orders.front().energy) table.column({"joules"}, joules_of(s.orders));
    out += table.text(terminal) + "\n";
    const GemmTraffic& t = s.orders.front().traffic;
    std::vector<Entry> levels = {
        {"into SMs", bytes(t.sm_bytes), "of A and B, in any order"},
        {"L2", scaled_text(l2_bytes(t), "B"), "A and B leaving it, a multicast once; C and what is read with it"}};
    if (const auto over = ratio(l2_bytes(t), s.l2_bound))
        levels.back().remark += fmt::format("; no clusters of that size ask for less than {}: {:.2f} {}",
                                            scaled_text(*s.l2_bound, "B"), *over, terminal.sign("×", "x"));
    if (t.dram_operand_bytes > 0)
        levels.push_back({"epilogue", bytes(t.dram_operand_bytes), "its operands with an element for each of C, read once with C"});
    if (s.dram_bound)
        levels.push_back({"DRAM", scaled_text(*s.dram_bound, "B"), "the bound: no schedule moves less"});
    if (s.l2.layout == L2Layout::halves)
        levels.push_back(
            {"fabric", bytes(t.fabric_bytes), "between the halves, in the order of the first row"});
    out += entries_text(levels, 2, terminal);
    out += "  "
           + wrapped(
               "A and B both: steps that asked DRAM for neither; waits: steps that begin with one of them on "
               "its way from DRAM, whoever asked",
               terminal.prose() - 2, 2)
           + "\n";
    if (const auto& energy = s.orders.front().energy)
        out += "  "
               + wrapped(energy->total ? "joules: of a launch with that DRAM traffic at the plan's predicted time; the first row takes the least"
                                       : "joules unknown: " + joined(energy->unknown) + ", which `rooftile machine probe` measures",
                         terminal.prose() - 2, 2)
               + "\n";
    for (const std::string& note : s.notes)
        out += "note  " + wrapped(displayable(note, terminal.utf8), terminal.prose() - 6, 6) + "\n";
    return out;
}

}  // namespace rooftile
