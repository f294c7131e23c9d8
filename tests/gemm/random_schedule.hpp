// Small tile schedules of every kind, for the simulators' properties.
#pragma once

#include <rapidcheck.h>

#include "rooftile/gemm/tile_schedule.hpp"

namespace rooftile {

/// A few tiles, ragged edges, clusters, parts of K, any order; `number(low, high)` draws in [low, high].
template <class Number>
TileSchedule random_schedule(Number number) {
    TileSchedule g;
    g.tile_m = number(1, 5), g.tile_n = number(1, 5), g.tile_k = number(1, 4);
    g.m = number(1, 6 * g.tile_m), g.n = number(1, 6 * g.tile_n), g.k = number(1, 8 * g.tile_k);
    g.a_bytes = number(1, 4), g.b_bytes = number(1, 4), g.c_bytes = number(1, 4), g.operand_bytes = number(0, 3);
    g.cluster_m = number(1, 3), g.cluster_n = number(1, 3), g.split_k = number(1, 4);
    g.clusters = number(1, 8);
    g.order = Order(number(0, 5));
    g.group = number(1, 4);
    return g;
}
inline TileSchedule drawn_schedule() {
    return random_schedule([](int low, int high) { return *rc::gen::inRange(low, high + 1); });
}
/// From nothing to more than all of it.
inline std::int64_t all_bytes(const TileSchedule& g) {
    return g.m * g.k * g.a_bytes + g.n * g.k * g.b_bytes + g.m * g.n * g.result_bytes();
}
inline std::int64_t drawn_capacity(const TileSchedule& g) {
    return *rc::gen::inRange<std::int64_t>(0, all_bytes(g) * 5 / 4 + 2);
}

}  // namespace rooftile
