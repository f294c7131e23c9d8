#include "rooftile/runtime/compiled_kernel.hpp"

#include "rooftile/runtime/cache.hpp"

namespace rooftile {

KernelCode code_of(const Source& source, const CachedCompile& compiled, double seconds) {
    return {.name = source.name_expressions.front(),
            .lowered_name = compiled.compiled.lowered_names.front(),
            .arch = source.arch,
            .source = {},
            .cubin = compiled.compiled.cubin,
            .hash = compiled.key.hash,
            .entry = compiled.compiled.entries.front(),
            .from_cache = compiled.from_cache,
            .compile_seconds = seconds};
}

CompiledKernel::CompiledKernel(Plan plan, std::shared_ptr<const Runnable> runnable)
    : plan_(std::move(plan)),
      runnable_(std::move(runnable)),
      code_(std::make_shared<const KernelCode>(runnable_->code())) {}

void CompiledKernel::launch(Stream stream, std::span<void* const> tensors, void* workspace) const {
    runnable_->launch(stream, tensors, workspace);
    keep_for_capture(stream, runnable_);
}

CompiledKernel CompiledKernel::of(Plan plan, std::shared_ptr<const Runnable> runnable) const {
    CompiledKernel out = *this;  // the code is shared
    out.plan_ = std::move(plan);
    out.runnable_ = std::move(runnable);
    return out;
}

}  // namespace rooftile
