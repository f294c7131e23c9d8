#include "rooftile/fuse/fit.hpp"

namespace rooftile {
namespace {

constexpr FuseFitKey rows[] = {
    {"stream.overlap_exponent", &FuseFit::overlap_exponent},
    {"stream.thread_instructions", &FuseFit::thread_instructions},
    {"stream.reduction", &FuseFit::reduction},
    {"stream.grid.reduction", &FuseFit::grid_reduction},
    {"stream.ring.chunk", &FuseFit::ring_chunk},
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
