// A run as its recording would have it: kernels asked for in ranges, by hand.
#pragma once

#include <string_view>
#include <vector>

#include "rooftile/profile/recorded.hpp"

namespace rooftile {

/// Names are literals. Times in ns; `sms` of the one device.
class MadeRun {
  public:
    explicit MadeRun(const char* gpu = "NVIDIA H200", int sms = 132) {
        recorded_.process = 7, recorded_.begin = 1;
        RecordedGpu device;
        device.name = gpu, device.sms = sms, device.compute_major = 9, device.shared_per_sm = 233472, device.registers_per_sm = 65536;
        device.threads_per_sm = 2048, device.ctas_per_sm = 32, device.shared_reserved = 1024;
        recorded_.devices.push_back(device);
    }
    void range(std::string_view name, std::uint64_t start, std::uint64_t end) {
        NamedRange range;
        range.start = start, range.end = end, range.name = name, range.thread = 1;
        recorded_.ranges.push_back(range);
    }
    /// Asked for at `asked`, by a call of 10 ns.
    DeviceWork& kernel(std::string_view name, std::uint64_t asked, std::uint64_t start, std::uint64_t end, int ctas = 132,
                       int threads = 256) {
        DriverCall call;
        call.start = asked, call.end = asked + 10, call.name = "cuLaunchKernel", call.thread = 1, call.correlation = ++correlation_;
        recorded_.calls.push_back(call);
        DeviceWork work;
        work.start = start, work.end = end, work.name = name, work.correlation = correlation_;
        work.grid = {ctas, 1, 1}, work.block = {threads, 1, 1}, work.registers = 32;
        recorded_.work.push_back(work);
        return recorded_.work.back();
    }
    /// The recording; this is empty afterwards.
    std::vector<Recorded> recordings() {
        std::vector<Recorded> out;
        out.push_back(std::move(recorded_));
        return out;
    }

  private:
    Recorded recorded_;
    std::uint32_t correlation_ = 0;
};

}  // namespace rooftile
