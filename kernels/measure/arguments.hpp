// What the measure kernels take and return; host and device see the same bytes.
#pragma once

#include "kernels/measure/numbers.hpp"
#include "kernels/types.hpp"

namespace rooftile {

/// A matrix in device memory: `lines` lines of `width` contiguous elements, `leading` apart.
struct MatrixView {
    void* data;
    long long lines, width, leading;
};

/// A tensor as bytes in device memory: `lines` of `line_bytes`, `pitch_bytes` apart; or several blocks of them.
struct TensorLayout {
    long long lines = 1, line_bytes = 0, pitch_bytes = 0;
    long long blocks = 1, block_pitch_bytes = 0;
    constexpr long long block_bytes() const { return pitch_bytes * (lines - 1) + line_bytes; }
    /// From the first to the last, what lies between lines included.
    constexpr long long bytes() const { return block_pitch_bytes * (blocks - 1) + block_bytes(); }
};

/// What a fill writes.
enum class Fill : int {
    normal,   ///< standard normal, rounded to the type
    integer,  ///< whole numbers: see ExactNumbers
};

/// Whole numbers for sums that are exact in fp32 in any order. At every k both operands are uniform in [-range, range]
/// (where `sparsity` does not divide k: zero), but at every `period`-th k one is uniform in [-wide, wide],
/// all bits of its type's significand, and the other is 1 or -1. The wide one is A and B in turn.
struct ExactNumbers {
    int range;
    long long sparsity;  ///< 1: everywhere
    int wide;
    long long period;
};

constexpr int exact_number(const ExactNumbers& p, bool of_b, long long k, unsigned word) {
    const bool is_wide = k % p.period == 0;
    const bool wide_here = is_wide && (k / p.period % 2 != 0) == of_b;
    if (is_wide && !wide_here) return (word & 1) ? 1 : -1;
    if (!is_wide && k % p.sparsity != 0) return 0;
    const int range = wide_here ? p.wide : p.range;
    return static_cast<int>(word % (2u * static_cast<unsigned>(range) + 1u)) - range;
}

struct FillArguments {
    MatrixView to;
    unsigned long long seed, stream;  ///< stream: 0 for A, 1 for B, so that equal seeds differ
    Fill fill;
    Type type;
    ExactNumbers exact;  ///< of integer
    bool of_b;           ///< of integer: which operand
    bool k_is_width;     ///< which index of `to` is k
};

constexpr int verify_max = 8;    ///< results that one reference judges
constexpr int verify_tile = 64;  ///< rows and columns of a tile of C that is judged as a whole

/// Each of `results` C[i, j] against one sum over k of A[i, k] * B[k, j]; strides in elements.
struct VerifyArguments {
    const void* a;
    const void* b;
    const void* c[verify_max];  ///< the first `results`
    int results;
    long long m, n, k;
    long long a_m_stride, a_k_stride, b_k_stride, b_n_stride, c_m_stride;
    Type a_type, b_type;
    Type type;         ///< of the results
    ErrorModel model;  ///< error_model(k)
    long long first_row;  ///< added to rows of elements that records name: of a batch each product's follow those of the one before
    /// Of sums with a scale for each 128 of k and a row of A, [k / 128][m], and 128 columns of B, [n / 128][k / 128]; else null.
    const float *a_scales, *b_scales;
    long long a_scale_pitch, b_scale_pitch;
    long long sums_pitch;  ///< bounded_sums(): from one row of sums to the next; 0: n
};

/// The element of a result that lies worst.
struct WorstElement {
    double ratio;      ///< error / bound; infinite for a wrong class or wrong bits
    double reference;  ///< fp64 sum there
    double bound;
    long long row, column;
    unsigned got, expected;  ///< bits
};

/// The tile of a result, verify_tile squared or what is left of it, whose errors together lie worst. Errors are
/// root mean squares, as shares of sigma. Of a batch it does not say which product's.
struct WorstTile {
    double ratio;  ///< error / allowed
    double error, allowed;
    long long row, column;  ///< of its first element
};

/// What one CTA saw of one result: counts, its worst element, its worst tile, and the sums over all its tiles.
/// In an array, all CTAs of the first result, then all of the second. Of tiles nothing in the exact case.
struct VerifyRecord {
    unsigned long long wrong;  ///< elements
    WorstElement worst;
    unsigned long long wrong_tiles;
    WorstTile worst_tile;
    double errors;            ///< sum of (error / sigma)^2
    ExpectedErrors expected;  ///< of the same elements
};

/// Where an SM's clock and the GPU's time stood.
struct ClockStamp {
    unsigned long long cycles;
    unsigned long long nanoseconds;  ///< 0: this SM did not answer
};

}  // namespace rooftile
