#include "rooftile/core/plan_range.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "rooftile/core/random.hpp"
#include "rooftile/error.hpp"

namespace rooftile {
namespace {

// What is looked at: every value where one more row is another problem, then steps in which a prediction moves by less than the
// bound. Parts' ends and values between are looked at afterwards, so that the steps decide the time this takes, not the bound.
constexpr std::int64_t dense = 64;
constexpr double step = 0.02;
constexpr int kept = 16;     // plans of one value that may serve others
constexpr int between = 48;  // values drawn in each round
constexpr int most_rounds = 16;
constexpr std::size_t compared = 4;  // kernels that are evaluated in full for each choice

std::optional<std::int64_t> number_of(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// A configuration as it was found, to be asked for of other values.
struct Variant {
    Given fields;
    std::size_t code;
};

class Cover {
  public:
    Cover(const Operation& operation, const std::shared_ptr<const Machine>& machine, const Given& given,
          const FieldRange& field, double within, const std::function<std::string(const Plan&)>& code_of)
        : operation_(operation),
          machine_(machine),
          given_(given),
          field_(field),
          within_(within),
          code_of_(code_of) {
        const Record least = operation_.problem_record(problem_of(given_, field.least));
        const Record most = operation_.problem_record(problem_of(given_, field.most));
        if (field.least != field.most && least == most)
            throw RequestError(fmt::format("{} {}..{}: it is no part of the problem; give one value",
                                           given.name(field.key), field.least, field.most));
        // Else what is aligned at one value is not at the next, and no part of the range has one configuration.
        for (const auto& [key, value] : least)
            if (const Value* other = find(most, key); key != field.key && !(other && *other == value))
                throw RequestError(fmt::format("{} {}..{} changes {} too; give {} a value of its own",
                                               given.name(field.key), field.least, field.most, key,
                                               given.name(key)));
    }

    PlanRange run() {
        for (std::int64_t value = field_.least; value < field_.most;
             value =
                 std::max(value + 1, value < dense ? value + 1 : std::int64_t(double(value) * (1 + step))))
            look_at(value);
        look_at(field_.most);
        Random random(1);
        PlanRange out;
        for (int round = 0; round < most_rounds; ++round) {
            choose();
            out = parts();
            std::set<std::int64_t> asked;
            for (const PlanRange::Part& part : out.parts) {
                asked.insert({part.from, part.to});
                // Between the last value that was looked at in the part and the first beyond it lies the true border: by halves.
                const auto beyond = own_.upper_bound(part.to);
                if (beyond != own_.begin()) asked.insert((std::prev(beyond)->first + part.to) / 2);
            }
            for (int i = 0; i < between; ++i) {
                // Log-uniform, as values of such a range are met.
                const double drawn = random.log_uniform(double(field_.least), double(field_.most) + 1);
                asked.insert(std::clamp(std::int64_t(drawn), field_.least, field_.most));
            }
            bool all_within = true;
            for (const std::int64_t value : asked) {
                if (own_.contains(value)) continue;
                look_at(value);
                const auto part =
                    std::ranges::find_if(out.parts, [&](const auto& p) { return value <= p.to; });
                all_within &=
                    ratio(value, variant_of_part_.at(std::size_t(part - out.parts.begin()))) <= 1 + within_;
            }
            if (all_within) break;
        }
        choose();
        return parts();
    }

  private:
    Problem problem_of(const Given& given, std::int64_t value) const {
        return operation_.problem(with_text(operation_, given, field_.key, std::to_string(value)));
    }

    PlanSet planned(const Given& given, std::int64_t value, int top) const {
        const Given at = with_text(operation_, given, field_.key, std::to_string(value));
        return operation_.derive(machine_, operation_.problem(at),
                                 operation_.request(at, {.top = top, .buildable_only = true, .one_of_many = true}));
    }

    void look_at(std::int64_t value) {
        if (own_.contains(value)) return;
        const PlanSet set = planned(given_, value, kept);
        if (set.refusal)
            throw Error(ExitCode::no_plan,
                        fmt::format("{} = {}: {}", field_.key, value, set.refusal->message));
        if (!set.plans.front().time_us)
            throw Error(
                ExitCode::no_plan,
                fmt::format("{} = {}: the time of no plan is known on {}, so that none can be compared",
                            field_.key, value, set.machine_id));
        // What a reader must know of every value is so of the range.
        if (own_.empty()) notes_ = set.notes;
        else std::erase_if(notes_, [&](const std::string& note) { return std::ranges::find(set.notes, note) == set.notes.end(); });
        own_[value] = *set.plans.front().time_us;
        for (const Plan& plan : set.plans)
            if (plan.time_us && *plan.time_us <= (1 + within_) * own_[value]) note(plan, value);
    }

    /// A plan of that value as one that may serve others.
    void note(const Plan& plan, std::int64_t value) {
        const Record config = operation_.config_record(plan);
        const Given fixed = operation_.given_of_config(config);
        const std::string text = fixed.text();
        if (text.empty())
            throw RequestError(
                fmt::format("{} cannot plan for a range: it fixes no configuration", operation_.name()));
        auto found = variant_of_.find(text);
        if (found == variant_of_.end()) {
            const auto [code, added] = code_numbers_.emplace(code_of_(plan), variants_of_code_.size());
            if (added) variants_of_code_.emplace_back();
            found = variant_of_.emplace(text, variants_.size()).first;
            variants_of_code_[code->second].push_back(variants_.size());
            variants_.push_back({pinned(fixed), code->second});
        }
        times_[{value, found->second}] = *plan.time_us;
    }

    /// The user's request, and of the configuration what it leaves open.
    Given pinned(const Given& fixed) const {
        Given out = given_;
        for (const Field& field : operation_.fields())
            for (const std::string& text : fixed.list(field.key))
                if (!given_.has(field.key)) out.add(field.key, text);
        return out;
    }

    /// The predicted time of that configuration; infinite where it cannot compute the value, or by other code.
    double time(std::int64_t value, std::size_t variant) {
        const auto [entry, added] = times_.try_emplace({value, variant}, INFINITY);
        if (!added) return entry->second;
        try {
            const PlanSet set = planned(variants_[variant].fields, value, 1);
            if (!set.refusal && set.plans.front().time_us) {
                const auto code = code_numbers_.find(code_of_(set.plans.front()));
                if (code != code_numbers_.end() && code->second == variants_[variant].code)
                    entry->second = *set.plans.front().time_us;
            }
        } catch (const RequestError&) {}  // a value that the configuration does not take
        return entry->second;
    }
    double ratio(std::int64_t value, std::size_t variant) { return time(value, variant) / own_.at(value); }

    /// The variant of that code which serves the value best.
    std::size_t best_variant(std::int64_t value, std::size_t code) {
        const auto& variants = variants_of_code_[code];
        return *std::ranges::min_element(variants, {}, [&](std::size_t v) { return time(value, v); });
    }
    bool serves(std::int64_t value, std::size_t code) {
        const auto& variants = variants_of_code_[code];
        return std::ranges::any_of(variants, [&](std::size_t v) { return ratio(value, v) <= 1 + within_; });
    }

    /// Greedy set cover: of the codes that the most values left have among their own plans, the one that serves the most of
    /// them; then those that the others make needless go.
    void choose() {
        std::set<std::int64_t> left;
        for (const auto& [value, time] : own_) left.insert(value);
        chosen_.clear();
        while (!left.empty()) {
            std::vector<std::pair<std::size_t, std::size_t>> listed(
                variants_of_code_.size());  // how often, code
            for (std::size_t code = 0; code < listed.size(); ++code) listed[code].second = code;
            for (const std::int64_t value : left) {
                std::set<std::size_t> codes;
                for (auto at = times_.lower_bound({value, 0}); at != times_.end() && at->first.first == value;
                     ++at)
                    if (at->second <= (1 + within_) * own_.at(value))
                        codes.insert(variants_[at->first.second].code);
                for (const std::size_t code : codes) ++listed[code].first;
            }
            std::ranges::stable_sort(listed, [](const auto& x, const auto& y) { return x.first > y.first; });
            std::size_t best = listed.front().second;
            std::set<std::int64_t> best_served;
            for (std::size_t i = 0; i < std::min(compared, listed.size()) && listed[i].first > 0; ++i) {
                std::set<std::int64_t> served;
                for (const std::int64_t value : left)
                    if (serves(value, listed[i].second)) served.insert(value);
                if (served.size() > best_served.size())
                    best = listed[i].second, best_served = std::move(served);
            }
            chosen_.push_back(best);
            for (const std::int64_t value : best_served) left.erase(value);
        }
        for (std::size_t i = chosen_.size(); i-- > 0;) {
            std::vector<std::size_t> others = chosen_;
            others.erase(others.begin() + std::ptrdiff_t(i));
            const bool needless = std::ranges::all_of(own_, [&](const auto& own) {
                return std::ranges::any_of(others, [&](std::size_t code) { return serves(own.first, code); });
            });
            if (needless) chosen_ = others;
        }
    }

    /// Parts as long as one configuration of the chosen kernels stays within the bound.
    PlanRange parts() {
        PlanRange out{.field = field_, .within = within_, .parts = {}, .looked_at = own_.size(), .notes = notes_};
        variant_of_part_.clear();
        std::map<std::size_t, std::size_t> numbers;  // of kernels, by code
        for (auto first = own_.begin(); first != own_.end();) {
            auto longest = first;
            std::size_t chosen = 0;
            std::ptrdiff_t most = 0;
            for (const std::size_t code : chosen_)
                for (const std::size_t variant : variants_of_code_[code]) {
                    auto end = first;
                    std::ptrdiff_t count = 0;
                    while (end != own_.end() && ratio(end->first, variant) <= 1 + within_) ++end, ++count;
                    if (count > most) most = count, longest = end, chosen = variant;
                }
            PlanRange::Part part{
                .from = first->first,
                .to = longest == own_.end() ? field_.most : longest->first - 1,
                .plan = planned(variants_[chosen].fields, first->first, 1).plans.front(),
                .fields = fields_of(variants_[chosen].fields),
                .kernel = numbers.emplace(variants_[chosen].code, numbers.size()).first->second,
                .worst = first->first};
            for (auto at = first; at != longest; ++at)
                if (const double r = ratio(at->first, chosen); r > part.ratio)
                    part.worst = at->first, part.ratio = r;
            if (part.ratio > out.ratio || out.parts.empty()) out.worst = part.worst, out.ratio = part.ratio;
            out.parts.push_back(std::move(part));
            variant_of_part_.push_back(chosen);
            first = longest;
        }
        out.kernels = numbers.size();
        return out;
    }

    /// What of it the user's request does not have.
    Given fields_of(const Given& pinned) const {
        Given out(Given::Named::by_key);
        for (const Field& field : operation_.fields())
            for (const std::string& text : pinned.list(field.key))
                if (!given_.has(field.key)) out.add(field.key, text);
        return out;
    }

    const Operation& operation_;
    const std::shared_ptr<const Machine>& machine_;
    const Given& given_;
    const FieldRange& field_;
    const double within_;
    const std::function<std::string(const Plan&)>& code_of_;

    std::vector<std::string> notes_;      // of all values
    std::map<std::int64_t, double> own_;  // microseconds of each value's own best plan
    std::vector<Variant> variants_;
    std::map<std::string, std::size_t> variant_of_;  // by the text of what fixes it
    std::map<std::string, std::size_t> code_numbers_;
    std::vector<std::vector<std::size_t>> variants_of_code_;
    std::map<std::pair<std::int64_t, std::size_t>, double> times_;  // microseconds of a value and a variant
    std::vector<std::size_t> chosen_;                               // codes
    std::vector<std::size_t> variant_of_part_;
};

/// What shows other plans of one problem, or the story of one.
void refuse_beside_range(const Operation& operation, const Given& given, const FieldRange& range) {
    std::vector<std::string> keys = {"explain", "energy", "top", "seed"};
    for (const Field& field : operation.fields())
        if (field.group == "Other plans than the best") keys.push_back(field.key);
    for (const std::string& key : keys)
        if (given.has(key))
            throw RequestError(fmt::format("{} is of one problem, {} {} is a range; give one value",
                                           given.name(key), given.name(range.key), given.text(range.key)));
}

}  // namespace

std::optional<FieldRange> range_in(const Operation& operation, const Given& given) {
    std::optional<FieldRange> found;
    for (const Field& field : operation.fields()) {
        if (field.kind != FieldKind::value || !given.has(field.key)) continue;
        const std::string_view text = given.text(field.key);
        const std::size_t dots = text.find("..");
        if (dots == text.npos || text.find('[') != text.npos) continue;  // "64x[16..512]" is one value
        const auto least = number_of(text.substr(0, dots)), most = number_of(text.substr(dots + 2));
        if (!least || !most || *least < 1 || *most < *least)
            throw RequestError(
                fmt::format("{} {}: a range is A..B, whole numbers from 1 on, A no more than B",
                            given.name(field.key), text));
        if (found)
            throw RequestError(fmt::format("{} and {} are ranges; one field may be", given.name(found->key),
                                           given.name(field.key)));
        found = FieldRange{field.key, *least, *most};
    }
    if (found) refuse_beside_range(operation, given, *found);
    return found;
}

Given without(const Operation& operation, const Given& given, std::string_view key) {
    const std::string probe = "a_key";
    Given out(given.name(probe) == probe ? Given::Named::by_key : Given::Named::by_flag);
    for (const Field& field : operation.fields())
        for (const std::string& text : given.list(field.key))
            if (field.key != key) out.add(field.key, text);
    return out;
}

Given with_text(const Operation& operation, const Given& given, std::string_view key,
                const std::string& text) {
    Given out = without(operation, given, key);
    out.add(key, text);
    return out;
}

PlanRange plan_range(const Operation& operation, const std::shared_ptr<const Machine>& machine,
                     const Given& given, const FieldRange& field, double within,
                     const std::function<std::string(const Plan&)>& code_of) {
    return Cover(operation, machine, given, field, within, code_of).run();
}

}  // namespace rooftile
