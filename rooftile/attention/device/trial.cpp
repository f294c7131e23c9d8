#include "rooftile/attention/device/trial.hpp"

#include <fmt/core.h>

#include "rooftile/attention/device/reference.hpp"
#include "rooftile/attention/plan.hpp"
#include "rooftile/measure/copy_baseline.hpp"
#include "rooftile/measure/tensor_figures.hpp"
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
        baselines_.push_back(copied_->baseline(bench_, timed.back(), notes));
        copied_.reset();  // counting needs memory too
    }

    void set_figures(Measurement& row, std::size_t, const TimedResult& timed, std::vector<std::string>&) override {
        if (!set_tensor_figures(row, bench_, problem_.flops(), double(problem_.compulsory_bytes()),
                                attention_type_name(problem_.type), timed))
            return;
        row.baselines = baselines_;
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
    compiled_attention_reference(problem, arch);
}

std::unique_ptr<Trial> attention_trial(const AttentionProblem& problem, Bench& bench) {
    return std::make_unique<AttentionTrial>(problem, bench);
}

}  // namespace rooftile
