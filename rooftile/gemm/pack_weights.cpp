#include "rooftile/gemm/pack_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

#include "kernels/measure/numbers.hpp"
#include "rooftile/error.hpp"

namespace rooftile {
namespace {

/// Numbers of one array by row and column, whichever type holds them.
class Numbers {
  public:
    Numbers(const char* name, const PlainArray& array, std::int64_t rows, std::int64_t columns, std::initializer_list<std::string_view> types)
        : name_(name), array_(array) {
        if (array.rows != rows || array.columns != columns)
            throw RequestError(fmt::format("{} is [{}, {}]; here it is [{}, {}]", name, array.rows, array.columns, rows, columns));
        if (std::ranges::find(types, array.type) == types.end())
            throw RequestError(fmt::format("{} is {}; accepted are {}", name, array.type, fmt::join(types, ", ")));
        if (!array.data) throw RequestError(fmt::format("{} is null", name));
    }
    double at(std::int64_t row, std::int64_t column) const {
        const std::int64_t i = row * array_.columns + column;
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
};

/// A weight or a zero point as 4 bits without a sign.
class FourBits {
  public:
    explicit FourBits(const QuantisedLayout& layout) : bias_(layout.bias()) {}
    unsigned of(const Numbers& numbers, std::int64_t row, std::int64_t column) const {
        const double biased = numbers.at(row, column) + bias_;
        if (biased < 0 || biased > 15) numbers.refuse(row, column, bias_ > 0 ? "-8 .. 7" : "0 .. 15");
        return unsigned(biased);
    }

  private:
    int bias_;
};

void put(std::span<unsigned char> to, std::int64_t at, const auto& value) { std::memcpy(to.data() + at, &value, sizeof value); }

}  // namespace

void pack_weights(const GemmProblem& p, std::span<const PlainArray> arrays, std::span<unsigned char> to) {
    const QuantisedLayout& layout = p.quantised;
    const std::int64_t groups = layout.groups(p.k);
    const std::size_t wanted = layout.zeros ? 3 : 2;
    if (arrays.size() != wanted)
        throw RequestError(fmt::format("{} arrays are given; these weights are packed of {}", arrays.size(), layout.zeros ? "q, scales and zeros" : "q and scales"));
    assert(std::int64_t(to.size()) == layout.bytes(p.n, p.k));
    const Numbers q("q", arrays[0], p.n, p.k, {"int8", "uint8"}), scales("scales", arrays[1], p.n, groups, {"fp32", "fp16", "bf16"});
    const Numbers zeros = layout.zeros ? Numbers("zeros", arrays[2], p.n, groups, {"int8", "uint8"}) : q;
    const FourBits bits(layout);
    std::ranges::fill(to, static_cast<unsigned char>(0));
    put(to, 0, layout.fingerprint()), put(to, 4, std::uint32_t(p.n)), put(to, 8, std::uint32_t(p.k));
    for (std::int64_t n = 0; n < p.n; ++n) {
        const int row = int(n % layout.block_rows);
        for (std::int64_t first = 0; first < p.k; first += layout.block_k) {
            const std::int64_t block = layout.block_at(n, first, p.k);
            for (int k = 0; k < std::min<std::int64_t>(layout.block_k, p.k - first); ++k) {
                // Four bits of a byte: the word is little-endian, as the GPU reads it.
                const int shift = layout.shift_of(row, k);
                to[std::size_t(block + layout.word_of(row, k) * 4 + shift / 8)] |= static_cast<unsigned char>(bits.of(q, n, first + k) << shift % 8);
            }
            for (int k = 0; k < layout.block_k && first + k < p.k; k += layout.scaled_k()) {
                const std::int64_t group = layout.group == 0 ? 0 : (first + k) / layout.group;
                const unsigned scale = round_to_bits(scales.at(n, group), layout.scale);
                if (class_of_bits(scale, layout.scale) != NumberClass::finite)
                    scales.refuse(n, group, fmt::format("finite numbers of {}", name_of(layout.scale)));
                put(to, block + layout.scale_at(row, k), static_cast<std::uint16_t>(scale));
                if (layout.zeros) put(to, block + layout.zero_at(row, k), static_cast<unsigned char>(bits.of(zeros, n, group)));
            }
        }
    }
}

const Packs& gemm_packs() {
    class GemmPacks final : public Packs {
      public:
        std::int64_t packed_bytes(const Problem& problem) const override {
            const auto& p = problem.own.as<GemmProblem>();
            if (!p.is_quantised()) throw RequestError("nothing is packed by this request; give types as bf16,int4,bf16");
            return p.quantised.bytes(p.n, p.k);
        }
        void pack(const Problem& problem, std::span<const PlainArray> arrays, std::span<unsigned char> to) const override {
            pack_weights(problem.own.as<GemmProblem>(), arrays, to);
        }
    };
    static const GemmPacks packs;
    return packs;
}

}  // namespace rooftile
