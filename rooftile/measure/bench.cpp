#include "rooftile/measure/bench.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <thread>

namespace rooftile {
namespace {

using Clock_ = std::chrono::steady_clock;

/// Left idle for longer than this, clock and temperature are no longer those of the load.
constexpr std::chrono::milliseconds idle_limit(500);

constexpr double free_memory_share = 0.6;  ///< of what is free, for rotated sets
constexpr double results_share = 0.25;     ///< of what is free, for results that are judged together

}  // namespace

double seconds_since(Clock_::time_point start) {
    return std::chrono::duration<double>(Clock_::now() - start).count();
}

unsigned spare_threads() {
    const unsigned cores = std::thread::hardware_concurrency();
    return cores > 3 ? cores - 2 : 1;
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

const CublasLt* Bench::rival(const GemmProblem& problem, std::string& missing) {
    missing.clear();
    if (auto next = CublasLt::open(problem, missing, rival_.get())) {
        rival_ = std::move(next);
        return rival_.get();
    }
    return nullptr;
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

std::unique_ptr<GemmVerifier> Bench::verifier(const GemmProblem& problem, std::size_t launches) const {
    const int results = GemmVerifier::results_for(problem, launches, share_of_free(results_share));
    return std::make_unique<GemmVerifier>(kernels_, problem, results);
}

OperandSets Bench::operand_sets(const GemmProblem& problem, std::vector<std::string>& notes) const {
    const std::int64_t free = share_of_free(free_memory_share), bytes = OperandSets::set_bytes(problem);
    const std::int64_t count = rotated_sets(bytes, device_.l2_bytes, l2_factor, free);
    if (count < 1)
        throw Error(ExitCode::gpu_failed,
                    fmt::format("one set of A, B and C takes {} B, {} B of GPU memory may be used; free some "
                                "or take a smaller problem",
                                bytes, free));
    if (count * bytes < l2_factor * device_.l2_bytes)
        notes.push_back(
            fmt::format("{} buffer sets of {} B are less than {} x L2: part of the inputs may come from L2",
                        count, bytes, l2_factor));
    OperandSets sets(problem, count);
    const StreamOwner stream;
    for (const Operand operand : {Operand::a, Operand::b})
        kernels_.fill(stream,
                      fill_arguments(problem, operand, sets.view(operand), Fill::normal, options_.seed));
    stream.synchronize();
    return sets;
}

std::vector<TimedResult> Bench::time(const std::vector<TimedWork>& works, std::int64_t sets,
                                     std::size_t plans, std::vector<Timing>& timings, int least_rounds) {
    say(fmt::format("timing {} candidates over {} buffer sets, {}", works.size(), sets,
                    name_of(options_.mode)));
    const Part part(timings, fmt::format("time ({})", name_of(options_.mode)));
    std::shared_ptr<const Nvml> opened = gpu();
    TimingOptions timing = options_.timing;
    timing.mode = options_.mode;
    timing.sets = sets;
    timing.rounds = std::max(timing.rounds, least_rounds);
    // Another order of blocks for every problem of a suite: in one and the same, the plan of one rank would
    // always follow the same load, and clock with it (2 % were seen).
    constexpr std::uint64_t draws = 16;
    timing.seed = options_.seed + draws * problems_++;
    timing.interrupted = options_.interrupted;
    timing.runoff.plans = plans;
    timing.load_seconds = load_seconds();
    auto timed = time_works(works, timing, kernels_, std::move(opened), device_.l2_bytes);
    busy_until_now();
    return timed;
}

std::int64_t share_of_free(double share) {
    return static_cast<std::int64_t>(share * static_cast<double>(memory_info().free_bytes));
}

std::function<void(Stream, std::int64_t)> on(const OperandSets& sets, GemmLaunch launch) {
    return [&sets, launch = std::move(launch)](Stream stream, std::int64_t set) {
        launch(stream, sets.data(Operand::a, set), sets.data(Operand::b, set), sets.data(Operand::c, set));
    };
}

GemmLaunch launch_of(const CublasLt& rival, int index) {
    return [&rival, index](Stream stream, const void* a, const void* b, void* c) {
        rival.launch(index, stream, a, b, c);
    };
}

std::size_t add_rivals(std::vector<TimedWork>& works, const CublasLt* rival, const OperandSets& sets) {
    const int count = rival ? rival->algorithms() : 0;
    for (int index = 0; index < count; ++index)
        works.push_back({fmt::format("cuBLASLt {}", index), on(sets, launch_of(*rival, index)), Role::rival});
    return static_cast<std::size_t>(count);
}

void note_timed(std::set<std::string>& notes, Mode mode, const TimedResult& timed, const Roofs& roofs) {
    for (std::string& note : unchecked_roofs(mode, timed, roofs)) notes.insert(std::move(note));
    const std::string words = clock_reason_words(timed.gpu.clock_reasons);
    if (!words.empty()) notes.insert("the GPU held its clock back: " + words);
}

}  // namespace rooftile
