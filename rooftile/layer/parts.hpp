// The kernels of a model's layer, in the order in which they run: the request that each is, and the tensors that it reads and writes.
// A planner and a runner take the same list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rooftile/core/field.hpp"
#include "rooftile/layer/model_config.hpp"

namespace rooftile {

/// One step of a model over a batch, on one of `tp` GPUs that share each layer.
struct LayerStep {
    std::int64_t decode = 0;   ///< sequences that add one token to their cache
    std::int64_t prefill = 0;  ///< sequences of which the whole context is computed
    std::int64_t context = 1;  ///< keys of every sequence, those of this step among them
    int tp = 1;
    bool gates_apart = false;  ///< gates are kernels of their own, where the machine's products take no pairs

    std::int64_t tokens() const { return decode + prefill * context; }  ///< rows of every product
    std::int64_t sequences() const { return decode + prefill; }
};

enum class TensorKind : unsigned char { weights, cache, activations };

/// A tensor of a part. Activations have the rows of the decoded sequences' tokens, then of the prefilled ones', one sequence after the
/// other; caches are [sequence, context, head, element], in the same order.
struct PartTensor {
    std::string name;  ///< parts that name the same tensor mean the same memory
    TensorKind kind = TensorKind::activations;
    double bytes = 0;         ///< that the part moves of it
    double offset_bytes = 0;  ///< from its beginning to where the part's rows begin
};

struct LayerPart {
    std::string name;
    /// The operation that plans it, and the request; `reads` and `writes` are the operation's tensors in its order. Empty: a small kernel
    /// that no operation is.
    std::string operation{};
    Given request{Given::Named::by_key};
    std::vector<PartTensor> reads{}, writes{};
    double flops = 0;
    double exchanged_bytes = 0;  ///< of an all-reduce: what each GPU has of it
    int launches = 1;            ///< that it takes, one after the other
    /// Of a small kernel: its loads that wait for each other, of what lies in memory and of what kernels in front left in L2.
    int memory_loads = 1, cached_loads = 0;
    std::string why_not{};       ///< why no operation plans it though it is one's; empty: one does, or it is a small kernel

    double bytes() const;
    double bytes(TensorKind kind) const;
};

/// Throws RequestError, one line, where no such layer can be had.
std::vector<LayerPart> layer_parts(const ModelConfig& model, const LayerKind& kind, const LayerStep& step);

/// What the model runs beside its layers: embedding, last norm, head and sampling.
std::vector<LayerPart> end_parts(const ModelConfig& model, const LayerStep& step);

/// Of one layer, as it is stored; of one sequence's token in its cache.
double layer_weight_bytes(const ModelConfig& model, const LayerKind& kind);
double cache_bytes_per_token(const ModelConfig& model);

}  // namespace rooftile
