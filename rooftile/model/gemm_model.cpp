#include "rooftile/model/gemm_model.hpp"

#include <algorithm>
#include <cmath>

#include "rooftile/model/arithmetic.hpp"

namespace rooftile {

StepCycles step_cycles(const GemmHardware& hw, const GemmTile& t, int element_bytes) {
    const double k_bytes = double(t.tile_k) * element_bytes;
    const double area = double(t.tile_m) * t.tile_n;
    // Both tiles are written once and read by every block of C that needs them: A once for each column of
    // warp tiles, B once for each row of them.
    const double written = (t.tile_m + t.tile_n) * k_bytes;
    const double read = (area / t.warp_n + area / t.warp_m) * k_bytes;
    const double from_l2 = (double(t.tile_m) / t.cluster_n + double(t.tile_n) / t.cluster_m) * k_bytes;
    return {.tensor = 2 * area * t.tile_k / hw.flops_per_cycle,
            .shared = (written + read) / hw.shared_bandwidth,
            .l2 = from_l2 / least_known(hw.l2_port, hw.l2_share)};
}

std::int64_t k_steps(const GemmTile& t, const GemmProblem& p) {
    return ceil_div(ceil_div(p.k, t.tile_k), t.split_k);
}

double exchange_cycles(const GemmHardware& hw, const GemmTile& t) {
    if (t.split_k == 1) return 0;
    constexpr int sum_bytes = 4;
    const double written = double(t.tile_m) * t.tile_n * sum_bytes;
    const double near = written / t.split_k,
                 far = written - near;  // of a share, this part's sums and the others'
    return (written + near) / hw.shared_bandwidth + far / hw.dsmem_bandwidth + hw.dsmem_latency
           + hw.cluster_barrier;
}

namespace {

// One band of `height` rows of tiles is walked over all columns. Its rows of A stay in L2 if they and the
// columns of B in use fit; all of B comes once a band unless it stays beside them.
double walk_reads(double a_bytes, double b_bytes, double rows, double columns, double height, double slots,
                  double l2_bytes) {
    const double bands = whole_up(rows / height);
    const double width = least_known(columns, most_known(1, whole(slots / height)));
    const double band_a = a_bytes / bands, window_b = b_bytes * width / columns;
    const double a_reads = band_a + window_b <= l2_bytes ? 1 : whole_up(columns / width);
    const double b_reads = band_a + b_bytes <= l2_bytes ? 1 : bands;
    return a_bytes * a_reads + b_bytes * b_reads;
}

double bytes(std::int64_t rows, std::int64_t columns, Type type) {
    return double(rows) * double(columns) * bytes_of(type);
}

}  // namespace

WalkTraffic::WalkTraffic(const GemmHardware& hw, const GemmTile& t, const GemmProblem& p)
    : a_(bytes(p.m, p.k, p.a_type)),
      b_(bytes(p.n, p.k, p.b_type)),
      c_(bytes(p.m, p.n, p.c_type)),
      rows_(double(ceil_div(p.m, t.tile_m))),
      columns_(double(ceil_div(p.n, t.tile_n))),
      slots_(hw.sms * t.ctas_per_sm / t.split_k),
      l2_(hw.l2_bytes),
      cluster_m_(t.cluster_m) {}

double WalkTraffic::dram(Order order, int group) const {
    if (order == Order::morton || order == Order::hilbert) return std::nan("");  // no closed form yet
    if (std::isnan(slots_) || std::isnan(l2_)) return std::nan("");
    if (a_ + b_ <= l2_) return a_ + b_ + c_;
    // Row by row (or column by column) a wave covers as many whole lines as it has CTAs for.
    const auto lines = [&](double length, double all) {
        return least_known(all, most_known(1, whole_up(slots_ / length)));
    };
    if (order == Order::row)
        return c_ + walk_reads(a_, b_, rows_, columns_, lines(columns_, rows_), slots_, l2_);
    if (order == Order::column)
        return c_ + walk_reads(b_, a_, columns_, rows_, lines(rows_, columns_), slots_, l2_);
    return c_
           + walk_reads(a_, b_, rows_, columns_, least_known(rows_, double(group) * cluster_m_), slots_, l2_);
}

double l2_bytes(const GemmTile& t, const GemmProblem& p) {
    const std::int64_t rows = ceil_div(ceil_div(p.m, t.tile_m), t.cluster_m);
    const std::int64_t columns = ceil_div(ceil_div(p.n, t.tile_n), t.cluster_n);
    return bytes(p.m, p.k, p.a_type) * double(columns) + bytes(p.n, p.k, p.b_type) * double(rows)
           + bytes(p.m, p.n, p.c_type);
}

double asked_bytes(const GemmTile& t, const GemmProblem& p) {
    GemmTile alone = t;
    alone.cluster_m = alone.cluster_n = 1;
    return l2_bytes(alone, p);
}

Waves waves(const GemmHardware& hw, const GemmTile& t, const GemmProblem& p) {
    Waves w;
    const std::int64_t rows = ceil_div(p.m, std::int64_t{t.tile_m} * t.cluster_m);
    const std::int64_t columns = ceil_div(p.n, std::int64_t{t.tile_n} * t.cluster_n);
    const int sharing = t.cluster_m * t.cluster_n, cluster = sharing * t.split_k;
    w.tiles = rows * columns * sharing;
    double clusters = whole(hw.sms * t.ctas_per_sm / cluster);
    // A cluster stands within a GPC; what is left of each GPC idles.
    if (cluster > 1 && hw.sms_per_gpc > 0)
        clusters = least_known(
            clusters, whole(whole(hw.sms_per_gpc * t.ctas_per_sm / cluster) * hw.sms / hw.sms_per_gpc));
    w.slots = clusters * cluster;
    const double ctas = double(w.tiles) * t.split_k;
    w.waves = whole_up(ctas / w.slots);
    w.efficiency = ctas / (w.waves * w.slots);
    return w;
}

GemmTime gemm_time(const GemmHardware& hw, const GemmTile& t, const GemmProblem& p, const StepCycles& s,
                   const Waves& w, double dram, int stages) {
    const double steps = double(k_steps(t, p));
    // CTAs on one SM take turns at its units: a CTA's step lasts ctas_per_sm times as long, its latency does not.
    const double latency = most_known(hw.dram_latency, 0) + most_known(hw.tma_latency, 0);
    const double waiting = (latency + most_known(s.l2, 0) * t.ctas_per_sm) / ((stages - 1) * t.ctas_per_sm);

    GemmTime out{};
    out.bound = Bound::tensor;
    out.step = s.tensor;
    const auto worst = [&](double cycles, Bound bound) {
        if (cycles > out.step || std::isnan(out.step)) {
            out.step = cycles;
            out.bound = bound;
        }
    };
    worst(s.shared, Bound::shared);
    worst(s.l2, Bound::l2);
    worst(waiting, Bound::latency);

    // C leaves by the SM's port; it shows where nothing runs beside it.
    const double epilogue =
        double(t.tile_m) * t.tile_n * bytes_of(p.c_type) / least_known(hw.l2_port, hw.shared_bandwidth);
    const bool shows = !t.epilogue_overlapped && t.ctas_per_sm == 1;
    const double epilogue_cycles = most_known(epilogue, 0);
    out.exchange = exchange_cycles(hw, t);
    const double exchange = most_known(out.exchange, 0);
    out.tile_cycles = steps * out.step + exchange + (shows ? epilogue_cycles : 0);

    // The ring fills once and the last tile is stored once; in between nothing waits. Parts of K exchange
    // their sums through the ring, so with them it fills again for every tile.
    const double ring = latency + most_known(s.l2, 0);
    const double fill = ring + (shows ? 0 : epilogue_cycles);
    const double refill = t.split_k > 1 ? (w.waves - 1) * ring : 0;
    const double compute = (w.waves * t.ctas_per_sm * out.tile_cycles + fill + refill) / hw.clock_hz;
    const double memory = dram / hw.dram_bandwidth + (fill + exchange) / hw.clock_hz;
    out.least = compute;
    if (memory > compute) {
        out.least = memory;
        out.bound = Bound::dram;
    }
    if (!std::isnan(hw.launch_seconds)) {
        if (hw.launch_seconds > out.least) out.bound = Bound::launch;
        out.least += hw.launch_seconds;
    }
    // A time is known only if every term is: any unknown one could be the largest.
    // (L2's share alone will do: measured with every SM pulling, it is no more than a port gives.)
    const double all_terms =
        s.tensor + s.shared + hw.l2_share + hw.dram_latency + out.exchange + memory + compute;
    out.seconds = std::isnan(all_terms) ? std::nan("") : out.least;
    return out;
}

double dram_lower_bound_bytes(const GemmHardware& hw, const GemmProblem& p) {
    const int element = std::min({bytes_of(p.a_type), bytes_of(p.b_type), bytes_of(p.c_type)});
    const double storage = hw.on_chip_bytes / element;
    const double mnk = double(p.m) * double(p.n) * double(p.k);
    const double reuse = (2 * mnk / std::sqrt(storage) - 2 * storage) * element;
    return most_known(p.compulsory_bytes().value, reuse);
}

}  // namespace rooftile
