// Times of a layer's kernels over a grid of steps, each with where it is from.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/core/interval.hpp"
#include "rooftile/layer/parts.hpp"
#include "rooftile/machine/machine.hpp"

namespace rooftile {

enum class Provenance : unsigned char {
    planned,   ///< by the operation that it is a request of
    modelled,  ///< by its bytes
    refused,   ///< the operation says why
};
std::string_view name_of(Provenance provenance);

/// A kernel's time without the gap before its launch. Empty: a number is unknown, or it is refused.
struct KernelTime {
    std::optional<double> time_us, least_us;
    std::optional<double> graph_us{};             ///< with its launches' gaps in a graph
    std::optional<PredictedInterval> interval{};  ///< of time_us
    Provenance provenance = Provenance::modelled;
    std::string bound{};                 ///< what limits it
    std::string problem{};               ///< in one word
    std::string plan{};                  ///< its configuration in a few words; of one that is modelled or refused, how or why
    std::string command{};               ///< that shows the plan; empty: none does
    std::vector<std::string> unknown{};  ///< keys of the machine that it asked for and nobody knows
    bool closed_form = false;            ///< its DRAM bytes are by a closed form, since it is one of many
};

struct LayerKernel {
    LayerPart part;
    KernelTime time;
};

/// What a launch adds between two kernels. Empty: unknown.
struct LaunchGaps {
    std::optional<double> stream_us, graph_us;
    std::optional<double> programmatic_us;  ///< in a graph, of launches whose start runs during the kernel before
};

/// Sums of kernels that run one after the other.
struct LayerSums {
    std::optional<double> kernels_us, least_us;
    std::optional<PredictedInterval> interval;  ///< of kernels_us, where every kernel has one
    LaunchGaps gaps;                            ///< of all launches
    double weight_bytes = 0, cache_bytes = 0, activation_bytes = 0;
    double attention_us = 0;  ///< of kernels_us

    /// In a graph: kernels and gaps.
    std::optional<double> time_us() const;
    /// Of the weights' and the cache's bytes.
    double cache_share() const { return weight_bytes + cache_bytes > 0 ? cache_bytes / (weight_bytes + cache_bytes) : 0; }
};

/// One step of one layer.
struct LayerCell {
    std::int64_t batch = 1;
    double prefill_share = 0;
    LayerStep step;
    std::vector<LayerKernel> kernels;
};

/// Grids of more cells take what a product whose result has more elements than these moves from DRAM by a closed form: L2 followed tile by
/// tile takes up to a third of a second each. Their times are within 5 % of a plan by itself, most within 1 %, all others are the same.
inline constexpr std::size_t most_followed_cells = 16;
inline constexpr std::int64_t most_followed_elements = std::int64_t{1} << 26;

/// Plans kernels for a machine, each distinct request once.
class LayerPlanner {
  public:
    /// `cells`: of the grid that it is for, on all machines.
    explicit LayerPlanner(std::shared_ptr<const Machine> machine, std::size_t cells = 1);

    /// The same lists with times. Plans are made on all cores.
    std::vector<std::vector<LayerKernel>> kernels(std::vector<std::vector<LayerPart>> lists, const std::string& type, int tp);
    LayerSums sums(const std::vector<LayerKernel>& kernels) const;
    const std::shared_ptr<const Machine>& machine() const { return machine_; }
    /// Distinct requests that were planned.
    std::size_t planned() const { return known_.size(); }
    /// Whether some product's DRAM bytes are by a closed form.
    bool took_closed_form() const { return took_closed_form_; }
    /// Keys of the machine that a time asked for and nobody knows.
    const std::vector<std::string>& unknown() const { return unknown_; }

  private:
    KernelTime time_of(const LayerPart& part, int tp) const;
    KernelTime planned_by_operation(const LayerPart& part) const;
    KernelTime moved(const LayerPart& part) const;
    KernelTime exchanged(double bytes, int tp) const;
    void missing(const std::vector<std::string>& keys);

    std::shared_ptr<const Machine> machine_;
    bool follows_all_, took_closed_form_ = false;
    LaunchGaps gap_;  // of one launch
    std::map<std::string, KernelTime> known_;
    std::vector<std::string> unknown_;
};

struct LayerRequest {
    std::int64_t layer = 0;  ///< which of the model's layers
    std::vector<std::int64_t> batches, contexts;
    std::vector<double> prefill_shares = {0};  ///< of the batch's sequences: those whose whole context is computed
    int tp = 1;
};

/// The step of a cell. Throws RequestError.
LayerStep layer_step(std::int64_t batch, std::int64_t context, double prefill_share, int tp);

std::vector<LayerCell> layer_cells(LayerPlanner& planner, const ModelConfig& model, const LayerRequest& request);

/// The model's ends for a step.
std::vector<LayerKernel> layer_ends(LayerPlanner& planner, const ModelConfig& model, const LayerStep& step);

/// Where activations would be if all SMs together ran the layer as one kernel.
struct LayerRoom {
    struct Tensor {
        std::string name, written_by, last_read_by;
        double bytes_per_token = 0;
    };
    std::vector<Tensor> tensors;
    double bytes_per_token = 0;          ///< most that is needed at once
    std::optional<double> room_bytes;    ///< shared memory of all SMs
    std::optional<std::int64_t> tokens;  ///< that fit
};
/// Of one of `tp` GPUs that share the layer.
LayerRoom layer_room(const Machine& machine, const ModelConfig& model, const LayerKind& kind, int tp = 1);

/// "l2.size=25MB..200MB" by doubling, "sm.count=66,132": a number of the machine over values, each as --set takes it. Throws
/// RequestError.
std::vector<std::string> swept_numbers(std::string_view name, std::string_view text);

}  // namespace rooftile
