#include "rooftile/measure/measure.hpp"

#include <algorithm>
#include <future>
#include <memory>
#include <random>
#include <set>

#include <fmt/core.h>

#include "rooftile/kernel/kernel.hpp"
#include "rooftile/measure/cublaslt.hpp"

namespace rooftile {

bool MeasureRun::verified() const {
    return std::all_of(rows.begin(), rows.end(),
                       [](const Measurement& m) { return m.verified.failure.empty(); });
}

std::uint64_t fresh_seed() {
    std::random_device random;
    return ((std::uint64_t{random()} << 32) | random()) & ((std::uint64_t{1} << 53) - 1);
}

namespace {

using Clock_ = std::chrono::steady_clock;

constexpr int l2_factor = 4;               ///< rotated sets are together at least this many L2
constexpr double free_memory_share = 0.6;  ///< of what is free, for rotated sets

double seconds_since(Clock_::time_point start) {
    return std::chrono::duration<double>(Clock_::now() - start).count();
}

/// Adds its lifetime to the run's timings.
class Part {
  public:
    Part(MeasureRun& run, std::string name) : run_(run), name_(std::move(name)) {}
    ~Part() { run_.timings.push_back({name_, seconds_since(start_)}); }
    Part(const Part&) = delete;

  private:
    MeasureRun& run_;
    std::string name_;
    Clock_::time_point start_ = Clock_::now();
};

bool same_problem(const GemmProblem& x, const GemmProblem& y) {
    const auto key = [](const GemmProblem& p) {
        return std::tuple(p.m, p.n, p.k, p.lda, p.ldb, p.ldc, p.batch, p.a_type, p.b_type, p.c_type,
                          p.accumulate_type, p.a_major, p.b_major, p.alpha, p.beta);
    };
    return key(x) == key(y);
}

/// One call of measure(): what its steps share.
class Session {
  public:
    Session(const std::vector<GemmPlan>& plans, const MeasureOptions& options)
        : plans_(plans), options_(options) {}

    MeasureRun run() {
        run_.timings.push_back({"before measuring", seconds_since(options_.program_start)});
        if (plans_.empty()) return std::move(run_);
        prepare();
        for (std::size_t i = 0; i < plans_.size();) {
            std::size_t end = i + 1;
            while (end < plans_.size() && same_problem(plans_[i].problem, plans_[end].problem)) ++end;
            measure_problem(i, end);
            i = end;
        }
        if (std::none_of(kernels_compiled_.begin(), kernels_compiled_.end(), has_kernel))
            throw std::get<Error>(kernels_compiled_.front());
        describe();
        return std::move(run_);
    }

  private:
    void say(const std::string& line) const {
        if (options_.progress) options_.progress(line);
    }

    /// Starts the driver while the first kernel and our own are compiled.
    void prepare() {
        const Part all(run_, "prepare (the parts below overlap)");
        const std::string arch = "sm_90";  // of sm90_gemm, the one family that can be built
        auto own = std::async(std::launch::async, [&] { return compile_measure_kernels(arch); });
        auto first = std::async(std::launch::async, [&] { return compile_one(plans_.front()); });
        {
            const Part part(run_, "driver and context");
            device_ = Driver::instance().device(options_.device);
            Driver::instance().require_arch(options_.device, arch);
            context_ = Context::current_or_primary(options_.device);
        }
        KernelOutcome outcome = first.get();
        if (const auto* kernel = std::get_if<Kernel>(&outcome)) add_compile_timing(*kernel);
        const std::vector<CachedCompile> compiled = own.get();
        double slowest = 0;
        for (const CachedCompile& c : compiled) slowest = std::max(slowest, c.compiled.seconds);
        run_.timings.push_back({slowest > 0 ? "compile: checks" : "compile: checks (cached)", slowest});
        const Part part(run_, "load");
        kernels_ = std::make_unique<MeasureKernels>(compiled);
        keep(std::move(outcome));
    }

    static KernelOutcome compile_one(const GemmPlan& plan) {
        try {
            return compile(plan);
        } catch (const Error& error) { return error; }
    }

    static bool has_kernel(const KernelOutcome& outcome) { return std::holds_alternative<Kernel>(outcome); }

    /// Loads a kernel; what does not compile stays as its error, and any other fault ends the run.
    void keep(KernelOutcome outcome) {
        if (const auto* error = std::get_if<Error>(&outcome)) {
            if (error->code() != ExitCode::compile_failed) throw *error;
        } else {
            std::get<Kernel>(outcome).load();
        }
        kernels_compiled_.push_back(std::move(outcome));
    }

    void add_compile_timing(const Kernel& kernel) {
        run_.timings.push_back(
            {kernel.from_cache() ? "compile: kernel (cached)" : "compile: kernel", kernel.compile_seconds()});
    }

    /// Kernels of [begin, end) that are not compiled yet, in parallel.
    void compile_rest(std::size_t end) {
        const std::size_t have = kernels_compiled_.size();
        if (have >= end) return;
        const Part part(run_, fmt::format("compile: {} more", end - have));
        for (KernelOutcome& outcome : compile_all(std::span(plans_).subspan(have, end - have))) {
            keep(std::move(outcome));
        }
    }

    GemmLaunch launch_of(std::size_t plan) const {
        const Kernel& kernel = std::get<Kernel>(kernels_compiled_[plan]);
        return [kernel](Stream stream, const void* a, const void* b, void* c) {
            kernel.launch(stream, a, b, c);
        };
    }

    void measure_problem(std::size_t begin, std::size_t end) {
        std::unique_ptr<GemmVerifier> verifier;
        if (options_.verify) verifier = std::make_unique<GemmVerifier>(*kernels_, plans_[begin].problem);
        for (std::size_t i = begin; i < end; ++i) {
            compile_rest(i == begin ? begin + 1 : end);  // the first one's result comes early
            Measurement& row = run_.rows.emplace_back();
            row.plan = plans_[i];
            row.mode = options_.mode;
            if (const auto* error = std::get_if<Error>(&kernels_compiled_[i])) {
                row.invalid = error->what();
                row.built = false;
                row.verified.failure = "never ran: it does not compile";
            } else if (verifier) {
                verify_first(*verifier, i, row);
            }
        }
        const auto compiled = std::span(kernels_compiled_).subspan(begin, end - begin);
        if (!options_.time || std::none_of(compiled.begin(), compiled.end(), has_kernel)) return;
        if (verifier
            && std::none_of(run_.rows.begin() + static_cast<std::ptrdiff_t>(begin), run_.rows.end(),
                            [](const Measurement& m) { return m.verified.ok(); })) {
            return;
        }
        time_problem(begin, end);
        if (!verifier) return;
        const Part part(run_, "verify again");
        for (std::size_t i = begin; i < end; ++i) {
            Measurement& row = run_.rows[i];
            if (row.verified.ok()) verifier->check_again(row.verified, options_.seed + 1, launch_of(i));
            if (!row.verified.ok()) clear_figures(row);
        }
    }

    /// A wrong result has no time.
    static void clear_figures(Measurement& row) {
        row.time_us = row.time_us_low = row.time_us_high = row.tflops = row.gbytes_per_s = 0;
        row.samples = 0;
        row.roof_fraction.reset();
    }

    void verify_first(const GemmVerifier& verifier, std::size_t plan, Measurement& row) {
        say(fmt::format("verifying plan {}", plans_[plan].rank));
        const GemmLaunch launch = launch_of(plan);
        {
            const Part part(run_, "verify");
            row.verified = verifier.check_values(options_.seed, launch);
        }
        const bool first = std::none_of(run_.timings.begin(), run_.timings.end(),
                                        [](const Timing& t) { return t.part == "first_result"; });
        if (first) run_.timings.push_back({"first_result", seconds_since(options_.program_start)});
        const Part part(run_, "verify special values");
        verifier.check_special(row.verified, options_.seed, launch);
    }

    void time_problem(std::size_t begin, std::size_t end) {
        const GemmProblem& problem = plans_[begin].problem;
        std::string missing = "not asked for";
        std::unique_ptr<CublasLt> rival;
        if (options_.baseline) {
            const Part part(run_, "open cuBLASLt");
            missing.clear();
            rival = CublasLt::open(problem, missing);
        }
        const OperandSets sets = make_sets(problem);
        std::vector<TimedWork> works;
        std::vector<std::size_t> rows;
        for (std::size_t i = begin; i < end; ++i) {
            if (!has_kernel(kernels_compiled_[i])) continue;
            if (options_.verify && !run_.rows[i].verified.ok()) continue;
            rows.push_back(i);
            works.push_back(work_on(sets, fmt::format("plan {}", plans_[i].rank), launch_of(i), false));
        }
        const std::size_t first_algorithm = works.size();
        for (int index = 0; rival && index < rival->algorithms(); ++index) {
            works.push_back(work_on(
                sets, fmt::format("cuBLASLt {}", index),
                [&rival, index](Stream stream, const void* a, const void* b, void* c) {
                    rival->launch(index, stream, a, b, c);
                },
                true));
        }
        const std::size_t after_algorithms = works.size();
        const std::optional<CopyBuffers> copied = options_.baseline ? make_copy(problem) : std::nullopt;
        if (copied) works.push_back(copy_work(*copied));

        const std::vector<TimedResult> timed = time_all(works, sets.sets());
        const Roofs roofs = roofs_of(options_.machine, plans_[begin], kernels_->sms());
        const auto algorithms = std::span(timed).subspan(first_algorithm, after_algorithms - first_algorithm);
        Baselines baselines = baselines_of(problem, options_.mode, algorithms, roofs, run_.notes);
        if (copied)
            baselines.copy_us = copy_time(copied->bytes, options_.mode, timed.back(), roofs, run_.notes);
        baselines.missing = rival ? "" : missing;
        for (std::size_t r = 0; r < rows.size(); ++r) {
            Measurement& row = run_.rows[rows[r]];
            set_figures(row, timed[r], roofs_of(options_.machine, row.plan, kernels_->sms()));
            row.baselines = baselines;
            for (std::string& note : unchecked_roofs(options_.mode, timed[r], roofs))
                noted_.insert(std::move(note));
            note_clock(timed[r]);
        }
    }

    std::vector<TimedResult> time_all(const std::vector<TimedWork>& works, std::int64_t sets) {
        say(fmt::format("timing {} candidates over {} buffer sets, {}", works.size(), sets,
                        name_of(options_.mode)));
        const Part part(run_, fmt::format("time ({})", name_of(options_.mode)));
        open_nvml();
        TimingOptions timing = options_.timing;
        timing.mode = options_.mode;
        timing.sets = sets;
        timing.seed = options_.seed;
        timing.interrupted = options_.interrupted;
        return time_works(works, timing, *kernels_, gpu_, device_.l2_bytes);
    }

    OperandSets make_sets(const GemmProblem& problem) {
        const Part part(run_, "buffers and fill");
        const auto free =
            static_cast<std::int64_t>(free_memory_share * static_cast<double>(memory_info().free_bytes));
        const std::int64_t bytes = OperandSets::set_bytes(problem);
        const std::int64_t count = rotated_sets(bytes, device_.l2_bytes, l2_factor, free);
        if (count < 1) {
            throw Error(ExitCode::gpu_failed,
                        fmt::format("one set of A, B and C takes {} B, {} B of GPU memory may be "
                                    "used; free some or take a smaller problem",
                                    bytes, free));
        }
        if (count * bytes < l2_factor * device_.l2_bytes) {
            run_.notes.push_back(
                fmt::format("{} buffer sets of {} B are less than {} x L2: part of the inputs may "
                            "come from L2",
                            count, bytes, l2_factor));
        }
        OperandSets sets(problem, count);
        const StreamOwner stream;
        for (const Operand operand : {Operand::a, Operand::b}) {
            kernels_->fill(stream,
                           fill_arguments(problem, operand, sets.view(operand), Fill::normal, options_.seed));
        }
        stream.synchronize();
        return sets;
    }

    static TimedWork work_on(const OperandSets& sets, std::string name, GemmLaunch launch, bool droppable) {
        return {std::move(name),
                [&sets, launch = std::move(launch)](Stream stream, std::int64_t set) {
                    launch(stream, sets.data(Operand::a, set), sets.data(Operand::b, set),
                           sets.data(Operand::c, set));
                },
                droppable};
    }

    /// A copy that reads half of the problem's compulsory bytes and writes as many.
    struct CopyBuffers {
        DeviceBuffer from, to;
        std::int64_t bytes = 0, slots = 0;
    };
    std::optional<CopyBuffers> make_copy(const GemmProblem& problem) const {
        CopyBuffers c;
        c.bytes = ceil_div(static_cast<std::int64_t>(problem.compulsory_bytes().value / 2), 256) * 256;
        c.slots = rotated_sets(2 * c.bytes, device_.l2_bytes, l2_factor, memory_info().free_bytes / 2);
        if (c.slots < 1) return std::nullopt;
        c.from = DeviceBuffer(static_cast<std::size_t>(c.slots * c.bytes));
        c.to = DeviceBuffer(static_cast<std::size_t>(c.slots * c.bytes));
        fill_bytes(c.from.address(), 0x5a, c.from.bytes(), nullptr);
        synchronize();
        return c;
    }
    TimedWork copy_work(const CopyBuffers& copied) const {
        return {"copy",
                [this, &copied](Stream stream, std::int64_t set) {
                    const auto offset = static_cast<DevicePointer>(set % copied.slots * copied.bytes);
                    kernels_->copy(stream, copied.to.address() + offset, copied.from.address() + offset,
                                   copied.bytes);
                },
                false};
    }

    void note_clock(const TimedResult& timed) {
        const std::string words = clock_reason_words(timed.gpu.clock_reasons);
        if (!words.empty()) noted_.insert("the GPU held its clock back: " + words);
    }

    /// After the first result: it takes some 10 ms.
    void open_nvml() {
        if (!gpu_) gpu_ = Nvml::open(device_.pci_bus_id);
    }

    void describe() {
        open_nvml();
        run_.gpu = device_.name;
        if (gpu_) run_.driver = gpu_->driver_version();
        if (run_.driver.empty()) run_.driver = std::to_string(Driver::instance().version());
        run_.nvrtc = nvrtc().version;
        std::set<std::string> hashes;
        for (const KernelOutcome& outcome : kernels_compiled_) {
            if (const auto* kernel = std::get_if<Kernel>(&outcome)) hashes.insert(kernel->hash());
        }
        if (hashes.size() == 1) run_.kernel_hash = *hashes.begin();
        run_.notes.insert(run_.notes.end(), noted_.begin(), noted_.end());
    }

    const std::vector<GemmPlan>& plans_;
    const MeasureOptions& options_;
    MeasureRun run_;
    DeviceInfo device_;
    std::unique_ptr<Context> context_;
    std::shared_ptr<const Nvml> gpu_;
    std::unique_ptr<MeasureKernels> kernels_;
    std::vector<KernelOutcome> kernels_compiled_;  ///< in the order of the plans
    std::set<std::string> noted_;
};

}  // namespace

MeasureRun measure(const std::vector<GemmPlan>& plans, const MeasureOptions& options) {
    for (const GemmPlan& plan : plans) {
        if (!plan.buildable)
            throw RequestError(fmt::format("plan {} cannot be built: {}", plan.rank, plan.why_not));
    }
    return Session(plans, options).run();
}

}  // namespace rooftile
