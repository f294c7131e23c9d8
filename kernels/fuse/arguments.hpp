// What a fused kernel is told at launch beside its tensors; made by the host.
#pragma once

#include "kernels/divider.hpp"

namespace rooftile::fuse {

/// A number for CTA `block` of `grid` so that those that one SM has come together in `each` neighbouring teams of `team` CTAs
/// and have the same place in them: what rows share is then read by them all. CTAs go to `sms` SMs in turn, `each`
/// to most; some get one fewer, and the SMs behind the last full team take what these lack. The number of teams is a
/// multiple of `each`. Where CTAs are placed otherwise, that is as right, but slower.
constexpr unsigned gathered(unsigned block, unsigned sms, unsigned each, unsigned team, unsigned grid) {
    unsigned sm = block % sms, round = block / sms;
    const unsigned full = grid / each;
    if (full > sms || (each - 1) * sms > grid) return block;  // another GPU than planned for
    if (sm >= full) {
        sm = grid - (each - 1) * sms + (sm - full) * (each - 1) + round;
        round = each - 1;
    }
    return (sm / team * each + round) * team + sm % team;
}

/// Static shared memory of a CTA at most, bytes: what its warps and its cluster tell each other, and the
/// barrier of its bulk copies.
constexpr int exchange_bytes = 1792;
/// The same of a ring's, with the barriers of its slots and what its producers hear of rows.
constexpr int ring_exchange_bytes = 2048;

/// 32-bit words that are reduced together.
constexpr int reduction_words = 4;

/// Of the sums that CTAs left of a tile of columns, loads of a thread on their way at once.
constexpr int gathered_splits = 4;

/// CTAs of a cluster at most.
constexpr int max_cluster = 16;

struct FuseSizes {
    long long rows = 1, columns = 1;  ///< in elements
    long long vectors = 0;            ///< whole vectors: of everything (point-wise), or of a row
    Divider row_vectors{};            ///< point-wise with rows: vectors of a row
    unsigned half_up = 0x10000;       ///< 2^16, for ptx::widen_lower()
    /// Whole reductions: a counter that is 0 between launches, then partials. Rows of CTAs that are no
    /// cluster: kernels/fuse/grid_reduction.cuh. Rings: a counter that is 0 between launches, or null. Zeroed before the
    /// first launch.
    void* workspace = nullptr;
};

}  // namespace rooftile::fuse
