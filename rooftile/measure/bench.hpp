// A GPU readied for measuring, and one problem after the other measured on it. For rooftile/measure's own
// sources.
#pragma once

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "rooftile/kernel/kernel.hpp"
#include "rooftile/measure/cublaslt.hpp"
#include "rooftile/measure/measure.hpp"

namespace rooftile {

/// What problems share: our own kernels, NVML, the open cuBLASLt, and whether the GPU is still under load.
class Bench {
  public:
    /// In the current context, on options.device.
    Bench(const MeasureOptions& options, const std::vector<CachedCompile>& own);

    const MeasureOptions& options() const { return options_; }
    const MeasureKernels& kernels() const { return kernels_; }
    const DeviceInfo& device() const { return device_; }
    std::shared_ptr<const Nvml>
    gpu();  ///< opened on first use: after the first result, as it takes some 10 ms
    RunningGpu running();

    /// cuBLASLt for that problem, alive until the next one; null with the reason in `missing`.
    const CublasLt* rival(const GemmProblem& problem, std::string& missing);

    /// Before and after work that keeps the GPU busy. Between them it stands idle: where that lasts, the next
    /// sustained timing begins with the long load again.
    void busy_from_now();
    void busy_until_now() { busy_until_ = std::chrono::steady_clock::now(); }
    /// Of the sustained mode; what follows is under load.
    double load_seconds();

    bool first_result = false;  ///< seen already

  private:
    const MeasureOptions& options_;
    DeviceInfo device_;
    MeasureKernels kernels_;
    std::shared_ptr<const Nvml> gpu_;
    std::unique_ptr<CublasLt> rival_;
    bool loaded_ = false;
    std::chrono::steady_clock::time_point busy_until_{};
};

/// Seconds since `start`.
double seconds_since(std::chrono::steady_clock::time_point start);

/// Adds its lifetime to `timings`.
class Part {
  public:
    Part(std::vector<Timing>& timings, std::string name) : timings_(timings), name_(std::move(name)) {}
    ~Part() { timings_.push_back({name_, seconds_since(start_)}); }
    Part(const Part&) = delete;

  private:
    std::vector<Timing>& timings_;
    std::string name_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// One problem: verify, time, look at what the timed launches left. Fills `run`, whose task is set;
/// `kernels` are in the order of its plans. What the GPU refuses throws Error(gpu_failed).
void measure_shape(Bench& bench, ShapeRun& run, std::vector<KernelOutcome>& kernels);

}  // namespace rooftile
