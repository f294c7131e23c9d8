#include "rooftile/core/sweep.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "rooftile/core/operation.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/units_text.hpp"

namespace rooftile {
namespace {

constexpr std::size_t max_combinations = 10'000;  // as many as a suite holds
constexpr int max_tries = 10'000;                 // in a row that give no new problem
constexpr std::int64_t largest = 2147483647;
constexpr std::size_t longest_law = 200;

/// The values that a field may take: one, a list of them, or the whole numbers between two.
struct Choice {
    std::string key;   ///< of a field; of a word that stands in other fields' texts, itself
    std::string text;  ///< as it was given
    std::vector<std::string> values{};
    std::int64_t least = 0, most = 0;  ///< of a range, which has no values
    bool is_word = false;
    bool is_range() const { return values.empty(); }
};

Choice choice_of(const std::string& key, const std::string& name, const std::string& text) {
    Choice choice{.key = key, .text = text};
    if (text.find('[') != text.npos) {  // "64x[16..512]" is one value
        choice.values.push_back(text);
        return choice;
    }
    if (const std::size_t dots = text.find(".."); dots != text.npos) {
        choice.least = whole_number(name, text.substr(0, dots), 1, largest);
        choice.most = whole_number(name, text.substr(dots + 2), choice.least, largest);
        return choice;
    }
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        if (end == begin)
            throw RequestError(fmt::format("{} {}: accepted is a value, a list A,B,..., or a range A..B",
                                           name, printable(text)));
        choice.values.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return choice;
}

double bytes_of(const Problem& problem) {
    double bytes = 0;
    for (const TensorInfo& tensor : problem.operation->tensors(problem)) {
        double last = 0;  // the place of its last element
        for (std::size_t i = 0; i < tensor.extents.size(); ++i)
            last += double(tensor.extents[i].most - 1) * double(tensor.strides[i]);
        bytes += (last + 1) * tensor.element_bits / 8;
    }
    return bytes;
}

class Sweep {
  public:
    Sweep(const Operation& operation, const SweepRequest& request)
        : operation_(operation), request_(request), random_(request.seed) {
        suite_.operation = &operation;
        for (const Field& field : operation.fields()) {
            const bool of_problem = field.group.starts_with("Problem") || field.group.empty();
            if (of_problem && request.given.has(field.key)) read(field);
        }
        for (const std::string& let : request.lets) read_let(let);
        if (request.max_flops && !has_flops())
            throw RequestError(
                fmt::format("--max-flop: {} does not count the FLOP of a problem", operation.name()));
    }

    Suite take() {
        const bool by_law = choices_.empty() && fixed_.empty();
        if (by_law && !request_.draw)
            throw RequestError(
                fmt::format("sweep {} needs --draw N, or lists of its fields", operation_.name()));
        if (!by_law && !request_.law.law.empty())
            throw RequestError(fmt::format("the law {} draws whole problems, and fields that are given replace it; give one of them",
                                           printable(request_.law.law)));
        if (by_law) {
            const DrawLaw law = operation_.law(request_.law);
            suite_.law = law.meaning;
            suite_.name = fmt::format("{}-{}", law.name, request_.seed);
        } else {
            suite_.law = printable(choices_text(), longest_law);
            suite_.name = request_.draw ? fmt::format("ranges-{}", request_.seed) : "lists";
        }
        if (request_.draw) draw(by_law);
        else combine();
        if (suite_.problems.empty()) throw RequestError("no problem is within --max-flop and --max-bytes");
        return std::move(suite_);
    }

  private:
    void read(const Field& field) {
        if (field.kind != FieldKind::value) {
            for (const std::string& text : request_.given.list(field.key))
                fixed_.emplace_back(field.key, text);
            return;
        }
        add_choice(choice_of(field.key, request_.given.name(field.key), request_.given.text(field.key)),
                   request_.given.name(field.key));
    }

    void read_let(const std::string& let) {
        const std::size_t equals = std::min(let.find('='), let.size());
        const std::string word = let.substr(0, equals);
        if (equals == let.size() || word.empty() || !std::all_of(word.begin(), word.end(), is_word_sign))
            throw RequestError(
                fmt::format("--let {}: accepted is NAME=A,B,... or NAME=A..B", printable(let)));
        if (std::none_of(fixed_.begin(), fixed_.end(),
                         [&](const auto& f) { return find_word(f.second, word, 0) != std::string::npos; }))
            throw RequestError(fmt::format("--let {}: no text of the problem has {}", printable(let), word));
        Choice choice = choice_of(word, "--let " + word, let.substr(equals + 1));
        choice.is_word = true;
        add_choice(std::move(choice), "--let " + word);
    }

    void add_choice(Choice choice, const std::string& name) {
        if (choice.is_range() && !request_.draw)
            throw RequestError(fmt::format("{} {}: a range needs --draw N", name, choice.text));
        choices_.push_back(std::move(choice));
    }

    bool has_flops() const {
        Random random(1);
        return operation_.traits(operation_.draw(random, {})).flops > 0;  // of any law
    }

    /// "m = 1..16384, log-uniform; k = 4096,8192".
    std::string choices_text() const {
        std::string out;
        for (const Choice& choice : choices_)
            out += fmt::format("{}{} = {}{}", out.empty() ? "" : "; ", choice.key, choice.text,
                               choice.is_range() ? ", log-uniform" : "");
        return out.empty() ? "as given" : out;
    }

    /// With one value for each of the choices.
    Problem problem_of(const std::vector<std::string>& values) const {
        Given given;
        for (std::size_t i = 0; i < choices_.size(); ++i)
            if (!choices_[i].is_word) given.add(choices_[i].key, values[i]);
        for (auto [key, text] : fixed_) {
            for (std::size_t i = 0; i < choices_.size(); ++i) {
                if (!choices_[i].is_word) continue;
                const std::string& word = choices_[i].key;
                for (std::size_t at = 0; (at = find_word(text, word, at)) != text.npos;
                     at += values[i].size())
                    text.replace(at, word.size(), values[i]);
            }
            given.add(key, text);
        }
        return problem_with_work(operation_, given);
    }

    Problem drawn_from_choices() {
        std::vector<std::string> values;
        for (const Choice& choice : choices_)
            values.push_back(choice.is_range() ? std::to_string(
                                 std::llround(random_.log_uniform(double(choice.least), double(choice.most))))
                                               : random_.one_of(choice.values));
        return problem_of(values);
    }

    void draw(bool by_law) {
        int tries = 0;
        while (int(suite_.problems.size()) < *request_.draw) {
            if (++tries > max_tries)
                throw RequestError(
                    fmt::format("--draw {}: only {} problems that differ, within the limits, were found",
                                *request_.draw, suite_.problems.size()));
            if (add(by_law ? operation_.draw(random_, request_.law) : drawn_from_choices())) tries = 0;
        }
    }

    /// Every combination, the last field varying fastest.
    void combine() {
        std::size_t count = 1;
        for (const Choice& choice : choices_)
            if ((count *= choice.values.size()) > max_combinations)
                throw RequestError(
                    fmt::format("more than {} combinations; --draw N takes some of them", max_combinations));
        for (std::size_t i = 0; i < count; ++i) {
            std::vector<std::string> values(choices_.size());
            std::size_t rest = i;
            for (std::size_t c = choices_.size(); c-- > 0; rest /= choices_[c].values.size())
                values[c] = choices_[c].values[rest % choices_[c].values.size()];
            add(problem_of(values));
        }
    }

    /// False where it is there already, or beyond a limit.
    bool add(Problem problem) {
        if (request_.max_flops && operation_.traits(problem).flops > *request_.max_flops) return false;
        if (request_.max_bytes && bytes_of(problem) > *request_.max_bytes) return false;
        if (!known_.insert(operation_.given(problem).text()).second) return false;
        suite_.problems.push_back(
            {std::move(problem), {{suite_.name, std::to_string(suite_.problems.size() + 1)}}, 0});
        return true;
    }

    const Operation& operation_;
    const SweepRequest& request_;
    Random random_;
    std::vector<Choice> choices_;
    std::vector<std::pair<std::string, std::string>>
        fixed_;  ///< values that cannot vary: repeatable ones, switches
    std::set<std::string> known_;
    Suite suite_;
};

}  // namespace

std::size_t law_index(const DrawRequest& request, std::span<const std::string_view> names) {
    return request.law.empty() ? 0 : one_of("--law", request.law, names);
}

void read_draw(const Given& given, SweepRequest& request) {
    if (given.has("draw")) request.draw = int(whole_number(given.name("draw"), given.text("draw"), 1, 10'000));
    if (given.has("seed")) request.seed = seed_number(given.name("seed"), given.text("seed"));
}

Suite swept_suite(const Operation& operation, const SweepRequest& request) {
    if (request.draw && (*request.draw < 1 || std::size_t(*request.draw) > max_combinations))
        throw RequestError(fmt::format("--draw {}: accepted is 1 .. {}", *request.draw, max_combinations));
    return Sweep(operation, request).take();
}

}  // namespace rooftile
