// Groups by cuBLASLt: one product after the other, as a program without grouped products launches them. Recorded as a graph, as
// everything timed is, so that the host's part is not counted.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rooftile/gemm/device/cublaslt.hpp"

namespace rooftile {

class CublasLtLoop {
  public:
    /// Of a problem with groups: for every group with rows what the heuristic names first, with its epilogue. Null with the reason in `missing`.
    static std::unique_ptr<CublasLtLoop> open(const GemmProblem& problem, std::string& missing, const CublasLt* before = nullptr);

    /// On tensors as Operation::tensors() has them.
    void launch(Stream stream, std::span<void* const> tensors) const;
    std::size_t launches() const { return groups_.size(); }
    /// One of them, whose library and workspace serve the next problem.
    const std::shared_ptr<const CublasLt>& any() const { return groups_.front().product; }

  private:
    struct Group {
        std::shared_ptr<const CublasLt> product;  ///< groups that are alike share it
        std::vector<std::int64_t> begins;         ///< bytes from the tensors' beginnings, the offsets left out
    };
    std::vector<Group> groups_;
};

}  // namespace rooftile
