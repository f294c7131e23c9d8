// How a plan is compiled, beside what it says itself.
#pragma once

#include <functional>

#include "kernels/types.hpp"

namespace rooftile {

struct Compiled;
struct Source;

struct CompileOptions {
    bool cache = true;       ///< read and write the cache of cache_settings()
    bool line_info = false;  ///< for sanitizers and profilers
    /// A kernel without it takes its time and computes nothing.
    Ablation ablated = Ablation::nothing;
    /// Launches may begin while the kernel ahead of them ends (programmatic dependents), of kernels that do not by themselves and whose
    /// architecture can: they wait for it at their start. What is launched cooperatively stays as it is.
    bool dependent = false;
    /// Changes what is compiled: for kernels that are wrong on purpose. The cache neither gives nor keeps them, and spills or
    /// serialised wgmmas, for which a planned kernel is refused, are taken. What it puts into the source must outlive the kernel.
    std::function<void(Source&)> alter = {};
    /// Told of each text and what became of it. No other kernel shares the code then.
    std::function<void(const Source&, const Compiled&)> told = {};
};

}  // namespace rooftile
