#include "rooftile/attention/records.hpp"

#include "rooftile/attention/knobs.hpp"
#include "rooftile/attention/space.hpp"

namespace rooftile {

Record problem_record(const AttentionProblem& p) {
    Record record = {{"batch", p.batch},       {"heads", p.heads},         {"kv_heads", p.kv_heads},
            {"q", p.queries},         {"kv", p.keys},             {"dim", p.dim},
            {"dim_v", p.dim_v},       {"mask", mask_text(p)},     {"type", attention_type_name(p.type)},
            {"layout", name_of(p.layout)}, {"log_sum_exp", p.log_sum_exp}};
    if (!p.alike()) record.push_back({"lengths", lengths_text(p)});
    if (p.cached) record.push_back({"cached", true});
    if (p.latent) record.push_back({"latent", true});
    if (p.scale > 0) record.push_back({"scale", p.scale});
    if (p.paged()) record.push_back({"page", p.page}), record.push_back({"pages", p.pages});
    for (const AttentionOperand operand : attention_operands)
        if (const auto& s = p.strides[std::size_t(operand)])
            record.push_back({std::string(strides_key(operand)), std::to_string(s->batch) + "," + std::to_string(s->head) + "," + std::to_string(s->row)});
    if (p.score) {
        record.push_back({"score", p.score->expression});
        if (!p.score->tensors.empty()) record.push_back({"score_tensors", p.score->tensors});
    }
    return record;
}

Record config_record(const AttentionPlan& plan) {
    const AttentionConfig& c = plan.config;
    Record out = {{"kernel", kernel_name(plan.problem)}};
    add_knobs<AttentionKnobs>(out, c);
    out.emplace_back("consumer_warpgroups", warpgroups_of(plan.problem, c));
    out.emplace_back("order", plan.problem.mask == AttentionMask::none ? "sections" : "sections_longest_first");
    return out;
}

Record resources_record(const AttentionResources& r) {
    return {{"threads", r.threads},
            {"accumulator_registers", r.accumulator_registers},
            {"setmaxnreg", Record{{"producer", r.producer_registers}, {"consumer", r.consumer_registers}}},
            {"stage_bytes", r.stage_bytes},
            {"stages_max", r.stages_max},
            {"shared_bytes", r.shared_bytes},
            {"ctas_per_sm", r.ctas_per_sm}};
}

Record prediction_record(const AttentionPrediction& p) {
    return {{"time_us", p.time_us},
            {"tflops", p.tflops},
            {"bound", p.bound ? Value(name_of(*p.bound)) : Value()},
            {"clock_mhz", p.clock_mhz},
            {"overlap_ceiling", p.overlap_ceiling},
            {"overlap_gain", p.overlap_gain},
            {"tensor_cycles", p.tensor_cycles},
            {"exponential_cycles", p.exponential_cycles},
            {"block_cycles", p.block_cycles},
            {"tiles", p.tiles},
            {"blocks", p.blocks},
            {"balance", p.balance},
            {"l2_bytes", p.l2_bytes},
            {"dram_bytes", p.dram_bytes},
            {"dram_lower_bound_bytes", p.dram_lower_bound_bytes},
            {"unfused_moved_bytes", p.unfused_moved_bytes}};
}

}  // namespace rooftile
