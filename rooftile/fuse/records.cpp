#include "rooftile/fuse/records.hpp"

#include "rooftile/fuse/staging.hpp"

namespace rooftile {
namespace {

Value bound_value(const std::optional<Bound>& bound) { return bound ? Value(name_of(*bound)) : Value(); }

Record tensor_record(const std::string& name, const GraphNode& n) {
    return {{"name", name}, {"type", name_of(n.element)}, {"shape", n.shape}, {"bytes", bytes_of(n)}};
}

Record totals_record(const FuseTotals& t) {
    return {{"moved_bytes", t.moved_bytes},
            {"dram_bytes", t.dram_bytes},
            {"time_us", t.time_us},
            {"kernels", t.kernels}};
}

}  // namespace

Record problem_record(const ExpressionGraph& problem) {
    List inputs, outputs;
    for (int i : problem.inputs)
        inputs.push_back(tensor_record(problem.nodes[size_t(i)].name, problem.nodes[size_t(i)]));
    for (const GraphOutput& o : problem.outputs)
        outputs.push_back(tensor_record(o.name, problem.nodes[size_t(o.node)]));
    return {{"expression", problem.text}, {"tensors", std::move(inputs)}, {"outputs", std::move(outputs)}};
}

Record config_record(const FusePlan& plan) {
    const FuseConfig& c = plan.config;
    Record record = {{"kernel", "fuse_" + std::string(name_of(c.form))},
            {"form", name_of(c.form)},
            {"row_storage", name_of(c.row_storage)},
            {"vector_width", c.vector_width},
            {"vectors_per_thread", c.vectors_per_thread},
            {"threads", c.threads},
            {"threads_per_row", c.threads_per_row},
            {"reduction_threads", c.reduction_threads},
            {"rows_per_cta", c.rows_per_cta()},
            {"cluster", c.cluster},
            {"stages", c.stages},
            {"ctas_per_sm", c.ctas_per_sm},
            {"persistent", c.persistent},
            {"early_weights", c.early_weights},
            {"reduce_scope", reduce_scope_of(c)},
            {"grid", c.grid > 0 ? Value(c.grid) : Value()}};
    if (c.form == FuseForm::columns) record.emplace_back("row_splits", c.row_splits);
    return record;
}

Record resources_record(const FuseResources& r) {
    return {{"threads", r.threads},
            {"registers", r.registers},
            {"shared_bytes", r.shared_bytes},
            {"ctas_per_sm", r.ctas_per_sm},
            {"bytes_in_flight", r.bytes_in_flight},
            {"bytes_in_flight_needed", r.bytes_in_flight_needed}};
}

Record prediction_record(const FusePrediction& p) {
    return {{"time_us", p.time_us},         {"gbytes_per_s", p.gbytes_per_s},
            {"bound", bound_value(p.bound)}, {"moved_bytes", p.moved_bytes},
            {"dram_bytes", p.dram_bytes},   {"issue_share", p.issue_share},
            {"waves", p.waves},             {"speedup", p.speedup}};
}

Record totals_record(const std::optional<FuseTotals>& fused, const FuseTotals& unfused,
                     const std::vector<FuseOperator>& operators) {
    List list;
    for (const FuseOperator& op : operators)
        list.push_back(Record{{"text", op.text},
                              {"stores", op.type},
                              {"moved_bytes", op.totals.moved_bytes},
                              {"dram_bytes", op.totals.dram_bytes},
                              {"time_us", op.totals.time_us},
                              {"bound", bound_value(op.bound)}});
    return {{"fused", fused ? Value(totals_record(*fused)) : Value()},
            {"unfused", totals_record(unfused)},
            {"operators", std::move(list)}};
}

}  // namespace rooftile
