#include "rooftile/chain/traffic.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>

#include "rooftile/physics/l2_cache.hpp"
#include "rooftile/tiled/l2_follower.hpp"
#include "rooftile/units.hpp"

namespace rooftile {
namespace {

using Int = std::int64_t;

enum Tensor : std::size_t { x, w1, h, w2, y };
constexpr double samples_taken = 128;
constexpr std::string_view tensor_names[] = {"X", "W1", "H", "W2", "Y"};

TileWalk walk_of(const ChainProduct& p) {
    return {.m = p.m, .n = p.n, .k = p.k, .tile_m = p.tile_m, .tile_n = p.tile_n, .tile_k = p.tile_k, .cluster_m = p.cluster_m, .cluster_n = p.cluster_n,
            .k_parts = p.k_parts, .clusters = p.clusters, .late_clusters = p.late_clusters, .skew = p.skew, .order = p.order, .group = p.group, .reverse = p.reverse};
}

/// One L2, whose SMs ask all alike.
struct OneL2 {
    L2Cache& cache;
    const L2Blocks* c = nullptr;
    const L2Blocks* overwritten = nullptr;  ///< what lay in c's place before

    static int side_of(std::size_t) { return 0; }
    Int read(int, Int id, Int bytes, Int askers) { return cache.read(id, bytes, askers > 1 ? Readers::many : Readers::one, askers) ? 0 : bytes; }
    void write(int, Int id, Int bytes) {
        if (overwritten) cache.discard(overwritten->first + id - c->first);
        cache.write(id, bytes);
    }
};

/// After a step: what it has come to, now and then a sample of it.
struct Sampler {
    const L2Cache& cache;
    const L2Steps& steps;
    ChainTraffic& out;
    double steps_apart;
    bool operator()() const {
        out.steps = steps.steps, out.both_hits = steps.both_hits;
        if (const Int last = out.samples.empty() ? 0 : out.samples.back().steps; double(out.steps - last) >= steps_apart) {
            ChainSample s{out.steps, out.both_hits};
            for (std::size_t t = x; t <= y; ++t) s.asked.push_back(cache.traffic(t).asked), s.read.push_back(cache.traffic(t).read);
            out.samples.push_back(std::move(s));
        }
        return true;
    }
};

/// Five matrices in one cache, cut as both products' tiles ask for.
class Memory {
  public:
    Memory(const ChainProblem& p, const ChainProduct& first, const ChainProduct& second, Int h_rows, const ChainL2& l2)
        : cache(l2.partition_bytes, l2.partitions) {
        const Int e = ChainProblem::element_bytes;
        constexpr Int fewest_rows = 32;  // of a block: fewer cost time and tell no more
        Int rows = std::gcd(first.tile_m, second.tile_m);
        if (rows < fewest_rows) rows = std::min(first.tile_m, second.tile_m);
        blocks[x] = {p.m, p.d, rows, first.tile_k, e};
        blocks[w1] = {p.first_width(), p.d, first.tile_n, first.tile_k, e};
        blocks[h] = {h_rows, p.ff, rows, second.tile_k, e};
        blocks[w2] = {p.d, p.ff, second.tile_n, second.tile_k, e};
        blocks[y] = {p.m, p.d, rows, second.tile_n, e};
        for (L2Blocks& b : blocks) b.first = cache.add_tensor(b.count());
        next_x = blocks[x], next_w1 = blocks[w1], next_h = blocks[h];
        for (L2Blocks* b : {&next_x, &next_w1, &next_h}) b->first = cache.add_tensor(b->count());
    }
    /// What a kernel moved since the last call, with what is dirty of Y and H counted as written by the one that made it.
    void take(ChainTraffic& out) const {
        for (std::size_t t = x; t <= y; ++t) {
            const CacheTraffic& c = cache.traffic(t);
            out.tensors.push_back({tensor_names[t], c.read, c.written, c.asked});
        }
    }
    Int read() const {
        Int sum = 0;
        for (std::size_t t = x; t <= y; ++t) sum += cache.traffic(t).read;
        return sum;
    }

    L2Cache cache;
    L2Blocks blocks[5]{};
    L2Blocks next_x{}, next_w1{}, next_h{};  ///< of the next launch, whose H lies where this one's does
};

}  // namespace

namespace {

double tiles_of(const ChainProduct& p) { return double(ceil_div(p.m, p.tile_m)) * double(ceil_div(p.n, p.tile_n)); }

double steps_of(const ChainProduct& p) { return tiles_of(p) * double(ceil_div(p.k, p.tile_k)); }

/// What is followed: a chain, and how its products are cut.
struct Cut {
    ChainProblem p;
    ChainProduct first, second;
    Int pairs = p.first_width() / p.ff;
    double tiles() const { return tiles_of(first) + tiles_of(second); }

    /// With as many steps of K taken at once as leave no more than `steps`.
    Cut coarse(double steps) const {
        Cut out = *this;
        const double at_once = std::ceil((steps_of(first) + steps_of(second)) / steps);
        for (ChainProduct* product : {&out.first, &out.second})
            if (at_once > 1) product->tile_k = int(std::min(double(product->tile_k) * at_once, double(std::max<Int>(product->k, product->tile_k))));
        return out;
    }
};

struct Extent {
    std::string_view name;
    double tiles;       ///< along it
    double bytes;       ///< of X, H and the weights, of one of it
    double wave;        ///< how much of it a wave of tiles takes
    Int value, unit;
    Cut (*cut)(Cut, Int);  ///< to so much of it
};

std::array<Extent, 3> extents_of(const Cut& c) {
    const double e = ChainProblem::element_bytes, m = double(c.p.m), d = double(c.p.d), ff = double(c.p.ff), pairs = double(c.pairs);
    const auto wave = [](const ChainProduct& p, int tile, double tiles_along) { return double(tile) * std::ceil(double(p.clusters * p.cluster_m * p.cluster_n) * tiles_along / tiles_of(p)); };
    const double along_m = std::ceil(m / c.first.tile_m), along_m2 = std::ceil(m / c.second.tile_m);
    const double along_ff = std::ceil(double(c.first.n) / c.first.tile_n), along_d = std::ceil(double(c.second.n) / c.second.tile_n);
    const Int unit_m = std::lcm(Int{c.first.tile_m} * c.first.cluster_m, Int{c.second.tile_m} * c.second.cluster_m);
    return {Extent{"m", std::max(along_m, along_m2), (2 * d + ff) * e, std::max(wave(c.first, c.first.tile_m, along_m), wave(c.second, c.second.tile_m, along_m2)), c.p.m, unit_m,
                   [](Cut of, Int to) { return of.p.m = of.first.m = of.second.m = to, of; }},
            Extent{"ff", along_ff, (m + d * (1 + pairs)) * e, wave(c.first, c.first.tile_n, along_ff), c.p.ff, std::lcm(Int{c.first.tile_n} * c.first.cluster_n, Int{c.second.tile_k}),
                   [](Cut of, Int to) { return of.p.ff = of.second.k = to, of.first.n = to * of.pairs, of; }},
            Extent{"d", along_d, (2 * m + ff * (1 + pairs)) * e, wave(c.second, c.second.tile_n, along_d), c.p.d, std::lcm(Int{c.second.tile_n} * c.second.cluster_n, Int{c.first.tile_k}),
                   [](Cut of, Int to) { return of.p.d = of.first.k = of.second.n = to, of; }}};
}

/// What `value` moves on the line through what `half` of `part` and `part` do.
ChainTraffic on_line(ChainTraffic whole, const ChainTraffic& half, Int part, Int value) {
    const double ahead = 2 * double(value - part) / double(part);
    const auto follow = [&](Int& to, Int from) { to += std::llround(double(to - from) * ahead); };
    const double steps = double(whole.steps);
    const std::vector<ChainTensorTraffic> followed = whole.tensors;
    for (std::size_t i = 0; i < whole.tensors.size(); ++i) {
        ChainTensorTraffic& t = whole.tensors[i];
        follow(t.read, half.tensors[i].read), follow(t.written, half.tensors[i].written), follow(t.asked, half.tensors[i].asked);
    }
    for (std::size_t i = 0; i < 2; ++i) follow(whole.of_kernel[i], half.of_kernel[i]);
    follow(whole.steps, half.steps), follow(whole.both_hits, half.both_hits);
    // Samples are stretched alike.
    const auto stretch = [](Int& x, double by) { x = std::llround(double(x) * by); };
    for (ChainSample& s : whole.samples) {
        stretch(s.steps, double(whole.steps) / steps), stretch(s.both_hits, double(whole.steps) / steps);
        for (std::size_t i = 0; i < followed.size(); ++i) {
            if (followed[i].asked > 0) stretch(s.asked[i], double(whole.tensors[i].asked) / double(followed[i].asked));
            if (followed[i].read > 0) stretch(s.read[i], double(whole.tensors[i].read) / double(followed[i].read));
        }
    }
    return whole;
}

/// `follow`s a chain; of more tiles than the effort has, two parts of it along its longest extent, from where what it moves is a
/// straight line. `least_m`: rows whose multiples a part has.
template <class Follow>
ChainTraffic followed(const Cut& whole, const ChainL2& l2, Int least_m, const ChainEffort& effort, const Follow& follow) {
    if (whole.tiles() <= effort.tiles) return follow(whole.coarse(effort.steps));
    std::array<Extent, 3> extents = extents_of(whole);
    extents[0].unit = std::lcm(extents[0].unit, std::max<Int>(least_m, 1));
    std::ranges::sort(extents, std::greater{}, &Extent::tiles);
    for (const Extent& e : extents) {
        // A half is several times L2 and some waves: what is read once, and what the first rounds find, is then the same in both.
        constexpr double units = 4;
        const double half = std::max({effort.times_l2 * double(l2.partition_bytes) * l2.partitions / e.bytes, effort.waves * e.wave, units * double(e.unit),
                                      double(e.value) * effort.tiles / whole.tiles() / 4});
        const Int unit = e.unit, rounded = ceil_div(Int(std::min(half, double(e.value))), unit) * unit, part = 2 * rounded;
        if (double(part) > 0.75 * double(e.value)) continue;
        const Cut cut = e.cut(whole, part).coarse(effort.steps);  // the half as coarse
        ChainTraffic out = on_line(followed(cut, l2, least_m, effort, follow), followed(e.cut(cut, rounded), l2, least_m, effort, follow), part, e.value);
        out.parts.insert(out.parts.begin(), {e.name, part, e.value});
        return out;
    }
    return follow(whole.coarse(effort.steps));
}

ChainTraffic followed_two_kernels(const Cut& cut, const ChainL2& l2) {
    const ChainProblem& p = cut.p;
    const ChainProduct &first = cut.first, &second = cut.second;
    ChainTraffic out;
    Memory m(p, first, second, p.m, l2);
    const Int shrink = p.first_width() / p.ff;
    const L2Operands of_first{m.blocks[x], m.blocks[w1], m.blocks[h], shrink};
    const L2Operands of_second{m.blocks[h], m.blocks[w2], m.blocks[y], 1, p.residual ? &m.blocks[x] : nullptr};
    L2Steps steps, beyond;
    OneL2 now{m.cache}, next{m.cache, &m.next_h, &m.blocks[h]};
    const Sampler sample{m.cache, steps, out, (steps_of(first) + steps_of(second)) / samples_taken};
    L2Follower(walk_of(first), of_first, now, steps, true).run(0, p.m, sample);
    const Int read_by_first = m.read();
    L2Follower(walk_of(second), of_second, now, steps, true).run(0, p.m, sample);
    const Int read_by_both = m.read();
    m.cache.write_back(y);
    // H is nobody's behind the chain: what is dirty of it yet is written back only where L2 wants its place before the next launch
    // writes there again.
    const L2Operands of_next{m.next_x, m.next_w1, m.next_h, shrink};
    const auto is_dirty = [&] { return m.cache.traffic(h).dirty > 0; };
    if (is_dirty()) L2Follower(walk_of(first), of_next, next, beyond, true).run(0, p.m, is_dirty);
    out.of_kernel = {read_by_first + m.cache.traffic(h).written, read_by_both - read_by_first + p.y_bytes()};
    m.take(out);
    return out;
}

ChainTraffic followed_persistent(const Cut& cut, Int chunk, int room_chunks, const ChainL2& l2) {
    const ChainProblem& p = cut.p;
    const ChainProduct &first = cut.first, &second = cut.second;
    ChainTraffic out;
    const Int room = room_chunks * chunk;
    Memory m(p, first, second, std::min(room, p.m), l2);
    const Int shrink = p.first_width() / p.ff;
    const L2Operands of_first{m.blocks[x], m.blocks[w1], m.blocks[h], shrink, nullptr, 0, room};
    const L2Operands of_second{m.blocks[h], m.blocks[w2], m.blocks[y], 1, p.residual ? &m.blocks[x] : nullptr, room, 0};
    L2Steps steps;
    OneL2 now{m.cache};
    const Sampler sample{m.cache, steps, out, (steps_of(first) + steps_of(second)) / samples_taken};
    L2Follower one(walk_of(first), of_first, now, steps, true), two(walk_of(second), of_second, now, steps, true);
    // As the queue has them.
    const Int chunks = ceil_div(p.m, chunk), lag = chunks > 1 ? 1 : 0;
    for (Int turn = 0; turn < chunks + lag; ++turn) {
        const Int row = turn * chunk, behind = (turn - lag) * chunk;
        if (turn < chunks) one.run(row, std::min(chunk, p.m - row), sample);
        if (turn >= lag) two.run(behind, std::min(chunk, p.m - behind), sample);
    }
    m.cache.write_back(y);  // the next launch writes H in the same place
    m.take(out);
    return out;
}

ChainTraffic followed_on_chip(const ChainProblem& p, const ChainTile& tile, Int ctas, const ChainL2& l2) {
    ChainTraffic out;
    L2Cache cache(l2.partition_bytes, l2.partitions);
    const Int e = ChainProblem::element_bytes, pairs = p.first_width() / p.ff;
    L2Blocks bx{p.m, p.d, tile.tile_m, p.d, e}, b1{p.ff, p.d * pairs, tile.tile_ff, p.d * pairs, e}, b2{p.ff, p.d, tile.tile_ff, p.d, e},
        by{p.m, p.d, tile.tile_m, p.d, e};
    for (L2Blocks* b : {&bx, &b1, &b2, &by}) b->first = cache.add_tensor(b->count());
    for (Int first = 0; first < bx.row_count; first += ctas) {
        const Int last = std::min(first + ctas, bx.row_count);
        for (Int i = first; i < last; ++i) cache.read(bx.id(i, 0), bx.bytes(i, 0));
        for (Int block = 0; block < b1.row_count; ++block) {
            // Weights that stay are asked for once a CTA; for all CTAs but the first that asks they are on their way.
            const auto there = [&](const L2Blocks& b) { return (tile.resident && first > 0) || cache.read(b.id(block, 0), b.bytes(block, 0), Readers::many, last - first); };
            const bool hit1 = there(b1), hit2 = there(b2);
            out.steps += last - first;
            out.both_hits += last - first - (hit1 && hit2 ? 0 : 1);
        }
        for (Int i = first; i < last; ++i) {
            if (p.residual) cache.read(bx.id(i, 0), bx.bytes(i, 0));
            cache.write(by.id(i, 0), by.bytes(i, 0));
        }
    }
    cache.write_back();
    constexpr std::string_view names[] = {"X", "W1", "W2", "Y"};
    for (std::size_t t = 0; t < 4; ++t)
        out.tensors.push_back({names[t], cache.traffic(t).read, cache.traffic(t).written, cache.traffic(t).asked});
    return out;
}

}  // namespace

ChainTraffic two_kernels_traffic(const ChainProblem& p, const ChainProduct& first, const ChainProduct& second, const ChainL2& l2,
                                 const ChainEffort& effort) {
    return followed({p, first, second}, l2, 1, effort, [&](const Cut& cut) { return followed_two_kernels(cut, l2); });
}

ChainTraffic persistent_traffic(const ChainProblem& p, const ChainProduct& first, const ChainProduct& second, Int chunk_rows, int room_chunks,
                                const ChainL2& l2, const ChainEffort& effort) {
    const Int unit = Int{std::lcm(first.tile_m * first.cluster_m, second.tile_m * second.cluster_m)}, chunk = ceil_div(chunk_rows, unit) * unit;
    return followed({p, first, second}, l2, chunk * room_chunks, effort, [&](const Cut& cut) { return followed_persistent(cut, chunk, room_chunks, l2); });
}

ChainTraffic on_chip_traffic(const ChainProblem& p, const ChainTile& tile, Int ctas, const ChainL2& l2, const ChainEffort& effort) {
    ChainProduct first, second;  // as many tiles as there are blocks to follow
    first.m = second.m = p.m, first.n = p.first_width(), first.k = second.n = p.d, second.k = p.ff;
    first.tile_m = second.tile_m = tile.tile_m, first.tile_n = int(tile.tile_ff * (p.first_width() / p.ff)), first.tile_k = second.tile_n = int(p.d), second.tile_k = tile.tile_ff;
    first.clusters = second.clusters = ctas;
    return followed({p, first, second}, l2, tile.tile_m * ctas, effort, [&](const Cut& cut) { return followed_on_chip(cut.p, tile, ctas, l2); });
}

}  // namespace rooftile
