// A convolution's problem: the image, the filters, what is made of the sums, and the product that it is.
#pragma once

#include <string>
#include <vector>

#include "kernels/types.hpp"
#include "rooftile/core/field.hpp"
#include "rooftile/core/plan.hpp"
#include "rooftile/tiled/epilogue.hpp"
#include "rooftile/tiled/products_of_images.hpp"

namespace rooftile {

inline constexpr std::int64_t max_conv_extent = (std::int64_t{1} << 31) - 1;

/// What is computed: the result y, or from its gradient dy that of the image, or that of the filters.
enum class ConvGradient : std::uint8_t { none, data, weights };

/// y[n, place, f] = sum over taps and channels of x[n, place * stride - padding + tap * dilation, c] w[f, tap, c], zero outside the image.
struct ConvProblem {
    ImageOperand image;
    int axes = 2;  ///< that were given, of which the last is the width: 1, 2 or 3
    std::int64_t filters = 1, groups = 1;  ///< groups: of channels and filters, which do not meet
    std::string type = "bf16";
    ConvGradient gradient = ConvGradient::none;
    bool channels_first = false;         ///< x is [images, channels, extents]: packed before it is convolved; w and y are as ever
    std::string epilogue{};              ///< of the sums; empty: they are stored
    std::vector<std::string> tensors{};  ///< that it reads, declared
    Problem product{};                   ///< what the operation of products makes of it; none of a direct one
    SharedEpilogue direct_epilogue{};    ///< of a direct one; a product has its own
    double operand_bytes = 0;            ///< what the epilogue reads

    double flops() const { return 2.0 * double(image.rows()) * double(image.columns()) / double(groups) * double(filters); }
    double image_bytes() const { return double(image.elements()) * element_bytes; }
    double filter_bytes() const { return double(filters) * double(image.columns()) / double(groups) * element_bytes; }
    double result_bytes() const { return double(image.rows()) * double(filters) * element_bytes; }
    /// Every tensor once, and of the image of the product what the result depends on.
    double least_bytes() const {
        return double(filtered().elements_read()) * element_bytes + filter_bytes() + (gradient == ConvGradient::data ? image_bytes() : result_bytes()) + operand_bytes;
    }
    /// The image of the product: x, or for its gradient dy, whose padding is what the filter reaches beyond x's.
    ImageOperand filtered() const;
    /// The product that it is, M x N x K: places, filters and taps of channels; gradients have each of these elsewhere.
    std::int64_t m() const { return gradient == ConvGradient::none ? image.rows() : gradient == ConvGradient::data ? image.pixels() : filters; }
    std::int64_t n() const { return gradient == ConvGradient::none ? filters : gradient == ConvGradient::data ? image.channels : image.columns(); }
    std::int64_t k() const { return gradient == ConvGradient::none ? image.columns() : gradient == ConvGradient::data ? image.taps() * filters : image.rows(); }
    static constexpr int element_bytes = 2;
};

/// The operation of products that takes an operand from an image, and its facet. Throws RequestError where this build has none.
struct ImageProducts {
    const Operation* operation;
    const ProductsOfImages* images;
};
ImageProducts image_products();

/// Throws RequestError, one line, where a number is out of range, the result is empty, or 2^31 is reached; fills in `product`, or `direct_epilogue`, and `operand_bytes`.
void complete(ConvProblem& problem);

/// "3x3": an axis after the other, the width last.
std::string by_axes(const ConvProblem& problem, std::int64_t ImageAxis::*number);
std::string places_by_axes(const ConvProblem& problem);
/// "32x64x56x56 64 3x3": images, channels, extents, filters, taps, then strides, padding and dilation where they are not the plain ones.
std::string short_name(const ConvProblem& problem);

}  // namespace rooftile
