// The three inequalities as forms for kernels that are bound by arithmetic: a tiled product, and a convolution as one [M1-M18]. What a
// derivation has comes from its formulas; the rest is what one chooses, and what makes a convolution a product.
#include "rooftile/gemm/formulas.hpp"

namespace rooftile {
namespace {

namespace f = gemm_formula;

constexpr Formula unit{"unit", "", "", "the unit whose rate the work is divided by: tensor cores, else FMA   [M2]",
    {{machine_number("rate", "rate.*.*.*")}}};
constexpr Formula tile_m{"tile_m", "", "rows", "choose: begin at 128   [M8]", {}};
constexpr Formula tile_n{"tile_n", "", "columns", "choose: begin at 128   [M8]", {}};
constexpr Formula tile_k{"tile_k", "", "elements", "choose: begin at 32 or 64, 128 / b where copies swizzle 128 B   [M8, M13]", {}};
constexpr Formula threads{"threads", "", "", "128 * warpgroups, at most sm.max_threads_per_cta   [M4]",
                          {{{"warpgroups", "", "choose: 1 or 2, more where accumulators do not fit"},
                            machine_number("sm.max_threads_per_cta")}}};
constexpr Formula verdict_of_intensity{"verdict", "", "",
                                       "I >= I_crit: compute-bound. Else grow tile_m or tile_n, take a narrower type, or count what L2 "
                                       "and clusters share   [M2, M8]",
                                       {{{"I", "FLOP/B", "above"}, {"I_crit", "FLOP/B", "above"}}}};
constexpr Formula verdict_of_latency{"verdict", "", "",
                                     "stages_min <= stages <= stages_max, and D / share_l2 <= T, which no number of stages mends   [M5]",
                                     {{{"stages_min", "stages", "above"}, {"stages_max", "stages", "above"}, {"T", "cycles", "above"}}}};
constexpr Formula next_tile{"next", "", "",
                            "where a limit breaks: fewer accumulators a thread and more warps; part of C in shared memory; fewer CTAs "
                            "an SM; a smaller tile, last   [M4, M8]", {}};

constexpr Formula pixels{"gemm_m", "", "", "batch * H_out * W_out   [M18]",
                         {{{"batch", "", "the problem"}, {"H_out", "", "the problem"}, {"W_out", "", "the problem"}}}};
constexpr Formula filters{"gemm_n", "", "", "C_out   [M18]", {{{"C_out", "", "the problem"}}}};
constexpr Formula taps{"gemm_k", "", "", "C_in * K_h * K_w / groups   [M18]",
                       {{{"C_in", "", "the problem"}, {"K_h", "", "the problem"}, {"K_w", "", "the problem"},
                         {"groups", "", "the problem"}}}};
constexpr Formula tile_pixels{"tile_m", "", "pixels", "T_h * T_w, output pixels: choose, as 8 x 16   [M18]",
                              {{{"T_h", "", "choose"}, {"T_w", "", "choose"}}}};
constexpr Formula tile_filters{"tile_n", "", "filters", "choose: begin at 128, at most C_out   [M18]", {}};
constexpr Formula tile_taps{"tile_k", "", "elements", "choose: input channels of one tap, begin at 32 or 64   [M18]", {}};
constexpr Formula halo{"halo_bytes", "", "B",
    "((T_h - 1) * stride + K_h) * ((T_w - 1) * stride + K_w) * C * b: what a tile's input takes where all taps read it   [M18]",
                       {{{"T_h", "", "above"}, {"stride", "", "the problem"}, {"K_h", "", "the problem"}, {"T_w", "", "above"},
                         {"K_w", "", "the problem"},
                         {"C", "", "input channels held at once"}, {"b", "B", "an element"}}}};
constexpr Formula halo_fits{"verdict", "", "", "stages * halo_bytes + weights of a step <= shared_limit; at 7 x 7 it decides   [M18]",
                            {{{"stages", "stages", "choose"}, {"halo_bytes", "B", "above"}, {"shared_limit", "B", "above"}}}};

constexpr std::string_view bottleneck = "1 Bottleneck", unknowns = "2 Unknowns", capacity = "3 Capacity: does it fit?",
                           feeding = "4 Intensity: can the memory feed it?", latency = "5 Latency: is enough in flight?",
                           output = "6 Output";

FormulaSection capacity_section(std::vector<const Formula*> before) {
    for (const Formula* each : {&f::stage_bytes, &f::shared_limit, &f::shared_limit_of_several, &f::stages_max, &f::accumulators,
                                &f::registers_per_thread, &f::registers_limit, &f::ctas_by_shared, &f::ctas_by_registers, &next_tile})
        before.push_back(each);
    return {capacity, std::move(before)};
}
FormulaSection intensity_section() {
    return {feeding, {&f::tile_flops, &f::arithmetic_intensity, &f::intensity_critical, &verdict_of_intensity, &f::shared_step_cycles,
                        &f::port_bytes_per_cycle, &f::l2_bytes_per_cycle, &f::dram_bytes_per_cycle}};
}
FormulaSection latency_section() {
    return {latency, {&f::tile_compute_cycles, &f::stages_min, &f::load_l2_isolated, &f::load_dram_isolated, &f::full_rate,
                      &f::steady_step_all_miss, &f::hit_share_needed, &verdict_of_latency}};
}

}  // namespace

std::vector<FormulaPage> gemm_forms() {
    return {{"Form: a compute-bound kernel",
             "A geometry problem: how to cut the work for the most reuse. For a kernel of your own that multiplies tiles C[M,N] = A[M,K] "
             "B[K,N]; the steps "
             "are those of the method's table, and where a verdict fails go back to step 2.",
             {{bottleneck, {&unit, &f::intensity_critical}},
              {unknowns, {&tile_m, &tile_n, &tile_k, &threads}},
              capacity_section({}),
              intensity_section(),
              latency_section(),
              {output, {&f::stages, &f::waves, &f::dram_bytes, &f::order}}}},
            {"Form: a convolution",
             "Implicit GEMM: a matrix product whose rows are output pixels, whose columns are filters, and whose sums run over channels "
             "and taps. "
             "Capacity counts the halo; the rest is the product's.",
             {{bottleneck, {&unit, &pixels, &filters, &taps, &f::intensity_critical}},
              {unknowns, {&tile_pixels, &tile_filters, &tile_taps, &threads}},
              capacity_section({&halo, &halo_fits}),
              intensity_section(),
              latency_section(),
              {output, {&f::stages, &f::waves, &f::dram_bytes}}}}};
}

}  // namespace rooftile
