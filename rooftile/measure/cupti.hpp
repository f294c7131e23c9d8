// CUPTI's range profiler: hardware counters of whatever the caller launches between two points. Opened at run
// time; where the library is missing, the reason is a value. The part that knows a chip's metrics and how
// many passes they take needs no GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rooftile/error.hpp"

namespace rooftile {

struct CuptiTable;

/// A library of CUPTI that is open until the process ends.
class Cupti {
  public:
    /// Null with the reason in `missing` where it is not there or lacks a function of CUDA 13.
    static std::shared_ptr<const Cupti> open(std::string& missing);

    const CuptiTable& functions() const { return *functions_; }
    /// Throws what error_of() makes of a `status` that is not success; `call` is named in it.
    void check(const char* call, int status) const;
    /// The fault a status stands for: counters_denied where the counters are there but not for us, with what
    /// to do about it; gpu_failed for the rest.
    Error error_of(const char* call, int status) const;

  private:
    Cupti() = default;
    std::shared_ptr<CuptiTable> functions_;
};

/// A set of metrics of one chip, ready to be counted together.
class CounterSet {
  public:
    /// `chip` as CUPTI names it: "GH100". Throws Error(internal) for a metric that the chip does not have,
    /// Error(gpu_failed) where CUPTI does not know the chip. Needs no GPU.
    CounterSet(std::shared_ptr<const Cupti> cupti, const std::string& chip, std::vector<std::string> metrics);

    const std::vector<std::string>& metrics() const { return metrics_; }
    /// How often the work has to run for all of them.
    std::size_t passes() const { return passes_; }

    /// Runs `prepare`, then `work` between two points in `context` (a CUcontext), once a pass; returns the
    /// metrics' values over `work`, in their order. Both must wait for what they launch. Memory is not
    /// restored between passes and no cache is touched: `prepare` makes every pass alike.
    /// Throws Error(counters_denied, gpu_failed) and whatever the two throw.
    std::vector<double> count(void* context, const std::function<void()>& prepare,
                              const std::function<void()>& work) const;

  private:
    std::vector<const char*> names() const;
    void configure();
    std::vector<double> evaluate(const std::vector<std::uint8_t>& data) const;

    std::shared_ptr<const Cupti> cupti_;
    std::vector<std::string> metrics_;
    std::vector<std::uint8_t> config_;
    std::shared_ptr<void> host_;  ///< the chip's metrics, CUPTI's own
    std::size_t passes_ = 0;
};

}  // namespace rooftile
