#include "rooftile/runtime/compiled_kernel.hpp"

namespace rooftile {

CompiledKernel::CompiledKernel(Plan plan, std::shared_ptr<const Runnable> runnable)
    : plan_(std::move(plan)),
      runnable_(std::move(runnable)),
      code_(std::make_shared<const KernelCode>(runnable_->code())) {}

}  // namespace rooftile
