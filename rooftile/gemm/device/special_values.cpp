// Where the special case injects its values, and what they are.
#include <algorithm>
#include <cassert>

#include "kernels/measure/numbers.hpp"
#include "kernels/measure/philox.hpp"
#include "rooftile/gemm/device/verify.hpp"

namespace rooftile {

std::int64_t offset_of(const GemmProblem& p, Operand operand, std::int64_t row, std::int64_t column) {
    switch (operand) {
        case Operand::a:
            return p.a_major == Major::k ? row * p.lda + column : column * p.lda + row;
        case Operand::b:
            return p.b_major == Major::k ? column * p.ldb + row : row * p.ldb + column;
        case Operand::c:
            return row * p.ldc + column;
    }
    assert(false);
    return 0;
}

namespace {

/// The pixel that a tap meets at a place; where that is outside, the nearest one.
std::int64_t met_pixel(const ImageOperand& image, std::int64_t place, std::int64_t tap) {
    std::int64_t pixel = 0, pixels = 1;
    for (const ImageAxis& axis : image.axes) {
        pixel += std::clamp<std::int64_t>(place % axis.places() * axis.stride - axis.padding + tap % axis.taps * axis.dilation, 0, axis.extent - 1) * pixels;
        place /= axis.places(), tap /= axis.taps, pixels *= axis.extent;
    }
    return pixel + place * pixels;
}

}  // namespace

std::vector<InjectedValue> special_values(const GemmProblem& p, std::uint64_t seed) {
    std::uint64_t counter = 0;
    // A stream of its own: A and B are filled from streams 0 and 1.
    const auto below = [&](std::int64_t extent) {
        const PhiloxBlock block = philox(counter++, 2, seed);
        const auto wide = (std::uint64_t{block.word[0]} << 32) | block.word[1];
        return static_cast<std::int64_t>(wide % static_cast<std::uint64_t>(extent));
    };
    const auto infinity = [](Type type, bool negative) {
        const FloatFormat f = float_format(type);
        return static_cast<std::uint16_t>(f.infinity() | (negative ? f.sign_bit() : 0));
    };
    const auto nan = [](Type type) { return static_cast<std::uint16_t>(float_format(type).magnitude_bits()); };
    // A product just beyond a result of the operands' type that fp32 still holds: fp16 2^12 * 2^12; bf16 (181/128)^2 * 2^127,
    // and 181^2 / 2^14 = 1.99957 lies between its threshold 2 - 2^-8 = 1.99609 and fp32's 2 - 2^-24. Of 8 bits the largest ones.
    const auto large = [](Type type, bool of_a) {
        if (is_fp8(type)) return static_cast<std::uint16_t>(float_format(type).infinity() - 1);
        const double value = type == Type::bf16 ? 1.4140625 * power_of_two(of_a ? 63 : 64) : 4096;
        return static_cast<std::uint16_t>(round_to_bits(value, type));
    };
    const std::uint16_t large_a = large(p.a_type, true), large_b = large(p.b_type, false);
    const std::int64_t shared_k = below(p.k);
    std::vector<InjectedValue> values = {
        {Operand::a, below(p.m), shared_k, large_a},
        {Operand::b, shared_k, below(p.n), large_b},
        {Operand::a, below(p.m), below(p.k), nan(p.a_type)},
        {Operand::b, below(p.k), below(p.n), nan(p.b_type)},
        {Operand::a, below(p.m), below(p.k), infinity(p.a_type, false)},
        {Operand::b, below(p.k), below(p.n), infinity(p.b_type, true)},
    };
    if (p.image) {
        // Its rows are pixels here, and columns their channels; the other operand's stand at one tap of them. Two pixels lie at the border.
        const ImageOperand& image = *p.image;
        const Operand of_image = p.image_is_b() ? Operand::b : Operand::a;
        for (InjectedValue& value : values) {
            if (value.operand != of_image) continue;
            const bool meets = p.image_is_b() && value.row == shared_k && value.bits == large_b;
            value.row = meets ? met_pixel(image, shared_k, value.column / image.channels) : below(image.pixels());
            value.column = p.image_is_a() && p.b_major != Major::k ? value.column / image.taps() : value.column % image.channels;
        }
        const std::size_t first = p.image_is_b() ? 3 : 2;
        values[first].row = 0, values[first + 2].row = image.pixels() - 1;
        return values;
    }
    if (p.is_quantised()) {  // whose weights are finite
        // Where zero points are numbers a group's A is summed by itself: what is large there stays where the weight is 0.
        const bool apart = p.quantised.zeros == ZeroType::real;
        std::erase_if(values, [&](const InjectedValue& value) {
            return value.operand == Operand::b || (apart && class_of_bits(value.bits, p.a_type) != NumberClass::nan);
        });
        return values;
    }
    if (p.groups) {
        // B's values where a row of A meets them; the two large ones in one group.
        const std::vector<std::int32_t> offsets = p.groups->offsets();
        const auto group_of = [&offsets](std::int64_t row) {
            return std::upper_bound(offsets.begin(), offsets.end(), row) - offsets.begin() - 1;
        };
        for (InjectedValue& value : values)
            if (value.operand == Operand::b) value.matrix = group_of(value.bits == large_b ? values[0].row : below(p.m));
        return values;
    }
    if (p.batch == 1) return values;
    // The two large ones meet in one product.
    const std::int64_t product = below(p.batch);
    for (InjectedValue& value : values) {
        const bool meets = value.bits == large_a || value.bits == large_b;
        const std::int64_t matrices = value.operand == Operand::a ? p.a_matrices() : p.b_matrices();
        value.matrix = std::min(meets ? product : below(p.batch), matrices - 1);
    }
    return values;
}

}  // namespace rooftile
