// Hardware counters of a kernel: what its launches moved and how busy they kept the SMs.
//
// The launches of a pass run back to back on rotated operands, as they do while timing; between passes they
// run again, so that nothing is saved, restored or flushed around a kernel. Every pass begins with an L2 that
// holds other data. The pass that counts DRAM ends with a read of more than L2 holds, which drives out what
// the launches left dirty there; what that read costs by itself is counted once and subtracted.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/measure/measure_kernels.hpp"
#include "rooftile/core/measured.hpp"

namespace rooftile {

/// Fewer launches leave too much of the traffic at the edges of the counted range; more say nothing new.
inline constexpr std::int64_t min_counted_launches = 8, max_counted_launches = 32;

/// One hardware counter, whatever its name on a chip.
enum class CounterMetric : std::uint8_t {
    time_ns,
    clock_hz,
    sm_cycles,
    sm_active_percent,
    tensor_active_percent,
    tensor_instructions,
    shared_wavefronts,
    shared_wavefront_percent,
    shared_bank_conflicts,
    l2_read_sectors,
    l2_write_sectors,
    l2_fabric_sectors,
    l2_read_hit_sectors,
    sm_read_bytes,
    data_bank_read_percent,
    data_bank_write_percent,
    dram_read_bytes,
    dram_write_bytes,
};

/// Metrics that are counted in one pass, by their names on one chip.
struct CounterGroup {
    std::vector<CounterMetric> metrics;
    std::vector<std::string> names;  ///< of `metrics`, in CUPTI's words
    bool write_back = false;         ///< the pass ends with the read that drives out dirty lines
};
/// Chips whose names are known: those of the architectures that have a kernel family, as CUPTI names them.
std::vector<std::string_view> counted_chips();
/// What is counted on `chip`; empty for a chip that is not known.
std::vector<CounterGroup> counter_groups(std::string_view chip);

using RawCounters = std::map<CounterMetric, double>;
/// The values of one launch out of `raw`, the sums over `launches`. What is not finite (a GPU's share of a
/// unit that it does not own) stays empty.
CounterValues counter_values(const RawCounters& raw, std::int64_t launches);

/// `counted` less what `own` says of the same metrics, never below 0.
RawCounters without(RawCounters counted, const RawCounters& own);

/// The counters of the device of one context. Never time anything while one is open: counting slows launches.
class CounterSession {
  public:
    /// Null with the reason in `why_not` where CUPTI is missing, or has no counters or we no names for
    /// `device`. Throws Error(counters_denied), with what to do about it, where they exist but not for us.
    /// The device's context is current; `kernels` outlive the session. Takes 8 x L2 of device memory.
    static std::unique_ptr<CounterSession> open(const MeasureKernels& kernels, int device,
                                                std::string& why_not);
    /// The same for who asked to count. Throws Error(counters_denied) where there are none.
    static std::unique_ptr<CounterSession> open(const MeasureKernels& kernels, int device);
    ~CounterSession();
    CounterSession(const CounterSession&) = delete;
    CounterSession& operator=(const CounterSession&) = delete;

    /// Counts `launches` launches, as often as there are passes and once before. `launch` puts the launch
    /// of that number, from 0, into a stream without waiting. Throws Error(counters_denied, gpu_failed).
    CounterValues measure(const std::function<void(Stream stream, std::int64_t number)>& launch,
                          std::int64_t launches = min_counted_launches) const;

    /// The values of CUPTI's metrics of these names over `launches` launches, in as many passes as they take. `warm` launches run before
    /// each pass, after L2 was given other data. Throws Error(internal) for a name that the chip lacks, Error(counters_denied, gpu_failed).
    std::vector<double> count(const std::vector<std::string>& names, const std::function<void(Stream stream, std::int64_t number)>& launch,
                              std::int64_t launches, std::int64_t warm) const;

    const std::string& chip() const;
    std::int64_t passes() const;  ///< of one measure()

    struct State;

  private:
    explicit CounterSession(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace rooftile
