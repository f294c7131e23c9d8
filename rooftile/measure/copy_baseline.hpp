// What a problem's time is put beside: a copy that reads half of its compulsory bytes and writes as many.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rooftile/measure/bench.hpp"
#include "rooftile/measure/measurement.hpp"
#include "rooftile/measure/timing.hpp"
#include "rooftile/runtime/driver.hpp"

namespace rooftile {

/// Two buffers that a copy goes between, in slots that rotate as tensors do.
class CopyBaseline {
  public:
    /// Nothing where a problem moves nothing, or GPU memory holds not even one slot.
    static std::optional<CopyBaseline> of(const Bench& bench, std::int64_t compulsory_bytes);

    /// Read by a launch, and as many written.
    std::int64_t bytes() const { return bytes_; }
    /// Timed aside. This object stays where it is until then.
    TimedWork work(const MeasureKernels& kernels) const;
    /// What a row shows of its timing: without a time where copy_time() finds none.
    Baseline baseline(const Bench& bench, const TimedResult& timed, std::vector<std::string>& notes) const;

  private:
    DeviceBuffer from_, to_;
    std::int64_t bytes_ = 0, slots_ = 0;
};

/// The time of a copy that reads `bytes` and writes as many; empty, with a line in `notes`, above the roof of DRAM, where that is known.
std::optional<double> copy_time(std::int64_t bytes, Mode mode, const TimedResult& timed, std::optional<double> dram_bytes_per_s,
                                std::vector<std::string>& notes);

}  // namespace rooftile
