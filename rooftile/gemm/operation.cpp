// GEMM as the stations see it.
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/known_kernels.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "rooftile/core/read_value.hpp"
#include "rooftile/core/typed_plan.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/apart.hpp"
#include "rooftile/gemm/declared_space.hpp"
#include "rooftile/gemm/demand.hpp"
#include "rooftile/gemm/draw.hpp"
#include "rooftile/gemm/evaluate_plan.hpp"
#include "rooftile/gemm/export/exports.hpp"
#include "rooftile/gemm/fields.hpp"
#include "rooftile/gemm/formulas.hpp"
#include "rooftile/gemm/images.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/measurement_text.hpp"
#include "rooftile/gemm/pack_weights.hpp"
#include "rooftile/gemm/packing.hpp"
#include "rooftile/gemm/pictured.hpp"
#include "rooftile/gemm/plan_text.hpp"
#include "rooftile/gemm/records.hpp"
#include "rooftile/gemm/roof_steps.hpp"
#include "rooftile/gemm/simulation.hpp"
#include "rooftile/gemm/suite.hpp"
#include "rooftile/gemm/suite_report.hpp"
#include "rooftile/gemm/two_gemms.hpp"
#include "rooftile/gemm/variants.hpp"

namespace rooftile {
namespace {

constexpr std::int64_t operand_alignment = 128;  // bytes, from a multiple of which offsets count

/// `count` matrices, `stride` elements apart; one that is `stacked` has an axis for that too.
TensorInfo matrix(const std::string& name, Type type, std::int64_t rows, std::int64_t columns, std::int64_t pitch,
                  std::int64_t offset, bool columns_contiguous, TensorRole role, std::int64_t count, std::int64_t stride,
                  bool stacked = false) {
    TensorInfo t{.name = name, .type = std::string(name_of(type)), .element_bits = 8 * bytes_of(type), .extents = {},
                 .strides = {}, .role = role, .offset = offset};
    t.extents = {Extent::of(rows), Extent::of(columns)};
    t.strides = columns_contiguous ? std::vector<std::int64_t>{pitch, 1} : std::vector<std::int64_t>{1, pitch};
    if (count > 1 || stacked) t.extents.insert(t.extents.begin(), Extent::of(count)), t.strides.insert(t.strides.begin(), stride);
    return t;
}

/// Where each group's rows begin, and the last one's end.
TensorInfo offsets_tensor(const GemmGroups& groups) {
    return {.name = "offsets", .type = "int32", .element_bits = 32, .extents = {Extent::of(groups.count() + 1)}, .strides = {1}, .role = TensorRole::in,
            .offset = 0};
}

/// B with its scales and zero points, one after the other.
TensorInfo packed_tensor(const GemmProblem& p) {
    return {.name = "b", .type = "uint8", .element_bits = 8, .extents = {Extent::of(p.packed_bytes())}, .strides = {1},
            .role = TensorRole::in, .offset = 0};
}

/// `of_groups`: an axis of its own says whose they are.
TensorInfo scales_tensor(const std::string& name, const ScaleLayout& s, bool of_groups = false) {
    TensorInfo t{.name = name, .type = "fp32", .element_bits = 32, .extents = {Extent::of(s.lines), Extent::of(s.width)},
                 .strides = {s.pitch(), 1}, .role = TensorRole::in, .offset = 0};
    if (of_groups) t.extents.insert(t.extents.begin(), Extent::of(s.matrices)), t.strides.insert(t.strides.begin(), s.matrix_elements());
    return t;
}

/// How one operand lies: how many matrices there are, their distance, rows and columns, its pitch, and which index is contiguous.
struct Lie {
    std::int64_t matrices, stride, rows, columns;
    bool columns_contiguous = true;
    std::int64_t pitch = 0;
};

Lie lie_of(std::string_view name, const TensorInfo& t) {
    const std::size_t axes = t.extents.size();
    if (axes != 2 && axes != 3)
        throw RequestError(fmt::format("{} has {} axes; a GEMM's operands have 2, or 3 where there are many of them", name, axes));
    const std::int64_t rows = t.extents[axes - 2].most, columns = t.extents[axes - 1].most, down = t.strides[axes - 2],
                       right = t.strides[axes - 1];
    Lie lie{axes == 3 ? t.extents[0].most : 0, axes == 3 ? t.strides[0] : 0, rows, columns};
    // The stride of an extent of 1 means nothing.
    if (right == 1 || columns == 1) {
        lie.columns_contiguous = true, lie.pitch = rows == 1 ? columns : down;
        if (lie.pitch >= columns) return lie;
    }
    if (down == 1 || rows == 1) {
        lie.columns_contiguous = false, lie.pitch = columns == 1 ? rows : right;
        if (lie.pitch >= rows) return lie;
    }
    throw RequestError(fmt::format("{} is {} x {} with strides {} and {}; one of them must be 1, the other no less than the "
                                   "extent beside it",
                                   name, rows, columns, down, right));
}

/// scale_a or, `of_b`, scale_b as the problem has them.
TensorInfo scales_as_asked(std::string_view scales, bool of_b, const EpilogueSizes& sizes) {
    TensorInfo t{.name = of_b ? "scale_b" : "scale_a", .type = "fp32", .element_bits = 32, .extents = {}, .strides = {}, .role = TensorRole::in, .offset = 0};
    const std::int64_t of_a_row = of_b ? sizes.n : sizes.m;
    std::vector<std::int64_t> extents = {scales == "row" ? of_a_row : 1};
    t.strides = {1};
    if (scales == "block") {
        const bool of_groups = of_b && sizes.groups > 0;
        return scales_tensor(t.name, of_b ? b_scale_layout(sizes.n, sizes.k, of_groups ? sizes.groups : 1) : a_scale_layout(sizes.m, sizes.k), of_groups);
    }
    if (of_b && sizes.groups > 0) {
        const std::int64_t width = extents[0];
        extents = {sizes.groups, 1, width}, t.strides = {width, width, 1};
    } else if (scales == "row" && !of_b) extents = {of_a_row, 1}, t.strides = {1, 1};
    for (const std::int64_t extent : extents) t.extents.push_back(Extent::of(extent));
    return t;
}

/// scale_a and scale_b where the request asks for scales; how many of `inputs` these are. What lies otherwise than the problem's own would
/// be read wrongly.
std::size_t scales_among(const Given& given, std::span<const TensorInfo> inputs, const EpilogueSizes& sizes) {
    const std::string& scales = given.text("scales");
    if (scales.empty() || scales == "none") return 0;
    for (std::size_t i = 0; i < 2; ++i) {
        const TensorInfo wanted = scales_as_asked(scales, i == 1, sizes);
        std::vector<std::int64_t> extents;
        for (const Extent& extent : wanted.extents) extents.push_back(extent.most);
        const auto fits = [&](const TensorInfo& t) {
            if (t.type != "fp32" || t.extents.size() != extents.size() || (!t.name.empty() && t.name != wanted.name)) return false;
            for (std::size_t axis = 0; axis < extents.size(); ++axis)
                if (t.extents[axis].most != extents[axis] || (extents[axis] > 1 && t.strides[axis] != wanted.strides[axis])) return false;
            return true;
        };
        if (i >= inputs.size() || !fits(inputs[i]))
            throw RequestError(fmt::format("with {} {} the {} tensor after {} is {}: fp32 [{}], strides [{}]", given.name("scales"), scales,
                                           i == 0 ? "first" : "second", sizes.groups > 0 ? "offsets" : "a and b", wanted.name,
                                           fmt::join(extents, ","), fmt::join(wanted.strides, ",")));
    }
    return 2;
}

void refuse_given(const Given& given, std::initializer_list<const char*> keys) {
    for (const char* key : keys)
        if (given.has(key)) throw RequestError(given.name(key) + " follows from the tensors; leave it out");
}

/// "2x17,3x16": `rows` over `groups`, as alike as they can be.
std::string alike_groups(std::int64_t rows, std::int64_t groups) {
    const std::int64_t each = rows / groups, longer = rows % groups;
    if (longer == 0) return fmt::format("{}x{}", groups, each);
    return fmt::format("{}x{},{}x{}", longer, each + 1, groups - longer, each);
}

bool are_offsets(const TensorInfo& t) { return t.name == "offsets" || (t.name.empty() && t.type == "int32"); }

/// Of a with two axes, b with three and offsets behind them: rows of a that b's matrices share. Counts that nobody gave are alike.
void add_groups(Given& given, const Lie& a, const Lie& b, const TensorInfo& offsets) {
    if (a.matrices != 0 || b.matrices == 0)
        throw RequestError(fmt::format("with offsets a is [M,K] and b [groups,K,N]; they have {} and {} axes", a.matrices == 0 ? 2 : 3,
                                       b.matrices == 0 ? 2 : 3));
    if (offsets.type != "int32" || offsets.extents.size() != 1 || offsets.extents[0].most != b.matrices + 1 || offsets.strides[0] != 1)
        throw RequestError(fmt::format("offsets of {} groups are int32 [{}], dense: where each group's rows begin, and the last one's end", b.matrices,
                                       b.matrices + 1));
    if (!given.has("groups")) given.add("groups", alike_groups(a.rows, b.matrices));
    else if (const auto count = gemm_groups(given, a.rows)->count(); count != b.matrices)
        throw RequestError(fmt::format("{} has {} groups, but b {} matrices", given.name("groups"), count, b.matrices));
    given.add("stride_b", std::to_string(b.matrices == 1 ? b.rows * b.columns : b.stride));
}

/// Of three axes, a or b or both: as many products; of two axes one serves all.
void add_batch(Given& given, const Lie& a, const Lie& b) {
    if (a.matrices == 0 && b.matrices == 0) return;
    if (a.matrices != 0 && b.matrices != 0 && a.matrices != b.matrices)
        throw RequestError(fmt::format("a holds {} matrices and b {}: as many, or one with two axes that serves all", a.matrices, b.matrices));
    const std::int64_t batch = std::max(a.matrices, b.matrices);
    if (batch == 1) throw RequestError("a batch of one product: give a and b with two axes");
    for (const auto& [name, of] : {std::pair{"a", &a}, {"b", &b}})
        if (of->matrices != 0 && of->stride == 0)
            throw RequestError(fmt::format("the matrices of {} are {} times the same: give it with two axes", name, batch));
    given.add("batch", std::to_string(batch));
    given.add("stride_a", std::to_string(a.stride)), given.add("stride_b", std::to_string(b.stride));
}

/// Rows of a, and packed weights, whose columns the request says: their bytes give them only roughly; then what the epilogue reads.
void add_packed(Given& given, std::span<const TensorInfo> inputs) {
    const TensorInfo &a = inputs[0], &b = inputs[1];
    const Lie of_a = lie_of("a", a);
    if (!given.has("n")) throw RequestError(fmt::format("missing {}: the columns of C, which packed bytes do not say", given.name("n")));
    refuse_given(given, {"m", "k", "shape", "lda", "a_major", "type", "a_offset", "batch", "tensor"});
    for (const auto& [key, number] : {std::pair{"m", of_a.rows}, {"k", of_a.columns}, {"lda", of_a.pitch}}) given.add(key, std::to_string(number));
    given.add("a_major", of_a.columns_contiguous ? "k" : "m");
    const std::int64_t period = operand_alignment * 8 / a.element_bits;
    if (a.offset % period != 0) given.add("a_offset", std::to_string(a.offset % period));
    if (!given.text("types").starts_with(a.type + ","))
        throw RequestError(fmt::format("{} {}: a is {}", given.name("types"), given.text("types"), a.type));
    const EpilogueSizes sizes{of_a.rows, size_number(given.name("n"), given.text("n"), max_gemm_extent), of_a.columns};
    const auto others = inputs.subspan(2);
    for (const TensorInfo& t : others.subspan(scales_among(given, others, sizes))) given.add("tensor", declared_operand(t, sizes));
    const GemmProblem p = gemm_problem(given);
    if (p.groups) throw RequestError("groups of packed weights are taken by a plan's kernel, not by tensors alone yet; plan, and compile the plan");
    const std::int64_t bytes = p.packed_bytes();
    if (!p.is_quantised() || b.type != "uint8" || b.extents.size() != 1 || b.extents[0].most != bytes || b.strides[0] != 1)
        throw RequestError(fmt::format("b is {} of {} elements; {} of {} x {} are packed in {} bytes of uint8", b.type,
                                       b.extents.empty() ? 0 : b.extents[0].most, p.b_name(), p.n, p.k, bytes));
}

/// a and b, offsets where there are groups, then scales, then what the epilogue reads.
void add_operands(Given& given, std::span<const TensorInfo> inputs) {
    if (inputs.size() < 2)
        throw RequestError(fmt::format("{} tensor is given; a GEMM takes a and b, then what its epilogue reads", inputs.size()));
    if (inputs[1].type == "uint8") return add_packed(given, inputs);
    for (std::size_t i = 0; i < 2; ++i) {
        const std::string_view name = i == 0 ? "a" : "b";
        if (!inputs[i].name.empty() && inputs[i].name != name)
            throw RequestError(fmt::format("tensor {} is named {}; a GEMM takes a and b", i + 1, inputs[i].name));
    }
    const TensorInfo &a = inputs[0], &b = inputs[1];
    const Lie of_a = lie_of("a", a), of_b = lie_of("b", b);
    const std::int64_t m = of_a.rows, k = of_a.columns, n = of_b.columns;
    if (of_b.rows != k)
        throw RequestError(fmt::format("a is {} x {} and b {} x {}: the columns of a are the rows of b", m, k, of_b.rows, n));
    refuse_given(given, {"m", "n", "k", "shape", "lda", "ldb", "a_major", "b_major", "type", "a_offset", "b_offset", "tensor", "batch", "stride_a",
                         "stride_b"});
    EpilogueSizes sizes{m, n, k};
    auto others = inputs.subspan(2);
    if (!others.empty() && are_offsets(others[0])) {
        add_groups(given, of_a, of_b, others[0]);
        others = others.subspan(1), sizes.groups = of_b.matrices;
    } else if (given.has("groups")) {
        throw RequestError(fmt::format("with {} the tensor after a and b is offsets: int32, groups + 1, where each group's rows begin and the last one's end",
                                       given.name("groups")));
    } else {
        add_batch(given, of_a, of_b);
        sizes.batch = std::max(of_a.matrices, of_b.matrices);
    }
    for (const auto& [key, number] : {std::pair{"m", m}, {"n", n}, {"k", k}, {"lda", of_a.pitch}, {"ldb", of_b.pitch}})
        given.add(key, std::to_string(number));
    if (given.has("types")) {
        const std::string operands = fmt::format("{},{},", a.type, b.type);
        if (!given.text("types").starts_with(operands))
            throw RequestError(fmt::format("{} {}: the tensors are {} and {}", given.name("types"), given.text("types"), a.type, b.type));
        // These types alone would be a request by packed weights.
        if (a.element_bits == 16 && b.element_bits == 8)
            throw RequestError(fmt::format("a is {} and b {}: such weights are packed first, into one tensor of uint8", a.type, b.type));
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
    sizes.pairs = given.has("pairs") && given.text("pairs") != "none";
    for (const TensorInfo& t : others.subspan(scales_among(given, others, sizes))) given.add("tensor", declared_operand(t, sizes));
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
        ask.request.simulate = !defaults.closed_form;
        ask.seed = defaults.seed;
        return Own::of(std::move(ask));
    }

    PlanSet plans(std::shared_ptr<const Machine> machine, const Problem& problem,
                   const Own& request) const override {
        const auto& p = problem.own.as<GemmProblem>();
        const auto& ask = request.as<GemmAsk>();
        PlanSet set = gemm_plan_set(derive_asked(machine, p, ask));
        if (ask.sample == 0 && ask.orders.empty() && !p.image) weigh_apart(set, machine, p, ask.request);
        return set;
    }

    Given with_work(const Given& given, std::int64_t size) const override { return gemm_with_work(given, size); }
    bool zeros_serve(const Problem&) const override { return true; }
    Given given(const Problem& problem) const override { return gemm_given(problem.own.as<GemmProblem>()); }
    Record problem_record(const Problem& problem) const override {
        return rooftile::problem_record(problem.own.as<GemmProblem>());
    }
    Given given_of_record(const Record& record) const override { return gemm_given(record); }
    std::vector<TensorInfo> tensors(const Problem& problem) const override {
        const auto& p = problem.own.as<GemmProblem>();
        std::vector<TensorInfo> out = {
                matrix("a", p.a_type, p.m, p.k, p.lda, p.a_offset, p.a_major == Major::k, TensorRole::in, p.a_matrices(), p.a_stride),
                p.is_quantised() ? packed_tensor(p) : matrix("b", p.b_type, p.k, p.n, p.ldb, p.b_offset, p.b_major != Major::k, TensorRole::in, p.b_matrices(), p.b_stride,
                       bool(p.groups))};
        if (p.groups) out.push_back(offsets_tensor(*p.groups));
        if (p.block_scales()) {
            out.push_back(scales_tensor("scale_a", p.a_scales()));
            out.push_back(scales_tensor("scale_b", p.b_scales(), bool(p.groups)));
        }
        if (p.epilogue)
            for (const EpilogueOperand& o : p.epilogue->operands) out.push_back(epilogue_tensor(o, p.epilogue->batch, p.m, p.result_n()));
        out.push_back(matrix(p.epilogue ? p.epilogue->output() : "c", p.c_type, p.m, p.result_n(), p.ldc, p.c_offset, true,
                             TensorRole::out, p.batch, p.c_stride));
        for (std::size_t i = 1; i < p.results(); ++i)
            out.push_back(matrix(p.epilogue->graph.outputs[i].name, p.c_type, p.m, p.result_n(), p.result_n(), 0, true, TensorRole::out, p.batch,
                                 p.m * p.result_n()));
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
    std::optional<PipelineCycles> pipeline(const Machine& machine, const Plan& plan) const override {
        return gemm_pipeline(machine, plan.own.as<GemmPlan>());
    }
    std::array<std::string_view, 2> map_keys() const override { return {"tile_m", "tile_n"}; }
    PlanMap map(const std::shared_ptr<const Machine>& machine, const Plan& first, const Own& request) const override {
        return gemm_map(machine, first, request.as<GemmAsk>());
    }
    std::string label(const Plan& plan) const override { return label_of(plan.own.as<GemmPlan>().config); }

    const Facet* facet(const std::type_info& type) const override {
        if (type == typeid(TwoProducts)) return &two_gemms();
        if (type == typeid(ProductsOfImages)) return &gemm_of_images();
        if (type == typeid(Simulates)) return &gemm_simulates();
        if (type == typeid(Packs)) return &gemm_packs();
        if (type == typeid(KnownKernels)) return &known_gemm_kernels();
        return type == typeid(Exports) ? &gemm_exports() : nullptr;
    }

    bool models_energy() const override { return true; }
    PlanPage page(const PlanSet& plans, std::span<const Explanation>, const Terminal& terminal) const override {
        return gemm_page(plans, plans.own ? plans.own.as<TensorPeak>().flops : std::nullopt, terminal);
    }
    std::string short_name(const Problem& problem) const override {
        const auto& p = problem.own.as<GemmProblem>();
        return fmt::format("{}{}x{}x{}{}", p.batch > 1 ? fmt::format("{} of ", p.batch) : "", p.m, p.n, p.k, p.groups ? fmt::format(" in {} groups", p.groups->count()) : "");
    }
    std::string heading(const Problem& problem, std::string_view machine_id, std::string_view machine_name,
                        const Terminal& terminal) const override {
        return heading_text(problem.own.as<GemmProblem>(), machine_id, machine_name, terminal);
    }
    std::string measured_text(const Measurement& row, const Terminal& terminal) const override {
        return gemm_measured_text(row, terminal);
    }
    std::vector<FormulaPage> symbols() const override {
        const auto sections = gemm_formulas();
        return {{"A matrix product C[M,N] = A[M,K] B[K,N]: the derivation in symbols",
                 "Every step of `rooftile plan gemm --explain=all`, in its order, without numbers. Choose a tile, then fill in from the top: a line takes what "
                 "is above it, the tile, the problem and the machine's numbers, which the last table lists. Brackets name the method's rules.",
                 {sections.begin(), sections.end()}}};
    }
    std::vector<FormulaPage> forms() const override { return gemm_forms(); }
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
    // Counters of pieces of K, or of tiles, are 0 before and after.
    const WorkspaceState state = plan.config.grid_split_k > 1 || plan.config.dynamic_scheduler || multiplied(plan).is_quantised() ? WorkspaceState::zeroed : WorkspaceState::any;
    const char* in_front = rounds_weights(plan) ? "unpack_weights" : multiplied(plan).narrow ? "widen_rows" : is_fp8(plan.problem.a_type) ? "pack_bytes" : "pack_operands";
    Plan out = plan_of(problem, kernel, std::move(plan));
    if (workspace == 0) return out;
    out.launches = {{std::move(kernel), workspace, state, state}};
    if (packs) out.launches.insert(out.launches.begin(), {in_front, workspace, state, state});
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
