// One kernel that takes rows through two products, the second of which reads what the first one stores: tiles of both come from one queue.
// An operation of products has it as a facet; who plans such a chain asks for it and includes no operation.
#pragma once

#include <cstdint>
#include <string>

#include "rooftile/core/operation.hpp"
#include "rooftile/tiled/row_chunks.hpp"

namespace rooftile {

/// What such a kernel would take.
struct TwoProductsKernel {
    std::string why_not{};  ///< where there is none
    int stages = 0;         ///< tiles in flight that both can have there
    std::int64_t threads = 0, shared_bytes = 0;
    std::int64_t workspace_bytes = 0;  ///< what the first stores, and counters
};

class TwoProducts : public Facet {
  public:
    /// Both plans are the operation's, for that machine; a chunk's rows are a multiple of both plans' tile heights.
    virtual TwoProductsKernel kernel(const Machine& machine, const Plan& first, const Plan& second, const RowChunks& chunks) const = 0;
};

/// The same of whichever operation the plans are.
inline TwoProductsKernel two_products_kernel(const Machine& machine, const Plan& first, const Plan& second, const RowChunks& chunks) {
    if (const auto* both = facet_of<TwoProducts>(*first.operation)) return both->kernel(machine, first, second, chunks);
    return {.why_not = std::string(first.operation->name()) + " has no kernel that computes two plans"};
}

}  // namespace rooftile
