#include "rooftile/gemm/simulate_lru.hpp"

#include <algorithm>
#include <span>

#include "kernels/pipeline/tile_order.cuh"

namespace rooftile {
namespace {

using Int = std::int64_t;

struct Interval {
    Int begin = 0, end = 0;
    Int size() const { return end - begin; }
    friend bool operator==(const Interval&, const Interval&) = default;
};
Int common(Interval x, Interval y) {
    return std::max<Int>(0, std::min(x.end, y.end) - std::max(x.begin, y.begin));
}

/// Positions of K at which a line hits: before the short block, at it, after it.
struct Hits {
    Interval before, after;
    bool at_short = false;
    Int count() const { return before.size() + after.size() + at_short; }
    friend bool operator==(const Hits&, const Hits&) = default;
};
Int both(const Hits& x, const Hits& y) {
    return common(x.before, y.before) + common(x.after, y.after) + (x.at_short && y.at_short);
}

/// The positions of K in time: all `width` long but the one that holds the end of K.
struct Positions {
    Int k, width, count, short_at, shortage;

    explicit Positions(const TileSchedule& g) : k(g.k), width(g.tile_k), count(g.k_blocks()) {
        shortage = count * width - k;
        // The end of K is the last step of the last part that has any; all parts up to that one have every
        // step before, and those before it go first at this one.
        const Int steps = ceil_div(count, g.split_k), part = (count - 1) / steps;
        short_at = (count - 1) % steps * (part + 1) + part;
    }
    Int before(Int t) const { return t * width - (t > short_at ? shortage : 0); }
    Int at(Int t) const { return width - (t == short_at ? shortage : 0); }
    Int covered(const Hits& h) const { return h.count() * width - (h.at_short ? shortage : 0); }
};

/// Distinct bytes since the last use, as they depend on the position in K.
struct Distance {
    Int older, newer, same, c;
    Int at(Int t, const Positions& k) const {
        return older * (k.k - k.before(t) - k.at(t)) + newer * k.before(t) + same * k.at(t) + c;
    }
};

/// The positions of [begin, end), all on one side of the short one, where `d` is within `capacity`.
Interval within(const Distance& d, const Positions& k, Int begin, Int end, Int capacity) {
    if (begin >= end) return {};
    const Int first = d.at(begin, k), last = d.at(end - 1, k);
    if (first <= capacity && last <= capacity) return {begin, end};
    if (first > capacity && last > capacity) return {};
    const Int slope = (d.newer - d.older) * k.width;
    if (slope > 0) return {begin, begin + (capacity - first) / slope + 1};
    return {begin + ceil_div(first - capacity, -slope), end};
}

Hits hits_of(const Distance& d, const Positions& k, Int capacity) {
    return {.before = within(d, k, 0, k.short_at, capacity),
            .after = within(d, k, k.short_at + 1, k.count, capacity),
            .at_short = d.at(k.short_at, k) <= capacity};
}

/// A tile row of A or a tile column of B.
struct Line {
    Int bytes = 0;       ///< of one k
    int round = -1;      ///< of the last use; -1: none yet
    int place = 0;       ///< among the lines of that round
    int seen = -1;       ///< the last round that met it
    int asker = 0;       ///< the cluster that met it first in that round
    int late = -1;       ///< the last round in which late clusters met what others had
    int late_asker = 0;  ///< the first of them
};

class LruReplay {
  public:
    LruReplay(const TileSchedule& g, Int capacity)
        : g_(g),
          k_(g),
          capacity_(capacity),
          schedule_(scheduled_tiles(g)),
          first_late_(int(g.first_late())),
          all_bytes_((g.m * g.a_bytes + g.n * g.b_bytes) * g.k + g.m * g.n * g.result_bytes()),
          rows_(g.tile_rows()),
          columns_(g.tile_columns()) {
        lines_.resize(std::size_t(rows_ + columns_));
        hits_.resize(lines_.size());
        for (Int i = 0; i < rows_; ++i) lines_[std::size_t(i)].bytes = g.a_line(i);
        for (Int j = 0; j < columns_; ++j) lines_[std::size_t(rows_ + j)].bytes = g.b_line(j);
        const auto rounds = std::size_t(g.rounds());
        held_.resize(rounds);
        gone_.resize(rounds);
        written_.resize(rounds + 1);
        begins_.resize(rounds + 1);
    }

    GemmTraffic run(std::vector<TileHits>* tiles) {
        traffic_ = fixed_traffic(g_);
        for (int round = 0; round < rounds(); ++round) {
            pass(round);
            count(round, tiles);
        }
        return traffic_;
    }
    /// The DRAM bytes alone; where they come to more than `most`, some part of them that does: what nobody has read yet is still to come.
    Int dram_bytes(Int most) {
        const Int c = g_.m * g_.n * g_.result_bytes();
        unread_ = (g_.m * g_.a_bytes + g_.n * g_.b_bytes) * g_.k;
        Int all = unread_ + c;
        for (int round = 0; round < rounds() && all <= most; ++round) {
            pass(round);
            all = traffic_.dram_a_bytes + traffic_.dram_b_bytes + unread_ + c;
        }
        return all;
    }

  private:
    int rounds() const { return int(held_.size()); }
    void pass(int round) {
        gather(round);
        look_back(round);
        for (int place = 0; place < int(lines_of(round).size()); ++place) use(round, place);
        fall_behind(round);
    }
    /// What late clusters share with the others and find gone. Times are in k.
    void fall_behind(int round) {
        const Int shared = late_a_ + late_b_;
        late_hits_ = all_;
        if (shared == 0 || all_bytes_ <= capacity_) return;
        // Meanwhile the others read on, and the late ones what the others had read before.
        const double rate = double(using_bytes_ + shared), length = double(k_.k), begin = round * length;
        const double stays = double(capacity_) / rate, beside_c = double(capacity_ - made_in(round)) / rate;
        const double behind = std::min(g_.skew * (begin + length), length);
        double last = length;  // position at which they find it still
        if (behind > stays) last = stays / g_.skew - begin;
        if (behind > beside_c) {  // from some position on the round's C comes between
            const double first = (length - g_.skew * begin) / (1 + g_.skew);
            last = std::min(last, std::max(first, beside_c / g_.skew - begin));
        }
        const Int kept = last < 0 ? 0 : std::min(k_.count, Int(last / double(k_.width)) + 1);
        late_hits_ = {{0, std::min(kept, k_.short_at)},
                      {k_.short_at + 1, std::max(k_.short_at + 1, kept)},
                      kept > k_.short_at};
        const Int lost = k_.k - k_.covered(late_hits_);
        traffic_.dram_a_bytes += late_a_ * lost;
        traffic_.dram_b_bytes += late_b_ * lost;
    }

    /// Which lines the tiles of this round use, in the order of first use, and how much of C they make.
    void gather(int round) {
        using_bytes_ = late_a_ = late_b_ = 0;
        int cluster = 0;
        const auto meet = [&](Int index) {
            Line& line = lines_[std::size_t(index)];
            if (line.seen != round) {
                line.seen = round;
                line.asker = cluster;
                using_bytes_ += line.bytes;
                order_.push_back(int(index));
            } else if (cluster >= first_late_ && line.asker < first_late_ && line.late != round) {
                line.late = round;
                line.late_asker = cluster;
                (index < rows_ ? late_a_ : late_b_) += line.bytes;
            }
            return line.bytes;
        };
        Int covered = 0;  // of C, in bytes of A times bytes of B
        for (const TileCoordinate& tile : tiles_of(round)) {
            const Int row = Int{tile.row} * g_.cluster_m, column = Int{tile.column} * g_.cluster_n;
            Int height = 0, width = 0;
            for (Int i = row; i < std::min(row + g_.cluster_m, rows_); ++i) height += meet(i);
            for (Int j = column; j < std::min(column + g_.cluster_n, columns_); ++j) width += meet(rows_ + j);
            covered += height * width;
            ++cluster;
        }
        written_[std::size_t(round) + 1] =
            written_[std::size_t(round)] + covered / (g_.a_bytes * g_.b_bytes) * g_.result_bytes();
        begins_[std::size_t(round) + 1] = order_.size();
    }

    /// Sums over the rounds before that can still matter: those whose lines nothing has driven out for
    /// certain.
    void look_back(int round) {
        older_.clear();
        newer_.clear();
        for (int index : lines_of(round))
            if (const Line& line = lines_[std::size_t(index)]; line.round >= 0)
                gone_[std::size_t(line.round)] += line.bytes;
        Int held = 0, kept = using_bytes_;
        for (int past = round - 1; past >= 0; --past) {
            if (held * k_.k + c_since(past, round) > capacity_) break;
            held += held_[std::size_t(past)];
            older_.push_back(held);
            newer_.push_back(kept);
            kept += held_[std::size_t(past)] - gone_[std::size_t(past)];
        }
        for (int index : lines_of(round))
            if (const Line& line = lines_[std::size_t(index)]; line.round >= 0)
                gone_[std::size_t(line.round)] = 0;
        used_ = 0;
    }

    /// The steps of this round that find their block of one line.
    void use(int round, int place) {
        const int index = lines_of(round)[std::size_t(place)];
        Line& line = lines_[std::size_t(index)];
        used_ += line.bytes;
        Hits hits;
        const int past = line.round, back = round - 1 - past;
        if (past >= 0 && back < int(older_.size())) {
            Int same = used_;
            for (int r = past + 1; r < round; ++r) same += held_[std::size_t(r)];
            Distance d{.older = older_[std::size_t(back)],
                       .newer = newer_[std::size_t(back)],
                       .same = same,
                       .c = c_since(past, round)};
            hits = hits_of(d, k_, capacity_);
            // Of the lines used beside this one in that round, those after it count too. Mostly it does not
            // matter.
            d.same = same + held_[std::size_t(past)] - line.bytes;
            if (hits.count() > 0 && hits_of(d, k_, capacity_) != hits) {
                d.same = same + after(line);
                hits = hits_of(d, k_, capacity_);
            }
        }
        (index < rows_ ? traffic_.dram_a_bytes : traffic_.dram_b_bytes) +=
            line.bytes * (k_.k - k_.covered(hits));
        hits_[std::size_t(index)] = hits;
        if (past < 0) unread_ -= line.bytes * k_.k;
        if (past >= 0) held_[std::size_t(past)] -= line.bytes;
        held_[std::size_t(round)] += line.bytes;
        line.round = round;
        line.place = place;
    }

    /// Bytes a k of the lines used after `line` in its last round and not since.
    Int after(const Line& line) const {
        Int bytes = 0;
        const auto beside = lines_of(line.round);
        for (std::size_t i = std::size_t(line.place) + 1; i < beside.size(); ++i)
            if (const Line& other = lines_[std::size_t(beside[i])]; other.round == line.round)
                bytes += other.bytes;
        return bytes;
    }

    /// The round's steps by what they met.
    void count(int round, std::vector<TileHits>* tiles) {
        int cluster = 0;
        const auto late = [&](const Line& line) {
            return cluster >= first_late_ && line.late == round && late_hits_ != all_;
        };
        const auto seen_by = [&](Int index) -> const Hits& {
            const Line& line = lines_[std::size_t(index)];
            if (late(line)) return line.late_asker == cluster ? late_hits_ : all_;
            return line.asker == cluster ? hits_[std::size_t(index)] : all_;
        };
        const auto there = [&](Int index) -> const Hits& {
            return late(lines_[std::size_t(index)]) ? late_hits_ : hits_[std::size_t(index)];
        };
        for (const TileCoordinate& tile : tiles_of(round)) {
            const Int row = Int{tile.row} * g_.cluster_m, column = Int{tile.column} * g_.cluster_n;
            for (Int i = row; i < std::min(row + g_.cluster_m, rows_); ++i)
                for (Int j = column; j < std::min(column + g_.cluster_n, columns_); ++j) {
                    const Hits &a = seen_by(i), &b = seen_by(rows_ + j);
                    traffic_.a_hits += a.count();
                    traffic_.b_hits += b.count();
                    traffic_.both_hits += both(a, b);
                    traffic_.dram_waits += k_.count - both(there(i), there(rows_ + j));
                    if (tiles)
                        tiles->push_back({i, j, round, double(a.count()) / double(k_.count),
                                          double(b.count()) / double(k_.count)});
                }
            ++cluster;
        }
    }

    std::span<const TileCoordinate> tiles_of(int round) const {
        const std::size_t begin = std::size_t(round) * std::size_t(g_.clusters);
        return std::span(schedule_).subspan(begin,
                                            std::min(std::size_t(g_.clusters), schedule_.size() - begin));
    }
    std::span<const int> lines_of(int round) const {
        const std::size_t begin = begins_[std::size_t(round)];
        return std::span(order_).subspan(begin, begins_[std::size_t(round) + 1] - begin);
    }
    Int made_in(int round) const { return c_since(round, round + 1); }
    Int c_since(int past, int round) const {
        return written_[std::size_t(round)] - written_[std::size_t(past)];
    }

    const TileSchedule& g_;
    const Positions k_;
    const Int capacity_;
    const Hits all_{{0, k_.short_at}, {k_.short_at + 1, k_.count}, true};
    const std::vector<TileCoordinate> schedule_;
    const int first_late_;
    const Int all_bytes_;
    const Int rows_, columns_;
    std::vector<Line> lines_;
    std::vector<Hits> hits_;           // of every line, in the round of its last use
    std::vector<int> order_;           // lines of every round, one round after another
    std::vector<std::size_t> begins_;  // of each round in order_
    std::vector<Int> held_;            // by round: bytes a k of the lines last used there
    std::vector<Int> gone_;            // by round: of those, what the present round uses; 0 between rounds
    std::vector<Int> written_;         // C, and what is read with it, before each round
    std::vector<Int> older_, newer_;   // by rounds back from the present one
    Int unread_ = 0;                   // bytes of lines that no round has used
    Int using_bytes_ = 0, used_ = 0;   // bytes a k of this round's lines: all, up to the present one
    Int late_a_ = 0, late_b_ = 0;      // of those, what late clusters share with others
    Hits late_hits_;                   // positions of this round at which they find it
    GemmTraffic traffic_;
};

}  // namespace

GemmTraffic simulate_lru(const TileSchedule& tile_schedule, std::int64_t capacity,
                         std::vector<TileHits>* tiles) {
    check(tile_schedule);
    return LruReplay(tile_schedule, capacity).run(tiles);
}

std::int64_t lru_dram_bytes(const TileSchedule& tile_schedule, std::int64_t capacity, std::int64_t most) {
    check(tile_schedule);
    return LruReplay(tile_schedule, capacity).dram_bytes(most);
}

}  // namespace rooftile
