// The baseline of an epilogue that cuBLASLt does not have: its product, stored in the result's type, and a kernel of ours of the
// expression behind it.
#pragma once

#include <memory>
#include <string>

#include "rooftile/gemm/device/cublaslt.hpp"
#include "rooftile/machine/machine.hpp"
#include "rooftile/runtime/compiled_kernel.hpp"
#include "rooftile/runtime/driver.hpp"

namespace rooftile {

class CublasLtBehind {
  public:
    /// Null with the reason in `missing` where one of the two is not to be had. Of pairs gates and ups are a batch of two products.
    static std::unique_ptr<const CublasLtBehind> open(const GemmProblem& problem, std::shared_ptr<const Machine> machine, std::string& missing,
                                                      const CublasLt* before = nullptr);
    int algorithms() const { return product_->algorithms(); }
    /// On tensors of the problem as Operation::tensors() has them.
    void launch(int index, Stream stream, std::span<void* const> tensors) const;

  private:
    CublasLtBehind(const GemmProblem& problem, const GemmProblem& product, std::unique_ptr<const CublasLt> library, CompiledKernel behind);
    std::size_t sums_;
    std::size_t half_bytes_;
    std::unique_ptr<const CublasLt> product_;
    CompiledKernel behind_;
    DeviceBuffer sums_memory_, workspace_;
};

}  // namespace rooftile
