#include "rooftile/measure/fuse.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <future>
#include <memory>

#include "rooftile/kernel/fuse_kernel.hpp"
#include "rooftile/measure/bench.hpp"
#include "rooftile/measure/fuse_data.hpp"
#include "rooftile/model/fuse_cost.hpp"
#include "rooftile/problem/unfuse.hpp"

namespace rooftile {
namespace {

/// A kernel with the workspace that whole reductions need; its launches follow each other in one stream.
class Runnable {
  public:
    explicit Runnable(FuseKernel kernel) : kernel_(std::move(kernel)) {
        kernel_.load();
        if (const std::size_t bytes = kernel_.workspace_bytes()) {
            workspace_ = std::make_shared<DeviceBuffer>(bytes);
            fill_bytes(workspace_->address(), 0, bytes, nullptr);
        }
    }
    const FuseKernel& kernel() const { return kernel_; }
    void launch(Stream stream, std::span<const void* const> inputs, std::span<void* const> outputs) const {
        kernel_.launch(stream, inputs, outputs, workspace_ ? workspace_->data() : nullptr);
    }

  private:
    FuseKernel kernel_;
    std::shared_ptr<DeviceBuffer> workspace_;
};

/// The chain's operators one after the other, intermediates in buffers of their own.
class UnfusedChain {
  public:
    UnfusedChain(const FuseProblem& problem, const Machine& machine) : problem_(problem) {
        buffers_.resize(problem.nodes.size());
        for (UnfusedKernel& k : unfused_kernels(problem)) {
            const auto outcome = derive(machine, k.problem, {.top = 1});
            const auto* plans = std::get_if<FusePlans>(&outcome);
            if (!plans) throw RequestError(std::get<FuseInfeasible>(outcome).message);
            kernels_.emplace_back(compile(plans->plans.front()));
            const GraphNode& n = problem.nodes[std::size_t(k.node)];
            buffers_[std::size_t(k.node)] = DeviceBuffer(std::max<std::size_t>(16, std::size_t(bytes_of(n))));
            chain_.push_back(std::move(k));
        }
    }

    void launch(Stream stream, std::span<const void* const> inputs, std::span<void* const> outputs) const {
        const auto tensor = [&](int node) -> const void* {
            for (std::size_t i = 0; i < problem_.inputs.size(); ++i)
                if (problem_.inputs[i] == node) return inputs[i];
            return buffers_[std::size_t(node)].data();
        };
        for (std::size_t i = 0; i < chain_.size(); ++i) {
            std::vector<const void*> operands;
            for (int node : chain_[i].operands) operands.push_back(tensor(node));
            void* result = buffers_[std::size_t(chain_[i].node)].data();
            for (std::size_t o = 0; o < problem_.outputs.size(); ++o)
                if (problem_.outputs[o].node == chain_[i].node) result = outputs[o];
            kernels_[i].launch(stream, operands, std::span<void* const>(&result, 1));
        }
    }

  private:
    const FuseProblem& problem_;
    std::vector<UnfusedKernel> chain_;
    std::vector<Runnable> kernels_;
    std::vector<DeviceBuffer> buffers_;  // by node of the chain
};

class FuseBench {
  public:
    FuseBench(const std::vector<FusePlan>& plans, const Machine& machine, const MeasureOptions& options)
        : plans_(plans), problem_(plans.front().problem), machine_(machine), options_(options) {
        for (const FusePlan& plan : plans) {
            FuseMeasurement& row = run_.rows.emplace_back();
            row.plan = plan;
            row.mode = options.mode;
        }
    }

    FuseRun run() {
        run_.timings.push_back({"before measuring", seconds_since(options_.program_start)});
        const std::string arch = Driver::instance().device(options_.device).arch();
        const auto context = Context::current_or_primary(options_.device);
        build(arch);
        make_sets();
        verify();
        if (options_.time) time();
        const RunningGpu gpu = bench_->running();
        run_.gpu = gpu.gpu, run_.driver = gpu.driver, run_.nvrtc = gpu.nvrtc;
        return std::move(run_);
    }

  private:
    void build(const std::string& arch) {
        const Part part(run_.timings, "compile");
        auto own = std::async(std::launch::async, [&] { return compile_measure_kernels(arch); });
        std::vector<std::variant<Error, FuseKernel>> built(plans_.size(),
                                                           Error(ExitCode::internal, "not compiled"));
        in_parallel(plans_.size(), 0, [&](std::size_t i) {
            try {
                built[i] = compile(plans_[i]);
            } catch (const Error& error) { built[i] = error; }
        });
        bench_ = std::make_unique<Bench>(options_, own.get());
        for (std::size_t i = 0; i < built.size(); ++i) {
            if (const auto* error = std::get_if<Error>(&built[i])) {
                run_.rows[i].invalid = error->what();
                continue;
            }
            const FuseKernel& kernel = std::get<FuseKernel>(built[i]);
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
            rotated_sets(bytes, bench_->device().l2_bytes, l2_factor, share_of_free(free_share));
        if (count < 1)
            throw Error(ExitCode::gpu_failed,
                        fmt::format("one set of tensors takes {} B, {} B of GPU memory may be used", bytes,
                                    share_of_free(free_share)));
        constexpr std::int64_t most_sets = 256;
        sets_ = std::make_unique<FuseSets>(problem_, std::min(count, most_sets), options_.seed);
    }

    void verify() {
        if (!options_.verify) return;
        const Part part(run_.timings, "verify");
        for (std::size_t i = 0; i < runnables_.size(); ++i) {
            FuseMeasurement& row = run_.rows[rows_[i]];
            runnables_[i].launch(nullptr, sets_->inputs(0), sets_->outputs(0));
            synchronize(Stream(nullptr));
            row.verified = check_outputs(problem_, *sets_, options_.seed);
            if (!row.verified.checked) run_.notes.push_back(row.verified.failure);
            else if (!row.verified.failure.empty())
                row.invalid = "the result is wrong: " + row.verified.failure;
        }
    }

    void add_copies(std::vector<TimedWork>& works) {
        const std::int64_t bytes = std::max<std::int64_t>(16, fused_bytes(problem_).sum() / 2 / 16 * 16);
        const std::int64_t count = sets_->sets();
        from_ = DeviceBuffer(std::size_t(bytes * count));
        to_ = DeviceBuffer(std::size_t(bytes * count));
        const auto place = [bytes](const DeviceBuffer& b, std::int64_t set) {
            return b.address() + DevicePointer(set * bytes);
        };
        copies_ = works.size();
        works.push_back({"copy", [this, bytes, place](Stream stream, std::int64_t set) {
                             bench_->kernels().copy(stream, place(to_, set), place(from_, set), bytes);
                         }});
        works.push_back({"memcpy", [this, bytes, place](Stream stream, std::int64_t set) {
                             copy_on_device(place(to_, set), place(from_, set), std::size_t(bytes), stream);
                         }});
    }

    void add_unfused(std::vector<TimedWork>& works) {
        unfused_ = works.size();
        try {
            chain_ = std::make_unique<UnfusedChain>(problem_, machine_);
        } catch (const Error& error) {
            run_.baselines.missing = fmt::format("the operators one by one: {}", error.what());
            return;
        }
        works.push_back({"unfused", [this](Stream stream, std::int64_t set) {
                             chain_->launch(stream, sets_->inputs(set), sets_->outputs(set));
                         }});
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
                             }});
        }
        if (works.empty()) return;
        if (options_.baseline) {
            add_copies(works);
            add_unfused(works);
        }
        const std::vector<TimedResult> timed = bench_->time(works, sets_->sets(), run_.timings);
        if (options_.baseline) {
            const auto us = [&](std::size_t i) -> std::optional<double> {
                if (i >= timed.size() || timed[i].time_us.samples == 0) return std::nullopt;
                return timed[i].time_us.median;
            };
            run_.baselines.copy_us = us(copies_);
            run_.baselines.memcpy_us = us(copies_ + 1);
            run_.baselines.unfused_us = us(unfused_);
        }
        for (std::size_t i = 0; i < rows.size(); ++i) set_figures(run_.rows[rows[i]], timed[i]);
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
        const FuseBaselines& b = run_.baselines;
        if (b.copy_us && b.memcpy_us) row.roof_fraction = std::min(*b.copy_us, *b.memcpy_us) / *row.time_us;
    }

    const std::vector<FusePlan>& plans_;
    const FuseProblem& problem_;
    const Machine& machine_;
    const MeasureOptions& options_;
    FuseRun run_;
    std::unique_ptr<Bench> bench_;
    std::vector<Runnable> runnables_;
    std::vector<std::size_t> rows_;  ///< of `runnables_`
    std::unique_ptr<FuseSets> sets_;
    std::unique_ptr<UnfusedChain> chain_;
    DeviceBuffer from_, to_;
    std::size_t copies_ = 0, unfused_ = 0;
};

}  // namespace

FuseRun measure(const std::vector<FusePlan>& plans, const Machine& machine, const MeasureOptions& options) {
    if (plans.empty()) throw RequestError("there is no plan to measure");
    return FuseBench(plans, machine, options).run();
}

}  // namespace rooftile
