#include "rooftile/chain/flips.hpp"

#include <fmt/core.h>

#include <cmath>
#include <functional>
#include <optional>

#include "rooftile/chain/derive.hpp"
#include "rooftile/core/operation.hpp"
#include "rooftile/error.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

constexpr double most_factor = 64;
constexpr int bisections = 4;  // a factor of two to its sixteenth root

struct Changed {
    std::shared_ptr<const Machine> machine;
    Problem problem;
    std::string value;  ///< as text
};

/// A machine with every number multiplied whose key begins with `prefix` and that is a rate, or whose key is `prefix`.
std::shared_ptr<const Machine> scaled(const Machine& machine, std::string_view prefix, double factor) {
    auto out = std::make_shared<Machine>(machine);
    for (auto& [key, fact] : out->facts) {
        const bool rate = fact.dimension.byte == 1 && (fact.dimension.second == -1 || fact.dimension.cycle == -1);
        if (key == prefix || (rate && prefix.ends_with('.') && key.starts_with(prefix))) fact.value *= factor;
    }
    return out;
}

class Flips {
  public:
    Flips(const std::shared_ptr<const Machine>& machine, const Problem& problem, const ChainRequest& request, ChainForm first)
        : machine_(machine), problem_(problem), p_(problem.own.as<ChainProblem>()), request_(request), first_(first) {
        request_.form.reset();
        request_.flips = false;
        request_.top = 1;
        request_.first_only = true;
    }

    std::vector<std::string> lines() {
        extent("m", &ChainProblem::m, 1);
        extent("d", &ChainProblem::d, chain_step);
        extent("ff", &ChainProblem::ff, chain_step);
        number("l2.size", "l2.size", "B");
        number("dram.bandwidth", "dram.", "B/s");
        return std::move(lines_);
    }

  private:
    using Change = std::function<std::optional<Changed>(double factor)>;

    void extent(const char* name, std::int64_t ChainProblem::* which, std::int64_t step) {
        line(name, [=, this](double factor) -> std::optional<Changed> {
            ChainProblem p = p_;
            p.*which = std::max<std::int64_t>(step, std::llround(double(p_.*which) * factor / double(step)) * step);
            if (p.*which == p_.*which && factor != 1) return std::nullopt;
            try {
                check(p);
            } catch (const RequestError&) {
                return std::nullopt;  // too large for anybody
            }
            return Changed{machine_, {problem_.operation, Own::of(p)}, std::to_string(p.*which)};
        });
    }

    void number(const char* key, const char* prefix, const char* unit) {
        const auto found = machine_->facts.find(key);
        if (found == machine_->facts.end()) return;
        const double value = found->second.value;
        line(key, [=, this](double factor) -> std::optional<Changed> {
            return Changed{scaled(*machine_, prefix, factor), problem_, scaled_text(value * factor, unit)};
        });
    }

    /// The first form there; empty: none.
    std::optional<ChainForm> form_at(const Changed& changed) const {
        const PlanSet set = derive_chain(changed.machine, changed.problem, request_);
        if (set.plans.empty()) return std::nullopt;
        return set.plans.front().own.as<ChainPlan>().config.form;
    }

    /// What is said of one direction.
    std::string side(const Change& change, bool up) const {
        double same = 1;
        for (double factor = 2; factor <= most_factor; factor *= 2) {
            double other = up ? factor : 1 / factor;
            std::optional<Changed> there = change(other);
            if (!there) break;
            std::optional<ChainForm> form = form_at(*there);
            if (form == first_) {
                same = other;
                continue;
            }
            for (int i = 0; i < bisections; ++i) {
                const double middle = std::sqrt(same * other);
                const std::optional<Changed> between = change(middle);
                if (!between) break;
                if (const auto of = form_at(*between); of == first_) same = middle;
                else other = middle, there = between, form = of;
            }
            return fmt::format("from {} {} {}", there->value, up ? "up" : "down", form ? name_of(*form) : "none");
        }
        return {};
    }

    void line(const char* name, const Change& change) {
        const std::string down = side(change, false), up = side(change, true);
        if (down.empty() && up.empty()) lines_.push_back(fmt::format("{}: {} between a {:.0f}th and {:.0f} times as much", name, name_of(first_), most_factor, most_factor));
        else lines_.push_back(fmt::format("{}: {}{}{}", name, down, !down.empty() && !up.empty() ? ", " : "", up));
    }

    std::shared_ptr<const Machine> machine_;
    Problem problem_;
    ChainProblem p_;
    ChainRequest request_;
    ChainForm first_;
    std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> chain_flips(const std::shared_ptr<const Machine>& machine, const Problem& problem, const ChainRequest& request, ChainForm first) {
    return Flips(machine, problem, request, first).lines();
}

}  // namespace rooftile
