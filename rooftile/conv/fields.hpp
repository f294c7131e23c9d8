// What requests for convolutions may say: of the problem, and of the product's plan by the product's own fields.
#pragma once

#include <span>

#include "rooftile/conv/problem.hpp"
#include "rooftile/core/operation.hpp"

namespace rooftile {

std::span<const Field> conv_fields();
ConvProblem conv_problem(const Given& given);
/// The request that the operation of products reads.
Given conv_product_request(const Given& given);
/// By keys, of which those of the product's tile have names of their own here. `gathered_taps`: of a step of a kernel that gathers pixels; 0: the
/// copy engine finds them. Those of gradients' products keep the product's.
Record conv_config(const Record& product, std::int64_t gathered_taps, ConvGradient gradient);
std::string_view conv_config_key(std::string_view of_product, ConvGradient gradient);
Given conv_given_of_config(const Record& config);

/// The request without its zeros: no images, channels or filters. An image without pixels has a result all the same where it is padded, and is refused.
Given conv_with_work(const Given& given, std::int64_t size);
Given conv_given(const ConvProblem& problem);
Record conv_record(const ConvProblem& problem);
Given conv_given(const Record& record);

/// x [N, (D, H,) W, C] and w [F, taps..., C], then what the epilogue reads; of gradients dy [N, places..., F], then w or x. Throws RequestError.
void add_conv_tensors(Given& given, std::span<const TensorInfo> inputs);
std::vector<TensorInfo> conv_tensors(const ConvProblem& problem);

}  // namespace rooftile
