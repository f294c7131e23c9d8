// What measuring a suite does alike for every kind of problem: its file of rows, going on where it stopped,
// stopping in order, and how it ends.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/measure_flags.hpp"
#include "rooftile/report/suite_rows.hpp"
#include "rooftile/tune/store.hpp"

namespace rooftile::cli {

/// Plans for each problem where --top does not say.
inline constexpr int suite_top = 8, sweep_top = 1;
inline constexpr double suite_round_seconds = 1.2;  ///< of a problem, all candidates together; its ratio may be known before
inline constexpr std::size_t suite_confirmation = 60;
inline constexpr double suite_confirmation_seconds = 0.6;

/// Problems and rows that are no result.
struct SuiteFailures {
    int infeasible = 0, unbuilt = 0, not_run = 0, wrong = 0;
};

/// One problem as a line on stderr tells of it.
struct SuiteStep {
    std::string name, outcome;
    double seconds = 0;
    std::vector<Timing> timings;
    std::optional<double> prediction_error{};  ///< of plan 1: predicted / measured - 1
};

class SuiteRun {
  public:
    /// Reads what --out holds. Throws RequestError.
    SuiteRun(const MeasureFlags& flags, const Invocation& invocation, const Suite& suite);

    /// Measured on `machine`: the problems that --out has already, by problem_key(). `seed` becomes that of the
    /// run that is gone on with. Throws RequestError where that was another run.
    std::set<std::string> begin_on(const Machine& machine, std::uint64_t& seed);
    /// So many problems are left; says so where there were more.
    void skip(std::size_t left);
    const DocumentContext& context() const { return context_; }
    /// Writes the context line unless the file has one.
    void announce(const RunningGpu& gpu, std::uint64_t seed);
    /// Appends a problem's rows and tells of it. False: there is no time for another.
    bool add(const std::vector<Json>& lines, const SuiteStep& step);
    SuiteFailures failures;
    /// Says what is left and what failed; the exit code.
    int finish() const;

  private:
    double elapsed() const;

    const MeasureFlags& flags_;
    const Invocation& invocation_;
    std::string suite_, law_;
    std::size_t problems_, done_before_ = 0, done_ = 0;
    std::vector<double> prediction_errors_;  ///< of all problems so far, those that --out had too
    double max_seconds_ = 0, longest_ = 0;
    std::optional<SuiteRecord> record_;
    DocumentContext context_;
    bool begun_ = false;  ///< the file has its context line
};

/// For measure_options(): what a suite changes of them.
void set_suite_timing(MeasureOptions& options, const MeasureFlags& flags);
/// Throws RequestError where the flags ask for a document as a whole.
/// `what` writes rows as they are made.
void refuse_whole_documents(const OutputFlags& flags, std::string_view what);

/// --tuned: the choice that is kept for `place`, where there is one, becomes plan 1 of the plans; the first `top` stay, ranked anew,
/// and a note says which it is.
void take_stored_choice(PlanSet& plans, const TunePlace& place, std::size_t top);

/// Every problem of `suite`, `top` plans each where the flags do not say, one row a plan appended to --out as each is done;
/// the exit code.
int measure_problems(Suite suite, const MeasureFlags& flags, const Invocation& invocation, int top);
/// The same of the file that the flags name, one row a plan appended to --out as each is done; the exit code.
int measure_suite(const Operation& operation, const MeasureFlags& flags, const Invocation& invocation);

}  // namespace rooftile::cli
