// A layer in fp64 on the GPU, from its sizes alone and not from its parts: how tensors are wired is judged too.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/layer/measured.hpp"
#include "rooftile/layer/parts.hpp"
#include "rooftile/layer/rotary.hpp"
#include "rooftile/runtime/driver.hpp"
#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile {

/// What a tensor is filled with: normal numbers, the same for the same seed and stream.
struct LayerFill {
    double mean = 0, deviation = 1;
    std::uint64_t seed = 0, stream = 0;
};

/// A row's root mean square error that `roundings` to 8 or 11 bits of significand one after the other may make: each is at most u of its
/// value and on average 0.43 u, they are independent, and what lies between passes shares on, so that they add as squares. That a gate's
/// product passes on up to 1.4 times what it is given is less than what the average leaves.
double layer_bound(int roundings, std::string_view type);
/// Whether layer_reference() knows a model's layer. Throws RequestError, one line that names what it does not.
void check_layer_reference(const ModelConfig& model, const LayerStep& step);

/// What follows from whom tokens choose.
struct RoutedTokens {
    std::vector<double> weights;     ///< of each choice
    std::vector<int> rows, offsets;  ///< where each choice's row is when experts' rows follow each other in the order of tokens
    double shortfall = 0;            ///< of a chosen logit from the least of the greatest, over the root mean square of its token's
    std::uint64_t impossible = 0;    ///< choices of no expert, or of one twice
};
/// `logits`: `columns` a token, the experts' first.
RoutedTokens routed_tokens(std::span<const double> logits, std::int64_t columns, std::span<const int> chosen, const ModelExperts& experts);

/// Its kernels, compiled; needs no GPU to be made.
std::vector<Source> layer_reference_sources(std::string_view arch);

class LayerReference {
  public:
    LayerReference(const ModelConfig& model, const LayerKind& kind, const LayerStep& step, const std::string& arch);
    void fill(Stream stream, void* to, std::int64_t elements, const LayerFill& with) const;
    /// Judges "x_out" and this step's rows of "k_cache" and "v_cache". `tensor` gives an address by a part's name of it; `fills` what a
    /// cache was filled with. Waits for the GPU.
    std::vector<LayerError> judge(Stream stream, const std::function<void*(std::string_view)>& tensor,
                                  const std::function<LayerFill(std::string_view)>& fills) const;

  private:
    void multiply(Stream stream, DevicePointer to, DevicePointer from, DevicePointer weights, std::int64_t rows, std::int64_t columns,
                  std::int64_t depth, DevicePointer bias, DevicePointer added) const;
    /// Two products with the gate between them, plus `added` where there is something.
    void gated(Stream stream, DevicePointer to, DevicePointer from, std::int64_t rows, std::int64_t intermediate, DevicePointer gate_up,
               DevicePointer down, DevicePointer added) const;
    /// The residual and what each token's experts make of `from`, by the choices that the kernels made, which are judged.
    LayerError experts(Stream stream, const std::function<void*(std::string_view)>& tensor, DevicePointer to, DevicePointer from,
                       DevicePointer residual) const;

    ModelConfig model_;
    LayerKind kind_;
    LayerStep step_;
    Type type_;
    Module module_;
    Function fill_, widen_, norm_, product_, turn_, attend_, gate_, judge_, unchanged_, take_, add_;
};

}  // namespace rooftile
