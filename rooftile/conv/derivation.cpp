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
    const ImageOperand image = p.filtered();
    // Of weights' gradients places are K's, and a step's are together.
    const int side = p.gradient == ConvGradient::weights ? tile.step : tile.pixels;
    out.read = double(image.elements_read()) * element;
    out.unrolled = double(image.rows()) * double(image.columns()) * element;
    // A tile's places run along x, then y, then z: whole rows of places, as many as it has room for.
    double pixels = 1;
    std::int64_t left = side;
    for (const ImageAxis& axis : image.axes) {
        const std::int64_t places = std::min(left, axis.places());
        pixels *= double(std::min((places - 1) * axis.stride + axis.reach() + 1, axis.extent + 2 * axis.padding));
        left = (left + places - 1) / places;
    }
    pixels *= double(std::min(left, image.images));
    out.tile_halo = pixels * double(image.channels) * element;
    out.halo = out.tile_halo * std::ceil(double(image.rows()) / side);
    return out;
}

namespace {

/// Which extents of the convolution are the product's.
struct ProductSides {
    const char *m, *n, *k, *rows, *columns;
};
ProductSides sides_of(ConvGradient gradient) {
    switch (gradient) {
        case ConvGradient::none: break;
        case ConvGradient::data: return {"batch x pixels along each axis", "channels", "taps x filters   [M18]", "rows of the product: every pixel of every image, which dy's taps meet in reverse", "columns of the product: w is read in place, [filters][taps][channels]"};
        case ConvGradient::weights: return {"filters", "taps x channels   [M18]", "batch x places along each axis", "rows of the product: dy is read in place, [places][filters]", "columns of the product: pixels as each tap meets them"};
    }
    return {"batch x places along each axis   [M18]", "filters   [M18]", "taps x channels   [M18]", "rows of the product: every place of every image", "columns of the product"};
}

}  // namespace

std::vector<Step> conv_steps(const Machine& machine, const ConvProblem& p, const ConvTile& tile) {
    Derivation steps(machine);
    const auto of_problem = [](std::string name, double value, const char* unit) { return Derivation::given(std::move(name), value, unit, "the problem"); };
    const ImageOperand image = p.filtered();
    const ProductSides sides = sides_of(p.gradient);
    const bool of_weights = p.gradient == ConvGradient::weights;
    std::vector<Input> places = {of_problem("batch", double(image.images), "")};
    static constexpr std::string_view names[] = {"width", "height", "depth"};
    for (int i = p.axes - 1; i >= 0; --i) {
        const ImageAxis& axis = image.axes[std::size_t(i)];
        places.push_back(Derivation::given(fmt::format("{} along the {}", p.gradient == ConvGradient::data ? "pixels" : "places", names[std::size_t(i)]), double(axis.places()), "",
                                           fmt::format("floor(({} + 2 x {} - {} - 1) / {}) + 1", axis.extent, axis.padding, axis.reach(), axis.stride)));
    }
    const std::string other = p.gradient == ConvGradient::data ? "channels" : "filters", inner = p.gradient == ConvGradient::data ? "filters" : "channels";
    const std::vector<Input> lines = {of_problem(other, double(p.gradient == ConvGradient::data ? p.image.channels : p.filters), "")},
                             taps = {of_problem("taps", double(image.taps()), ""), of_problem(inner, double(image.channels), "")};
    steps.add("m", sides.m, of_weights ? lines : places, double(p.m()), "", sides.rows);
    steps.add("n", sides.n, of_weights ? taps : lines, double(p.n()), "", sides.columns);
    const std::int64_t k_steps = tile.gathered || of_weights ? (p.k() + tile.step - 1) / tile.step : image.blocks(tile.step);
    steps.add("k", sides.k, of_weights ? places : taps, double(p.k()), "",
              fmt::format("a step of {} takes {}: {} steps, {} of each filled", tile.step,
                          of_weights ? "places" : fmt::format("{} of {}", inner, tile.gathered ? "one tap after the other" : "one tap"), k_steps,
                          percent_text(double(p.k()) / (double(k_steps) * tile.step))));
    steps.add("share_inside", "pairs of a place and a tap inside the image / all pairs", {of_problem("pairs inside", std::round(image.share_inside() * double(image.taps()) * double(image.rows())), "")}, image.share_inside(),
              "", fmt::format("the rest is multiplied as zeros, which {} in", tile.gathered ? "cp.async fills" : "the copy engine fills"));
    const ImageTraffic t = image_traffic(p, tile);
    const auto ours = [](std::string name, double value, const char* unit) { return Derivation::given(std::move(name), value, unit, "the plan"); };
    steps.add("image_bytes", "pixels that some tap meets x channels x 2 B", {of_problem("pixels that some tap meets", double(image.elements_read()) / double(image.channels), ""), of_problem(inner, double(image.channels), "")}, t.read, "B",
              "from DRAM at least once");
    steps.add("unrolled_bytes", of_weights ? "k x n x 2 B" : "m x k x 2 B", {ours(of_weights ? "k" : "m", double(image.rows()), ""), ours(of_weights ? "n" : "k", double(image.columns()), "")}, t.unrolled, "B",
              fmt::format("into shared memory for each {} of tiles: {} times the image, since every tap loads its pixels anew from L2", of_weights ? "row" : "column",
                          number_text(t.unrolled / t.read, 3)));
    steps.add("tile_halo_bytes", "images x ((h - 1) stride + reach + 1) ((w - 1) stride + reach + 1) channels x 2 B   [M18]", {of_weights ? ours("places of a step", tile.step, "") : ours("tile_pixels", tile.pixels, "")}, t.tile_halo, "B",
              fmt::format("of shared memory, if a tile kept its pixels with their margins for all taps; {} would then come in for each {} of tiles",
                          scaled_text(t.halo, "B"), of_weights ? "row" : "column"));
    return steps.take();
}

}  // namespace rooftile
