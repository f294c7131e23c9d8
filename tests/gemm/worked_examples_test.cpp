// The pages of worked examples, docs/worked/: their tables are what the program says, in both languages, and no number stands beside them
// that the program does not say. ROOFTILE_REGENERATE=1 writes the tables anew.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "rooftile/gemm/fields.hpp"
#include "rooftile/gemm/formulas.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/report/text_table.hpp"

namespace rooftile {
namespace {

struct Asked {
    std::string machine;
    std::vector<std::pair<const char*, const char*>> fields;
    std::vector<std::string> set{};
};

std::variant<Plans, Infeasible> derived(const Asked& asked) {
    Machine machine = machine_by_id(asked.machine);
    set_numbers(machine, asked.set);
    Given given(Given::Named::by_flag);
    for (const auto& [key, text] : asked.fields) given.add(key, text);
    return derive(machine, gemm_problem(given), gemm_ask(given, 1).request);
}

GemmPlan plan_of(const Asked& asked) {
    auto outcome = derived(asked);
    if (const auto* why = std::get_if<Infeasible>(&outcome)) throw std::runtime_error(why->message);
    return std::get<Plans>(outcome).plans.front();
}

const Step& the_step(const GemmPlan& plan, std::string_view quantity) {
    for (const Step& step : plan.derivation)
        if (step.quantity == quantity) return step;
    throw std::runtime_error("no step " + std::string(quantity));
}

std::string value_text(const Step& step) {
    if (!step.value) return "?";
    const bool counted = step.unit == "B" || step.unit == "cycles" || step.unit == "FLOP";
    return number_text(counted ? std::round(*step.value) : *step.value) + (step.unit.empty() || step.unit == "1" ? "" : " " + step.unit);
}

std::string inputs_text(const Step& step) {
    std::string text;
    for (const Input& input : step.inputs)
        if (input.value) text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", input.name, input_text(*input.value, input.unit) );
    return text;
}

using Rows = std::vector<std::vector<std::string>>;

std::string table_text(std::vector<std::string> titles, Rows rows) {
    TextTable table;
    for (std::string& title : titles) table.columns.push_back({std::move(title), Table::Align::left});
    table.rows = std::move(rows);
    return markdown_table(table);
}

/// Steps of a plan as a page shows them.
std::string steps_table(const GemmPlan& plan, std::initializer_list<const char*> quantities) {
    Rows rows;
    for (const char* quantity : quantities) {
        const Step& step = the_step(plan, quantity);
        rows.push_back({quantity, step.formula, inputs_text(step), value_text(step)});
    }
    return table_text({"step", "formula", "inputs", "value"}, std::move(rows));
}

/// Steps of several plans, a column each.
std::string columns_table(const std::vector<std::pair<std::string, GemmPlan>>& plans, std::initializer_list<const char*> quantities) {
    std::vector<std::string> titles{"step"};
    for (const auto& [title, plan] : plans) titles.push_back(title);
    Rows rows;
    for (const char* quantity : quantities) {
        std::vector<std::string> row{quantity};
        for (const auto& [title, plan] : plans) row.push_back(value_text(the_step(plan, quantity)));
        rows.push_back(std::move(row));
    }
    return table_text(std::move(titles), std::move(rows));
}

std::string read(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

/// Digits, a point or a comma among them.
std::set<std::string> numbers_in(const std::string& text) {
    static const std::regex number("[0-9]+(?:[.,][0-9]+)*");
    std::set<std::string> found;
    for (std::sregex_iterator at(text.begin(), text.end(), number), end; at != end; ++at) {
        std::string digits = at->str();
        std::erase(digits, ',');
        found.insert(digits);
    }
    return found;
}

/// Every page in both languages has `tables` between its marks, and in its prose no number but theirs and `others`.
void expect_pages(const std::string& name, const std::vector<std::pair<std::string, std::string>>& tables, const std::set<std::string>& others) {
    const char* regenerate = std::getenv("ROOFTILE_REGENERATE");
    for (const char* language : {"", ".zh"}) {
        const std::string path = fmt::format("{}/docs/worked/{}{}.md", ROOFTILE_SOURCE_DIR, name, language);
        std::string page = read(path), prose = page;
        ASSERT_FALSE(page.empty()) << path;
        std::set<std::string> known = others;
        for (const auto& [mark, table] : tables) {
            const std::string begin = fmt::format("<!-- {} -->\n", mark), end = "<!-- end -->";
            const std::size_t from = page.find(begin), to = page.find(end, from);
            ASSERT_TRUE(from != page.npos && to != page.npos) << path << " lacks " << begin;
            if (regenerate && *regenerate == '1') page.replace(from + begin.size(), to - from - begin.size(), table);
            else EXPECT_EQ(page.substr(from + begin.size(), to - from - begin.size()), table) << path << ": " << mark << "; ROOFTILE_REGENERATE=1 writes it";
            known.merge(numbers_in(table));
        }
        if (regenerate && *regenerate == '1') std::ofstream(path) << page;
        // What is left of the prose: no tables, commands, marks, links and references to the method.
        prose = std::regex_replace(page, std::regex("<!-- [a-z -]+ -->\\n(?:\\|[^\\n]*\\n)+"), "");
        prose = std::regex_replace(prose, std::regex("```[^`]*```|`[^`]*`|\\]\\([^)]*\\)|\\[M[^\\]]*\\]|    rooftile[^\\n]*"), "");
        prose = std::regex_replace(prose, std::regex("[A-Za-z]+[0-9][0-9A-Za-z]*"), "");  // V100, bf16, L2
        for (const std::string& number : numbers_in(prose)) EXPECT_TRUE(known.contains(number)) << path << ": " << number << " is not the program's";
    }
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

/// Bytes a cycle, as the derivation has them.
double share_dram(const GemmPlan& plan) {
    for (const Input& input : the_step(plan, "load_dram_isolated").inputs)
        if (input.name == "share_dram") return input.value.value_or(std::nan(""));
    return std::nan("");
}

TEST(WorkedExamples, FiveNumbersByHand) {
    const Asked asked{"worked-example",
                      {{"shape", "4096x4096x4096"}, {"tile", "128x128x32"}, {"consumer_warpgroups", "2"}, {"ctas_per_sm", "1"}}};
    const GemmPlan plan = plan_of(asked);
    Asked shared = asked, whole = asked;
    shared.set = {"sm.count=100"};
    const GemmPlan with_sms = plan_of(shared);
    const double load = *the_step(with_sms, "load_dram_isolated").value;
    whole.set = {fmt::format("dram.latency={:.0f} clk", load)};
    EXPECT_EQ(*the_step(plan_of(whole), "stages_min").value, 3);
    expect_pages("five-numbers",
                 {{"the derivation", steps_table(plan, {"tile_flops", "stage_bytes", "arithmetic_intensity", "intensity_critical", "accumulator_registers",
                                                        "registers_per_thread", "stages_max", "ctas_by_shared", "ctas_by_registers",
                                                        "tile_compute_cycles", "stages_min"})},
                  {"the other reading", columns_table({{"as it is", plan}, {"sm.count = 100", with_sms}, {fmt::format("dram.latency = {:.0f} clk", load), plan_of(whole)}},
                                                      {"load_dram_isolated", "tile_compute_cycles", "stages_min"})}},
                 {number_text(share_dram(with_sms)),
                  "32",     // registers a thread, which its source has
                  "16",     // blocks by shared memory at one stage: stages_max
                  "1638"}); // load - 500
    EXPECT_EQ(load - 500, 1638);
    EXPECT_EQ(*the_step(plan, "stages_max").value, 16);
}

/// Bytes a cycle that an SM of a shipped machine has of DRAM.
double dram_share(const char* id) {
    const Machine machine = machine_by_id(id);
    return machine.find("dram.bandwidth")->value / *machine.count("sm.count") / machine.find("clock.boost")->value;
}

TEST(WorkedExamples, TheA100Exercise) {
    const Asked asked{"a100-exercise", {{"shape", "4096x4096x4096"}, {"type", "fp16"}, {"tile", "256x128x16"}}};
    const GemmPlan plan = plan_of(asked);
    const Machine machine = machine_by_id("a100-exercise");
    const double flops = *the_step(plan, "tile_flops").value, rate = machine.find("rate.generic.fp16.fp32")->value, cores = *machine.count("sm.partitions");
    const double of_one = 2 * 16 * 16 * 16, instructions = flops / of_one, interval = of_one / (rate / cores);
    EXPECT_EQ(instructions / cores * interval, *the_step(plan, "tile_compute_cycles").value);
    const double source_latency = 25;
    const std::string counted = table_text({"what", "how", "value"},
                                           {{"FLOP of one m16n16k16", "2 * 16 * 16 * 16", number_text(of_one)},
                                            {"instructions of a step", fmt::format("{:.0f} / {:.0f}", flops, of_one), number_text(instructions)},
                                            {"of one tensor core", fmt::format("{:.0f} / {:.0f}", instructions, cores), number_text(instructions / cores)},
                                            {"issue interval", fmt::format("{:.0f} / ({:.0f} / {:.0f})", of_one, rate, cores), number_text(interval) + " cycles"},
                                            {"compute", fmt::format("{:.0f} * {:.0f}", instructions / cores, interval), number_text(instructions / cores * interval) + " cycles"},
                                            {"chains that hide 25 cycles", fmt::format("ceil({:.0f} / {:.0f})", source_latency, interval), number_text(std::ceil(source_latency / interval))}});
    std::vector<std::pair<std::string, GemmPlan>> what_if{{"the exercise's 11.84", plan}};
    for (const char* id : {"a100-40-sxm", "a100-80-sxm"}) {
        Asked real = asked;
        real.set = {fmt::format("dram.bandwidth={:.3g} B/clk/SM", dram_share(id))};
        what_if.emplace_back(fmt::format("{:.3g} of {}", dram_share(id), id), plan_of(real));
    }
    std::set<std::string> others{"25", "256", "128", "16"};
    for (const auto& [title, each] : what_if) others.merge(numbers_in(percent(*the_step(each, "hit_share_needed").value)));
    const double dram = *the_step(plan, "load_dram_isolated").value, l2 = *the_step(plan, "load_l2_isolated").value;
    others.insert(number_text(dram + l2));  // what the source adds, and counts twice
    others.merge(numbers_in(the_step(plan, "steady_step_all_miss").limit));
    expect_pages("a100-overlap",
                 {{"the derivation", steps_table(plan, {"tile_flops", "stage_bytes", "tile_compute_cycles", "load_l2_isolated", "load_dram_isolated",
                                                        "steady_step_all_miss", "hit_share_needed"})},
                  {"the instructions", counted},
                  {"the bandwidth", columns_table(what_if, {"load_dram_isolated", "steady_step_all_miss", "hit_share_needed"})}},
                 others);
}

TEST(WorkedExamples, TheV100Exercise) {
    const GemmPlan plan = plan_of({"v100-exercise", {{"shape", "4096x4096x4096"}, {"type", "fp16"}, {"tile", "64x64x32"}}});
    const Machine machine = machine_by_id("v100-exercise");
    const double flops = *the_step(plan, "tile_flops").value, bytes = *the_step(plan, "stage_bytes").value;
    const double of_one = 2 * 16 * 16 * 16, cores = *machine.count("sm.partitions"), rate = machine.find("rate.generic.fp16.fp32")->value;
    EXPECT_EQ(bytes, 128 * 32 * 2);
    const double dram = bytes / machine.find("dram.bandwidth")->value, l2 = bytes / machine.find("l2.bandwidth")->value;
    const std::string counted = table_text(
        {"what", "how", "value"},
        {{"transfer from DRAM", fmt::format("{:.0f} / {:.3g}", bytes, machine.find("dram.bandwidth")->value), fmt::format("{:.0f} cycles", dram)},
         {"transfer from L2", fmt::format("{:.0f} / {:.3g}", bytes, machine.find("l2.bandwidth")->value), fmt::format("{:.0f} cycles", l2)},
         {"instructions of a step", fmt::format("{:.0f} / {:.0f}", flops, of_one), number_text(flops / of_one)},
         {"compute", fmt::format("{:.0f} / {:.0f} * {:.0f}", flops / of_one, cores, of_one / (rate / cores)), number_text(flops / rate) + " cycles"}});
    std::set<std::string> others{"128", "64"};
    others.merge(numbers_in(percent(*the_step(plan, "hit_share_needed").value)));
    expect_pages("v100-transfer",
                 {{"the derivation", steps_table(plan, {"stage_bytes", "tile_compute_cycles", "load_l2_isolated", "load_dram_isolated", "steady_step_all_miss",
                                                        "hit_share_needed"})},
                  {"the transfers", counted}},
                 others);
}

TEST(WorkedExamples, HowDeepAStepIs) {
    std::vector<std::pair<std::string, GemmPlan>> plans;
    Rows kernel;
    std::set<std::string> others{"132"};
    for (const char* tile : {"128x256x32", "128x256x64", "128x256x128"}) {
        plans.emplace_back(fmt::format("tile_k = {}", std::strrchr(tile, 'x') + 1),
                           plan_of({"h100-exercise", {{"shape", "4096x4096x4096"}, {"tile", tile}, {"consumer_warpgroups", "2"}, {"ctas_per_sm", "1"}}}));
        const auto outcome = derived({"h100-sxm", {{"shape", "4096x4096x4096"}, {"tile", tile}}});
        if (const auto* why = std::get_if<Infeasible>(&outcome)) kernel.push_back({tile, "no plan: " + why->message});
        else {
            const GemmPlan& plan = std::get<Plans>(outcome).plans.front();
            kernel.push_back({tile, fmt::format("{} of {} stages, {} B of shared memory", plan.config.stages, *plan.resources.stages_max, *plan.resources.shared_bytes)});
        }
    }
    const auto stages = [&](std::size_t i, const char* quantity) { return *the_step(plans[i].second, quantity).value; };
    EXPECT_LE(stages(1, "stages_for_full_rate"), stages(1, "stages_max"));
    EXPECT_GT(stages(2, "stages_for_full_rate"), stages(2, "stages_max"));  // bubbles
    const double left = *the_step(plans[1].second, "shared_limit").value - 4 * *the_step(plans[1].second, "stage_bytes").value, c = 128 * 256 * 2;
    EXPECT_EQ(left, 35840);
    others.insert(number_text(left)), others.insert(number_text(c));
    for (const int span : {32, 64, 128}) others.insert(number_text(span * 2));  // bytes of a row of a tile
    Rows steps{{"k-steps of K = 4096"}};
    for (const int k : {32, 64, 128}) steps[0].push_back(number_text(4096.0 / k));
    std::vector<std::string> titles{"what"};
    for (const auto& [title, plan] : plans) titles.push_back(title);
    expect_pages("hopper-tile-k",
                 {{"the three depths", columns_table(plans, {"tile_flops", "stage_bytes", "arithmetic_intensity", "tile_compute_cycles", "stages_max", "stages_min",
                                                            "load_l2_isolated", "stages_for_full_rate", "steady_step_all_miss", "hit_share_needed"})},
                  {"the steps", table_text(titles, steps)},
                  {"the kernel", table_text({"tile", "h100-sxm, sm90_gemm"}, kernel)}},
                 others);
}

}  // namespace
}  // namespace rooftile
