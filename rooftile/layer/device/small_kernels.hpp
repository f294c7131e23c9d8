// The parts of a layer that no operation plans, as kernels: rotary embedding with the append to a cache, and what lies between experts'
// products.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/layer/experts_arguments.hpp"
#include "rooftile/layer/parts.hpp"
#include "rooftile/runtime/driver.hpp"
#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile {

/// What a step has beside the tensors of its parts.
struct LayerInputs {
    const float* turns = nullptr;  ///< [context, rotated / 2]: cosine and sine
    const int* lengths = nullptr;  ///< keys of each sequence, this step's among them
};

class SmallKernel {
  public:
    virtual ~SmallKernel() = default;
    virtual std::string label() const = 0;
    virtual std::vector<std::string> ptx() const = 0;
    /// In the current context; before a launch is captured.
    virtual void load() const = 0;
    /// `tensors`: what the part reads, then what it writes. Waits for the launch before by itself.
    virtual void launch(Stream stream, std::span<void* const> tensors, const LayerInputs& inputs) const = 0;
};

/// Compiled; needs no GPU. Null: no kernel runs that part. Throws RequestError where sizes are none that it takes.
std::shared_ptr<const SmallKernel> small_kernel(const LayerPart& part, const ModelConfig& model, const LayerStep& step,
                                                const std::string& arch);

/// The tensor "choices", whose parts follow each other.
std::size_t choices_bytes(const ModelConfig& model, const LayerStep& step);
ExpertChoices choices_at(void* memory, const ModelConfig& model, const LayerStep& step);

/// The logits of a row of the router, those that fill it up to 16 bytes among them.
std::int64_t router_columns(const ModelExperts& experts);

}  // namespace rooftile
