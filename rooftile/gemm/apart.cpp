#include "rooftile/gemm/apart.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/core/arena.hpp"
#include "rooftile/core/derivation.hpp"
#include "rooftile/core/operation.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/bounds.hpp"
#include "rooftile/gemm/hardware.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/operation.hpp"

namespace rooftile {
namespace {

constexpr std::string_view expression_operation = "fuse";

/// The expression as its operation takes it: tensors of the graph, each result rounded once.
Given expression_given(const Epilogue& e, Type type, Type sums) {
    Given given(Given::Named::by_key);
    std::string text;
    constexpr std::size_t whole = 1 << 20;
    for (const GraphOutput& out : e.graph.outputs)
        text += fmt::format("{}{} = {}({})", text.empty() ? "" : "; ", out.name, name_of(type), expression_of(e.graph, out.node, whole));
    given.add("expression", text);
    for (std::size_t i = 0; i < e.graph.inputs.size(); ++i) {
        const GraphNode& n = e.graph.nodes[std::size_t(e.graph.inputs[i])];
        given.add("tensor", fmt::format("{}:{}{}", n.name, i < e.sums() ? name_of(sums) : name_of(n.element), text_of(n.shape)));
    }
    given.add("top", "1");
    return given;
}

const GemmKernel& kernel_of(const Machine& machine, const GemmRequest& request) {
    return request.kernel ? *request.kernel : best_gemm_kernel(machine);
}

GemmHardware hardware_of(const Machine& machine, const GemmProblem& p, const GemmRequest& request) {
    std::vector<std::string> unknown;
    const GemmKernel& kernel = kernel_of(machine, request);
    return gemm_hardware(machine, kernel.instruction(machine, p.a_type), p.a_type, unknown);
}

/// Another plan of both launches; `behind` is of the expression. `problem` as it is given, `one` the product that it is computed as.
Plan plan_of_both(const GemmHardware& hw, const GemmProblem& problem, const GemmProblem& one, Plan product, Plan behind) {
    GemmPlan own = product.own.as<GemmPlan>();
    const std::int64_t sums = std::int64_t(own.problem.c_bytes());
    own.problem = one;
    own.config.epilogue_apart = true;
    own.buildable = product.buildable && behind.buildable;
    own.why_not = product.buildable ? behind.why_not : product.why_not;
    const std::optional<double> both = product.time_us && behind.time_us ? std::optional(*product.time_us + *behind.time_us) : std::nullopt;
    own.prediction.time_us = both;
    own.prediction.tflops = both ? std::optional(problem.flops().value / *both / 1e6) : std::nullopt;
    if (own.prediction.moved_bytes) own.prediction.moved_bytes = std::int64_t(problem.compulsory_bytes().value) + 2 * sums;
    const auto behind_bytes = find_as<std::int64_t>(behind.operation->prediction_record(behind), "dram_bytes");
    if (own.prediction.dram_bytes && behind_bytes) own.prediction.dram_bytes = *own.prediction.dram_bytes + *behind_bytes;
    own.prediction.dram_lower_bound_bytes = known_count(dram_lower_bound_bytes(hw, problem));
    Plan plan;
    plan.operation = &gemm_operation();
    plan.problem = {plan.operation, Own::of(problem)};
    const std::vector<TensorInfo> tensors = plan.operation->tensors(plan.problem);
    plan.buildable = own.buildable, plan.why_not = own.why_not;
    plan.time_us = own.prediction.time_us, plan.bound = own.prediction.bound;
    plan.derivation = product.derivation;
    plan.unknown = product.unknown;
    plan.launches = product.launches;
    plan.launches.insert(plan.launches.end(), behind.launches.begin(), behind.launches.end());
    // Sums, one tensor or gates and ups one behind the other; then what the epilogue reads, and its results. No tensor of a user has that name.
    const std::string between_name = "(sums)";
    plan.wires = {{}, {}};
    for (const TensorInfo& tensor : product.operation->tensors(product.problem))
        plan.wires[0].push_back({tensor.role == TensorRole::out ? between_name : tensor.name});
    const std::size_t products_own = plan.wires[0].size() - 1;
    for (std::size_t i = 0; i < one.epilogue->sums(); ++i)
        plan.wires[1].push_back({between_name, std::int64_t(i) * one.m * one.result_n() * std::int64_t(sizeof(float))});
    for (const TensorInfo& tensor : std::span(std::as_const(tensors)).subspan(products_own)) plan.wires[1].push_back({tensor.name});
    plan.parts = {std::move(product), std::move(behind)};
    plan.launches.front().workspace_bytes = own.resources.workspace_bytes = arena_of(plan).bytes;
    plan.own = Own::of(std::move(own));
    return plan;
}

/// Adds a step to what is written when it is first read.
void add_step(Plan& plan, Step step) {
    const Steps before = plan.derivation;
    plan.derivation = Steps(Steps::Writer([before, step = std::move(step)] {
        std::vector<Step> all = before.all();
        all.push_back(step);
        return all;
    }));
}

/// Least time of the kernel behind the product: its launch, and what it reads and writes, once, from and to DRAM where L2 does not hold it.
double least_behind(const GemmHardware& hw, const GemmProblem& problem, const ProductAlone& alone) {
    const double between = alone.problem.c_bytes(), others = (problem.epilogue ? problem.epilogue->bytes : 0) + problem.c_bytes();
    const double from_dram = between > hw.l2_bytes ? between + others : others;
    return known_or(hw.launch_seconds, 0) + known_or(from_dram / hw.dram_bandwidth, 0);
}

}  // namespace

PlanSet plan_behind(const GemmProblem& problem, Type sums, const std::shared_ptr<const Machine>& machine) {
    return derive_part(expression_operation, machine, expression_given(*problem.epilogue, problem.c_type, sums));
}

ProductAlone product_alone(const GemmProblem& p, Type sums) {
    ProductAlone out{p, {}};
    GemmProblem& q = out.problem;
    q.epilogue = {}, q.alpha = 1, q.beta = 0, q.c_type = sums, q.c_offset = 0;
    q.ldc = q.n, q.c_stride = 0;
    if (p.batch > 1) out.why_not = "the expression of a batch is not one of tensors of two axes";
    else if (p.is_quantised()) out.why_not = "a product by packed weights stores its sums in the activations' type alone";
    else if (p.block_scales()) out.why_not = "scales of blocks are the product's own";
    else if (is_fp8(p.c_type)) out.why_not = "a result of 8 bits is the product's own";
    else if (p.ldc != p.result_n() || p.c_offset != 0) out.why_not = "rows of the result are not contiguous, or begin off a line";
    if (p.pairs() == Pairs::none || !out.why_not.empty()) return out;
    const bool interleaved = p.pairs() == Pairs::interleaved, by_k = p.b_major == Major::k;
    if (interleaved && !by_k) {
        out.why_not = "gates and ups are side by side along B's rows";
        return out;
    }
    q.n = p.n / 2, q.batch = 2, q.a_stride = 0;
    q.ldb = interleaved ? 2 * p.ldb : p.ldb;
    q.b_stride = interleaved ? p.ldb : by_k ? q.n * p.ldb : q.n;
    q.ldc = q.n, q.c_stride = q.m * q.n;
    return out;
}

namespace {

/// What stands in the derivations of either plan.
struct Weighed {
    double between_bytes, behind_us, spent_us, product_us = std::nan("");
    bool planned = false;  ///< both launches have plans; else `behind_us` is the least it can take

    Step step(bool apart, double fused_us) const {
        std::vector<Input> inputs{Derivation::given("bytes between them", between_bytes, "B", "sums of 4 B, written and read again"),
                                  Derivation::given(planned ? "kernel after the product" : "kernel after the product, at least", behind_us, "us",
                                                    planned ? fmt::format("its plan, by {}", expression_operation) : std::string("its launch and its bytes")),
                                  Derivation::given("expression in the product", spent_us, "us", "its issue slots and operands, all SMs at work")};
        if (planned) inputs.push_back(Derivation::given("product alone", product_us, "us", "its plan"));
        inputs.push_back(Derivation::given("in one", fused_us, "us", "the fastest fused plan"));
        return {"epilogue_apart",
                "1 where a product whose sums are in fp32 in memory and a kernel of the expression after it are predicted faster, or alone can be "
                "built; not weighed where that kernel takes twice what the expression costs   [M24]",
                std::move(inputs), known(apart ? 1.0 : 0.0), "",
                apart ? "two launches, and sums pass through memory" : "the expression is between a tile's sums and its store"};
    }
};

/// What the expression takes of all SMs where it is fused; NaN: unknown.
double spent_seconds(const GemmHardware& hw, const GemmProblem& p) {
    const double elements = double(p.batch) * double(p.m) * double(p.result_n());
    return elements * p.epilogue->issue / (hw.issue_lanes * hw.sms * hw.sustained_hz) + p.epilogue->bytes / hw.dram_bandwidth;
}

double time_of(const Plan& plan) { return plan.time_us.value_or(INFINITY); }

/// The plan of two launches, or why there is none.
struct Both {
    std::optional<Plan> plan;
    std::string why_not;
};
Both plan_both(const std::shared_ptr<const Machine>& machine, const GemmHardware& hw, const GemmProblem& problem, const GemmProblem& one,
               const GemmProblem& product, GemmRequest request) {
    request.top = 1, request.epilogue_apart.reset();
    try {
        PlanSet products = gemm_plan_set(derive(machine, product, request));
        if (products.plans.empty()) return {{}, products.refusal ? products.refusal->message : "the product has no plan"};
        PlanSet behind = plan_behind(one, Type::fp32, machine);
        if (behind.plans.empty()) return {{}, behind.refusal ? behind.refusal->message : "no kernel computes the expression"};
        Plan plan = plan_of_both(hw, problem, one, std::move(products.plans.front()), std::move(behind.plans.front()));
        for (const std::string& key : behind.unknown)
            if (std::find(plan.unknown.begin(), plan.unknown.end(), key) == plan.unknown.end()) plan.unknown.push_back(key);
        return {std::move(plan), {}};
    } catch (const RequestError& error) { return {{}, error.what()}; }
}

void put_first(PlanSet& set, Plan plan, int top) {
    set.refusal.reset();
    set.plans.insert(set.plans.begin(), std::move(plan));
    if (int(set.plans.size()) > std::max(1, top)) {
        set.plans.pop_back();
        set.rejected.add(Reason::dominated);
    }
    for (std::size_t i = 0; i < set.plans.size(); ++i) {
        GemmPlan own = set.plans[i].own.as<GemmPlan>();
        set.plans[i].rank = own.rank = int(i) + 1;
        set.plans[i].own = Own::of(std::move(own));
    }
}

}  // namespace

void weigh_apart(PlanSet& set, const std::shared_ptr<const Machine>& machine, const GemmProblem& problem, const GemmRequest& request) {
    const bool asked = request.epilogue_apart.value_or(false);
    if (!problem.epilogue || (request.epilogue_apart && !asked)) return;
    const GemmProblem one = as_one_product(problem);
    const ProductAlone alone = product_alone(one);
    const auto refuse = [&](const std::string& why) {
        set.plans.clear();
        set.refusal = Refusal{Reason::instruction, "epilogue_apart: " + why, 1, 0};
    };
    if (!alone.why_not.empty()) {
        if (asked) refuse(alone.why_not);
        return;
    }
    // What another kernel says of sums in fp32 is for those who chose that type.
    if (const GemmKernel& kernel = kernel_of(*machine, request); &kernel != find_gemm_kernel("sm90_gemm")) {
        const std::string instead = set.plans.empty() && set.refusal ? "; in one kernel: " + set.refusal->message
                                                                     : fmt::format("; leave it off, {} has the epilogue in the product's kernel", kernel.name());
        if (asked) refuse("a product alone stores its sums in fp32, which only sm90_gemm does so far" + instead);
        return;
    }
    const GemmHardware hw = hardware_of(*machine, one, request);
    Weighed weighed{alone.between_bytes(), least_behind(hw, one, alone) * 1e6, spent_seconds(hw, one) * 1e6};
    const double fused_us = set.plans.empty() ? std::nan("") : set.plans.front().time_us.value_or(std::nan(""));
    Both both;
    if (asked || set.plans.empty() || weighed.behind_us < 2 * weighed.spent_us) both = plan_both(machine, hw, problem, one, alone.problem, request);
    if (asked && !both.plan) return refuse(both.why_not);
    if (both.plan) {
        weighed.planned = true;
        weighed.product_us = both.plan->parts[0].time_us.value_or(std::nan("")), weighed.behind_us = both.plan->parts[1].time_us.value_or(std::nan(""));
    }
    const bool wins = both.plan && (asked || set.plans.empty() || time_of(*both.plan) < time_of(set.plans.front()));
    for (Plan& plan : set.plans) add_step(plan, weighed.step(false, fused_us));
    if (!wins) return;
    add_step(*both.plan, weighed.step(true, fused_us));
    if (asked) set.plans.clear();
    put_first(set, std::move(*both.plan), request.top);
}

}  // namespace rooftile
