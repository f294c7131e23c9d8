#include <fmt/core.h>

#include <algorithm>

#include "kernels/pipeline/tile_order.cuh"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/knobs.hpp"
#include "rooftile/tiled/hardware.hpp"

namespace rooftile {

#define ROOFTILE_GEMM_KERNEL(NAME) const GemmKernel& NAME();
#define ROOFTILE_GEMM_PLANNED(NAME) const GemmKernel& NAME();
#include "rooftile/gemm/kernels.def"
#undef ROOFTILE_GEMM_KERNEL
#undef ROOFTILE_GEMM_PLANNED

std::span<const GemmKernel* const> gemm_kernels() {
    static const GemmKernel* const all[] = {
#define ROOFTILE_GEMM_KERNEL(NAME) &NAME(),
#define ROOFTILE_GEMM_PLANNED(NAME) &NAME(),
#include "rooftile/gemm/kernels.def"
#undef ROOFTILE_GEMM_KERNEL
#undef ROOFTILE_GEMM_PLANNED
    };
    return all;
}

const GemmKernel* find_gemm_kernel(std::string_view name) {
    for (const GemmKernel* kernel : gemm_kernels())
        if (kernel->name() == name) return kernel;
    return nullptr;
}

const GemmKernel& best_gemm_kernel(const Machine& machine) {
    for (const GemmKernel* kernel : gemm_kernels())
        if (kernel->missing_on(machine).empty()) return *kernel;
    return *gemm_kernels().back();  // asks for no instruction
}

const GemmKernel& best_gemm_kernel(const Machine& machine, const GemmProblem& problem) {
    if (!problem.is_quantised()) return best_gemm_kernel(machine);
    const GemmKernel* first = nullptr;
    for (const GemmKernel* kernel : gemm_kernels()) {
        if (!kernel->is_of_quantised() || !kernel->takes_rows(problem)) continue;
        if (kernel->missing_on(machine).empty()) return *kernel;
        if (!first) first = kernel;
    }
    for (const GemmKernel* kernel : gemm_kernels())
        if (kernel->is_behind_unpacking() && kernel->missing_on(machine).empty()) return *kernel;
    return *first;
}

GemmProblem multiplied(const GemmKernel* kernel, const GemmProblem& problem) {
    GemmProblem out = problem.behind_widening();
    if (kernel && kernel->is_behind_unpacking()) out = out.behind_unpacking();
    out.gathered = out.image && kernel && kernel->gathers();
    return out;
}

bool rounds_weights(const GemmPlan& plan) { return multiplied(plan).is_unpacked(); }

std::string_view name_of(const GemmKernel* kernel) { return kernel ? kernel->name() : "?"; }

std::optional<Refusal> refuse_type(const Machine& machine, const GemmProblem& problem) {
    std::string missing = missing_matrix_type(machine, rate_name_of(problem.a_type));
    if (missing.empty()) return std::nullopt;
    return Refusal{Reason::instruction, std::move(missing), 1, 0};
}

namespace {

/// What reads the sums behind a product takes dense tensors: no columns of gates between those of ups.
Refusal pairs_elsewhere(const GemmProblem& p) {
    const bool interleaved = p.pairs() == Pairs::interleaved;
    const std::string lines = !interleaved              ? ""
                              : p.b_major == Major::k ? fmt::format(" with ldb = {}", 2 * p.ldb)
                                                      : " of a B that is k-major (along these lines gates are between ups)";
    return {Reason::instruction,
            fmt::format("pairs {}: sm90_gemm's so far; here plan gates and ups as two products of {} columns{}, and the expression by fuse behind them",
                        name_of(p.pairs()), p.n / 2, lines),
            1, 0};
}

}  // namespace

std::optional<Refusal> refuse_sm90_alone(const GemmProblem& problem) {
    if (is_fp8(problem.a_type) || problem.c_type != problem.a_type)
        return Refusal{Reason::instruction,
                       fmt::format("{} x {} -> {} is sm90_gemm's so far; take bf16 or fp16 for all three here", name_of(problem.a_type),
                                   problem.b_name(), name_of(problem.c_type)),
                       1, 0};
    if (problem.groups)
        return Refusal{Reason::instruction,
                       problem.is_quantised() ? "groups of packed weights are sm90_many_quantised's so far; leave the kernel off"
                                              : "groups are sm90_gemm's so far; launch the products one by one",
                       double(problem.groups->count()), 1};
    if (problem.image && !problem.gathered)
        return Refusal{Reason::instruction, "rows that are places of an image are of sm90_gemm, whose copy engine finds their pixels, and of sm80_gemm, which gathers them", 1, 0};
    if (problem.pairs() != Pairs::none) return pairs_elsewhere(problem);
    if (problem.results() > 1)
        return Refusal{Reason::instruction,
                       fmt::format("{} results: several are sm90_gemm's so far; here an epilogue has one, and fuse behind the product makes the others", problem.results()),
                       double(problem.results()), 1};
    return std::nullopt;
}

std::optional<Refusal> refuse_more_than_a_product(const GemmProblem& problem) {
    if (auto why = refuse_sm90_alone(problem)) return why;
    if (problem.image) return Refusal{Reason::instruction, "rows that are places of an image are gathered by cp.async, which this machine does not have", 1, 0};
    if (problem.batch > 1)
        return Refusal{Reason::instruction,
                       fmt::format("batch = {}: batches are sm90_gemm's and sm80_gemm's so far; launch the products one by one", problem.batch),
                       double(problem.batch), 1};
    if (!problem.epilogue) return std::nullopt;
    return Refusal{Reason::instruction, "alpha, beta and epilogues are sm90_gemm's and sm80_gemm's so far; leave them out here", 1, 0};
}

std::optional<Refusal> refuse_knobs(const GemmKernel& kernel, const Machine& machine, const GemmRequest& request) {
    if (const int parts = request.split_k.value_or(1); parts != 1)
        return Refusal{
            Reason::instruction,
            fmt::format("split_k = {} takes clusters and the kernel made for them; 1 does not", parts),
            double(parts), 1};
    std::string what;
    GemmKnobs::each([&]<class T>(const GemmKnob<T>& knob) {
        const auto& asked = request.*knob.fixed;
        if (!has_knobs_of(&kernel, knob.owner) && asked && *asked != knob.preset() && what.empty())
            what = fmt::format("{} = {}", knob.name, KnobType<T>::text(*asked));
    });
    if (what.empty()) return std::nullopt;
    const GemmKernel& best = best_gemm_kernel(machine);
    const std::string why = kernel.is_of_quantised() ? fmt::format("is none of {}'s; leave it off, or ask whether sm90_gemm takes packed weights so: kernel sm90_gemm", kernel.name())
                            : best.name() == "sm90_gemm" ? fmt::format("is of {} alone, which {} runs; take that kernel or leave it off", best.name(), machine.id)
                                                       : fmt::format("is of the Hopper kernel alone; {} has none", machine.id);
    return Refusal{Reason::instruction, fmt::format("{} {}", what, why), 1, 0};
}

// griddepcontrol is of sm_90 and later, as TMA is (PTX ISA 9.7.13.13).
bool launches_dependents(const Machine& machine) { return machine.has("tma"); }

std::optional<Refusal> refuse_following(const Machine& machine, const GemmRequest& request) {
    const bool early = request.early_weights.value_or(false), programmatic = request.programmatic_launch.value_or(true);
    const bool able = launches_dependents(machine);
    if (early && !programmatic)
        return Refusal{Reason::instruction,
                       "early_weights with pdl off: a plain launch begins when the kernel in front has ended; leave pdl on, or "
                       "early_weights off",
                       1, 0};
    if (able || (!early && !request.programmatic_launch.value_or(false))) return std::nullopt;
    return Refusal{Reason::instruction,
                   fmt::format("{} = true: no kernel of {} begins before the one in front has ended; leave it off",
                               early ? "early_weights" : "programmatic_launch", machine.id),
                   1, 0};
}

Following following(const GemmKernel& kernel, bool programmatic, bool early_weights) {
    return {programmatic || !has_knobs_of(&kernel, KnobOwner::dependents), early_weights};
}

std::optional<Refusal> refuse_packed_weights(const GemmProblem& p, const GemmRequest& request) {
    const auto refused = [](std::string why) { return Refusal{Reason::instruction, std::move(why), 1, 0}; };
    if (p.narrow && !request.pack_a.value_or(true))
        return refused(fmt::format("pack_a off: kernels of packed weights multiply no {}; leave it on, and a launch in front widens A to {}",
                                   name_of(p.narrow->type), name_of(p.a_type)));
    if (!p.is_unpacked()) return std::nullopt;
    if (!request.pack_b.value_or(true))
        return refused("pack_b off: operands of this kernel are not packed weights; leave it on, and a launch in front unpacks them");
    if (request.early_weights.value_or(false))
        return refused("early_weights: B comes from the launch in front, which has not ended by then; leave it off");
    if (p.groups)
        return refused("groups of packed weights are sm90_many_quantised's so far; leave the kernel off on sm_90, elsewhere launch the products one by one");
    if (p.pairs() != Pairs::none)
        return refused(fmt::format("pairs {} of packed weights are not planned yet; plan gates and ups as two products", name_of(p.pairs())));
    if (p.unpacked.power_scales() && p.a_type == Type::fp16)
        return refused(fmt::format("{} with activations of fp16: weights times their scales, powers of two up to 2^127, need not be numbers of "
                                   "fp16; take activations of bf16, or sm90_many_quantised", name_of(p.unpacked.weights)));
    return std::nullopt;
}

GemmRequest without_packing(const GemmProblem& problem, const GemmRequest& request) {
    GemmRequest out = request;
    if (problem.narrow) out.pack_a.reset();
    if (problem.is_unpacked()) out.pack_b.reset();
    return out;
}

std::optional<Refusal> refuse_copies(const GemmProblem& problem) {
    std::string why = copy_problem(problem);
    if (why.empty()) return std::nullopt;
    return Refusal{Reason::alignment, std::move(why), copy_elements, 0};
}

std::string order_obstacle(const GemmProblem& p, const GemmConfig& c) {
    if (c.order != Order::hilbert && c.order != Order::morton) return {};
    const auto [rows, columns, products] = cluster_grid(p, c.tile_m, c.tile_n, c.cluster_m, c.cluster_n);
    if (std::max(rows, columns) <= max_table_extent) return {};
    return fmt::format("order {} on {} x {} tiles: its table counts up to {} either way", name_of(c.order),
                       rows, columns, max_table_extent);
}

}  // namespace rooftile
