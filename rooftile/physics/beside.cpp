#include "rooftile/physics/beside.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "rooftile/core/operation.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/machine/reader.hpp"
#include "rooftile/physics/energy.hpp"
#include "rooftile/physics/roofs.hpp"
#include "rooftile/tiled/power.hpp"

namespace rooftile {
namespace {

bool is_of_sms(Bound bound) { return bound == Bound::tensor || bound == Bound::issue || bound == Bound::shared || bound == Bound::latency; }

std::optional<UnitShares> shares_of(const Machine& machine, const Plan& plan, std::string& why) {
    if (!plan.time_us) {
        why = "the time of " + plan.operation->label(plan) + " is unknown";
        return std::nullopt;
    }
    const Demand demand = plan.operation->demand(machine, plan);
    UnitShares s;
    s.seconds = *plan.time_us * 1e-6;
    std::optional<Clock> clock = machine.number<Clock>("clock.boost");
    if (!demand.matrix.empty())
        if (const auto sustained = matrix_clock(machine, demand.matrix.front().input)) clock = sustained->clock;
    Conditions conditions;
    conditions.sustained = true;
    if (clock) conditions.clock_hz = clock->value;
    double dram_rate_seconds = 0, compulsory = 0;
    for (const UnitTime& unit : roof_time(demand, machine, conditions).units) {
        if (is_of_sms(unit.bound)) s.of_sms = std::max(s.of_sms, unit.seconds);
        if (unit.bound == Bound::l2) s.of_l2 = unit.seconds;
        if (unit.bound == Bound::dram) dram_rate_seconds = unit.seconds;
    }
    for (const TensorTraffic& t : demand.tensors) compulsory += t.footprint_bytes;
    const double moved = demand.dram_bytes.value_or(compulsory);
    s.of_dram = compulsory > 0 ? dram_rate_seconds * moved / compulsory : 0;
    s.launch = known_or(MachineReader(machine, clock).number<Seconds>("launch.gap_stream"), 0) * demand.launches;
    // What binds it takes as long as it is predicted to, launches apart; the others what they take at their full rates.
    const double busy = std::max(0.0, s.seconds - s.launch);
    if (plan.bound && is_of_sms(*plan.bound)) s.of_sms = busy;
    if (plan.bound == Bound::dram) s.of_dram = std::max(s.of_dram, busy);
    if (plan.bound == Bound::l2) s.of_l2 = std::max(s.of_l2, busy);
    const MachineReader reader(machine, clock);
    // What one SM can have while others ask for less; where nobody measured that, its share.
    const double per_sm = reader.number<BytesPerCycle>("dram.per_sm", Per::sm), by_itself = known_or(reader.number<BytesPerCycle>("dram.per_sm_alone", Per::sm), per_sm),
                 sms = reader.count("sm.count");
    s.dram_by_sms = known_or(moved / (by_itself * sms * reader.clock()), s.of_dram);
    // A kernel that is timed on all SMs has as much on its way in each as that takes, and on fewer SMs no more of it: of each SM it gets what
    // less traffic leaves, not what the SM could ask for. PyTorch's gelu has 24 to 25.5 GB/s an SM on 8 to 64 of them, 21.5 on 132.
    if (plan.bound == Bound::dram) s.dram_by_sms = std::max(s.dram_by_sms, busy * min_known(1, per_sm / by_itself));
    const PredictedRun alone = plan.operation->predictor(machine, std::span(&plan, 1))(machine).front();
    s.clock_hz = known_or(alone.clock_hz, reader.clock());
    // As energy_of has it: of matrix work at its sustained clock, of other work at its own.
    const auto stated = demand.matrix.empty() ? std::nullopt : matrix_clock(machine, demand.matrix.front().input);
    s.stated_hz = demand.matrix.empty() ? s.clock_hz : stated ? stated->clock.value : unknown_number;
    const Energy energy = energy_of(demand, machine, {alone.seconds, s.stated_hz});
    s.joules = energy.total && energy.idle ? *energy.total - *energy.idle : unknown_number;
    return s;
}

/// What power lets two plans do at once: one clock for both, at which the joules of their work are what the limit leaves of the time.
class SharedClock {
  public:
    SharedClock(const Machine& machine, const UnitShares& a, const UnitShares& b) : top_(std::max(a.clock_hz, b.clock_hz)), limit_(limit(machine)) {
        const double exponent = MachineReader(machine, std::nullopt).number<Ratio>("energy.exponent");
        for (const UnitShares* s : {&a, &b}) joules_ += s->joules * std::pow(top_ / s->stated_hz, exponent);
    }

    /// The highest clock for `cycles` of the SMs' own work; the top where a number of power is unknown.
    double of(double cycles) const {
        return limit_.held(joules_, [cycles](double clock) { return cycles / clock; }).clock_hz;
    }
    double top() const { return top_; }

  private:
    PowerLimit limit(const Machine& machine) {
        const MachineReader reader(machine, std::nullopt);
        for (const char* key : {"clock.tensor", "clock.boost"}) top_ = std::max(top_, known_or(reader.number<Clock>(key), top_));
        return {top_, top_, reader.number<Watts>("power.sustained"), reader.number<Watts>("power.static"), reader.number<Ratio>("energy.exponent")};
    }

    double top_;
    PowerLimit limit_;
    double joules_ = 0;  ///< at the top clock
};

/// What speaks against it; empty: nothing.
std::string against(const SideBySide& s, const Plan* const (&plans)[2]) {
    constexpr const char* names[] = {"first", "second"};
    for (std::size_t i = 0; i < 2; ++i)
        if (!plans[i]->buildable) return fmt::format("the {} plan cannot be built: {}", names[i], plans[i]->why_not);
    // A share of the SMs shortens no launch, and two of them pass each other in two streams without one.
    constexpr double most_of_it = 0.5;
    for (std::size_t i = 0; i < 2; ++i)
        if (plans[i]->bound == Bound::launch || s.parts[i].launch > most_of_it * s.parts[i].seconds)
            return fmt::format("most of the {} plan's {:.3g} us is its launch, which no share of the SMs shortens", names[i], s.parts[i].seconds * 1e6);
    if (s.gain() < SideBySide::least_gain)
        return "on fewer SMs each takes longer, and what is left of the gain is less than measured pairs lost compared with the model (docs/dataflow.md)";
    return {};
}

}  // namespace

std::optional<SideBySide> side_by_side(const Machine& machine, const Plan& first, const Plan& second, std::string& why) {
    SideBySide out;
    const auto count = machine.count("sm.count");
    if (!count || *count < 2) {
        why = "the number of SMs is unknown, or there is but one";
        return std::nullopt;
    }
    for (const auto& [plan, shares] : {std::pair{&first, &out.parts[0]}, {&second, &out.parts[1]}}) {
        const auto found = shares_of(machine, *plan, why);
        if (!found) return std::nullopt;
        *shares = *found;
    }
    const UnitShares &a = out.parts[0], &b = out.parts[1];
    out.in_turn = a.seconds + b.seconds;
    const double dram = a.of_dram + b.of_dram, l2 = a.of_l2 + b.of_l2, launch = std::max(a.launch, b.launch);
    out.ceiling = out.in_turn / std::max({a.of_sms + b.of_sms, dram, l2, std::max(a.seconds, b.seconds)});
    out.together = INFINITY;
    const int sms = int(*count);
    const SharedClock clock(machine, a, b);
    const double cycles_a = std::max(a.of_sms, a.dram_by_sms) * a.clock_hz, cycles_b = std::max(b.of_sms, b.dram_by_sms) * b.clock_hz;
    for (int of_first = 1; of_first < sms; ++of_first) {
        const double share = double(of_first) / sms;
        const double one = cycles_a / share, two = cycles_b / (1 - share);
        const double hz = clock.of(std::max(one, two)), of_sms = std::max(one, two) / hz;
        const double longest = std::max({of_sms, a.of_sms + b.of_sms, dram, l2, a.seconds - launch, b.seconds - launch});
        if (!(longest + launch < out.together)) continue;
        out.together = longest + launch;
        out.clock_hz = hz;
        out.sms[0] = of_first, out.sms[1] = sms - of_first;
        out.bound = longest == of_sms ? (hz < clock.top() ? "power" : one > two ? "first" : "second")
                    : longest == dram ? "dram" : longest == l2 ? "l2" : "the longer one";
    }
    out.against = against(out, {&first, &second});
    return out;
}

}  // namespace rooftile
