// Operands in device memory for checking and timing: fenced, poisoned, filled, rotated.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/measure/arguments.hpp"
#include "rooftile/runtime/driver.hpp"
#include "rooftile/gemm/problem.hpp"

namespace rooftile {

enum class Operand : std::uint8_t { a, b, c };

/// One operand's lines, their width and distance, in elements; one set at `data`.
/// A with K contiguous has M lines of K elements, with M contiguous K lines of M; B alike with N. C has M
/// lines of N.
MatrixView operand_view(const GemmProblem& problem, Operand operand, DevicePointer data);

/// Elements from the first to the last of `view`'s one set, padding between lines included.
std::int64_t span_of(const MatrixView& view);

/// One operand between two fences: memory that nobody may touch, 0xFF bytes (NaN in every 16-bit type).
class FencedMatrix {
  public:
    static constexpr std::int64_t fence_bytes = 4096;

    FencedMatrix(const GemmProblem& problem, Operand operand);

    /// Sets every byte, fences and padding too, to 0xFF.
    void poison(Stream stream) const;
    const MatrixView& view() const { return view_; }
    void* data() const { return view_.data; }
    const DeviceBuffer& buffer() const { return buffer_; }
    std::int64_t fence() const { return fence_bytes / 2; }  ///< elements

  private:
    DeviceBuffer buffer_;
    MatrixView view_{};
};

/// Several sets of A, B and C, each operand's in one allocation, 256 bytes aligned.
class OperandSets {
  public:
    OperandSets(const GemmProblem& problem, std::int64_t sets);

    std::int64_t sets() const { return views_[0].sets; }
    const MatrixView& view(Operand operand) const { return views_[static_cast<int>(operand)]; }
    void* data(Operand operand, std::int64_t set) const;

    /// Bytes of one set of that problem.
    static std::int64_t set_bytes(const GemmProblem& problem);

  private:
    DeviceBuffer buffers_[3];
    MatrixView views_[3];
};

/// What fills operand `a` or `b` of `problem`: standard normal numbers, or whole numbers so small and so
/// sparse that every partial sum of a result is exact in fp32: k * range^2 < 2^24.
FillArguments fill_arguments(const GemmProblem& problem, Operand operand, const MatrixView& to, Fill fill,
                             std::uint64_t seed);

struct ExactRange {
    int range;              ///< whole numbers of [-range, range]
    std::int64_t sparsity;  ///< at every `sparsity`-th k, 0 elsewhere
};
/// The widest range up to 8 for sums over `k` products.
ExactRange exact_range(std::int64_t k);

/// Strides that put `problem`'s operands, wherever contiguous, to the reference; `c` are up to verify_max
/// results.
VerifyArguments verify_arguments(const GemmProblem& problem, const void* a, const void* b,
                                 std::span<const void* const> c);
VerifyArguments verify_arguments(const GemmProblem& problem, const void* a, const void* b, const void* c);

}  // namespace rooftile
