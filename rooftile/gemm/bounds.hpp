// What no schedule of a GEMM can go below, at each level of memory [M33].
//
// Of C += A B, take any stretch of the work during which a memory of S bytes reads 2S. All that is multiplied
// in it was there or was read: a N_A + b N_B + s N_C <= 3S for the distinct elements of A, B and sums, of a,
// b and s bytes. From N_A, N_B and N_C elements come at most sqrt(N_A N_B N_C) products (Loomis and Whitney),
// which is at most sqrt(S^3 / (a b s)). So M N K products take at least
//     Q >= 2 M N K sqrt(a b s / S) - 2 S                          bytes read
// (Smith, Lowery, Langou, van de Geijn 2017 for a = b = s). C = A B reads no C, but writes it: less s M N
// that it need not read, more c M N that it writes. Sums are as wide as C at least; where they are held in
// fp32, and C is narrower, both forms stand, and the larger counts. U memories of S bytes each, between which
// nothing passes but by the level below, lose 2 S each; what they make of the same element of C must be
// brought together, which costs no less than one of them saves.
//
// Of an image an element stands at up to U places of A (taps over strides): N_A elements give U N_A places, and Q >= 2 M N K sqrt(a b s / (U S))
// - 2 S follows as above.
//
// What an epilogue reads, and scales of blocks, come on top: the stretches above are of bytes of A, B and sums alone, and none of these
// others stands in for them.
//
// The form 2 M N K / sqrt(S) + M N, without the loss of 2 S, is no bound: M = N = 16384, K = 1024 in bf16
// with S = 50 MB gives 757 MB, and a plain tile schedule row by row moves 604.
#pragma once

#include "rooftile/gemm/model.hpp"

namespace rooftile {

/// Elements, and bytes of one: of A, B, C, and of a sum while it is made. Of a batch the products and the matrices that there are.
struct GemmSizes {
    double m, n, k;
    double a_bytes, b_bytes;
    int c_bytes, sum_bytes;
    double products = 1, a_matrices = 1, b_matrices = 1;
    double a_columns = k;  ///< of A in memory: of an image fewer than k
    double reuse = 1;      ///< places of A that an element of it stands at, at most
};
GemmSizes sizes_of(const GemmProblem& problem);

/// The least bytes into and out of `units` memories of `storage` bytes each, every one with matrix units of
/// its own. Never below A and B read once and C written once.
double min_traffic_bytes(const GemmSizes& sizes, double storage, double units);

/// The least bytes any schedule moves between DRAM and the chip, all of whose storage counts; the compulsory
/// ones where that is unknown.
double dram_lower_bound_bytes(const GemmHardware& hw, const GemmProblem& problem);

/// The least bytes that SMs in clusters of the tile's size ask of L2 and write to it, whatever they do: each
/// cluster may share what one of its SMs has. NaN where an SM's storage or the count of SMs is unknown.
double l2_lower_bound_bytes(const GemmHardware& hw, const GemmConfig& tile, const GemmProblem& problem);

/// What a tiling's instructions read of A and B from shared memory, zeros outside C included, and C on its way
/// out of the registers.
double shared_traffic_bytes(const GemmCandidate& tile, const GemmProblem& problem);
/// The least bytes any schedule moves into and out of the SMs' registers, where operands that instructions
/// read from shared memory wait nowhere else. NaN where registers or the count of SMs are unknown.
double shared_lower_bound_bytes(const GemmHardware& hw, const GemmProblem& problem);

}  // namespace rooftile
