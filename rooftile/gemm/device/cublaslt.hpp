// cuBLASLt as the yardstick: the same product on the same buffers, by any of the algorithms its
// heuristic offers, with its own epilogue where it has one for the problem's. Opened at run time; where it is missing, the reason is a value.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rooftile/runtime/driver.hpp"
#include "rooftile/gemm/problem.hpp"

namespace rooftile {

/// Workspace given to every algorithm, in bytes: what NVIDIA recommends for Hopper.
inline constexpr std::size_t cublaslt_workspace_bytes = std::size_t{32} << 20;
inline constexpr int cublaslt_algorithms = 8;  ///< asked of the heuristic

/// How a problem is put to a column-major library. Its C is our C transposed, so its left operand is our
/// B and its right operand our A. `rows` run along the contiguous index.
struct ColumnMajorProblem {
    struct Layout {
        std::int64_t rows = 0, columns = 0, leading = 0;
        bool transposed = false;
    };
    Layout left, right, result;  ///< left: our B, right: our A, result: our C
};
ColumnMajorProblem column_major(const GemmProblem& problem);

/// One problem with the algorithms found for it, best first in the library's own opinion. Belongs to the
/// context current at construction; launches are asynchronous and can be captured.
class CublasLt {
  public:
    /// Null with the reason in `missing` where the library is not there, or offers nothing for it. Takes the
    /// open library and the workspace of `before`, which saves some 10 ms.
    static std::unique_ptr<CublasLt> open(const GemmProblem& problem, std::string& missing,
                                          const CublasLt* before = nullptr);
    ~CublasLt();
    CublasLt(const CublasLt&) = delete;
    CublasLt& operator=(const CublasLt&) = delete;

    int algorithms() const;
    std::size_t version() const;  ///< 130100 for 13.1.0
    /// The problem by algorithm `index` on `stream`, on tensors as Operation::tensors() has them. Throws Error(gpu_failed).
    void launch(int index, Stream stream, std::span<void* const> tensors) const;
    /// Its gelu is by tanh where the problem's is by erf.
    bool other_gelu() const;

    struct State;
    struct Opened;

  private:
    explicit CublasLt(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace rooftile
