// Choices that were timed once and are kept: a file of JSON lines in the folder of compiled kernels. Never needed for correctness:
// a line that cannot be read is not there, and a choice names a configuration that the planner must still give.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "rooftile/core/plan.hpp"
#include "rooftile/measure/statistics.hpp"
#include "rooftile/runtime/cache.hpp"

namespace rooftile {

/// Where a choice holds: another clock, another compiler or another kernel may turn it.
struct TunePlace {
    std::string gpu;
    std::optional<double> power_limit_w;  ///< empty where NVML does not say
    std::string driver;
    std::string program;  ///< program_hash()
    friend bool operator==(const TunePlace&, const TunePlace&) = default;
};
/// Of this program on a GPU here. Throws Error(no_gpu).
TunePlace tune_place(int device);

/// A plan that was timed for a choice.
struct TunedCandidate {
    int rank = 0;
    std::string label;
    double time_us = 0;  ///< in the rounds of all
};

struct TunedChoice {
    TunePlace place;
    std::string date;     ///< ISO 8601, UTC
    std::string name;     ///< of the problem, for a reader: the operation and its short name
    std::string problem;  ///< problem_key()
    /// Configuration of the first plan that can be built, as JSON: a request that fixes another one has a choice of its own.
    std::string first;
    std::string config;   ///< the chosen plan's
    int rank = 0;
    std::string label;
    double time_us = 0;                   ///< of the chosen plan, in the rounds of all
    std::optional<double> first_us{};     ///< of plan 1; empty where it failed: then the fastest of the others is chosen
    std::optional<MedianInterval> ratio;  ///< plan 1's time over the chosen one's, in blocks after the choice; empty: plan 1 is chosen, or failed
    std::vector<TunedCandidate> candidates;
};

/// A configuration as choices have it.
std::string config_text(const Plan& plan);
/// The same of the first that can be built; empty where none can.
std::string first_config(const PlanSet& plans);
/// The plan of a choice among plans of its problem; empty where they begin with another one, or have no such configuration.
std::optional<std::size_t> place_of(const TunedChoice& choice, const PlanSet& plans);

/// A choice as a line of the file, without a line's end, and back; empty where the line is none.
std::string line_of(const TunedChoice& choice);
std::optional<TunedChoice> choice_of_line(std::string_view line);

/// Safe between threads and processes: each change makes the file anew, under a lock.
class TuneStore {
  public:
    explicit TuneStore(CacheSettings settings) : cache_(std::move(settings)) {}
    std::string path() const { return cache_.settings().folder + "/tuned.jsonl"; }

    /// What keeps choices from being kept, in words; empty where nothing does.
    std::string obstacle() const;
    /// The choice among these plans, or among plans that begin with the same one, for that place.
    std::optional<TunedChoice> find(const TunePlace& place, const PlanSet& plans) const;
    /// All that `program` made, in the order in which they were made. Throws RequestError where they cannot be read.
    std::vector<TunedChoice> all(std::string_view program) const;
    /// Keeps it in the place of an earlier one; what other programs made, and lines that are none, go. Returns what keeps it from being
    /// kept, empty where nothing does.
    std::string keep(const TunedChoice& choice) const;
    /// Takes all away; how many they were. Throws Error where the file cannot be read or changed.
    std::size_t drop() const;

  private:
    /// `why_not`: what keeps them from being read; empty where nothing does, or none were ever kept.
    std::vector<TunedChoice> read(std::string& why_not) const;
    std::string write(const std::vector<TunedChoice>& choices) const;
    KernelCache cache_;
};

}  // namespace rooftile
