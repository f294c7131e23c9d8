// How many queries, keys and heads a kernel of attention was launched for.
#pragma once

#include "rooftile/names/kernel_sizes.hpp"

namespace rooftile {

/// cuDNN's generated kernels for Hopper and FlashAttention 2. Empty: another kernel, parameters that do not agree, or sequences whose
/// lengths are on the device.
std::optional<HeadSizes> attention_sizes(const KernelName& name, const ParameterBytes& parameters, const LaunchExtents& launch);

/// `op`: "_scaled_dot_product_flash_attention", with the shapes of its tensors.
std::optional<HeadSizes> attention_of_operator(std::string_view op, const std::vector<std::vector<std::int64_t>>& shapes,
                                               const KernelName& name);

}  // namespace rooftile
