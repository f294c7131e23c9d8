#include "tests/pipeline/protocol.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <numeric>
#include <random>
#include <unordered_set>

#include "tests/from_environment.hpp"

namespace rooftile::protocol {
namespace {

constexpr unsigned warpgroup_threads = 128;

/// Where everybody is. Plain bytes, so that a state is its own key.
struct State {
    std::string bytes;
    std::uint8_t& at(std::size_t i) { return reinterpret_cast<std::uint8_t&>(bytes[i]); }
};

class Explorer {
  public:
    explicit Explorer(const Recording& r) : r_(r) {
        for (const auto& [barrier, arrivals] : r.arrivals) mbarriers_.emplace(barrier, mbarriers_.size());
        for (const auto& role : r.roles)
            for (const Op& op : role) {
                if (op.kind == Op::meet || op.kind == Op::pass) named_.emplace(op.at, named_.size());
                if (op.kind == Op::tell) places_.emplace(op.at, places_.size());
            }
    }

    Findings run(std::size_t most_states) {
        const State first = begin();
        std::unordered_set<std::string> seen{first.bytes};
        std::deque<std::string> open{first.bytes};
        Findings out;
        for (; !open.empty() && fault_.empty(); open.pop_front()) {
            bool moves = false, all_done = true;
            for (std::size_t role = 0; role < r_.roles.size() && fault_.empty(); ++role) {
                State next{open.front()};
                if (position(next, role) < r_.roles[role].size()) all_done = false;
                if (!step(next, role)) continue;
                moves = true;
                settle(next);
                if (seen.insert(next.bytes).second) open.push_back(next.bytes);
            }
            if (!fault_.empty()) break;
            if (!moves) end(State{open.front()}, all_done);
            if (seen.size() > most_states) {
                out.gave_up = true;
                fault_ = fmt::format("more than {} states", most_states);
            }
        }
        out.states = seen.size();
        out.fault = fault_;
        return out;
    }

    Findings walk(std::size_t orders, std::uint64_t seed) {
        Findings out;
        std::mt19937_64 random(seed);
        std::vector<int> priority(r_.roles.size());
        std::size_t all_steps = 1;
        for (const auto& role : r_.roles) all_steps += role.size();
        for (; orders > 0 && fault_.empty(); --orders) {
            std::iota(priority.begin(), priority.end(), 0);
            std::ranges::shuffle(priority, random);
            std::array<std::size_t, 3> changes;
            for (std::size_t& change : changes) change = random() % all_steps;
            State s = begin();
            for (std::size_t taken = 0; fault_.empty(); ++taken) {
                std::size_t moved = r_.roles.size();
                bool all_done = true;
                for (std::size_t i = 0; i < r_.roles.size() && fault_.empty() && moved == r_.roles.size(); ++i) {
                    const auto role = std::size_t(priority[i]);
                    if (position(s, role) < r_.roles[role].size()) all_done = false;
                    if (step(s, role)) moved = i;
                }
                if (!fault_.empty()) break;
                if (moved == r_.roles.size()) {
                    end(s, all_done);
                    break;
                }
                settle(s);
                ++out.states;
                if (std::ranges::find(changes, taken) != changes.end()) std::rotate(priority.begin() + long(moved), priority.begin() + long(moved) + 1, priority.end());
            }
        }
        out.fault = fault_;
        return out;
    }

  private:
    State begin() {
        State first{std::string(size(), '\0')};
        for (const auto& [barrier, index] : mbarriers_) first.at(pending(index)) = std::uint8_t(r_.arrivals.at(barrier));
        settle(first);
        return first;
    }

    // A state's bytes: two of each role's position and one for being inside a meeting; three of each mbarrier; two of each named barrier;
    // two of each place.
    std::size_t role_at(std::size_t role) const { return 3 * role; }
    std::size_t pending(std::size_t mbarrier) const { return 3 * (r_.roles.size() + mbarrier); }
    std::size_t phase(std::size_t mbarrier) const { return pending(mbarrier) + 1; }
    std::size_t missing(std::size_t mbarrier) const { return pending(mbarrier) + 2; }  // modulo 256: a copy may come before it is announced
    std::size_t come(std::size_t named) const { return pending(mbarriers_.size()) + 2 * named; }
    std::size_t meeting(std::size_t named) const { return come(named) + 1; }
    std::size_t place(std::size_t i) const { return come(named_.size()) + 2 * i; }
    std::size_t size() const { return place(places_.size()); }

    std::size_t position(State& s, std::size_t role) const { return s.at(role_at(role)) | std::size_t{s.at(role_at(role) + 1)} << 8; }
    void advance(State& s, std::size_t role) const {
        if (++s.at(role_at(role)) == 0) ++s.at(role_at(role) + 1);
    }

    /// All arrivals at mbarriers that come next, of roles and of copies. They need not be tried behind the others' steps: they wait for nobody,
    /// hold nobody back, and come to the same in whichever order.
    void settle(State& s) {
        for (std::size_t role = 0; role < r_.roles.size(); ++role)
            for (;;) {
                const std::size_t at = position(s, role);
                if (at == r_.roles[role].size()) break;
                const Op::Kind kind = r_.roles[role][at].kind;
                if ((kind != Op::arrive && kind != Op::expect && kind != Op::come) || !step(s, role)) break;
            }
    }

    /// Whether the role can go on; `s` is then where it has.
    bool step(State& s, std::size_t role) {
        const std::size_t at = position(s, role);
        if (at == r_.roles[role].size()) return false;
        const Op& op = r_.roles[role][at];
        switch (op.kind) {
            case Op::wait:
                // PTX ISA, "mbarrier.try_wait": the phase that is not over has the other parity.
                if (s.at(phase(mbarriers_.at(op.at))) % 2 == op.value) return false;
                break;
            case Op::arrive:
                if (!arrive(s, op, op.value)) return refuse(role, at, op, s);
                break;
            case Op::expect:
                s.at(missing(mbarriers_.at(op.at))) += std::uint8_t(op.value);
                if (!arrive(s, op, 1)) return refuse(role, at, op, s);
                break;
            case Op::come:
                --s.at(missing(mbarriers_.at(op.at)));
                complete(s, op);
                break;
            case Op::meet: {
                const std::size_t index = named_.at(op.at);
                std::uint8_t& inside = s.at(role_at(role) + 2);
                if (inside != 0) {  // the meeting it came to, and one more
                    if (s.at(meeting(index)) == std::uint8_t(inside - 1)) return false;
                    inside = 0;
                    break;
                }
                if (join(s, index, op)) break;
                inside = std::uint8_t(s.at(meeting(index)) + 1);
                return true;
            }
            case Op::pass: {
                const std::size_t index = named_.at(op.at);
                bool awaited = false;
                for (std::size_t other = 0; other < r_.roles.size(); ++other)
                    if (s.at(role_at(other) + 2) != 0 && r_.roles[other][position(s, other)].at == op.at) awaited = true;
                if (join(s, index, op) && !awaited) {
                    fault_ = fmt::format("role {}, step {}: its turn meets another turn at named barrier {}, and nobody who waits", role, at, op.at);
                    return false;
                }
                break;
            }
            case Op::tell:
                write(s, op.at, op.value);
                break;
            case Op::hear:
                if (const unsigned there = read(s, op.at); there != op.value) {
                    fault_ = fmt::format("role {}, step {}: hears {} at {}, where {} was meant", role, at, there, op.at, op.value);
                    return false;
                }
                break;
        }
        advance(s, role);
        return true;
    }

    bool arrive(State& s, const Op& op, unsigned times) const {
        std::uint8_t& left = s.at(pending(mbarriers_.at(op.at)));
        if (left < times) return false;
        left = std::uint8_t(left - times);
        complete(s, op);
        return true;
    }
    void complete(State& s, const Op& op) const {
        const std::size_t index = mbarriers_.at(op.at);
        if (s.at(pending(index)) != 0 || s.at(missing(index)) != 0) return;
        s.at(pending(index)) = std::uint8_t(r_.arrivals.at(op.at));
        ++s.at(phase(index));
    }
    bool refuse(std::size_t role, std::size_t at, const Op& op, State& s) {
        fault_ = fmt::format("role {}, step {}: arrives at mbarrier {}, which waits for {} arrivals", role, at, op.at,
                             s.at(pending(mbarriers_.at(op.at))));
        return false;
    }

    /// One more warpgroup has come; true where all have, and another meeting begins.
    bool join(State& s, std::size_t named, const Op& op) const {
        std::uint8_t& groups = s.at(come(named));
        if (++groups * warpgroup_threads < op.value) return false;
        groups = 0;
        ++s.at(meeting(named));
        return true;
    }

    void write(State& s, unsigned at, unsigned value) {
        s.at(place(places_.at(at))) = std::uint8_t(value);
        s.at(place(places_.at(at)) + 1) = std::uint8_t(value >> 8);
    }
    unsigned read(State& s, unsigned at) {
        const auto found = places_.find(at);
        if (found == places_.end()) return ~0u;
        return s.at(place(found->second)) | unsigned{s.at(place(found->second) + 1)} << 8;
    }

    void end(State s, bool all_done) {
        if (all_done) {
            for (const auto& [barrier, index] : named_)
                if (s.at(come(index)) != 0) fault_ = fmt::format("an arrival at named barrier {} that nobody meets", barrier);
            return;
        }
        fault_ = "all wait:";
        for (std::size_t role = 0; role < r_.roles.size(); ++role) {
            const std::size_t at = position(s, role);
            if (at == r_.roles[role].size()) fault_ += fmt::format(" role {} is done;", role);
            else {
                const Op& op = r_.roles[role][at];
                fault_ += fmt::format(" role {} in step {} of {} for {} {};", role, at, r_.roles[role].size(),
                                      op.kind == Op::wait ? "mbarrier" : "named barrier", op.at);
            }
        }
    }

    const Recording& r_;
    std::map<unsigned, std::size_t> mbarriers_, named_, places_;
    std::string fault_;
};

}  // namespace

Findings explore(const Recording& recording, std::size_t most_states) { return Explorer(recording).run(most_states); }
Findings walk(const Recording& recording, std::size_t orders, std::uint64_t seed) { return Explorer(recording).walk(orders, seed); }

Findings check(const Recording& recording) {
    constexpr std::size_t few_states = 20'000, orders = 200;
    const Findings all = explore(recording, few_states);
    return all.gave_up ? walk(recording, orders, test_seed()) : all;
}

}  // namespace rooftile::protocol
