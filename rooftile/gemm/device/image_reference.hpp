// An image's rows written out on the GPU, for verification.
#pragma once

#include "rooftile/gemm/problem.hpp"
#include "rooftile/runtime/driver.hpp"
#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile {

Source image_reference_source(std::string_view arch);

/// In the context current at construction. Calls are asynchronous on their stream.
class ImageReference {
  public:
    explicit ImageReference(const GemmProblem& problem);

    /// Rows that unroll() has room for: all, or as many as a gigabyte holds, in whole tiles of the verification.
    std::int64_t rows() const { return rows_; }
    /// Rows from `first` on, `rows` of them, of `image`: [rows][k], valid until the next call.
    const void* unroll(Stream stream, const void* image, std::int64_t first, std::int64_t rows) const;

  private:
    GemmProblem problem_;
    Module module_;
    Function unroll_;
    unsigned ctas_;
    std::int64_t rows_;
    DeviceBuffer to_;
};

}  // namespace rooftile
