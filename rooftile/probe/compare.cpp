#include "rooftile/probe/compare.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "rooftile/error.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

constexpr double written_to = 0.5e-3;  ///< machine files have four digits

struct Probed {
    std::string gpu;
    std::vector<ProbedTwice> numbers;  ///< `second` and the other's spread not yet there
};

double number_of(const Json& value) { return value.is_null() ? std::nan("") : value.get<double>(); }

Probed read(const Json& document) {
    try {
        if (document.at("schema") != "rooftile/probe/1") throw RequestError("the schema is another");
        Probed out;
        out.gpu = document.at("context").at("gpu").get<std::string>();
        for (const Json& v : document.at("values")) {
            ProbedTwice number;
            number.probe = v.at("probe").get<std::string>();
            number.name = v.at("name").get<std::string>();
            number.unit = v.at("unit").get<std::string>();
            number.of_machine = !v.at("key").is_null();
            number.first = number_of(v.at("value"));
            number.second = std::nan("");
            number.spread = v.at("spread").is_null() ? 0 : v.at("spread").get<double>();
            out.numbers.push_back(std::move(number));
        }
        return out;
    } catch (const std::exception& error) {
        throw RequestError(fmt::format("no document of `rooftile machine probe --data`: {}",
                                       displayable(error.what()).substr(0, 200)));
    }
}

std::string value_text(double value) { return std::isnan(value) ? "none" : number_text(value); }

}  // namespace

bool ProbedTwice::agree() const {
    if (std::isnan(first) || std::isnan(second)) return std::isnan(first) && std::isnan(second);
    return std::abs(first - second) <= spread + written_to * std::max(std::abs(first), std::abs(second));
}

std::vector<ProbedTwice> compare_probes(const Json& first, const Json& second) {
    Probed a = read(first);
    const Probed b = read(second);
    if (a.gpu != b.gpu)
        throw RequestError(fmt::format("one document is of {}, the other of {}: nothing to compare",
                                       displayable(a.gpu), displayable(b.gpu)));
    if (a.numbers.empty() || b.numbers.empty())
        throw RequestError("a document without a measured number: nothing to compare");
    for (const ProbedTwice& other : b.numbers) {
        const auto same = std::find_if(a.numbers.begin(), a.numbers.end(), [&](const ProbedTwice& n) {
            return n.probe == other.probe && n.name == other.name && n.unit == other.unit;
        });
        if (same != a.numbers.end()) {
            same->second = other.first;
            same->spread += other.spread;
            same->of_machine = same->of_machine || other.of_machine;
        } else {
            a.numbers.push_back(other);
            std::swap(a.numbers.back().first, a.numbers.back().second);
        }
    }
    return std::move(a.numbers);
}

std::vector<ProbedTwice> disagreements(const std::vector<ProbedTwice>& numbers) {
    std::vector<ProbedTwice> found;
    for (const ProbedTwice& n : numbers)
        if (n.of_machine && !n.agree()) found.push_back(n);
    return found;
}

std::string compared_text(const std::vector<ProbedTwice>& numbers, const Terminal& terminal) {
    Table table({{"number", Table::Align::left},
                 {"first"},
                 {"second"},
                 {"unit", Table::Align::left},
                 {"spread of both", Table::Align::right, 1},
                 {"apart"},
                 {"", Table::Align::left}});
    for (const ProbedTwice& n : numbers) {
        const double apart = 200 * std::abs(n.first - n.second) / (std::abs(n.first) + std::abs(n.second));
        table.row({{n.name, n.of_machine ? Tone::plain : Tone::faint},
                   {value_text(n.first)},
                   {value_text(n.second)},
                   {n.unit},
                   {number_text(n.spread, 2)},
                   {std::isfinite(apart) ? fmt::format("{:.1f} %", apart) : "-"},
                   {n.agree()      ? ""
                    : n.of_machine ? "apart"
                                   : "apart, in no machine file",
                    n.of_machine ? Tone::bad : Tone::faint}});
    }
    const auto apart = disagreements(numbers);
    const auto counted =
        std::count_if(numbers.begin(), numbers.end(), [](const ProbedTwice& n) { return n.of_machine; });
    return table.text(terminal)
           + fmt::format("\n{} of {} numbers of the machine file agree within the spreads of both probes\n",
                         std::size_t(counted) - apart.size(), counted);
}

}  // namespace rooftile
