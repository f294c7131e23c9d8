#include "rooftile/gemm/variants.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "rooftile/gemm/evaluate_plan.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/knobs.hpp"
#include "rooftile/gemm/simulate_orders.hpp"

namespace rooftile {
namespace {

bool same_order(const GemmConfig& config, const OrderChoice& other) {
    return config.order == other.order && (!has_groups(other.order) || config.group == other.group);
}

/// A candidate with the rest drawn.
struct Drawn {
    GemmConfig config;
    double seconds;
};

/// Times every candidate that is accepted, with stages and an order drawn from those that its constraints leave.
class Draw final : public GemmVisitor {
  public:
    Draw(const GemmKernel* kernel, const GemmHardware& hw, const GemmProblem& problem, const GemmRequest& request, std::uint64_t seed)
        : kernel_(kernel), hw_(hw), problem_(problem), inner_(inner_space(request)), random_(seed) {}

    void reject(const Constraint&, const GemmCandidate&, std::int64_t) override {}
    void accept(const GemmCandidate& candidate) override {
        const int least = std::max({inner_.stages_low, candidate.stages_min, candidate.stages_against_latency(hw_.dram_latency)});
        const int most = std::min(inner_.stages_high, candidate.stages_max(std::max(max_stages, inner_.stages_high)));
        if (most < least) return;
        GemmCandidate drawn = candidate;
        drawn.kernel = kernel_;
        drawn.stages = least + int(below(std::uint64_t(most - least + 1)));
        drawn.take_order(inner_.orders[below(std::uint64_t(inner_.order_count))], hw_, problem_);
        const double dram = ScheduleTraffic(hw_, drawn, problem_).dram(drawn.order, drawn.group);
        const double seconds =
            gemm_time_under_power(hw_, drawn, problem_, drawn.step, waves(hw_, drawn, problem_), dram, drawn.stages).seconds;
        if (!std::isnan(seconds)) drawn_.push_back({drawn, seconds});
    }
    /// The same everywhere, unlike the standard library's distributions.
    std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
    std::vector<Drawn> take() { return std::move(drawn_); }

  private:
    const GemmKernel* kernel_;
    const GemmHardware& hw_;
    const GemmProblem& problem_;
    InnerSpace inner_;
    std::mt19937_64 random_;
    std::vector<Drawn> drawn_;
};

/// Of each knob, whether those drawn differ in it.
std::vector<bool> differing(const std::vector<Drawn>& all) {
    std::vector<bool> out;
    GemmKnobs::each([&](const auto& knob) {
        const auto differs = [&](const Drawn& d) { return d.config.*knob.value != all.front().config.*knob.value; };
        out.push_back(std::ranges::any_of(all, differs));
    });
    return out;
}

/// What was drawn; all else is chosen as the request has it.
GemmRequest fixed_to(const Drawn& drawn, const std::vector<bool>& differ, GemmRequest request) {
    const GemmRequest fixed = fixed_to(drawn.config);
    auto differs = differ.begin();
    GemmKnobs::each([&](const auto& knob) {
        if (*differs++) request.*knob.fixed = fixed.*knob.fixed;
    });
    request.top = 1;
    return request;
}

/// The logarithm of the predicted time over rank 1's, in parts of the whole spread: 0 .. 1.
double place_of(const Drawn& drawn, double first_seconds) {
    return std::max(0.0, std::log(drawn.seconds / first_seconds) / std::log(drawn_within));
}

/// Takes one of `left` whose place is in [low, high), drawn; where there is none, the nearest to the middle.
std::size_t pick(const std::vector<Drawn>& left, double first_seconds, double low, double high, Draw& draw) {
    std::vector<std::size_t> within;
    std::size_t nearest = 0;
    double least = INFINITY;
    for (std::size_t i = 0; i < left.size(); ++i) {
        const double place = place_of(left[i], first_seconds);
        if (place >= low && place < high) within.push_back(i);
        const double away = std::abs(place - (low + high) / 2);
        if (away < least) least = away, nearest = i;
    }
    return within.empty() ? nearest : within[draw.below(within.size())];
}

void rank_by_time(Plans& plans) {
    std::stable_sort(plans.plans.begin() + 1, plans.plans.end(), [](const GemmPlan& x, const GemmPlan& y) {
        return x.prediction.time_us.value_or(INFINITY) < y.prediction.time_us.value_or(INFINITY);
    });
    for (std::size_t i = 0; i < plans.plans.size(); ++i) plans.plans[i].rank = int(i) + 1;
}

std::variant<Plans, Infeasible> first_plan(const Machine& machine, const GemmProblem& problem,
                                           GemmRequest request) {
    request.top = 1;
    return derive(machine, problem, request);
}

}  // namespace

std::variant<Plans, Infeasible> derive_in_orders(const Machine& machine, const GemmProblem& problem,
                                                 const GemmRequest& request,
                                                 std::span<const OrderChoice> orders) {
    auto outcome = first_plan(machine, problem, request);
    auto* plans = std::get_if<Plans>(&outcome);
    if (!plans) return outcome;
    const GemmConfig chosen = plans->plans.front().config;
    for (const OrderChoice& order : orders) {
        if (same_order(chosen, order)) continue;
        GemmRequest other = fixed_to(chosen);
        other.order = order.order;
        other.group.reset();
        if (has_groups(order.order)) other.group = order.group;
        other.buildable_only = request.buildable_only;
        auto result = derive(machine, problem, other);
        if (auto* found = std::get_if<Plans>(&result)) {
            plans->plans.push_back(std::move(found->plans.front()));
            plans->plans.back().rank = int(plans->plans.size());
        } else {
            plans->notes.push_back(fmt::format("left out: order {}: {}", name_of(order.order),
                                               std::get<Infeasible>(result).message));
        }
    }
    return outcome;
}

std::variant<Plans, Infeasible> derive_sample(const Machine& machine, const GemmProblem& problem,
                                              const GemmRequest& request, int count, std::uint64_t seed) {
    auto outcome = first_plan(machine, problem, request);
    auto* plans = std::get_if<Plans>(&outcome);
    if (!plans) return outcome;
    const GemmPlan first = plans->plans.front();
    const auto evaluated = evaluate_plan(machine, first);
    if (!evaluated || std::isnan(evaluated->time.seconds)) {
        plans->notes.emplace_back("nothing was drawn: the first plan's time is unknown");
        return outcome;
    }
    const GemmHardware& hw = evaluated->gemm.hw;
    const double seconds = evaluated->time.seconds;
    const GemmProblem computed = multiplied(first);
    GemmRequest of_first = request;  // a drawn tile may be one of several kernels
    of_first.kernel = first.config.kernel;
    Draw draw(first.config.kernel, hw, computed, request, seed);
    first.config.kernel->enumerate(hw, computed, request, draw);
    std::vector<Drawn> left = draw.take();
    std::erase_if(left, [&](const Drawn& d) { return d.seconds > drawn_within * seconds; });
    const std::vector<bool> differ = differing(left);
    const int wanted = count - 1;
    for (int i = 0; i < wanted;) {
        if (left.empty()) break;
        const std::size_t at = pick(left, seconds, double(i) / wanted, double(i + 1) / wanted, draw);
        auto result = derive(machine, problem, fixed_to(left[at], differ, of_first));
        left.erase(left.begin() + std::ptrdiff_t(at));
        auto* found = std::get_if<Plans>(&result);
        // A candidate that no kernel is built for is no loss: another is drawn.
        if (!found || found->plans.front().config == first.config) continue;
        plans->plans.push_back(std::move(found->plans.front()));
        --plans->rejected.reasons[static_cast<int>(Reason::dominated)];
        ++i;
    }
    if (int(plans->plans.size()) < count)
        plans->notes.push_back(fmt::format(
            "{} of {} plans: no more candidates have a time by the closed form of DRAM traffic within "
            "{} times the first one's",
            plans->plans.size(), count, drawn_within));
    rank_by_time(*plans);
    return outcome;
}

}  // namespace rooftile
