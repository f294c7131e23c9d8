// Rows that a run of `measure gemm` wrote, as problems and configurations that can be planned again, whatever the program was.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rooftile/error.hpp"
#include "rooftile/gemm/knobs.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/sm90_family.hpp"
#include "rooftile/report/json.hpp"

namespace rooftile {

struct RecordedRow {
    GemmProblem problem;
    GemmConfig config;
    int rank = 0;
    std::optional<double> time_us;
    std::optional<double> dram_bytes, l2_bytes;  ///< counted, read and written, of one launch
};

inline std::optional<double> counted(const Json& counters, const char* read, const char* written) {
    const auto a = number_at(counters, read), b = number_at(counters, written);
    return a && b ? std::optional(*a + *b) : std::nullopt;
}

/// Of a file of bench/results/history: all that have a configuration.
inline std::vector<RecordedRow> rows_of_run(const std::string& name) {
    std::ifstream file(ROOFTILE_SOURCE_DIR "/bench/results/history/" + name);
    std::vector<RecordedRow> rows;
    std::string text;
    for (std::getline(file, text); std::getline(file, text);) {
        const Json line = Json::parse(text);
        if (line.at("config").is_null()) continue;
        RecordedRow row;
        row.problem = gemm_operation().problem(gemm_operation().given_of_record(record_of(line.at("problem")))).own.as<GemmProblem>();
        row.config = config_of(record_of(line.at("config")));
        // Runs of before the key stored C in the widest swizzle span.
        if (!line.at("config").contains("epilogue_tile_n") && name_of(row.config.kernel) == "sm90_gemm" && stores_by_tma(row.problem))
            row.config.epilogue_tile_n = Sm90GemmConfig{}.swizzled_columns(row.config.tile_n / row.config.split_k);
        row.rank = line.at("rank").get<int>();
        row.time_us = positive_at(line, "time_us");
        row.dram_bytes = counted(line.at("counters"), "dram_read_bytes", "dram_write_bytes");
        row.l2_bytes = counted(line.at("counters"), "l2_read_bytes", "l2_write_bytes");
        rows.push_back(std::move(row));
    }
    return rows;
}

/// The plan of exactly that configuration by today's model. Throws RequestError where it does not fit.
inline GemmPlan planned_again(const Machine& machine, const RecordedRow& row) {
    const auto outcome = derive(machine, row.problem, fixed_to(row.config));
    if (const auto* infeasible = std::get_if<Infeasible>(&outcome)) throw RequestError(infeasible->message);
    return std::get<Plans>(outcome).plans.front();
}

}  // namespace rooftile
