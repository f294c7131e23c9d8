#include "rooftile/chain/flips.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "rooftile/chain/derive.hpp"
#include "rooftile/core/operation.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

constexpr double most_factor = 64, closest = 1.005;

struct Changed {
    std::shared_ptr<const Machine> machine;
    Problem problem;
    std::string value;  ///< as text, exactly what is planned with
};

class Flips {
  public:
    Flips(const std::shared_ptr<const Machine>& machine, const Problem& problem, const ChainRequest& request, ChainForm first)
        : machine_(machine), problem_(problem), p_(problem.own.as<ChainProblem>()), request_(request), first_(first) {
        request_.flips = false;
        request_.top = 1;
        request_.first_only = true;
        request_.followed = std::make_shared<FollowedTraffic>();
        const bool of_all = !request_.form;
        request_.form.reset();
        if (!of_all) first_ = form_at({machine_, problem_, {}}, false).value_or(first);
    }

    std::vector<std::string> lines() {
        extent("m", &ChainProblem::m, 1);
        extent("d", &ChainProblem::d, chain_step);
        extent("ff", &ChainProblem::ff, chain_step);
        number("l2.size", "B");
        number("dram.bandwidth", "B/s");
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

    /// As `--set` changes it.
    void number(const char* key, const char* unit) {
        const auto found = machine_->facts.find(key);
        if (found == machine_->facts.end()) return;
        const double value = found->second.value;
        line(key, [=, this](double factor) -> std::optional<Changed> {
            auto changed = std::make_shared<Machine>(*machine_);
            constexpr int digits = 4;
            const double scale = std::pow(10, digits - 1 - std::floor(std::log10(value * factor)));
            const double rounded = std::round(value * factor * scale) / scale;
            const std::string text = std::string_view(unit) == "B" ? fmt::format("{:.0f} B", rounded) : scaled_text(rounded, unit);  // whole bytes
            set_number(*changed, fmt::format("{}={}", key, text));
            return Changed{std::move(changed), problem_, text};
        });
    }

    /// The first form there; empty: none.
    std::optional<ChainForm> form_at(const Changed& changed, bool coarse) const {
        ChainRequest request = request_;
        request.coarse = coarse;
        const PlanSet set = derive_chain(changed.machine, changed.problem, request);
        if (set.plans.empty()) return std::nullopt;
        return set.plans.front().own.as<ChainPlan>().config.form;
    }

    /// A value where `first_` is ahead, and one behind it where another form is.
    struct Bracket {
        double same = 1, other = 1;
        std::string same_value, other_value{};
        std::optional<ChainForm> form{};
    };

    enum class Taken : std::uint8_t { ahead, behind, known, none };
    /// Takes a value into the bracket, unless it is there already or there is none.
    Taken take(const Change& change, Bracket& bracket, double factor, bool coarse) const {
        const std::optional<Changed> there = change(factor);
        if (!there) return Taken::none;
        if (there->value == bracket.same_value || there->value == bracket.other_value) return Taken::known;
        const auto form = form_at(*there, coarse);
        if (form == first_) bracket.same = factor, bracket.same_value = there->value;
        else bracket.other = factor, bracket.other_value = there->value, bracket.form = form;
        return form == first_ ? Taken::ahead : Taken::behind;
    }
    void halve(const Change& change, Bracket& bracket, bool coarse) const {
        const auto ratio = [&] { return std::max(bracket.same, bracket.other) / std::min(bracket.same, bracket.other); };
        while (ratio() > closest && take(change, bracket, std::sqrt(bracket.same * bracket.other), coarse) < Taken::known) {}
    }

    /// What is said of one direction. The threshold is looked for with a coarse traffic; both its sides are then planned as a request for them
    /// is, and where that says otherwise it is looked for again from there. Where none is found the farthest value is planned so.
    std::string side(const Change& change, const std::string& own, bool up) const {
        const auto at = [&](double factor) { return up ? factor : 1 / factor; };
        Bracket found{.same_value = own}, exact{.same_value = own};
        double farthest = 1;
        for (double factor = 2; factor <= most_factor; factor *= 2) {
            const Taken taken = take(change, found, at(factor), true);
            if (taken == Taken::none) break;
            farthest = factor;
            if (taken == Taken::behind) break;
        }
        if (found.other == 1) {
            if (farthest == 1 || take(change, exact, at(farthest), false) != Taken::behind) return {};
        } else {
            halve(change, found, true);
            // Back to where the first form is ahead, then on to where it is not, in growing steps.
            double step = closest;
            for (double factor = up ? found.same : 1 / found.same; factor > 1 && take(change, exact, at(factor), false) == Taken::behind; factor /= step) step *= step;
            step = closest;
            for (double factor = up ? found.other : 1 / found.other; exact.other == 1 && factor <= most_factor; factor *= step, step *= step)
                if (take(change, exact, at(factor), false) == Taken::none) break;
            if (exact.other == 1) return {};
        }
        halve(change, exact, false);
        return fmt::format("from {} {} {} ({}: {})", exact.other_value, up ? "up" : "down", exact.form ? name_of(*exact.form) : "none", exact.same_value, name_of(first_));
    }

    void line(const char* name, const Change& change) {
        const std::string own = change(1)->value, down = side(change, own, false), up = side(change, own, true);
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
