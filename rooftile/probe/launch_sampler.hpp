// What the probes share: the GPU, its compiled kernels, random data, and interleaved runs of them.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/ptx/tensor_map.hpp"
#include "kernels/probe/arguments.hpp"
#include "rooftile/runtime/driver.hpp"
#include "rooftile/runtime/nvrtc.hpp"
#include "rooftile/measure/nvml.hpp"
#include "rooftile/probe/probe.hpp"

namespace rooftile {

/// A program of the probes: one compile, some kernels.
struct ProbeProgram {
    std::string name;  ///< "tma"
    std::string header;
    std::vector<std::string> kernels;
};
/// All of them: "tma", "memory", "ceilings", "sm", "cluster", "dependent", "mma_sync", "wgmma_16" ... "wgmma_256".
std::vector<ProbeProgram> probe_programs();
Source probe_source(const ProbeProgram& program, std::string_view arch);

/// The name of the program that holds wgmma_load<n>.
std::string wgmma_program(int n);

/// Bytes that shared_read and dsmem_read move on a loop: every quarter of a warp still reads 128 in a row.
constexpr unsigned read_step = 528;

/// One thing that is launched and timed by what its CTAs write down.
struct SampledLaunch {
    unsigned ctas = 1;
    std::function<void(Stream stream, DevicePointer records, int round)> launch;
};

/// Of one run, a sample a round.
struct LaunchSamples {
    std::vector<double> seconds;  ///< first CTA's begin to last CTA's end
    std::vector<double> cycles;   ///< the median CTA's
    std::vector<double> clock_hz;
    std::vector<double> boxes;  ///< the median CTA's
};

/// One round of samples from what its CTAs wrote.
void add_sample(LaunchSamples& samples, std::span<const ProbeRecord> records);

class LaunchSampler {
  public:
    /// In the current context of `device`; may use `seconds` from now on.
    LaunchSampler(int device, double seconds);

    const DeviceInfo& device() const { return device_; }
    int sms() const { return device_.sm_count; }
    Stream stream() const { return stream_; }
    std::shared_ptr<const Nvml> nvml();
    double seconds_left() const;

    /// Compiles (or finds in the cache) and loads these programs, in parallel.
    void load(const std::vector<std::string>& programs);
    /// A kernel of a loaded program, allowed all the dynamic shared memory it may ask for.
    const Function& kernel(std::string_view program, std::string_view expression);

    /// Normal random bf16 numbers, at least `bytes` of them; made once, the largest request decides.
    DevicePointer random(std::size_t bytes);
    DevicePointer zeros(std::size_t bytes);

    /// Every run once to warm up, then `rounds` times, in an order that changes with the round. Nothing waits
    /// in between, so the GPU stays busy.
    std::vector<LaunchSamples> interleave(const std::vector<SampledLaunch>& runs, int rounds);
    /// One run alone.
    LaunchSamples repeat(const SampledLaunch& run, int rounds) { return interleave({run}, rounds).front(); }
    /// Raises the clock: a tenth of a second of plain work.
    void warm_up();

  private:
    struct Loaded {
        Module module;
        std::map<std::string, Function, std::less<>> kernels;
    };
    DeviceInfo device_;
    StreamOwner stream_;
    std::chrono::steady_clock::time_point end_;
    std::shared_ptr<const Nvml> nvml_;
    std::map<std::string, Loaded, std::less<>> programs_;
    DeviceBuffer random_, zeros_;
};

/// The matrix that streams read: regions of 16 MiB, lines of 8 KiB, as of 4096 elements of 16 bits.
struct StreamMatrix {
    static constexpr std::size_t line_bytes = 8192, region_bytes = std::size_t{16} << 20;
    static constexpr int line_boxes = line_bytes / 128;
};
/// A tensor map over `bytes` at `data` of such lines, in boxes of 64 elements x `box_rows`.
TensorMap stream_map(DevicePointer data, std::size_t bytes, int box_rows, int l2_promotion_bytes = 256);

}  // namespace rooftile
