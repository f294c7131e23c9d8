#include "rooftile/core/map_cell.hpp"

namespace rooftile {

MapCell map_cell(std::int64_t x, std::int64_t y, const PlanSet& plans) {
    MapCell cell{.x = x, .y = y, .time_us = {}, .label = {}, .wall = {}, .why = {}};
    if (plans.refusal) {
        cell.wall = plans.refusal->reason, cell.why = plans.refusal->message;
        return cell;
    }
    const Plan& best = plans.plans.front();
    cell.time_us = best.time_us, cell.label = best.operation->label(best);
    return cell;
}

}  // namespace rooftile
