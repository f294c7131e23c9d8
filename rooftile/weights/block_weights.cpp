// Weights in blocks of ggml, each with its scales, as ggml's own conversions to fp32 have them (gguf-py, quants.py).
#include <fmt/core.h>

#include <algorithm>

#include "kernels/measure/numbers.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/units_text.hpp"
#include "rooftile/weights/stored_weights.hpp"

namespace rooftile {
namespace {

using Block = std::span<const unsigned char>;

float half_at(Block block, std::size_t at) { return float(value_of_bits(little_endian<std::uint16_t>(block, at), Type::fp16)); }

constexpr std::int64_t group = 32;

/// Where the numbers of one block go.
struct Into {
    signed char* q;  ///< of its first weight
    float *scales, *less;
};

/// Of 32 weights: a scale, then 16 bytes whose low halves are the first 16 weights, and whose high halves the others; 8 is added to them.
void read_q4_0(Block block, const Into& to) {
    *to.scales = half_at(block, 0);
    for (std::size_t i = 0; i < 16; ++i) {
        const int byte = block[2 + i];
        to.q[i] = static_cast<signed char>((byte & 15) - 8), to.q[16 + i] = static_cast<signed char>((byte >> 4) - 8);
    }
}

/// Of 32 weights: a scale, then these.
void read_q8_0(Block block, const Into& to) {
    *to.scales = half_at(block, 0);
    for (std::size_t i = 0; i < 32; ++i) to.q[i] = static_cast<signed char>(block[2 + i]);
}

/// Of 256 weights: two numbers that scale the 6-bit scales and minima of 8 groups, these in 12 bytes, then 4 times 32 bytes, whose low
/// halves are one group and whose high halves the next.
void read_q4_k(Block block, const Into& to) {
    const float scale = half_at(block, 0), minimum = half_at(block, 2);
    const Block sixes = block.subspan(4, 12), weights = block.subspan(16);
    for (std::size_t g = 0; g < 8; ++g) {
        const auto six = [&](std::size_t first, int shift) {
            // The first four groups have 6 bits of a byte; of the others 4 bits are in the last bytes, and 2 on top of the first.
            return g < 4 ? sixes[first + g] & 63 : (sixes[g + 4] >> shift & 15) | (sixes[first + g - 4] >> 6) << 4;
        };
        to.scales[g] = scale * float(six(0, 0)), to.less[g] = minimum * float(six(4, 4));
        for (std::size_t i = 0; i < 32; ++i) to.q[g * 32 + i] = static_cast<signed char>(weights[g / 2 * 32 + i] >> g % 2 * 4 & 15);
    }
}

/// Of 32 weights: the exponent of a power of two, then 16 bytes of e2m1 as Q4_0 has its own.
void read_mxfp4(Block block, const Into& to) {
    *to.scales = float(power_scale(block[0]));
    for (std::size_t i = 0; i < 16; ++i)
        to.q[i] = static_cast<signed char>(block[1 + i] & 15), to.q[16 + i] = static_cast<signed char>(block[1 + i] >> 4);
}

struct BlockFormat {
    const char *name, *weights, *zero;
    std::int64_t elements, bytes;
    void (*read)(Block, const Into&);
};
constexpr BlockFormat formats[] = {{"Q4_0", "int4", "none", 32, 18, read_q4_0},
                                   {"Q4_K", "uint4", "float", 256, 144, read_q4_k},
                                   {"Q8_0", "int8", "none", 32, 34, read_q8_0},
                                   {"MXFP4", "mxfp4", "none", 32, 17, read_mxfp4}};

class BlockWeights final : public StoredWeights {
  public:
    BlockWeights(const StoredTensor& tensor, const BlockFormat& of) : tensor_(tensor), of_(of) {
        name = tensor.name, format = of.name, weights = of.weights, zero = of.zero;
        n = tensor.extents[0], k = tensor.extents[1];
        group = rooftile::group;
        if (weights == "mxfp4") scale = "e8m0";
        file_bytes = std::int64_t(tensor.bytes.size());
    }
    PlainRows rows(RowRange range) const override {
        PlainRows out(range, k, groups());
        if (zero == "float") out.less.resize(out.scales.size());
        if (weights == "mxfp4") out.table = e2m1_numbers();
        const std::int64_t of_row = k / of_.elements, of_block = of_.elements / group;
        for (std::int64_t i = 0; i < range.count * of_row; ++i) {
            const auto block = tensor_.bytes.subspan(std::size_t((range.first * of_row + i) * of_.bytes), std::size_t(of_.bytes));
            of_.read(block, {out.q.data() + i * of_.elements, out.scales.data() + i * of_block,
                             out.less.empty() ? nullptr : out.less.data() + i * of_block});
        }
        return out;
    }

  private:
    StoredTensor tensor_;
    const BlockFormat& of_;
};

}  // namespace

std::unique_ptr<const StoredWeights> block_weights(const StoredTensor& tensor) {
    const auto* of = std::ranges::find(formats, tensor.type, &BlockFormat::name);
    if (of != std::end(formats) && tensor.extents.size() == 3)
        throw RequestError(fmt::format("{} is {} of 3 axes, {} matrices; name one of them, as {}[0]", printable(tensor.name), tensor.type,
                                       tensor.extents[0], printable(tensor.name)));
    if (of == std::end(formats) || tensor.extents.size() != 2)
        throw RequestError(fmt::format("{} is {} of {} axes; packed are Q4_0, Q4_K, Q8_0 and MXFP4 of two, and layers of AWQ and GPTQ",
                                       printable(tensor.name), tensor.type, tensor.extents.size()));
    if (tensor.extents[1] % of->elements != 0)
        throw RequestError(
            fmt::format("{} has rows of {}; blocks of {} have {}", printable(tensor.name), tensor.extents[1], of->name, of->elements));
    // A safetensors file may call anything so, of any size.
    const auto bytes = std::int64_t(tensor.bytes.size());
    const std::int64_t n = tensor.extents[0], of_row = tensor.extents[1] / of->elements;
    if (n < 1 || of_row < 1 || of_row > bytes / of->bytes || n != bytes / of->bytes / of_row || n * of_row * of->bytes != bytes)
        throw RequestError(fmt::format("{} is {} of {} x {} and has {} B; is the file whole?", printable(tensor.name), of->name, n,
                                       tensor.extents[1], bytes));
    return std::make_unique<const BlockWeights>(tensor, *of);
}

}  // namespace rooftile
