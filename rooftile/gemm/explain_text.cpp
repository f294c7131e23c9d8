#include "rooftile/gemm/explain_text.hpp"

#include <sstream>

#include <fmt/core.h>

#include <algorithm>

#include "rooftile/gemm/plan_text.hpp"
#include "rooftile/report/explain.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

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

std::vector<NamedPlan> named_plans(const Plans& plans) {
    std::vector<NamedPlan> out;
    for (const GemmPlan& plan : plans.plans)
        out.push_back({label_of(plan.config), plan.prediction.time_us, why_behind(plans.plans.front(), plan)});
    return out;
}

}  // namespace rooftile
