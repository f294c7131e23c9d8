#include "rooftile/model/gemm_model.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "rooftile/model/arithmetic.hpp"

namespace rooftile {

SharedBytes shared_step_bytes(const GemmTile& t, int element_bytes) {
    const double k_bytes = double(t.tile_k) * element_bytes;
    const double area = double(t.tile_m) * t.tile_n;
    // Both tiles are written once and read by every block of C that needs them: A once for each column of
    // warp tiles, B once for each row of them.
    return {(t.tile_m + t.tile_n) * k_bytes, (area / t.warp_n + area / t.warp_m) * k_bytes};
}

StepCycles step_cycles(const GemmHardware& hw, const GemmTile& t, const GemmProblem& p) {
    const double area = double(t.tile_m) * t.tile_n;
    // Fills and reads go side by side: 256x128 tiles keep the matrix units busy though both together ask for
    // more than the bandwidth (docs/facts.md).
    const auto [written, read] = shared_step_bytes(t, bytes_of(p.a_type));
    return {.tensor = 2 * area * t.tile_k / hw.flops_per_cycle,
            .shared = most_known(written, read) / hw.shared_bandwidth,
            .l2 = l2_step_cycles(hw, t, p)};
}

double l2_step_cycles(const GemmHardware& hw, const GemmTile& t, const GemmProblem& p) {
    const auto [a, b] = l2_rows(hw, t, p);
    const auto [own_a, own_b] = own_rows(t, p);
    return most_known((a + b) / hw.l2_share, (own_a + own_b) / hw.l2_port) * t.tile_k * bytes_of(p.a_type);
}

L2Rows own_rows(const GemmTile& t, const GemmProblem& p) {
    return {least_known(t.tile_m, double(p.m)) / t.cluster_n,
            least_known(t.tile_n, double(p.n)) / t.cluster_m};
}

L2Rows l2_rows(const GemmHardware& hw, const GemmTile& t, const GemmProblem& p) {
    const auto [rows, columns] = cluster_grid(p, t);
    const double gpcs = hw.sms / hw.sms_per_gpc;
    // Clusters go to the GPCs in turn: two readers meet in one where there are twice as many as GPCs.
    const auto reaching = [&](double own, int sharing, double readers) {
        if (sharing > 1) return own * hw.l2_multicast;
        return own / (readers >= 2 * gpcs ? hw.l2_coalesced : 1);
    };
    const auto [a, b] = own_rows(t, p);
    return {reaching(a, t.cluster_n, double(columns)), reaching(b, t.cluster_m, double(rows))};
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

// One band of `height` rows of tiles is walked over all columns. Between two uses of a line of the band's A
// the walk touches the band of A, a window of B as wide as the CTAs in flight, and the C of both; between two
// uses of a line of B the band of A, all of B, and the band's C. What is touched in between stays in L2 if it
// fits; C counts, since what is written takes lines too (counted on H200: 2048x7168x2048, docs/facts.md).
double walk_reads(double a_bytes, double b_bytes, double c_bytes, double rows, double columns, double height,
                  double slots, double l2_bytes) {
    height = least_known(rows, most_known(height, whole(slots / columns)));  // a wave may take several bands
    const double bands = whole_up(rows / height);
    const double width = least_known(columns, most_known(1, whole(slots / height)));
    const double band_a = a_bytes * height / rows, window_b = b_bytes * width / columns;
    const double band_c = c_bytes * height / rows, window_c = band_c * width / columns;
    const double a_reads = band_a + window_b + window_c <= l2_bytes ? 1 : whole_up(columns / width);
    const double b_reads = bands == 1 || band_a + b_bytes + band_c <= l2_bytes ? 1 : bands;
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
      cluster_m_(t.cluster_m),
      cluster_n_(t.cluster_n) {}

double WalkTraffic::dram(Order order, int group) const {
    if (std::isnan(slots_) || std::isnan(l2_)) return std::nan("");
    if (least() <= l2_) return least();
    if (order == Order::morton || order == Order::hilbert) return std::nan("");  // no closed form yet
    // Row by row (or column by column) a wave covers the lines it has CTAs for, at least a cluster's.
    const auto lines = [&](double length, double all, double cluster) {
        return least_known(all, most_known(cluster, slots_ / length));
    };
    if (order == Order::row)
        return c_ + walk_reads(a_, b_, c_, rows_, columns_, lines(columns_, rows_, cluster_m_), slots_, l2_);
    if (order == Order::column)
        return c_ + walk_reads(b_, a_, c_, columns_, rows_, lines(rows_, columns_, cluster_n_), slots_, l2_);
    return c_
           + walk_reads(a_, b_, c_, rows_, columns_, least_known(rows_, double(group) * cluster_m_), slots_,
                        l2_);
}

double l2_bytes(const GemmTile& t, const GemmProblem& p) {
    const auto [rows, columns] = cluster_grid(p, t);
    return bytes(p.m, p.k, p.a_type) * double(columns) + bytes(p.n, p.k, p.b_type) * double(rows)
           + bytes(p.m, p.n, p.c_type);
}

double l2_busy_bytes(const GemmHardware& hw, const GemmTile& t, const GemmProblem& p) {
    const auto [rows, columns] = cluster_grid(p, t);
    const auto [a, b] = l2_rows(hw, t, p);
    const double ctas = double(rows) * double(columns) * t.cluster_m * t.cluster_n;
    const auto crossing = [&](double operand, std::int64_t readers) {
        double all_at_home = 1, one = 1 / hw.l2_parts;  // one^readers
        for (; readers > 0; readers /= 2, one *= one)
            if (readers % 2 == 1) all_at_home *= one;
        return operand * (1 - all_at_home);
    };
    return ctas * (a + b) * double(p.k) * bytes_of(p.a_type) + crossing(bytes(p.m, p.k, p.a_type), columns)
           + crossing(bytes(p.n, p.k, p.b_type), rows) + bytes(p.m, p.n, p.c_type);
}

double asked_bytes(const GemmTile& t, const GemmProblem& p) {
    GemmTile alone = t;
    alone.cluster_m = alone.cluster_n = 1;
    return l2_bytes(alone, p);
}

Waves waves(const GemmHardware& hw, const GemmTile& t, const GemmProblem& p) {
    Waves w;
    const auto [rows, columns] = cluster_grid(p, t);
    const int sharing = t.cluster_m * t.cluster_n, cluster = sharing * t.split_k;
    w.tiles = rows * columns * sharing;
    double clusters = whole(hw.sms * t.ctas_per_sm / cluster);
    // A cluster stands within a GPC; what is left of each GPC idles.
    if (cluster > 1 && cluster < int(std::size(hw.cluster_sms)) && hw.cluster_sms[cluster] > 0)
        clusters = least_known(clusters, whole(hw.cluster_sms[cluster] * t.ctas_per_sm / cluster));
    else if (cluster > 1 && hw.sms_per_gpc > 0)
        clusters = least_known(
            clusters, whole(whole(hw.sms_per_gpc * t.ctas_per_sm / cluster) * hw.sms / hw.sms_per_gpc));
    w.slots = clusters * cluster;
    const double ctas = double(w.tiles) * t.split_k;
    w.waves = whole_up(ctas / w.slots);
    w.efficiency = ctas / (w.waves * w.slots);
    return w;
}

double store_cycles(const GemmHardware& hw, const GemmTile& t, const GemmProblem& p, double latency) {
    const double tile = double(t.tile_m) * t.tile_n / t.split_k * bytes_of(p.c_type);
    const double port = least_known(hw.l2_port, hw.shared_bandwidth);
    if (t.store_boxes == 0 || std::isnan(latency)) return tile / port;
    return t.store_boxes * latency / t.store_depth + tile / port;
}

}  // namespace rooftile
