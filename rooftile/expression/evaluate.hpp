// What an expression's result must be: every value in fp64, with a bound on how far a computation in fp32 may
// lie from it (running error analysis). For tests and verification of small tensors, not for speed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/types.hpp"
#include "rooftile/expression/bounded.hpp"
#include "rooftile/expression/graph.hpp"

namespace rooftile {

/// All outputs of `graph` on `inputs`, which hold the tensors' exact values in the order of
/// ExpressionGraph::inputs. Row and whole reductions as PyTorch treats NaN and Inf.
/// `rows`: where row i of `graph` stands in the graph that rows_of() cut it from; dropout is keyed on
/// that.
std::vector<BoundedTensor> evaluate(const ExpressionGraph& graph, std::span<const std::vector<double>> inputs,
                                    std::span<const std::int64_t> rows = {});

/// `graph` with `count` rows instead of its own, all outer axes as one, for a look at some of its rows.
/// Empty where rows are not alone: a whole reduction, or a tensor that some outer axes share.
std::optional<ExpressionGraph> rows_of(const ExpressionGraph& graph, std::int64_t count);

/// The 16-bit type that kernels call `element`, which is bf16 or fp16.
constexpr Type type_of(Element element) { return element == Element::fp16 ? Type::fp16 : Type::bf16; }

/// `value` as `element` holds it, rounded to nearest even; overflow gives Inf.
double rounded_to(double value, Element element);
/// Distance to the next number of `element` above |value|: one unit in the last place.
double ulp_of(double value, Element element);

/// Whether `got`, read from a result of `element`, is `expected` within its error and the rounding of the
/// result's type. NaN must be NaN; Inf must be Inf of that sign unless undecided.
bool agrees(double got, const Bounded& expected, Element element);

/// Dropout's flag for element `index`: true where it is kept. The same numbers as kernels/expression/dropout.cuh.
bool dropout_keeps(std::uint64_t index, double p, std::uint64_t seed, std::uint64_t offset);

}  // namespace rooftile
