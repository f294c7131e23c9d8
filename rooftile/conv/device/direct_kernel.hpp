// Direct convolutions compiled, launched and verified.
#pragma once

#include <memory>

#include "rooftile/conv/direct.hpp"
#include "rooftile/measure/measure_kernels.hpp"
#include "rooftile/measure/reference.hpp"
#include "rooftile/runtime/compiled_kernel.hpp"

namespace rooftile {

Source direct_source(const Plan& plan);
std::shared_ptr<const Runnable> compiled_direct(const Plan& plan, const CompileOptions& options);
/// Each group as a product of the image's rows, written out, by its filters. `kernels` outlive it.
std::unique_ptr<Reference> direct_reference(const MeasureKernels& kernels, const ConvProblem& problem);

}  // namespace rooftile
