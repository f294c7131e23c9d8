#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>
#include <tuple>

#include <fmt/core.h>

#include "rooftile/machine/query.hpp"
#include "rooftile/machine/reader.hpp"
#include "rooftile/machine/units_text.hpp"
#include "rooftile/gemm/derivation.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/packing.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

// Everything about one search that messages need.
struct Request {
    const Machine& machine;
    const GemmProblem& problem;
    const GemmRequest& fixed;
    const GemmHardware& hw;
    const GemmKernel& kernel;
};

Infeasible infeasible(const Request& r, Reason reason, std::string message, double needed, double available) {
    return {reason, std::move(message), needed, available, r.machine.id, r.machine.name, r.problem, {}};
}

std::string candidate_text(const GemmConfig& c) {
    return fmt::format("tile {}x{}x{}, {} {} consumer warpgroup{}{}", c.tile_m, c.tile_n,
                       c.tile_k, c.consumer_warpgroups, name_of(c.schedule), c.consumer_warpgroups == 1 ? "" : "s",
                       c.split_k > 1 ? fmt::format(", split_k {}", c.split_k) : "");
}

// One line for the constraint of the nearest candidate: needed, available, what to change.
std::string constraint_text(const Request& r, const SearchResult& result) {
    GemmCandidate c = result.nearest_candidate;
    const Constraint& constraint = result.nearest;
    const auto rule = [&] { return fmt::format("{}: {}", candidate_text(c), words_of(constraint)); };
    if (constraint.reason != Reason::shared) return rule();
    r.kernel.examine(r.hw, r.problem, c);
    const int fit = c.stages_max(1 << 20);
    const int stages = r.fixed.stages.value_or(std::max(fit + 1, min_stages));
    if (stages <= fit) return rule();  // too few to hold the sums of parts of K
    return fmt::format(
        "{}: {} stages: {} x {} = {} B + {} B for C epilogue tiles and barriers > {:.0f} B of shared "
        "memory "
        "on {}; {} fit{}",
        candidate_text(c), stages, stages, c.stage_bytes, std::int64_t{stages} * c.stage_bytes,
        c.reserved_bytes + stages * c.stage_overhead, c.shared_limit, r.machine.id, std::max(fit, 0),
        fit < c.stages_min && c.split_k > 1
            ? fmt::format(", and the sums that parts of K exchange take {}", c.stages_min)
            : "");
}

std::vector<std::string> unchecked_constraints(const GemmHardware& hw) {
    std::vector<std::string> constraints;
    const auto unchecked = [&](bool is, const char* constraint) {
        if (is) constraints.emplace_back(constraint);
    };
    unchecked(std::isnan(hw.registers_per_sm) || std::isnan(hw.registers_per_thread), "registers");
    unchecked(std::isnan(hw.shared_per_cta), "shared memory");
    unchecked(std::isnan(hw.dram_latency) || std::isnan(hw.flops_per_cycle), "latency");
    unchecked(std::isnan(hw.threads_per_sm), "threads");
    unchecked(std::isnan(hw.shared_bandwidth), "instruction against shared memory");
    unchecked(std::isnan(hw.l2_port), "CTA tile against the SM's port");
    unchecked(std::isnan(hw.l2_share), "cluster tile against L2");
    unchecked(std::isnan(hw.dram_share), "wave against DRAM");
    unchecked(std::isnan(hw.sms), "waves");
    return constraints;
}

std::variant<Plans, Infeasible> run(const Request& r, GemmContext context,
                                    const std::vector<std::string>& unknown,
                                    double bound = std::numeric_limits<double>::infinity()) {
    SearchResult result = search(r.kernel, r.hw, r.problem, r.fixed, bound);
    if (result.best.empty()) {
        const bool any = bool(result.nearest);
        Infeasible out =
            infeasible(r, any ? result.nearest.reason : Reason::instruction,
                       any ? constraint_text(r, result) : "no candidate has the values that were fixed",
                       result.nearest.needed, result.nearest.available);
        out.rejected = result.rejected;
        return out;
    }
    context.kept = std::move(result.best);
    const auto shared = std::make_shared<const GemmContext>(std::move(context));
    Plans plans;
    plans.machine_id = r.machine.id;
    plans.machine_name = r.machine.name;
    plans.problem = r.problem;
    plans.rejected = result.rejected;
    std::string first_why_not;
    plans.plans.reserve(shared->kept.size());
    for (std::size_t i = 0; i < shared->kept.size(); ++i) {
        GemmPlan plan = write_plan(shared, i);
        plan.rank = static_cast<int>(plans.plans.size()) + 1;
        plan.unknown = unknown;
        plan.why_not = r.kernel.why_not(r.machine, r.problem, plan.config, r.hw);
        plan.buildable = plan.why_not.empty();
        if (r.fixed.buildable_only && !plan.buildable) {
            ++plans.rejected.reasons[static_cast<int>(Reason::instruction)];
            if (first_why_not.empty()) first_why_not = plan.why_not;
            continue;
        }
        plans.plans.push_back(std::move(plan));
    }
    if (plans.plans.empty()) {
        Infeasible out = infeasible(r, Reason::instruction, first_why_not, 0, 0);
        out.rejected = plans.rejected;
        return out;
    }
    return plans;
}

// Every candidate of the space is rejected together where the kernel cannot compute the problem as it is asked for.
Infeasible reject_all(const Request& r, Refusal why) {
    Infeasible out =
        infeasible(r, why.reason, std::move(why.message), why.needed.value_or(0), why.available.value_or(0));
    struct Count final : GemmVisitor {
        std::int64_t candidates = 0;
        void reject(const Constraint&, const GemmCandidate&, std::int64_t how_many) override {
            candidates += how_many;
        }
        void accept(const GemmCandidate&) override { ++candidates; }
        void leave_out(const Rule&, std::int64_t how_many) override { candidates += how_many; }
    } count;
    r.kernel.enumerate(r.hw, r.problem, r.fixed, count);
    out.rejected.reasons[static_cast<int>(why.reason)] = count.candidates * inner_space(r.fixed).size();
    return out;
}

std::optional<Refusal> refusal(const Request& r) {
    if (const std::string missing = r.kernel.missing_on(r.machine); !missing.empty()) {
        const GemmKernel& best = best_gemm_kernel(r.machine, r.problem);
        return Refusal{Reason::instruction,
                       fmt::format("{} needs {}, which {} does not have; {} runs there", r.kernel.name(), missing, r.machine.id,
                                   best.missing_on(r.machine).empty() ? best.name() : "no kernel of packed weights"),
                       1, 0};
    }
    if (r.problem.is_quantised() != r.kernel.is_of_quantised())
        return Refusal{Reason::instruction,
                       fmt::format("types {} x {}: {} does not multiply {}; leave the kernel off", name_of(r.problem.a_type), r.problem.b_name(),
                                   r.kernel.name(), r.problem.is_quantised() ? "packed weights" : "weights that are not packed"),
                       1, 0};
    return r.kernel.refusal(r.machine, r.problem, r.fixed);
}

/// The machine's fastest instruction, where the kernel's is a slower one.
std::optional<FamilyRate> faster_instruction(const Request& r) {
    const std::string_view input = rate_name_of(r.problem.a_type), sums = name_of(r.problem.accumulate_type);
    const std::string family = r.kernel.instruction(r.machine, r.problem.a_type);
    const auto own = flops_per_cycle_per_sm(r.machine, rate_key(family, input, sums));
    const auto fastest = fastest_instruction(r.machine, input, sums);
    return own && fastest && *own < fastest->rate ? fastest : std::nullopt;
}

/// Its FLOP/s at the clock that published figures use.
std::optional<double> tensor_peak(const Request& r) {
    const auto faster = faster_instruction(r);
    if (!faster) return std::nullopt;
    auto clock = r.machine.number<Clock>("clock.tensor");
    if (!clock) clock = r.machine.number<Clock>("clock.boost");
    const auto peak = peak_flops(r.machine, faster->family, rate_name_of(r.problem.a_type),
                                 name_of(r.problem.accumulate_type), clock);
    return peak ? std::optional(peak->value) : std::nullopt;
}

/// The number to look up next where no time is known: those that the method's steps need, in their order.
std::string most_wanted(const Machine& machine, const GemmHardware& hw) {
    const bool no_clock = std::isnan(hw.clock_hz);
    const std::tuple<bool, const char*, const char*> wanted[] = {
        {std::isnan(hw.registers_per_sm), "sm.registers", "it bounds the tile"},
        {std::isnan(hw.shared_per_cta), "shared.per_cta", "it bounds the stages"},
        {no_clock && std::isnan(hw.dram_bandwidth) && machine.find("dram.bandwidth"), "clock.boost", "dram.bandwidth is given in bytes a cycle, and which intensity is enough follows from bytes a second"},
        {std::isnan(hw.peak_flops), "the peak", "with dram.bandwidth it says which intensity is enough"},
        {std::isnan(hw.dram_bandwidth), "dram.bandwidth", "with the peak it says which intensity is enough"},
        {std::isnan(hw.dram_latency), "dram.latency", "it says how many stages are the least"},
        {std::isnan(hw.sms), "sm.count", std::isnan(hw.flops_per_cycle) ? "it says what a wave of tiles is, and with the clock what an SM computes a cycle: the least stages follow" : "it says what a wave of tiles is"},
        {std::isnan(hw.flops_per_cycle) && no_clock, "clock.boost", "with the peak and sm.count it says what an SM computes a cycle: the least stages follow"},
        {std::isnan(hw.flops_per_cycle), "the rate of the matrix instruction", "the least stages follow from it"},
        {std::isnan(hw.shared_bandwidth), "shared.bandwidth", "times need it"},
        {std::isnan(hw.l2_port), "l2.port", "times need it"},
        {std::isnan(hw.l2_share), "l2.bandwidth", "times need it"}};
    for (const auto& [is, name, why] : wanted)
        if (is) return fmt::format("no time is known: plans are ranked by the method's rule. Most wanted is {}: {}", name, why);
    return {};
}

/// What the kernels of the plans say of the problem; where there is no plan, the first kernel.
std::vector<std::string> notes_of_kernels(const Request& r, std::span<const GemmPlan> plans) {
    if (plans.empty()) return r.kernel.notes(r.problem, r.fixed, r.hw);
    std::vector<std::string> out;
    std::vector<const GemmKernel*> kernels;
    for (const GemmPlan& plan : plans) {
        const GemmKernel* kernel = plan.config.kernel;
        if (std::ranges::find(kernels, kernel) != kernels.end()) continue;
        kernels.push_back(kernel);
        for (std::string& note : kernel->notes(multiplied(plan), r.fixed, r.hw))
            if (std::ranges::find(out, note) == out.end()) out.push_back(std::move(note));
    }
    return out;
}

std::vector<std::string> notes(const Request& r, std::span<const GemmPlan> plans) {
    std::vector<std::string> out = notes_of_kernels(r, plans);
    std::string share;
    if (const auto faster = faster_instruction(r))
        share = fmt::format("{} of the tensor peak: {} of {}'s {} FLOP/clk/SM",
                            percent_text(r.hw.flops_per_cycle / faster->rate.value),
                            number_text(r.hw.flops_per_cycle), faster->family, number_text(faster->rate.value));
    if (r.machine.has("tcgen05"))
        out.push_back("tcgen05 is not modelled yet: planned at the rate of mma.sync"
                      + (share.empty() ? "" : ", " + share));
    else if (!share.empty()) out.push_back("mma.sync reaches " + share);
    if (std::isnan(r.hw.launch_seconds))
        out.emplace_back("times leave out the launch: launch.gap_stream is unknown");
    else if (r.fixed.programmatic_launch == false && std::isnan(r.hw.programmatic_saving)
             && r.kernel.instruction(r.machine, r.problem.a_type) == "wgmma")
        out.emplace_back("times are those of programmatic launches: launch.programmatic_saving is unknown");
    if (std::string note = calibration_note(r.machine, "stream."); !note.empty())
        out.push_back(std::move(note));
    return out;
}

/// Whether nothing behind that packing is as fast as the first of the plans: all operands moved once besides.
bool cannot_win(const GemmHardware& behind, const GemmProblem& problem, const std::variant<Plans, Infeasible>& out) {
    const auto* plans = std::get_if<Plans>(&out);
    if (!plans || !plans->plans.front().prediction.time_us) return true;
    const double least = behind.packing_seconds + problem.compulsory_bytes().value / behind.dram_bandwidth
                         + known_or(behind.launch_seconds, 0);
    return !(least * 1e6 < *plans->plans.front().prediction.time_us);
}

/// Merges plans of the same problem, `top` of both. What finds no place is dominated.
void add_plans(std::variant<Plans, Infeasible>& out, std::variant<Plans, Infeasible> others, int top) {
    auto& plans = std::get<Plans>(out);
    plans.rejected.add(std::visit([](const auto& o) -> const Rejected& { return o.rejected; }, others));
    auto* more = std::get_if<Plans>(&others);
    if (!more) return;
    const auto sooner = [](const GemmPlan& x, const GemmPlan& y) {
        return x.prediction.time_us.value_or(INFINITY) < y.prediction.time_us.value_or(INFINITY);
    };
    std::vector<GemmPlan> all;
    std::merge(std::make_move_iterator(plans.plans.begin()), std::make_move_iterator(plans.plans.end()),
               std::make_move_iterator(more->plans.begin()), std::make_move_iterator(more->plans.end()),
               std::back_inserter(all), sooner);
    if (const auto beyond = std::ptrdiff_t(all.size()) - top; beyond > 0) {
        plans.rejected.reasons[static_cast<int>(Reason::dominated)] += beyond;
        all.resize(std::size_t(top));
    }
    for (std::size_t i = 0; i < all.size(); ++i) all[i].rank = int(i) + 1;
    plans.plans = std::move(all);
}

/// No plan is predicted sooner than that.
void hold_back(Plans& plans, std::optional<double> least_us) {
    if (!least_us) return;
    for (GemmPlan& plan : plans.plans)
        if (std::optional<double>& us = plan.prediction.time_us; us && *us < *least_us) {
            if (plan.prediction.tflops) *plan.prediction.tflops *= *us / *least_us;
            us = least_us;
        }
}

/// Adds the plans of `kernel`, where it computes what is asked for; `alone`: in the place of the others.
void join(std::variant<Plans, Infeasible>& out, const std::shared_ptr<const Machine>& machine, const GemmProblem& given,
          GemmRequest request, const GemmKernel& kernel, bool alone) {
    request.kernel = &kernel;
    const GemmProblem problem = multiplied(&kernel, given);
    const std::string instruction = kernel.instruction(*machine, problem.a_type);
    std::vector<std::string> unknown;
    const Following follows = following(kernel, request.programmatic_launch.value_or(true), request.early_weights.value_or(false));
    const GemmHardware plain = gemm_hardware(*machine, instruction, problem.a_type, unknown);
    const PackedOperands packed = kernel.packs(problem, request);
    const GemmHardware hw = with_operands(as_launched(plain, follows, problem.b_bytes()), problem, packed);
    const Request r{*machine, problem, request, hw, kernel};
    auto* others = std::get_if<Plans>(&out);
    bool joined = false;
    double bound = std::numeric_limits<double>::infinity();
    if (others && !alone && packed.any()) {  // the launch in front alone may take as long as the others do
        if (cannot_win(hw, problem, out)) return;
        bound = *others->plans.front().prediction.time_us * 1e-6;
    }
    if (const auto why = refusal(r)) {
        // Of an image it is the only other way: why it is none says as much as what is in the first one's way.
        if (auto* none = std::get_if<Infeasible>(&out); none && problem.image) none->message += fmt::format("; {}: {}", kernel.name(), why->message);
    } else {
        auto found = run(r, {machine, problem, hw, instruction, &kernel, request, {}, packed}, unknown, bound);
        joined = std::holds_alternative<Plans>(found);
        if (others && !alone) add_plans(out, std::move(found), request.top);
        else if (joined) out = std::move(found);
    }
    if (others && alone && !joined) {
        // What the request fixes leaves this kernel no plan, and the others' times leave something out: none is sooner than the best of all.
        GemmRequest any;
        any.kernel = &kernel, any.top = 1;
        const auto best = derive(machine, problem, any);
        if (const auto* plans = std::get_if<Plans>(&best)) hold_back(*others, plans->plans.front().prediction.time_us);
    }
}

}  // namespace

std::variant<Plans, Infeasible> derive(const Machine& machine, const GemmProblem& problem,
                                       const GemmRequest& asked) {
    return derive(std::make_shared<const Machine>(machine), problem, asked);
}

std::variant<Plans, Infeasible> derive(std::shared_ptr<const Machine> shared, const GemmProblem& given,
                                       const GemmRequest& asked) {
    const Machine& machine = *shared;
    check(given);
    const GemmProblem one = as_one_product(given);
    check(asked);
    GemmRequest request = asked;
    request.top = std::clamp(request.top, 1, max_gemm_plans);
    const GemmKernel& kernel = request.kernel ? *request.kernel : best_gemm_kernel(machine, one);
    const GemmProblem problem = multiplied(&kernel, one);
    const std::string instruction = kernel.instruction(machine, problem.a_type);
    std::vector<std::string> unknown;
    GemmHardware hw = gemm_hardware(machine, instruction, problem.a_type, unknown);
    // Beside products the schedulers' lanes are asked for by expressions and promoted sums: elsewhere nobody misses them.
    if (problem.epilogue || problem.promoted()) MachineReader(machine, {}, &unknown).count("sm.partitions");
    hw = as_launched(hw, following(kernel, request.programmatic_launch.value_or(true), request.early_weights.value_or(false)),
                     problem.b_bytes());
    const std::vector<PackedOperands> packings = kernel.packings(problem, request, hw);
    const GemmHardware apart = hw;
    hw = with_operands(hw, problem, packings.front());
    const Request r{machine, problem, request, hw, kernel};

    std::variant<Plans, Infeasible> out;
    if (auto why = refusal(r)) out = reject_all(r, std::move(*why));
    else {
        out = run(r, {shared, problem, hw, instruction, &kernel, request, {}, packings.front()}, unknown);
        for (const PackedOperands& packed : std::span(packings).subspan(1)) {
            const GemmHardware behind = with_operands(apart, problem, packed);
            if (cannot_win(behind, problem, out)) continue;
            const Request packs{machine, problem, request, behind, kernel};
            const double bound = *std::get<Plans>(out).plans.front().prediction.time_us * 1e-6;
            add_plans(out,
                      run(packs, {shared, problem, behind, instruction, &kernel, request, {}, packed},
                          unknown, bound),
                      request.top);
        }
    }
    if (!request.kernel)
        for (const GemmKernel* other : gemm_kernels())
            if (other != &kernel && other->joins(problem)) join(out, shared, problem, request, *other, kernel.is_flattered(problem));
    std::visit(
        [&](auto& result) {
            result.unknown = unknown;
            result.unchecked_constraints = unchecked_constraints(hw);
            if constexpr (std::is_same_v<std::decay_t<decltype(result)>, Plans>) result.notes = notes(r, result.plans);
            else result.notes = notes(r, {});
            result.problem = given;
            if (one != given)
                result.notes.push_back(fmt::format("the {} products share B, and their rows are evenly spaced: planned and computed as one product of {} rows", given.batch, problem.m));
            if constexpr (std::is_same_v<std::decay_t<decltype(result)>, Plans>) {
                result.tensor_peak = tensor_peak(r);
                if (std::ranges::any_of(result.plans, rounds_weights))
                    result.notes.push_back(fmt::format("where weights are unpacked first each is rounded to {} before it is multiplied; kernels of "
                                                       "packed weights multiply it as it is", name_of(given.b_type)));
                if (!result.plans.front().prediction.time_us)
                    if (std::string note = most_wanted(machine, hw); !note.empty()) result.notes.insert(result.notes.begin(), std::move(note));
            }
        },
        out);
    return out;
}

}  // namespace rooftile
