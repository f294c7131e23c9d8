#include "rooftile/chain/records.hpp"

#include <algorithm>
#include <cmath>

#include "rooftile/chain/knobs.hpp"
#include "rooftile/chain/model.hpp"
#include "rooftile/core/operation.hpp"

namespace rooftile {
namespace {

bool is_on_chip(const ChainPlan& plan) { return plan.config.form == ChainForm::on_chip; }

Value product_record(const ChainPlan& plan, std::size_t i) {
    if (is_on_chip(plan)) return Unused{};
    const ChainProduct& c = plan.config.products[i];
    Record out = plan.part_configs[i];
    for (auto& [key, value] : out) {
        if (key == "order") value = name_of_order(c.order);
        if (key == "group") value = c.group;
    }
    if (!find(out, "reverse")) out.emplace_back("reverse", c.reverse);
    return out;
}

}  // namespace

Record problem_record(const ChainProblem& p) {
    return {{"m", p.m}, {"d", p.d}, {"ff", p.ff}, {"act", name_of(p.act)}, {"residual", p.residual}, {"type", chain_type_name(p.type)}};
}

Record config_record(const ChainPlan& plan) {
    const ChainConfig& c = plan.config;
    const bool on_chip = is_on_chip(plan);
    const auto only = [](bool used, const auto& value) { return used ? Value(value) : Value(Unused{}); };
    const std::string kernel = on_chip ? "sm90_chain" : c.form == ChainForm::persistent ? "sm90_two_gemms" : find_as<std::string>(plan.part_configs[0], "kernel").value_or("unknown");
    Record out{{"kernel", kernel}, {"form", name_of(c.form)}}, tile;
    add_knobs<ChainKnobs>(tile, c.tile);
    for (const auto& [key, value] : tile) {
        out.emplace_back(key, only(on_chip, value));
        if (key == "stages") out.emplace_back("consumer_warpgroups", only(on_chip, c.tile.consumer_warpgroups()));
    }
    out.emplace_back("chunk_rows", only(c.form == ChainForm::persistent, c.chunk_rows));
    out.emplace_back("room_chunks", only(c.form == ChainForm::persistent, c.room_chunks));
    out.emplace_back("first", product_record(plan, 0));
    out.emplace_back("second", product_record(plan, 1));
    return out;
}

Record resources_record(const ChainPlan& plan) {
    if (plan.config.form == ChainForm::persistent)
        return {{"threads", plan.threads}, {"accumulator_registers", Unused{}}, {"setmaxnreg", Unused{}}, {"shared_bytes", plan.shared_bytes},
                {"workspace_bytes", plan.workspace_bytes}};
    if (!is_on_chip(plan))  // its products say it each
        return {{"threads", Unused{}}, {"accumulator_registers", Unused{}}, {"setmaxnreg", Unused{}}, {"shared_bytes", Unused{}},
                {"workspace_bytes", plan.workspace_bytes}};
    return {{"threads", plan.threads},
            {"accumulator_registers", plan.accumulator_registers},
            {"setmaxnreg", Record{{"producer", plan.producer_registers}, {"consumer", plan.consumer_registers}}},
            {"shared_bytes", plan.shared_bytes},
            {"workspace_bytes", plan.workspace_bytes}};
}

Record prediction_record(const ChainPrediction& p) {
    Record by_tensor, read;
    for (const ChainTensorTraffic& t : p.traffic.tensors) by_tensor.emplace_back(t.name, t.all());
    for (const ChainTensorTraffic& t : p.traffic.tensors)
        read.emplace_back(t.name, t.asked > 0 ? Value(1 - double(t.read) / double(t.asked)) : Value());
    const bool known = !p.traffic.tensors.empty();
    return {{"time_us", p.time_us},
            {"tflops", p.tflops},
            {"bound", p.bound ? Value(name_of(*p.bound)) : Value()},
            {"dram_bytes", p.dram_bytes},
            {"dram_lower_bound_bytes", p.dram_lower_bound_bytes},
            {"dram_sum_of_bounds_bytes", p.dram_sum_of_bounds_bytes},
            {"dram_bytes_by_tensor", known ? Value(by_tensor) : Value()},
            {"l2_hit_rate_by_tensor", known ? Value(read) : Value()},
            {"both_hit_share", p.both_hit_share},
            {"l2_bytes", p.l2_bytes}};
}

namespace {

/// What both products ask of the units of an SM, as their own operation has it; their H may come from L2, so DRAM is the chain's matter.
void add_parts(Demand& demand, const Machine& machine, std::span<const Plan> parts) {
    double shared = 0;
    demand.tiles = 0, demand.launches = 0;
    for (const Plan& part : parts) {
        const Demand of = part.operation->demand(machine, part);
        for (const MatrixWork& work : of.matrix) {
            const auto same = [&](const MatrixWork& w) { return w.family == work.family && w.input == work.input && w.accumulate == work.accumulate; };
            const auto there = std::find_if(demand.matrix.begin(), demand.matrix.end(), same);
            if (there == demand.matrix.end()) demand.matrix.push_back(work);
            else there->flops += work.flops;
        }
        demand.issue_slots += of.issue_slots, demand.exponentials += of.exponentials;
        demand.filled_bytes += of.filled_bytes, demand.shared_read_bytes += of.shared_read_bytes;
        shared += of.shared_bytes.value_or(0);
        demand.tiles += of.tiles, demand.launches += of.launches;
    }
    if (shared > 0) demand.shared_bytes = shared;
}

}  // namespace

Demand chain_demand(const Machine& machine, const ChainPlan& plan, std::span<const Plan> parts) {
    std::vector<std::string> unknown;
    const ChainProblem& p = plan.problem;
    const ChainHardware hw = chain_hardware(machine, p.type, unknown);
    const ChainTraffic& traffic = plan.prediction.traffic;
    const bool known = !traffic.tensors.empty();
    Demand demand;
    if (is_on_chip(plan)) {
        if (!hw.family.empty()) demand.matrix.push_back({hw.family, std::string(chain_type_name(p.type)), "fp32", p.flops()});
        const double elements = double(p.m) * double(p.ff);
        const ActCost cost = act_cost(p.act);
        demand.exponentials = elements * cost.exponentials;
        demand.issue_slots = elements * cost.instructions;
        const OnChipTime t = on_chip_time(hw, p, plan.config.tile, known ? double(traffic.dram_bytes()) : 0);
        demand.filled_bytes = t.filled_bytes, demand.shared_read_bytes = t.shared_read_bytes;
        demand.shared_bytes = t.filled_bytes + t.shared_read_bytes;
        demand.l2_bytes = t.filled_bytes + double(p.y_bytes());
        demand.tiles = std::int64_t(t.tiles);
    } else {
        add_parts(demand, machine, parts);
        if (plan.config.form == ChainForm::persistent) demand.launches = 1;
        if (traffic.asked_bytes() > 0) demand.l2_bytes = double(traffic.asked_bytes());
    }
    if (known) demand.dram_bytes = double(traffic.dram_bytes());
    const auto add = [&](std::string name, TensorRole role, double bytes) {
        TensorTraffic t{name, role, bytes, std::nullopt};
        for (const ChainTensorTraffic& tensor : traffic.tensors)
            if (tensor.name == name) t.dram_bytes = std::max(bytes, double(tensor.all()));
        demand.tensors.push_back(std::move(t));
    };
    add("X", TensorRole::in, double(p.x_bytes()));
    add("W1", TensorRole::in, double(p.w1_bytes()));
    add("W2", TensorRole::in, double(p.w2_bytes()));
    add("Y", TensorRole::out, double(p.y_bytes()));
    return demand;
}

}  // namespace rooftile
