// Hand-made plans and measurements, so that what a report looks like does not follow what a planner thinks.
#pragma once

#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/measurement.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/plan.hpp"
#include "rooftile/report/context.hpp"

namespace rooftile::sample {

inline GemmPlan plan(int rank) {
    GemmPlan p;
    p.rank = rank;
    p.buildable = true;
    p.problem = gemm_problem(4096, 14336, 4096);
    p.config = {.kernel = find_gemm_kernel("sm90_gemm"),
                .tile_m = 128,
                .tile_n = 256,
                .tile_k = 64,
                .stages = 4,
                .consumer_warpgroups = 2,
                .order = Order::grouped,
                .group = 8};
    p.resources = {.threads = 384,
                   .accumulator_registers = 128,
                   .producer_registers = 40,
                   .consumer_registers = 232,
                   .stage_bytes = 49152,
                   .stages_max = 4,
                   .shared_bytes = 230464,
                   .ctas_per_sm = 1};
    p.prediction = {.time_us = 600,
                    .tflops = 801.7,
                    .bound = Bound::tensor,
                    .arithmetic_intensity = 256.0 / 3,
                    .tile_compute_cycles = 1024,
                    .stages_min = 2,
                    .stages_for_full_rate = 3,
                    .waves = 14,
                    .wave_efficiency = 0.97,
                    .moved_bytes = 5754585088,
                    .dram_bytes = 553648128,
                    .l2_bytes = 4000000000,
                    .dram_lower_bound_bytes = 268435456,
                    .l2_lower_bound_bytes = 2000000000,
                    .shared_traffic_bytes = 9000000000,
                    .shared_lower_bound_bytes = 7500000000};
    p.derivation = {
        {"accumulator_registers",
         "tile_m * tile_n / (128 * consumer_warpgroups)   [M12]",
         {{"tile_m", 128, "", "this plan"}, {"tile_n", 256, "", "this plan"}},
         128,
         "registers",
         "128 + 32 <= 240: setmaxnreg gives consumers 232"},
        {"load_cycles",
         "L + D / rate   [M36]",
         {{"dram.latency", 290, "clk",
           "a source long enough that it has to be wrapped at a space, not in a word"},
          {"rate", 47.41, "B/clk", ""},
          {"peak", 8.5966848e14, "FLOP/s", "computed"},
          {"shared.bandwidth", std::nullopt, "B/clk/SM", "unknown on h100-sxm"}},
         459.18,
         "cycles",
         "one load alone"},
        {"slack_cycles", "what nobody knows", {}, std::nullopt, "cycles", ""},
    };
    return p;
}

/// Two plans, the second slower and not buildable, with an unknown bound.
inline Plans plans() {
    Plans out;
    out.machine_id = "h100-sxm";
    out.machine_name = "NVIDIA H100 SXM5 80 GB";
    out.problem = gemm_problem(4096, 14336, 4096);
    out.plans = {plan(1), plan(2)};
    GemmPlan& second = out.plans[1];
    second.buildable = false;
    second.why_not = "order hilbert is not in the kernel yet";
    second.config.order = Order::hilbert;
    second.config.tile_n = 128;
    second.prediction.time_us = 630;
    second.prediction.bound.reset();
    second.prediction.wave_efficiency = 0.9;
    second.unknown = {"shared.bandwidth"};
    out.rejected.reasons = {10, 20, 0, 5, 0, 0, 1, 0, 100};
    out.unknown = {"shared.bandwidth"};
    out.unchecked_constraints = {"instruction against shared memory"};
    out.notes = {"tcgen05 is not modelled yet"};
    return out;
}

/// Of the two plans above: a ladder to plan 1's 600 us, energies known of both, the second's lower.
inline std::vector<Explanation> explanations() {
    const std::vector<Input> energies = {{"energy.flop.bf16", 0.5, "pJ/FLOP", "fitted"},
                                         {"energy.fill", 15, "pJ/B", "fitted"},
                                         {"energy.dram", 58, "pJ/B", "fitted"},
                                         {"power.static", 140, "W", "assumed"},
                                         {"energy.exponent", 2.2, "1", "fitted"}};
    Explanation first;
    first.attainability = {
        {"datasheet_roof", 486204, 486204, {{"peak", 9.8943e14, "FLOP/s", "the derivation"}}, ""},
        {"measured_roof",
         560000,
         73796,
         {{"sm_clock", 1588.25, "MHz", "the derivation"},
          {"rate.wgmma.bf16.fp32", 4096, "FLOP/clk/SM", "computed"},
          {"dram.sustained_read", 3.24, "TB/s", "measured"}},
         ""},
        {"whole_tiles", 560000, 0, {{"tiles", 1792, "", "the derivation"}}, ""},
        {"shared", 560000, 0, {}, ""},
        {"waves", 597900, 37900, {{"waves", 14, "", "the derivation"}}, ""},
        {"turn", 600000, 2100, {{"wgmma.turn", 800, "clk", "measured"}}, ""},
        {"launch", 600000, 0, {}, "not charged: launch.gap_stream is unknown"}};
    first.energy = Energy{.matrix = 0.24, .instructions = 0,
                              .fill = 0.08,
                              .dram = 0.02,
                              .idle = 0.084,
                              .total = 0.424,
                              .watts = 706.7,
                              .joules_per_tflop = 0.8814,
                              .inputs = energies,
                              .unknown = {}};
    Explanation second = first;
    second.attainability.clear();
    second.energy->total = 0.4;
    second.wins_if = {{"dram.sustained_read", "TB/s", 3.24, 2.9001},
                      {"energy.exponent", "1", 2.2, 3.3},
                      {"wgmma.turn", "clk", 800, 120},
                      {"sm.count", "SMs", 132, 500}};
    return {first, second};
}

/// Nobody has measured what a byte of DRAM costs.
inline Energy partly_known_energy() {
    Energy e = *explanations().front().energy;
    e.dram.reset();
    e.total.reset();
    e.watts.reset();
    e.joules_per_tflop.reset();
    e.inputs[2] = {"energy.dram", std::nullopt, "", "unknown on h100-sxm"};
    e.unknown = {"energy.dram"};
    return e;
}

inline Infeasible infeasible() {
    Infeasible out;
    out.reason = Reason::shared;
    out.message = "5 x 49152 = 245760 B > 232448 B on h100-sxm; 4 fit";
    out.needed = 245760;
    out.available = 232448;
    out.machine_id = "h100-sxm";
    out.problem = gemm_problem(128, 256, 4096);
    out.rejected.reasons = {0, 3, 0, 0, 0, 0, 0, 0, 0};
    out.unknown = {"shared.bandwidth"};
    out.unchecked_constraints = {"waves"};
    out.notes = {"tcgen05 is not modelled yet"};
    return out;
}

/// The same as a station reads it.
inline PlanSet refused() { return gemm_plan_set(infeasible()); }

inline DocumentContext context() {
    DocumentContext c;
    c.version = "0.1.0";
    c.machine_id = "h100-sxm";
    c.machine_name = "NVIDIA H100 SXM5 80 GB";
    c.machine_hash = "0123456789abcdef0123456789abcdef";
    c.command = "rooftile plan gemm --shape 4096x14336x4096";
    return c;
}

inline DocumentContext gpu_context() {
    DocumentContext c = context();
    c.command = "rooftile measure gemm --shape 4096x14336x4096";
    c.kernel_hash = "fedcba9876543210fedcba9876543210";
    c.gpu = GpuContext{"NVIDIA H100 80GB HBM3", "580.82.07", "13.0", "2025-06-01T12:00:00Z", 7};
    return c;
}

/// cuBLASLt's first and best, and a copy.
inline std::vector<Baseline> baselines(double top1_us, double best_us, double copy_us, const MedianInterval& ratio) {
    return {{.key = std::string(cublaslt_top1), .name = "cuBLASLt top-1", .time_us = top1_us, .same_work = true},
            {.key = std::string(cublaslt_best),
             .name = "cuBLASLt best of 8",
             .time_us = best_us,
             .same_work = true,
             .ratio_key = "cublaslt",
             .ratio = ratio,
             .ratio_note = "was chosen by the same rounds, which favours it"},
            {.key = std::string(copy_baseline), .name = "copying as many bytes", .time_us = copy_us}};
}

/// 2 * 4096 * 14336 * 4096 = 481,036,337,152 FLOP in 650 us are 740.1 TFLOP/s.
inline Measurement measurement() {
    Measurement m = gemm_row(plan(1));
    m.time_us = 650;
    m.time_us_low = 645;
    m.time_us_high = 655;
    m.interval_coverage = 1 - 2.0 / 128;  // the range of 7 samples
    m.samples = 7;
    m.tflops = 740.056;
    m.gbytes_per_s = 413;
    m.roof = "tensor";
    m.roof_fraction = 0.86;
    m.verified = {.exact = true, .random = true, .special = true, .max_error = 0.31, .bound = 0.02};
    m.sm_clock_mhz = 1500;
    m.power_w = 690;
    m.registers = 168;
    m.compile_seconds = 0.25;
    m.baselines = baselines(640, 637, 200, {0.981, 0.978, 0.985, 0.98, 7});
    return m;
}

/// 690 W for 650 us are 0.4485 J.
inline Measurement explained_measurement() {
    Measurement m = measurement();
    m.explanation = explanations().front();
    return m;
}

/// 50 us missed, 41 of them with the loads; the kernel without products did not compile.
inline Measurement ablated_measurement() {
    Measurement m = measurement();
    PartTime loads;
    loads.ablated = Ablation::loads;
    loads.time_us = 551, loads.time_us_low = 550, loads.time_us_high = 552;
    loads.samples = 7;
    loads.sm_clock_mhz = 1600;
    loads.predicted_us = 540;
    loads.predicted_clock_mhz = 1610;
    loads.predicted_at_clock_us = 543;
    loads.attributed_us = 41;
    PartTime products;
    products.ablated = Ablation::products;
    products.invalid = "ptxas: 16 bytes spill stores";
    products.predicted_us = 300;
    set_measured(m, {.ablation = AblationStudy{.parts = {loads, products},
                                               .whole_clock_mhz = 1502,
                                               .whole_at_clock_us = 601,
                                               .miss_us = 50,
                                               .clock_us = 1,
                                               .term = "loads"}});
    return m;
}

/// As planned 650 us and 0.981 of cuBLASLt; launched plainly 652 and 0.978.
inline Measurement launched_twice() {
    Measurement m = measurement();
    m.variants = {{.key = "pdl_off",
                   .name = "without programmatic launch",
                   .predicted_us = 600.85,
                   .time_us = 652,
                   .time_us_low = 647,
                   .time_us_high = 657,
                   .samples = 7,
                   .ratio = MedianInterval{0.978, 0.975, 0.982, 0.98, 7}}};
    return m;
}

inline Measurement above_roof() {
    Measurement m = measurement();
    m.time_us = 1;
    m.tflops = 481036;
    m.invalid = "481036 TFLOP/s is above the roof of 989 TFLOP/s at the measured clock";
    return m;
}

inline Measurement wrong() {
    Measurement m = measurement();
    m.verified.exact = false;
    m.verified.failure = "C[3,5] = 7, expected 8";
    return m;
}

}  // namespace rooftile::sample
