#include "rooftile/c/tensor_views.hpp"

namespace rooftile::c {

TensorViews::TensorViews(std::vector<TensorInfo> tensors) : tensors_(std::move(tensors)) {
    for (const TensorInfo& tensor : tensors_) {
        std::vector<std::int64_t>& extents = extents_.emplace_back();
        for (const Extent& extent : tensor.extents) extents.push_back(extent.most);
    }
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
        const TensorInfo& tensor = tensors_[i];
        views_.push_back({tensor.name.c_str(), tensor.type.c_str(), tensor.element_bits, tensor.role == TensorRole::out,
                          int(extents_[i].size()), extents_[i].data(), tensor.strides.data(), tensor.offset});
    }
}

const rooftile_tensor* TensorViews::at(int index) const {
    return index < 0 || index >= count() ? nullptr : &views_[std::size_t(index)];
}

}  // namespace rooftile::c
