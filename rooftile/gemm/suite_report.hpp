// What a suite's rows say together: how we stand beside cuBLASLt, by model and by rows of A; losses included.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rooftile/core/suite.hpp"
#include "rooftile/gemm/suite_row.hpp"
#include "rooftile/report/launch_figures.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// Problems by their M: what bounds them differs, and so do the bars.
enum class MClass : std::uint8_t { small, middle, large };  ///< below 128, below 2048, the rest
inline constexpr int m_class_count = 3;
MClass m_class(std::int64_t m);
/// "M < 128"
std::string_view name_of(MClass which);

/// One problem: its plan ranked first beside cuBLASLt's best, and beside the best of its own.
struct ShapeFigures {
    GemmSuiteRow row;                       ///< of rank 1
    std::optional<double> ratio;        ///< cuBLASLt's best time over ours; in the same rounds where known
    std::optional<double> dram_share;   ///< compulsory bytes per time, of the machine's DRAM bandwidth
    std::optional<double> best_of_own;  ///< how many times as fast the fastest of its plans is; at least 1
    bool confirmed = false, by_medians = false;  ///< where best_of_own is from; neither: from the rounds
    bool ratio_by_medians = false;             ///< `ratio` is not of the same rounds
    std::optional<double> prediction_error;    ///< predicted / measured - 1
    std::string why_none;                      ///< where there is no result
};

/// Over some problems: those that have the value, their geometric mean and their least.
struct Spread {
    int count = 0;
    double geomean = 0, least = 0;
};

struct ClassFigures {
    int shapes = 0, without_result = 0, losses = 0;  ///< losses: ratio below 1
    Spread ratio, dram_share;
};

struct ModelFigures {
    std::string model;  ///< "all": every problem once, though several models name it
    std::array<ClassFigures, m_class_count> classes;
};

struct SuiteReport {
    SuiteRecord record;  ///< without its lines and shapes
    std::string mode;
    std::optional<double> dram_bytes_per_s;
    std::string dram_key;              ///< where that number stands in the machine file
    std::vector<ShapeFigures> shapes;  ///< in the order of the file
    std::vector<ModelFigures> models;  ///< in the order of the file, then "all"
    int ranked = 0,
        ranked_right = 0;  ///< problems with a result; those whose rank 1 is within 3 % of their best
    int confirmed = 0;  ///< of `ranked`: a paired re-measurement said so, not the rounds that chose the best
    int by_medians = 0;    ///< of `ranked`: medians of different rounds said so
    Spread prediction;     ///< geomean: of predicted / measured; least unused
    std::optional<PredictionError> prediction_error;
    std::vector<LaunchFigures> launches;  ///< of problems whose kernel was launched in two ways
    std::vector<std::size_t> worst;    ///< in `shapes`: the ten with the least ratio, M of 128 or more
    std::vector<std::string>
        missing;  ///< problems of the suite that the file has not, where a suite was given
};

/// How far behind the best of its own a rank 1 may be.
inline constexpr double rank1_tolerance = 0.03;

/// `suite`: what the record should hold; null: what it holds is all. The DRAM bandwidth is that of the
/// shipped machine of the record's id: what a copy reaches, else the datasheet's; empty where there is none.
SuiteReport suite_report(SuiteRecord record, const Suite* suite = nullptr);

std::string suite_text(const SuiteReport& report, const Terminal& terminal);
/// The same tables in GitHub's Markdown.
std::string suite_markdown(const SuiteReport& report);

/// One line for each bar that is missed: 4096^3 and 8192^3 at 1.00; the geometric mean at M >= 2048 at 1.00,
/// none below 0.95; at 128 <= M < 2048 at 0.97; rank 1 within 3 % of the best of its own on 90 %; a result
/// for every problem.
std::vector<std::string> missed_bars(const SuiteReport& report);

}  // namespace rooftile
