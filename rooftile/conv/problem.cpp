#include "rooftile/conv/problem.hpp"

#include <fmt/core.h>

#include "rooftile/conv/direct.hpp"
#include "rooftile/error.hpp"

namespace rooftile {
namespace {

template <class Number>
std::string joined_by_axes(int axes, const Number& number) {
    std::string out;
    for (int i = axes - 1; i >= 0; --i) out += fmt::format("{}{}", out.empty() ? "" : "x", number(std::size_t(i)));
    return out;
}

/// What no kernel of gradients has.
void check_gradient(const ConvProblem& p) {
    const bool data = p.gradient == ConvGradient::data;
    const std::string_view name = data ? "the gradient of the data" : "the gradient of the weights";
    const auto refuse = [&](std::string why) { throw RequestError(fmt::format("{}: {}", name, why)); };
    if (p.channels_first) refuse("layout nchw: its tensors have their channels innermost; leave the layout off");
    if (!p.epilogue.empty() || !p.tensors.empty()) refuse("an epilogue is of the convolution itself; leave it off, what is stored here are the sums");
    if (p.groups > 1) refuse(fmt::format("groups are {}: those of one group are planned; take its groups one by one", p.groups));
    for (const auto& [what, count] : {std::pair{"channels", p.image.channels}, {"filters", p.filters}})
        if (count % 8 != 0) refuse(fmt::format("{} are {}: TMA takes pixels and filters of whole 16 bytes; fill them up to {} with zeros", what, count, (count + 7) / 8 * 8));
    constexpr std::int64_t box = 64;
    if (!data && p.image.channels % box != 0)
        refuse(fmt::format("channels are {}: a box has {} columns, channels of one tap; fill x up to {} with zeros", p.image.channels, box, (p.image.channels + box - 1) / box * box));
    static constexpr std::string_view names[] = {"width", "height", "depth"};
    for (std::size_t i = 0; data && i < 3; ++i) {
        const ImageAxis& axis = p.image.axes[i];
        if (axis.stride > 1)
            refuse(fmt::format("along the {} the stride is {}: planned where it is 1, as a convolution of dy; with others dy would have zeros between its places", names[i], axis.stride));
        if (axis.padding > axis.reach())
            refuse(fmt::format("along the {} the padding is {}, more than the {} that the filter reaches: dy's outermost places meet no pixel; leave them off and plan a padding of {}",
                               names[i], axis.padding, axis.reach(), axis.reach()));
    }
}

void check(const ConvProblem& p) {
    if (p.gradient != ConvGradient::none) check_gradient(p);
    static constexpr std::string_view names[] = {"width", "height", "depth"};
    for (std::size_t i = 0; i < 3; ++i) {
        const ImageAxis& axis = p.image.axes[i];
        if (axis.places() < 1)
            throw RequestError(fmt::format("the result is empty along the {}: {} pixels and twice {} of padding are fewer than the filter's {} taps {} apart take ({})",
                                           names[i], axis.extent, axis.padding, axis.taps, axis.dilation, axis.reach() + 1));
    }
    for (const auto& [name, count] : {std::pair{"channels", p.image.channels}, {"filters", p.filters}})
        if (count % p.groups != 0) throw RequestError(fmt::format("{} are {}; {} groups must divide them", name, count, p.groups));
    if (const std::int64_t each = p.image.channels / p.groups; is_direct(p) && each > most_group_channels) {
        if (p.groups == 1)
            throw RequestError(fmt::format("channels are {}: loads of images take pixels of whole 16 bytes, multiples of 8, and direct kernels up to {} channels; fill x and w up to {} "
                                           "with zeros", p.image.channels, most_group_channels, (each + 7) / 8 * 8));
        throw RequestError(fmt::format("groups of {} channels: direct kernels take up to {}; convolve the groups one by one", each, most_group_channels));
    }
    constexpr double most = double(max_conv_extent);
    const auto limit = [](std::string_view what, double count) {
        if (count > most) throw RequestError(fmt::format("{} are {:.0f}; kernels count fewer than 2^31: convolve parts of the batch", what, count));
    };
    double rows = double(p.image.images), columns = double(p.image.channels);
    for (const ImageAxis& axis : p.image.axes) rows *= double(axis.places()), columns *= double(axis.taps);
    limit("places of the result", rows);
    // The product's steps are of 64 channels of one tap.
    const std::int64_t steps = is_direct(p) ? p.image.channels : (p.image.channels + 63) / 64 * 64;
    limit("taps times channels", columns / double(p.image.channels) * double(steps));
    if (p.gradient != ConvGradient::data) return;
    double pixels = double(p.image.images);
    for (const ImageAxis& axis : p.image.axes) pixels *= double(axis.extent);
    limit("pixels", pixels);
    limit("taps times filters", columns / double(p.image.channels) * double((p.filters + 63) / 64 * 64));
}

/// Of what an epilogue reads or stores.
void check_name(std::string_view name) {
    if (name == "x" || name == "w")
        throw RequestError(fmt::format("the epilogue's {} has the name of a convolution's own {}; give it another", name, name == "x" ? "image" : "filters"));
}

}  // namespace

ImageProducts image_products() {
    for (const Operation* operation : operations())
        if (const auto* images = facet_of<ProductsOfImages>(*operation)) return {operation, images};
    throw RequestError("this build has no operation of products that takes an image");
}

ImageOperand ConvProblem::filtered() const {
    if (gradient != ConvGradient::data) return image;
    ImageOperand out{.images = image.images, .channels = filters, .axes = image.axes};
    for (ImageAxis& axis : out.axes) axis.extent = axis.places(), axis.padding = axis.reach() - axis.padding;
    return out;
}

void complete(ConvProblem& p) {
    check(p);
    if (is_direct(p)) {
        if (!p.epilogue.empty() || !p.tensors.empty())
            p.direct_epilogue = product_epilogue(p.image.rows(), p.filters, p.type == "bf16" ? Type::bf16 : Type::fp16, 1, 0, p.epilogue, p.tensors);
        if (p.direct_epilogue && p.direct_epilogue->results() > 1)
            throw RequestError(fmt::format("epilogue: {} results of a convolution: not supported yet; one is stored", p.direct_epilogue->results()));
        if (p.direct_epilogue)
            for (const EpilogueOperand& o : p.direct_epilogue->operands) check_name(o.name);
        p.operand_bytes = p.direct_epilogue ? p.direct_epilogue->bytes : 0;
        return;
    }
    const auto [operation, images] = image_products();
    Given given(Given::Named::by_key);
    for (const auto& [key, number] : {std::pair{"m", p.m()}, {"n", p.n()}, {"k", p.k()}}) given.add(key, std::to_string(number));
    given.add("type", p.type);
    if (p.gradient == ConvGradient::weights) given.add("a_major", "m");
    if (p.gradient != ConvGradient::none) given.add("b_major", "n");
    if (!p.epilogue.empty()) given.add("epilogue", p.epilogue);
    for (const std::string& tensor : p.tensors) given.add("tensor", tensor);
    p.product = images->problem(given, p.filtered());
    const std::vector<TensorInfo> tensors = p.product.operation->tensors(p.product);
    for (std::size_t i = 2; i < tensors.size(); ++i) check_name(tensors[i].name);
    p.operand_bytes = 0;
    for (std::size_t i = 2; i + 1 < tensors.size(); ++i) p.operand_bytes += double(spanned_elements(tensors[i])) * tensors[i].element_bits / 8;
}

std::string by_axes(const ConvProblem& p, std::int64_t ImageAxis::*number) {
    return joined_by_axes(p.axes, [&](std::size_t i) { return p.image.axes[i].*number; });
}
std::string places_by_axes(const ConvProblem& p) {
    return joined_by_axes(p.axes, [&](std::size_t i) { return p.image.axes[i].places(); });
}

std::string short_name(const ConvProblem& p) {
    std::string out = fmt::format("{}x{}x{} {} {}", p.image.images, p.image.channels, by_axes(p, &ImageAxis::extent), p.filters, by_axes(p, &ImageAxis::taps));
    const auto add = [&](char letter, std::int64_t ImageAxis::*number, std::int64_t plain) {
        bool is_plain = true;
        for (int i = 0; i < p.axes; ++i) is_plain &= p.image.axes[std::size_t(i)].*number == plain;
        if (!is_plain) out += fmt::format(" {}{}", letter, by_axes(p, number));
    };
    if (p.groups > 1) out += fmt::format(" g{}", p.groups);
    add('s', &ImageAxis::stride, 1), add('p', &ImageAxis::padding, 0), add('d', &ImageAxis::dilation, 1);
    if (p.channels_first) out += " nchw";
    if (p.gradient != ConvGradient::none) out += p.gradient == ConvGradient::data ? " gradient of data" : " gradient of weights";
    return out;
}

}  // namespace rooftile
