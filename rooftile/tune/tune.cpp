#include "rooftile/tune/tune.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "rooftile/core/operation.hpp"
#include "rooftile/measure/problem_bench.hpp"
#include "rooftile/measure/ratios.hpp"
#include "rooftile/report/suite_rows.hpp"
#include "rooftile/tune/unlike.hpp"

namespace rooftile {
namespace {

/// A plan that was timed, and the paired re-measurement of the first against it, where there was one.
struct Timed {
    const Plan* plan;
    double us;
    std::optional<Confirmation> confirmation;
};

/// The first stays unless the paired blocks, which had no part in finding the other one, have it slower throughout their interval.
/// Where the first failed, which confirmations compare with, the fastest of the others is chosen.
TunedChoice choice_among(const TunePlace& place, std::string first_config, bool has_first, std::span<const Timed> timed) {
    const Timed* chosen = &timed.front();
    for (const Timed& t : timed)
        if (has_first ? t.confirmation && t.confirmation->ratio.low > 1 : t.us < chosen->us) chosen = &t;
    const Plan& plan = *chosen->plan;
    TunedChoice choice{.place = place,
                       .date = utc_now(),
                       .name = fmt::format("{} {}", plan.operation->name(), plan.operation->short_name(plan.problem)),
                       .problem = problem_key(plan.problem),
                       .first = std::move(first_config),
                       .config = config_text(plan),
                       .rank = plan.rank,
                       .label = plan.operation->label(plan),
                       .time_us = chosen->us,
                       .first_us = {},
                       .ratio = {},
                       .candidates = {}};
    if (has_first) choice.first_us = timed.front().us;
    if (has_first && chosen != &timed.front()) choice.ratio = chosen->confirmation->ratio;
    for (const Timed& t : timed) choice.candidates.push_back({t.plan->rank, t.plan->operation->label(*t.plan), t.us});
    return choice;
}

PlanSet unlike_set(PlanSet plans, int count) {
    keep_buildable(plans);
    std::vector<Plan> kept;
    for (const std::size_t i : unlike_plans(plans.plans, std::size_t(count))) kept.push_back(std::move(plans.plans[i]));
    plans.plans = std::move(kept);
    return plans;
}

/// On the caller's tensors, in the order of a launch. What the compiler refuses is left out.
TunedChoice timed_on(const TunePlace& place, const PlanSet& plans, int device, std::span<void* const> tensors) {
    std::vector<const Plan*> built;
    std::vector<TensorLaunch> launches;
    const std::vector<CompiledOutcome> outcomes = compile_all(plans.plans);
    MeasureOptions options;
    options.device = device, options.seed = fresh_seed(), options.timing = tune_timing();
    std::vector<Timing> timings;
    std::unique_ptr<Context> context;
    const std::unique_ptr<Bench> bench = start_bench(options, Driver::instance().device(device).arch(), context, timings);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        if (const auto* error = std::get_if<Error>(&outcomes[i])) {
            if (error->code() != ExitCode::compile_failed) throw *error;
            if (i == 0) throw *error;  // the others are only compared with the first
            continue;
        }
        const CompiledKernel& kernel = std::get<CompiledKernel>(outcomes[i]);
        kernel.load();
        built.push_back(&plans.plans[i]);
        launches.push_back(launch_of(kernel));
    }
    std::vector<TimedWork> works;
    for (std::size_t i = 0; i < built.size(); ++i)
        works.push_back({fmt::format("plan {}", built[i]->rank),
                         [&launch = launches[i], tensors](Stream stream, std::int64_t) { launch(stream, tensors); },
                         i == 0 ? Role::leader : Role::other});
    const int rounds = tune_rounds(built.front()->time_us, built.size());
    const std::vector<TimedResult> results = bench->time(works, 1, works.size(), timings, std::size_t(rounds));
    std::vector<Timed> timed;
    for (std::size_t i = 0; i < built.size(); ++i)
        timed.push_back({built[i], results[i].time_us.median, i > 0 ? confirmation_of(results.front(), results[i]) : std::nullopt});
    return choice_among(place, first_config(plans), true, timed);
}

}  // namespace

TimingOptions tune_timing() {
    TimingOptions timing;
    timing.load_seconds = 0.06;
    timing.block_seconds = 0.002, timing.lead_seconds = 0.001;
    // The rounds only find who is to be compared with plan 1: they end by their number, however they scatter.
    timing.rounds.least = timing.rounds.most = 2, timing.rounds.error = 1;
    timing.alone_seconds = 0;
    timing.settled_block_seconds = 0.005, timing.settle_seconds = 0.003;
    timing.confirmation = {.rounds = 10, .least = 6, .above = 1.005, .error = 0.003, .seconds = 0.1};
    return timing;
}

int tune_rounds(std::optional<double> predicted_us, std::size_t plans) {
    constexpr double all_us = 80'000, least_block_us = 2000, buffer_sets = 2;
    const double block_us = std::max(least_block_us, buffer_sets * predicted_us.value_or(0));
    constexpr double least = 2, most = 4;
    return int(std::clamp(all_us / (2 * block_us * double(plans)), least, most));  // as long a lead before each block
}

MeasureTask tune_task(PlanSet plans, int count) {
    MeasureTask task{.plans = unlike_set(std::move(plans), count)};
    if (!task.plans.plans.empty()) task.rounds = tune_rounds(task.plans.plans.front().time_us, task.plans.plans.size());
    return task;
}

std::optional<TunedChoice> choice_of(const TunePlace& place, std::span<const Measurement> rows) {
    std::vector<Timed> timed;
    for (const Measurement& row : rows)
        if (why_no_result(row).empty() && row.time_us) timed.push_back({&row.plan, *row.time_us, row.confirmation});
    if (timed.empty()) return std::nullopt;
    return choice_among(place, config_text(rows.front().plan), timed.front().plan == &rows.front().plan, timed);
}

std::optional<TunedChoice> put_first(const TuneStore& store, const TunePlace& place, PlanSet& plans) {
    std::optional<TunedChoice> choice = store.find(place, plans);
    if (!choice) return std::nullopt;
    const auto chosen = plans.plans.begin() + std::ptrdiff_t(place_of(*choice, plans).value());
    std::rotate(plans.plans.begin(), chosen, chosen + 1);
    return choice;
}

std::optional<std::size_t> tuned_place(const TuneStore& store, const PlanSet& plans, int count, int device, Stream stream,
                                       std::span<void* const> tensors) {
    const TunePlace place = tune_place(device);
    std::optional<TunedChoice> choice = store.find(place, plans);
    if (!choice) {
        if (count == 0 || is_capturing(stream)) return std::nullopt;
        const PlanSet set = unlike_set(plans, count);
        if (set.plans.empty()) throw RequestError(set.refusal->message);
        synchronize(stream);
        choice = timed_on(place, set, device, tensors);
        store.keep(*choice);
    }
    return place_of(*choice, plans);
}

}  // namespace rooftile
