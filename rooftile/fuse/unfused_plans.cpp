#include "rooftile/fuse/unfused_plans.hpp"

#include <cassert>
#include <cmath>

#include "rooftile/fuse/search.hpp"
#include "rooftile/fuse/unfuse.hpp"

namespace rooftile {
namespace {

/// The best launch of one operation with nothing in L2; of unknown time where there is none.
FuseFlow best_alone(const Machine& machine, const FuseHardware& hw, const ExpressionGraph& operation) {
    FuseFlow none;
    none.time.seconds = none.dram_bytes = NAN;
    const auto lowered = fuse_program(operation);
    const auto* program = std::get_if<Program>(&lowered);
    if (!program) return none;
    const FuseSearch search = search_launches(machine, hw, operation, *program, {.top = 1});
    return search.kept.empty() ? none : search.kept.front().flow;
}

/// Without losses, nothing in L2.
double ideal_alone(const FuseHardware& hw, UnfusedOp op) {
    op.dram_read_bytes = double(op.read_bytes);
    op.dram_written_bytes = double(op.written_bytes);
    return unfused_time(hw, {op}).seconds;
}

}  // namespace

UnfusedTime launched_time(const Machine& machine, const FuseHardware& hw, const ExpressionGraph& chain,
                          std::vector<UnfusedOp>& ops) {
    UnfusedTime time = unfused_time(hw, ops);
    const std::vector<UnfusedKernel> kernels = unfused_kernels(chain);
    assert(kernels.size() == ops.size());
    for (size_t i = 0; i < ops.size(); ++i) {
        const FuseFlow alone = best_alone(machine, hw, kernels[i].problem);
        if (!(alone.time.seconds > 0)) continue;
        FuseTime& t = time.kernels[i];
        const double found = t.seconds / ideal_alone(hw, ops[i]);  // share of that time which L2 leaves
        time.seconds -= t.seconds;
        t.seconds = found == 1 ? alone.time.seconds : alone.time.seconds * found;
        time.seconds += t.seconds;
        // Rows that nothing holds come from DRAM again.
        if (const double again = alone.dram_bytes - double(ops[i].bytes()); again > 0)
            ops[i].dram_read_bytes += again;
    }
    if (time.kernels.size() == 1) time.seconds = time.kernels.front().seconds;  // to the last bit
    return time;
}

}  // namespace rooftile
