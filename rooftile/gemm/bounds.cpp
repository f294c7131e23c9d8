#include "rooftile/gemm/bounds.hpp"

#include <cmath>
#include <utility>

#include "rooftile/core/arithmetic.hpp"

namespace rooftile {

GemmSizes sizes_of(const GemmProblem& p) {
    if (p.image_is_b()) {  // of the product's transpose, whose left operand it is
        GemmProblem turned = p;
        std::swap(turned.m, turned.n), std::swap(turned.a_type, turned.b_type);
        turned.a_major = turned.b_major = Major::k;
        return sizes_of(turned);
    }
    return {.m = double(p.m),
            .n = double(p.n),
            .k = double(p.k),
            .a_bytes = double(bytes_of(p.a_type)),
            .b_bytes = p.b_element_bytes(),
            .c_bytes = int(std::lround(bytes_of(p.c_type) * stored_share(p))),
            .sum_bytes = bytes_of(p.accumulate_type),
            .products = double(p.batch),
            .a_matrices = double(p.a_matrices()),
            .b_matrices = double(p.b_matrices_read()),
            .a_columns = p.a_columns(),
            .reuse = p.image ? double(p.image->most_uses()) : 1};
}

double min_traffic_bytes(const GemmSizes& s, double storage, double units) {
    const double sums = s.products * s.m * s.n;
    const double once = s.a_matrices * s.m * s.a_columns * s.a_bytes + s.b_matrices * s.n * s.k * s.b_bytes + sums * s.c_bytes;
    const auto with_sums_of = [&](double sum_bytes) {
        return 2 * sums * s.k * std::sqrt(s.a_bytes * s.b_bytes * sum_bytes / (storage * s.reuse)) - 2 * storage * units
               - (sum_bytes - s.c_bytes) * sums;
    };
    return max_known(once, max_known(with_sums_of(s.c_bytes), with_sums_of(s.sum_bytes)));
}

double dram_lower_bound_bytes(const GemmHardware& hw, const GemmProblem& p) {
    return min_traffic_bytes(sizes_of(p), hw.on_chip_bytes, 1) + p.beside_bytes();
}

double l2_lower_bound_bytes(const GemmHardware& hw, const GemmConfig& t, const GemmProblem& p) {
    const double ctas = double(t.cluster_m) * t.cluster_n * t.split_k;
    // CTAs on one SM share its storage in equal parts.
    const double storage = ctas * (hw.shared_per_sm + 4 * hw.registers_per_sm) / t.ctas_per_sm;
    const double units = waves(hw, t, p).slots / ctas;
    if (std::isnan(storage + units)) return std::nan("");
    return min_traffic_bytes(sizes_of(p), storage, units) + p.beside_bytes();
}

double shared_traffic_bytes(const GemmCandidate& t, const GemmProblem& p) {
    const double steps = cluster_grid(p, t.tile_m, t.tile_n, 1, 1).count() * double(p.k_blocks(t.tile_k));
    return steps * shared_step_bytes(t, bytes_of(p.a_type)).read + p.c_bytes();
}

double shared_lower_bound_bytes(const GemmHardware& hw, const GemmProblem& p) {
    if (std::isnan(hw.registers_per_sm + hw.sms)) return std::nan("");
    return min_traffic_bytes(sizes_of(p), 4 * hw.registers_per_sm, hw.sms);
}

}  // namespace rooftile
