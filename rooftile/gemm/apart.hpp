// An epilogue as a kernel of its own: the product alone, whose sums lie in fp32 in the workspace, then the expression as another
// operation's plan, asked for by name. What fusing saves is what these write and read between them [M24].
#pragma once

#include <memory>
#include <string>

#include "rooftile/core/plan.hpp"
#include "rooftile/gemm/plan.hpp"

namespace rooftile {

/// The product of a problem with an epilogue, alone: results of type `sums`, dense; of pairs gates and ups as a batch of two. `why_not`: the
/// epilogue is not one that a kernel behind it computes.
struct ProductAlone {
    GemmProblem problem;
    std::string why_not;
    /// Written by the product and read by the kernel behind it.
    double between_bytes() const { return 2 * problem.c_bytes(); }
};
ProductAlone product_alone(const GemmProblem& problem, Type sums = Type::fp32);

/// Plans of the expression behind such a product. Throws RequestError where its operation refuses it.
PlanSet plan_behind(const GemmProblem& problem, Type sums, const std::shared_ptr<const Machine>& machine);

/// Weighs both for plans of a problem with an epilogue. Puts the plan of two kernels first where it is predicted faster than the others or
/// nothing else can be planned, or keeps it alone where the request asks for it; says in each derivation what came of it.
void weigh_apart(PlanSet& set, const std::shared_ptr<const Machine>& machine, const GemmProblem& problem, const GemmRequest& request);

}  // namespace rooftile
