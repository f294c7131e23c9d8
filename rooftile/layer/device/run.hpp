// A layer of a model on the GPU: its parts planned, compiled, wired and launched one behind the other, over several sets of weights and
// caches, as successive layers of a model have them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/layer/device/reference.hpp"
#include "rooftile/layer/device/small_kernels.hpp"
#include "rooftile/layer/parts.hpp"
#include "rooftile/machine/machine.hpp"
#include "rooftile/runtime/compiled_kernel.hpp"

namespace rooftile {

/// A part made runnable; needs no GPU.
struct RunnablePart {
    LayerPart part;
    std::optional<CompiledKernel> kernel;      ///< of a part that an operation plans
    std::shared_ptr<const SmallKernel> small;  ///< of one that none does
    std::string label;                         ///< of its plan
    std::vector<std::string> notes;            ///< of plans that the compiler refused
};

/// Plans and compiles all parts, in up to `threads` threads (0: one a core). Throws RequestError where a part cannot be run, one line that
/// names it.
std::vector<RunnablePart> compile_layer(const std::shared_ptr<const Machine>& machine, const ModelConfig& model, const LayerStep& step,
                                        const std::vector<LayerPart>& parts, unsigned threads = 0);

class LayerRun {
  public:
    /// In the current context: memory for `sets` layers, 0: as many as make each of them cold, filled from `seed`. Throws Error(gpu_failed)
    /// where there is too little memory.
    LayerRun(std::vector<RunnablePart> kernels, const ModelConfig& model, const LayerKind& kind, const LayerStep& step, std::int64_t sets,
             std::uint64_t seed);

    std::span<const RunnablePart> kernels() const { return kernels_; }
    std::int64_t sets() const { return sets_; }
    std::int64_t set_bytes() const { return set_bytes_; }  ///< weights and caches of a layer

    /// All kernels of a layer on that set, as programmatic dependents where they can be. May be captured.
    void launch(Stream stream, std::int64_t set) const;
    void launch(std::size_t kernel, Stream stream, std::int64_t set) const;

    /// Fills everything anew, runs the layers of all sets in one graph, and judges what the last of them left.
    std::vector<LayerError> verify() const;
    /// The bits of the last result, to hold one run against another.
    std::vector<unsigned char> result() const;

    /// How many keys each sequence has, this step's among them; the step's context at first. Data, as a server changes it between launches.
    void set_lengths(int keys) const;

    void* tensor(std::string_view name, std::int64_t set) const;

  private:
    struct Tensor {
        TensorKind kind = TensorKind::activations;
        std::size_t bytes = 0;
        bool written = false;            ///< by a part
        LayerFill fill;                  ///< of set 0; the stream of another is further on
        std::vector<DeviceBuffer> sets;  ///< one of activations
    };
    struct Launched {
        std::vector<std::vector<void*>> pointers;  ///< of each set, as the part's operation takes them
        DeviceBuffer workspace;
    };
    void add_tensors(const RunnablePart& kernel);
    void fill() const;
    LayerFill fill_of(std::string_view name, std::int64_t set) const;
    void make_turns();

    std::vector<RunnablePart> kernels_;
    ModelConfig model_;
    LayerStep step_;
    std::int64_t sets_ = 1, set_bytes_ = 0;
    std::map<std::string, Tensor> tensors_;
    std::vector<Launched> launched_;
    DeviceBuffer turns_, lengths_;
    LayerReference reference_;
};

}  // namespace rooftile
