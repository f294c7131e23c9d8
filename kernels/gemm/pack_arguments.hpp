// Run-time arguments of pack_operands and pack_bytes, laid out alike on host and device.
#pragma once

namespace rooftile {

inline constexpr int pack_threads = 256;           ///< of a CTA
inline constexpr int pack_vectors_per_thread = 4;  ///< in flight together
inline constexpr int pack_vector_elements = 8;     ///< of 16 bits: the 16 bytes of one store
inline constexpr int pack_vectors_per_cta = pack_threads * pack_vectors_per_thread;

/// Lines of 16-bit elements, contiguous in each, and where their copies go: of one matrix, or of a batch of them.
struct PackedLines {
    const unsigned short* from;
    unsigned short* to;        ///< on a 16-byte boundary
    long long lines;           ///< 0: nothing to copy
    long long leading, pitch;  ///< elements from one line to the next, there and here; `pitch` a multiple of 8
    int width;                 ///< elements of a line
    unsigned matrices;
    long long stride, packed_stride;  ///< elements from one matrix to the next, there and here

    /// Stores of a line: the last one ends with zeros where `width` is no multiple of 8.
    constexpr unsigned vectors() const {
        return (unsigned(width) + (pack_vector_elements - 1)) / pack_vector_elements;
    }
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

    constexpr unsigned blocks_of_k() const { return unsigned((k + (pack_byte_side - 1)) / pack_byte_side); }
    constexpr long long blocks() const { return (mn + (pack_byte_side - 1)) / pack_byte_side * blocks_of_k(); }
};

/// The first a.blocks() CTAs along x copy A.
struct PackBytesArguments {
    PackedBytes a, b;
};

}  // namespace rooftile
