// Convolutions that are no products: what their three kernels share of plans, and of the one without matrix units which vector of filters and how many places a
// thread has, and what that takes.
#pragma once

#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "kernels/conv/depthwise_conv_config.hpp"
#include "kernels/conv/direct_conv_config.hpp"
#include "kernels/conv/stem_conv_config.hpp"
#include "rooftile/conv/problem.hpp"
#include "rooftile/core/demand.hpp"
#include "rooftile/core/derivation.hpp"
#include "rooftile/core/knob.hpp"
#include "rooftile/machine/machine.hpp"

namespace rooftile {

inline constexpr std::int64_t most_group_channels = 16;  ///< of a direct one
inline constexpr int mma_flops = 2 * 16 * 8 * 16, wavefront_bytes = 128;

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

/// What a kernel and its configuration are called in code, and in documents how its pixels come.
struct DirectKind {
    std::string_view kernel, config, loads;
};
constexpr DirectKind kind_of(const DirectConvConfig&) { return {"direct_conv", "DirectConvConfig", "direct"}; }
constexpr DirectKind kind_of(const StemConvConfig&) { return {"stem_conv", "StemConvConfig", "rows"}; }
constexpr DirectKind kind_of(const DepthwiseConvConfig&) { return {"depthwise_conv", "DepthwiseConvConfig", "planes"}; }

struct DirectPlan {
    std::variant<DirectConvConfig, StemConvConfig, DepthwiseConvConfig> config{};
    std::optional<double> time_us{}, tensor_us{}, shared_us{}, issue_us{}, l2_us{}, dram_us{}, start_us{}, fill_us{};
    std::optional<Bound> bound{};
    decltype(auto) visit(const auto& of) const { return std::visit(of, config); }
    template <class Config>
    const Config& as() const { return std::get<Config>(config); }
    template <class Config>
    bool is() const { return std::holds_alternative<Config>(config); }
};

/// How evenly a kernel shares its work, beside whole turns of its tiles.
struct TilePace {
    double unevenness = 1;      ///< of a tile's warps: how many times the mean the longest takes
    double start_seconds = 0;   ///< before the first multiplication
    double tile_seconds = 0;    ///< least that a round of an SM's tiles takes
    double stretch = 1;         ///< of what the longest unit takes, behind which loads and barriers are not hidden
    int ctas_per_sm = 0;        ///< whose first pixels come while nothing is stored; 0: whose loads are spread
};

/// What is issued and what shared memory passes, by names; of a kernel with matrix units that of all tiles, MMAs first, fragments' and weights' wavefronts first.
struct DirectWork {
    using Counts = std::vector<std::pair<const char*, double>>;
    Counts instructions, wavefronts;
    static double sum(const Counts& of) {
        double all = 0;
        for (const auto& [name, count] : of) all += count;
        return all;
    }
};
/// What `neighbours` filters' expression takes, in pairs: an operand's load and its bounds are one of each.
double epilogue_instructions(const ConvProblem& problem, int neighbours);
/// Of a thread for its places, counted in the kernel's loops.
DirectWork work_of(const ConvProblem& problem, const DirectConvConfig& config);

/// Whether an axis with its padding has more elements than ints count, `elements` a place.
constexpr bool too_long(const ImageAxis& axis, std::int64_t elements) { return axis.extent + 2 * axis.padding > max_conv_extent / elements; }
/// Pieces of `y` in `x`, the last one perhaps smaller.
constexpr std::int64_t whole_parts(std::int64_t x, std::int64_t y) { return (x + y - 1) / y; }
std::int64_t strips_of(const ConvProblem& problem, const DirectConvConfig& config);

/// What of it is the tensors'.
Demand tensor_demand(const ConvProblem& problem);
/// The same and what a kernel with matrix units asks for; filled_bytes: of pixels of all tiles.
Demand matrix_demand(const ConvProblem& problem, const DirectWork& work, std::int64_t tiles, double filled_bytes);
Demand demand_of(const ConvProblem& problem, const DirectConvConfig& config);
Demand direct_demand(const ConvProblem& problem, const DirectPlan& plan);
/// Times the plan where the machine's numbers are others.
DirectPlan timed(const Machine& machine, const ConvProblem& problem, DirectPlan plan);
/// Sorts plans of kernels with matrix units; of equal times the one that asks less of an SM and begins to store sooner is first.
void sort_by_time(std::vector<DirectPlan>& plans);
/// That registers and shared memory have room for, of up to 16 warps together; 0: none.
int ctas_an_sm(const Machine& machine, int threads, int registers, int shared_bytes);

/// The derivation of one, whose inputs are named by where they are from.
class DirectSteps : public Derivation {
  public:
    DirectSteps(const Machine& machine, const ConvProblem& problem, const DirectPlan& plan) : Derivation(machine), machine(machine), problem(problem), plan(plan) {}
    static Input ours(std::string name, double value, const char* unit = "") { return given(std::move(name), value, unit, "the plan"); }
    static Input of_problem(std::string name, double value, const char* unit = "") { return given(std::move(name), value, unit, "the problem"); }
    static Input above(std::string name, std::optional<double> value, const char* unit = "us");
    void us(const char* name, const char* formula, std::vector<Input> inputs, std::optional<double> value, std::string limit = "");
    /// Every tensor once; `but`: without that one.
    std::vector<Input> bytes(std::string_view but = {}) const;
    void dram();
    /// Counts as inputs, and the machine's facts of `keys`.
    std::vector<Input> counts(const DirectWork::Counts& of, std::initializer_list<const char*> keys) const;
    /// The units of a kernel with matrix units, and the time of them.
    void units(const DirectWork& work, const char* start_formula, std::vector<Input> start, const char* start_limit);

    const Machine& machine;
    const ConvProblem& problem;
    const DirectPlan& plan;
};
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
