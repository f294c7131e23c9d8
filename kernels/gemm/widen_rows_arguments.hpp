// Run-time arguments of widen_rows, laid out alike on host and device.
#pragma once

namespace rooftile {

inline constexpr int widen_threads = 256;           ///< of a CTA
inline constexpr int widen_vectors_per_thread = 4;  ///< in flight together
inline constexpr unsigned widen_vector = 8;         ///< elements of one load and of one store of 16 B
inline constexpr int widen_vectors_per_cta = widen_threads * widen_vectors_per_thread;

/// Lines of 8-bit floats, contiguous in each, and where they go as numbers of 16 bits.
struct WidenedRows {
    const unsigned char* from;
    unsigned short* to;  ///< on a 16-byte boundary
    long long lines;
    long long leading, pitch;  ///< elements from one line to the next, there and here; `pitch` a multiple of 8
    unsigned width;            ///< elements of a line

    /// Stores of a line: the last one ends with zeros.
    constexpr unsigned vectors() const { return width / widen_vector + (width % widen_vector != 0); }
    constexpr long long ctas() const { return (lines * vectors() + (widen_vectors_per_cta - 1)) / widen_vectors_per_cta; }
};

}  // namespace rooftile
