// Tensors of a problem as rooftile.h shows them.
#pragma once

#include <vector>

#include "rooftile/core/problem.hpp"
#include "rooftile/rooftile.h"

namespace rooftile::c {

/// Views into what it holds; not copied.
class TensorViews {
  public:
    explicit TensorViews(std::vector<TensorInfo> tensors);
    TensorViews(const TensorViews&) = delete;
    TensorViews& operator=(const TensorViews&) = delete;

    int count() const { return int(views_.size()); }
    /// Null where there is no such tensor.
    const rooftile_tensor* at(int index) const;

  private:
    std::vector<TensorInfo> tensors_;
    std::vector<std::vector<std::int64_t>> extents_;  ///< of each
    std::vector<rooftile_tensor> views_;
};

}  // namespace rooftile::c
