// Layers of safetensors files as AutoAWQ and AutoGPTQ write them: qweight, scales [groups, N] and qzeros [groups, N / 8], eight numbers of
// 4 bits in an int32. AWQ has neighbours along N together, qweight [K, N / 8]; GPTQ neighbours along K, qweight [K / 8, N].
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/measure/numbers.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/units_text.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/weights/stored_weights.hpp"

namespace rooftile {
namespace {

constexpr std::int64_t in_word = 8;  ///< numbers of 4 bits

/// A matrix of a layer, checked.
class Matrix {
  public:
    Matrix(const WeightsFile& file, const std::string& name, std::initializer_list<std::string_view> types, std::size_t axes = 2)
        : name_(name), tensor_(file.find(name)) {
        if (!tensor_) throw RequestError(fmt::format("{} has no {}; is it in another file of the model?", file.path(), printable(name)));
        if (std::ranges::find(types, tensor_->type) == types.end() || tensor_->extents.size() != axes)
            refuse(fmt::format("{} of {} axes", fmt::join(types, ", "), axes));
        bytes_of_element_ = tensor_->type == "F16" || tensor_->type == "BF16" ? 2 : 4;
        std::int64_t elements = 1;
        for (const std::int64_t extent : tensor_->extents) {
            if (extent < 1 || extent > std::int64_t(tensor_->bytes.size()) / elements) refuse("as many bytes as its sizes say");
            elements *= extent;
        }
        if (std::int64_t(tensor_->bytes.size()) != elements * bytes_of_element_) refuse(fmt::format("{} B", elements * bytes_of_element_));
    }
    std::int64_t rows() const { return tensor_->extents[0]; }
    std::int64_t columns() const { return tensor_->extents[1]; }
    std::int64_t bytes() const { return std::int64_t(tensor_->bytes.size()); }
    const std::string& type() const { return tensor_->type; }
    std::uint32_t word(std::int64_t row, std::int64_t column) const {
        return little_endian<std::uint32_t>(tensor_->bytes, std::size_t((row * columns() + column) * 4));
    }
    std::int32_t element(std::int64_t i) const { return little_endian<std::int32_t>(tensor_->bytes, std::size_t(i * 4)); }
    float number(std::int64_t row, std::int64_t column) const {
        const std::size_t at = std::size_t((row * columns() + column) * bytes_of_element_);
        if (bytes_of_element_ == 4) return float(value_of_bits(little_endian<std::uint32_t>(tensor_->bytes, at), Type::fp32));
        return float(value_of_bits(little_endian<std::uint16_t>(tensor_->bytes, at), type() == "BF16" ? Type::bf16 : Type::fp16));
    }
    void expect(std::int64_t rows, std::int64_t columns) const {
        if (this->rows() != rows || this->columns() != columns) refuse(fmt::format("[{}, {}] of weights of 4 bits", rows, columns));
    }
    [[noreturn]] void refuse(std::string_view accepted) const {
        throw RequestError(fmt::format("{} is {} [{}], {} B; accepted is {}", printable(name_), tensor_->type,
                                       fmt::join(tensor_->extents, ", "), tensor_->bytes.size(), accepted));
    }

  private:
    std::string name_;
    const StoredTensor* tensor_;
    std::int64_t bytes_of_element_ = 4;
};

/// Whether the model's own description, beside the file, says that zero points are stored as they are: "gptq_v2".
bool says_second_version(const std::string& path) {
    for (const char* name : {"quantize_config.json", "config.json"}) {
        const std::filesystem::path beside = std::filesystem::path(path).parent_path() / name;
        std::ifstream in(beside);
        if (!in) continue;
        const Json all = Json::parse(in, nullptr, false);
        if (!all.is_object())
            throw RequestError(fmt::format("{} is no JSON object; it says how zero points are stored: mend it, or move the weights away from it",
                                           beside.string()));
        const Json& of = all.contains("quantization_config") ? all.at("quantization_config") : all;
        if (of.is_object() && of.contains("checkpoint_format")) return of.at("checkpoint_format") == "gptq_v2";
    }
    return false;
}

class LayerWeights final : public StoredWeights {
  public:
    LayerWeights(const WeightsFile& file, const std::string& layer)
        : q_(file, layer + ".qweight", {"I32"}),
          scales_(file, layer + ".scales", {"F16", "BF16", "F32"}),
          zeros_(file, layer + ".qzeros", {"I32"}) {
        name = layer;
        n = scales_.columns();
        along_k_ = q_.columns() == n;
        k = along_k_ ? q_.rows() * in_word : q_.rows();
        weights = "uint4", zero = "int", scale = scales_.type() == "BF16" ? "bf16" : "fp16";
        if (n % in_word != 0) scales_.refuse(fmt::format("a multiple of {} columns", in_word));
        q_.expect(along_k_ ? k / in_word : k, along_k_ ? n : n / in_word);
        zeros_.expect(scales_.rows(), n / in_word);
        if (k % scales_.rows() != 0) scales_.refuse(fmt::format("a number of rows that divides K, {}", k));
        group = scales_.rows() == 1 ? 0 : k / scales_.rows();
        file_bytes = q_.bytes() + scales_.bytes() + zeros_.bytes();
        if (!along_k_) {
            format = "AWQ";
            return;
        }
        stored_less_ = says_second_version(file.path()) ? 0 : 1;
        format = stored_less_ == 1 ? "GPTQ" : "GPTQ v2";
        if (file.find(layer + ".g_idx")) check_order(Matrix(file, layer + ".g_idx", {"I32"}, 1));
    }
    PlainRows rows(RowRange range) const override {
        PlainRows out(range, k, groups());
        out.zeros.resize(out.scales.size());
        const std::int64_t last = range.first + range.count;
        const auto at = [&](std::int64_t row, std::int64_t column, std::int64_t width) {
            return std::size_t((row - range.first) * width + column);
        };
        // In the order in which the file has them.
        for (std::int64_t column = 0; column < k; ++column)
            for (std::int64_t row = range.first; row < last; ++row)
                out.q[at(row, column, k)] = static_cast<signed char>(along_k_ ? q_.word(column / in_word, row) >> column % in_word * 4 & 15
                                                                              : along_n(q_, column, row));
        for (std::int64_t g = 0; g < groups(); ++g)
            for (std::int64_t row = range.first; row < last; ++row) {
                out.scales[at(row, g, groups())] = scales_.number(g, row);
                out.zeros[at(row, g, groups())] = static_cast<signed char>(zero_point(g, row));
            }
        return out;
    }

  private:
    /// AWQ's order of eight neighbours: those at even places first, 0 2 4 6 1 3 5 7. GPTQ has them as they come.
    unsigned along_n(const Matrix& of, std::int64_t row, std::int64_t column) const {
        const std::int64_t place = column % in_word;
        return of.word(row, column / in_word) >> 4 * (along_k_ ? place : place / 2 + place % 2 * 4) & 15;
    }
    int zero_point(std::int64_t g, std::int64_t row) const {
        constexpr int most = 15;
        const int zero = int(along_n(zeros_, g, row)) + stored_less_;
        if (zero > most)
            throw RequestError(
                fmt::format("{}.qzeros of row {}, group {} is 15 where zero points are stored less one: 16 does not fit 4 bits; "
                            "where the file is of gptq_v2, its config.json must say so (checkpoint_format)",
                            printable(name), row, g));
        return zero;
    }
    void check_order(const Matrix& groups_of_k) const {
        const std::int64_t width = group == 0 ? k : group;
        if (groups_of_k.rows() != k) groups_of_k.refuse(fmt::format("[{}]", k));
        for (std::int64_t i = 0; i < k; ++i)
            if (groups_of_k.element(i) != i / width)
                throw RequestError(
                    fmt::format("{}.g_idx[{}] is {} where {} is in order: K is permuted (desc_act), which packed weights do not follow; "
                                "take a model that was quantised without it",
                                printable(name), i, groups_of_k.element(i), i / width));
    }

    Matrix q_, scales_, zeros_;
    bool along_k_ = false;
    int stored_less_ = 0;
};

}  // namespace

std::unique_ptr<const StoredWeights> layer_weights(const WeightsFile& file, const std::string& name) {
    return std::make_unique<const LayerWeights>(file, name);
}

}  // namespace rooftile
