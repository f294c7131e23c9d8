#include "rooftile/physics/roofs.hpp"

#include <algorithm>

#include "rooftile/machine/query.hpp"

namespace rooftile {

namespace {

class Roofs {
  public:
    Roofs(const Machine& machine, const Conditions& conditions, std::int64_t tiles)
        : machine_(machine), clock_(clock_of(machine, conditions)) {
        if (const auto all = machine.count("sm.count")) sms_ = std::min(*all * conditions.sm_share, double(tiles));
    }

    /// `amount` at `rate` a second. An empty rate: the machine's `key` is unknown.
    void add(Bound bound, double amount, std::optional<double> rate, const std::string& key) {
        if (amount <= 0) return;
        if (rate) out_.units.push_back({bound, amount / *rate, key});
        else out_.unknown.push_back(key);
    }

    void matrix(const MatrixWork& work) {
        const std::string key = rate_key(work.family, work.input, work.accumulate);
        std::optional<double> rate;
        const auto one = flops_per_cycle_per_sm(machine_, key, clock_);
        if (one && sms_ && clock_) rate = one->value * *sms_ * clock_->value;
        add(Bound::tensor, work.flops, rate, key);
    }
    /// Of a rate that the machine gives for each SM and clock.
    void per_cycle(Bound bound, double amount, std::optional<double> per_sm, const std::string& key) {
        std::optional<double> rate;
        if (per_sm && sms_ && clock_) rate = *per_sm * *sms_ * clock_->value;
        add(bound, amount, rate, key);
    }
    std::optional<double> per_sm(const char* key) const {
        using PerCycle = Quantity<Dimension{.cycle = -1}>;
        const auto rate = machine_.number<PerCycle>(key, Per::sm);
        return rate ? std::optional(rate->value) : std::nullopt;
    }
    std::optional<double> bytes_per_sm(const char* key) const {
        const auto rate = bytes_per_cycle_per_sm(machine_, key, clock_);
        return rate ? std::optional(rate->value) : std::nullopt;
    }
    std::optional<double> bytes_per_second(const std::string& key) const {
        const auto rate = bandwidth(machine_, key, clock_);
        return rate ? std::optional(rate->value) : std::nullopt;
    }

    RoofTime take() {
        std::stable_sort(out_.units.begin(), out_.units.end(),
                         [](const UnitTime& a, const UnitTime& b) { return a.seconds > b.seconds; });
        return std::move(out_);
    }

  private:
    static std::optional<Clock> clock_of(const Machine& machine, const Conditions& conditions) {
        if (conditions.clock_hz) return Clock{*conditions.clock_hz};
        return machine.number<Clock>("clock.boost");
    }

    const Machine& machine_;
    std::optional<Clock> clock_;
    std::optional<double> sms_;  ///< that work: a tile has one
    RoofTime out_;
};

}  // namespace

RoofTime roof_time(const Demand& demand, const Machine& machine, const Conditions& conditions) {
    Roofs roofs(machine, conditions, demand.tiles);
    for (const MatrixWork& work : demand.matrix) roofs.matrix(work);
    constexpr double lanes = 32;  // of a warp's instruction, one partition of the SM issues it a cycle
    const auto partitions = machine.count("sm.partitions");
    roofs.per_cycle(Bound::issue, demand.issue_slots, partitions ? std::optional(*partitions * lanes) : std::nullopt,
                    "sm.partitions");
    roofs.per_cycle(Bound::issue, demand.exponentials, roofs.per_sm("rate.mufu"), "rate.mufu");
    roofs.per_cycle(Bound::shared, demand.shared_bytes.value_or(0), roofs.bytes_per_sm("shared.bandwidth"),
                    "shared.bandwidth");
    roofs.add(Bound::l2, demand.l2_bytes.value_or(0), roofs.bytes_per_second("l2.bandwidth"), "l2.bandwidth");
    double compulsory = 0;
    for (const TensorTraffic& t : demand.tensors) {
        const auto& held = conditions.held_in_l2;
        if (std::find(held.begin(), held.end(), t.tensor) == held.end()) compulsory += t.footprint_bytes;
    }
    const bool sustained = conditions.sustained && machine.find("dram.sustained_read");
    const std::string dram = sustained ? "dram.sustained_read" : "dram.bandwidth";
    roofs.add(Bound::dram, compulsory, roofs.bytes_per_second(dram), dram);
    const auto gap = machine.number<Seconds>("launch.gap_stream");
    roofs.add(Bound::launch, demand.launches, gap ? std::optional(1 / gap->value) : std::nullopt, "launch.gap_stream");
    return roofs.take();
}

}  // namespace rooftile
