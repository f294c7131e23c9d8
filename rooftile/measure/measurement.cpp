#include "rooftile/measure/measurement.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace rooftile {

bool Verification::compared() const {
    return exact.has_value() || random.has_value() || shifted.has_value() || special.has_value() || timed.has_value();
}

bool Verification::wrong() const {
    for (const std::optional<bool>& right : {exact, random, shifted, special, timed, guards})
        if (right && !*right) return true;
    return false;
}

void Verification::blame(const Verification& other, std::string_view how) {
    if (wrong() || !other.wrong()) return;
    *this = other;
    failure = fmt::format("{}: {}", how, other.failure);
}

bool is_unproven(const Measurement& m) { return m.built && m.ran && !m.verified.ok(); }

std::string why_no_result(const Measurement& m) {
    if (!m.invalid.empty()) return m.invalid;
    if (!m.verified.wrong()) return {};
    return "the result is wrong" + (m.verified.failure.empty() ? std::string() : ": " + m.verified.failure);
}

std::optional<double> measured_joules(const Measurement& m) {
    if (!m.power_w || !m.time_us || m.mode != Mode::sustained) return std::nullopt;
    return *m.power_w * *m.time_us / 1e6;
}

void note_once(std::vector<std::string>& notes, std::string note) {
    if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(std::move(note));
}

const Baseline* find_baseline(const Measurement& measurement, std::string_view key) {
    for (const Baseline& baseline : measurement.baselines)
        if (baseline.key == key) return &baseline;
    return nullptr;
}

std::optional<double> baseline_us(const Measurement& measurement, std::string_view key) {
    const Baseline* baseline = find_baseline(measurement, key);
    return baseline ? baseline->time_us : std::nullopt;
}

}  // namespace rooftile
