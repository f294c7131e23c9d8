#include "rooftile/fuse/device/shape.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "rooftile/fuse/device/tensors.hpp"
#include "rooftile/fuse/cost.hpp"
#include "rooftile/fuse/hardware.hpp"
#include "rooftile/measure/ratios.hpp"

namespace rooftile {
namespace {

class FuseShapeBench {
  public:
    FuseShapeBench(Bench& bench, FuseShapeRun& shape, PreparedFuse& prepared, const Machine& machine)
        : bench_(bench),
          options_(bench.options()),
          run_(shape.run),
          prepared_(prepared),
          problem_(shape.task.problem),
          machine_(machine) {}

    void run() {
        load();
        if (runnables_.empty()) return;
        make_sets();
        if (options_.verify) verify();
        if (options_.time) time();
    }

  private:
    void load() {
        for (std::size_t i = 0; i < prepared_.kernels.size(); ++i) {
            if (const auto* error = std::get_if<Error>(&prepared_.kernels[i])) {
                run_.rows[i].invalid = error->what();
                continue;
            }
            const FuseKernel& kernel = std::get<FuseKernel>(prepared_.kernels[i]);
            run_.rows[i].registers = kernel.entry().registers;
            run_.rows[i].compile_seconds = kernel.compile_seconds();
            runnables_.emplace_back(kernel);
            rows_.push_back(i);
        }
    }

    void make_sets() {
        const Part part(run_.timings, "buffers and fill");
        constexpr double free_share = 0.35;  // copies and intermediates need theirs
        const std::int64_t bytes = FuseSets::set_bytes(problem_);
        const std::int64_t count =
            rotated_sets(bytes, bench_.device().l2_bytes, l2_factor, share_of_free(free_share));
        if (count < 1)
            throw Error(ExitCode::gpu_failed,
                        fmt::format("one set of tensors takes {} B, {} B of GPU memory may be used", bytes,
                                    share_of_free(free_share)));
        constexpr std::int64_t most_sets = 256;
        sets_ = std::make_unique<FuseSets>(problem_, std::min(count, most_sets), options_.seed);
    }

    void verify() {
        const Part part(run_.timings, "verify");
        bench_.busy_from_now();
        const FuseReference reference(problem_, *sets_, options_.seed);
        for (std::size_t i = 0; i < runnables_.size(); ++i) {
            FuseMeasurement& row = run_.rows[rows_[i]];
            sets_->poison_outputs();
            runnables_[i].launch(nullptr, sets_->inputs(0), sets_->outputs(0));
            synchronize(Stream(nullptr));
            row.verified = reference.check(*sets_);
            if (!row.verified.checked) note(row.verified.failure);
            else if (!row.verified.failure.empty())
                row.invalid = "the result is wrong: " + row.verified.failure;
        }
        bench_.busy_until_now();
    }

    void note(const std::string& text) {
        if (std::find(run_.notes.begin(), run_.notes.end(), text) == run_.notes.end())
            run_.notes.push_back(text);
    }

    void add_copies(std::vector<TimedWork>& works) {
        const std::int64_t bytes = std::max<std::int64_t>(16, fused_bytes(problem_).sum() / 2 / 16 * 16);
        const std::int64_t count = sets_->sets();
        constexpr std::int64_t aligned = 256;  // as allocations are: no set begins within a sector
        const std::int64_t pitch = ceil_div(bytes, aligned) * aligned;
        from_ = DeviceBuffer(std::size_t(pitch * count));
        to_ = DeviceBuffer(std::size_t(pitch * count));
        fill_bytes(from_.address(), 0x5a, from_.bytes(), nullptr);
        const auto place = [pitch](const DeviceBuffer& b, std::int64_t set) {
            return b.address() + DevicePointer(set * pitch);
        };
        const StreamKernels& streams = bench_.streams();
        const StreamLaunch copy = [this, &streams, bytes, place](Stream stream, const StreamForm& form,
                                                                 std::int64_t set) {
            streams.copy(stream, form, place(to_, set), place(from_, set), bytes);
        };
        copies_ = works.size();
        add_fastest(works, "copy", bytes, copy, run_.baselines.copy_form);
        works.push_back({"memcpy", [this, bytes, place](Stream stream, std::int64_t set) {
                             copy_on_device(place(to_, set), place(from_, set), std::size_t(bytes), stream);
                         }});
        if (!mostly_reads(problem_)) return;
        read_ = works.size();
        // A set's inputs lie side by side.
        const std::int64_t read = fused_bytes(problem_).read_bytes / 16 * 16;
        const StreamLaunch reading = [this, &streams, read](Stream stream, const StreamForm& form,
                                                            std::int64_t set) {
            const auto from = reinterpret_cast<DevicePointer>(sets_->inputs(set)[0]);
            streams.read(stream, form, from, read, to_.address());
        };
        add_fastest(works, "read", read, reading, run_.baselines.read_form);
    }

    /// The form of it that suits so many bytes, which `form` then names.
    void add_fastest(std::vector<TimedWork>& works, const char* name, std::int64_t bytes,
                     const StreamLaunch& launch, std::string& form) {
        const Part part(run_.timings, fmt::format("choose the form of {}", name));
        bench_.busy_from_now();
        const StreamForm fastest = bench_.stream_choice().fastest(
            bench_.streams(), name == std::string_view("copy"), bytes, options_.mode, sets_->sets(), launch);
        bench_.busy_until_now();
        form = rooftile::name_of(fastest);
        works.push_back(
            {name, [launch, fastest](Stream stream, std::int64_t set) { launch(stream, fastest, set); }});
    }

    void add_unfused(std::vector<TimedWork>& works) {
        try {
            if (!prepared_.chain_missing.empty()) throw RequestError(prepared_.chain_missing);
            chain_ = std::make_unique<UnfusedChain>(problem_, prepared_.chain, prepared_.chain_kernels);
        } catch (const Error& error) {
            run_.baselines.missing = fmt::format("the operators one by one: {}", error.what());
            return;
        }
        unfused_ = works.size();
        works.push_back({"unfused",
                         [this](Stream stream, std::int64_t set) {
                             chain_->launch(stream, sets_->inputs(set), sets_->outputs(set));
                         },
                         Role::aside});
    }

    void time() {
        std::vector<TimedWork> works;
        std::vector<std::size_t> rows;
        for (std::size_t i = 0; i < runnables_.size(); ++i) {
            if (!run_.rows[rows_[i]].invalid.empty()) continue;
            rows.push_back(rows_[i]);
            works.push_back({fmt::format("plan {}", run_.rows[rows_[i]].plan.rank),
                             [this, i](Stream stream, std::int64_t set) {
                                 runnables_[i].launch(stream, sets_->inputs(set), sets_->outputs(set));
                             },
                             works.empty() ? Role::leader : Role::other});
        }
        if (works.empty()) return;
        if (options_.baseline) {
            add_copies(works);
            add_unfused(works);
        }
        const std::size_t plans = rows[0] == 0 ? rows.size() : 0;  // without plan 1 there is no runoff
        const std::vector<TimedResult> timed = bench_.time(works, sets_->sets(), plans, run_.timings);
        const auto us = [&](const std::optional<std::size_t>& i) -> std::optional<double> {
            if (!i || timed[*i].time_us.samples == 0) return std::nullopt;
            return timed[*i].time_us.median;
        };
        run_.baselines.copy_us = us(copies_);
        if (copies_) run_.baselines.memcpy_us = us(*copies_ + 1);
        run_.baselines.read_us = us(read_);
        run_.baselines.unfused_us = us(unfused_);
        for (std::size_t i = 0; i < rows.size(); ++i) set_figures(run_.rows[rows[i]], timed[i]);
        for (std::size_t i = 1; i < plans; ++i) {
            run_.rows[rows[i]].rank1_ratio = rank1_ratio(timed[0], timed[i]);
            run_.rows[rows[i]].runoff = runoff_of(timed[0], timed[i]);
        }
    }

    void set_figures(FuseMeasurement& row, const TimedResult& timed) {
        if (!timed.failure.empty()) {
            row.invalid = timed.failure;
            return;
        }
        row.time_us = timed.time_us.median;
        row.time_us_low = timed.time_us.low;
        row.time_us_high = timed.time_us.high;
        row.samples = timed.time_us.samples;
        row.sm_clock_mhz = timed.sm_clock_mhz;
        row.power_w = timed.gpu.power_w;
        row.gbytes_per_s = double(fused_bytes(problem_).sum()) / *row.time_us / 1e3;
        if (const auto roof = run_.baselines.roof_us()) row.roof_fraction = *roof / *row.time_us;
        if (row.sm_clock_mhz) row.issue_roof_us = issue_roof_us(row.plan, machine_, *row.sm_clock_mhz);
    }

    Bench& bench_;
    const MeasureOptions& options_;
    FuseRun& run_;
    PreparedFuse& prepared_;
    const ExpressionGraph& problem_;
    const Machine& machine_;
    std::vector<FuseRunnable> runnables_;
    std::vector<std::size_t> rows_;  ///< of `runnables_`
    std::unique_ptr<FuseSets> sets_;
    std::unique_ptr<UnfusedChain> chain_;
    DeviceBuffer from_, to_;
    std::optional<std::size_t> copies_, read_, unfused_;  ///< among what is timed
};

}  // namespace

std::optional<double> issue_roof_us(const FusePlan& plan, const Machine& machine, double clock_mhz) {
    if (plan.prediction.bound != Bound::issue) return std::nullopt;
    std::vector<std::string> unknown;
    const double planned_mhz = fuse_hardware(machine, unknown).clock_hz / 1e6;
    for (const Step& step : plan.derivation)
        if (step.quantity == "issue_time" && step.value && clock_mhz > 0 && planned_mhz > 0)
            return *step.value * planned_mhz / clock_mhz;
    return std::nullopt;
}

void measure_shape(Bench& bench, FuseShapeRun& shape, PreparedFuse& prepared, const Machine& machine) {
    FuseShapeBench(bench, shape, prepared, machine).run();
}

}  // namespace rooftile
