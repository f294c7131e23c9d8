#include "rooftile/gemm/pack_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

#include "kernels/gemm/weight_values.hpp"
#include "rooftile/error.hpp"

namespace rooftile {
namespace {

/// Numbers of one array by row and column, whichever type holds them.
class Numbers {
  public:
    /// Of some rows, which are named by their places in the whole array.
    Numbers(const char* name, const PlainArray& array, RowRange rows, std::int64_t columns, std::span<const std::string_view> types)
        : name_(name), array_(array), first_(rows.first) {
        if (array.rows != rows.count || array.columns != columns)
            throw RequestError(fmt::format("{} is [{}, {}]; here it is [{}, {}]", name, array.rows, array.columns, rows.count, columns));
        if (std::ranges::find(types, array.type) == types.end())
            throw RequestError(fmt::format("{} is {}; accepted are {}", name, array.type, fmt::join(types, ", ")));
        if (!array.data) throw RequestError(fmt::format("{} is null", name));
    }
    bool is_bytes() const { return array_.type == "uint8"; }
    double at(std::int64_t row, std::int64_t column) const {
        const std::int64_t i = (row - first_) * array_.columns + column;
        if (array_.type == "int8") return static_cast<const signed char*>(array_.data)[i];
        if (array_.type == "uint8") return static_cast<const unsigned char*>(array_.data)[i];
        if (array_.type == "fp32") return static_cast<const float*>(array_.data)[i];
        return value_of_bits(static_cast<const std::uint16_t*>(array_.data)[i], array_.type == "bf16" ? Type::bf16 : Type::fp16);
    }
    [[noreturn]] void refuse(std::int64_t row, std::int64_t column, std::string_view accepted) const {
        throw RequestError(fmt::format("{}[{}, {}] is {}; accepted are {}", name_, row, column, at(row, column), accepted));
    }

  private:
    const char* name_;
    const PlainArray& array_;
    std::int64_t first_;
};

/// A weight or a zero point as bits without a sign.
class Biased {
  public:
    explicit Biased(const QuantisedLayout& layout) : layout_(layout), bias_(layout.bias()), most_(int(layout.mask())) {}
    unsigned of(const Numbers& numbers, std::int64_t row, std::int64_t column) const {
        const double biased = numbers.at(row, column) + bias_;
        if (biased < 0 || biased > most_) numbers.refuse(row, column, fmt::format("{} .. {}", -bias_, most_ - bias_));
        // Kernels put bits in place and know no NaN.
        if (layout_.is_float() && class_of_bits(unsigned(biased), float_type(layout_.weights)) != NumberClass::finite)
            numbers.refuse(row, column, fmt::format("bits of finite numbers of {}", name_of(layout_.weights)));
        return unsigned(biased);
    }

  private:
    QuantisedLayout layout_;
    int bias_, most_;
};

/// A scale that is a power of two, as its exponent: of numbers that are some, or of bytes that are exponents already.
unsigned power_of(const Numbers& scales, std::int64_t row, std::int64_t group, bool of_zeros) {
    const double x = scales.at(row, group);
    if (x == 0 && !scales.is_bytes()) return 0;
    int exponent = 0;
    const unsigned bits = unsigned(scales.is_bytes() ? x : std::frexp(x, &exponent) == 0.5 ? exponent - 1 + power_bias : 255);
    if (bits == 0 && of_zeros) return 0;
    if (bits < 1 || bits > 254)
        scales.refuse(row, group, scales.is_bytes() ? "1 .. 254, exponents less 127, and 0 of weights that are 0" : "powers of two, 2^-126 .. 2^127, and 0");
    return bits;
}

void put(std::span<unsigned char> to, std::int64_t at, const auto& value) { std::memcpy(to.data() + at, &value, sizeof value); }

}  // namespace

void pack_weights(const GemmProblem& p, RowRange rows, std::span<const PlainArray> arrays, std::span<unsigned char> to) {
    const QuantisedLayout& layout = p.quantised;
    const std::int64_t groups = layout.groups(p.k), last = rows.first + rows.count;
    const std::size_t wanted = layout.zeros == ZeroType::none ? 2 : 3;
    if (arrays.size() != wanted)
        throw RequestError(fmt::format("{} arrays are given; these weights are packed of {}", arrays.size(),
                                       wanted == 3 ? "q, scales and zeros" : "q and scales"));
    assert(std::int64_t(to.size()) == layout.bytes(p.n, p.k));
    assert(rows.first % QuantisedLayout::block_rows == 0 && (last % QuantisedLayout::block_rows == 0 || last == p.n));
    static constexpr std::string_view whole[] = {"int8", "uint8"}, real[] = {"fp32", "fp16", "bf16"}, powers[] = {"fp32", "fp16", "bf16", "uint8"};
    using Types = std::span<const std::string_view>;
    const Numbers q("q", arrays[0], rows, p.k, whole), scales("scales", arrays[1], rows, groups, layout.power_scales() ? Types(powers) : Types(real));
    const Numbers zeros = layout.zeros == ZeroType::none
                              ? q
                              : Numbers("zeros", arrays[2], rows, groups, layout.zeros == ZeroType::real ? Types(real) : Types(whole));
    const Biased bits(layout);
    const auto number = [&](const Numbers& of, std::int64_t n, std::int64_t group) {
        const unsigned rounded = round_to_bits(of.at(n, group), layout.scale);
        if (class_of_bits(rounded, layout.scale) != NumberClass::finite)
            of.refuse(n, group, fmt::format("finite numbers of {}", name_of(layout.scale)));
        return static_cast<std::uint16_t>(rounded);
    };
    if (rows.first == 0) {
        std::ranges::fill(to.first(QuantisedLayout::header_bytes), static_cast<unsigned char>(0));
        put(to, 0, layout.fingerprint()), put(to, 4, std::uint32_t(p.n)), put(to, 8, std::uint32_t(p.k));
    }
    const std::int64_t from = layout.block_at(rows.first, 0, p.k),
                       end = layout.block_at(layout.row_blocks(last) * QuantisedLayout::block_rows, 0, p.k);
    std::ranges::fill(to.subspan(std::size_t(from), std::size_t(end - from)), static_cast<unsigned char>(0));
    for (std::int64_t n = rows.first; n < last; ++n) {
        const int row = int(n % layout.block_rows);
        for (std::int64_t first = 0; first < p.k; first += layout.block_k) {
            const std::int64_t block = layout.block_at(n, first, p.k);
            for (int k = 0; k < std::min<std::int64_t>(layout.block_k, p.k - first); ++k) {
                // Some bits of a byte: the word is little-endian, as the GPU reads it.
                const int shift = layout.shift_of(row, k);
                to[std::size_t(block + layout.word_of(row, k) * 4 + shift / 8)] |= static_cast<unsigned char>(bits.of(q, n, first + k) << shift % 8);
            }
            for (int k = 0; k < layout.block_k && first + k < p.k; k += layout.scaled_k()) {
                const std::int64_t group = layout.group == 0 ? 0 : (first + k) / layout.group;
                if (layout.power_scales()) {
                    bool of_zeros = true;
                    for (std::int64_t i = first + k; i < std::min<std::int64_t>(first + k + layout.group, p.k); ++i)
                        of_zeros = of_zeros && weight_value(layout, bits.of(q, n, i), p.b_type) == 0;
                    put(to, block + layout.scale_at(row, k), static_cast<unsigned char>(power_of(scales, n, group, of_zeros)));
                } else put(to, block + layout.scale_at(row, k), number(scales, n, group));
                if (layout.zeros == ZeroType::integer)
                    put(to, block + layout.zero_at(row, k), static_cast<unsigned char>(bits.of(zeros, n, group)));
                if (layout.zeros == ZeroType::real) put(to, block + layout.zero_at(row, k), number(zeros, n, group));
            }
        }
    }
}

void unpack_weights(const GemmProblem& p, RowRange rows, std::span<const unsigned char> packed, std::span<double> to) {
    const QuantisedLayout& layout = p.quantised;
    assert(std::int64_t(packed.size()) == layout.bytes(p.n, p.k) && std::int64_t(to.size()) == rows.count * p.k);
    const auto half = [&](std::int64_t at) { return unsigned(packed[std::size_t(at)] | packed[std::size_t(at) + 1] << 8); };
    for (std::int64_t i = 0; i < rows.count; ++i)
        for (std::int64_t k = 0; k < p.k; ++k) {
            const std::int64_t n = rows.first + i, block = layout.block_at(n, k, p.k);
            const int row = int(n % layout.block_rows), column = int(k % layout.block_k), shift = layout.shift_of(row, column);
            const unsigned q = packed[std::size_t(block + layout.word_of(row, column) * 4 + shift / 8)] >> shift % 8 & layout.mask();
            const std::int64_t scale_at = block + layout.scale_at(row, column);
            const double scale = scale_value(layout, layout.power_scales() ? packed[std::size_t(scale_at)] : half(scale_at));
            const std::int64_t zero = block + layout.zero_at(row, column);
            const int whole = layout.zeros == ZeroType::integer ? packed[std::size_t(zero)] : layout.bias();
            const double less = layout.zeros == ZeroType::real ? value_of_bits(half(zero), layout.scale) : 0;
            to[std::size_t(i * p.k + k)] = (weight_value(layout, q, p.b_type) - whole) * scale - less;
        }
}

const Packs& gemm_packs() {
    class GemmPacks final : public Packs {
      public:
        std::int64_t packed_bytes(const Problem& problem) const override {
            const auto& p = problem.own.as<GemmProblem>();
            if (!p.is_quantised()) throw RequestError("nothing is packed by this request; give types as bf16,int4,bf16");
            if (p.groups)
                throw RequestError(fmt::format("weights of {} groups are packed as one matrix of {} x {}, without groups", p.groups->count(),
                                               p.n * p.groups->count(), p.k));
            return p.packed_bytes();
        }
        void pack(const Problem& problem, std::span<const PlainArray> arrays, std::span<unsigned char> to) const override {
            pack_rows(problem, {0, problem.own.as<GemmProblem>().n}, arrays, to);
        }
        std::int64_t rows_together() const override { return QuantisedLayout::block_rows; }
        void pack_rows(const Problem& problem, RowRange rows, std::span<const PlainArray> arrays,
                       std::span<unsigned char> to) const override {
            pack_weights(problem.own.as<GemmProblem>(), rows, arrays, to);
        }
        void unpack_rows(const Problem& problem, RowRange rows, std::span<const unsigned char> packed,
                         std::span<double> to) const override {
            unpack_weights(problem.own.as<GemmProblem>(), rows, packed, to);
        }
    };
    static const GemmPacks packs;
    return packs;
}

}  // namespace rooftile
