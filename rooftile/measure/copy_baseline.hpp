// What a problem's time is put beside: a copy that reads half of its compulsory bytes and writes as many.
#pragma once

#include <cstdint>
#include <optional>

#include "rooftile/measure/bench.hpp"
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

  private:
    DeviceBuffer from_, to_;
    std::int64_t bytes_ = 0, slots_ = 0;
};

}  // namespace rooftile
