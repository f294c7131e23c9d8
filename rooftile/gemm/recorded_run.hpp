// Measured GEMMs read back from the lines of `rooftile/measurement/1`, as problems and configurations that can
// be planned, timed and simulated again.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/gemm/plan.hpp"
#include "rooftile/report/json.hpp"

namespace rooftile {

struct RecordedRow {
    GemmProblem problem;
    GemmConfig config;
    int rank = 0;
    std::optional<double> time_us, predicted_us;  ///< empty where the row is no result
    std::optional<double> dram_bytes, l2_bytes;   ///< counted, read and written, of one launch
};

/// What the context line says and every row that has a configuration.
struct RecordedRun {
    std::string machine_id, gpu, driver, date, version, mode;
    std::vector<RecordedRow> rows;
    int without_config = 0;  ///< rows left out: no plan fits their problem
};

/// Reads what `measure gemm --jsonl` or `--suite` wrote. A last line without its end counts as absent. Throws
/// RequestError naming `file_name` and the line.
RecordedRun read_recorded_run(std::string_view text, std::string_view file_name);

/// As problem_json() and config_json() write them. Throw nlohmann::json::exception or RequestError.
GemmProblem gemm_problem_of(const Json& json);
GemmConfig gemm_config_of(const Json& json);

/// The plan of exactly that configuration by today's model. Throws RequestError where it does not fit.
GemmPlan plan_again(const Machine& machine, const RecordedRow& row);

/// "4096x14336x4096": M, N, K.
std::string shape_text(const GemmProblem& problem);

}  // namespace rooftile
