#include "rooftile/chain/traffic.hpp"

#include <algorithm>
#include <cmath>
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
    Int rows, columns, block_rows, block_columns, element_bytes, first = 0;

    Int row_count() const { return ceil_div(rows, block_rows); }
    Int column_count() const { return ceil_div(columns, block_columns); }
    Int count() const { return row_count() * column_count(); }
    /// Of the first block that begins at `row` or behind it; at most row_count().
    Int row_from(Int row) const { return std::min(ceil_div(row, block_rows), row_count()); }
    Int column_from(Int column) const { return std::min(ceil_div(column, block_columns), column_count()); }
    Int id(Int row, Int column) const { return first + row * column_count() + column; }
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
    /// Clusters that are at the same step of their tiles, and what of their present round they ask for.
    struct Group {
        Int from, to;
        std::vector<Int> rows{}, columns{};  ///< of tiles, each once, in the order of first use
    };

    struct Line {
        Int seen = -1;
        std::size_t asker = 0;  ///< the first cluster of the round that wants it; for the others it is on its way
        bool hit = false;
        Readers readers = Readers::one;
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
        const auto tiles = round_of(g, round);
        if (at == 0) gather(g, tiles);
        const Int block = k_[std::size_t(at)];
        for (Int i : g.rows) read_lines(rows_[std::size_t(i)], o_.a, i * p_.tile_m, p_.tile_m, block, o_.a_rows);
        for (Int j : g.columns) read_lines(columns_[std::size_t(j)], o_.b, j * p_.tile_n, p_.tile_n, block, 0);
        for_each_tile(tiles, [&](Int i, Int j, std::size_t cluster) {
            const Line &a = rows_[std::size_t(i)], &b = columns_[std::size_t(j)];
            ++out_.steps;
            out_.both_hits += (a.hit || a.asker != cluster) && (b.hit || b.asker != cluster);
        });
        if (at == steps - 1) for_each_tile(tiles, [&](Int i, Int j, std::size_t) { store(i, j); });
        if (const Int last = out_.samples.empty() ? 0 : out_.samples.back().steps; double(out_.steps - last) >= sample_steps_) sample();
    }

    void sample() {
        ChainSample s{out_.steps, out_.both_hits};
        for (std::size_t t = x; t <= y; ++t) s.asked.push_back(cache_.traffic(t).asked), s.read.push_back(cache_.traffic(t).read);
        out_.samples.push_back(std::move(s));
    }

    void gather(Group& g, std::span<const TileCoordinate> tiles) {
        g.rows.clear(), g.columns.clear();
        const Int stamp = ++stamps_;
        const auto meet = [&](Line& line, Int index, std::size_t cluster, std::vector<Int>& list) {
            if (line.seen == stamp) {
                if (line.asker != cluster) line.readers = Readers::many;
                return;
            }
            line.seen = stamp, line.asker = cluster, line.readers = Readers::one;
            list.push_back(index);
        };
        for_each_tile(tiles, [&](Int i, Int j, std::size_t cluster) {
            meet(rows_[std::size_t(i)], i, cluster, g.rows);
            meet(columns_[std::size_t(j)], j, cluster, g.columns);
        });
    }

    /// Lines [first, first + count) of an operand, one block of K of them; a hit where all were there.
    void read_lines(Line& line, const Blocks& m, Int first, Int count, Int block, Int room) {
        line.hit = true;
        const Int offset = room > 0 ? first / room * room : 0;  // where there is room for some rows alone
        for (Int row = m.row_from(first - offset); row < m.row_from(first - offset + count); ++row)
            if (block < m.column_count()) line.hit &= cache_.read(m.id(row, block), m.bytes(row, block), line.readers);
    }

    template <class Access>
    void for_each_block(const Blocks& m, Int row, Int column, Int shrink, Int room, Access access) {
        const Int offset = room > 0 ? row / room * room : 0;
        for (Int r = m.row_from(row - offset); r < m.row_from(row - offset + p_.tile_m); ++r)
            for (Int c = m.column_from(column / shrink); c < m.column_from((column + p_.tile_n) / shrink); ++c)
                access(m.id(r, c), m.bytes(r, c));
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
    std::vector<Line> rows_, columns_;
    std::vector<Int> k_;
    std::vector<TileCoordinate> tiles_;
    Int stamps_ = 0;
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

double chain_steps(const ChainProduct& first, const ChainProduct& second) {
    double sum = 0;
    for (const ChainProduct* p : {&first, &second}) {
        const double tiles = double(ceil_div(p->m, p->tile_m)) * double(ceil_div(p->n, p->tile_n));
        sum += tiles * double(ceil_div(p->k, p->tile_k));
    }
    return sum;
}

namespace {

/// With as many steps of K taken at once as leave few enough.
ChainProduct coarse(ChainProduct p, double steps) {
    const double at_once = std::ceil(steps / followed_chain_steps);
    if (at_once > 1) p.tile_k = int(std::min(double(p.tile_k) * at_once, double(std::max<Int>(p.k, p.tile_k))));
    return p;
}

}  // namespace

ChainTraffic two_kernels_traffic(const ChainProblem& p, const ChainProduct& fine_first, const ChainProduct& fine_second, const ChainL2& l2) {
    const double steps = chain_steps(fine_first, fine_second);
    const ChainProduct first = coarse(fine_first, steps), second = coarse(fine_second, steps);
    ChainTraffic out;
    Memory m(p, first, second, p.m, l2);
    const Int shrink = p.first_width() / p.ff;
    const Operands of_first{m.blocks[x], m.blocks[w1], m.blocks[h], shrink};
    const Operands of_second{m.blocks[h], m.blocks[w2], m.blocks[y], 1, p.residual ? &m.blocks[x] : nullptr};
    const double apart = chain_steps(first, second) / samples_taken;
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

ChainTraffic persistent_traffic(const ChainProblem& p, const ChainProduct& fine_first, const ChainProduct& fine_second, Int chunk_rows,
                                int room_chunks, const ChainL2& l2) {
    const double steps = chain_steps(fine_first, fine_second);
    const ChainProduct first = coarse(fine_first, steps), second = coarse(fine_second, steps);
    ChainTraffic out;
    const Int unit = Int{std::lcm(first.tile_m * first.cluster_m, second.tile_m * second.cluster_m)};
    const Int chunk = ceil_div(chunk_rows, unit) * unit, room = room_chunks * chunk;
    Memory m(p, first, second, std::min(room, p.m), l2);
    const Int shrink = p.first_width() / p.ff;
    const Operands of_first{m.blocks[x], m.blocks[w1], m.blocks[h], shrink, nullptr, 0, room};
    const Operands of_second{m.blocks[h], m.blocks[w2], m.blocks[y], 1, p.residual ? &m.blocks[x] : nullptr, room, 0};
    const double apart = chain_steps(first, second) / samples_taken;
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

ChainTraffic on_chip_traffic(const ChainProblem& p, const ChainTile& tile, Int ctas, const ChainL2& l2) {
    ChainTraffic out;
    L2Cache cache(l2.partition_bytes, l2.partitions);
    const Int e = ChainProblem::element_bytes, pairs = p.first_width() / p.ff;
    Blocks bx{p.m, p.d, tile.tile_m, p.d, e}, b1{p.ff, p.d * pairs, tile.tile_ff, p.d * pairs, e}, b2{p.ff, p.d, tile.tile_ff, p.d, e},
        by{p.m, p.d, tile.tile_m, p.d, e};
    for (Blocks* b : {&bx, &b1, &b2, &by}) b->first = cache.add_tensor(b->count());
    for (Int first = 0; first < bx.row_count(); first += ctas) {
        const Int last = std::min(first + ctas, bx.row_count());
        for (Int i = first; i < last; ++i) cache.read(bx.id(i, 0), bx.bytes(i, 0));
        for (Int block = 0; block < b1.row_count(); ++block) {
            const bool hit1 = cache.read(b1.id(block, 0), b1.bytes(block, 0)), hit2 = cache.read(b2.id(block, 0), b2.bytes(block, 0));
            out.steps += last - first;
            out.both_hits += hit1 && hit2 ? last - first : 0;
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

}  // namespace rooftile
