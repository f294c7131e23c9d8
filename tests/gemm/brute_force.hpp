// What the simulators are held to: a plain list of blocks, searched from the front, and the tile schedule written out
// anew. Slow, and short enough to be right.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "kernels/pipeline/tile_order.cuh"
#include "rooftile/gemm/tile_schedule.hpp"

namespace rooftile {

struct BruteForce {
    using Block = std::array<std::int64_t, 3>;  // operand, row or column of tiles, block of K or column
    const TileSchedule& g;
    std::int64_t capacity, read[2] = {0, 0}, written = 0, steps = 0, hits[3] = {0, 0, 0}, waits = 0;
    std::list<std::pair<Block, std::int64_t>> used;  // the latest first

    bool touch(Block block, std::int64_t bytes) {
        const auto at = std::find_if(used.begin(), used.end(), [&](auto& u) { return u.first == block; });
        const bool hit = at != used.end();
        if (hit) used.erase(at);
        used.emplace_front(block, bytes);
        std::int64_t all = 0;
        const auto full =
            std::find_if(used.begin(), used.end(), [&](auto& u) { return (all += u.second) > capacity; });
        used.erase(full, used.end());
        return hit;
    }
    static std::int64_t part(std::int64_t index, std::int64_t tile, std::int64_t extent) {
        return std::max<std::int64_t>(0, std::min(tile, extent - index * tile));
    }
    TileCoordinate tile(int i, int rows, int columns) const {
        if (g.order == Order::hilbert) return hilbert_at(i, rows, columns);
        if (g.order == Order::morton) return morton_at(i, rows, columns);
        return tile_at(i, rows, columns, g.order, g.group);
    }

    struct Asked {
        Block block;
        int cluster;
    };
    void run() {
        const int rows = int(ceil_div(g.m, g.tile_m * g.cluster_m));
        const int columns = int(ceil_div(g.n, g.tile_n * g.cluster_n)), all = rows * columns;
        const std::int64_t k_blocks = ceil_div(g.k, g.tile_k), k_part = ceil_div(k_blocks, g.split_k);
        for (int first = 0; first < all; first += int(g.clusters)) {
            std::vector<Asked> tiles, wanted;  // of C in flight; of A and B, each cluster's A before its B
            for (int i = first; i < std::min(all, first + int(g.clusters)); ++i) {
                const TileCoordinate t = tile(i, rows, columns);
                for (int x = 0; x < g.cluster_m; ++x) wanted.push_back({{0, t.row * g.cluster_m + x, 0}, i});
                for (int y = 0; y < g.cluster_n; ++y)
                    wanted.push_back({{1, t.column * g.cluster_n + y, 0}, i});
                for (int x = 0; x < g.cluster_m; ++x)
                    for (int y = 0; y < g.cluster_n; ++y)
                        tiles.push_back({{2, t.row * g.cluster_m + x, t.column * g.cluster_n + y}, i});
            }
            for (std::int64_t step = 0; step < k_part; ++step)
                for (std::int64_t block = step; block < k_blocks; block += k_part)
                    read_step(wanted, tiles, block);
            for (const auto& [c, cluster] : tiles) {
                const auto bytes = part(c[1], g.tile_m, g.m) * part(c[2], g.tile_n, g.n) * g.result_bytes();
                if (bytes > 0) touch(c, bytes);
                written += bytes;
            }
        }
    }
    void read_step(const std::vector<Asked>& wanted, const std::vector<Asked>& tiles, std::int64_t block) {
        std::set<Block> asked;
        std::map<Block, int> missed;  // and who asked
        for (const auto& [b, cluster] : wanted) {
            const bool is_a = b[0] == 0;
            const auto lines =
                is_a ? part(b[1], g.tile_m, g.m) * g.a_bytes : part(b[1], g.tile_n, g.n) * g.b_bytes;
            if (lines == 0 || !asked.insert(b).second) continue;
            const auto bytes = lines * part(block, g.tile_k, g.k);
            if (touch({b[0], b[1], block}, bytes)) continue;
            read[b[0]] += bytes;
            missed[b] = cluster;
        }
        for (const auto& [c, cluster] : tiles) {
            if (c[1] * g.tile_m >= g.m || c[2] * g.tile_n >= g.n) continue;
            const auto a = missed.find({0, c[1], 0}), b = missed.find({1, c[2], 0});
            const bool a_hit = a == missed.end() || a->second != cluster;
            const bool b_hit = b == missed.end() || b->second != cluster;
            ++steps, hits[0] += a_hit, hits[1] += b_hit, hits[2] += a_hit && b_hit;
            waits += a != missed.end() || b != missed.end();
        }
    }
};

}  // namespace rooftile
