#include "rooftile/physics/beside.hpp"

#include <algorithm>
#include <cmath>


#include "rooftile/core/operation.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/machine/reader.hpp"
#include "rooftile/physics/roofs.hpp"

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
    const double per_sm = known_or(reader.number<BytesPerCycle>("dram.per_sm_alone", Per::sm), reader.number<BytesPerCycle>("dram.per_sm", Per::sm)),
                 sms = reader.count("sm.count");
    s.dram_by_sms = known_or(moved / (per_sm * sms * reader.clock()), s.of_dram);
    return s;
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
    for (int of_first = 1; of_first < sms; ++of_first) {
        const double share = double(of_first) / sms;
        const double one = std::max(a.of_sms, a.dram_by_sms) / share, two = std::max(b.of_sms, b.dram_by_sms) / (1 - share);
        const double longest = std::max({one, two, dram, l2, a.seconds - launch, b.seconds - launch});
        if (!(longest + launch < out.together)) continue;
        out.together = longest + launch;
        out.sms[0] = of_first, out.sms[1] = sms - of_first;
        out.bound = longest == dram ? "dram" : longest == l2 ? "l2" : longest == one ? "first" : longest == two ? "second" : "the longer one";
    }
    return out;
}

}  // namespace rooftile
