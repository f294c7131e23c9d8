#include "rooftile/model/gemm_time.hpp"

#include <cmath>

#include "rooftile/model/arithmetic.hpp"

namespace rooftile {
namespace {

// Bytes that one CTA asks DRAM's latency for in a k-step: of an operand that at most two clusters read at a
// time. Of one that more read, all but the first find it in L2, and the ring runs ahead of the first.
double streamed_bytes(const GemmTile& t, const GemmProblem& p) {
    const double k_bytes = double(t.tile_k) * bytes_of(p.a_type);
    const auto [rows, columns] = cluster_grid(p, t);
    constexpr int few = 2;
    return (columns <= few ? double(t.tile_m) / t.cluster_n * k_bytes : 0)
           + (rows <= few ? double(t.tile_n) / t.cluster_m * k_bytes : 0);
}

}  // namespace

GemmTimer::GemmTimer(const GemmHardware& hw, const GemmTile& t, const GemmProblem& p, const StepCycles& s,
                     const Waves& w, int stages)
    : hw_(hw), tile_(t), step_(s), waves_(w), steps_(double(k_steps(t, p))), streamed_(streamed_bytes(t, p)) {
    ctas_ = double(w.tiles) * t.split_k;
    l2_ = l2_bytes(t, p) / ctas_;
    last_ = ctas_ - (w.waves - 1) * w.slots;
    latency_ = std::isnan(hw.loaded_latency) ? most_known(hw.dram_latency, 0) + most_known(hw.tma_latency, 0)
                                             : hw.loaded_latency;
    // C leaves by the SM's port; it shows where nothing runs beside it.
    out_.epilogue = most_known(store_cycles(hw, t, p), 0);
    out_.exchange = exchange_cycles(hw, t);
    // The last wave by the CTAs it has: they share the GPU's bandwidths, and an SM, among fewer.
    const double usable_sms = w.slots / t.ctas_per_sm;  // by whole clusters
    last_sharing_ = least_known(t.ctas_per_sm, most_known(1, whole_up(last_ / usable_sms)));
    // The ring fills once and the last tile is stored once; in between nothing waits. Parts of K exchange
    // their sums through the ring, so with them it fills again for every tile.
    const double ring = latency_ + most_known(s.l2, 0);
    once_ = ring + (shows(last_sharing_) ? 0 : out_.epilogue) + (t.split_k > 1 ? (w.waves - 1) * ring : 0);
    ring_ = stages - 1;
}

GemmTime GemmTimer::at(double clock, double dram) {
    dram /= ctas_;  // of a CTA and tile
    out_.clock_hz = clock;
    out_.bound = Bound::tensor;
    double full = 0;
    if (waves_.waves > 1) full = (waves_.waves - 1) * wave(waves_.slots, tile_.ctas_per_sm, clock, dram);
    out_.least = full + wave(last_, last_sharing_, clock, dram) + once_ / clock;
    out_.tile_cycles = steps_ * out_.step + beside(last_sharing_);
    if (!std::isnan(hw_.launch_seconds)) {
        if (hw_.launch_seconds > out_.least) out_.bound = Bound::launch;
        out_.least += hw_.launch_seconds;
    }
    // A time is known only if every term is: any unknown one could be the largest. (L2's share alone
    // will do: measured with every SM pulling, it is no more than a port gives.)
    const double all_terms = step_.tensor + step_.shared + hw_.l2_share + hw_.dram_latency + out_.exchange
                             + dram / hw_.dram_bandwidth + out_.least;
    out_.seconds = std::isnan(all_terms) ? std::nan("") : out_.least;
    return out_;
}

bool GemmTimer::shows(double sharing) const { return !tile_.epilogue_overlapped && sharing == 1; }
// Cycles of a tile in which its CTA does not multiply. Where several CTAs share an SM, another one does.
double GemmTimer::beside(double sharing) const {
    const double alone = most_known(hw_.tile_turn, 0) + (shows(sharing) ? out_.epilogue : 0);
    return most_known(out_.exchange, 0) + (sharing == 1 ? alone : 0);
}

// Seconds of a wave of `ctas`, `sharing` of them on each SM.
double GemmTimer::wave(double ctas, double sharing, double clock, double dram) {
    const double share = hw_.l2_share * hw_.clock_hz / clock;  // L2 keeps its own clock
    const double l2 = step_.l2 * least_known(hw_.l2_port, hw_.l2_share) / least_known(hw_.l2_port, share);
    out_.step = step_.tensor;
    Bound bound = Bound::tensor;
    const auto worst = [&](double cycles, Bound by) {
        if (cycles > out_.step || std::isnan(out_.step)) out_.step = cycles, bound = by;
    };
    worst(step_.shared, Bound::shared);
    worst(l2, Bound::l2);
    // CTAs on one SM take turns at its units: a CTA's step lasts `sharing` times as long, its latency
    // does not. The latency is one of time, not of cycles: it lies beyond the SM.
    const double latency = latency_ / hw_.clock_hz * clock;
    worst((latency + most_known(l2, 0) * sharing) / (ring_ * sharing), Bound::latency);
    worst(hw_.step_floor / sharing, Bound::latency);
    worst(streamed_ / hw_.dram_per_sm * clock, Bound::dram);
    double seconds = (steps_ * out_.step + beside(sharing)) * sharing / clock;
    const auto whole_gpu = [&](double bytes, double rate, Bound by) {
        if (ctas * bytes / rate > seconds) seconds = ctas * bytes / rate, bound = by;
    };
    whole_gpu(dram, least_known(hw_.dram_bandwidth, hw_.dram_per_clock * hw_.sms * clock), Bound::dram);
    whole_gpu(l2_, hw_.l2_share * hw_.sms * hw_.clock_hz, Bound::l2);
    out_.bound = bound;
    return seconds;
}

GemmTime gemm_time(const GemmHardware& hw, const GemmTile& t, const GemmProblem& p, const StepCycles& s,
                   const Waves& w, double dram, int stages) {
    return GemmTimer(hw, t, p, s, w, stages).at(hw.clock_hz, dram);
}

GemmEnergy gemm_energy(const GemmHardware& hw, const GemmTile& t, const GemmProblem& p, const Waves& w,
                       double dram) {
    const double steps = double(w.tiles) * t.split_k * double(k_steps(t, p)) * t.tile_k;
    return {.matrix = hw.flop_joules * 2 * steps * t.tile_m * t.tile_n,
            .fill = hw.fill_joules * steps * (t.tile_m + t.tile_n) * bytes_of(p.a_type),
            .dram = hw.dram_joules * dram};
}

GemmTime gemm_time_under_power(const GemmHardware& hw, const GemmTile& t, const GemmProblem& p,
                               const StepCycles& s, const Waves& w, double dram, int stages) {
    GemmTimer timer(hw, t, p, s, w, stages);
    const double joules = gemm_energy(hw, t, p, w, dram).sum(), room = hw.held_watts - hw.static_watts;
    const bool known = !std::isnan(joules + room + hw.energy_exponent + hw.top_hz) && room > 0;
    if (!known) return timer.at(hw.clock_hz, dram);
    // Power falls with the clock by its own exponent and by the longer time: a few steps of the fixed point.
    constexpr int rounds = 6;
    double clock = hw.top_hz;
    GemmTime time = timer.at(clock, dram);
    for (int i = 0; i < rounds; ++i) {
        const double dynamic = joules * std::pow(clock / hw.clock_hz, hw.energy_exponent) / time.least;
        time.watts = hw.static_watts + dynamic;
        if (dynamic <= room && clock >= hw.top_hz) break;
        clock = least_known(hw.top_hz, clock * std::pow(room / dynamic, 1 / (1 + hw.energy_exponent)));
        const double watts = time.watts;
        time = timer.at(clock, dram);
        time.watts = least_known(watts, hw.held_watts);
    }
    return time;
}

}  // namespace rooftile
