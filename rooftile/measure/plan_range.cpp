#include "rooftile/measure/plan_range.hpp"

#include <fmt/format.h>

#include <charconv>

#include "rooftile/error.hpp"
#include "rooftile/machine/units_text.hpp"
#include "rooftile/measure/device_operation.hpp"

namespace rooftile {
namespace {

constexpr double default_percent = 3, most_percent = 1000;

double within_of(const Given& given) {
    if (!given.has("within")) return default_percent / 100;
    const std::string& text = given.text("within");
    double percent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
    if (error != std::errc() || end != text.data() + text.size() || !(percent > 0 && percent <= most_percent))
        throw RequestError(fmt::format("{} {}: accepted is a percentage above 0, up to {}",
                                       given.name("within"), printable(text), most_percent));
    return percent / 100;
}

}  // namespace

Field within_field() {
    return {"within", "PERCENT",
            "For a range A..B in the place of one number: the fewest kernels that serve it, none slower than "
            "each value's own plan by "
            "more; default: 3",
            "Range"};
}

PlanRange kernels_for_range(const Operation& operation, const std::shared_ptr<const Machine>& machine,
                            const Given& given, const FieldRange& range) {
    return plan_range(operation, machine, given, range, within_of(given), [&operation](const Plan& plan) {
        const Source source = on_device(operation).source(plan);
        return fmt::format("{}\n{}", fmt::join(source.name_expressions, "\n"), source.text);
    });
}

}  // namespace rooftile
