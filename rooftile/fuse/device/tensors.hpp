// Tensors of a fused expression in device memory: filled with random numbers, read back, compared.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rooftile/runtime/driver.hpp"
#include "rooftile/measure/reference.hpp"
#include "rooftile/expression/evaluate.hpp"
#include "rooftile/expression/graph.hpp"

namespace rooftile {

/// Bits of `values` as elements in memory, rounded to nearest even.
std::vector<char> elements_of_values(std::span<const double> values, Element element);
/// The exact values of `count` elements at `bytes`.
std::vector<double> values_of_elements(const char* bytes, std::int64_t count, Element element);

/// Standard normal numbers as `element` holds them (bool: even odds); the same for the same seed.
std::vector<double> random_values(std::int64_t count, Element element, std::uint64_t seed);

/// A fused expression's results beside fp64 on the CPU, over a sample of rows of together some `elements`.
class FuseReference final : public Reference {
  public:
    explicit FuseReference(const ExpressionGraph& problem, std::int64_t elements = 1 << 19);

    std::span<const VerifyCase> cases() const override;
    int max_results() const override { return 8; }
    void fill(Stream stream, VerifyCase which, std::uint64_t seed, TensorPointers tensors) const override;
    std::vector<CaseOutcome> judge(Stream stream, VerifyCase which, std::uint64_t seed,
                                   std::span<const TensorPointers> results) const override;

  private:
    using ReadRange = std::function<std::vector<double>(std::int64_t first, std::int64_t count)>;
    std::vector<double> taken(int node, const std::optional<ExpressionGraph>& cut, const std::vector<std::int64_t>& sample,
                              const ReadRange& read_range) const;
    const ExpressionGraph& problem_;
    std::int64_t elements_;
};

}  // namespace rooftile
