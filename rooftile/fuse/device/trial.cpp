#include "rooftile/fuse/device/trial.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "rooftile/fuse/cost.hpp"
#include "rooftile/fuse/measurement.hpp"
#include "rooftile/measure/expression_reference.hpp"

namespace rooftile {
namespace {

class FuseTrial final : public Trial {
  public:
    FuseTrial(const ExpressionGraph& problem, const PreparedChain& prepared, Bench& bench)
        : problem_(problem),
          prepared_(prepared),
          bench_(bench),
          options_(bench.options()),
          reference_(problem, bench.device().arch()) {}

    const Reference& reference() const override { return reference_; }

    std::vector<TimedWork> add_baselines(std::span<Measurement* const>, const TensorSets& sets,
                                         std::vector<std::string>&, std::vector<Timing>& timings) override {
        std::vector<TimedWork> works;
        sets_ = &sets;
        if (!options_.baseline) return works;
        add_copies(works, timings);
        add_unfused(works);
        return works;
    }

    void read_baselines(std::span<const TimedResult> timed, std::vector<std::string>&) override {
        for (std::size_t i = 0; i < baselines_.size(); ++i)
            if (timed[i].time_us.samples > 0) baselines_[i].time_us = timed[i].time_us.median;
    }

    void set_figures(Measurement& row, std::size_t, const TimedResult& timed, std::vector<std::string>&) override {
        const Machine* machine = options_.planned_for();
        row.gbytes_per_s = double(fused_bytes(problem_).sum()) / timed.time_us.median / 1e3;
        row.baselines = baselines_;
        row.baseline_missing = missing_;
        set_roof(row);
        std::optional<double> issue_us;
        if (row.sm_clock_mhz && machine && row.plan.own)
            issue_us = issue_roof_us(row.plan.own.as<FusePlan>(), *machine, *row.sm_clock_mhz);
        row.more = {{"issue_roof_us", issue_us}};
    }

    void finish(Measurement& row, std::size_t) override { row.show_derivation = options_.explain; }

  private:
    /// The reads where they were timed, else the faster copy.
    static void set_roof(Measurement& row) {
        const auto read = baseline_us(row, "read"), copy = baseline_us(row, "copy"), memcpy = baseline_us(row, "memcpy");
        row.roof = read ? "read" : "copy";
        const auto roof = read ? read : copy && memcpy ? std::min(copy, memcpy) : copy ? copy : memcpy;
        if (roof) row.roof_fraction = *roof / *row.time_us;
    }

    void add_copies(std::vector<TimedWork>& works, std::vector<Timing>& timings) {
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
        add_fastest(works, timings, "copy", "copying as many bytes", bytes, copy);
        add("memcpy", "the driver's copy of as many bytes");
        works.push_back({"memcpy", [this, bytes, place](Stream stream, std::int64_t set) {
                             copy_on_device(place(to_, set), place(from_, set), std::size_t(bytes), stream);
                         },
                         Role::roof});
        if (!mostly_reads(problem_)) return;
        // A set's inputs lie side by side.
        const std::int64_t read = fused_bytes(problem_).read_bytes / 16 * 16;
        const StreamLaunch reading = [this, &streams, read](Stream stream, const StreamForm& form,
                                                            std::int64_t set) {
            const auto from = reinterpret_cast<DevicePointer>(sets_->tensors(set)[0]);
            streams.read(stream, form, from, read, to_.address());
        };
        add_fastest(works, timings, "read", "reading the inputs, nothing written", read, reading);
    }

    Baseline& add(const char* key, const char* name) {
        Baseline& baseline = baselines_.emplace_back();
        baseline.key = key, baseline.name = name;
        return baseline;
    }

    /// The form of it that suits so many bytes, which the baseline then names.
    void add_fastest(std::vector<TimedWork>& works, std::vector<Timing>& timings, const char* key, const char* name,
                     std::int64_t bytes, const StreamLaunch& launch) {
        const Part part(timings, fmt::format("choose the form of {}", key));
        bench_.busy_from_now();
        const StreamForm fastest = bench_.stream_choice().fastest(
            bench_.streams(), key == std::string_view("copy"), bytes, options_.mode, sets_->sets(), launch);
        bench_.busy_until_now();
        add(key, name).form = rooftile::name_of(fastest);
        works.push_back({key, [launch, fastest](Stream stream, std::int64_t set) { launch(stream, fastest, set); },
                         Role::roof});
    }

    void add_unfused(std::vector<TimedWork>& works) {
        try {
            if (!prepared_.missing.empty()) throw RequestError(prepared_.missing);
            chain_ = std::make_unique<UnfusedChain>(problem_, prepared_.chain, prepared_.kernels);
        } catch (const Error& error) {
            missing_ = fmt::format("the operators one by one: {}", error.what());
            return;
        }
        add("unfused", "operators one by one").same_work = true;
        works.push_back({"unfused",
                         [this](Stream stream, std::int64_t set) {
                             const TensorPointers tensors = sets_->tensors(set);
                             const void* const* inputs = tensors.data();
                             chain_->launch(stream, {inputs, problem_.inputs.size()},
                                            tensors.subspan(problem_.inputs.size()));
                         },
                         Role::aside});
    }

    const ExpressionGraph& problem_;
    const PreparedChain& prepared_;
    Bench& bench_;
    const MeasureOptions& options_;
    ExpressionReference reference_;
    const TensorSets* sets_ = nullptr;
    std::unique_ptr<UnfusedChain> chain_;
    DeviceBuffer from_, to_;
    std::vector<Baseline> baselines_;  ///< in the order in which they are timed
    std::string missing_;
};

}  // namespace

std::unique_ptr<Trial> fuse_trial(const ExpressionGraph& problem, const PreparedChain& chain, Bench& bench) {
    return std::make_unique<FuseTrial>(problem, chain, bench);
}

}  // namespace rooftile
