// One rung of the GEMM ladder: what was predicted, what was measured, and that its result was right.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/gemm/ladder/ladder_config.hpp"
#include "rooftile/gemm/measurement.hpp"
#include "rooftile/gemm/ladder_model.hpp"

namespace rooftile {

struct LadderRow {
    std::optional<Rung> rung;  ///< empty: sm90_gemm as planned, which stands beside the ladder
    std::string name;          ///< "1 naive", "planned"
    std::string adds;          ///< to the rung before, in a few words
    LadderPrediction prediction;
    /// Figures and proof. `plan` is the planned row's; of a rung it holds the problem, and what a CTA takes.
    /// `roof_fraction` is of the matrix units' peak for every rung, whatever units it uses.
    Measurement measured;
    std::string obstacle;  ///< why the rung was not built: "K is 100; ..."
};

/// The ladder of one problem.
struct LadderRun {
    GemmProblem problem;
    Mode mode = Mode::sustained;
    std::vector<LadderRow> rows;  ///< the six rungs, then the planned kernel where there is a plan
    std::vector<Baseline> baselines;
    std::string baseline_missing;  ///< why one is absent
    std::vector<std::string> notes;
    std::vector<Timing> timings;
    std::string gpu, driver, nvrtc;

    std::optional<double> baseline_us(std::string_view key) const {
        for (const Baseline& baseline : baselines)
            if (baseline.key == key) return baseline.time_us;
        return std::nullopt;
    }
    std::optional<double> cublaslt_best_us() const { return baseline_us(cublaslt_best); }
    bool verified() const {  ///< every row that ran
        for (const LadderRow& row : rows)
            if (row.obstacle.empty() && row.measured.built && !row.measured.verified.ok()) return false;
        return true;
    }
};

}  // namespace rooftile
