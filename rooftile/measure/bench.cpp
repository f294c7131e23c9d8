#include "rooftile/measure/bench.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <random>
#include <thread>

namespace rooftile {
namespace {

using Clock_ = std::chrono::steady_clock;

/// Left idle for longer than this, the temperature is no longer that of the load.
constexpr std::chrono::milliseconds idle_limit(2000);

}  // namespace

AheadThreads ahead_threads(unsigned cores) {
    const unsigned spare = cores > 3 ? cores - 2 : 1;
    constexpr unsigned most_items = 5;  // more would hold memory and make the first of them wait
    const unsigned items = std::clamp(spare / 2, 1U, most_items);
    return {items, std::max(1U, spare / items)};
}

std::unique_ptr<Bench> start_bench(const MeasureOptions& options, const std::string& arch,
                                   std::unique_ptr<Context>& context, std::vector<Timing>& timings) {
    const Part all(timings, "prepare (the parts below overlap)");
    auto own = std::async(std::launch::async, [&arch] { return compile_measure_kernels(arch); });
    {
        const Part part(timings, "driver and context");
        Driver::instance().require_arch(options.device, arch);
        context = Context::current_or_primary(options.device);
    }
    const std::vector<CachedCompile> compiled = own.get();
    double slowest = 0;
    for (const CachedCompile& c : compiled) slowest = std::max(slowest, c.compiled.seconds);
    timings.push_back({slowest > 0 ? "compile: checks" : "compile: checks (cached)", slowest});
    const Part part(timings, "load");
    return std::make_unique<Bench>(options, compiled);
}

void rethrow_unless_of_one_problem(const Error& error) {
    // What a kernel cannot address is the problem's fault alone; an interruption ends the run.
    if (error.code() != ExitCode::gpu_failed && error.code() != ExitCode::bad_request) throw error;
    try {
        synchronize();
    } catch (const Error&) { throw error; }
}

Bench::Bench(const MeasureOptions& options, const std::vector<CachedCompile>& own)
    : options_(options),
      device_(Driver::instance().device(options.device)),
      kernels_(own),
      stream_choice_(kernels_, device_.l2_bytes) {}

const StreamKernels& Bench::streams() {
    if (!streams_)
        streams_ = std::make_unique<StreamKernels>(kernels_, device_.arch(),
                                                   static_cast<int>(device_.shared_per_sm_bytes));
    return *streams_;
}

std::shared_ptr<const Nvml> Bench::gpu() {
    if (!gpu_) gpu_ = Nvml::open(device_.pci_bus_id);
    return gpu_;
}

RunningGpu Bench::running() {
    RunningGpu r;
    r.gpu = device_.name;
    if (gpu()) r.driver = gpu()->driver_version();
    if (r.driver.empty()) r.driver = std::to_string(Driver::instance().version());
    r.nvrtc = nvrtc().version;
    return r;
}

void Bench::busy_from_now() {
    if (Clock_::now() - busy_until_ > idle_limit) loaded_ = false;
}

double Bench::load_seconds() {
    busy_from_now();
    const double seconds = loaded_ ? options_.reload_seconds : options_.timing.load_seconds;
    loaded_ = true;
    return seconds;
}

void Bench::say(const std::string& line) const {
    if (options_.progress) options_.progress(line);
}

std::vector<TimedResult> Bench::time(const std::vector<TimedWork>& works, std::int64_t sets,
                                     std::size_t plans, std::vector<Timing>& timings, std::size_t min_rounds) {
    say(fmt::format("timing {} candidates over {} buffer sets, {}", works.size(), sets,
                    name_of(options_.mode)));
    const Part part(timings, fmt::format("time ({})", name_of(options_.mode)));
    std::shared_ptr<const Nvml> opened = gpu();
    TimingOptions timing = options_.timing;
    timing.mode = options_.mode;
    timing.sets = sets;
    timing.rounds.least = std::max(timing.rounds.least, min_rounds);
    timing.rounds.most = std::max(timing.rounds.most, min_rounds);
    // Another order of blocks for every problem of a suite: in one and the same, the plan of one rank would
    // always follow the same load, and clock with it (2 % were seen).
    constexpr std::uint64_t draws = 16;
    timing.seed = options_.seed + draws * problems_++;
    timing.interrupted = options_.interrupted;
    timing.confirmation.plans = plans;
    timing.load_seconds = load_seconds();
    auto timed = time_works(works, timing, kernels_, std::move(opened), device_.l2_bytes);
    busy_until_now();
    return timed;
}

std::int64_t rotated_sets(std::int64_t set_bytes, std::int64_t l2_bytes, int l2_factor,
                          std::int64_t free_bytes) {
    const std::int64_t wanted = std::clamp<std::int64_t>(ceil_div(l2_factor * l2_bytes, set_bytes), 2, max_sets);
    return std::min(wanted, free_bytes / set_bytes);
}

std::int64_t sets_of_problem(std::int64_t set_bytes, std::int64_t l2_bytes) {
    constexpr double free_share = 0.35;
    const std::int64_t free = share_of_free(free_share), sets = rotated_sets(set_bytes, l2_bytes, l2_factor, free);
    if (sets < 1)
        throw Error(ExitCode::gpu_failed,
                    fmt::format("one set of tensors takes {} B, {} B of GPU memory may be used; free some or take a "
                                "smaller problem",
                                set_bytes, free));
    return sets;
}

std::int64_t share_of_free(double share) {
    return static_cast<std::int64_t>(share * static_cast<double>(memory_info().free_bytes));
}

std::uint64_t fresh_seed() {
    std::random_device random;
    return ((std::uint64_t{random()} << 32) | random()) & ((std::uint64_t{1} << 53) - 1);
}

}  // namespace rooftile
