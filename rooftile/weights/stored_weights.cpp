#include "rooftile/weights/stored_weights.hpp"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <optional>

#include "rooftile/error.hpp"
#include "rooftile/machine/keys.hpp"
#include "rooftile/machine/units_text.hpp"

namespace rooftile {

PlainRows::PlainRows(RowRange range, std::int64_t all_k, std::int64_t groups_of_row)
    : rows(range.count), k(all_k), groups(groups_of_row), q(std::size_t(rows * k)), scales(std::size_t(rows * groups)) {}

std::vector<PlainArray> PlainRows::arrays() const {
    std::vector<PlainArray> out = {{q.data(), "int8", rows, k}, {scales.data(), "fp32", rows, groups}};
    if (!zeros.empty()) out.push_back({zeros.data(), "int8", rows, groups});
    if (!less.empty()) out.push_back({less.data(), "fp32", rows, groups});
    return out;
}

void PlainRows::values(std::int64_t row, std::span<double> to) const {
    const std::int64_t group = k / groups;
    for (std::int64_t column = 0; column < k; ++column) {
        const auto g = std::size_t(row * groups + column / group);
        const int whole = q[std::size_t(row * k + column)] - (zeros.empty() ? 0 : zeros[g]);
        const double weight = table.empty() ? whole : table[std::size_t(whole)];
        to[std::size_t(column)] = weight * double(scales[g]) - (less.empty() ? 0 : less[g]);
    }
}

std::span<const float> e2m1_numbers() {
    static constexpr float numbers[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0f, -0.5, -1, -1.5, -2, -3, -4, -6};
    return numbers;
}
double power_scale(unsigned bits) { return bits == 255 ? NAN : std::ldexp(1.0, int(bits) - 127); }

namespace {

/// "up[3]": the fourth matrix of up.
struct MatrixName {
    std::string tensor;
    std::optional<std::int64_t> index{};

    explicit MatrixName(const std::string& name) : tensor(name) {
        const std::size_t open = name.rfind('[');
        std::int64_t number = 0;
        if (open == std::string::npos || !name.ends_with(']')) return;
        const auto [end, error] = std::from_chars(name.data() + open + 1, name.data() + name.size() - 1, number);
        if (error != std::errc() || end != name.data() + name.size() - 1 || number < 0) return;
        tensor = name.substr(0, open), index = number;
    }
    /// That of the tensor; all of it where none is named.
    StoredTensor of(const StoredTensor& all) const {
        if (!index) return all;
        if (all.extents.size() < 3 || all.extents[0] < 1 || std::int64_t(all.bytes.size()) % all.extents[0] != 0)
            throw RequestError(fmt::format("{} has {} axes; [{}] is of tensors that are several matrices", printable(all.name), all.extents.size(), *index));
        if (*index >= all.extents[0])
            throw RequestError(fmt::format("{} has {} matrices; [{}] is beyond", printable(all.name), all.extents[0], *index));
        const std::size_t bytes = all.bytes.size() / std::size_t(all.extents[0]);
        return {fmt::format("{}[{}]", all.name, *index), all.type, {all.extents.begin() + 1, all.extents.end()},
                all.bytes.subspan(bytes * std::size_t(*index), bytes)};
    }
};

}  // namespace

std::unique_ptr<const StoredWeights> stored_weights(const WeightsFile& file, const std::string& name) {
    constexpr std::string_view quantised = ".qweight";
    const auto layer_of = [&](const std::string& tensor) {
        for (const std::string_view end : {quantised, std::string_view("_blocks")})
            if (tensor.ends_with(end)) return tensor.substr(0, tensor.size() - end.size());
        return tensor;
    };
    const std::string layer = layer_of(name);
    if (file.find(layer + std::string(quantised))) return layer_weights(file, layer);
    const MatrixName matrix(name);
    const std::string of_two = layer_of(matrix.tensor);
    const StoredTensor *blocks = file.find(of_two + "_blocks"), *scales = file.find(of_two + "_scales");
    if (blocks && scales) return microscaled_weights(matrix.of(*blocks), matrix.of(*scales));
    if (const StoredTensor* tensor = file.find(name)) return block_weights(*tensor);
    if (const StoredTensor* tensor = file.find(matrix.tensor)) return block_weights(matrix.of(*tensor));
    std::vector<std::string> names;
    for (const StoredTensor& tensor : file.tensors()) names.push_back(layer_of(tensor.name));
    if (names.empty()) throw RequestError(fmt::format("{} holds no tensors", file.path()));
    const std::string near = nearest_name(name, names);
    throw RequestError(fmt::format("{} has no tensor {}; {} {}", file.path(), printable(name),
                                   near.empty() ? "it has others, as" : "the nearest is", printable(near.empty() ? names.front() : near)));
}

}  // namespace rooftile
