// The rows of a suite's run as they were written, read back: for going on with it and for reporting on it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/core/measured.hpp"
#include "rooftile/core/problem.hpp"
#include "rooftile/core/suite.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// The row's kernel launched in another way, as a LaunchVariant says it. Empty: no result.
struct RecordedVariant {
    std::string key, name;
    std::optional<double> time_us, predicted_us, ratio;
};

/// One row of `rooftile/measurement/1`, as far as a suite's report needs it. Times are empty where the row
/// is no result.
struct SuiteRow {
    std::string line;     ///< the row itself, which its operation reads further
    std::string problem;  ///< its JSON: equal for equal problems
    std::string op;       ///< the operation's name
    std::vector<SuiteLayer> layers;
    int rank = 0, plans = 0;  ///< 0 where no plan fits
    std::string mode;
    std::optional<double> time_us, predicted_us, rank1_ratio, sm_clock_mhz;
    std::vector<RecordedVariant> variants;
    bool confirmation =
        false;  ///< rank1_ratio is of a paired re-measurement: not of the rounds that found this plan the fastest
    std::string invalid;
    bool wrong = false;    ///< it ran, and its result is not what it should be
    bool unbuilt = false;  ///< its kernel does not compile as planned
    bool ran = true;       ///< false where the GPU refused it: out of memory
};

/// Rows of one problem, by rank. Complete: as many as its `plans`, or the one that says that none fits.
struct SuiteShape {
    std::vector<SuiteRow> rows;
    std::size_t wanted() const;  ///< rows, by what the first says
    bool complete() const;
    const SuiteRow& first() const { return rows.front(); }
    const SuiteRow* rank1() const;   ///< null where it is not among the rows
    const SuiteRow* confirmation()
        const;  ///< the row that has one; null where rank 1 had nobody to run against
    /// How many times as fast as rank 1, which has a time, the fastest plan is; at least 1. By the paired re-measurement alone
    /// where there was one; else by the rounds, where the largest of several ratios is biased upwards; else by
    /// the medians.
    double best_of_own() const;
    bool by_medians() const;  ///< whether any plan's ratio has to be that of the medians
};

/// What the context line says, empty where it does not, and the rows behind it.
struct SuiteRecord {
    std::string suite, law, version, program_hash, machine_hash, machine_id, machine_name, gpu, driver, date,
        command;
    std::uint64_t seed = 0;
    std::string op() const { return shapes.empty() ? "" : shapes.front().first().op; }
    std::vector<SuiteShape> shapes;  ///< in the order of the file
    std::vector<std::string>
        lines;  ///< of the complete shapes, the context line first, each with its newline
    /// The rows; what stays is what the context line says.
    std::vector<SuiteShape> take_shapes();
};

/// Reads the lines that --suite wrote. A last line without its end, which a killed run leaves, counts as
/// absent, and so does a shape that is not complete. Throws RequestError naming `file_name` and the line:
/// not JSON, no context line, a key that is missing or stands twice, a time without a verified result, a row too many.
SuiteRecord read_suite_record(std::string_view text, std::string_view file_name);

/// A row's value for looking shapes up: the problem's JSON as it is written.
std::string problem_key(const Problem& problem);

/// The problems of `suite` that are not among `shapes`, by their names.
std::vector<std::string> not_measured(const Suite& suite, const std::vector<SuiteShape>& shapes);

/// What the rows of a suite's run say together, as its operation reports it.
struct SuiteReporter {
    std::function<std::string(const Terminal&)> text;
    std::function<std::string()> markdown;
    std::vector<std::string> missed;  ///< bars, one line each
};

}  // namespace rooftile
