#include "rooftile/plan/fuse_unfused.hpp"

#include <algorithm>
#include <cmath>

#include "rooftile/plan/fuse_search.hpp"
#include "rooftile/problem/unfuse.hpp"

namespace rooftile {
namespace {

/// Seconds of the best launch of one operation with nothing in L2; NaN where there is none.
double best_alone(const Machine& machine, const FuseHardware& hw, const FuseProblem& operation) {
    const auto lowered = fuse_program(operation);
    const auto* program = std::get_if<Program>(&lowered);
    if (!program) return NAN;
    const FuseSearch search = search_launches(machine, hw, operation, *program, {.top = 1});
    return search.kept.empty() ? NAN : search.kept.front().flow.time.seconds;
}

/// Without losses, nothing in L2.
double ideal_alone(const FuseHardware& hw, UnfusedOp op) {
    op.dram_read_bytes = double(op.read_bytes);
    op.dram_written_bytes = double(op.written_bytes);
    return unfused_time(hw, {op}).seconds;
}

}  // namespace

UnfusedTime launched_time(const Machine& machine, const FuseHardware& hw, const FuseProblem& chain,
                          const std::vector<UnfusedOp>& ops) {
    UnfusedTime time = unfused_time(hw, ops);
    for (const UnfusedKernel& kernel : unfused_kernels(chain)) {
        const auto op =
            std::find_if(ops.begin(), ops.end(), [&](const UnfusedOp& o) { return o.node == kernel.node; });
        const double alone = best_alone(machine, hw, kernel.problem);
        if (op == ops.end() || !(alone > 0)) continue;
        FuseTime& t = time.kernels[size_t(op - ops.begin())];
        const double found = t.seconds / ideal_alone(hw, *op);  // share of that time which L2 leaves
        time.seconds -= t.seconds;
        t.seconds = found == 1 ? alone : alone * found;
        time.seconds += t.seconds;
    }
    if (time.kernels.size() == 1) time.seconds = time.kernels.front().seconds;  // to the last bit
    return time;
}

}  // namespace rooftile
