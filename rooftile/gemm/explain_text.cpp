#include "rooftile/gemm/explain_text.hpp"

#include <sstream>

#include <fmt/core.h>

#include <algorithm>

#include "rooftile/gemm/plan_text.hpp"
#include "rooftile/report/explain.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

std::string with_unit(const std::string& number, const std::string& unit) {
    return unit.empty() ? number : number + " " + unit;
}

/// Collects what tells two plans apart, the weightiest first.
class Differences {
  public:
    void add(std::string text) { why_.push_back(std::move(text)); }

    template <class T>
    void less(const std::optional<T>& best, const std::optional<T>& other, std::string_view what) {
        if (best && other && double(*other) < double(*best) * 0.995)
            add(fmt::format("{} {} against {}", what, number_text(double(*other), 3),
                            number_text(double(*best), 3)));
    }
    template <class T>
    void more(const std::optional<T>& best, const std::optional<T>& other, std::string_view what) {
        if (best && other && double(*other) > double(*best) * 1.005)
            add(fmt::format("{} times the {}", number_text(double(*other) / double(*best), 3), what));
    }
    std::string text(size_t most) const {
        std::string out;
        for (size_t i = 0; i < std::min(most, why_.size()); ++i) out += (i ? ", " : "") + why_[i];
        return out;
    }

  private:
    std::vector<std::string> why_;
};

/// "wins if wgmma.turn falls below 120 clk (800)": the nearest few.
std::string wins_if_text(const std::vector<Counterfactual>& wins_if) {
    constexpr std::size_t most = 3;
    if (wins_if.empty())
        return fmt::format("never wins by one number of the machine alone, from {} to {} times what it is",
                           min_change, max_change);
    std::string out = "wins if ";
    for (std::size_t i = 0; i < std::min(most, wins_if.size()); ++i) {
        const Counterfactual& c = wins_if[i];
        const std::string unit = c.unit == "1" ? "" : c.unit;
        out += fmt::format("{}{} {} {} (here {})", i > 0 ? ", or " : "", c.key,
                           c.threshold < c.value ? "falls below" : "rises above",
                           with_unit(number_text(c.threshold), unit), input_text(c.value, unit));
    }
    return out;
}

}  // namespace

std::string why_behind(const GemmPlan& best, const GemmPlan& other) {
    const Prediction &b = best.prediction, &o = other.prediction;
    Differences why;
    if (b.time_us && o.time_us) {
        const double slower = *o.time_us / *b.time_us - 1;
        if (slower >= 0.0005) why.add(percent_text(slower) + " slower");
        else if (slower <= -0.0005) why.add(percent_text(-slower) + " faster by the model");
    }
    if (best.buildable && !other.buildable) why.add("no kernel can be built for it yet");
    if (b.bound && o.bound && *b.bound != *o.bound)
        why.add(fmt::format("bound by {}, not {}", name_of(*o.bound), name_of(*b.bound)));
    why.less(b.wave_efficiency, o.wave_efficiency, "wave efficiency");
    why.less(b.arithmetic_intensity, o.arithmetic_intensity, "FLOP/B of a tile");
    why.more(b.dram_bytes, o.dram_bytes, "DRAM bytes");
    why.more(b.l2_bytes, o.l2_bytes, "L2 bytes");
    if (other.config.stages < best.config.stages)
        why.add(fmt::format("{} stages against {}", other.config.stages, best.config.stages));
    const std::string text = why.text(4);
    return text.empty() ? "nothing in the model tells it from plan 1" : text;
}

std::string derivation_text(const GemmPlan& plan, const Terminal& terminal) {
    const std::string title = fmt::format("Why plan {}: {}", plan.rank, label_of(plan.config));
    std::istringstream lines(wrapped(title, terminal.width, 2));
    std::string out;
    for (std::string line; std::getline(lines, line);) out += terminal.paint(line, Tone::strong) + "\n";
    return out + steps_text(plan.derivation, terminal);
}

std::string runners_up_text(const Plans& plans, const std::vector<Explanation>& explanations,
                            const Terminal& terminal) {
    constexpr std::size_t asked = 2;
    if (plans.plans.size() < 2) return {};
    std::string out = "\n" + terminal.paint("Why not the others", Tone::strong) + "\n\n";
    for (size_t i = 1; i < plans.plans.size(); ++i) {
        const GemmPlan& other = plans.plans[i];
        out += fmt::format("{:>3}. ", other.rank)
               + wrapped(label_of(other.config) + ": " + why_behind(plans.plans.front(), other),
                         terminal.prose() - 7, 7)
               + "\n";
        if (i > asked || explanations.empty() || !explanations.at(i).wins_if) continue;
        out += "       " + wrapped(wins_if_text(*explanations.at(i).wins_if), terminal.prose() - 9, 9) + "\n";
    }
    return out;
}

}  // namespace rooftile
