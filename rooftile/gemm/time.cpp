#include "rooftile/gemm/time.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/gemm/quantised_model.hpp"
#include "rooftile/tiled/pipeline.hpp"

namespace rooftile {
namespace {

// From a load's issue to its use, in cycles.
struct LoadLatency {
    double dram, l2;  // what DRAM has to deliver, what L2 has
    double idle;      // of the first loads where little else is loaded
};
LoadLatency load_latency(const GemmHardware& hw, const GemmProblem& p) {
    const double unloaded = max_known(hw.dram_latency, 0) + max_known(hw.tma_latency, 0);
    LoadLatency latency;
    latency.dram = std::isnan(hw.loaded_latency) ? unloaded : hw.loaded_latency;
    latency.l2 = min_known(hw.l2_loaded_latency, latency.dram);
    latency.idle = std::isnan(hw.dram_latency) ? latency.dram : std::min(unloaded, latency.dram);
    if (held_by_l2(hw, p)) latency.dram = latency.l2, latency.idle = min_known(latency.l2, hw.few_loads_latency());
    return latency;
}

}  // namespace

GemmTimeFloor::GemmTimeFloor(const GemmHardware& hw, const GemmProblem& p)
    : wave_an_sm_(rounding / hw.sms),
      second_(1 / hw.clock_hz),
      scale_(hw.sustained_hz / hw.clock_hz),
      cycle_(rounding / hw.sustained_hz),
      launch_((max_known(hw.launch_seconds, 0) + max_known(hw.packing_seconds, 0)) * rounding),
      dram_(max_known(p.compulsory_bytes().value / hw.dram_bandwidth, 0) * rounding),
      latency_(load_latency(hw, p).dram),
      l2_latency_(load_latency(hw, p).l2),
      idle_latency_(load_latency(hw, p).idle),
      step_floor_(max_known(hw.step_floor, 0)),
      turn_(max_known(hw.tile_turn, 0) / 2),
      m_(double(p.m)),
      n_(double(p.n)),
      lines_(double(p.a_matrices()) * m_ * p.a_columns() + double(p.b_matrices_read()) * n_ * p.b_rows()),
      quantised_(p.is_quantised()) {}

GemmTimer::GemmTimer(const GemmHardware& hw, const GemmCandidate& t, const GemmProblem& p, const StepCycles& s,
                     const Waves& w, int stages)
    : hw_(hw),
      tile_(t),
      problem_(p),
      step_(s),
      waves_(w),
      steps_(double(k_steps(t, p))),
      streamed_(streamed_cycles(hw, t, p, cluster_grid(p, t.tile_m, t.tile_n, 1, 1))) {
    ctas_ = double(w.tiles) * t.k_parts();
    l2_ = s.l2;
    result_ = p.c_bytes() / ctas_;
    if (p.epilogue) read_once_ = p.epilogue->bytes / ctas_;
    issued_ = epilogue_issue_cycles(hw, t, p);
    const auto [own_a, own_b] = own_rows(t, p);
    const double element = bytes_of(p.a_type);
    loaded_ = (own_a + own_b) * t.tile_k * element * steps_;
    operands_ = (p.a_bytes() + p.b_bytes()) / ctas_;
    crossing_ = crossing_share(hw, t, p);
    dram_byte_ = 1 / hw.dram_bandwidth;
    l2_byte_ = 1 / (hw.l2_share * hw.sms * hw.clock_hz);
    store_byte_ = max_known(1 / (store_rate(hw, t, p) * hw.sms * hw.clock_hz), 0);
    last_ = ctas_ - (w.waves - 1) * w.slots;
    const LoadLatency latency = load_latency(hw, p);
    latency_ = latency.dram, l2_latency_ = latency.l2, idle_latency_ = latency.idle;
    // C leaves by the SM's port; it shows where nothing runs beside it.
    out_.epilogue = max_known(store_cycles(hw, t, p, hw.store_latency), 0);
    if (t.turn_overlapped) taken_turns_ = out_.epilogue;
    out_.exchange = exchange_cycles(hw, t);
    // The last wave by the CTAs it has: they share the GPU's bandwidths, and an SM, among fewer.
    const double usable_sms = w.slots / t.ctas_per_sm;  // by whole clusters
    last_sharing_ = min_known(t.ctas_per_sm, max_known(1, whole_up(last_ / usable_sms)));
    // The ring fills once and the last tile is stored once; in between nothing waits. Parts of K exchange
    // their sums through the ring, so with them it fills again for every tile.
    fills_ = t.k_parts() > 1 ? w.waves : 1;
    // A cluster synchronises before the first load and after the last use of its shared memory.
    cluster_syncs_ = t.cluster_m * t.cluster_n * t.split_k > 1 ? 2 * max_known(hw.cluster_barrier, 0) : 0;
    // No tile is known before the groups' offsets are.
    counting_ = p.groups ? max_known(hw.l2_latency, 0) : 0;
    on_sm_ = max_known(s.tensor, s.shared);
    if (!(s.tensor >= s.shared) && !std::isnan(s.shared)) on_sm_bound_ = Bound::shared;
    sum_once();
    stages_ = stages;
}

void GemmTimer::sum_once() {
    const double fill = fill_cycles(latency_, max_known(l2_, step_.port));
    once_ = tile_.start * waves_.waves + counting_ + cluster_syncs_ + fills_ * fill + (shows(last_sharing_) ? 0 : out_.epilogue);
    // Of two warpgroups in turn one multiplies while the other changes tiles: half of their turns shows.
    const double turn = hw_.tile_turn / (tile_.turn_overlapped && waves_.waves > 1 ? 2 : 1);
    apart_ = max_known(turn, 0) + (tile_.epilogue_overlapped ? max_known(issued_, 0) : out_.epilogue);
}

void GemmTimer::set_l2(double l2) {
    l2_ = l2;
    sum_once();
}

void GemmTimer::leave_out_fill() {
    fills_ = cluster_syncs_ = 0;
    sum_once();
}

void GemmTimer::leave_out_loads() {
    latency_ = idle_latency_ = l2_latency_ = streamed_ = l2_ = 0;
    fills_ = 0;
    sum_once();
}

void GemmTimer::leave_out_store() {
    result_ = read_once_ = issued_ = 0;
    out_.epilogue = taken_turns_ = 0;
    sum_once();
}

GemmTime GemmTimer::at(double clock, double dram) {
    if (problem_.is_quantised()) return quantised_time(hw_, tile_, problem_, stages_, clock, dram);
    const bool known = !std::isnan(dram);
    dram = known ? dram / ctas_ : operands_ + read_once_ + result_;  // of a CTA and tile
    reads_ = max_known(0, dram - result_ - read_once_);
    // L2 hands out what SMs load and what epilogues read, takes C, and once more what DRAM delivers to both of its sides: what one SM reads
    // lies on the other with the chance of any line.
    const double elsewhere = max_known(0, 1 - 1 / hw_.l2_parts);
    crossed_ = l2_ * hw_.l2_share * steps_ + result_ + crossing_ * reads_ + read_once_ * (1 + elsewhere);
    scale_ = clock / hw_.clock_hz;
    out_.clock_hz = clock;
    out_.bound = Bound::tensor;
    double full = 0;
    if (waves_.waves > 1) {
        set_step(waves_.slots, tile_.ctas_per_sm);
        full = (waves_.waves - 1) * wave(waves_.slots, tile_.ctas_per_sm, clock, dram);
    }
    // With fewer CTAs on as many of each SM nothing but L2 has less to do.
    if (!(waves_.waves > 1) || l2_binds_ || last_sharing_ != tile_.ctas_per_sm) set_step(last_, last_sharing_);
    out_.least = with_fill(full + wave(last_, last_sharing_, clock, dram), ctas_ * dram * dram_byte_, clock);
    if (!std::isnan(hw_.launch_seconds)) {
        if (hw_.launch_seconds > out_.least) out_.bound = Bound::launch;
        out_.least += hw_.launch_seconds;
    }
    if (hw_.packing_seconds > out_.least) out_.bound = Bound::dram;
    out_.least += max_known(hw_.packing_seconds, 0);
    // A time is known only if every term is: any unknown one could be the largest. (L2's share alone
    // will do: measured with every SM pulling, it is no more than a port gives.)
    const double added_up = tile_.promoting_warpgroups > 0 ? hw_.issue_lanes : 0;
    const double all_terms = step_.tensor + step_.shared + hw_.l2_share + hw_.dram_latency + out_.exchange + issued_ + added_up
                             + dram / hw_.dram_bandwidth + hw_.packing_seconds + out_.least;
    out_.seconds = !known || std::isnan(all_terms) ? std::nan("") : out_.least;
    return out_;
}

// `steady` seconds and what comes once. The first loads wait for those in front of them in DRAM, of which there are as many as it is busy.
double GemmTimer::with_fill(double steady, double dram_seconds, double clock) const {
    if (!(steady < std::numeric_limits<double>::infinity())) return steady;  // unknown, or no CTA finds room
    const double idle = fills_ * idle_latency_ / clock, loaded = fills_ * latency_ / clock;
    // A fill that shrank by more than `steady` grows would make less work slower.
    const double busy = held_by_l2(hw_, problem_) ? 0 : dram_seconds / std::max(steady, loaded - idle);
    return steady + once_ / clock - loaded + latency_under_load(idle, loaded, busy);
}

bool GemmTimer::shows(double sharing) const { return !tile_.epilogue_overlapped && sharing == 1; }
// Cycles of a tile in which its CTA does not multiply. Where several CTAs share an SM, another one does, as
// fast as its own ring feeds it: the matrix units are busy for the share step / alone_.
double GemmTimer::beside(double sharing) const {
    // Two warpgroups in turn: each multiplies while the other stores, and waits where that takes longer.
    const double wait = (taken_turns_ - steps_ * out_.step) / 2;
    if (waves_.waves > 1 && wait > apart_) return max_known(out_.exchange, 0) + wait;
    if (sharing == 1) return max_known(out_.exchange, 0) + apart_;
    const double part = 1 / sharing, idle = 1 - min_known(1, max_known(out_.step / alone_, 0));
    // However long a step waits, a CTA changes its own tiles no faster than where none does.
    const double own_pace = steps_ * max_known(alone_ * part - out_.step, -out_.step) + apart_ * (1 - part);
    return max_known(out_.exchange, 0) + std::max(apart_ * idle, own_pace);
}

// The steady k-step of one of `ctas` with `sharing` of them on its SM.
void GemmTimer::set_step(double ctas, double sharing) {
    const double part = sharing == 1 ? 1 : 1 / sharing;  // of an SM
    // L2 and the ports into it keep their own clock; its bandwidth is shared by the SMs that pull.
    const double pulling = ctas * part / hw_.sms * scale_;
    const double l2 = l2_ * pulling, port = step_.port * scale_;
    Pace step{on_sm_, on_sm_bound_};
    step.beside(l2, Bound::l2);
    // CTAs that wait for rows off the line lose step with their neighbours: L2's time and the SM's own do not quite run beside each other.
    if (on_sm_ > 0 && l2 > 0 && !(hw_.a_lines.on_line() && hw_.b_lines.on_line()))
        step.time = overlapped(step.time, std::min(on_sm_, l2), hw_.dram_overlap_exponent);
    step.beside(port, Bound::l2);
    const double own = step.time;  // of all but what DRAM delivers
    step.beside(streamed_, Bound::dram);
    l2_binds_ = !(l2 < step.time);
    // CTAs on one SM take turns at its units: a CTA's step lasts `sharing` times as long, its latency
    // does not. The latency is one of time, not of cycles: it lies beyond the SM. Of what is loaded L2 has
    // all but what DRAM delivers.
    double mean = l2_latency_;
    if (latency_ > l2_latency_) mean += (latency_ - l2_latency_) * min_known(1, reads_ / loaded_);
    const double load = mean * scale_ + max_known(port, 0);
    const auto paced = [&](double cycles, double share) {
        return max_known(fed_step(RingRule::lead, cycles, load, stages_, share), max_known(hw_.step_floor, tile_.step_floor) * share);
    };
    alone_ = paced(step.time, 1);
    out_.step = paced(step.time, part);
    step_bound_ = out_.step > step.time ? Bound::latency : step.bound;
    unstreamed_share_ = paced(own, part) / out_.step;
}

// Seconds of a wave of `ctas`, `sharing` of them on each SM.
double GemmTimer::wave(double ctas, double sharing, double clock, double dram) {
    Bound bound = step_bound_;
    const double changes = beside(sharing);
    out_.tile_cycles = steps_ * out_.step + changes;
    double seconds = out_.tile_cycles * sharing / clock;
    const double own_seconds = (steps_ * out_.step * unstreamed_share_ + changes) * sharing / clock;
    const auto whole_gpu = [&](double bytes, double seconds_a_byte, Bound by) {
        const double other = ctas * bytes * seconds_a_byte;
        if (other > seconds) seconds = other, bound = by;
    };
    whole_gpu(crossed_, l2_byte_, Bound::l2);
    whole_gpu(result_, store_byte_, Bound::l2);
    const double beside_dram = min_known(seconds, max_known(own_seconds, max_known(ctas * crossed_ * l2_byte_, ctas * result_ * store_byte_)));
    const double from_dram = ctas * dram * dram_byte_;
    whole_gpu(dram, dram_byte_, Bound::dram);
    out_.bound = bound;
    return overlapped(seconds, from_dram > 0 ? min_known(beside_dram, from_dram) : 0, hw_.dram_overlap_exponent);
}

GemmTime gemm_time(const GemmHardware& hw, const GemmCandidate& t, const GemmProblem& p, const StepCycles& s,
                   const Waves& w, double dram, int stages) {
    return GemmTimer(hw, t, p, s, w, stages).at(hw.sustained_hz, dram);
}

GemmTime under_power(const PowerLimit& limit, GemmTimer& timer, double joules, double dram, double reach) {
    GemmTime time{};
    const auto seconds_at = [&](double clock) { return (time = timer.at(clock, dram)).least; };
    time.watts = limit.held(joules, seconds_at, reach).watts;
    return time;
}

OperandLines operand_lines(const GemmHardware& hw, const GemmCandidate& t, const GemmProblem& p, const TileGrid& tiles) {
    // What stands outside C is not loaded, and multiplies as zeros: next to nothing.
    const auto computed = [&](std::int64_t extent, int tile, std::int64_t count, Major major) {
        return double(hw.edges_repeat && (major == Major::k || is_fp8(p.a_type)) && extent >= tile ? count * tile : extent);
    };
    // A group's last tile multiplies rows of the next one.
    const double m = p.groups ? double(tiles.rows) * t.tile_m : computed(p.m, t.tile_m, tiles.rows, p.a_major), n = computed(p.n, t.tile_n, tiles.columns, p.b_major);
    const double rows = double(tiles.rows), columns = double(tiles.columns);
    const double packed = p.b_loaded_bytes() / (double(p.n) * double(p.k) * bytes_of(p.b_type));  // of what an element takes, 1 where B is not packed
    return {.products = double(tiles.products) * m * n,
            .filled = double(tiles.products) * (m * columns + packed * n * rows),
            .read = tiles.count() * t.tile_m * t.tile_n * (packed / t.warp_m + 1.0 / t.warp_n),
            .bytes = double(p.k) * bytes_of(p.a_type)};
}

double bytes_across_l2(const GemmHardware& hw, const GemmConfig& t, const GemmProblem& p, double dram) {
    GemmConfig alone = t;
    alone.cluster_m = alone.cluster_n = 1;
    return crossing_share(hw, alone, p) * max_known(0, dram - p.c_bytes());
}

double dram_energy(const GemmHardware& hw, const GemmConfig& t, const GemmProblem& p, double dram) {
    return hw.dram_joules * (dram + hw.packing_bytes) + hw.fill_joules * bytes_across_l2(hw, t, p, dram);
}

MatrixEnergy gemm_energy(const GemmHardware& hw, const GemmCandidate& t, const GemmProblem& p, const TileGrid& tiles,
                       double dram) {
    const OperandLines lines = operand_lines(hw, t, p, tiles);
    return {.matrix = 2 * hw.flop_joules * lines.products * double(p.k),
            .fill = hw.fill_joules * (lines.filled * lines.bytes * sent_off_line(hw, t, p, tiles) + p.c_bytes()),
            .dram = dram_energy(hw, t, p, dram),
            .shared_read = hw.shared_read_joules * lines.read * lines.bytes};
}

GemmTime gemm_time_under_power(const GemmHardware& hw, const GemmCandidate& t, const GemmProblem& p,
                               const StepCycles& s, const Waves& w, double dram, int stages, double limit) {
    GemmTimer timer(hw, t, p, s, w, stages);
    return under_power(PowerLimit(hw), timer, gemm_energy(hw, t, p, dram).sum(), dram, limit);
}

}  // namespace rooftile
