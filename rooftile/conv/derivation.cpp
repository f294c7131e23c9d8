#include "rooftile/conv/derivation.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/core/derivation.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {

ImageTraffic image_traffic(const ConvProblem& p, const ConvTile& tile) {
    constexpr double element = ConvProblem::element_bytes;
    ImageTraffic out;
    out.read = double(p.image.elements_read()) * element;
    out.unrolled = double(p.image.rows()) * double(p.image.columns()) * element;
    // A tile's places run along x, then y, then z: whole rows of places, as many as it has room for.
    double pixels = 1;
    std::int64_t left = tile.pixels;
    for (const ImageAxis& axis : p.image.axes) {
        const std::int64_t places = std::min(left, axis.places());
        pixels *= double(std::min((places - 1) * axis.stride + axis.reach() + 1, axis.extent + 2 * axis.padding));
        left = (left + places - 1) / places;
    }
    pixels *= double(std::min(left, p.image.images));
    out.tile_halo = pixels * double(p.image.channels) * element;
    out.halo = out.tile_halo * std::ceil(double(p.image.rows()) / tile.pixels);
    return out;
}

std::vector<Step> conv_steps(const Machine& machine, const ConvProblem& p, const ConvTile& tile) {
    Derivation steps(machine);
    const auto of_problem = [](std::string name, double value, const char* unit) { return Derivation::given(std::move(name), value, unit, "the problem"); };
    const ImageOperand& image = p.image;
    std::vector<Input> places = {of_problem("batch", double(image.images), "")};
    static constexpr std::string_view names[] = {"width", "height", "depth"};
    for (int i = p.axes - 1; i >= 0; --i) {
        const ImageAxis& axis = image.axes[std::size_t(i)];
        places.push_back(Derivation::given(fmt::format("places along the {}", names[std::size_t(i)]), double(axis.places()), "",
                                           fmt::format("floor(({} + 2 x {} - {} - 1) / {}) + 1", axis.extent, axis.padding, axis.reach(), axis.stride)));
    }
    steps.add("m", "batch x places along each axis   [M18]", places, double(image.rows()), "", "rows of the product: every place of every image");
    steps.add("n", "filters   [M18]", {of_problem("filters", double(p.filters), "")}, double(p.filters), "", "columns of the product");
    const std::int64_t k_steps = tile.gathered ? (image.columns() + tile.step - 1) / tile.step : image.blocks(tile.step);
    steps.add("k", "taps x channels   [M18]", {of_problem("taps", double(image.taps()), ""), of_problem("channels", double(image.channels), "")},
              double(image.columns()), "", fmt::format("a step of {} takes channels of {}: {} steps, {} of each filled", tile.step, tile.gathered ? "one tap after the other" : "one tap", k_steps,
                                                       percent_text(double(image.columns()) / (double(k_steps) * tile.step))));
    steps.add("share_inside", "pairs of a place and a tap inside the image / all pairs", {of_problem("pairs inside", std::round(image.share_inside() * double(image.taps()) * double(image.rows())), "")}, image.share_inside(),
              "", fmt::format("the rest is multiplied as zeros, which {} in", tile.gathered ? "cp.async fills" : "the copy engine fills"));
    const ImageTraffic t = image_traffic(p, tile);
    const auto ours = [](std::string name, double value, const char* unit) { return Derivation::given(std::move(name), value, unit, "the plan"); };
    steps.add("image_bytes", "pixels that some tap meets x channels x 2 B", {of_problem("pixels that some tap meets", double(image.elements_read()) / double(image.channels), ""), of_problem("channels", double(image.channels), "")}, t.read, "B",
              "from DRAM at least once");
    steps.add("unrolled_bytes", "m x k x 2 B", {ours("m", double(image.rows()), ""), ours("k", double(image.columns()), "")}, t.unrolled, "B",
              fmt::format("into shared memory for each column of tiles: {} times the image, since every tap loads its pixels anew from L2", number_text(t.unrolled / t.read, 3)));
    steps.add("tile_halo_bytes", "images x ((h - 1) stride + reach + 1) ((w - 1) stride + reach + 1) channels x 2 B   [M18]", {ours("tile_pixels", tile.pixels, "")}, t.tile_halo, "B",
              fmt::format("of shared memory, if a tile kept its pixels with their margins for all taps; {} would then come in for each column of tiles",
                          scaled_text(t.halo, "B")));
    return steps.take();
}

}  // namespace rooftile
