#include "rooftile/tune/unlike.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "rooftile/core/operation.hpp"

namespace rooftile {
namespace {

std::optional<double> number_of(const Value& value) {
    if (const auto* whole = std::get_if<std::int64_t>(&value.content())) return double(*whole);
    if (const auto* any = std::get_if<double>(&value.content())) return *any;
    return std::nullopt;
}

double unlikeness(const Value& one, const Value& other) {
    if (one == other) return 0;
    const auto *a = std::get_if<Record>(&one.content()), *b = std::get_if<Record>(&other.content());
    if (a && b) return rooftile::unlikeness(*a, *b);
    const auto x = number_of(one), y = number_of(other);
    return x && y && *x > 0 && *y > 0 ? std::min(1.0, std::fabs(std::log2(*x / *y))) : 1;
}

}  // namespace

double unlikeness(const Record& one, const Record& other) {
    double sum = 0;
    for (const auto& [key, value] : one) {
        const Value* theirs = find(other, key);
        sum += theirs ? unlikeness(value, *theirs) : 1;
    }
    for (const auto& [key, value] : other) sum += !find(one, key);
    return sum;
}

std::vector<std::size_t> unlike(std::span<const Record> configs, std::size_t count) {
    count = std::min(count, configs.size());
    std::vector<double> limits{0};
    for (std::size_t i = 0; i < configs.size(); ++i)
        for (std::size_t k = 0; k < i; ++k) limits.push_back(unlikeness(configs[i], configs[k]));
    std::ranges::sort(limits, std::greater());
    std::vector<std::size_t> taken;
    for (const double limit : limits) {
        taken.clear();
        for (std::size_t i = 0; i < configs.size() && taken.size() < count; ++i)
            if (std::ranges::all_of(taken, [&](std::size_t k) { return unlikeness(configs[i], configs[k]) >= limit; })) taken.push_back(i);
        if (taken.size() == count) break;  // at limit 0 at the latest
    }
    return taken;
}

std::vector<std::size_t> unlike_plans(std::span<const Plan> plans, std::size_t count) {
    std::vector<Record> configs;
    for (const Plan& plan : plans) configs.push_back(plan.operation->config_record(plan));
    return unlike(configs, count);
}

}  // namespace rooftile
