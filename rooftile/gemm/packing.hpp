// Operands that TMA cannot take as they lie, copied into a workspace before the GEMM: which, how large, how long it takes.
#pragma once

#include <cstdint>
#include <numeric>

#include "rooftile/gemm/hardware.hpp"
#include "rooftile/gemm/plan.hpp"

namespace rooftile {

struct PackedOperands {
    bool a = false, b = false;
    bool any() const { return a || b; }
};

/// An operand's lines in the workspace: each begins on a 128-byte line of L2. Counts in elements.
struct PackedCopy {
    std::int64_t lines, width, pitch;  ///< of one matrix
    std::int64_t matrices = 1;         ///< one behind the other
    int element_bytes = 2;
    std::int64_t stride() const { return lines * pitch; }
    /// A multiple of 128 B.
    std::int64_t bytes() const { return matrices * stride() * element_bytes; }
    /// Of a line; zeros from `width` on.
    std::int64_t filled() const { return (width + vector() - 1) / vector() * vector(); }
    /// As many as the operand has.
    std::int64_t read_bytes() const { return matrices * lines * width * element_bytes; }

    int vector() const { return 16 / element_bytes; }  ///< elements of one store
    static constexpr int alignment = 128;     ///< B, of a line and of the workspace
};
/// Bytes that lines so far apart begin at multiples of, up to one of L2's lines.
constexpr std::int64_t line_step(std::int64_t pitch_bytes) {
    return std::gcd(pitch_bytes, std::int64_t{PackedCopy::alignment});
}
/// Of an operand whose matrices are `mn` x `k`. Of 8 bits the copy's lines run along K, whatever the operand's do.
PackedCopy packed_copy(Type type, Major major, std::int64_t mn, std::int64_t k, std::int64_t matrices);

PackedCopy copy_of_a(const GemmProblem& problem);
/// Or what is unpacked there; of a problem behind that, or behind widening.
PackedCopy copy_of_b(const GemmProblem& problem);

/// Of the copies of `packed`, A's first; 0 where nothing is packed.
std::int64_t packed_bytes(const GemmProblem& problem, PackedOperands packed);
/// Bytes that packing reads and writes; of weights that are unpacked, as packed and as numbers of 16 bits, of rows that are
/// widened, of 8 bits and of 16.
double packing_traffic(const GemmProblem& problem, PackedOperands packed);
/// Seconds from the end of the launch before to the end of the one that packs; 0 where nothing is packed.
double packing_seconds(const GemmHardware& hw, const GemmProblem& problem, PackedOperands packed);
/// The hardware to a GEMM of that problem, some of whose operands are packed first: it waits for the packing, and L2 takes longer
/// for lines that lie off those of 128 B.
GemmHardware with_operands(GemmHardware hw, const GemmProblem& problem, PackedOperands packed);

inline PackedOperands packed_operands(const GemmConfig& config) { return {config.pack_a, config.pack_b}; }

}  // namespace rooftile
