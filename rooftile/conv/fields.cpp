#include "rooftile/conv/fields.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "rooftile/conv/depthwise.hpp"
#include "rooftile/conv/stem.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"

namespace rooftile {
namespace {

constexpr std::string_view types[] = {"bf16", "fp16"}, layouts[] = {"nhwc", "nchw"}, gradients[] = {"none", "data", "weights"};
/// Extents of the image by axes, x first.
constexpr std::string_view extent_keys[] = {"width", "height", "depth"};
/// Numbers that have one for each axis, or one for all.
struct AxisField {
    std::string_view key;
    std::int64_t ImageAxis::*number;
    std::int64_t least, plain;
};
constexpr AxisField axis_fields[] = {{"kernel_size", &ImageAxis::taps, 1, 0},
                                     {"stride", &ImageAxis::stride, 1, 1},
                                     {"padding", &ImageAxis::padding, 0, 0},
                                     {"dilation", &ImageAxis::dilation, 1, 1}};
/// Of the product's configuration, under names of convolutions in documents.
constexpr std::pair<std::string_view, std::string_view> renamed[] = {{"tile_m", "tile_pixels"}, {"tile_n", "tile_filters"}};
/// What of the product's a convolution has no choice of.
constexpr std::string_view left_out[] = {"pack_a", "pack_b", "dynamic_scheduler", "epilogue_apart"};

/// Fields of the product's plan, as the product has them.
std::vector<Field> product_fields() {
    std::vector<Field> out;
    for (const Field& field : image_products().operation->fields())
        if ((field.group.starts_with("Fixed") || field.key == "top") && std::ranges::find(left_out, field.key) == std::end(left_out)) out.push_back(field);
    for (Field& field : out)
        if (field.key == "kernel") field.meaning = "sm90_gemm, whose pixels the copy engine finds, or sm80_gemm, which gathers them; default: whichever is faster";
    return out;
}

std::vector<Field> make_fields() {
    const char* problem = "Problem, y[n, p, f] = sum over taps t and channels c of x[n, p stride - padding + t dilation, c] w[f, t, c]";
    std::vector<Field> fields = {
        {"batch", "N", "Images; default 1", problem},
        {"channels", "C", "Channels of the image", problem},
        {"depth", "D", "Pixels along the slowest axis; left out of images of two axes", problem},
        {"height", "H", "Rows of pixels; left out of one axis, as of tokens", problem},
        {"width", "W", "Pixels of a row", problem},
        {"filters", "F", "Filters: channels of the result", problem},
        {"kernel_size", "RxS", "Taps along each axis, the width last: 3x3, or one number for all", problem},
        {"stride", "N", "Pixels from one place of the result to the next; default 1", problem},
        {"padding", "N", "Zeros on either side of an axis; default 0", problem},
        {"dilation", "N", "Pixels from one tap to the next; default 1", problem},
        {"groups", "N", "Groups of channels and filters that do not meet, such as one a channel (depthwise); default 1", problem},
        {"gradient", "NAME", "none (default): the convolution; data: from dy, the gradient of its result, and w that of x, of a stride of 1; weights: from dy and x that of w, of channels in multiples of 64", problem},
        {"layout", "NAME", "Order of x in memory: nhwc (default), channels innermost, or nchw, which a kernel packs first, each time; filters are [F, taps, C] and the result [N, places, F]", problem},
        {"type", "TYPE", "bf16 (default) or fp16, for all tensors; fp32 accumulation", problem},
        {"epilogue", "TEXT", "What is stored, an expression of the sums acc: \"y = relu(acc + bias)\"", problem, FieldKind::text},
        {"tensor", "NAME:TYPE[SHAPE]", "A tensor that the epilogue reads: bias:bf16[N], of a number a filter; r:bf16[M,N], of one an element", problem, FieldKind::list},
    };
    for (Field& field : product_fields()) fields.push_back(std::move(field));
    for (Field& field : knob_fields<DirectKnobs>("Fixed parameters of direct convolutions")) fields.push_back(std::move(field));
    for (Field& field : knob_fields<StemKnobs>("Fixed parameters of direct convolutions by matrix units")) fields.push_back(std::move(field));
    for (Field& field : knob_fields<DepthwiseKnobs>("Fixed parameters of depthwise convolutions by matrix units")) fields.push_back(std::move(field));
    return fields;
}

/// What stands in for no channels: pixels of whole 16 bytes.
constexpr std::int64_t whole_channels = 8;

std::int64_t needed(const Given& g, std::string_view key) {
    if (!g.has(key))
        throw RequestError(fmt::format("missing {}: rooftile plan conv --batch 32 --channels 64 --height 56 --width 56 --filters 64 --kernel-size 3x3 --padding 1",
                                       g.name(key)));
    return size_number(g.name(key), g.text(key), max_conv_extent);
}

/// "3x3", the width last, or one number for all axes that the image has.
void read_axes(const Given& g, const AxisField& field, ConvProblem& p) {
    if (!g.has(field.key)) {
        if (field.least == 1 && field.plain == 0) needed(g, field.key);
        for (int i = 0; i < p.axes; ++i) p.image.axes[std::size_t(i)].*field.number = field.plain;
        return;
    }
    const std::string& text = g.text(field.key);
    const std::vector<std::string_view> parts = split(text, 'x');
    if (parts.size() != 1 && int(parts.size()) != p.axes)
        throw RequestError(fmt::format("{} {}: the image has {} ax{}; give one number for {} or one for each, the width last", g.name(field.key), text, p.axes,
                                       p.axes == 1 ? "is" : "es", p.axes == 1 ? "it" : "all"));
    for (int i = 0; i < p.axes; ++i)
        p.image.axes[std::size_t(i)].*field.number =
            whole_number(g.name(field.key), parts.size() == 1 ? parts[0] : parts[std::size_t(p.axes - 1 - i)], field.least, max_conv_extent);
}

ConvGradient read_gradient(const Given& g) { return ConvGradient(g.has("gradient") ? one_of(g.name("gradient"), g.text("gradient"), gradients) : 0); }
std::string gradient_name(const ConvProblem& p) { return std::string(gradients[std::size_t(p.gradient)]); }

/// Elements from one to the next along each axis where nothing lies between them.
std::vector<std::int64_t> dense_strides(const std::vector<Extent>& extents) {
    std::vector<std::int64_t> strides(extents.size(), 1);
    for (std::size_t i = extents.size(); i-- > 1;) strides[i - 1] = strides[i] * extents[i].most;
    return strides;
}

/// Of an image whose channels are its last extent and outermost in memory, behind the images.
std::vector<std::int64_t> channels_first_strides(const std::vector<Extent>& extents) {
    std::vector<std::int64_t> strides(extents.size(), 1);
    for (std::size_t i = extents.size() - 2; i > 1; --i) strides[i - 1] = strides[i] * extents[i].most;
    strides.back() = strides[1] * extents[1].most, strides[0] = strides.back() * extents.back().most;
    return strides;
}

TensorInfo dense_tensor(std::string name, const std::string& type, const std::vector<std::int64_t>& extents, TensorRole role) {
    TensorInfo out{.name = std::move(name), .type = type, .element_bits = 16, .extents = {}, .strides = {}, .role = role, .offset = 0};
    for (const std::int64_t extent : extents) out.extents.push_back(Extent::of(extent));
    out.strides = dense_strides(out.extents);
    return out;
}

/// `first`, then a number of each axis, the width last, then `last`.
std::vector<std::int64_t> around(const ConvProblem& p, std::int64_t first, const auto& of_axis, std::int64_t last) {
    std::vector<std::int64_t> out = {first};
    for (int i = p.axes - 1; i >= 0; --i) out.push_back(of_axis(p.image.axes[std::size_t(i)]));
    out.push_back(last);
    return out;
}

}  // namespace

std::span<const Field> conv_fields() {
    static const std::vector<Field> fields = make_fields();
    return fields;
}

ConvProblem conv_problem(const Given& g) {
    ConvProblem p;
    p.channels_first = g.has("layout") && one_of(g.name("layout"), g.text("layout"), layouts) == 1;
    if (g.has("groups")) p.groups = whole_number(g.name("groups"), g.text("groups"), 1, max_conv_extent);
    p.axes = g.has("depth") ? 3 : g.has("height") ? 2 : 1;
    if (p.axes == 3) needed(g, "height");
    p.image.images = g.has("batch") ? needed(g, "batch") : 1;
    p.image.channels = needed(g, "channels");
    for (int i = 0; i < p.axes; ++i) p.image.axes[std::size_t(i)].extent = needed(g, extent_keys[std::size_t(i)]);
    p.filters = needed(g, "filters");
    for (const AxisField& field : axis_fields) read_axes(g, field, p);
    p.gradient = read_gradient(g);
    if (g.has("type")) p.type = types[one_of(g.name("type"), g.text("type"), types)];
    p.epilogue = g.text("epilogue");
    p.tensors = g.list("tensor");
    complete(p);
    return p;
}

Given conv_product_request(const Given& g) {
    Given out(Given::Named::by_key);
    for (const Field& field : product_fields())
        if (g.has(field.key)) out.add(field.key, g.text(field.key));
    return out;
}

std::string_view conv_config_key(std::string_view of_product, ConvGradient gradient) {
    if (gradient != ConvGradient::none) return of_product;  // pixels and filters stand elsewhere there
    for (const auto& [theirs, ours] : renamed)
        if (theirs == of_product) return ours;
    return of_product;
}

Record conv_config(const Record& product, std::int64_t gathered_taps, ConvGradient gradient) {
    Record out;
    for (const auto& [key, value] : product) {
        if (std::ranges::find(left_out, key) != std::end(left_out)) continue;
        out.emplace_back(std::string(conv_config_key(key, gradient)), value);
        if (key == "kernel") out.emplace_back("loads", gathered_taps > 0 ? "gather" : "im2col"), out.emplace_back("taps_per_step", std::max<std::int64_t>(1, gathered_taps));
    }
    return out;
}

Given conv_given_of_config(const Record& config) {
    if (find_as<std::string>(config, "loads") == "direct") return given_of_knobs<DirectKnobs>(config);
    if (find_as<std::string>(config, "loads") == "rows") return given_of_knobs<StemKnobs>(config);
    if (find_as<std::string>(config, "loads") == "planes") return given_of_knobs<DepthwiseKnobs>(config);
    const Operation& product = *image_products().operation;
    Record theirs;
    for (const auto& [key, value] : config) {
        if (key == "loads" || key == "taps_per_step") continue;
        std::string name = key;
        for (const auto& [their, own] : renamed)
            if (own == key) name = their;
        theirs.emplace_back(name, value);
    }
    const Given asked = product.given_of_config(theirs);
    Given out(Given::Named::by_key);
    for (const Field& field : product_fields())
        if (asked.has(field.key)) out.add(field.key, asked.text(field.key));
    return out;
}

Given conv_with_work(const Given& asked, std::int64_t size) {
    Given given = asked;
    const auto replace = [&](const char* key, std::int64_t with) {
        if (given.has(key)) given.replace(key, with_size_for_zero(given.text(key), with));
    };
    replace("batch", size), replace("filters", size);
    replace("channels", (size + whole_channels - 1) / whole_channels * whole_channels);
    return given;
}

Given conv_given(const ConvProblem& p) {
    Given given(Given::Named::by_key);
    given.add("batch", std::to_string(p.image.images));
    given.add("channels", std::to_string(p.image.channels));
    for (int i = p.axes - 1; i >= 0; --i) given.add(extent_keys[std::size_t(i)], std::to_string(p.image.axes[std::size_t(i)].extent));
    given.add("filters", std::to_string(p.filters));
    for (const AxisField& field : axis_fields) given.add(field.key, by_axes(p, field.number));
    if (p.groups != 1) given.add("groups", std::to_string(p.groups));
    if (p.gradient != ConvGradient::none) given.add("gradient", gradient_name(p));
    if (p.channels_first) given.add("layout", "nchw");
    given.add("type", p.type);
    if (!p.epilogue.empty()) given.add("epilogue", p.epilogue);
    for (const std::string& tensor : p.tensors) given.add("tensor", tensor);
    return given;
}

Record conv_record(const ConvProblem& p) {
    const auto extent = [&](std::size_t axis) { return int(axis) < p.axes ? Value(p.image.axes[axis].extent) : Value(Unused{}); };
    Record out = {{"batch", p.image.images}, {"channels", p.image.channels}, {"depth", extent(2)}, {"height", extent(1)}, {"width", extent(0)},
                  {"filters", p.filters}};
    for (const AxisField& field : axis_fields) out.emplace_back(std::string(field.key), by_axes(p, field.number));
    out.emplace_back("groups", p.groups);
    out.emplace_back("gradient", gradient_name(p));
    out.emplace_back("layout", p.channels_first ? "nchw" : "nhwc");
    out.emplace_back("type", p.type);
    out.emplace_back("epilogue", p.epilogue.empty() ? "none" : p.epilogue);
    if (!p.epilogue.empty()) out.emplace_back("epilogue_tensors", p.tensors);
    return out;
}

Given conv_given(const Record& record) {
    Given given(Given::Named::by_key);
    for (const char* key : {"batch", "channels", "depth", "height", "width", "filters", "groups"})
        if (const auto number = find_as<std::int64_t>(record, key)) given.add(key, std::to_string(*number));
    for (const char* key : {"kernel_size", "stride", "padding", "dilation", "gradient", "layout", "type"})
        if (const auto text = find_as<std::string>(record, key)) given.add(key, *text);
    if (const auto text = find_as<std::string>(record, "epilogue"); text && *text != "none") given.add("epilogue", *text);
    for (const Value& tensor : find_as<List>(record, "epilogue_tensors").value_or(List()))
        if (const auto* text = std::get_if<std::string>(&tensor.content())) given.add("tensor", *text);
    return given;
}

namespace {

void add_followed(Given& given, std::string_view key, std::string text) {
    if (given.has(key)) throw RequestError(given.name(key) + " follows from the tensors; leave it out");
    given.add(key, std::move(text));
}

/// "2x16x9": extents between the first and the last.
std::string inner_extents(const TensorInfo& t) {
    std::string out;
    for (std::size_t i = 1; i + 1 < t.extents.size(); ++i) out += fmt::format("{}{}", out.empty() ? "" : "x", t.extents[i].most);
    return out;
}

/// dy [N, places..., F] and w [F, taps..., C], or x [N, (D, H,) W, C].
void add_gradient_tensors(Given& given, std::span<const TensorInfo> inputs, bool data) {
    const TensorInfo &dy = inputs[0], &other = inputs[1];
    const std::string_view name = data ? "w" : "x";
    if ((!dy.name.empty() && dy.name != "dy") || (!other.name.empty() && other.name != name) || inputs.size() != 2)
        throw RequestError(fmt::format("gradient {} takes two tensors, dy, then {}; here are {}", data ? "data" : "weights", name, inputs.size()));
    const std::size_t axes = dy.extents.size() - 2;
    const auto extent = [](const TensorInfo& t, std::size_t i) { return t.extents[i].most; };
    if (data ? extent(other, 0) != extent(dy, axes + 1) : extent(other, 0) != extent(dy, 0))
        throw RequestError(data ? fmt::format("dy has {} filters and w {}", extent(dy, axes + 1), extent(other, 0))
                                : fmt::format("dy has {} images and x {}", extent(dy, 0), extent(other, 0)));
    add_followed(given, "batch", std::to_string(extent(dy, 0)));
    add_followed(given, "channels", std::to_string(extent(other, axes + 1)));
    add_followed(given, "filters", std::to_string(extent(dy, axes + 1)));
    ConvProblem p;  // whose extents, where x is not there, follow from dy: of a stride of 1
    p.axes = int(axes);
    if (data) add_followed(given, "kernel_size", inner_extents(other));
    for (const AxisField& field : axis_fields) read_axes(given, field, p);
    for (std::size_t i = 0; i < axes; ++i) {
        const ImageAxis& axis = p.image.axes[axes - 1 - i];
        add_followed(given, extent_keys[axes - 1 - i], std::to_string(data ? std::max<std::int64_t>(1, extent(dy, i + 1) + axis.reach() - 2 * axis.padding) : extent(other, i + 1)));
    }
    add_followed(given, "type", dy.type);
    Given plain(Given::Named::by_key);
    for (const Field& field : conv_fields())
        if (given.has(field.key)) plain.add(field.key, given.text(field.key));
    const ConvProblem found = conv_problem(plain);
    if (places_by_axes(found) != inner_extents(dy))
        throw RequestError(fmt::format("dy has {} places; the convolution of these sizes has {}", inner_extents(dy), places_by_axes(found)));
}

}  // namespace

void add_conv_tensors(Given& given, std::span<const TensorInfo> inputs) {
    if (inputs.size() < 2) throw RequestError(fmt::format("{} tensor is given; a convolution takes x and w, then what its epilogue reads", inputs.size()));
    const TensorInfo &x = inputs[0], &w = inputs[1];
    const ConvGradient gradient = read_gradient(given);
    const bool forward = gradient == ConvGradient::none;
    if (forward && ((!x.name.empty() && x.name != "x") || (!w.name.empty() && w.name != "w")))
        throw RequestError(fmt::format("the first two tensors are {} and {}; a convolution takes x, then w", x.name, w.name));
    const std::string_view first = forward ? "x" : "dy", second = gradient == ConvGradient::weights ? "x" : "w";
    const std::size_t axes = x.extents.size();
    if (axes < 3 || axes > 5) throw RequestError(fmt::format("{} has {} axes; accepted are [N, W, C], [N, H, W, C] and [N, D, H, W, C]", first, axes));
    if (w.extents.size() != axes)
        throw RequestError(fmt::format("{} has {} axes and {} {}{}", second, w.extents.size(), first, axes, second == "w" ? "; w is [filters, taps..., channels]" : ""));
    if (x.type != w.type) throw RequestError(fmt::format("{} is {} and {} {}; they must be alike", first, x.type, second, w.type));
    const auto lies = [axes](const TensorInfo& t, const std::vector<std::int64_t>& strides) {
        for (std::size_t i = 0; i < axes; ++i)
            if (t.extents[i].most > 1 && t.strides[i] != strides[i]) return false;
        return true;
    };
    const bool channels_first = forward && !lies(x, dense_strides(x.extents)) && lies(x, channels_first_strides(x.extents));
    for (const TensorInfo* t : {&x, &w}) {
        if (!lies(*t, dense_strides(t->extents)) && !(t == &x && channels_first))
            throw RequestError(fmt::format("{} is not dense with its channels innermost; in PyTorch that is memory_format=torch.channels_last, axes permuted to end "
                                           "with channels", t == &x ? first : second));
        if (t->offset % 8 != 0) throw RequestError(fmt::format("{} does not begin at a multiple of 16 bytes; hand over a copy that does", t == &x ? first : second));
    }
    if (!forward) return add_gradient_tensors(given, inputs, gradient == ConvGradient::data);
    const std::int64_t channels = x.extents.back().most;
    const std::int64_t groups = given.has("groups") ? whole_number(given.name("groups"), given.text("groups"), 1, max_conv_extent) : 1;
    if (w.extents.back().most * groups != channels)
        throw RequestError(fmt::format("x has {} channels and w {} for each of {} group{}", channels, w.extents.back().most, groups, groups == 1 ? "" : "s"));
    const auto add = [&](std::string_view key, std::string text) { add_followed(given, key, std::move(text)); };
    add("batch", std::to_string(x.extents[0].most));
    add("channels", std::to_string(channels));
    add("filters", std::to_string(w.extents[0].most));
    for (std::size_t i = 1; i + 1 < axes; ++i) add(extent_keys[axes - 2 - i], std::to_string(x.extents[i].most));
    add("kernel_size", inner_extents(w));
    if (channels_first) add("layout", "nchw");
    add("type", x.type);
    if (inputs.size() == 2) return;
    if (given.has("tensor")) throw RequestError(given.name("tensor") + " follows from the tensors; leave it out");
    // What the result is, its epilogue aside.
    Given plain(Given::Named::by_key);
    for (const Field& field : conv_fields())
        if (given.has(field.key) && field.key != "epilogue") plain.add(field.key, given.text(field.key));
    const ConvProblem p = conv_problem(plain);
    EpilogueSizes sizes{p.image.rows(), p.filters, p.image.columns()};
    sizes.places = around(p, p.image.images, [](const ImageAxis& a) { return a.places(); }, p.filters);
    sizes.places.pop_back();
    for (const TensorInfo& t : inputs.subspan(2)) given.add("tensor", declared_operand(t, sizes));
}

std::vector<TensorInfo> conv_tensors(const ConvProblem& p) {
    const auto x = [&](const char* name, TensorRole role) { return dense_tensor(name, p.type, around(p, p.image.images, [](const ImageAxis& a) { return a.extent; }, p.image.channels), role); };
    const auto w = [&](const char* name, TensorRole role) { return dense_tensor(name, p.type, around(p, p.filters, [](const ImageAxis& a) { return a.taps; }, p.image.channels / p.groups), role); };
    const auto y = [&](std::string name, TensorRole role) { return dense_tensor(std::move(name), p.type, around(p, p.image.images, [](const ImageAxis& a) { return a.places(); }, p.filters), role); };
    if (p.gradient == ConvGradient::data) return {y("dy", TensorRole::in), w("w", TensorRole::in), x("dx", TensorRole::out)};
    if (p.gradient == ConvGradient::weights) return {y("dy", TensorRole::in), x("x", TensorRole::in), w("dw", TensorRole::out)};
    std::vector<TensorInfo> out = {x("x", TensorRole::in), w("w", TensorRole::in)};
    if (p.channels_first) out[0].strides = channels_first_strides(out[0].extents);
    std::string result = "y";
    if (p.product.operation) {
        // Between the product's two operands and its result is what its epilogue reads.
        const std::vector<TensorInfo> theirs = p.product.operation->tensors(p.product);
        out.insert(out.end(), theirs.begin() + 2, theirs.end() - 1);
        if (theirs.back().name != "c") result = theirs.back().name;
    } else if (p.direct_epilogue) {
        for (const EpilogueOperand& o : p.direct_epilogue->operands) out.push_back(epilogue_tensor(o, 1, p.image.rows(), p.filters));
        result = p.direct_epilogue->output();
    }
    out.push_back(y(result, TensorRole::out));
    return out;
}

}  // namespace rooftile
