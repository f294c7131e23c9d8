// A GPU readied for measuring, and what every measurement on it does alike. For rooftile/measure's own
// sources.
#pragma once

#include <any>
#include <chrono>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rooftile/elapsed.hpp"
#include "rooftile/error.hpp"
#include "rooftile/measure/options.hpp"
#include "rooftile/measure/stream_kernels.hpp"

namespace rooftile {

/// What problems share: our own kernels, NVML, and whether the GPU is still under load.
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

    /// Before and after work that keeps the GPU busy. Between them it stands idle: where that lasts, the next
    /// sustained timing begins with the long load again.
    void busy_from_now();
    void busy_until_now() { busy_until_ = std::chrono::steady_clock::now(); }
    /// Of the sustained mode; what follows is under load.
    double load_seconds();

    /// options().progress, where there is one.
    void say(const std::string& line) const;

    /// time_works() in the mode and with the load that the options and the GPU's past ask for. The first
    /// `plans` of `works` are a problem's plans, best ranked first: a paired re-measurement is among them. `min_rounds`: of
    /// this problem, where the options have fewer.
    std::vector<TimedResult> time(const std::vector<TimedWork>& works, std::int64_t sets, std::size_t plans,
                                  std::vector<Timing>& timings, std::size_t min_rounds = 0);

    /// Copies and reads in all their forms, compiled on first use, and which of them suits a size.
    const StreamKernels& streams();
    StreamChoice& stream_choice() { return stream_choice_; }

    bool first_result = false;  ///< seen already
    std::any kept;              ///< what an operation keeps from one problem to the next: an open library

  private:
    const MeasureOptions& options_;
    DeviceInfo device_;
    MeasureKernels kernels_;
    std::shared_ptr<const Nvml> gpu_;
    std::unique_ptr<StreamKernels> streams_;
    StreamChoice stream_choice_;
    bool loaded_ = false;
    std::uint64_t problems_ = 0;  ///< timed so far
    std::chrono::steady_clock::time_point busy_until_{};
};

/// The driver starts while our own kernels for `arch` are compiled; `context` then holds the GPU. Throws
/// Error(no_gpu, compile_failed).
std::unique_ptr<Bench> start_bench(const MeasureOptions& options, const std::string& arch,
                                   std::unique_ptr<Context>& context, std::vector<Timing>& timings);

/// Items made at once beside a GPU that is being timed, and the threads of each: compilers leave the launching thread and
/// NVML's a core each.
struct AheadThreads {
    unsigned items = 1, threads = 1;
};
AheadThreads ahead_threads(unsigned cores);

/// Items in their order, several of them made at once while the one before is measured. What is cheap to take is taken one
/// by one (`take`, empty: there is no next), what is made of it (`make`, told how many threads it may use; 0: all) is not.
template <class Raw, class Item>
class Ahead {
  public:
    using Take = std::function<std::optional<Raw>()>;
    using Make = std::function<Item(Raw raw, unsigned threads)>;
    /// The first item has all threads.
    Ahead(Take take, Make make, AheadThreads beside) : take_(std::move(take)), make_(std::move(make)), beside_(beside) {
        begin(0);
    }
    /// Waits for the item, then begins with those after it.
    std::optional<Item> next() {
        if (made_.empty()) return std::nullopt;
        Item item = made_.front().get();
        made_.pop_front();
        while (made_.size() < beside_.items && begin(beside_.threads)) {}
        return item;
    }

  private:
    bool begin(unsigned threads) {
        std::optional<Raw> raw = take_();
        if (!raw) return false;
        made_.push_back(std::async(std::launch::async, [this, threads, raw = std::move(*raw)]() mutable {
            return make_(std::move(raw), threads);
        }));
        return true;
    }
    Take take_;
    Make make_;
    AheadThreads beside_;
    std::deque<std::future<Item>> made_;  // last: their threads end before what they use
};

/// An error that one problem's fault explains, with the GPU still usable, is for its rows; any other goes on.
void rethrow_unless_of_one_problem(const Error& error);

/// How many sets rotate: together at least `l2_factor` x L2 and at least 2, at most 16384 and what fits in
/// `free_bytes`; 0 where not even one does.
std::int64_t rotated_sets(std::int64_t set_bytes, std::int64_t l2_bytes, int l2_factor,
                          std::int64_t free_bytes);

/// The same of a problem's tensors, in the part of what is free that leaves room for copies and a reference's intermediates.
/// Throws Error(gpu_failed) where not even one does.
std::int64_t sets_of_problem(std::int64_t set_bytes, std::int64_t l2_bytes);

/// So many bytes of what is free on the device.
std::int64_t share_of_free(double share);

/// Rotated buffers are together at least this many L2.
inline constexpr int l2_factor = 4;

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

}  // namespace rooftile
