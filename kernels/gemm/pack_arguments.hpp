// Run-time arguments of pack_operands and pack_bytes, laid out alike on host and device.
#pragma once

namespace rooftile {

inline constexpr int pack_threads = 256;           ///< of a CTA
inline constexpr int pack_vectors_per_thread = 4;  ///< in flight together
inline constexpr int pack_vector_bytes = 16;       ///< of one store
inline constexpr int pack_vectors_per_cta = pack_threads * pack_vectors_per_thread;

/// Lines, contiguous in each, and where their copies go: of one matrix, or of a batch of them.
struct PackedLines {
    const unsigned char* from;
    unsigned char* to;         ///< on a 16-byte boundary
    long long lines;           ///< 0: nothing to copy
    long long leading, pitch;  ///< bytes from one line to the next, there and here; `pitch` a multiple of 16
    unsigned width;            ///< bytes of a line
    unsigned matrices;
    long long stride, packed_stride;  ///< bytes from one matrix to the next, there and here

    /// Stores of a line: the last one ends with zeros where `width` is no multiple of 16.
    constexpr unsigned vectors() const { return width / pack_vector_bytes + (width % pack_vector_bytes != 0); }
    /// Of one matrix.
    constexpr long long ctas() const {
        return (lines * vectors() + (pack_vectors_per_cta - 1)) / pack_vectors_per_cta;
    }
};

/// The first a.ctas() CTAs along x copy A, those behind them B; along y they take the matrices of a batch.
struct PackArguments {
    PackedLines a, b;
};

inline constexpr int pack_byte_side = 64;  ///< of a block

/// An operand of 8 bits, `mn` x `k`, and where its copy goes: rows of K, `pitch` apart, a multiple of 16.
struct PackedBytes {
    const unsigned char* from;
    unsigned char* to;
    long long mn, k;  ///< mn 0: nothing to copy
    long long leading, pitch;
    long long stride, packed_stride;
    unsigned matrices;
    bool k_major;

    /// Where K runs along its lines.
    constexpr PackedLines lines() const { return {from, to, mn, leading, pitch, unsigned(k), matrices, stride, packed_stride}; }
    constexpr unsigned blocks_of_k() const { return unsigned((k + (pack_byte_side - 1)) / pack_byte_side); }
    /// CTAs of one matrix.
    constexpr long long ctas() const {
        return k_major ? lines().ctas() : (mn + (pack_byte_side - 1)) / pack_byte_side * blocks_of_k();
    }
};

/// The first a.ctas() CTAs along x copy A.
struct PackBytesArguments {
    PackedBytes a, b;
};

}  // namespace rooftile
