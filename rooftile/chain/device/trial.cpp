#include "rooftile/chain/device/trial.hpp"

#include <fmt/core.h>

#include "rooftile/chain/derive.hpp"
#include "rooftile/chain/device/reference.hpp"
#include "rooftile/error.hpp"
#include "rooftile/measure/copy_baseline.hpp"
#include "rooftile/measure/ratios.hpp"
#include "rooftile/measure/tensor_figures.hpp"
#include "rooftile/runtime/cache.hpp"

namespace rooftile {
namespace {

/// One of the two products as its own operation measures it: the library's fastest call for it.
struct LibraryCall {
    std::unique_ptr<PreparedTrial> prepared{};
    std::unique_ptr<Trial> trial{};
    std::unique_ptr<TensorSets> sets{};
    std::optional<BaselineLaunch> launch{};
};

class ChainTrial final : public Trial {
  public:
    ChainTrial(const Problem& problem, Bench& bench)
        : problem_(problem.own.as<ChainProblem>()), bench_(bench), options_(bench.options()),
          reference_(bench.kernels(), problem_, bench.device().arch()) {}

    const Reference& reference() const override { return reference_; }

    /// The library's best call for each product, found by itself, then both as one work on the chain's own tensors.
    std::vector<TimedWork> add_baselines(std::span<Measurement* const>, const TensorSets& sets, std::vector<std::string>& notes,
                                         std::vector<Timing>& timings) override {
        std::vector<TimedWork> works;
        if (!options_.baseline) return works;
        if (prepare_call(0, first_product(problem_, true), timings, notes) && prepare_call(1, second_product(problem_, problem_.residual), timings, notes)) {
            h_ = DeviceBuffer(std::size_t(problem_.h_bytes()));
            works.push_back({"two library calls",
                             [this, &sets](Stream stream, std::int64_t set) { two_calls(stream, sets.tensors(set)); }, Role::baseline});
        }
        copied_ = CopyBaseline::of(bench_, problem_.compulsory_bytes());
        if (copied_) works.push_back(copied_->work(bench_.kernels()));
        return works;
    }

    void read_baselines(std::span<const TimedResult> timed, std::vector<std::string>& notes) override {
        std::size_t next = 0;
        if (calls_[0].launch && calls_[1].launch) {
            two_calls_timed_ = timed[next++];
            Baseline two;
            const bool between = problem_.act == ChainAct::silu || problem_.act == ChainAct::swiglu;
            two.key = "two_calls", two.name = fmt::format("two library calls ({}){}", calls_[0].launch->key, between ? ", a kernel of ours between" : "");
            if (between) note_once(notes, fmt::format("the library has no {}: a kernel of ours computes it between its two calls", name_of(problem_.act)));
            if (two_calls_timed_->time_us.samples > 0) two.time_us = two_calls_timed_->time_us.median;
            baselines_.push_back(std::move(two));
        }
        if (!copied_) return;
        baselines_.push_back(copied_->baseline(bench_, timed[next], notes));
        copied_.reset();  // counting needs memory too
    }

    void set_figures(Measurement& row, std::size_t, const TimedResult& timed, std::vector<std::string>&) override {
        if (!set_tensor_figures(row, bench_, problem_.flops(), double(problem_.compulsory_bytes()),
                                chain_type_name(problem_.type), timed))
            return;
        row.baselines = baselines_;
        row.baseline_missing = missing_;
        if (two_calls_timed_)
            for (Baseline& b : row.baselines)
                if (b.key == "two_calls") b.ratio = paired_ratio(*two_calls_timed_, timed);
    }

    std::optional<BaselineLaunch> counted_baseline() override {
        if (!calls_[0].launch || !calls_[1].launch) return std::nullopt;
        return BaselineLaunch{"two_calls", [this](Stream stream, TensorPointers tensors) { two_calls(stream, tensors); }};
    }

    void finish(Measurement& row, std::size_t) override { row.show_derivation = options_.explain; }

  private:
    void two_calls(Stream stream, TensorPointers tensors) const {
        void* const h = reinterpret_cast<void*>(h_.address());
        void* const of_first[] = {tensors[0], tensors[1], h};
        calls_[0].launch->launch(stream, of_first);
        void* const plain[] = {h, tensors[2], tensors[3]};
        void* const with_x[] = {h, tensors[2], tensors[0], tensors[3]};
        if (problem_.residual) calls_[1].launch->launch(stream, with_x);
        else calls_[1].launch->launch(stream, plain);
    }

    bool prepare_call(std::size_t index, const Given& given, std::vector<Timing>& timings, std::vector<std::string>& notes) {
        const Operation* operation = find_operation(product_operation);
        if (!operation) {
            missing_ = fmt::format("this build has no operation {}", product_operation);
            return false;
        }
        LibraryCall& call = calls_[index];
        const Problem product = operation->problem(given);
        call.prepared = on_device(*operation).prepare(product, options_, 1);
        call.trial = call.prepared->begin(bench_, timings);
        const std::vector<TensorInfo> tensors = operation->tensors(product);
        const std::int64_t sets = std::min<std::int64_t>(sets_of_problem(TensorSets::set_bytes(tensors), bench_.device().l2_bytes), most_sets);
        call.sets = std::make_unique<TensorSets>(tensors, sets, call.trial->reference(), options_.seed);
        const std::vector<TimedWork> works = call.trial->add_baselines({}, *call.sets, notes, timings);
        if (!works.empty()) call.trial->read_baselines(bench_.time(works, sets, 0, timings), notes);
        call.launch = call.trial->counted_baseline();
        call.sets.reset();  // memory for what is compared
        if (!call.launch) missing_ = fmt::format("the library has no call for the {} product", index == 0 ? "first" : "second");
        return call.launch.has_value();
    }

    static constexpr std::int64_t most_sets = 64;

    ChainProblem problem_;
    Bench& bench_;
    const MeasureOptions& options_;
    ChainReference reference_;
    LibraryCall calls_[2];
    DeviceBuffer h_;
    std::string missing_;
    std::optional<TimedResult> two_calls_timed_;
    std::optional<CopyBaseline> copied_;
    std::vector<Baseline> baselines_;
};

}  // namespace

void compile_chain_reference(const std::string& arch) { compile_cached(chain_reference_source(arch)); }

std::unique_ptr<Trial> chain_trial(const Problem& problem, Bench& bench) { return std::make_unique<ChainTrial>(problem, bench); }

}  // namespace rooftile
