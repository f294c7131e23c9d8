// A measured plan of any operation: how long it took, how sure we are, and that its results were right.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/core/measured.hpp"
#include "rooftile/core/plan.hpp"
#include "rooftile/core/value.hpp"
#include "rooftile/measure/confirmation.hpp"
#include "rooftile/measure/statistics.hpp"
#include "rooftile/physics/explanation.hpp"

namespace rooftile {

/// Results beside their fp64 reference. A case that the operation lacks, or that was not reached, is empty.
struct Verification {
    std::optional<bool> exact{};    ///< whole numbers so small that the result is known bit for bit
    std::optional<bool> random{};   ///< every element within its bound, on random numbers
    std::optional<bool> shifted{};  ///< every element within its bound, of rows whose mean is large beside their spread
    std::optional<bool> special{};  ///< NaN, Inf and overflow came out where they must, and nowhere else
    std::optional<bool> timed{};    ///< what timed launches left in every buffer set is the random case's result, bit for bit
    std::optional<bool> guards{};   ///< nothing outside the outputs was written, and no input changed
    std::int64_t checked_elements = 0, undecided_elements = 0;  ///< of the random case
    double max_error = 0;   ///< of the random case: largest |error| / bound; 1 is the limit
    double bound = 0;       ///< the bound at that element, in the output's units
    std::string failure{};  ///< where not right, or why nothing was compared: element, got, expected, bound

    bool compared() const;  ///< any case was
    bool wrong() const;     ///< any case that was is not right
    bool ok() const { return compared() && !wrong(); }  ///< what was not compared is not right

    /// Of a plan that is launched in another way, `how`, too: where only that launch is wrong the plan is, by what is said of it.
    void blame(const Verification& other, std::string_view how);
};

/// What ran beside our kernels in the same rounds.
struct Baseline {
    std::string key{};  ///< of documents: "copy" gives copy_us
    std::string name{};  ///< for a reader: "copying as many bytes"
    std::optional<double> time_us{};
    bool same_work = false;  ///< it computes what our kernels compute; else it only moves as many bytes
    std::string form{};       ///< which of its forms it took; empty where it has one
    /// Where it is the one to beat: the word of its `_ratio` in documents, and its time over ours in the
    /// same round, median of the rounds and its interval: a clock that drifts from round to round is in both.
    std::string ratio_key{};
    std::optional<MedianInterval> ratio{};
    std::string ratio_note{};  ///< what a reader must know of the ratio: whom it favours
    std::optional<CounterValues> counters{};
};

/// The row's kernel launched in another way, verified and timed in the same rounds: what a means of launching is worth.
struct LaunchVariant {
    std::string key{};   ///< of documents
    std::string name{};  ///< for a reader: "launched ..."
    std::optional<double> predicted_us{}, time_us{}, time_us_low{}, time_us_high{};
    std::int64_t samples = 0;
    std::optional<MedianInterval> ratio{};  ///< as the ratio of the row's baseline, of this launch
};

/// `invalid` of a row that nobody wanted to time.
inline constexpr std::string_view not_timed = "not timed, as asked";

struct Measurement {
    Plan plan;
    Mode mode = Mode::sustained;
    int plans = 1;                   ///< of this problem, measured together; 0: none fits
    std::vector<SuiteLayer> layers;  ///< of a suite: where it has the problem
    std::optional<double> time_us, time_us_low, time_us_high;  ///< median and its interval
    std::optional<double> interval_coverage;  ///< how often such an interval holds the true median
    std::int64_t samples = 0;
    std::optional<double> tflops;         ///< empty where the operation counts bytes alone
    std::optional<double> gbytes_per_s;   ///< compulsory bytes over time
    std::string roof;                     ///< what roof_fraction is of: "tensor", "copy"
    std::optional<double> roof_fraction;
    /// The first plan's time over this one's in the same round, median: of the rounds, or of the paired re-measurement alone
    /// where this plan was in one.
    std::optional<double> rank1_ratio;
    std::optional<Confirmation> confirmation;  ///< of the fastest in the rounds, where that was not the first
    Verification verified;
    std::optional<double> sm_clock_mhz, power_w;
    int registers = 0;  ///< a thread's at launch
    double compile_seconds = 0;
    std::vector<Baseline> baselines;
    std::vector<LaunchVariant> variants;    ///< where its operation has any for it, beside a baseline
    std::string baseline_missing;           ///< why one is absent: "LIBRARY not found"
    std::optional<CounterValues> counters;  ///< where they were asked for and permitted
    std::optional<Explanation> explanation;  ///< of the plan, where it was asked for
    Record more;                            ///< what else documents say of the row
    bool show_derivation = false;           ///< the plan's steps stand in documents and texts
    Own own;                                ///< the operation's
    std::string invalid;  ///< why the figure is not a result: "above the measured roof: ..."
    bool built = true;    ///< false where the plan's kernel does not compile as planned
    bool ran = true;      ///< false where the GPU refused it: out of memory
};

/// Whether it ran and was not shown right: what is wrong, and what was not compared.
bool is_unproven(const Measurement& measurement);

/// Why a measurement's figures are no result; empty where they are one.
std::string why_no_result(const Measurement& measurement);

/// Joules of one launch: mean power times the median time. Empty where the power is unknown, and in the modes
/// whose mean holds idle time or what empties L2.
std::optional<double> measured_joules(const Measurement& measurement);

/// Adds a line unless it is there.
void note_once(std::vector<std::string>& notes, std::string note);

/// Null where the row has none of that key.
const Baseline* find_baseline(const Measurement& measurement, std::string_view key);
/// Its time; empty where there is none.
std::optional<double> baseline_us(const Measurement& measurement, std::string_view key);

}  // namespace rooftile
