#include "rooftile/measure/space_run.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "rooftile/core/in_parallel.hpp"
#include "rooftile/measure/bench.hpp"
#include "rooftile/measure/space_bench.hpp"
#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile {
namespace {

/// Distinct codes compiled on threads of its own, first needed first. Its kernels keep the code alive, so that compiling
/// another plan of the same code takes no compiler.
class CompilePool {
  public:
    CompilePool(const std::vector<const Plan*>& plans, unsigned threads)
        : plans_(plans), outcomes_(plans.size()) {
        for (unsigned t = 0; t < threads; ++t) threads_.emplace_back([this] { work(); });
    }
    ~CompilePool() {
        stop_ = true;
        for (std::thread& thread : threads_) thread.join();
    }
    CompilePool(const CompilePool&) = delete;
    CompilePool& operator=(const CompilePool&) = delete;

    /// Waits until it is compiled.
    const CompiledOutcome& at(std::size_t place) {
        std::unique_lock lock(mutex_);
        made_.wait(lock, [&] { return outcomes_[place].has_value(); });
        return *outcomes_[place];
    }

  private:
    void work() {
        for (std::size_t i = next_++; i < plans_.size() && !stop_; i = next_++) {
            CompiledOutcome outcome = compile_outcome(*plans_[i]);
            std::lock_guard lock(mutex_);
            outcomes_[i] = std::move(outcome);
            made_.notify_all();
        }
    }

    const std::vector<const Plan*>& plans_;
    std::vector<std::optional<CompiledOutcome>> outcomes_;
    std::atomic<std::size_t> next_{0};
    std::atomic<bool> stop_{false};
    std::mutex mutex_;
    std::condition_variable made_;
    std::vector<std::thread> threads_;  // last: they end before what they use
};

}  // namespace

std::vector<SpaceTask> space_tasks(const std::vector<Problem>& problems,
                                   const std::shared_ptr<const Machine>& machine, int top,
                                   const std::function<std::vector<Pick>(const Problem&)>& others) {
    std::vector<SpaceTask> tasks(problems.size());
    in_parallel(problems.size(), 0, [&](std::size_t i) {
        const std::vector<Pick> picks = others ? others(problems[i]) : std::vector<Pick>();
        tasks[i] = {problems[i], declared_space(*problems[i].operation, machine, problems[i], top, picks)};
    });
    return tasks;
}

SpaceCodes space_codes(const std::vector<SpaceTask>& tasks) {
    std::vector<std::vector<std::string>> keys(tasks.size());
    in_parallel(tasks.size(), 0, [&](std::size_t i) {
        for (const Plan& plan : tasks[i].space.members) {
            try {
                keys[i].push_back(on_device(*plan.operation).code_key(plan));
            } catch (const Error&) { keys[i].emplace_back(); }  // its compile says why
        }
    });
    SpaceCodes codes;
    std::map<std::string, std::size_t> known;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        std::vector<std::size_t>& places = codes.places.emplace_back();
        for (std::size_t k = 0; k < keys[i].size(); ++k) {
            const std::size_t next = codes.first.size();
            const std::size_t place =
                keys[i][k].empty() ? next : known.emplace(keys[i][k], next).first->second;
            if (place == next) codes.first.push_back(&tasks[i].space.members[k]);
            places.push_back(place);
        }
    }
    return codes;
}

void time_spaces(const std::vector<SpaceTask>& tasks, const SpaceEvents& events,
                 const MeasureOptions& options) {
    const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
    constexpr unsigned makers = 4;
    const SpaceCodes codes = space_codes(tasks);
    CompilePool pool(codes.first, cores > 3 ? cores - 2 : 1);
    std::vector<Timing> timings;
    std::unique_ptr<Context> context;
    const std::string arch = Driver::instance().device(options.device).arch();
    const std::unique_ptr<Bench> bench = start_bench(options, arch, context, timings);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        const auto& [problem, space] = tasks[i];
        if (options.interrupted && options.interrupted()) throw Error(ExitCode::interrupted, "interrupted");
        std::vector<CompiledOutcome> kernels;
        std::unique_ptr<PreparedTrial> trial;
        {
            const Part part(timings, "wait for compilers");
            trial = on_device(*problem.operation).prepare(problem, options, 1);
            // Making a kernel again of code that is there writes its text once more: a problem's side by side.
            kernels.assign(space.members.size(), Error(ExitCode::internal, "not compiled"));
            in_parallel(kernels.size(), std::min(makers, cores), [&](std::size_t k) {
                const CompiledOutcome& code = pool.at(codes.places[i][k]);
                kernels[k] = std::holds_alternative<Error>(code) ? code : compile_outcome(space.members[k]);
            });
        }
        LedgerEntry entry;
        try {
            entry = time_space(*bench, space, problem, *trial, kernels, timings);
        } catch (const Error& error) {
            rethrow_unless_of_one_problem(error);
            entry.problem = problem;
            entry.notes.push_back(error.what());
        }
        if (i == 0 && events.started) events.started(bench->running());
        if (!events.done(std::move(entry), timings)) break;
        timings.clear();
    }
}

}  // namespace rooftile
