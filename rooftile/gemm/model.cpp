#include "rooftile/gemm/model.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "kernels/gemm/gemm_config.hpp"
#include "rooftile/core/arithmetic.hpp"
#include "rooftile/tiled/pipeline.hpp"

namespace rooftile {

SharedBytes shared_step_bytes(const GemmCandidate& t, int element_bytes) {
    const double k_bytes = double(t.tile_k) * element_bytes;
    const double area = double(t.tile_m) * t.tile_n;
    // Both tiles are written once and read by every block of C that needs them: A once for each column of
    // warp tiles, B once for each row of them.
    return {(t.tile_m + t.tile_n) * k_bytes, (area / t.warp_n + area / t.warp_m) * k_bytes};
}

namespace {

// Two CTAs in a row stand side by side. Two clusters do not, and go to the GPCs in turn: two that read the
// same meet in one where there are twice as many as GPCs.
double coalesced_neighbours(const GemmHardware& hw, const GemmConfig& t) {
    return t.cluster_m * t.cluster_n > 1 ? 2 * whole(hw.sms / hw.sms_per_gpc) : 2;
}

/// Clusters of a line of tiles that each read the same rows.
double readers(std::int64_t tiles, int sharing) { return double(ceil_div(tiles, std::int64_t{sharing})); }

/// Where every warp copies, loads fragments and multiplies, copies and fragments go through one port, and the port and the
/// matrix units overlap in part: the longer of the two gets longer.
void share_the_warps(StepCycles& step, double port, const GemmHardware& hw) {
    const double both = port > step.tensor ? overlapped(port, step.tensor, hw.mma_overlap_exponent)
                                           : overlapped(step.tensor, port, hw.mma_overlap_exponent);
    step.shared = port;
    (port > step.tensor ? step.shared : step.tensor) = both;
}

StepCycles step_with(double l2, const GemmHardware& hw, const GemmCandidate& t, const GemmProblem& p) {
    const double area = double(t.tile_m) * t.tile_n;
    // Fills and reads go side by side: 256x128 tiles keep the matrix units busy though both together ask for
    // more than the bandwidth (docs/facts.md).
    const auto [written, read] = shared_step_bytes(t, bytes_of(p.a_type));
    StepCycles step{.tensor = 2 * area * t.tile_k / hw.flops_per_cycle,
                    .shared = max_known(written, read) / hw.shared_bandwidth,
                    .l2 = l2,
                    .port = port_step_cycles(hw, t, p)};
    if (t.promoting_warpgroups > 0) step.tensor = max_known(step.tensor, promoting_step_cycles(hw, t));
    if (!std::isnan(hw.mma_overlap_exponent)) share_the_warps(step, (written + read) / hw.shared_bandwidth, hw);
    return step;
}

}  // namespace

StepCycles step_cycles(const GemmHardware& hw, const GemmCandidate& t, const GemmProblem& p) {
    return step_with(l2_step_cycles(hw, t, p, cluster_grid(p, t.tile_m, t.tile_n, 1, 1)), hw, t, p);
}

StepCycles step_cycles(const GemmHardware& hw, const GemmCandidate& t, const GemmProblem& p,
                       const Neighbours& neighbours) {
    return step_with(l2_step_cycles(hw, t, p, neighbours), hw, t, p);
}

double l2_step_cycles(const GemmHardware& hw, const GemmConfig& t, const GemmProblem& p,
                      const Neighbours& neighbours) {
    const auto [a, b] = l2_rows(hw, t, p, neighbours);
    const TileGrid clusters = cluster_grid(p, t);
    return (a * hw.a_lines.of(double(clusters.columns), t.cluster_n, t.cluster_m * t.cluster_n) + b * hw.b_lines.of(whole_up(rows_a_matrix(p, clusters)), t.cluster_m, t.cluster_m * t.cluster_n)) / hw.l2_share * t.tile_k * bytes_of(p.a_type);
}

namespace {

/// Rows that a k-step of one CTA asks of L2, in the order that asks least, where rows of A and B begin so.
double least_l2_rows(const GemmHardware& hw, const GemmConfig& t, const GemmProblem& p, const TileGrid& tiles, const LineCost& a_lines,
                     const LineCost& b_lines) {
    // One operand at most is merged: along a row of tiles A, down a column B. Of one that is not multicast
    // clusters read as much as CTAs.
    auto [own_a, own_b] = own_rows(t, p);
    const double rows = whole_up(rows_a_matrix(p, tiles));
    own_a *= a_lines.of(readers(tiles.columns, t.cluster_n), t.cluster_n, t.cluster_m * t.cluster_n), own_b *= b_lines.of(readers(std::int64_t(rows), t.cluster_m), t.cluster_m, t.cluster_m * t.cluster_n);
    const double enough = coalesced_neighbours(hw, t);
    const double a = t.cluster_n == 1 && a_lines.on_line() && double(tiles.columns) >= enough ? own_a : 0;
    const double b = t.cluster_m == 1 && b_lines.on_line() && rows >= enough ? own_b : 0;
    const double merged = (a > b ? a : b) * (1 - 1 / hw.l2_coalesced);
    const double all = (t.cluster_n > 1 ? own_a * hw.l2_multicast : own_a)
                       + (t.cluster_m > 1 ? own_b * hw.l2_multicast : own_b);
    return all - merged;
}

}  // namespace

double l2_step_cycles(const GemmHardware& hw, const GemmConfig& t, const GemmProblem& p,
                      const TileGrid& tiles) {
    return least_l2_rows(hw, t, p, tiles, hw.a_lines, hw.b_lines) / hw.l2_share * t.tile_k * bytes_of(p.a_type);
}

double sent_off_line(const GemmHardware& hw, const GemmConfig& t, const GemmProblem& p, const TileGrid& tiles) {
    if (hw.a_lines.on_line() && hw.b_lines.on_line()) return 1;
    // Neither with loads that L2 merges: a GPU that merges more would seem to send more.
    const double a = min_known(t.tile_m, double(p.m)), b = min_known(t.tile_n, double(p.n));  // whoever of a cluster loads them
    return (a * hw.a_lines.of(double(tiles.columns)) + b * hw.b_lines.of(whole_up(rows_a_matrix(p, tiles)))) / (a + b);
}

double promoting_step_cycles(const GemmHardware& hw, const GemmCandidate& t) {
    if (t.promoting_warpgroups == 0) return 0;
    const double elements = double(t.warp_m) * t.warp_n;  // of one wgmma
    const double wgmmas = double(t.tile_m) * t.tile_n / (elements * t.promoting_warpgroups);
    return wgmmas * (2 * elements * t.tile_k / hw.flops_per_cycle + max_known(hw.wgmma_latency, 0) + elements / hw.issue_lanes);
}

double port_step_cycles(const GemmHardware& hw, const GemmConfig& t, const GemmProblem& p) {
    const auto [a, b] = own_rows(t, p);
    return (a + b) / hw.l2_port * t.tile_k * bytes_of(p.a_type);
}

Neighbours neighbours(const TileGrid& clusters, Order order, int group) {
    const double rows = double(clusters.rows), columns = double(clusters.columns);
    if (columns == 1) return {1, rows};
    if (order == Order::morton || order == Order::hilbert) return {1, 1};
    const bool banded = order == Order::grouped || order == Order::serpentine;
    const double down = order == Order::row ? 1 : banded ? min_known(rows, double(group)) : rows;
    if (down == 1) return {columns, 1};
    return {1, down};
}

L2Rows l2_rows(const GemmHardware& hw, const GemmConfig& t, const GemmProblem& p, const Neighbours& n) {
    const double enough = coalesced_neighbours(hw, t);
    const auto reaching = [&](double own, int sharing, double neighbours, const LineCost& lines) {
        if (sharing > 1) return own * hw.l2_multicast;
        return own / (neighbours >= enough && lines.on_line() ? hw.l2_coalesced : 1);
    };
    const auto [a, b] = own_rows(t, p);
    return {reaching(a, t.cluster_n, n.a, hw.a_lines), reaching(b, t.cluster_m, n.b, hw.b_lines)};
}

// Latencies: the writes have arrived, the counter answers, the first read does. From there on a CTA adds up what it has on its way
// within L2's latency under load.
double pieces_cycles(const GemmHardware& hw, const GemmConfig& t) {
    if (t.grid_split_k == 1) return 0;
    constexpr int sum_bytes = 4;
    const double share = double(t.tile_m) * t.tile_n * sum_bytes / t.split_k;
    const double port = min_known(hw.l2_port, hw.shared_bandwidth),
                 added = min_known(port, Sm90GemmConfig::sums_in_flight_bytes / hw.l2_loaded_latency);
    return share / port + share * t.grid_split_k / added + 3 * hw.l2_latency;
}

double exchange_cycles(const GemmHardware& hw, const GemmConfig& t) {
    if (t.k_parts() == 1) return 0;
    constexpr int sum_bytes = 4;
    const double written = double(t.tile_m) * t.tile_n * sum_bytes;
    if (t.split_k == 1) return pieces_cycles(hw, t);
    const double near = written / t.split_k,
                 far = written - near;  // of a share, this part's sums and the others'
    return (written + near) / hw.shared_bandwidth + far / hw.dsmem_bandwidth + hw.dsmem_latency
           + hw.cluster_barrier + pieces_cycles(hw, t);
}

ScheduleTraffic::ScheduleTraffic(const GemmHardware& hw, const GemmConfig& t, const GemmProblem& p)
    : ScheduleTraffic(hw, t, p, p.rows_a_matrix(), double(p.groups ? p.groups->with_rows() : p.batch)) {
    if (!p.groups || p.groups->alike().size() < 2) return;
    for (const GemmGroups::Alike& groups : p.groups->alike()) alike_.push_back(ScheduleTraffic(hw, t, p, groups.rows, double(groups.groups)));
    // Tiles of groups of several rows of tiles alternate with the others', whose operands pass through L2 meanwhile: of what is touched
    // between two uses of a line only a part is theirs.
    double tall = 0, all = 0;
    const auto is_tall = [&t](const ScheduleTraffic& groups) { return groups.rows_ > t.cluster_m; };
    for (const ScheduleTraffic& groups : alike_) all += groups.least(), tall += is_tall(groups) ? groups.least() : 0;
    for (ScheduleTraffic& groups : alike_)
        if (is_tall(groups)) groups.l2_ *= tall / all;
}

ScheduleTraffic::ScheduleTraffic(const GemmHardware& hw, const GemmConfig& t, const GemmProblem& p, double rows, double products)
    : a_(rows * (p.a_columns() * bytes_of(p.a_type) + (p.block_scales() ? 4 * double(p.a_scales().lines) : 0))),
      b_(p.b_matrix_bytes() + (p.block_scales() ? 4 * double(p.b_scales().lines * p.b_scales().width) : 0)),
      c_(rows * double(p.result_n()) * bytes_of(p.c_type) * double(p.results())
         + (p.epilogue ? p.epilogue->bytes * rows / (double(p.m) * double(p.batch)) : 0)),  // read once, tile by tile, as C is written
      again_(p.image ? std::max(1.0, double(p.k) / std::min(p.a_columns(), p.b_rows())) : 1),
      of_b_(p.image_is_b()),
      products_(products),
      a_shared_(p.a_stride == 0 && !p.groups),
      b_shared_(p.b_stride == 0),
      rows_(whole_up(rows / t.tile_m)),
      columns_(double(ceil_div(p.n, t.tile_n))),
      slots_(hw.sms * t.ctas_per_sm / t.k_parts()),
      l2_(hw.l2_bytes),
      cluster_m_(t.cluster_m),
      cluster_n_(t.cluster_n),
      down_(bands(a_, b_, rows_, columns_)) {}

ScheduleTraffic::Bands ScheduleTraffic::bands(double a, double b, double rows, double columns) const {
    return {a, b, rows, columns, a / rows, b / columns, c_ / (rows * columns), whole(slots_ / columns)};
}

// One band of `height` rows of tiles is simulated over all columns. Between two uses of a line of the band's A
// the tile schedule touches the band of A, a window of B as wide as the CTAs in flight, and the C of both; between two
// uses of a line of B the band of A, all of B, and the band's C. What is touched in between stays in L2 if it
// fits; C counts, since what is written takes lines too (counted on H200: 2048x7168x2048, docs/facts.md).
ScheduleTraffic::Reads ScheduleTraffic::reads(const Bands& w, double height) const {
    height = min_known(w.rows, max_known(height, w.rows_a_wave));  // a wave may take several bands
    const double bands = whole_up(w.rows / height);
    const double width = min_known(w.columns, max_known(1, whole(slots_ / height)));
    const double band = w.a_row * height, window = w.b_column * width + w.c_tile * height * width;
    const double a_reads = band + window <= l2_ ? 1 : whole_up(w.columns / width);
    const double all = w.b + w.c_tile * height * w.columns;
    const double b_reads = bands == 1 || band + all <= l2_ ? 1 : bands;
    return {w.a * a_reads, w.b * b_reads};
}

OperandBytes ScheduleTraffic::of_batch(const OperandBytes& one) const {
    if (products_ == 1) return one;
    const bool stays = least_of_one() <= l2_;
    return {a_shared_ && stays ? one.a : products_ * one.a, b_shared_ && stays ? one.b : products_ * one.b, products_ * one.c};
}

OperandBytes ScheduleTraffic::dram_by_operand(Order order, int group) const {
    if (alike_.empty()) return of_batch(of_one(order, group));
    OperandBytes all{0, 0, 0};
    for (const ScheduleTraffic& groups : alike_) {
        const OperandBytes of = groups.dram_by_operand(order, group);
        all.a += of.a, all.b += of.b, all.c += of.c;
    }
    return all;
}

double ScheduleTraffic::least() const {
    if (alike_.empty()) return of_batch({a_, b_, c_}).sum();
    double all = 0;
    for (const ScheduleTraffic& groups : alike_) all += groups.least();
    return all;
}

double ScheduleTraffic::times_of_taps() const {
    // Columns of tiles are taps where the image is B: those at once read the same pixels, and those after them read these again.
    if (of_b_) return b_ <= l2_ ? 1 : min_known(again_, whole_up(columns_ / min_known(columns_, max_known(1, slots_ / rows_))));
    const double in_flight = min_known(rows_, max_known(1, slots_ / columns_));
    return in_flight * a_ / rows_ <= l2_ ? 1 : again_;
}

OperandBytes ScheduleTraffic::of_one(Order order, int group) const {
    const OperandBytes unknown{std::nan(""), std::nan(""), std::nan("")};
    if (std::isnan(slots_) || std::isnan(l2_)) return unknown;
    if (least_of_one() <= l2_) return {a_, b_, c_};
    if (order == Order::morton || order == Order::hilbert) return unknown;  // no closed form yet
    // Row by row (or column by column) a wave covers the lines it has CTAs for, at least a cluster's.
    const auto lines = [&](double length, double all, double cluster) {
        return min_known(all, max_known(cluster, slots_ / length));
    };
    if (order == Order::column) {
        const Reads across = reads(bands(b_, a_, columns_, rows_), lines(rows_, columns_, cluster_n_));
        return with_taps({across.columns, across.rows, c_});
    }
    const double height = order == Order::row ? lines(columns_, rows_, cluster_m_)
                                              : min_known(rows_, double(group) * cluster_m_);
    const Reads down = reads(down_, height);
    return with_taps({down.rows, down.columns, c_});
}

OperandBytes ScheduleTraffic::with_taps(OperandBytes reads) const {
    (of_b_ ? reads.b : reads.a) *= times_of_taps();
    return reads;
}

double l2_bytes(const GemmConfig& t, const GemmProblem& p) {
    const auto [rows, columns, products] = cluster_grid(p, t);
    return double(products) * (matrix_bytes(p.m, p.k, p.a_type) * double(columns) + p.b_loaded_bytes() * double(rows))
           + p.c_bytes() + (p.epilogue ? p.epilogue->bytes : 0);
}

double crossing_share(const GemmHardware& hw, const GemmConfig& t, const GemmProblem& p) {
    const auto [rows, columns, products] = cluster_grid(p, t);
    constexpr std::int64_t many = 31;  // readers, of which one at least is elsewhere
    const auto crossing = [&](std::int64_t readers) {
        double all_at_home = 1, one = 1 / hw.l2_parts;  // one^readers
        for (readers = std::min(readers, many); readers > 0; readers /= 2, one *= one)
            if (readers % 2 == 1) all_at_home *= one;
        return 1 - all_at_home;
    };
    const double a = double(p.m) * p.a_columns() / double(p.k) * bytes_of(p.a_type), b = double(p.n) * p.b_element_bytes() * (p.groups ? double(p.groups->with_rows()) : 1);
    return (a * crossing(columns) + b * crossing(std::int64_t(whole_up(rows_a_matrix(p, {rows, columns, products}))))) / (a + b);
}

double asked_bytes(const GemmConfig& t, const GemmProblem& p) {
    GemmConfig alone = t;
    alone.cluster_m = alone.cluster_n = 1;
    return l2_bytes(alone, p);
}

double cta_slots(const GemmHardware& hw, int cluster_ctas, int ctas_per_sm) {
    double clusters = whole(hw.sms * ctas_per_sm / cluster_ctas);
    // A cluster stands within a GPC; what is left of each GPC idles. Of a size that nobody counted there are as many as of the next larger one:
    // of five and seven no more find room (docs/facts.md 348).
    int counted = cluster_ctas;
    while (counted > 1 && counted < int(std::size(hw.cluster_sms)) && !(hw.cluster_sms[counted] > 0)) ++counted;
    if (counted > 1 && counted < int(std::size(hw.cluster_sms)))
        clusters = min_known(clusters, whole(hw.cluster_sms[counted] * ctas_per_sm / counted));
    else if (cluster_ctas > 1 && hw.sms_per_gpc > 0)
        clusters = min_known(
            clusters, whole(whole(hw.sms_per_gpc * ctas_per_sm / cluster_ctas) * hw.sms / hw.sms_per_gpc));
    return clusters * cluster_ctas;
}

Waves waves(const GemmHardware& hw, const GemmConfig& t, const GemmProblem& p) {
    Waves w;
    const auto [rows, columns, products] = cluster_grid(p, t);
    const int sharing = t.cluster_m * t.cluster_n;
    w.tiles = rows * columns * products * sharing;
    w.slots = cta_slots(hw, sharing * t.split_k, t.ctas_per_sm);
    const double ctas = double(w.tiles) * t.k_parts();
    w.waves = whole_up(ctas / w.slots);
    w.efficiency = ctas / (w.waves * w.slots);
    if (p.is_quantised()) {  // CTAs take even shares of all k-steps, one after the other
        const double steps = double(w.tiles) * double(k_steps(t, p));
        w.waves = w.slots > 0 ? 1 : w.waves;
        w.efficiency = steps / (whole_up(steps / w.slots) * w.slots);
    }
    return w;
}

double store_rate(const GemmHardware& hw, const GemmCandidate& t, const GemmProblem& p) {
    constexpr int sector = 32;
    const double port = min_known(hw.l2_port, hw.shared_bandwidth);
    if (t.by_element) return min_known(port, t.turned ? hw.store_by_element_turned : t.by_rows ? hw.store_by_rows : hw.store_by_element);
    if (t.store_boxes == 0) return port;
    return min_known(port, p.ldc * bytes_of(p.c_type) % sector != 0 ? hw.store_amid_sector : hw.store_share);
}

// As many boxes as there are epilogue tiles are on their way since the tile's first products. Each of the others is asked for when the
// store before it in its place has been read.
double operand_wait_cycles(const GemmHardware& hw, const GemmCandidate& t) {
    const double from_dram = max_known(hw.loaded_latency, max_known(hw.dram_latency, 0)), from_l2 = max_known(hw.l2_loaded_latency, max_known(hw.l2_latency, 0));
    const double staged = t.operand_staged && t.store_boxes > t.store_depth ? (t.store_boxes - t.store_depth) * from_dram / t.store_depth : 0;
    return staged + t.operand_turns * from_l2;
}

double epilogue_issue_cycles(const GemmHardware& hw, const GemmConfig& t, const GemmProblem& p) {
    if (!p.epilogue) return 0;
    return double(t.tile_m) * t.tile_n / t.split_k * result_share(p) * p.epilogue->issue / hw.issue_lanes;
}

double epilogue_cycles(const GemmHardware& hw, const GemmCandidate& t, const GemmProblem& p) {
    const double elements = double(t.tile_m) * t.tile_n / t.split_k * result_share(p), issue = epilogue_issue_cycles(hw, t, p);
    const double share = elements / (double(p.m) * double(p.result_n()) * double(p.batch));
    return issue + p.epilogue->bytes * share / min_known(hw.l2_port, hw.shared_bandwidth) + operand_wait_cycles(hw, t);
}

double store_cycles(const GemmHardware& hw, const GemmCandidate& t, const GemmProblem& p, double latency) {
    const double tile = double(t.tile_m) * t.tile_n / t.split_k * bytes_of(p.c_type) * stored_share(p);
    const double epilogue = p.epilogue ? epilogue_cycles(hw, t, p) : 0;
    // By TMA, or by whole rows, what all SMs store at once counts for the whole GPU; one tile alone leaves as fast as the port takes it.
    if (t.store_boxes == 0 && !t.by_rows) return tile / store_rate(hw, t, p) + epilogue;
    const double port = min_known(hw.l2_port, hw.shared_bandwidth);
    const double turn = t.by_rows ? max_known(hw.store_rows_turn, 0) : std::isnan(latency) ? 0 : t.store_boxes * latency / t.store_depth;
    return turn + tile / port + epilogue;
}

}  // namespace rooftile
