#include "rooftile/report/timings.hpp"

#include <fmt/core.h>

namespace rooftile {

std::string timings_text(const std::vector<Timing>& timings, const Terminal& terminal) {
    Table table({{"part", Table::Align::left}, {"seconds"}});
    for (const Timing& t : timings) table.row({{t.part}, {fmt::format("{:.3f}", t.seconds)}});
    return table.text(terminal, 0);
}

}  // namespace rooftile
