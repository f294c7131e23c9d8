// From measured numbers to a machine file, and where they differ from it.
#include <cmath>
#include <stdexcept>
#include <variant>

#include <fmt/core.h>

#include "rooftile/error.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/machine/units_text.hpp"
#include "rooftile/probe/probe.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {

double ProbePoint::at(std::string_view name) const {
    for (const auto& [field, value] : fields)
        if (field == name) return value;
    throw std::out_of_range(fmt::format("a row of {} has no {}", series, name));
}

bool ProbePoint::has(std::string_view name) const {
    for (const auto& field : fields)
        if (field.first == name) return true;
    return false;
}

namespace {

/// Four digits; a whole number where the unit counts whole things.
std::string value_text(const ProbeValue& v) {
    const bool whole = v.unit == "B" || v.unit == "SMs";
    return fmt::format("{} {}", whole ? shortest_text(std::round(v.value)) : input_text(v.value, ""), v.unit);
}

/// The measured number as `key`'s fact; empty, with the reason, where the key refuses it.
std::optional<Fact> fact_of(const ProbeValue& v, const std::string& source, std::string& problem) {
    if (!std::isfinite(v.value)) {
        problem = fmt::format("{}: no finite value", v.name);
        return std::nullopt;
    }
    Machine scratch;
    try {
        set_fact(scratch, v.key, value_text(v), source);
    } catch (const RequestError& error) {
        problem = error.what();
        return std::nullopt;
    }
    return scratch.facts.at(v.key);
}

}  // namespace

Machine probed_machine(const ProbeRun& run, std::string_view date, std::string_view command,
                       std::vector<std::string>& notes) {
    Machine machine = run.gpu.machine;
    for (const ProbeResult& result : run.results) {
        for (const ProbeValue& v : result.values) {
            if (v.key.empty()) continue;
            // The reader keeps 400 bytes of a source.
            const std::string spread =
                v.samples > 1
                    ? fmt::format("+- {} {} over {} samples", number_text(v.spread, 2), v.unit, v.samples)
                    : "one reading";
            const std::string source =
                fmt::format("measured on one {}, {}: {}{}{}; `{}`", run.gpu.name, date, spread,
                            v.note.empty() ? "" : "; ", v.note, printable(command, 100));
            std::string problem;
            if (auto fact = fact_of(v, printable(source, 400), problem))
                machine.facts.insert_or_assign(v.key, std::move(*fact));
            else notes.push_back("not in the machine file: " + problem);
        }
    }
    return machine;
}

std::vector<ProbeDifference> differences(const ProbeRun& run, double tolerance) {
    std::vector<ProbeDifference> found;
    for (const ProbeResult& result : run.results) {
        for (const ProbeValue& v : result.values) {
            const auto shipped = run.gpu.machine.facts.find(v.key);
            if (v.key.empty() || shipped == run.gpu.machine.facts.end()) continue;
            std::string problem;
            const auto fact = fact_of(v, "probe", problem);
            const Fact& said = shipped->second;
            if (!fact || fact->dimension != said.dimension || fact->per != said.per) continue;
            const double ratio = said.value > 0 ? fact->value / said.value : fact->value > 0 ? INFINITY : 1;
            if (std::abs(ratio - 1) > tolerance) found.push_back({v.key, said.text, fact->text, ratio});
        }
    }
    return found;
}

}  // namespace rooftile
