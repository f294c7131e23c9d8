#include "rooftile/gemm/recorded_run.hpp"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "rooftile/error.hpp"
#include "rooftile/machine/units_text.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/sm90_family.hpp"
#include "rooftile/gemm/variants.hpp"
#include "rooftile/report/json.hpp"

namespace rooftile {
namespace {

/// The value whose name the text is.
template <class Value, std::size_t size>
Value named(const std::string& text, const Value (&values)[size]) {
    for (const Value value : values)
        if (name_of(value) == text) return value;
    throw RequestError(fmt::format("\"{}\" is no name known here", printable(text)));
}

std::optional<double> sum_at(const Json& object, const char* x, const char* y) {
    const auto a = number_at(object, x), b = number_at(object, y);
    return a && b ? std::optional(*a + *b) : std::nullopt;
}

RecordedRow row_of(const Json& line) {
    RecordedRow row;
    row.problem = gemm_problem_of(line.at("problem"));
    row.config = gemm_config_of(line.at("config"));
    // Runs of before the key stored C in the widest swizzle span.
    if (!line.at("config").contains("epilogue_tile_n") && name_of(row.config.kernel) == "sm90_gemm"
        && stores_by_tma(row.problem))
        row.config.epilogue_tile_n = Sm90GemmConfig{}.swizzled_columns(row.config.tile_n / row.config.split_k);
    row.rank = line.at("rank").get<int>();
    row.time_us = positive_at(line, "time_us");
    row.predicted_us = positive_at(line, "predicted_time_us");
    const Json& counters = line.at("counters");
    row.dram_bytes = sum_at(counters, "dram_read_bytes", "dram_write_bytes");
    row.l2_bytes = sum_at(counters, "l2_read_bytes", "l2_write_bytes");
    return row;
}

void read_line(const Json& line, bool first, RecordedRun& run) {
    if (!first) {
        if (const std::string op = text_at(line.at("problem"), "op"); op != "gemm")
            throw RequestError(
                fmt::format("its problem is of op \"{}\", accepted: gemm; `rooftile report suite` takes "
                            "suites of both",
                            printable(op, 20)));
        run.mode = line.at("mode").get<std::string>();
        if (line.at("config").is_null()) ++run.without_config;
        else run.rows.push_back(row_of(line));
        return;
    }
    if (text_at(line, "schema") != "rooftile/measurement/1")
        throw RequestError("accepted: the context line of rooftile/measurement/1");
    const Json& context = line.at("context");
    run.machine_id = line.at("machine").at("id").get<std::string>();
    run.gpu = text_at(context, "gpu"), run.driver = text_at(context, "driver");
    run.date = text_at(context, "date"), run.version = text_at(context, "version");
}

}  // namespace

GemmProblem gemm_problem_of(const Json& p) {
    const auto major = [&](const char* key) {
        const auto name = p.at(key).get<std::string>();
        if (name != "k" && name != (key[0] == 'a' ? "m" : "n"))
            throw RequestError(fmt::format("problem.{} is \"{}\"", key, printable(name, 20)));
        return name == "k" ? Major::k : Major::mn;
    };
    const Major a_major = major("a_major"), b_major = major("b_major");
    // Runs of before there were epilogues have no alpha, and fewer keys than a request is made of.
    if (p.contains("alpha")) return gemm_operation().problem(gemm_operation().given_of_record(record_of(p))).own.as<GemmProblem>();
    constexpr Type types[] = {Type::bf16, Type::fp16};
    const Type type = named(p.at("types").at("a").get<std::string>(), types);
    GemmProblem problem = gemm_problem(extent_at(p, "m"), extent_at(p, "n"), extent_at(p, "k"), type, a_major, b_major);
    problem.lda = extent_at(p, "lda"), problem.ldb = extent_at(p, "ldb"), problem.ldc = extent_at(p, "ldc");
    problem.a_offset = p.value("a_offset", problem.a_offset);
    problem.b_offset = p.value("b_offset", problem.b_offset);
    problem.c_offset = p.value("c_offset", problem.c_offset);
    if (p.value("batch", 1) > 1) {
        problem.batch = extent_at(p, "batch");
        problem.a_stride = p.value("stride_a", std::int64_t{0}), problem.b_stride = p.value("stride_b", std::int64_t{0});
        problem.c_stride = p.value("stride_d", std::int64_t{0});
    }
    if (p.contains("groups")) {
        problem.groups = gemm_groups(p.at("groups").get<std::string>(), problem.m, "problem.groups");
        problem.b_stride = p.value("stride_b", dense_stride(problem, 'b'));
    }
    check(problem);
    return problem;
}

GemmConfig gemm_config_of(const Json& c) {
    constexpr Schedule schedules[] = {Schedule::cooperative, Schedule::pingpong};
    constexpr Order orders[] = {Order::row,        Order::column, Order::grouped,
                                Order::serpentine, Order::morton, Order::hilbert};
    // Far above what any GPU can hold, and far below what products of a few of them overflow at.
    constexpr std::int64_t most = 4096;
    const auto number = [&](const char* key) {
        const double value = c.at(key).get<double>();
        if (!(value >= 1 && value <= most && value == std::floor(value)))
            throw RequestError(fmt::format("config.{} is {}, accepted: 1 .. {}", key, value, most));
        return static_cast<int>(value);
    };
    GemmConfig config;
    const auto kernel = c.at("kernel").get<std::string>();
    config.kernel = find_gemm_kernel(kernel);
    if (!config.kernel) throw RequestError(fmt::format("\"{}\" is no name known here", printable(kernel)));
    config.tile_m = number("tile_m"), config.tile_n = number("tile_n"), config.tile_k = number("tile_k");
    config.stages = number("stages"), config.consumer_warpgroups = number("consumer_warpgroups");
    config.schedule = named(c.at("schedule").get<std::string>(), schedules);
    config.swap_ab = c.value("swap_ab", false);  // runs of before the key had no choice
    config.cluster_m = number("cluster_m"), config.cluster_n = number("cluster_n");
    config.order = named(c.at("order").get<std::string>(), orders);
    config.group = number("group"), config.split_k = number("split_k");
    if (c.contains("grid_split_k")) config.grid_split_k = number("grid_split_k");
    config.ctas_per_sm = number("ctas_per_sm");
    config.overlapped_epilogue = c.at("overlapped_epilogue").get<bool>();
    if (c.contains("epilogue_tile_n") && c.at("epilogue_tile_n") != 0)
        config.epilogue_tile_n = number("epilogue_tile_n");
    config.dynamic_scheduler = c.value("dynamic_scheduler", false);
    config.programmatic_launch = c.at("programmatic_launch").get<bool>();
    config.pack_a = c.value("pack_a", false), config.pack_b = c.value("pack_b", false);  // as swap_ab
    const auto first = c.at("evict_first").get<std::string>();
    if (first.find_first_not_of("abc") != std::string::npos)
        throw RequestError(
            fmt::format("config.evict_first is \"{}\", accepted: letters of abc", printable(first, 20)));
    for (const char letter : first) {
        CachePolicy& policy = letter == 'a'   ? config.a_policy
                              : letter == 'b' ? config.b_policy
                                              : config.c_policy;
        policy = CachePolicy::evict_first;
    }
    return config;
}

RecordedRun read_recorded_run(std::string_view text, std::string_view file_name) {
    RecordedRun run;
    int number = 1;
    for (std::size_t begin = 0; begin < text.size(); ++number) {
        const std::size_t end = text.find('\n', begin);
        if (end == text.npos) break;
        try {
            read_line(parsed_line(text.substr(begin, end - begin)), number == 1, run);
        } catch (const std::exception& error) {
            throw RequestError(fmt::format("{}:{}: no line of a measurement: {}", printable(file_name, 200),
                                           number, printable(error.what(), 200)));
        }
        begin = end + 1;
    }
    if (run.rows.empty())
        throw RequestError(fmt::format("{}: no measured configuration in it", printable(file_name, 200)));
    return run;
}

GemmPlan plan_again(const Machine& machine, const RecordedRow& row) {
    const auto outcome = derive(machine, row.problem, fixed_to(row.config));
    if (const auto* infeasible = std::get_if<Infeasible>(&outcome)) throw RequestError(infeasible->message);
    return std::get<Plans>(outcome).plans.front();
}

std::string shape_text(const GemmProblem& p) { return fmt::format("{}x{}x{}", p.m, p.n, p.k); }

}  // namespace rooftile
