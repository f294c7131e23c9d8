#include "rooftile/names/pass_sizes.hpp"

#include <algorithm>

#include "rooftile/names/reading.hpp"

namespace rooftile {
namespace {

using names::arguments_of;
using names::contains;
using names::number;
using names::type_name;

constexpr std::int64_t most_elements = std::int64_t{1} << 40;

std::int64_t pieces_of(std::int64_t extent, std::int64_t piece) { return (extent + piece - 1) / piece; }

int bytes_of_element(std::string_view type) {
    if (type == "fp8") return 1;  // a name that does not tell which of the two
    const auto bits = bits_of_type(type);
    return bits ? *bits / 8 : 0;
}

/// The type of the place's number in at::ScalarType; empty: none that is known here.
std::string_view scalar_type(std::int64_t code) {
    static constexpr std::string_view types[] = {"uint8", "int8", "", "int32", "int64", "fp16", "fp32", "fp64",
                                                 "",      "",     "", "bool",  "",      "",     "",     "bf16"};
    constexpr std::int64_t e5m2 = 23, e4m3 = 24;
    if (code == e5m2) return "fp8_e5m2";
    if (code == e4m3) return "fp8_e4m3";
    return code >= 0 && code < std::int64_t(std::size(types)) ? types[code] : "";
}

/// Whether an operator gives what its last argument's type is. Of others, a comparison for one, the name does not say what they give.
bool keeps_type(std::string_view operation) {
    static constexpr std::string_view all[] = {"abs",
                                               "ceil",
                                               "clamp",
                                               "cos",
                                               "elu",
                                               "erf",
                                               "erfc",
                                               "exp",
                                               "exp2",
                                               "expm1",
                                               "floor",
                                               "gelu",
                                               "gelu backward",
                                               "hardsigmoid",
                                               "hardswish",
                                               "leaky relu",
                                               "lerp",
                                               "log",
                                               "log10",
                                               "log1p",
                                               "log2",
                                               "maximum",
                                               "minimum",
                                               "mish",
                                               "neg",
                                               "pow tensor scalar",
                                               "pow tensor tensor",
                                               "reciprocal",
                                               "relu",
                                               "round",
                                               "rsqrt",
                                               "sigmoid",
                                               "sigmoid backward",
                                               "silu",
                                               "silu backward",
                                               "sin",
                                               "softplus",
                                               "sqrt",
                                               "tan",
                                               "tanh",
                                               "tanh backward",
                                               "threshold",
                                               "trunc",
                                               "where",
                                               "direct copy"};
    return std::ranges::find(all, operation) != std::end(all);
}

/// Types of the result and of what is read, as the functor has them; empty: not told.
std::vector<std::string> functor_types(const KernelName& name) {
    const std::string_view text = name.name;
    const auto types = [](std::initializer_list<std::string_view> of) {
        std::vector<std::string> out;
        for (const std::string_view each : of) out.push_back(type_name(each));
        return out;
    };
    const auto of = [&](std::string_view functor, std::size_t least) {
        auto arguments = arguments_of(text, functor);
        if (arguments.size() < least) arguments.clear();
        return arguments;
    };
    if (const auto a = of("BinaryFunctor", 3); !a.empty()) return types({a[2], a[0], a[1]});
    if (const auto a = of("AUnaryFunctor", 3); !a.empty()) return types({a[2], a[1]});
    if (const auto a = of("BUnaryFunctor", 3); !a.empty()) return types({a[2], a[0]});
    if (const auto a = of("CUDAFunctor_add", 1); !a.empty()) return types({a[0], a[0], a[0]});
    if (const auto a = of("CUDAFunctorOnSelf_add", 1); !a.empty()) return types({a[0], a[0]});
    if (const auto a = of("FillFunctor", 1); !a.empty()) return types({a[0]});
    // "{lambda()#3}::operator()() const::{lambda(float, float)#1}": the first that takes elements.
    constexpr std::string_view lambda = "{lambda(";
    for (std::size_t at = text.find(lambda); at != text.npos; at = text.find(lambda, at + 1)) {
        const std::string_view rest = text.substr(at + lambda.size());
        const std::string_view inside = rest.substr(0, rest.find(')'));
        if (inside.empty()) continue;
        std::vector<std::string> out(1);
        for (const std::string_view each : names::split(inside, ',')) out.push_back(type_name(each));
        if (contains(text, "bfloat16_copy_kernel")) out[0] = "bf16";
        else if (contains(text, "float16_copy_kernel")) out[0] = "fp16";
        else if (contains(text, "float8_copy_kernel")) out[0] = "fp8";
        else if (keeps_type(name.operation)) out[0] = out.back();
        else return {};
        return out;
    }
    return {};
}

PassSizes::Tensor whole_tensor(std::string type, std::int64_t elements) {
    const int bytes = bytes_of_element(type);
    return {std::move(type), elements * bytes, {elements}};
}

/// One element after the other: the count first, and one pointer a tensor, the result's before the others'.
std::optional<PassSizes> of_elements_in_a_row(const KernelName& name, const ParameterBytes& p, const LaunchExtents& launch) {
    std::vector<std::string> types = functor_types(name);
    const std::int64_t count = p.word(0), threads = std::int64_t{launch.grid[0]} * launch.block[0];
    if (types.empty() || count <= 0 || launch.grid[1] != 1 || p.places.size() < 3) return std::nullopt;
    std::size_t pointers = 2;
    if (contains(name.name, "LoadWithCast")) {
        // What lies in memory is another type than the functor's: the code of each, then its bytes.
        const auto &load = p.places[p.places.size() - 2], &store = p.places.back();
        const std::size_t inputs = types.size() - 1, codes = (inputs + 3) / 4 * 4;
        if (load.size != codes + 4 * inputs || store.size != 8) return std::nullopt;
        const auto read_type = [&](std::size_t code_at, std::size_t bytes_at) {
            const std::string_view type = scalar_type(p.word(code_at) & 0xff);
            return bytes_of_element(type) == p.word(bytes_at) ? std::string(type) : std::string();
        };
        types[0] = read_type(store.offset, store.offset + 4);
        for (std::size_t i = 0; i < inputs; ++i) types[i + 1] = read_type(load.offset + i, load.offset + codes + 4 * i);
    } else if (contains(name.name, "unrolled_elementwise_kernel") && !contains(name.name, "LoadWithoutCast")) return std::nullopt;
    if (p.places[pointers].size != 8 * types.size()) return std::nullopt;
    for (const std::string& type : types)
        if (bytes_of_element(type) == 0) return std::nullopt;
    PassSizes s;
    s.types_at_run_time = contains(name.name, "LoadWithCast");
    // A thread has the same power of two of elements in every launch.
    while (threads * s.thread_elements < count) s.thread_elements *= 2;
    if (s.thread_elements > 64 || threads * s.thread_elements - launch.block[0] * s.thread_elements >= count) return std::nullopt;
    const names::Signature signature = names::signature_of(name.name);
    if (names::contains(signature.function, "vectorized") && !signature.arguments.empty())
        s.vector_width = int(number(signature.arguments[0]).value_or(1));
    s.extents = {count};
    s.written.push_back(whole_tensor(types[0], count));
    for (std::size_t i = 1; i < types.size(); ++i) {
        s.read.push_back(whole_tensor(types[i], count));
        for (std::size_t before = 1; before < i; ++before)
            if (p.address(p.places[pointers].offset + 8 * before) == p.address(p.places[pointers].offset + 8 * i))
                s.read.back().bytes = 0, s.again = true;
    }
    return s;
}

/// By place: how many axes there are, 25 divisors with their multipliers and shifts, as many strides of all tensors, in bytes, innermost
/// first; then the pointers.
std::optional<PassSizes> of_elements_by_place(const KernelName& name, const ParameterBytes& p, const LaunchExtents& launch) {
    constexpr std::size_t most_axes = 25, axes_at = 8, extents_at = 12, extent_bytes = 12;
    const std::vector<std::string> types = functor_types(name);
    const names::Signature signature = names::signature_of(name.name);
    if (types.empty() || signature.arguments.size() < 2) return std::nullopt;
    const std::int64_t count = p.word(0), axes = p.word(axes_at), each = number(signature.arguments[1]).value_or(0);
    const std::size_t tensors = types.size();
    if (count <= 0 || axes <= 0 || axes > std::int64_t(most_axes) || each <= 0
        || launch.grid[0] != pieces_of(count, each * launch.block[0]))
        return std::nullopt;
    PassSizes s;
    std::int64_t all = 1;
    for (std::size_t axis = 0; axis < std::size_t(axes); ++axis) {
        const std::int64_t extent = p.word(extents_at + extent_bytes * axis);
        if (extent <= 0 || (all *= extent) > most_elements) return std::nullopt;
        s.extents.insert(s.extents.begin(), extent);
    }
    if (all != count) return std::nullopt;
    s.divided_axes = int(axes), s.thread_elements = int(each);
    for (std::size_t tensor = 0; tensor < tensors; ++tensor) {
        const int bytes = bytes_of_element(types[tensor]);
        if (bytes == 0) return std::nullopt;
        PassSizes::Tensor out{types[tensor], bytes, {}};
        std::int64_t dense = bytes;
        for (std::size_t axis = 0; axis < std::size_t(axes); ++axis) {
            const std::int64_t extent = s.extents[s.extents.size() - 1 - axis],
                               stride = p.word(extents_at + extent_bytes * most_axes + 4 * (tensors * axis + tensor));
            if (stride % bytes != 0) return std::nullopt;
            if (axis == 0 && stride != 0 && stride != bytes) s.scattered = true;
            out.extents.insert(out.extents.begin(), stride == 0 ? 1 : extent);
            if (stride == 0) continue;
            s.alike &= stride == dense;
            dense *= extent, out.bytes *= extent;
        }
        (tensor == 0 ? s.written : s.read).push_back(std::move(out));
    }
    return s;
}

PassSizes of_rows(const std::string& read, const std::string& written, std::int64_t rows, std::int64_t columns) {
    PassSizes s;
    s.extents = {rows, columns};
    s.read.push_back({read, rows * columns * bytes_of_element(read), s.extents});
    s.written.push_back({written, rows * columns * bytes_of_element(written), s.extents});
    return s;
}

/// Columns and epsilon, then pointers: the rows, their factors and shifts, what is kept of each row, the result. A CTA has a row.
std::optional<PassSizes> of_layer_norm(const KernelName& name, const ParameterBytes& p, const LaunchExtents& launch) {
    constexpr std::size_t factors = 16, shifts = 24, means = 32, deviations = 40;
    const names::Signature signature = names::signature_of(name.name);
    const std::string type = signature.arguments.empty() ? "" : type_name(signature.arguments[0]);
    const std::int64_t columns = p.word(0), rows = launch.grid[0], threads = std::int64_t{launch.block[0]} * launch.block[1];
    if (bytes_of_element(type) == 0 || columns <= 0 || p.places.size() != 8 || threads <= 0 || rows * columns > most_elements)
        return std::nullopt;
    constexpr int vector = 4, kept_bytes = 4;
    PassSizes s = of_rows(type, type, rows, columns);
    for (const std::size_t at : {factors, shifts})
        if (p.address(at)) s.read.push_back({type, columns * bytes_of_element(type), {1, columns}});
    for (const std::size_t at : {means, deviations})
        if (p.address(at)) s.written.push_back({"fp32", rows * kept_bytes, {rows, 1}});
    s.vector_width = vector, s.row_threads = int(threads), s.thread_elements = int(pieces_of(columns, threads));
    return s;
}

/// A warp has a row, or two short ones: result, input, rows, what lies between two of them, columns.
std::optional<PassSizes> of_warp_softmax(const KernelName& name, const ParameterBytes& p, const LaunchExtents& launch) {
    constexpr std::size_t rows_at = 16, stride_at = 20, columns_at = 24;
    const auto arguments = names::signature_of(name.name).arguments;
    if (arguments.size() < 4) return std::nullopt;
    const std::string in = type_name(arguments[0]), out = type_name(arguments[1]);
    const std::int64_t rows = p.word(rows_at), columns = p.word(columns_at), power = number(arguments[3]).value_or(-1);
    if (bytes_of_element(in) == 0 || bytes_of_element(out) == 0 || rows <= 0 || columns <= 0 || power < 0 || power > 20
        || p.word(stride_at) != columns || columns > std::int64_t{1} << power)
        return std::nullopt;
    const std::int64_t lanes = std::min<std::int64_t>(32, std::int64_t{1} << power), of_warp = (std::int64_t{1} << power) <= 128 ? 2 : 1;
    const std::int64_t of_cta = std::int64_t{launch.block[0]} * launch.block[1] / lanes * of_warp;
    if (of_cta <= 0 || launch.grid[0] != pieces_of(rows, of_cta) || rows * columns > most_elements) return std::nullopt;
    PassSizes s = of_rows(in, out, rows, columns);
    s.row_threads = int(lanes), s.thread_elements = int(pieces_of(columns, lanes));
    return s;
}

/// A CTA has a row: result, input, columns.
std::optional<PassSizes> of_cta_softmax(const KernelName& name, const ParameterBytes& p, const LaunchExtents& launch) {
    std::vector<std::string> types;
    for (const std::string_view argument : names::signature_of(name.name).arguments)
        if (const std::string type = type_name(argument); bytes_of_element(type) > 0 && type != "int64") types.push_back(type);
    const std::int64_t rows = launch.grid[0], columns = p.word(16);
    if (types.size() < 3 || p.places.size() != 3 || columns <= 0 || launch.grid[1] != 1 || rows * columns > most_elements)
        return std::nullopt;
    PassSizes s = of_rows(types[0], types[2], rows, columns);
    s.row_threads = launch.block[0], s.thread_elements = int(pieces_of(columns, launch.block[0]));
    return s;
}

/// Sums, means and the like. How the work is divided is written behind the functor, which may be of any size: it is taken where the
/// threads, the grid and what is reduced agree with each other.
std::optional<PassSizes> of_reduction(const KernelName& name, const ParameterBytes& p, const LaunchExtents& launch) {
    const auto arguments = arguments_of(name.name, "ReduceOp");
    if (arguments.size() < 4) return std::nullopt;
    const std::string in = type_name(arguments[0]), out = type_name(arguments[3]);
    if (bytes_of_element(in) == 0 || bytes_of_element(out) == 0) return std::nullopt;
    constexpr std::size_t farthest = 64;
    for (std::size_t at = 0; at <= farthest; at += 4) {
        const auto word = [&](std::size_t place) { return p.word(at + 4 * place); };
        const std::int64_t inputs = word(1), outputs = word(2), step = word(4), ctas = word(5), width = word(11), height = word(12),
                           together = word(15) & 0xff;
        if (inputs <= 0 || outputs <= 0 || step <= 0 || together <= 0 || width != launch.block[0] || height != launch.block[1]
            || word(13) != width * height)
            continue;
        if (launch.grid[0] != pieces_of(outputs / together, step) || launch.grid[1] != ctas
            || double(inputs) * double(outputs) > double(most_elements))
            continue;
        PassSizes s = of_rows(in, out, outputs, inputs);
        s.written[0] = {out, outputs * bytes_of_element(out), {outputs, 1}};
        s.alike = (word(14) & 1) != 0;  // it reads vectors: what is reduced lies side by side
        s.row_threads = int(width), s.thread_elements = int(std::max<std::int64_t>(1, inputs / width));
        if (s.alike) s.vector_width = 4;
        return s;
    }
    return std::nullopt;
}

/// Tensors one behind the other: the extents of the result, in elements or in vectors of 16 bytes.
std::optional<PassSizes> of_concatenation(const KernelName& name, const ParameterBytes& p, const LaunchExtents& launch) {
    const names::Signature signature = names::signature_of(name.name);
    if (p.places.size() < 3 || p.places[2].size != 32 || signature.arguments.size() < 3) return std::nullopt;
    const auto element = arguments_of(name.name, "OpaqueType");
    const bool vectors = signature.function.ends_with("_vectorized");
    const std::int64_t axes = number(signature.arguments[2]).value_or(0);
    std::int64_t bytes = element.empty() ? 0 : number(element[0]).value_or(0);
    if (vectors) bytes = signature.arguments.size() > 5 ? number(signature.arguments[5]).value_or(0) : 0;
    if (axes <= 0 || axes > 4 || bytes <= 0) return std::nullopt;
    PassSizes s;
    for (std::int64_t axis = 0; axis < axes; ++axis) {
        const std::int64_t extent = p.word(p.places[2].offset + 4 * std::size_t(axis));
        if (extent <= 0 || s.elements() > most_elements / extent) return std::nullopt;
        s.extents.push_back(extent);
    }
    s.read.push_back({"", s.elements() * bytes, s.extents});
    s.written.push_back({"", s.elements() * bytes, s.extents});
    s.alike = false, s.divided_axes = int(axes), s.plain_division = true;
    const std::int64_t threads = std::int64_t{launch.grid[0]} * launch.grid[1] * launch.block[0];
    if (threads > 0) s.thread_elements = int(std::min<std::int64_t>(pieces_of(s.elements(), threads), 1 << 20));
    return s;
}

}  // namespace

std::optional<PassSizes> pass_sizes(const KernelName& name, const ParameterBytes& p, const LaunchExtents& launch) {
    if (name.family != "pytorch") return std::nullopt;
    const names::Signature signature = names::signature_of(name.name);
    const std::string_view function = signature.function;
    if (function == "vectorized_elementwise_kernel" || function == "unrolled_elementwise_kernel")
        return of_elements_in_a_row(name, p, launch);
    if (function == "elementwise_kernel") return of_elements_by_place(name, p, launch);
    if (function == "vectorized_layer_norm_kernel") return of_layer_norm(name, p, launch);
    if (function == "softmax_warp_forward") return of_warp_softmax(name, p, launch);
    if (function.starts_with("cunn_SoftMaxForward")) return of_cta_softmax(name, p, launch);
    if (function == "reduce_kernel") return of_reduction(name, p, launch);
    if (function.starts_with("CatArrayBatchedCopy")) return of_concatenation(name, p, launch);
    return std::nullopt;
}

}  // namespace rooftile
