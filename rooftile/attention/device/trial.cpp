#include "rooftile/attention/device/trial.hpp"

#include <fmt/core.h>

#include "rooftile/attention/device/reference.hpp"
#include "rooftile/attention/hardware.hpp"
#include "rooftile/attention/plan.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/measure/copy_baseline.hpp"
#include "rooftile/runtime/cache.hpp"

namespace rooftile {
namespace {

class AttentionTrial final : public Trial {
  public:
    AttentionTrial(const AttentionProblem& problem, Bench& bench)
        : problem_(problem),
          bench_(bench),
          options_(bench.options()),
          reference_(bench.kernels(), problem, bench.device().arch()) {}

    const Reference& reference() const override { return reference_; }

    std::vector<TimedWork> add_baselines(std::span<Measurement* const>, const TensorSets&, std::vector<std::string>&,
                                         std::vector<Timing>&) override {
        std::vector<TimedWork> works;
        if (!options_.baseline) return works;
        copied_ = CopyBaseline::of(bench_, problem_.compulsory_bytes());
        if (copied_) works.push_back(copied_->work(bench_.kernels()));
        return works;
    }

    void read_baselines(std::span<const TimedResult> timed, std::vector<std::string>& notes) override {
        if (!copied_) return;
        Baseline copy;
        copy.key = "copy", copy.name = "copying as many bytes";
        std::optional<double> dram_bytes_per_s;
        if (const Machine* machine = options_.planned_for())
            if (const auto dram = dram_bandwidth(*machine)) dram_bytes_per_s = dram->value;
        if (timed.back().time_us.samples > 0)
            copy.time_us = copy_time(copied_->bytes(), options_.mode, timed.back(), dram_bytes_per_s, notes);
        baselines_.push_back(std::move(copy));
        copied_.reset();  // counting needs memory too
    }

    void set_figures(Measurement& row, std::size_t, const TimedResult& timed, std::vector<std::string>&) override {
        const double seconds = timed.time_us.median * 1e-6;
        if (seconds <= 0) return;
        row.tflops = problem_.flops() / seconds * 1e-12;
        row.gbytes_per_s = double(problem_.compulsory_bytes()) / seconds * 1e-9;
        row.roof = "tensor";
        row.baselines = baselines_;
        const Machine* machine = options_.planned_for();
        if (!machine || !timed.sm_clock_mhz) return;
        const auto fastest = fastest_instruction(*machine, attention_type_name(problem_.type), "fp32");
        if (!fastest) return;
        const double roof = fastest->rate.value * bench_.kernels().sms() * *timed.sm_clock_mhz * 1e6 * 1e-12;
        row.roof_fraction = *row.tflops / roof;
        constexpr double clock_error = 0.005;  // of the measured clock, at most
        if (*row.roof_fraction > 1 + clock_error)
            row.invalid = fmt::format("above the roof: {:.1f} TFLOP/s of {:.1f} at the measured {:.0f} MHz", *row.tflops, roof,
                                      *timed.sm_clock_mhz);
    }

    void finish(Measurement& row, std::size_t) override { row.show_derivation = options_.explain; }

  private:
    AttentionProblem problem_;
    Bench& bench_;
    const MeasureOptions& options_;
    AttentionReference reference_;
    std::optional<CopyBaseline> copied_;
    std::vector<Baseline> baselines_;
};

}  // namespace

void compile_attention_reference(const AttentionProblem& problem, const std::string& arch) {
    compile_cached(attention_reference_source(problem, arch));
}

std::unique_ptr<Trial> attention_trial(const AttentionProblem& problem, Bench& bench) {
    return std::make_unique<AttentionTrial>(problem, bench);
}

}  // namespace rooftile
