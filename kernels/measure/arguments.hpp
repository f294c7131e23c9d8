// What the measure kernels take and return; host and device see the same bytes. No includes but names.
#pragma once

#include "kernels/types.hpp"

namespace rooftile {

/// A matrix in device memory: `lines` lines of `width` contiguous 16-bit elements, `leading` apart.
/// `sets` such matrices follow each other, `pitch` elements apart.
struct MatrixView {
    unsigned short* data;
    long long lines, width, leading;
    long long sets, pitch;
};

/// A tensor as bytes in device memory: `lines` of `line_bytes`, `pitch_bytes` apart.
struct TensorLayout {
    long long lines = 1, line_bytes = 0, pitch_bytes = 0;
    /// From the first to the last, what lies between lines included.
    constexpr long long bytes() const { return pitch_bytes * (lines - 1) + line_bytes; }
};

/// What a fill writes.
enum class Fill : int {
    normal,   ///< standard normal, rounded to the type
    integer,  ///< whole numbers of [-range, range], uniform
};

struct FillArguments {
    MatrixView to;
    unsigned long long seed, stream;  ///< stream: 0 for A, 1 for B, so that equal seeds differ
    Fill fill;
    Type type;
    int range;           ///< of integer
    long long sparsity;  ///< of integer: only where the k index is a multiple of it; 1: everywhere
    bool k_is_width;     ///< which index of `to` is k
};

constexpr int verify_max = 8;  ///< results that one reference judges

/// Each of `results` C[i, j] against one sum over k of A[i, k] * B[k, j]; strides in elements.
struct VerifyArguments {
    const unsigned short* a;
    const unsigned short* b;
    const unsigned short* c[verify_max];  ///< the first `results`
    int results;
    long long m, n, k;
    long long a_m_stride, a_k_stride, b_k_stride, b_n_stride, c_m_stride;
    Type type;
    double gamma;  ///< accumulation_error(k)
};

/// What one CTA saw of one result: a count, and its worst element. In an array, all CTAs of the first result,
/// then all of the second.
struct VerifyRecord {
    unsigned long long wrong;
    double ratio;      ///< error / bound of the worst element; infinite for a wrong class or wrong bits
    double reference;  ///< fp64 sum there
    double bound;
    long long row, column;
    unsigned got, expected;  ///< bits
};

/// Where an SM's clock and the GPU's time stood.
struct ClockStamp {
    unsigned long long cycles;
    unsigned long long nanoseconds;  ///< 0: this SM did not answer
};

}  // namespace rooftile
