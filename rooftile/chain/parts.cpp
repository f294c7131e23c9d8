#include "rooftile/chain/parts.hpp"

#include <algorithm>

#include "rooftile/chain/derive.hpp"
#include "rooftile/core/knob.hpp"
#include "rooftile/error.hpp"
#include "rooftile/tiled/knob_names.hpp"

namespace rooftile {

Machine without_dram(const Machine& machine) {
    constexpr double beyond_any = 1e4;
    Machine out = machine;
    for (auto& [key, fact] : out.facts)
        if (key.starts_with("dram.") && fact.dimension.byte == 1 && (fact.dimension.second == -1 || fact.dimension.cycle == -1))
            fact.value *= beyond_any;
    return out;
}

namespace {

std::optional<std::int64_t> number_of(const Record& record, std::string_view key) { return find_as<std::int64_t>(record, key); }

void describe(PlannedProduct& part, const ChainHardware& hw, Plan plan) {
    if (part.why_not.empty()) part.why_not = plan.why_not;
    part.product = product_of(hw, plan);
    part.bound_bytes = number_of(plan.operation->prediction_record(plan), "dram_lower_bound_bytes");
    part.plan = std::move(plan);
}

}  // namespace

ProductTime time_of(const Machine& machine, const Machine& no_dram, const Plan& plan, const Predictor& predicts) {
    ProductTime t;
    t.seconds = predicts(machine).front().seconds;
    t.on_chip_seconds = predicts(no_dram).front().seconds;
    if (const auto bytes = number_of(plan.operation->prediction_record(plan), "dram_bytes")) t.dram_bytes = double(*bytes);
    return t;
}

ChainProduct product_of(const ChainHardware& hw, const Plan& plan) {
    const Record config = plan.operation->config_record(plan), problem = plan.operation->problem_record(plan.problem);
    const auto value = [](const Record& record, std::string_view key, std::int64_t otherwise = 1) {
        return number_of(record, key).value_or(otherwise);
    };
    ChainProduct p;
    p.m = value(problem, "m"), p.n = value(problem, "n"), p.k = value(problem, "k");
    p.tile_m = int(value(config, "tile_m")), p.tile_n = int(value(config, "tile_n")), p.tile_k = int(value(config, "tile_k"));
    p.cluster_m = int(value(config, "cluster_m")), p.cluster_n = int(value(config, "cluster_n"));
    p.stages = int(value(config, "stages"));
    p.pingpong = find_as<std::string>(config, "schedule").value_or("") == "pingpong";
    p.k_parts = int(value(config, "split_k") * value(config, "grid_split_k"));
    const double ctas_per_sm = double(value(config, "ctas_per_sm")), of_cluster = double(p.cluster_m) * p.cluster_n * p.k_parts;
    p.clusters = std::max<std::int64_t>(1, std::int64_t(known_or(hw.sms, 1) * ctas_per_sm / of_cluster));
    p.late_clusters = std::int64_t(known_or(hw.sms_per_gpc, 0) * ctas_per_sm / of_cluster);
    p.skew = hw.sm_skew;
    if (const Value* order = find(config, "order")) p.order = KnobType<Order>::of(*order).value_or(Order::row);
    p.group = int(value(config, "group"));
    return p;
}

PlannedProduct planned(const std::shared_ptr<const Machine>& machine, const ChainHardware& hw, const Given& asked, const Given& plain) {
    PlannedProduct part;
    PlanSet set;
    const auto attempt = [&](const Given& given) {
        try {
            set = derive_part(product_operation, machine, given);
            if (set.plans.empty()) part.why_not = set.refusal ? set.refusal->message : "no plan";
        } catch (const RequestError& error) {
            part.why_not = error.what();
            set = {};
        }
        return !set.plans.empty();
    };
    part.with_epilogue = attempt(asked);
    if (!part.with_epilogue && !attempt(plain)) return part;
    describe(part, hw, std::move(set.plans.front()));
    return part;
}

std::vector<PlannedProduct> planned_several(const std::shared_ptr<const Machine>& machine, const ChainHardware& hw, Given asked, int top) {
    asked.add("top", std::to_string(top));
    std::vector<PlannedProduct> out;
    try {
        for (Plan& plan : derive_part(product_operation, machine, asked).plans) describe(out.emplace_back(), hw, std::move(plan));
    } catch (const RequestError&) { return {}; }
    return out;
}

PlannedProduct planned_again(const std::shared_ptr<const Machine>& machine, const ChainHardware& hw, const Plan& plan, Given asked, const Record& changes) {
    Record config = plan.operation->config_record(plan);
    for (auto& [key, value] : config)
        if (const Value* changed = find(changes, key)) value = *changed;
    const Given fixed = plan.operation->given_of_config(config);
    for (const Field& field : plan.operation->fields())
        if (fixed.has(field.key)) asked.add_default(field.key, fixed.text(field.key));
    return planned(machine, hw, asked, asked);
}

}  // namespace rooftile
