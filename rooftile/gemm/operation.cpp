// GEMM as the stations see it.
#include "rooftile/gemm/operation.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "rooftile/core/typed_plan.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/declared_space.hpp"
#include "rooftile/gemm/demand.hpp"
#include "rooftile/gemm/draw.hpp"
#include "rooftile/gemm/evaluate_plan.hpp"
#include "rooftile/gemm/fields.hpp"
#include "rooftile/gemm/measurement_text.hpp"
#include "rooftile/gemm/packing.hpp"
#include "rooftile/gemm/plan_text.hpp"
#include "rooftile/gemm/records.hpp"
#include "rooftile/gemm/roof_steps.hpp"
#include "rooftile/gemm/suite.hpp"
#include "rooftile/gemm/suite_report.hpp"
#include "rooftile/gemm/variants.hpp"

namespace rooftile {
namespace {

constexpr std::int64_t operand_alignment = 128;  // bytes, from a multiple of which offsets count

/// `count` matrices, `stride` elements apart.
TensorInfo matrix(const std::string& name, Type type, std::int64_t rows, std::int64_t columns, std::int64_t pitch,
                  std::int64_t offset, bool columns_contiguous, TensorRole role, std::int64_t count, std::int64_t stride) {
    TensorInfo t{.name = name, .type = std::string(name_of(type)), .element_bits = 8 * bytes_of(type), .extents = {},
                 .strides = {}, .role = role, .offset = offset};
    t.extents = {Extent::of(rows), Extent::of(columns)};
    t.strides = columns_contiguous ? std::vector<std::int64_t>{pitch, 1} : std::vector<std::int64_t>{1, pitch};
    if (count > 1) t.extents.insert(t.extents.begin(), Extent::of(count)), t.strides.insert(t.strides.begin(), stride);
    return t;
}

/// Where each group's rows begin, and the last one's end.
TensorInfo offsets_tensor(const GemmGroups& groups) {
    return {.name = "offsets", .type = "int32", .element_bits = 32, .extents = {Extent::of(groups.count() + 1)}, .strides = {1}, .role = TensorRole::in,
            .offset = 0};
}

/// Dense: [m,n], [m,1], [n] or one number; of a batch one for each product, [batch,m,n], too.
TensorInfo epilogue_tensor(const EpilogueOperand& o, const GemmProblem& p) {
    TensorInfo t{.name = o.name, .type = std::string(name_of(o.element)), .element_bits = 8 * bytes_of(o.element), .extents = {},
                 .strides = {}, .role = TensorRole::in, .offset = 0};
    if (o.by_row) t.extents = {Extent::of(p.m), Extent::of(o.by_column ? p.n : 1)}, t.strides = {o.by_column ? p.n : 1, 1};
    else if (o.by_product) t.extents = {Extent::of(1), Extent::of(o.by_column ? p.n : 1)}, t.strides = {o.by_column ? p.n : 1, 1};
    else t.extents = {Extent::of(o.by_column ? p.n : 1)}, t.strides = {1};
    if (o.by_product) {
        t.extents.insert(t.extents.begin(), Extent::of(p.batch));
        t.strides.insert(t.strides.begin(), o.elements_of_a_product(p.m, p.n));
    }
    return t;
}

TensorInfo scales_tensor(const std::string& name, const ScaleLayout& s) {
    return {.name = name, .type = "fp32", .element_bits = 32, .extents = {Extent::of(s.lines), Extent::of(s.width)},
            .strides = {s.pitch(), 1}, .role = TensorRole::in, .offset = 0};
}

/// How one operand lies: its pitch, and which index is contiguous.
struct Lie {
    bool columns_contiguous;
    std::int64_t pitch;
};

Lie lie_of(std::string_view name, const TensorInfo& t) {
    const std::int64_t rows = t.extents[0].most, columns = t.extents[1].most;
    // The stride of an extent of 1 means nothing.
    if (t.strides[1] == 1 || columns == 1) {
        const std::int64_t pitch = rows == 1 ? columns : t.strides[0];
        if (pitch >= columns) return {true, pitch};
    }
    if (t.strides[0] == 1 || rows == 1) {
        const std::int64_t pitch = columns == 1 ? rows : t.strides[1];
        if (pitch >= rows) return {false, pitch};
    }
    throw RequestError(fmt::format("{} is {} x {} with strides {} and {}; one of them must be 1, the other no less than the "
                                   "extent beside it",
                                   name, rows, columns, t.strides[0], t.strides[1]));
}

/// What an epilogue reads, as one would declare it: "bias:bf16[N]".
std::string operand_text(const TensorInfo& t, std::int64_t m, std::int64_t n) {
    const auto refuse = [&](std::string_view why) {
        throw RequestError(fmt::format("{} is the tensor of an epilogue: {}; accepted are dense ones [M,N], [N], [M,1] or [1], here M is {} "
                                       "and N {}",
                                       t.name.empty() ? "one of them" : t.name, why, m, n));
    };
    if (t.name.empty()) refuse("it has no name");
    const std::size_t axes = t.extents.size();
    if (axes < 1 || axes > 2) refuse(fmt::format("it has {} axes", axes));
    const std::int64_t rows = axes == 2 ? t.extents[0].most : 1, columns = t.extents.back().most;
    if ((rows != 1 && rows != m) || (columns != 1 && columns != n)) refuse(fmt::format("it is {} x {}", rows, columns));
    if ((columns > 1 && t.strides.back() != 1) || (rows > 1 && t.strides[0] != columns)) refuse("it is not dense");
    // Neighbours are read as one word.
    if (columns > 1 && t.offset % 2 != 0) refuse("it begins at an odd element");
    const std::string_view last = columns == 1 ? "1" : "N";
    return axes == 2 ? fmt::format("{}:{}[{},{}]", t.name, t.type, rows == 1 ? "1" : "M", last) : fmt::format("{}:{}[{}]", t.name, t.type, last);
}

/// scale_a and scale_b where the request asks for scales; how many of `inputs` these are. What lies otherwise than the problem's own would
/// be read wrongly.
std::size_t scales_among(const Given& given, std::span<const TensorInfo> inputs, std::int64_t m, std::int64_t n, std::int64_t k) {
    const std::string& scales = given.text("scales");
    if (scales.empty() || scales == "none") return 0;
    for (std::size_t i = 0; i < 2; ++i) {
        const std::string name = i == 0 ? "scale_a" : "scale_b";
        std::vector<std::int64_t> extents, strides;
        const std::int64_t rows = i == 0 ? m : n;
        if (scales == "block") {
            const ScaleLayout layout = i == 0 ? a_scale_layout(m, k) : b_scale_layout(n, k);
            extents = {layout.lines, layout.width}, strides = {layout.pitch(), 1};
        } else if (scales == "row" && i == 0) extents = {rows, 1}, strides = {1, 1};
        else extents = {scales == "row" ? rows : 1}, strides = {1};
        const auto fits = [&](const TensorInfo& t) {
            if (t.type != "fp32" || t.extents.size() != extents.size() || (!t.name.empty() && t.name != name)) return false;
            for (std::size_t axis = 0; axis < extents.size(); ++axis)
                if (t.extents[axis].most != extents[axis] || (extents[axis] > 1 && t.strides[axis] != strides[axis])) return false;
            return true;
        };
        if (i >= inputs.size() || !fits(inputs[i]))
            throw RequestError(fmt::format("with {} {} the {} tensor behind a and b is {}: fp32 [{}], strides [{}]", given.name("scales"), scales,
                                           i == 0 ? "first" : "second", name, fmt::join(extents, ","), fmt::join(strides, ",")));
    }
    return 2;
}

/// a and b, then scales, then what the epilogue reads.
void add_operands(Given& given, std::span<const TensorInfo> inputs) {
    if (inputs.size() < 2)
        throw RequestError(fmt::format("{} tensor is given; a GEMM takes a and b, then what its epilogue reads", inputs.size()));
    for (std::size_t i = 0; i < 2; ++i) {
        const std::string_view name = i == 0 ? "a" : "b";
        if (!inputs[i].name.empty() && inputs[i].name != name)
            throw RequestError(fmt::format("tensor {} is named {}; a GEMM takes a and b", i + 1, inputs[i].name));
        if (inputs[i].extents.size() != 2)
            throw RequestError(fmt::format("{} has {} axes; a GEMM's operands have 2", name, inputs[i].extents.size()));
    }
    const TensorInfo &a = inputs[0], &b = inputs[1];
    const std::int64_t m = a.extents[0].most, k = a.extents[1].most, n = b.extents[1].most;
    if (b.extents[0].most != k)
        throw RequestError(fmt::format("a is {} x {} and b {} x {}: the columns of a are the rows of b", m, k,
                                       b.extents[0].most, n));
    for (const char* key : {"m", "n", "k", "shape", "lda", "ldb", "a_major", "b_major", "type", "a_offset", "b_offset", "tensor"})
        if (given.has(key)) throw RequestError(given.name(key) + " follows from the tensors; leave it out");
    const Lie of_a = lie_of("a", a), of_b = lie_of("b", b);
    for (const auto& [key, number] : {std::pair{"m", m}, {"n", n}, {"k", k}, {"lda", of_a.pitch}, {"ldb", of_b.pitch}})
        given.add(key, std::to_string(number));
    if (given.has("types")) {
        const std::string operands = fmt::format("{},{},", a.type, b.type);
        if (!given.text("types").starts_with(operands))
            throw RequestError(fmt::format("{} {}: the tensors are {} and {}", given.name("types"), given.text("types"), a.type, b.type));
    } else {
        if (a.type != b.type) throw RequestError(fmt::format("a is {} and b {}; they must be alike", a.type, b.type));
        given.add("type", a.type);
    }
    given.add("a_major", of_a.columns_contiguous ? "k" : "m");
    given.add("b_major", of_b.columns_contiguous ? "n" : "k");
    for (const auto& [key, t] : {std::pair{"a_offset", &a}, {"b_offset", &b}}) {
        const std::int64_t period = operand_alignment * 8 / t->element_bits;  // elements
        if (t->offset % period != 0) given.add(key, std::to_string(t->offset % period));
    }
    const auto others = inputs.subspan(2);
    for (const TensorInfo& t : others.subspan(scales_among(given, others, m, n, k))) given.add("tensor", operand_text(t, m, n));
}

std::variant<Plans, Infeasible> derive_asked(const std::shared_ptr<const Machine>& machine,
                                             const GemmProblem& problem, const GemmAsk& ask) {
    if (ask.sample > 0) return derive_sample(*machine, problem, ask.request, ask.sample, ask.seed);
    if (!ask.orders.empty()) return derive_in_orders(*machine, problem, ask.request, ask.orders);
    return derive(machine, problem, ask.request);
}

/// `own` of a set of plans.
struct TensorPeak {
    std::optional<double> flops;
};

/// The plans as the typed functions want them.
Plans typed(const PlanSet& set) {
    Plans out;
    out.machine_id = set.machine_id;
    out.machine_name = set.machine_name;
    out.problem = set.problem.own.as<GemmProblem>();
    for (const Plan& plan : set.plans) out.plans.push_back(plan.own.as<GemmPlan>());
    out.rejected = set.rejected;
    out.unknown = set.unknown;
    out.unchecked_constraints = set.unchecked_constraints;
    out.notes = set.notes;
    if (set.own) out.tensor_peak = set.own.as<TensorPeak>().flops;
    return out;
}

class GemmOperation final : public Operation {
  public:
    std::string_view name() const override { return "gemm"; }
    std::string_view meaning() const override { return "A matrix product C = A B"; }
    std::string_view example() const override { return "--m 4096 --n 14336 --k 4096"; }
    std::span<const Field> fields() const override { return gemm_fields(); }

    Problem problem(const Given& given) const override { return {this, Own::of(gemm_problem(given))}; }

    void add_tensors(Given& given, std::span<const TensorInfo> inputs) const override { add_operands(given, inputs); }
    std::string_view array_function() const override { return "matmul"; }

    Own request(const Given& given, const PlanDefaults& defaults) const override {
        GemmAsk ask = gemm_ask(given, defaults.top);
        ask.request.buildable_only = defaults.buildable_only;
        ask.seed = defaults.seed;
        return Own::of(std::move(ask));
    }

    PlanSet derive(std::shared_ptr<const Machine> machine, const Problem& problem,
                   const Own& request) const override {
        return gemm_plan_set(derive_asked(machine, problem.own.as<GemmProblem>(), request.as<GemmAsk>()));
    }

    Given given(const Problem& problem) const override { return gemm_given(problem.own.as<GemmProblem>()); }
    Record problem_record(const Problem& problem) const override {
        return rooftile::problem_record(problem.own.as<GemmProblem>());
    }
    Given given_of_record(const Record& record) const override { return gemm_given(record); }
    std::vector<TensorInfo> tensors(const Problem& problem) const override {
        const auto& p = problem.own.as<GemmProblem>();
        std::vector<TensorInfo> out = {
                matrix("a", p.a_type, p.m, p.k, p.lda, p.a_offset, p.a_major == Major::k, TensorRole::in, p.a_matrices(), p.a_stride),
                matrix("b", p.b_type, p.k, p.n, p.ldb, p.b_offset, p.b_major != Major::k, TensorRole::in, p.b_matrices(), p.b_stride)};
        if (p.groups) out.push_back(offsets_tensor(*p.groups));
        if (p.block_scales()) out.push_back(scales_tensor("scale_a", p.a_scales())), out.push_back(scales_tensor("scale_b", p.b_scales()));
        if (p.epilogue)
            for (const EpilogueOperand& o : p.epilogue->operands) out.push_back(epilogue_tensor(o, p));
        out.push_back(matrix(p.epilogue ? p.epilogue->output() : "c", p.c_type, p.m, p.n, p.ldc, p.c_offset, true,
                             TensorRole::out, p.batch, p.c_stride));
        return out;
    }
    Record config_record(const Plan& plan) const override {
        return rooftile::config_record(plan.own.as<GemmPlan>().config);
    }
    Record resources_record(const Plan& plan) const override {
        return rooftile::resources_record(plan.own.as<GemmPlan>().resources);
    }
    Record prediction_record(const Plan& plan) const override {
        return rooftile::prediction_record(plan.own.as<GemmPlan>().prediction);
    }
    Demand demand(const Machine& machine, const Plan& plan) const override {
        return gemm_demand(machine, plan.own.as<GemmPlan>());
    }
    Predictor predictor(const Machine& machine, std::span<const Plan> plans) const override {
        return gemm_predictor(machine, plans);
    }
    std::vector<RoofStep> roof_steps(const Machine& machine, const Plan& plan) const override {
        return gemm_roof_steps(machine, plan.own.as<GemmPlan>());
    }
    std::string label(const Plan& plan) const override { return label_of(plan.own.as<GemmPlan>().config); }

    bool models_energy() const override { return true; }
    std::string text(const PlanSet& set, const PlanDetail& detail, std::span<const Explanation> explanations,
                     const Terminal& terminal) const override {
        return plan_text(typed(set), detail.steps, terminal, explanations);
    }
    std::string short_name(const Problem& problem) const override {
        const auto& p = problem.own.as<GemmProblem>();
        return fmt::format("{}{}x{}x{}", p.groups ? fmt::format("{} groups of ", p.groups->count()) : p.batch > 1 ? fmt::format("{} of ", p.batch) : "", p.m, p.n, p.k);
    }
    std::string heading(const Problem& problem, std::string_view machine_id, std::string_view machine_name,
                        const Terminal& terminal) const override {
        return heading_text(problem.own.as<GemmProblem>(), machine_id, machine_name, terminal);
    }
    std::string measured_text(const Measurement& row, const Terminal& terminal) const override {
        return gemm_measured_text(row, terminal);
    }
    DrawLaw law(const DrawRequest& request) const override { return gemm_law(request); }
    Problem draw(Random& random, const DrawRequest& request) const override {
        return {this, Own::of(drawn_gemm(random, request))};
    }
    ProblemTraits traits(const Problem& problem) const override { return gemm_traits(problem.own.as<GemmProblem>()); }
    std::string_view space_rule() const override { return gemm_space_rule(); }
    std::span<const std::string_view> space_keys() const override { return gemm_space_keys(); }
    std::vector<Plan> space(const std::shared_ptr<const Machine>& machine, const Problem& problem) const override {
        std::vector<Plan> plans;
        for (GemmPlan& plan : gemm_space(machine, problem.own.as<GemmProblem>()))
            plans.push_back(any_plan(std::move(plan), problem));
        return plans;
    }
    std::vector<Pick> picks(const Machine& machine, const Problem& problem) const override {
        return gemm_picks(machine, problem.own.as<GemmProblem>());
    }
    Given given_of_config(const Record& config) const override { return gemm_given_of_config(config); }
    Suite suite(std::string_view text, std::string_view file_name) const override {
        return gemm_suite(text, file_name);
    }
    SuiteReporter suite_reporter(SuiteRecord record, const Suite* suite) const override {
        const auto report = std::make_shared<const SuiteReport>(suite_report(std::move(record), suite));
        return {[report](const Terminal& terminal) { return suite_text(*report, terminal); },
                [report] { return suite_markdown(*report); }, missed_bars(*report)};
    }
    std::string_view baseline() const override { return "cublaslt"; }
    const BaselineLibrary* baseline_library() const override {
        static const BaselineLibrary library{"cuBLASLt", std::string(cublaslt_soname),
                                             "only --baseline cublaslt needs it: install CUDA 13's cuBLAS"};
        return &library;
    }
    std::span<const std::string_view> baseline_keys() const override {
        static constexpr std::string_view keys[] = {"cublaslt_top1_us",   "cublaslt_best_us",    "copy_us", "cublaslt_ratio",
                                                    "cublaslt_ratio_low", "cublaslt_ratio_high", "cublaslt_ratio_coverage"};
        return keys;
    }
};

}  // namespace

Plan any_plan(GemmPlan plan, const Problem& problem) {
    std::string kernel = std::string(name_of(plan.config.kernel));
    const std::int64_t workspace = plan.resources.workspace_bytes;
    const bool packs = packed_operands(plan.config).any();
    // Counters of pieces of K are 0 before and after.
    const WorkspaceState state = plan.config.grid_split_k > 1 ? WorkspaceState::zeroed : WorkspaceState::any;
    Plan out = plan_of(problem, kernel, std::move(plan));
    if (workspace == 0) return out;
    out.launches = {{std::move(kernel), workspace, state, state}};
    if (packs) out.launches.insert(out.launches.begin(), {is_fp8(out.own.as<GemmPlan>().problem.a_type) ? "pack_bytes" : "pack_operands", workspace, state, state});
    return out;
}

Plan any_plan(GemmPlan plan) {
    const Problem problem{&gemm_operation(), Own::of(plan.problem)};
    return any_plan(std::move(plan), problem);
}

const Operation& gemm_operation() {
    static const GemmOperation operation;
    return operation;
}

PlanSet gemm_plan_set(std::variant<Plans, Infeasible> outcome) {
    PlanSet out = std::visit(
        [](auto& found) {
            PlanSet set = plan_set_of(gemm_operation(), found);
            set.unchecked_constraints = std::move(found.unchecked_constraints);
            return set;
        },
        outcome);
    if (auto* plans = std::get_if<Plans>(&outcome)) {
        out.own = Own::of(TensorPeak{plans->tensor_peak});
        for (GemmPlan& plan : plans->plans) out.plans.push_back(any_plan(std::move(plan), out.problem));
    } else if (auto* none = std::get_if<Infeasible>(&outcome))
        out.refusal = Refusal{none->reason, std::move(none->message), none->needed, none->available};
    return out;
}

}  // namespace rooftile
