// An expression as the plain loop of an emitted program: each node a function of an element's index, by the meanings that every
// verification goes by.
#pragma once

#include <initializer_list>
#include <map>
#include <string>

#include "rooftile/core/problem.hpp"
#include "rooftile/expression/graph.hpp"
#include "rooftile/measure/device_operation.hpp"

namespace rooftile::emit {

/// `leaves`: bodies of nodes that are no tensor's elements, of `t` and `e`; their steps are `leaf_steps`.
PlainLoop plain_graph(const ExpressionGraph& graph, const std::map<int, std::string>& leaves = {}, double leaf_steps = 1);

/// "i * 4096 + k" of a tensor's last axes.
std::string place_of(const TensorInfo& tensor, std::initializer_list<std::string> indices);

}  // namespace rooftile::emit
