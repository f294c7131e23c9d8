#include "rooftile/report/launch_figures.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

/// The sums behind some figures.
class Sums {
  public:
    void add(const LaunchPoint& point, const RecordedVariant& other, bool in_us) {
        ++problems_;
        add_way(planned_, *point.time_us, point.predicted_us, point.ratio, point.baseline_us, in_us);
        const auto theirs = other.ratio ? std::optional(*other.ratio * *other.time_us) : point.baseline_us;
        add_way(other_, *other.time_us, other.predicted_us, other.ratio, theirs, in_us);
    }
    void set(LaunchFigures& figures) const {
        figures.problems = problems_;
        const auto beside = [&](const Mean& mean) {
            const auto value = mean.value();
            return value && !figures.in_us ? std::optional(std::exp(*value)) : value;
        };
        figures.planned = beside(planned_.beside), figures.other = beside(other_.beside);
        figures.planned_error = prediction_error(planned_.errors), figures.other_error = prediction_error(other_.errors);
    }

  private:
    struct Mean {
        double sum = 0;
        int count = 0;
        void add(double x) { sum += x, ++count; }
        std::optional<double> value() const { return count > 0 ? std::optional(sum / count) : std::nullopt; }
    };
    struct Way {
        Mean beside;  ///< of logarithms, where ratios are told
        std::vector<double> errors;
    };
    static void add_way(Way& way, double time_us, std::optional<double> predicted_us, std::optional<double> ratio,
                        std::optional<double> baseline_us, bool in_us) {
        if (in_us && baseline_us) way.beside.add(time_us - *baseline_us);
        if (!in_us && ratio) way.beside.add(std::log(*ratio));
        if (predicted_us)
            way.errors.push_back(in_us ? *predicted_us - time_us : *predicted_us / time_us - 1);
    }

    int problems_ = 0;
    Way planned_, other_;
};

std::string pair_text(const auto& planned, const auto& other, std::string_view name, std::string_view between, const auto& text) {
    const auto one = [&](const auto& value) { return value ? text(*value) : std::string("?"); };
    return fmt::format("{} as planned{} {} {}", one(planned), between, one(other), name);
}

}  // namespace

bool is_judged(const LaunchPoint& point) {
    return point.time_us && point.baseline_us.value_or(*point.time_us) >= least_judged_us;
}

std::vector<LaunchFigures> launch_figures(std::span<const LaunchPoint> points) {
    std::vector<LaunchFigures> all;
    std::vector<Sums> sums;
    for (const LaunchPoint& point : points) {
        if (!point.time_us) continue;
        for (const RecordedVariant& other : *point.variants) {
            if (!other.time_us) continue;
            const bool in_us = !is_judged(point);
            const std::string band = in_us ? fmt::format("under {} us", least_judged_us) : point.band;
            auto at = std::find_if(all.begin(), all.end(), [&](const LaunchFigures& f) {
                return f.name == other.name && f.band == band;
            });
            if (at == all.end()) {
                all.push_back({.name = other.name, .band = band, .in_us = in_us});
                sums.emplace_back();
                at = all.end() - 1;
            }
            sums[std::size_t(at - all.begin())].add(point, other, in_us);
        }
    }
    for (std::size_t i = 0; i < all.size(); ++i) sums[i].set(all[i]);
    return all;
}

std::string launch_text(const LaunchFigures& f) {
    const auto signed_us = [](double value) { return fmt::format("{:+.2f} us", value); };
    const auto ratio = [](double value) { return fmt::format("{:.3f}", value); };
    const auto error = [&](const PredictionError& e) {
        return f.in_us ? prediction_error_us_text(e.bias, e.mean) : prediction_error_text(e);
    };
    return fmt::format("{}, {} problem{} launched in two ways in the same rounds: {} {}; predicted off by {}.", f.band,
                       f.problems, f.problems == 1 ? "" : "s", f.in_us ? "ours less theirs" : "ratio",
                       f.in_us ? pair_text(f.planned, f.other, f.name, ",", signed_us)
                               : pair_text(f.planned, f.other, f.name, ",", ratio),
                       pair_text(f.planned_error, f.other_error, f.name, " and", error));
}

}  // namespace rooftile
