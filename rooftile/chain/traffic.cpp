#include "rooftile/chain/traffic.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>

#include "kernels/pipeline/chunked_order.hpp"
#include "rooftile/physics/l2_cache.hpp"

namespace rooftile {
namespace {

using Int = std::int64_t;

Int ceil_div(Int a, Int b) { return (a + b - 1) / b; }

/// A matrix in blocks. A block belongs to whatever part of the matrix it begins in.
struct Blocks {
    Int rows = 0, columns = 0, block_rows = 1, block_columns = 1, element_bytes = 1, first = 0;
    Int row_count = ceil_div(rows, block_rows), column_count = ceil_div(columns, block_columns);

    Int count() const { return row_count * column_count; }
    /// Of the first block that begins at `row` or behind it; at most row_count.
    Int row_from(Int row) const { return std::min(ceil_div(row, block_rows), row_count); }
    Int column_from(Int column) const { return std::min(ceil_div(column, block_columns), column_count); }
    Int id(Int row, Int column) const { return first + row * column_count + column; }
    Int bytes(Int row, Int column) const {
        return std::min(block_rows, rows - row * block_rows) * std::min(block_columns, columns - column * block_columns) * element_bytes;
    }
};

enum Tensor : std::size_t { x, w1, h, w2, y };
constexpr double samples_taken = 128;
constexpr std::string_view tensor_names[] = {"X", "W1", "H", "W2", "Y"};

/// A product's operands; its result's tile columns are `shrink` times as wide as what is stored of them (of swiglu 2).
struct Operands {
    const Blocks &a, &b, &c;
    Int shrink = 1;
    const Blocks* beside = nullptr;  ///< read with a tile of the result before it is stored
    Int a_rows = 0, c_rows = 0;      ///< rows of a and c that there is room for, used in turns; 0: all
    const Blocks* overwritten = nullptr;  ///< what lay in c's place before, as long as it is dirty; behind that nothing is followed
};

std::vector<TileCoordinate> scheduled(const ChainProduct& p, Int first_row, Int rows) {
    const int tile_rows = int(ceil_div(ceil_div(rows, p.tile_m), p.cluster_m));
    const int columns = int(ceil_div(ceil_div(p.n, p.tile_n), p.cluster_n));
    std::vector<TileCoordinate> tiles(std::size_t(tile_rows) * std::size_t(columns));
    for (int i = 0; i < int(tiles.size()); ++i) {
        const int index = p.reverse ? int(tiles.size()) - 1 - i : i;
        TileCoordinate& t = tiles[std::size_t(i)];
        t = p.order == Order::hilbert  ? hilbert_at(index, tile_rows, columns)
            : p.order == Order::morton ? morton_at(index, tile_rows, columns)
                                       : tile_at(index, tile_rows, columns, p.order, p.group);
        t.row += int(first_row / p.tile_m / p.cluster_m);
    }
    return tiles;
}

/// Follows one product's accesses: clusters in lock step, but for the last ones, which fall behind by `skew`; a step asks for what
/// its tiles share once.
class Follower {
  public:
    /// Samples are taken `sample_steps` apart.
    Follower(const ChainProduct& p, const Operands& o, L2Cache& cache, ChainTraffic& out, double sample_steps)
        : p_(p), o_(o), cache_(cache), out_(out), sample_steps_(sample_steps) {
        rows_.resize(std::size_t(ceil_div(p.m, p.tile_m)));
        columns_.resize(std::size_t(ceil_div(p.n, p.tile_n)));
        const Int blocks = ceil_div(p.k, p.tile_k), part = ceil_div(blocks, p.k_parts);
        for (Int step = 0; step < part; ++step)
            for (Int block = step; block < blocks; block += part) k_.push_back(block);
    }

    /// Rows [first_row, first_row + rows), of tiles' heights.
    void run(Int first_row, Int rows) {
        tiles_ = scheduled(p_, first_row, rows);
        const Int rounds = ceil_div(Int(tiles_.size()), p_.clusters), all = rounds * Int(k_.size());
        const bool lags = p_.skew > 0 && p_.late_clusters > 0 && p_.late_clusters < p_.clusters;
        const Int first_late = lags ? p_.clusters - p_.late_clusters : p_.clusters;
        Group prompt{0, first_late}, late{first_late, p_.clusters};
        for (Int now = 0, behind = 0; now < all || (lags && behind < all);) {
            if (o_.overwritten && cache_.traffic(h).dirty == 0) return;
            const bool is_late = lags && behind < all && (now == all || double(behind) * (1 + p_.skew) < double(now));
            if (is_late) take(late, behind++);
            else take(prompt, now++);
        }
    }

  private:
    /// A row or a column of tiles that a group asks for in its round.
    struct Line {
        Int from, to;             ///< rows of blocks
        std::size_t asker, last;  ///< the first cluster that wants it, and the last one that came; for all but the first it is on its way
        Int askers = 1;
        bool hit = false;
    };
    struct Tile {
        Int row, column;
        std::size_t cluster, a, b;  ///< a, b: its lines
    };
    /// Clusters that are at the same step of their tiles, and what of their present round they ask for.
    struct Group {
        Int from, to;
        std::vector<Tile> tiles{};
        std::vector<Line> rows{}, columns{};  ///< each once, in the order of first use
    };
    /// Where a line stands in the group that was gathered under that number.
    struct Place {
        Int gathered = 0;
        std::size_t at = 0;
    };

    std::span<const TileCoordinate> round_of(const Group& g, Int round) const {
        const Int count = Int(tiles_.size()), begin = round * p_.clusters;
        const Int from = std::min(begin + g.from, count), to = std::min(begin + g.to, count);
        return std::span(tiles_).subspan(std::size_t(from), std::size_t(to - from));
    }
    template <class Visit>
    void for_each_tile(std::span<const TileCoordinate> round, Visit visit) const {
        for (const TileCoordinate& t : round)
            for (Int i = Int{t.row} * p_.cluster_m; i < std::min((Int{t.row} + 1) * p_.cluster_m, Int(rows_.size())); ++i)
                for (Int j = Int{t.column} * p_.cluster_n; j < std::min((Int{t.column} + 1) * p_.cluster_n, Int(columns_.size())); ++j)
                    visit(i, j, std::size_t(&t - round.data()));
    }

    void take(Group& g, Int step) {
        const Int steps = Int(k_.size()), round = step / steps, at = step % steps;
        if (at == 0) gather(g, round_of(g, round));
        const Int block = k_[std::size_t(at)];
        bool all_hit = true;
        for (Line& line : g.rows) all_hit &= read_lines(line, o_.a, block);
        for (Line& line : g.columns) all_hit &= read_lines(line, o_.b, block);
        out_.steps += Int(g.tiles.size());
        if (all_hit) out_.both_hits += Int(g.tiles.size());
        else for (const Tile& t : g.tiles) {
            const Line &a = g.rows[t.a], &b = g.columns[t.b];
            out_.both_hits += (a.hit || a.asker != t.cluster) && (b.hit || b.asker != t.cluster);
        }
        if (at == steps - 1) for (const Tile& t : g.tiles) store(t.row, t.column);
        if (const Int last = out_.samples.empty() ? 0 : out_.samples.back().steps; double(out_.steps - last) >= sample_steps_) sample();
    }

    void sample() {
        ChainSample s{out_.steps, out_.both_hits};
        for (std::size_t t = x; t <= y; ++t) s.asked.push_back(cache_.traffic(t).asked), s.read.push_back(cache_.traffic(t).read);
        out_.samples.push_back(std::move(s));
    }

    void gather(Group& g, std::span<const TileCoordinate> tiles) {
        g.tiles.clear(), g.rows.clear(), g.columns.clear();
        ++gathered_;
        const auto meet = [&](Place& place, std::vector<Line>& lines, const Blocks& m, Int first, Int height, Int room, std::size_t cluster) {
            if (place.gathered == gathered_) {
                Line& line = lines[place.at];
                line.askers += line.last != cluster;  // a cluster's tiles come one after the other
                line.last = cluster;
                return place.at;
            }
            const Int offset = room > 0 ? first / room * room : 0;  // where there is room for some rows alone
            place = {gathered_, lines.size()};
            lines.push_back({m.row_from(first - offset), m.row_from(first - offset + height), cluster, cluster});
            return place.at;
        };
        for_each_tile(tiles, [&](Int i, Int j, std::size_t cluster) {
            const std::size_t a = meet(rows_[std::size_t(i)], g.rows, o_.a, i * p_.tile_m, p_.tile_m, o_.a_rows, cluster);
            const std::size_t b = meet(columns_[std::size_t(j)], g.columns, o_.b, j * p_.tile_n, p_.tile_n, 0, cluster);
            g.tiles.push_back({i, j, cluster, a, b});
        });
    }

    /// An operand's lines, one block of K of them; a hit where all were there.
    bool read_lines(Line& line, const Blocks& m, Int block) {
        line.hit = true;
        if (block >= m.column_count) return true;
        const Readers readers = line.askers > 1 ? Readers::many : Readers::one;
        for (Int row = line.from; row < line.to; ++row) line.hit &= cache_.read(m.id(row, block), m.bytes(row, block), readers, line.askers);
        return line.hit;
    }

    template <class Access>
    void for_each_block(const Blocks& m, Int row, Int column, Int shrink, Int room, Access access) {
        const Int offset = room > 0 ? row / room * room : 0;
        const Int rows = m.row_from(row - offset + p_.tile_m), columns = m.column_from((column + p_.tile_n) / shrink);
        for (Int r = m.row_from(row - offset); r < rows; ++r)
            for (Int c = m.column_from(column / shrink); c < columns; ++c) access(m.id(r, c), m.bytes(r, c));
    }
    void store(Int i, Int j) {
        const Int row = i * p_.tile_m, column = j * p_.tile_n;
        if (o_.beside)
            for_each_block(*o_.beside, row, column, 1, 0, [&](Int id, Int bytes) { cache_.read(id, bytes, Readers::one); });
        for_each_block(o_.c, row, column, o_.shrink, o_.c_rows, [&](Int id, Int bytes) {
            if (o_.overwritten) cache_.discard(o_.overwritten->first + id - o_.c.first);
            cache_.write(id, bytes);
        });
    }

    const ChainProduct& p_;
    const Operands& o_;
    L2Cache& cache_;
    ChainTraffic& out_;
    std::vector<Place> rows_, columns_;
    std::vector<Int> k_;
    std::vector<TileCoordinate> tiles_;
    Int gathered_ = 0;
    const double sample_steps_;
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
        for (Blocks& b : blocks) b.first = cache.add_tensor(b.count());
        next_x = blocks[x], next_w1 = blocks[w1], next_h = blocks[h];
        for (Blocks* b : {&next_x, &next_w1, &next_h}) b->first = cache.add_tensor(b->count());
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
    Blocks blocks[5]{};
    Blocks next_x{}, next_w1{}, next_h{};  ///< of the next launch, whose H lies where this one's does
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
    const Operands of_first{m.blocks[x], m.blocks[w1], m.blocks[h], shrink};
    const Operands of_second{m.blocks[h], m.blocks[w2], m.blocks[y], 1, p.residual ? &m.blocks[x] : nullptr};
    const double apart = (steps_of(first) + steps_of(second)) / samples_taken;
    Follower(first, of_first, m.cache, out, apart).run(0, p.m);
    const Int read_by_first = m.read();
    Follower(second, of_second, m.cache, out, apart).run(0, p.m);
    const Int read_by_both = m.read();
    m.cache.write_back(y);
    // H is nobody's behind the chain: what is dirty of it yet is written back only where L2 wants its place before the next launch
    // writes there again.
    const Operands of_next{m.next_x, m.next_w1, m.next_h, shrink, nullptr, 0, 0, &m.blocks[h]};
    ChainTraffic beyond;
    Follower(first, of_next, m.cache, beyond, INFINITY).run(0, p.m);
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
    const Operands of_first{m.blocks[x], m.blocks[w1], m.blocks[h], shrink, nullptr, 0, room};
    const Operands of_second{m.blocks[h], m.blocks[w2], m.blocks[y], 1, p.residual ? &m.blocks[x] : nullptr, room, 0};
    const double apart = (steps_of(first) + steps_of(second)) / samples_taken;
    Follower one(first, of_first, m.cache, out, apart), two(second, of_second, m.cache, out, apart);
    // As the queue has them.
    const Int chunks = ceil_div(p.m, chunk), lag = chunks > 1 ? 1 : 0;
    for (Int turn = 0; turn < chunks + lag; ++turn) {
        const Int row = turn * chunk, behind = (turn - lag) * chunk;
        if (turn < chunks) one.run(row, std::min(chunk, p.m - row));
        if (turn >= lag) two.run(behind, std::min(chunk, p.m - behind));
    }
    m.cache.write_back(y);  // the next launch writes H in the same place
    m.take(out);
    return out;
}

ChainTraffic followed_on_chip(const ChainProblem& p, const ChainTile& tile, Int ctas, const ChainL2& l2) {
    ChainTraffic out;
    L2Cache cache(l2.partition_bytes, l2.partitions);
    const Int e = ChainProblem::element_bytes, pairs = p.first_width() / p.ff;
    Blocks bx{p.m, p.d, tile.tile_m, p.d, e}, b1{p.ff, p.d * pairs, tile.tile_ff, p.d * pairs, e}, b2{p.ff, p.d, tile.tile_ff, p.d, e},
        by{p.m, p.d, tile.tile_m, p.d, e};
    for (Blocks* b : {&bx, &b1, &b2, &by}) b->first = cache.add_tensor(b->count());
    for (Int first = 0; first < bx.row_count; first += ctas) {
        const Int last = std::min(first + ctas, bx.row_count);
        for (Int i = first; i < last; ++i) cache.read(bx.id(i, 0), bx.bytes(i, 0));
        for (Int block = 0; block < b1.row_count; ++block) {
            // Weights that stay are asked for once a CTA; for all CTAs but the first that asks they are on their way.
            const auto there = [&](const Blocks& b) { return (tile.resident && first > 0) || cache.read(b.id(block, 0), b.bytes(block, 0), Readers::many, last - first); };
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
