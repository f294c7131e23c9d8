#include "rooftile/fuse/fit.hpp"

namespace rooftile {
namespace {

constexpr FuseFitKey rows[] = {
    {"stream.copy_share", &FuseFit::copy_share},
    {"stream.loaded_latency", &FuseFit::loaded_latency},
    {"stream.side_by_side.rows", &FuseFit::streams_rows},
    {"stream.side_by_side.exponent", &FuseFit::streams_exponent},
    {"stream.cluster.growth", &FuseFit::cluster_growth},
    {"stream.cluster.overlap_exponent", &FuseFit::cluster_overlap},
    {"stream.rows.overlap_exponent", &FuseFit::row_overlap},
    {"stream.pointwise.overlap_exponent", &FuseFit::pointwise_overlap},
    {"stream.rows.arrival_variability", &FuseFit::row_variability},
    {"stream.pointwise.arrival_variability", &FuseFit::pointwise_variability},
    {"stream.pointwise.thread_instructions", &FuseFit::thread_instructions},
    {"stream.rows.thread_instructions", &FuseFit::row_thread_instructions},
    {"stream.rows.reduction", &FuseFit::row_reduction},
    {"stream.rows.shuffle", &FuseFit::row_shuffle},
    {"stream.weights.registers", &FuseFit::weights_registers},
    {"stream.weights.shared", &FuseFit::weights_shared},
    {"stream.weights.exponent", &FuseFit::weights_exponent},
    {"stream.staged.element_instructions", &FuseFit::staged_instructions},
    {"stream.staged.thread_instructions", &FuseFit::staged_thread_instructions},
    {"stream.staged.wait", &FuseFit::staged_wait},
    {"stream.ring.shuffles", &FuseFit::ring_shuffles},
    {"stream.ring.barrier", &FuseFit::ring_barrier},
    {"stream.ring.reduction_instructions", &FuseFit::ring_reduction_instructions},
    {"stream.ring.reduction_levels", &FuseFit::ring_reduction_levels},
    {"stream.ring.chunk", &FuseFit::ring_chunk},
    {"stream.ring.arrival_variability", &FuseFit::ring_variability},
    {"stream.ring.overlap_exponent", &FuseFit::ring_overlap},
    {"stream.ring.issue_share", &FuseFit::ring_issue_share},
    {"stream.ring.mufu_share", &FuseFit::ring_mufu_share},
    {"stream.specialised.reduction", &FuseFit::specialised_reduction},
    {"stream.specialised.issue_share", &FuseFit::specialised_issue_share},
    {"stream.specialised.element", &FuseFit::specialised_element},
    {"stream.grid.reduction", &FuseFit::grid_reduction},
    {"stream.grid.issue_share", &FuseFit::grid_issue_share},
    {"stream.grid.mufu_share", &FuseFit::grid_mufu_share},
    {"stream.registers.spared", &FuseFit::registers_spared},
    {"stream.registers.element", &FuseFit::registers_element},
    {"stream.registers.full", &FuseFit::registers_full},
    {"stream.registers.shared", &FuseFit::registers_shared},
    {"stream.registers.instruction", &FuseFit::registers_instruction},
    {"stream.registers.instructions_max", &FuseFit::registers_instructions_max},
};

}  // namespace

std::span<const FuseFitKey> fuse_fit_keys() { return rows; }

FuseFit fuse_fit(const Machine& machine) {
    const auto clock = machine.number<Clock>("clock.boost");
    FuseFit fit;
    for (const FuseFitKey& row : rows) {
        // Not Machine::find, which looks a missing key up among all that there may be: forty times a plan.
        const auto found = machine.facts.find(row.key);
        if (found == machine.facts.end()) continue;
        const Fact& fact = found->second;
        if (const auto seconds = fact.as<Seconds>(); !seconds) fit.*row.number = fact.value;
        else if (clock) fit.*row.number = (*seconds * *clock).value;
    }
    return fit;
}

}  // namespace rooftile
