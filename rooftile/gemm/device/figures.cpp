// From a timing to the figures of a row, and the roofs that refuse impossible ones.
#include <algorithm>

#include <fmt/core.h>

#include "rooftile/gemm/device/figures.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/gemm/kernel.hpp"

namespace rooftile {

namespace {

/// A measured clock is taken to be off by this at most: the counters are read within 1 us of a region of some
/// ms, and the medians of clock and time may come from different blocks. The rate and DRAM's peak are upper
/// limits as they stand.
constexpr double clock_error = 0.005;

/// What a cold run must read from DRAM: A and B. C is left out, since it may still lie in L2 at the end.
double cold_dram_bytes(const GemmProblem& p) { return p.a_bytes() + p.b_bytes(); }

/// FLOP/s at a clock in MHz, in TFLOP/s.
double tensor_roof(double flops_per_cycle, double mhz) { return flops_per_cycle * mhz * 1e-6; }

std::string above_tensor_roof(double tflops, std::optional<double> mhz, const Roofs& roofs) {
    if (!roofs.flops_per_cycle) return {};
    const auto line = [&](double at, std::string_view kind) {
        return fmt::format("above the roof: {:.1f} TFLOP/s of {:.1f} at the {} {:.0f} MHz", tflops,
                           tensor_roof(*roofs.flops_per_cycle, at), kind, at);
    };
    if (mhz && tflops > (1 + clock_error) * tensor_roof(*roofs.flops_per_cycle, *mhz))
        return line(*mhz, "measured");
    if (roofs.boost_clock_mhz && tflops > tensor_roof(*roofs.flops_per_cycle, *roofs.boost_clock_mhz))
        return line(*roofs.boost_clock_mhz, "boost clock,");
    return {};
}

Roofs memory_roofs(const Machine& machine) {
    Roofs roofs;
    if (const auto dram = dram_bandwidth(machine)) roofs.dram_bytes_per_s = dram->value;
    if (const auto boost = machine.number<Clock>("clock.boost")) roofs.boost_clock_mhz = boost->value * 1e-6;
    return roofs;
}

}  // namespace

Roofs roofs_of(const Machine* machine, const GemmPlan& plan, int sms) {
    if (!machine || !plan.config.kernel) return {};
    const GemmProblem& problem = plan.problem;
    Roofs roofs = memory_roofs(*machine);
    const std::string family = plan.config.kernel->instruction(*machine, problem.b_type);
    const std::string rate = rate_key(family, rate_name_of(problem.b_type), name_of(problem.accumulate_type));
    if (const auto flops = flops_per_cycle_per_sm(*machine, rate)) roofs.flops_per_cycle = flops->value * sms;
    return roofs;
}

Roofs baseline_roofs_of(const Machine* machine, const GemmProblem& problem, int sms) {
    if (!machine) return {};
    Roofs roofs = memory_roofs(*machine);
    if (const auto fastest =
            fastest_instruction(*machine, rate_name_of(problem.b_type), name_of(problem.accumulate_type)))
        roofs.flops_per_cycle = fastest->rate.value * sms;
    return roofs;
}

std::string above_roof(const GemmProblem& problem, Mode mode, const TimedResult& timed, const Roofs& roofs) {
    const double seconds = timed.time_us.median * 1e-6;
    if (seconds <= 0) return {};
    if (mode == Mode::cold && roofs.dram_bytes_per_s) {
        const double rate = cold_dram_bytes(problem) / seconds;
        if (rate > *roofs.dram_bytes_per_s) {
            return fmt::format("above the roof: A and B at {:.0f} GB/s of DRAM's {:.0f}, with L2 overwritten",
                               rate * 1e-9, *roofs.dram_bytes_per_s * 1e-9);
        }
    }
    return above_tensor_roof(problem.flops().value / seconds * 1e-12, timed.sm_clock_mhz, roofs);
}

std::vector<std::string> unchecked_roofs(Mode mode, const TimedResult& timed, const Roofs& roofs) {
    std::vector<std::string> notes;
    if (!roofs.flops_per_cycle) {
        notes.emplace_back("the tensor roof was not checked: the machine's rate for these types is unknown");
    } else if (!timed.sm_clock_mhz && !roofs.boost_clock_mhz) {
        notes.emplace_back("the tensor roof was not checked: neither the SM clock nor clock.boost is known");
    }
    if (mode == Mode::cold && !roofs.dram_bytes_per_s)
        notes.emplace_back("the roof of DRAM was not checked: the machine's dram.bandwidth is unknown");
    return notes;
}

void set_figures(Measurement& row, const TimedResult& timed, const Roofs& roofs) {
    const GemmProblem& problem = gemm_plan(row).problem;
    const double seconds = timed.time_us.median * 1e-6;
    if (seconds <= 0) return;
    row.tflops = problem.flops().value / seconds * 1e-12;
    row.gbytes_per_s = problem.compulsory_bytes().value / seconds * 1e-9;
    row.roof = "tensor";
    if (roofs.flops_per_cycle && timed.sm_clock_mhz)
        row.roof_fraction = *row.tflops / tensor_roof(*roofs.flops_per_cycle, *timed.sm_clock_mhz);
    if (std::string why = above_roof(problem, row.mode, timed, roofs); !why.empty()) row.invalid = std::move(why);
}

namespace {

/// Whether an algorithm's time counts: it ran, and no roof forbids it.
bool counts(const GemmProblem& problem, Mode mode, const TimedResult& timed, const Roofs& roofs) {
    return timed.failure.empty() && above_roof(problem, mode, timed, roofs).empty();
}

}  // namespace

std::optional<std::size_t> best_algorithm(const GemmProblem& problem, Mode mode,
                                          std::span<const TimedResult> algorithms, const Roofs& roofs) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < algorithms.size(); ++i) {
        if (algorithms[i].dropped || !counts(problem, mode, algorithms[i], roofs)) continue;
        if (!best || algorithms[i].time_us.median < algorithms[*best].time_us.median) best = i;
    }
    return best;
}

std::vector<Baseline> cublaslt_baselines(const GemmProblem& problem, Mode mode, std::span<const TimedResult> algorithms,
                                         const Roofs& roofs, std::vector<std::string>& notes) {
    Baseline first, best;
    first.key = cublaslt_top1, first.name = "cuBLASLt top-1";
    best.key = cublaslt_best, best.ratio_key = "cublaslt";
    best.ratio_note = "was chosen by the same rounds, which favours it";
    first.same_work = best.same_work = true;
    int ran = 0;  // all of them were timed, in the same rounds as ours
    for (std::size_t i = 0; i < algorithms.size(); ++i) {
        if (!algorithms[i].failure.empty()) continue;
        ++ran;
        if (const std::string why = above_roof(problem, mode, algorithms[i], roofs); !why.empty())
            note_once(notes, fmt::format("cuBLASLt's algorithm {} was left out: {}", i, why));
    }
    best.name = fmt::format("cuBLASLt best of {}", ran);
    if (const auto fastest = best_algorithm(problem, mode, algorithms, roofs))
        best.time_us = algorithms[*fastest].time_us.median;
    if (!algorithms.empty() && counts(problem, mode, algorithms[0], roofs))
        first.time_us = algorithms[0].time_us.median;
    return {std::move(first), std::move(best)};
}

}  // namespace rooftile
