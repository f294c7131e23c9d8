#include "rooftile/layer/rotary.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>

namespace rooftile {
namespace {

constexpr double whole_turn = 2 * std::numbers::pi;

/// Where the angle of a pair makes so many turns over the positions: places between pairs, too.
double pair_of_turns(const ModelRotaryScaling& s, double turns, double rotated, double theta) {
    return rotated * std::log(s.positions / (turns * whole_turn)) / (2 * std::log(theta));
}

/// How much of each pair's angle stays undivided, from 0 to 1.
std::vector<double> kept_by_yarn(const ModelRotaryScaling& s, std::int64_t rotated, double theta) {
    double first = pair_of_turns(s, s.fast, double(rotated), theta),
           last = pair_of_turns(s, s.slow, double(rotated), theta);
    if (s.whole_pairs) first = std::floor(first), last = std::ceil(last);
    first = std::max(first, 0.0), last = std::min(last, double(rotated - 1));
    if (first == last) last += 0.001;  // as transformers has it
    std::vector<double> out;
    for (std::int64_t i = 0; i < rotated / 2; ++i)
        out.push_back(1 - std::clamp((double(i) - first) / (last - first), 0.0, 1.0));
    return out;
}

}  // namespace

std::int64_t rotated_elements(const ModelConfig& m) {
    return std::int64_t(std::llround(double(m.head_dim) * m.rotary_share));
}

std::string rotary_refusal(const ModelConfig& m) {
    const ModelRotaryScaling& s = m.rope_scaling;
    if (s.kind.empty()) return {};
    if (s.kind == "longrope" || s.kind == "su") return fmt::format("angles scaled by {}", s.kind);
    if (s.factor == 0) return fmt::format("angles scaled by {}, whose factor is missing,", s.kind);
    if (s.positions == 0 && s.kind != "linear")
        return fmt::format(
            "angles scaled by {}, whose {} is missing,", s.kind,
            s.kind == "dynamic" ? "max_position_embeddings" : "original_max_position_embeddings");
    if (s.kind == "dynamic" && rotated_elements(m) <= 2) return "angles of one pair scaled by dynamic";
    return {};
}

std::vector<double> rotary_frequencies(const ModelConfig& m, std::int64_t context) {
    assert(rotary_refusal(m).empty());
    const ModelRotaryScaling& s = m.rope_scaling;
    const std::int64_t rotated = rotated_elements(m);
    double theta = m.rope_theta;
    if (s.kind == "dynamic" && double(context) > s.positions)
        theta *= std::pow(s.factor * double(context) / s.positions - (s.factor - 1),
                          double(rotated) / double(rotated - 2));
    std::vector<double> kept(std::size_t(rotated / 2), 1.0);
    if (s.kind == "linear") std::ranges::fill(kept, 0.0);
    if (s.kind == "yarn") kept = kept_by_yarn(s, rotated, theta);
    std::vector<double> out;
    for (std::int64_t i = 0; i < rotated / 2; ++i) {
        const double angle = std::pow(theta, -2.0 * double(i) / double(rotated));
        double& stays = kept[std::size_t(i)];
        if (s.kind == "llama3")
            stays = std::clamp((s.positions * angle / whole_turn - s.low) / (s.high - s.low), 0.0, 1.0);
        out.push_back(stays == 1 ? angle : stays * angle + (1 - stays) * angle / s.factor);
    }
    return out;
}

}  // namespace rooftile
