#include "rooftile/conv/draw.hpp"

#include <algorithm>
#include <cmath>

#include "rooftile/error.hpp"

namespace rooftile {
namespace {

constexpr double least_flops = 1e7, most_flops = 2e13, most_bytes = 20e9;
/// What image loads take: the law's stems of three channels wait for a kernel of their own.
constexpr std::int64_t channels[] = {16, 32, 64, 96, 128, 256, 320, 512, 1280}, whole_boxes[] = {64, 128, 256, 320, 512, 1280}, taps[] = {1, 3, 5, 7};
/// In the order of ConvGradient.
constexpr std::string_view laws[] = {"draw", "data", "weights"};

}  // namespace

DrawLaw conv_law(const DrawRequest& request) {
    if (request.law == "any") throw RequestError("image loads take pixels of whole 16 bytes; the law draw works");
    const std::size_t law = law_index(request, laws);
    return {laws[law],
            law == 1   ? "gradients of the data of those of draw, of a stride of 1"
            : law == 2 ? "gradients of the weights of those of draw, of channels in multiples of 64"
                       : "images log-uniform 1 to 64; channels and filters of 16, 32, 64, 96, 128, 256, 320, 512, 1280; sides log-uniform 7 to 256; 1, 3, 5 or 7 taps; stride 1 or "
                         "2; dilation 1 in eight of ten, else 2 or 6; padding that keeps the side in eight of ten, else any up to the filter's reach; a tenth of one axis, a tenth "
                         "of three (1 to 17 deep, where the taps' distance is within image loads'); bf16, 1e7 to 2e13 FLOP, at most 20 GB",
            Mode::sustained};
}

ConvProblem drawn_conv(Random& random, const DrawRequest& request) {
    const auto gradient = ConvGradient(law_index(request, laws));
    for (;;) {
        ConvProblem p;
        p.gradient = gradient;
        const std::size_t kind = random.pick(10);
        p.axes = kind == 0 ? 1 : kind == 1 ? 3 : 2;
        p.image.images = std::llround(random.log_uniform(1, 64));
        p.image.channels = gradient == ConvGradient::weights ? random.one_of(whole_boxes) : random.one_of(channels), p.filters = random.one_of(channels);
        const std::int64_t size = random.one_of(taps), stride = gradient == ConvGradient::data || random.coin() ? 1 : 2, dilation = random.pick(10) < 8 ? 1 : random.coin() ? 2 : 6;
        const bool same = random.pick(10) < 8;
        for (int i = 0; i < p.axes; ++i) {
            ImageAxis& axis = p.image.axes[std::size_t(i)];
            axis.extent = i == 2 ? random.whole(1, 17) : std::llround(random.log_uniform(7, 256));
            axis.taps = size, axis.stride = stride, axis.dilation = dilation;
            axis.padding = same ? axis.reach() / 2 : random.whole(0, axis.reach());
        }
        const bool empty = std::ranges::any_of(p.image.axes, [](const ImageAxis& axis) { return axis.places() < 1; });
        if (empty || p.flops() < least_flops || p.flops() > most_flops) continue;
        if (p.image_bytes() + p.filter_bytes() + p.result_bytes() > most_bytes) continue;
        if (!image_load_obstacle(p.filtered(), ConvProblem::element_bytes).empty()) continue;
        complete(p);
        return p;
    }
}

ProblemTraits conv_traits(const ConvProblem& p) {
    ProblemTraits t;
    t.law = laws[std::size_t(p.gradient)];
    const std::int64_t narrow = std::min(p.image.channels, p.filters);
    t.band = narrow <= 64 ? "C or F <= 64" : narrow < 128 ? "C or F 65 .. 127" : "C, F >= 128";
    const auto any = [&](const auto& of) { return std::ranges::any_of(p.image.axes, of); };
    t.features = {{"one tap", p.image.taps() == 1},
                  {"strided", any([](const ImageAxis& a) { return a.stride > 1; })},
                  {"dilated", any([](const ImageAxis& a) { return a.dilation > 1; })},
                  {"one axis", p.axes == 1},
                  {"three axes", p.axes == 3},
                  {"places <= 14 x 14 an image", p.image.rows() <= 14 * 14 * p.image.images}};
    t.x = {"places", double(p.filtered().rows())};
    t.y = {"taps x channels", double(p.filtered().columns())};
    t.flops = p.flops();
    return t;
}

}  // namespace rooftile
