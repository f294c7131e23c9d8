#include "rooftile/fuse/draw.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "rooftile/error.hpp"
#include "rooftile/expression/expression.hpp"
#include "rooftile/expression/random.hpp"

namespace rooftile {
namespace {

constexpr Element types[] = {Element::bf16, Element::fp16, Element::fp32};

const std::vector<ExpressionForm>& named_forms() {
    using enum Extents;
    static const std::vector<ExpressionForm> forms = {
        {"softmax(x)", {{"x", full}}},
        {"log_softmax(x * 0.5)", {{"x", full}}},
        {"layernorm(x, gamma, beta)", {{"x", full}, {"gamma", row}, {"beta", row}}},
        {"rmsnorm(x, gamma)", {{"x", full}, {"gamma", row}}},
        {"rmsnorm(x + z, gamma)", {{"x", full}, {"z", full}, {"gamma", row}}},
        {"sum(x * x)", {{"x", full}}},
        {"max(x)", {{"x", full}}},
        {"logsumexp(x)", {{"x", full}}},
        {"silu(g) * u", {{"g", full}, {"u", full}}},
        {"gelu(x + b)", {{"x", full}, {"b", row}}},
        {"gelu(layernorm(x, gamma, beta) + z)", {{"x", full}, {"gamma", row}, {"beta", row}, {"z", full}}},
        {"x * s + z", {{"x", full}, {"s", column}, {"z", full}}}};
    return forms;
}

struct Space {
    std::int64_t rows, columns;
};

Space drawn_space(Random& random) {
    const double widest = random.one_in(10) ? double(1 << 28) : double(1 << 20);
    std::int64_t columns = std::llround(random.log_uniform(2, widest));
    if (random.coin()) columns = std::max<std::int64_t>(1, (columns + 4) / 8) * 8;
    const auto elements = std::int64_t(random.log_uniform(double(1 << 20), double(1 << 28)));
    return {std::max<std::int64_t>(1, elements / columns), columns};
}

/// Types and sizes for `form`. `mixed`: one input, or the output, is of another type.
ExpressionGraph graph_of(const ExpressionForm& form, Space space, Random& random) {
    const std::size_t type = random.pick(std::size(types));
    const Element other = types[(type + 1 + random.pick(std::size(types) - 1)) % std::size(types)];
    const bool mixed = random.one_in(5);
    const std::size_t which = random.pick(form.tensors.size() + 1);  // behind the inputs: the output
    std::vector<TensorDeclaration> tensors;
    for (std::size_t i = 0; i < form.tensors.size(); ++i)
        tensors.push_back({form.tensors[i].first, mixed && which == i ? other : types[type],
                           shape_of(form.tensors[i].second, space.rows, space.columns)});
    const bool cast = mixed && which == form.tensors.size();
    return expression_graph(
        cast ? "y = " + std::string(name_of(other)) + "(" + form.body + ")" : "y = " + form.body, tensors);
}

struct Counts {
    int operators = 0, row_operations = 0;
};

Counts counts_of(const ExpressionGraph& graph) {
    Counts counts;
    for (const GraphNode& n : graph.nodes) {
        if (n.op == Op::input || n.op == Op::number) continue;
        ++counts.operators;
        counts.row_operations += is_row_operation(n.op);
    }
    return counts;
}

bool broadcasts(const ExpressionForm& form) {
    return std::any_of(form.tensors.begin(), form.tensors.end(),
                       [](const auto& t) { return t.second != Extents::full; });
}

/// From the generator, whatever it gives that has 2 to 12 operators, but so often one row operation, two, or an operand
/// that is broadcast that the law's shares hold.
ExpressionForm random_form(Random& random) {
    constexpr int min_operators = 2, max_operators = 12;
    const std::size_t die = random.pick(100);
    const int row_operations = die < 25 ? 2 : die < 65 ? 1 : 0;
    const bool broadcast = random.one_in(3);
    RandomExpressions expressions(random.bits());
    for (;;) {
        ExpressionForm form = expressions.form();
        if (broadcast && !broadcasts(form)) continue;
        std::vector<TensorDeclaration> tensors;
        for (const auto& [name, extents] : form.tensors)
            tensors.push_back({name, Element::fp32, shape_of(extents, 2, 2)});
        const Counts counts = counts_of(expression_graph("y = " + form.body, tensors));
        if (counts.operators >= min_operators && counts.operators <= max_operators
            && counts.row_operations >= row_operations)
            return form;
    }
}

/// What a problem's largest tensor has.
const GraphNode& largest(const ExpressionGraph& graph) {
    std::vector<int> all = graph.inputs;
    for (const GraphOutput& output : graph.outputs) all.push_back(output.node);
    const auto elements = [&](int i) { return elements_of(graph.nodes[std::size_t(i)].shape); };
    return graph.nodes[std::size_t(
        *std::max_element(all.begin(), all.end(), [&](int a, int b) { return elements(a) < elements(b); }))];
}

}  // namespace

DrawLaw fuse_law(const DrawRequest& request) {
    if (request.law == "any") throw RequestError("fuse cannot place base addresses 1 .. 7 elements off an allocation's yet; the laws draw and columns work");
    static constexpr std::string_view laws[] = {"draw", "columns"};
    if (laws[law_index(request, laws)] == "columns")
        return {"columns", "reductions of columns, rows and columns 2 to 2^20, half of them whole vectors, elements 2^20 to 2^27", Mode::cold};
    return {"draw",
            "half named, half random expressions, columns 2 to 2^20 (a tenth to 2^28), elements 2^20 to 2^28",
            Mode::cold};
}

ExpressionGraph drawn_expression(Random& random) {
    const Space space = drawn_space(random);
    const ExpressionForm form = random.coin() ? random.one_of(named_forms()) : random_form(random);
    return graph_of(form, space, random);
}

ExpressionGraph drawn_columns(Random& random) {
    constexpr double most = 1 << 20, least_elements = 1 << 20, most_elements = 1 << 27;
    const bool whole_vectors = random.coin();
    std::int64_t rows = 0, columns = 0;
    do {
        rows = std::llround(random.log_uniform(2, most)), columns = std::llround(random.log_uniform(2, most));
        if (whole_vectors) columns = (columns + 7) / 8 * 8;
    } while (double(rows) * double(columns) < least_elements || double(rows) * double(columns) > most_elements);
    static constexpr const char* texts[] = {"y = column_sum(x)", "y = column_sum(x)", "y = column_mean(x) * 0.5", "y = column_max(x)"};
    const TensorDeclaration x[] = {{"x", random.one_in(4) ? Element::fp32 : Element::bf16, {rows, columns}}};
    return expression_graph(texts[random.pick(std::size(texts))], x);
}

ProblemTraits fuse_traits(const ExpressionGraph& problem) {
    constexpr std::int64_t vector_bytes = 16, short_row = 256, long_row = 262144, few_rows = 64;
    const GraphNode& full = largest(problem);
    const std::int64_t columns = full.shape.empty() ? 1 : full.shape.back(),
                       elements = elements_of(full.shape);
    const std::int64_t rows = columns > 0 ? elements / columns : 0;
    bool unaligned = false, broadcast = false, mixed = false, whole = false, dropout = false;
    for (const int i : problem.inputs) {
        const GraphNode& n = problem.nodes[std::size_t(i)];
        unaligned |=
            rows > 1 && elements_of(n.shape) == elements && columns * bytes_of(n.element) % vector_bytes != 0;
        broadcast |= elements_of(n.shape) < elements;
        mixed |= n.element != problem.nodes[std::size_t(problem.outputs.front().node)].element;
    }
    bool down_columns = false;
    for (const GraphNode& n : problem.nodes)
        whole |= reduces_all(n.op), down_columns |= reduces_columns(n.op), dropout |= n.op == Op::dropout;
    const int row_operations = counts_of(problem).row_operations;
    const bool along_rows = row_operations > 0;
    ProblemTraits t;
    t.law = whole ? "" : down_columns ? "columns" : "draw";
    t.band = along_rows ? "along rows" : down_columns ? "along columns" : whole ? "of everything" : "point-wise";
    t.features = {{"rows off 16 B", unaligned},
                  {"rows under 256", along_rows && columns < short_row},
                  {"rows over 262144", along_rows && columns > long_row},
                  {"under 64 rows", along_rows && rows < few_rows},
                  {"two or more row operations", row_operations >= 2},
                  {"broadcast operand", broadcast},
                  {"mixed types", mixed},
                  {"dropout", dropout}};
    t.x = {"columns", double(columns)};
    t.y = {"elements", double(elements)};
    return t;
}

}  // namespace rooftile
