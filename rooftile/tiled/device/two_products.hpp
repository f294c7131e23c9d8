// The device half of rooftile/tiled/two_products.hpp.
#pragma once

#include "rooftile/measure/device_operation.hpp"
#include "rooftile/tiled/two_products.hpp"

namespace rooftile {

class TwoProductsOnDevice : public Facet {
  public:
    /// Tensors are the first one's but what it stores, then the second one's but what it reads of that. Throw as
    /// DeviceOperation::compile() and source(), and where there is no such kernel.
    virtual std::shared_ptr<const Runnable> compile(const Plan& first, const Plan& second, const RowChunks& chunks,
                                                    const CompileOptions& options) const = 0;
    virtual Source source(const Plan& first, const Plan& second) const = 0;
};

/// Of the operation of a plan. Throws RequestError where it has none.
inline const TwoProductsOnDevice& two_products_of(const Plan& plan) {
    if (const auto* both = facet_of<TwoProductsOnDevice>(on_device(*plan.operation))) return *both;
    throw RequestError(std::string(plan.operation->name()) + " has no kernel that computes two plans");
}

}  // namespace rooftile
