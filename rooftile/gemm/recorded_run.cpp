#include "rooftile/gemm/recorded_run.hpp"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "rooftile/error.hpp"
#include "rooftile/machine/units_text.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/knobs.hpp"
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

GemmConfig gemm_config_of(const Json& c) { return config_of(record_of(c)); }

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
