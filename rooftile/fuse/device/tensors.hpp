// Tensors of a fused expression in device memory: filled with random numbers, rotated, read back.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rooftile/runtime/driver.hpp"
#include "rooftile/measure/measurement.hpp"
#include "rooftile/expression/evaluate.hpp"
#include "rooftile/expression/graph.hpp"

namespace rooftile {

/// Bits of `values` as elements in memory, rounded to nearest even.
std::vector<char> elements_of_values(std::span<const double> values, Element element);
/// The exact values of `count` elements at `bytes`.
std::vector<double> values_of_elements(const char* bytes, std::int64_t count, Element element);

/// Standard normal numbers as `element` holds them (bool: even odds); the same for the same seed.
std::vector<double> random_values(std::int64_t count, Element element, std::uint64_t seed);

/// Several sets of all inputs and outputs of a problem, each tensor 256 bytes aligned.
class FuseSets {
  public:
    /// Inputs hold random numbers that repeat after a million elements. Throws Error(gpu_failed) where
    /// memory is short.
    FuseSets(const ExpressionGraph& problem, std::int64_t sets, std::uint64_t seed);

    std::int64_t sets() const { return sets_; }
    /// Set 0's outputs become NaN: what a kernel leaves unwritten shows.
    void poison_outputs() const;
    std::span<const void* const> inputs(std::int64_t set) const;
    std::span<void* const> outputs(std::int64_t set) const;
    /// Bytes of one set, with the space that keeps tensors apart.
    static std::int64_t set_bytes(const ExpressionGraph& problem);

    /// `count` elements of a tensor of set 0 from element `first` on.
    std::vector<double> read_input(int input, std::int64_t first, std::int64_t count) const;
    std::vector<double> read_output(int output, std::int64_t first, std::int64_t count) const;

  private:
    const ExpressionGraph& problem_;
    std::int64_t sets_;
    DeviceBuffer buffer_;
    std::vector<const void*> inputs_;  // set by set
    std::vector<void*> outputs_;
};

/// What set 0's outputs must be: fp64 over a sample of rows of together some `elements`, computed once for all
/// kernels of a problem. `problem` must outlive it.
class FuseReference {
  public:
    FuseReference(const ExpressionGraph& problem, const FuseSets& sets, std::uint64_t seed,
                  std::int64_t elements = 1 << 19);
    /// Set 0's outputs as they now are.
    Verification check(const FuseSets& sets) const;

  private:
    using ReadRange = std::function<std::vector<double>(std::int64_t first, std::int64_t count)>;
    std::vector<double> taken(int node, const ReadRange& read_range) const;

    const ExpressionGraph& problem_;
    std::vector<std::int64_t> sample_;    ///< rows; empty: all
    std::optional<ExpressionGraph> cut_;  ///< the problem of those rows
    std::vector<BoundedTensor> expected_;
    std::string why_not_;
};

}  // namespace rooftile
