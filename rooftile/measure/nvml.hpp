// SM clock, power and temperature of one GPU, from NVML where there is one. Absent is not an error.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace rooftile {

/// What the GPU reports about itself at one moment; empty where it does not say.
struct GpuState {
    std::optional<double> sm_clock_mhz, power_w, temperature_c;
    /// Bits of NVML's clocksEventReasons: why the clock is not higher.
    std::optional<unsigned long long> clock_reasons;
};

/// One GPU in NVML. Reading it needs no CUDA context.
class Nvml {
  public:
    /// The GPU at `pci_bus_id` ("0000:1b:00.0"); null where NVML or the GPU in it is not found.
    static std::shared_ptr<const Nvml> open(std::string_view pci_bus_id);

    GpuState state() const;
    std::optional<double> power_limit_w() const;
    /// Drawn since the driver was loaded; the difference of two readings over their time is the mean power.
    std::optional<double> energy_j() const;
    std::string driver_version() const;  ///< "580.82.07"; empty where unknown

    struct Functions;

  private:
    Nvml() = default;
    std::shared_ptr<const Functions> functions_;
    void* device_ = nullptr;
};

/// Words for the bits of `clock_reasons` that slow a busy GPU down: "power cap, thermal"; empty for none.
std::string clock_reason_words(unsigned long long reasons);

/// Means over a region in time, and how often each was read.
struct GpuStateMeans {
    std::optional<double> sm_clock_mhz, power_w, temperature_c;
    unsigned long long clock_reasons = 0;  ///< every bit seen
    int samples = 0;
};

/// Reads a GPU's state in a thread of its own, every 20 ms, and keeps what was read while it is enabled.
class GpuSampler {
  public:
    /// Does nothing at all where `gpu` is null.
    explicit GpuSampler(std::shared_ptr<const Nvml> gpu,
                        std::chrono::milliseconds period = std::chrono::milliseconds(20));
    ~GpuSampler();
    GpuSampler(const GpuSampler&) = delete;
    GpuSampler& operator=(const GpuSampler&) = delete;

    /// From now on samples count towards `slot` (from 0); -1: towards none.
    void attribute(int slot) { slot_.store(slot, std::memory_order_relaxed); }
    /// Stops, and returns the means of every slot up to the highest used.
    std::vector<GpuStateMeans> stop();

  private:
    void run(std::chrono::milliseconds period);

    std::shared_ptr<const Nvml> gpu_;
    std::atomic<int> slot_{-1};
    std::atomic<bool> stopping_{false};
    std::vector<std::pair<int, GpuState>> samples_;  ///< the thread's own until it is joined
    std::thread thread_;
};

/// Means of what was read for each slot.
std::vector<GpuStateMeans> means_by_slot(const std::vector<std::pair<int, GpuState>>& samples);

}  // namespace rooftile
