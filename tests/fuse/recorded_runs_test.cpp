// The time model of memory-bound kernels against recorded sweeps: the predictions of the plans that come
// first, and how far behind the best of its own candidates each of them was.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/fuse/search.hpp"
#include "rooftile/expression/expression.hpp"
#include "tests/recorded_csv.hpp"

namespace rooftile {
namespace {

struct Row {
    std::string group, rows, columns, type;
    FuseRequest request;
    bool early_weights = false, grid_reduction = false;
    int stages = 1;
    double time_us = 0;
    std::string problem() const { return group + " " + rows + "x" + columns + " " + type; }
};

// Every candidate of then. Rows that were staged whole are no longer offered, nor rings that reduce through device memory; what is
// behind the fastest is counted against them, too.
constexpr const char* last = "2026-11-23-h200-memory-dealt.csv";
// An older run of every candidate.
constexpr const char* every = "2026-11-23-h200-memory-exhaustive.csv";

/// Of a kernel that was another then, or beside such ones: since `every` rows of rings are scheduled dynamically, whole iterations are not asked for
/// one by one, and rows that a warp has in registers with a mask have fewer of them.
bool another_kernel(const Row& row, const std::string& run) {
    if (run == last) return false;
    if (row.columns == "65536" || row.columns == "262144") return true;
    if (row.group == "layernorm_chain" && row.columns != "4096" && row.columns != "1048576") return true;
    return row.request.row_storage == RowStorage::pipelined
           || (row.request.row_storage == RowStorage::reload && !row.grid_reduction);
}

std::vector<Row> recorded_rows(const std::string& name) {
    std::vector<Row> rows;
    for (const std::vector<std::string>& field : recorded_fields(name, "group,")) {
        const auto number = [&](std::size_t i) { return std::stoi(field.at(i)); };
        Row row{field.at(0), field.at(1), field.at(2), field.at(3), {}};
        FuseRequest& r = row.request;
        for (RowStorage row_storage : {RowStorage::none, RowStorage::registers, RowStorage::reload, RowStorage::pipelined})
            if (name_of(row_storage) == field.at(4)) r.row_storage = row_storage;
        r.vector_width = number(5), r.vectors_per_thread = number(6), r.threads = number(7),
        r.cluster = number(9);
        if (number(8) > 0) r.threads_per_row = number(8);
        r.persistent = number(10) != 0;
        r.top = 8;
        row.early_weights = number(11) != 0;
        row.stages = number(12);
        if (r.row_storage == RowStorage::pipelined) r.ctas_per_sm = number(13);  // elsewhere as many as fit
        row.time_us = std::stod(field.at(15));
        // Without that column CTAs reduced through device memory where no cluster is as large.
        row.grid_reduction = field.size() > 17 ? field[17] == "grid" : r.cluster > 16;
        r.grid_reduction = row.grid_reduction;
        // Forms that there were.
        r.reduction_threads = field.size() > 18 ? std::stoi(field[18]) : 0;
        const bool ring = r.row_storage == RowStorage::pipelined;
        if ((ring && number(13) > 1) || (!ring && !row.grid_reduction && number(9) > 1)) continue;
        rows.push_back(row);
    }
    return rows;
}

// As in bench/suites/memory.toml.
ExpressionGraph problem_of(const Row& row) {
    static const std::map<std::string, std::pair<const char*, std::vector<const char*>>> groups = {
        {"softmax", {"y = softmax(x)", {}}},
        {"layernorm", {"y = layernorm(x, gamma, beta)", {"gamma", "beta"}}},
        {"rmsnorm", {"y = rmsnorm(x, gamma)", {"gamma"}}},
        {"layernorm_chain",
         {"y = gelu(dropout(layernorm(x, gamma, beta) + residual, 0.1, seed=1))", {"gamma", "beta"}}},
        {"sum", {"y = sum(x)", {}}},
        {"max", {"y = max(x)", {}}},
        {"gelu", {"y = gelu(x)", {}}},
        {"gelu_tanh", {"y = gelu_tanh(x)", {}}},
        {"bias_gelu", {"y = gelu(x + bias)", {"bias"}}},
        {"chain_of_ten", {"y = abs(tanh(sigmoid((x + a) * 0.5) - b) * x + 1.0) * 0.25 - a", {"a", "b"}}},
    };
    const auto& [text, weights] = groups.at(row.group);
    const std::string full = ":" + row.type + "[" + row.rows + "," + row.columns + "]";
    std::vector<TensorDeclaration> tensors = {tensor_declaration("x" + full)};
    if (row.group == "layernorm_chain") tensors.push_back(tensor_declaration("residual" + full));
    for (const char* w : weights)
        tensors.push_back(tensor_declaration(std::string(w) + ":" + row.type + "[" + row.columns + "]"));
    return expression_graph(text, tensors);
}

struct Choice {
    struct Plan {
        FuseConfig config;
        double predicted_us, time_us;
    };
    std::vector<Plan> plans;
    FuseSearch search;  ///< of everything
    double predicted = NAN, its_time = NAN, min_time = INFINITY, errors = 0;
    int first_plans = 0;  ///< of those that come first, and were recorded
    double first_errors = 0;
    double error() const { return predicted / its_time - 1; }
    double behind() const { return its_time / min_time - 1; }
};

/// Of each problem the first plan of the search that was recorded.
std::map<std::string, Choice> choices(const Machine& machine, const std::string& run = last) {
    std::map<std::string, Choice> out;
    std::vector<std::string> unknown;
    const FuseHardware hw = fuse_hardware(machine, unknown);
    for (const Row& row : recorded_rows(run)) {
        if (another_kernel(row, run)) continue;
        const ExpressionGraph graph = problem_of(row);
        const Program program = std::get<Program>(fuse_program(graph));
        Choice& choice = out[row.problem()];
        if (choice.plans.empty()) choice.search = search_launches(machine, hw, graph, program, {.top = 1000});
        for (const FuseCandidate& c : search_launches(machine, hw, graph, program, row.request).kept)
            if (c.config.early_weights == row.early_weights && c.config.stages == row.stages
                && c.config.grid_reduction == row.grid_reduction)
                choice.plans.push_back({c.config, c.flow.time.seconds * 1e6, row.time_us});
        choice.min_time = std::min(choice.min_time, row.time_us);
    }
    for (auto& [name, choice] : out) {
        for (const Choice::Plan& p : choice.plans) choice.errors += std::fabs(p.predicted_us / p.time_us - 1);
        for (const FuseCandidate& c : choice.search.kept) {
            const auto same = std::find_if(choice.plans.begin(), choice.plans.end(),
                                           [&](const Choice::Plan& p) { return p.config == c.config; });
            if (same == choice.plans.end()) continue;
            constexpr int max_first = 8;
            if (choice.first_plans++ == 0)
                choice.predicted = same->predicted_us, choice.its_time = same->time_us;
            choice.first_errors += std::fabs(same->predicted_us / same->time_us - 1);
            if (choice.first_plans == max_first) break;
        }
    }
    return out;
}

struct Figures {
    int problems = 0, plans = 0, first_plans = 0;
    double mean = 0, worst = 0;  ///< error of the predicted time of the plan that comes first
    double first = 0;            ///< mean error of up to eight plans of each problem that come first
    double all = 0;              ///< and of all plans
    double behind = 0;           ///< mean of the problems
};

Figures figures(const std::map<std::string, Choice>& choices) {
    Figures f;
    for (const auto& [name, c] : choices) {
        ++f.problems;
        f.plans += int(c.plans.size());
        f.all += c.errors;
        f.first_plans += c.first_plans;
        f.first += c.first_errors;
        f.mean += std::fabs(c.error()) / double(choices.size());
        f.worst = std::max(f.worst, std::fabs(c.error()));
        f.behind += c.behind() / double(choices.size());
    }
    f.all /= f.plans;
    f.first /= f.first_plans;
    return f;
}

TEST(RecordedFuse, PredictionsAreAsGoodAsStated) {
    const Figures e = figures(choices(machine_by_id("h200-sxm"), last));
    EXPECT_EQ(e.problems, 44);
    EXPECT_GE(e.plans, 990);  // of all: what the search gives up must not be what this counts on
    EXPECT_LE(e.mean, 0.0246);
    EXPECT_LE(e.worst, 0.1);
    EXPECT_LE(e.first, 0.0446);
    EXPECT_LE(e.all, 0.0992);
}

// The launches of the older run whose kernels are still the same.
TEST(RecordedFuse, PredictionsHoldForAnOlderRun) {
    const auto found = choices(machine_by_id("h200-sxm"), every);
    const Figures f = figures(found);
    EXPECT_EQ(f.problems, 29);
    EXPECT_GE(f.plans, 290);
    EXPECT_LE(f.mean, 0.0275);
    EXPECT_LE(f.worst, 0.0953);
    EXPECT_LE(f.first, 0.0469);
    for (const auto& [name, c] : found) EXPECT_LE(c.behind(), 0.059) << name;
}

TEST(RecordedFuse, ChoicesAreAsGoodAsStated) {
    const auto found = choices(machine_by_id("h200-sxm"), last);
    EXPECT_LE(figures(found).behind, 0.0098);
    for (const auto& [name, c] : found) EXPECT_LE(c.behind(), 0.054) << name;
}

// Each number that the model was given for these kernels carries weight: without it the predictions are
// worse, of all plans or of those that come first, or the choices are. Not among them: rate.mufu. Twice the rate makes the mean
// errors smaller, not larger (but one choice worse), so what softmax asks of that unit is modelled too high. Nor
// dsmem.latency, which warp-specialised reductions hide.
TEST(RecordedFuse, EveryTermCarriesWeight) {
    const Machine h200 = machine_by_id("h200-sxm");
    const Figures whole = figures(choices(h200));
    for (const char* change :
         {"dram.derate.streams=0", "cta.interval=0 clk", "cluster.start=0 clk", "dram.latency=0 clk", "l2.latency=0 clk",
          "dram.per_sm_alone=4 B/clk/SM"}) {
        Machine changed = h200;
        set_number(changed, change);
        const Figures f = figures(choices(changed));
        EXPECT_GT(std::max({f.all / whole.all, f.mean / whole.mean, f.behind / whole.behind}), 1.005)
            << change << ": " << f.all << ", " << f.mean << " and " << f.behind << " against " << whole.all
            << ", " << whole.mean << " and " << whole.behind;
    }
}

/// What a fit makes small: errors of first plans, and what is lost by them.
double loss(const Figures& f) { return f.mean + f.first + 2 * f.behind; }

// Half as much again of a fitted number, or less by as much and these runs are told no better.
TEST(RecordedFuse, FittedNumbersLieWhereTheyFit) {
    const Machine h200 = machine_by_id("h200-sxm");
    const double least = loss(figures(choices(h200)));
    constexpr double step = 1.5, noise = 0.006;  // they are fitted to drawn problems, too
    for (const char* key : {"stream.overlap_exponent", "stream.thread_instructions", "stream.reduction",
                            "stream.grid.reduction", "stream.ring.chunk", "cta.interval", "cluster.start",
                            "dram.derate.streams"})
        for (const double factor : {step, 1 / step}) {
            Machine changed = h200;
            changed.facts.at(key).value *= factor;
            const double other = loss(figures(choices(changed)));
            EXPECT_GT(other, least - noise) << key << " times " << factor;
            RecordProperty(std::string(key) + (factor > 1 ? " more" : " less"), std::to_string(other - least));
        }
}

}  // namespace
}  // namespace rooftile
