#include "rooftile/names/kernel_sizes.hpp"

#include <charconv>
#include <cstring>

#include "rooftile/names/attention_sizes.hpp"
#include "rooftile/names/pass_sizes.hpp"
#include "rooftile/names/product_sizes.hpp"

namespace rooftile {
namespace {

/// "[[2, 3], [], [4]]" at the start of `text`; nothing where it is cut.
std::optional<std::vector<std::vector<std::int64_t>>> shapes_at(std::string_view text) {
    std::vector<std::vector<std::int64_t>> out;
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '[' && ++depth == 2) out.emplace_back();
        else if (c == ']' && --depth == 0) return out;
        else if (c >= '0' && c <= '9' && depth == 2) {
            std::int64_t value = 0;
            const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), value);
            if (error != std::errc()) return std::nullopt;
            out.back().push_back(value);
            i = std::size_t(end - text.data()) - 1;
        }
    }
    return std::nullopt;
}

using Shapes = std::vector<std::vector<std::int64_t>>;

std::optional<ProductSizes> product_of(std::string_view op, const Shapes& shapes) {
    // Operands of a product come after what is added to it.
    const std::size_t first = op == "addmm" || op == "baddbmm" ? 1 : 0;
    if (shapes.size() < first + 2) return std::nullopt;
    const auto &a = shapes[first], &b = shapes[first + 1];
    const bool weights_turned = op == "linear";
    if ((op == "mm" || op == "addmm") && a.size() == 2 && b.size() == 2 && a[1] == b[0]) return ProductSizes{1, a[0], b[1], a[1], 0};
    if ((op == "bmm" || op == "baddbmm") && a.size() == 3 && b.size() == 3 && a[0] == b[0] && a[2] == b[1])
        return ProductSizes{a[0], a[1], b[2], a[2], 0};
    if (weights_turned && a.size() >= 2 && b.size() == 2 && a.back() == b[1]) {
        std::int64_t rows = 1;
        for (std::size_t i = 0; i + 1 < a.size(); ++i) rows *= a[i];
        return ProductSizes{1, rows, b[0], b[1], 0};
    }
    return std::nullopt;
}

}  // namespace

std::int64_t ParameterBytes::word(std::size_t offset, std::int64_t otherwise) const {
    std::int32_t value = 0;
    if (bytes.size() < sizeof value || offset > bytes.size() - sizeof value) return otherwise;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

std::uint64_t ParameterBytes::address(std::size_t offset) const {
    std::uint64_t value = 0;
    if (bytes.size() < sizeof value || offset > bytes.size() - sizeof value) return 0;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

std::int64_t PassSizes::elements() const {
    std::int64_t out = 1;
    for (const std::int64_t extent : extents) out *= extent;
    return out;
}
std::int64_t PassSizes::read_bytes() const {
    std::int64_t out = 0;
    for (const Tensor& tensor : read) out += tensor.bytes;
    return out;
}
std::int64_t PassSizes::written_bytes() const {
    std::int64_t out = 0;
    for (const Tensor& tensor : written) out += tensor.bytes;
    return out;
}

std::optional<KernelSizes> sizes_of_launch(std::string_view kernel, const KernelName& name, const ParameterBytes& parameters,
                                           const LaunchExtents& launch) {
    if (const auto product = product_sizes(kernel, parameters, launch.grid)) return *product;
    if (const auto attention = attention_sizes(name, parameters, launch)) return *attention;
    if (const auto pass = pass_sizes(name, parameters, launch)) return *pass;
    return std::nullopt;
}

std::optional<KernelSizes> sizes_of_range(std::string_view range, const KernelName& name) {
    constexpr std::string_view space = "aten::", shapes_word = "sizes = ";
    const std::size_t at = range.find(shapes_word);
    if (!range.starts_with(space) || at == range.npos) return std::nullopt;
    const std::string_view op = range.substr(space.size(), range.find(',') - space.size());
    const auto shapes = shapes_at(range.substr(at + shapes_word.size()));
    if (!shapes) return std::nullopt;
    if (name.role == "gemm") {
        if (const auto product = product_of(op, *shapes)) return *product;
    } else if (name.role == "attention")
        if (const auto attention = attention_of_operator(op, *shapes, name)) return *attention;
    return std::nullopt;
}

}  // namespace rooftile
