#include "rooftile/fuse/fields.hpp"

#include <vector>

#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/expression/expression.hpp"

namespace rooftile {
namespace {

constexpr std::string_view row_storages[] = {"none", "registers", "reload", "pipelined", "shared"};
constexpr std::string_view switches[] = {"off", "on"};
constexpr std::string_view scopes[] = {"cta", "cluster", "grid"};

std::vector<Field> make_fields() {
    const char *problem = "Problem", *fixed = "Fixed parameters (the rest is searched)";
    return {
        {"expression", "EXPRESSION", "\"y = gelu(x + bias)\"; statements are parted by \";\"", problem,
         FieldKind::positional},
        {"tensor", "NAME:TYPE[SHAPE]",
         "A tensor of the expression, as --tensor \"x:bf16[8192,8192]\"; repeatable", problem,
         FieldKind::list},
        {"alignment", "BYTES", "What every tensor's address is a multiple of; default 256", fixed},
        {"vector_width", "N", "Elements of a vector", fixed},
        {"vectors_per_thread", "N", "Vectors of each full tensor that a thread has in flight", fixed},
        {"threads", "N", "Threads of a CTA", fixed},
        {"threads_per_row", "N", "Threads of a CTA that share a row", fixed},
        {"rows_per_cta", "N", "Rows of a CTA; 1 where its threads share one", fixed},
        {"cluster", "N", "CTAs that share a row", fixed},
        {"row_splits", "N", "CTAs that share the rows of a tile of columns", fixed},
        {"reduce_scope", "NAME", "Where a row or column is reduced: cta, cluster, or grid (in device memory)", fixed},
        {"stages", "N", "Slots of the ring, or iterations of grid-resident rows that shared memory holds",
         fixed},
        {"ctas_per_sm", "N", "CTAs that an SM has at once, no more than fit", fixed},
        {"reduction_threads", "N",
         "Threads of a ring's CTA that only reduce (warp specialisation); 0: all do both", fixed},
        {"row_storage", "NAME",
         "Where a row waits between passes: registers, shared (a warp's rows together), pipelined (a ring of chunks in shared memory) "
         "or reload (read again)",
         fixed},
        {"early_weights", "on|off", "What all rows share is loaded before a reduction; by a ring once", fixed},
        {"persistent", "on|off", "One wave of CTAs goes through everything", fixed},
        {"exhaustive", "", "Search also what structural rules leave out", fixed, FieldKind::on},
        {"top", "N", "Plans to keep", "Output"},
    };
}

std::optional<int> number_if(const Given& g, std::string_view key, int most, int least = 1) {
    if (!g.has(key)) return std::nullopt;
    return int(whole_number(g.name(key), g.text(key), least, most));
}

}  // namespace

std::span<const Field> fuse_fields() {
    static const std::vector<Field> fields = make_fields();
    return fields;
}

ExpressionGraph fuse_problem(const Given& g) {
    if (!g.has("expression"))
        throw RequestError(
            "missing the expression: rooftile plan fuse \"y = gelu(x)\" --tensor \"x:bf16[8192,8192]\"");
    std::vector<TensorDeclaration> tensors;
    for (const std::string& text : g.list("tensor")) tensors.push_back(tensor_declaration(text));
    return expression_graph(g.text("expression"), tensors);
}

Given fuse_given(const ExpressionGraph& problem) {
    Given given(Given::Named::by_key);
    given.add("expression", problem.text);
    for (int i : problem.inputs) {
        const GraphNode& n = problem.nodes[std::size_t(i)];
        given.add("tensor", n.name + ":" + std::string(name_of(n.element)) + text_of(n.shape));
    }
    return given;
}

Given fuse_given(const Record& record) {
    Given given(Given::Named::by_key);
    given.add("expression", find_as<std::string>(record, "expression").value_or(""));
    for (const Value& value : find_as<List>(record, "tensors").value_or(List())) {
        const auto* tensor = std::get_if<Record>(&value.content());
        if (!tensor) continue;
        Shape shape;
        for (const Value& extent : find_as<List>(*tensor, "shape").value_or(List()))
            if (const auto* n = std::get_if<std::int64_t>(&extent.content())) shape.push_back(*n);
        given.add("tensor", find_as<std::string>(*tensor, "name").value_or("") + ":"
                                + find_as<std::string>(*tensor, "type").value_or("") + text_of(shape));
    }
    return given;
}

FuseRequest fuse_request(const Given& g, int default_top) {
    constexpr int max_small = 1024, max_plans = 256, max_vector_width = 16;
    FuseRequest r;
    r.vector_width = number_if(g, "vector_width", max_vector_width);
    r.vectors_per_thread = number_if(g, "vectors_per_thread", max_small);
    r.threads = number_if(g, "threads", max_small);
    r.threads_per_row = number_if(g, "threads_per_row", max_small);
    r.cluster = number_if(g, "cluster", max_small);
    r.stages = number_if(g, "stages", max_small);
    r.row_splits = number_if(g, "row_splits", max_small * max_vector_width);
    r.ctas_per_sm = number_if(g, "ctas_per_sm", max_small);
    r.reduction_threads = number_if(g, "reduction_threads", max_small, 0);
    if (g.has("row_storage"))
        r.row_storage = RowStorage(one_of(g.name("row_storage"), g.text("row_storage"), row_storages));
    const auto on_if = [&](std::string_view key) -> std::optional<bool> {
        if (!g.has(key)) return std::nullopt;
        return one_of(g.name(key), g.text(key), switches) == 1;
    };
    r.persistent = on_if("persistent");
    r.early_weights = on_if("early_weights");
    r.rows_per_cta = number_if(g, "rows_per_cta", max_small * max_vector_width);
    if (g.has("reduce_scope")) r.reduce_scope = scopes[one_of(g.name("reduce_scope"), g.text("reduce_scope"), scopes)];
    r.alignment = number_if(g, "alignment", max_small).value_or(r.alignment);
    r.exhaustive = g.has("exhaustive");
    r.top = number_if(g, "top", max_plans).value_or(default_top);
    return r;
}

}  // namespace rooftile
