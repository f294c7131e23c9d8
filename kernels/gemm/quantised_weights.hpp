// How weights of 4 or 8 bits lie in memory once they are packed: for who packs, who multiplies and who checks. No includes beyond types:
// NVRTC compiles this file too.
#pragma once

#include "kernels/types.hpp"

namespace rooftile {

/// What the bits of a weight mean: -8 .. 7, 0 .. 15, or -128 .. 127; OCP's 8-bit floats; OCP's microscaled e2m1, a float of 4 bits whose scales are
/// powers of two, of 32 weights each; one of 16 numbers of a table (weight_values.hpp). `none`: B is a matrix of its own type.
enum class WeightType : unsigned char { none, int4, uint4, int8, fp8_e4m3, fp8_e5m2, mxfp4, nf4 };
/// W = q * scale; (q - zero) * scale with a zero point of the range of q; q * scale - zero with a number of the scales' type.
enum class ZeroType : unsigned char { none, integer, real };

/// W[n, k] of weights, scales and zero points; these are of `group` neighbours along K in one row.
///
/// In memory a header of 128 B, then blocks of 64 rows x 128 of K, those of 64 rows one after the other. A block is its weights in the
/// order in which mma.sync m16n8k16 takes its first operand, so that a thread's share of 16 x 64 is one load of 16 B, of 8 bits two; then the
/// scales, 64 of each group; then the zero points, 64 of each group. What is copied into shared memory so is one piece of contiguous bytes.
/// N and K are padded to whole blocks. A row's scale, of group 0, is stored once for each block. Of mxfp4 a scale is the exponent of a bf16, a byte.
struct QuantisedLayout {
    WeightType weights = WeightType::none;
    int group = 128;          ///< of K: 32, 64 or 128; 0: one scale a row
    Type scale = Type::bf16;  ///< or fp16
    ZeroType zeros = ZeroType::none;

    static constexpr int block_rows = 64, block_k = 128, half_k = 64;
    static constexpr int header_bytes = 128, number_bytes = 2;
    static constexpr int power_group = 32;  ///< of scales that are powers of two
    static constexpr unsigned version = 1;

    /// Weights are floats of 8 bits.
    constexpr bool is_float() const { return weights == WeightType::fp8_e4m3 || weights == WeightType::fp8_e5m2; }
    /// Weights are places in a table of 16 numbers.
    constexpr bool is_table() const { return weights == WeightType::mxfp4 || weights == WeightType::nf4; }
    constexpr bool is_whole() const { return !is_float() && !is_table(); }
    /// Scales are powers of two, and a byte is their exponent as a bf16 has it: 1 .. 254, or 0 where the group is.
    constexpr bool power_scales() const { return weights == WeightType::mxfp4; }
    /// In shared memory: each pair of the table's numbers, 4 B, for each lane of a warp.
    constexpr int table_bytes() const { return is_table() ? 256 * 32 * 4 : 0; }
    /// Read from there for so many weights: 4 B for each two.
    constexpr int looked_up_bytes(int rows, int k) const { return is_table() ? rows * k * 2 : 0; }
    constexpr int bits() const { return weights == WeightType::int8 || is_float() ? 8 : 4; }
    constexpr unsigned mask() const { return (1u << bits()) - 1; }
    /// Added to weights and zero points that have a sign, so that the bits hold them without one. Of floats and tables the bits are what is packed.
    constexpr int bias() const { return weights == WeightType::int4 || weights == WeightType::int8 ? 1 << (bits() - 1) : 0; }
    constexpr int weight_bytes() const { return block_rows * block_k * bits() / 8; }
    /// K that has a scale of its own in a block.
    constexpr int scaled_k() const { return group == 0 ? block_k : group; }
    constexpr int block_groups() const { return block_k / scaled_k(); }
    constexpr int scale_bytes() const { return power_scales() ? 1 : number_bytes; }
    constexpr int zero_bytes() const { return zeros == ZeroType::none ? 0 : zeros == ZeroType::integer ? 1 : number_bytes; }
    constexpr int zeros_at() const { return weight_bytes() + block_groups() * block_rows * scale_bytes(); }
    constexpr int block_bytes() const { return zeros_at() + block_groups() * block_rows * zero_bytes(); }

    static constexpr long long row_blocks(long long n) { return (n + block_rows - 1) / block_rows; }
    static constexpr long long k_blocks(long long k) { return (k + block_k - 1) / block_k; }
    constexpr long long bytes(long long n, long long k) const {
        return header_bytes + row_blocks(n) * k_blocks(k) * block_bytes();
    }
    /// Groups along K of the unpacked matrix.
    constexpr long long groups(long long k) const { return group == 0 ? 1 : (k + group - 1) / group; }

    /// Where the block of row n and column k begins.
    constexpr long long block_at(long long n, long long k, long long all_k) const {
        return header_bytes + (n / block_rows * k_blocks(all_k) + k / block_k) * block_bytes();
    }
    /// In a block: the 32-bit word that holds a weight, and by how many bits it is shifted there.
    constexpr int word_of(int row, int k) const {
        const int lane = row % 8 * 4 + k % 8 / 2;
        if (bits() == 4) return k / half_k * 512 + row / 16 * 128 + lane * 4 + k % half_k / 16;
        return k / half_k * 1024 + row / 16 * 256 + k % half_k / 32 * 128 + lane * 4 + k % 32 / 8;
    }
    /// Neighbours along K are unpacked together. Whole numbers of 4 bits are in the word's halves, where a mask leaves both; of a table they are one
    /// byte, which is a place in the table's pairs; of 8 bits whole numbers share a half, from which bytes are dealt out, and floats are in both halves,
    /// where shifts and masks bring both to their place.
    constexpr int shift_of(int row, int k) const {
        const int lower = row % 16 / 8, later = k % 16 / 8, odd = k % 2;
        if (is_table()) return 8 * (lower + later * 2) + 4 * odd;
        if (bits() == 4) return 4 * (lower + later * 2) + 16 * odd;
        return is_float() ? 8 * lower + 16 * odd : 16 * lower + 8 * odd;
    }
    /// Bytes from the block's begin to the scale, and to the zero point, of row and k.
    constexpr int scale_at(int row, int k) const {
        return weight_bytes() + (k / scaled_k() * block_rows + row) * scale_bytes();
    }
    constexpr int zero_at(int row, int k) const { return zeros_at() + (k / scaled_k() * block_rows + row) * zero_bytes(); }

    /// Of a thread that unpacks 8 weights to numbers of `type`, as compiled; tests count them. Whole numbers of 4 bits: a shift, 4 masks, 4 FMAs; of 8
    /// bits: 4 PRMT, 4 FMAs. Floats: of each two a shift and two masks, of every other two a PRMT before, for bf16 an FMA behind; e5m2 is an fp16's
    /// upper byte. Tables: 4 shifts, 4 masks, 4 loads.
    constexpr int unpack_instructions(Type type) const {
        if (is_table()) return 12;
        if (is_float()) return type == Type::bf16 ? 18 : weights == WeightType::fp8_e5m2 ? 4 : 14;
        return bits() == 4 ? 9 : 8;
    }

    /// The header's first word, by which a kernel refuses what was packed for another layout; behind it n and k.
    constexpr unsigned fingerprint() const {
        const unsigned type = static_cast<unsigned>(weights);
        return 0x51540000u | version << 12 | type % 4 << 10 | type / 4 << 1
               | (scale == Type::fp16 ? 1u : 0u) << 9 | (zeros == ZeroType::integer ? 1u : 0u) << 8 | static_cast<unsigned>(group)
               | (zeros == ZeroType::real ? 1u : 0u);
    }

    friend constexpr bool operator==(const QuantisedLayout&, const QuantisedLayout&) = default;
};

}  // namespace rooftile
