#include "rooftile/gemm/device/trial.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "rooftile/gemm/device/ablation_kernels.hpp"
#include "rooftile/gemm/device/bench.hpp"
#include "rooftile/gemm/device/cublaslt_behind.hpp"
#include "rooftile/gemm/device/cublaslt_loop.hpp"
#include "rooftile/gemm/device/verify.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/measure/copy_baseline.hpp"

namespace rooftile {
namespace {

class GemmTrial final : public Trial {
  public:
    GemmTrial(const GemmProblem& problem, Bench& bench)
        : problem_(problem),
          bench_(bench),
          gemm_(bench),
          options_(bench.options()),
          reference_(bench.kernels(), problem) {}

    const Reference& reference() const override { return reference_; }
    const Reference& reference_of(const Plan& plan) const override {
        if (!problem_.is_quantised() || !rounds_weights(plan.own.as<GemmPlan>())) return reference_;
        if (!of_rounded_) of_rounded_.emplace(bench_.kernels(), problem_, true);
        return *of_rounded_;
    }

    std::vector<TimedWork> add_baselines(std::span<Measurement* const> rows, const TensorSets& sets,
                                         std::vector<std::string>&, std::vector<Timing>& timings) override {
        std::vector<TimedWork> works;
        if (options_.baseline) {
            const Part part(timings, "open cuBLASLt");
            if (problem_.is_quantised() && is_fp8(problem_.a_type)) missing_ = "cuBLASLt multiplies no rows of 8 bits by weights of 16";
            else if (problem_.is_quantised()) cublaslt_ = gemm_.baseline(problem_.dequantised(), missing_);
            else if (problem_.groups) loop_ = gemm_.loop(problem_, missing_);
            else cublaslt_ = gemm_.baseline(problem_, missing_);
            if (problem_.epilogue && !cublaslt_ && options_.planned_for()) open_behind();
        }
        algorithms_ = problem_.is_quantised() ? add_dequantised(works, sets) : add_cublaslt(works, cublaslt_, sets);
        for (int i = 0; behind_ && i < behind_->algorithms(); ++i, ++algorithms_)
            works.push_back({fmt::format("cuBLASLt {}, and a kernel", i),
                             [this, i, &sets](Stream stream, std::int64_t set) { behind_->launch(i, stream, sets.tensors(set)); }, Role::baseline});
        if (loop_)
            works.push_back({"cuBLASLt group by group", [this, &sets](Stream stream, std::int64_t set) { loop_->launch(stream, sets.tensors(set)); },
                             Role::baseline});
        before_parts_ = works.size();
        measured_.resize(rows.size());
        if (options_.ablate) add_parts(works, rows, sets, timings);
        if (options_.baseline) copied_ = CopyBaseline::of(bench_, std::int64_t(problem_.compulsory_bytes().value));
        if (copied_) works.push_back(copied_->work(bench_.kernels()));
        return works;
    }

    void read_baselines(std::span<const TimedResult> timed, std::vector<std::string>& notes) override {
        const auto algorithms = timed.first(algorithms_);
        const Roofs roofs = baseline_roofs_of(options_.machine, problem_, bench_.kernels().sms());
        baselines_ = cublaslt_baselines(problem_, options_.mode, algorithms, roofs, notes);
        if (const auto best = best_algorithm(problem_, options_.mode, algorithms, roofs)) {
            best_ = int(*best);
            best_timed_ = algorithms[*best];
            note_timed(notes, options_.mode, best_timed_, roofs);
        }
        if (loop_ && timed[algorithms_].failure.empty() && above_roof(problem_, options_.mode, timed[algorithms_], roofs).empty()) {
            loop_timed_ = timed[algorithms_];
            baselines_ = {{.key = std::string(cublaslt_loop),
                           .name = fmt::format("{} cuBLASLt launches, one a group", loop_->launches()),
                           .time_us = loop_timed_->time_us.median,
                           .same_work = true,
                           .ratio_key = "cublaslt"}};
            note_timed(notes, options_.mode, *loop_timed_, roofs);
        }
        for (std::size_t i = 0; i < parts_.size(); ++i)
            set_part(measured_[parts_[i].first].ablation->parts[parts_[i].second], timed[before_parts_ + i]);
        if (!copied_) return;
        baselines_.push_back(copied_->baseline(bench_, timed.back(), notes));
        copied_.reset();  // counting needs memory too
    }

    void set_figures(Measurement& row, std::size_t, const TimedResult& timed,
                     std::vector<std::string>& notes) override {
        const Roofs roofs = roofs_of(options_.machine, gemm_plan(row), bench_.kernels().sms());
        rooftile::set_figures(row, timed, roofs);
        row.baselines = baselines_;
        row.baseline_missing = missing_;
        for (Baseline& b : row.baselines)
            if (best_ && b.key == cublaslt_best) b.ratio = paired_ratio(best_timed_, timed);
            else if (loop_timed_ && b.key == cublaslt_loop) b.ratio = paired_ratio(*loop_timed_, timed);
        for (std::string& note : unchecked_roofs(options_.mode, timed, roofs)) note_once(notes, std::move(note));
        if (behind_) note_once(notes, "cuBLASLt has no such epilogue: its product, stored in the result's type, and a kernel of ours behind it");
        if (cublaslt_ && problem_.is_quantised()) note_once(notes, "cuBLASLt multiplies the same weights unpacked, in the activations' type");
        if (cublaslt_ && cublaslt_->other_gelu()) note_once(notes, "cuBLASLt's gelu is by tanh, this one by erf");
    }

    std::optional<BaselineLaunch> counted_baseline() override {
        if (behind_ && best_)
            return BaselineLaunch{std::string(cublaslt_best), [this](Stream stream, TensorPointers tensors) { behind_->launch(*best_, stream, tensors); }};
        if (!cublaslt_ || !best_ || problem_.is_quantised()) return std::nullopt;  // counters are of our tensors
        return BaselineLaunch{std::string(cublaslt_best), launch_of(*cublaslt_, *best_)};
    }

    void finish(Measurement& row, std::size_t index) override {
        const Machine* machine = options_.planned_for();
        GemmMeasured measured = index < measured_.size() ? std::move(measured_[index]) : GemmMeasured{};
        if (machine && measured.ablation) attribute(*measured.ablation, row, *machine);
        if (measured.ablation) set_measured(row, std::move(measured));
    }

  private:
    /// cuBLASLt's algorithms on weights that are unpacked once, in as many sets as there are.
    std::size_t add_dequantised(std::vector<TimedWork>& works, const TensorSets& sets) {
        const QuantisedReference packed(problem_);
        const std::int64_t bytes = packed.dequantised_bytes(problem_.b_type);
        if (!cublaslt_) return 0;
        weights_ = DeviceBuffer(std::size_t(bytes * sets.sets()));
        const auto weights = [this, bytes](std::int64_t set) { return weights_.address() + DevicePointer(set * bytes); };
        for (std::int64_t set = 0; set < sets.sets(); ++set)
            packed.dequantise(Stream(nullptr), reinterpret_cast<DevicePointer>(sets.tensors(set)[1]), weights(set), problem_.b_type);
        synchronize(Stream(nullptr));
        for (int i = 0; i < cublaslt_->algorithms(); ++i)
            works.push_back({fmt::format("cuBLASLt {}", i),
                             [this, i, weights, &sets](Stream stream, std::int64_t set) {
                                 const TensorPointers own = sets.tensors(set);
                                 std::vector<void*> tensors(own.begin(), own.end());
                                 tensors[1] = reinterpret_cast<void*>(weights(set));
                                 cublaslt_->launch(i, stream, tensors);
                             },
                             Role::baseline});
        return std::size_t(cublaslt_->algorithms());
    }
    /// Where the library has no such epilogue.
    void open_behind() {
        behind_ = CublasLtBehind::open(problem_, std::make_shared<const Machine>(*options_.planned_for()), missing_);
        if (behind_) missing_.clear();
    }
    /// Each plan's kernel without a part; what does not compile so has its reason and no place among `works`.
    void add_parts(std::vector<TimedWork>& works, std::span<Measurement* const> rows, const TensorSets& sets,
                   std::vector<Timing>& timings) {
        bench_.say("compiling without loads, products and store");
        const Part part(timings, "compile without parts");
        for (std::size_t i = 0; i < rows.size(); ++i) {
            measured_[i].ablation = AblationStudy{};
            for (TimedPart& timed : timed_parts(gemm_plan(*rows[i]), *measured_[i].ablation)) {
                works.push_back({std::move(timed.name), on(sets, std::move(timed.launch)), Role::aside});
                parts_.emplace_back(i, timed.index);
            }
        }
    }

    GemmProblem problem_;
    Bench& bench_;
    GemmBench gemm_;
    const MeasureOptions& options_;
    GemmReference reference_;
    mutable std::optional<GemmReference> of_rounded_;  ///< of plans that round packed weights, where there is one
    const CublasLt* cublaslt_ = nullptr;
    std::unique_ptr<const CublasLtBehind> behind_;
    DeviceBuffer weights_;  ///< of packed weights, unpacked, set by set
    std::string missing_ = "not asked for";
    std::size_t algorithms_ = 0;  ///< of cuBLASLt, timed first
    std::unique_ptr<const CublasLtLoop> loop_;  ///< of groups, timed behind them
    std::optional<TimedResult> loop_timed_;
    std::size_t before_parts_ = 0;  ///< of what is timed
    std::vector<std::pair<std::size_t, std::size_t>> parts_;  ///< of what is timed behind them: row, and which part
    std::optional<CopyBaseline> copied_;
    std::vector<GemmMeasured> measured_;  ///< of our kernels
    std::vector<Baseline> baselines_;
    std::optional<int> best_;  ///< of cuBLASLt's algorithms
    TimedResult best_timed_;
};

}  // namespace

std::unique_ptr<Trial> gemm_trial(const GemmProblem& problem, Bench& bench) {
    return std::make_unique<GemmTrial>(problem, bench);
}

}  // namespace rooftile
