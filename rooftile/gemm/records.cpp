#include "rooftile/gemm/records.hpp"

#include "rooftile/gemm/knobs.hpp"

namespace rooftile {

namespace {

List epilogue_tensors(const GemmProblem& p) {
    List out;
    for (const std::string& tensor : p.epilogue->tensors) out.push_back(tensor);
    return out;
}

}  // namespace

Record problem_record(const GemmProblem& p) {
    Record out = {{"m", p.m},
            {"n", p.n},
            {"k", p.k},
            {"a_major", a_major_name(p.a_major)},
            {"b_major", b_major_name(p.b_major)},
            {"types", Record{{"a", name_of(p.a_type)},
                             {"b", p.b_name()},
                             {"c", name_of(p.c_type)},
                             {"accumulate", name_of(p.accumulate_type)}}},
            {"lda", p.lda},
            {"ldb", p.ldb},
            {"ldc", p.ldc},
            {"a_offset", p.a_offset},
            {"b_offset", p.b_offset},
            {"c_offset", p.c_offset},
            {"batch", p.batch},
            {"alpha", p.alpha},
            {"beta", p.beta},
            {"epilogue", p.epilogue && !p.epilogue->expression.empty() ? p.epilogue->expression : "none"}};
    // Alone where there is one: other documents stay as they were.
    if (p.batch > 1)
        for (const auto& [key, stride] : {std::pair{"stride_a", p.a_stride}, {"stride_b", p.b_stride}, {"stride_d", p.c_stride}})
            out.emplace_back(key, stride);
    if (p.groups) out.push_back({"groups", p.groups.text()}), out.emplace_back("stride_b", p.b_stride);
    if (p.accumulation != Accumulation::fast) out.push_back({"accumulation", name_of(p.accumulation)});
    if (p.epilogue && p.epilogue->scales != Scales::none) out.push_back({"scales", name_of(p.epilogue->scales)});
    if (p.is_quantised()) {
        out.emplace_back("quant_group", p.quantised.group == 0 ? "row" : std::to_string(p.quantised.group));
        out.emplace_back("quant_scale", scale_name(p.quantised));
        out.emplace_back("quant_zero", name_of(p.quantised.zeros));
    }
    if (p.pairs() != Pairs::none) out.push_back({"pairs", name_of(p.pairs())});
    if (p.epilogue) out.push_back({"epilogue_tensors", epilogue_tensors(p)});
    return out;
}

Record config_record(const GemmConfig& c) {
    Record out = {{"kernel", name_of(c.kernel)}};
    add_knobs<GemmKnobs>(out, c);
    return out;
}

Record resources_record(const Resources& r) {
    Value setmaxnreg = Unused{};
    if (r.producer_registers || r.consumer_registers)
        setmaxnreg = Record{{"producer", r.producer_registers}, {"consumer", r.consumer_registers}};
    return {{"threads", r.threads},
            {"accumulator_registers", r.accumulator_registers},
            {"setmaxnreg", std::move(setmaxnreg)},
            {"stage_bytes", r.stage_bytes},
            {"stages_max", r.stages_max},
            {"shared_bytes", r.shared_bytes},
            {"ctas_per_sm", r.ctas_per_sm},
            {"workspace_bytes", r.workspace_bytes}};
}

Record prediction_record(const Prediction& p) {
    return {{"time_us", p.time_us},
            {"tflops", p.tflops},
            {"bound", p.bound ? Value(name_of(*p.bound)) : Value()},
            {"arithmetic_intensity", p.arithmetic_intensity},
            {"tile_compute_cycles", p.tile_compute_cycles},
            {"stages_min", p.stages_min},
            {"stages_for_full_rate", p.stages_for_full_rate},
            {"waves", p.waves},
            {"wave_efficiency", p.wave_efficiency},
            {"moved_bytes", p.moved_bytes},
            {"dram_bytes", p.dram_bytes},
            {"l2_bytes", p.l2_bytes},
            {"dram_lower_bound_bytes", p.dram_lower_bound_bytes},
            {"l2_lower_bound_bytes", p.l2_lower_bound_bytes},
            {"shared_traffic_bytes", p.shared_traffic_bytes},
            {"shared_lower_bound_bytes", p.shared_lower_bound_bytes},
            {"dram_over_bound", p.dram_over_bound()},
            {"l2_over_bound", p.l2_over_bound()},
            {"shared_over_bound", p.shared_over_bound()}};
}

}  // namespace rooftile
