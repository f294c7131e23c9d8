// Convolutions of few channels a group without matrix units: which vector of filters and how many places a thread has, and what that takes.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernels/conv/direct_conv_config.hpp"
#include "kernels/conv/stem_conv_config.hpp"
#include "rooftile/conv/problem.hpp"
#include "rooftile/core/demand.hpp"
#include "rooftile/core/knob.hpp"
#include "rooftile/machine/machine.hpp"

namespace rooftile {

inline constexpr std::int64_t most_group_channels = 16;  ///< of a direct one

/// Whether it is a direct one: channels are in groups, or pixels are no whole 16 bytes, which image loads take.
bool is_direct(const ConvProblem& problem);

/// What a request may fix; the rest of a configuration follows from the problem and these.
struct DirectRequest {
    std::optional<int> vector{}, strip{}, rows{};
    bool any() const { return vector || strip || rows; }
};
struct DirectKnobs {
    using Config = DirectConvConfig;
    using Request = DirectRequest;
    template <class Visit>
    static void each(Visit visit) {
        using Number = Knob<Config, Request, int>;
        visit(Number{{"vector", "vector", "N", "Neighbouring filters of a thread: 1, 2, 4 or 8", {1, 8}, Recorded::always}, &Config::vector, &Request::vector});
        visit(Number{{"strip", "strip", "N", "Places of a thread along a row: 1, 2, 4 or 8", {1, 8}, Recorded::always}, &Config::strip, &Request::strip});
        visit(Number{{"rows", "rows", "N", "Rows of a thread's places: 1, 2 or 4", {1, 4}, Recorded::always}, &Config::rows, &Request::rows});
    }
};

struct DirectPlan {
    DirectConvConfig config{};
    std::optional<StemConvConfig> stem{};  ///< by matrix units: `config` is none
    std::optional<double> time_us{}, tensor_us{}, shared_us{}, issue_us{}, l2_us{}, dram_us{}, fill_us{};
    std::optional<Bound> bound{};
    std::int64_t strips = 0;  ///< pieces of work of a slot
    int threads() const { return stem ? stem->threads() : config.threads(); }
    int shared_bytes() const { return stem ? stem->shared_bytes() : config.shared_bytes(); }
    /// Of a thread.
    int sums() const { return stem ? stem->warp_tiles * stem->warp_filters / 2 : config.rows * config.strip * config.vector; }
};

/// What a thread issues for its places, counted in the kernel's loops.
struct DirectWork {
    double multiplies = 0, unpacked = 0, loads = 0, weight_loads = 0, epilogue = 0, stores = 0, rest = 0;
    double all() const { return multiplies + unpacked + loads + weight_loads + epilogue + stores + rest; }
};
/// `epilogue`: null where the sums are stored.
DirectWork work_of(const DirectConvConfig& config, const SharedEpilogue& epilogue = {});

/// What of it is the tensors'.
Demand tensor_demand(const ConvProblem& problem);
Demand direct_demand(const ConvProblem& problem, const DirectPlan& plan);
/// Times the plan where the machine's numbers are others.
DirectPlan timed(const Machine& machine, const ConvProblem& problem, DirectPlan plan);
std::vector<Step> direct_steps(const Machine& machine, const ConvProblem& problem, const DirectPlan& plan);
/// So many plans at most, the fastest first; why there is none is in `refusal`.
struct DirectPlans {
    std::vector<DirectPlan> plans;
    std::optional<Refusal> refusal;
    Rejected rejected;
    std::vector<std::string> unknown;
};
DirectPlans direct_plans(const Machine& machine, const ConvProblem& problem, int top, const DirectRequest& fixed = {});

}  // namespace rooftile
