#include "rooftile/gemm/roof_steps.hpp"

#include <cmath>

#include "rooftile/core/derivation.hpp"
#include "rooftile/gemm/evaluate_plan.hpp"
#include "rooftile/gemm/packing.hpp"
#include "rooftile/machine/query.hpp"

namespace rooftile {
namespace {

std::string top_clock_key(const Machine& machine) {
    return machine.find("clock.tensor") ? "clock.tensor" : "clock.boost";
}
std::string dram_key(const Machine& machine) {
    return machine.find("dram.sustained_read") ? "dram.sustained_read" : "dram.bandwidth";
}

DatasheetRoof datasheet_roof(const Machine& machine, const PlanEvaluation& r) {
    const std::string type(rate_name_of(r.gemm.problem.a_type));
    const auto clock = machine.number<Clock>(top_clock_key(machine));
    const auto peak = peak_flops(machine, r.family, type, "fp32", clock);
    const auto bytes = dram_bandwidth(machine, clock);
    return {peak ? peak->value : unknown_number, bytes ? bytes->value : unknown_number};
}

// The numbers of the machine and of the plan that each step came from.
class Inputs {
  public:
    Inputs(const Machine& machine, const PlanEvaluation& r, const DatasheetRoof& roof)
        : machine_(machine), facts_(machine), r_(r), roof_(roof) {}

    std::vector<Input> of(Term term) const {
        const TiledGemm& g = r_.gemm;
        const std::string rate = rate_key(r_.family, rate_name_of(g.problem.a_type), "fp32");
        switch (term) {
            case Term::datasheet:
                return roof_inputs(rate);
            case Term::measured:
                return {given("sm_clock", r_.time.clock_hz / 1e6, "MHz"), facts_.fact(rate),
                        facts_.fact("sm.count"), facts_.fact(dram_key(machine_))};
            case Term::tiles:
                return {given("tiles", double(g.waves.tiles), ""),
                        given("k-steps", double(k_steps(g.tile, g.problem)) * g.tile.k_parts(), ""),
                        given("step", g.step.tensor, "cycles")};
            case Term::waves:
                return wave_inputs();
            case Term::shared:
                return facts({"shared.bandwidth"});
            case Term::l2:
                return facts({"l2.bandwidth", "l2.port"});
            case Term::dram: {
                std::vector<Input> inputs{given("dram_bytes", g.dram, "B"), facts_.fact(dram_key(machine_))};
                add_known(inputs, {"dram.per_sm"});
                const TileGrid tiles = cluster_grid(g.problem, g.tile.tile_m, g.tile.tile_n, 1, 1);
                if (streams_alone(g.hw, tiles, g.tile.cluster_m * g.tile.cluster_n, g.tile.k_parts())) add_known(inputs, {"dram.per_sm_alone"});
                return inputs;
            }
            case Term::latency:
                return latency_inputs();
            case Term::turn:
                return facts({"wgmma.turn"});
            case Term::exchange:
                return exchange_inputs();
            case Term::epilogue:
                return by_tma() ? facts({"tma.store_latency", "l2.port"}) : facts({"l2.port"});
            case Term::fill: {
                std::vector<Input> inputs = latency_facts();
                if (g.tile.cluster_m * g.tile.cluster_n * g.tile.split_k > 1)
                    inputs.push_back(facts_.fact("barrier.cluster"));
                return inputs;
            }
            case Term::launch:
                return launch_inputs();
            case Term::packing: {
                std::vector<Input> inputs{given("read and written", packing_traffic(g.problem, r_.packed), "B")};
                add_known(inputs, {"dram.sustained_copy", "launch.gap_stream", "dram.latency"});
                return inputs;
            }
        }
        return {};
    }

  private:
    bool by_tma() const { return r_.family != "mma_sync"; }  ///< else copies are cp.async's
    static Input given(std::string name, double value, std::string unit) {
        return Derivation::given(std::move(name), value, std::move(unit), "the derivation");
    }
    std::vector<Input> facts(std::initializer_list<const char*> keys) const {
        std::vector<Input> inputs;
        for (const char* key : keys) inputs.push_back(facts_.fact(key));
        return inputs;
    }
    void add_known(std::vector<Input>& inputs, std::initializer_list<const char*> keys) const {
        for (const char* key : keys)
            if (machine_.find(key)) inputs.push_back(facts_.fact(key));
    }
    std::vector<Input> roof_inputs(const std::string& rate) const {
        const std::string peak = peak_key(r_.family, rate_name_of(r_.gemm.problem.a_type), "fp32");
        std::vector<Input> inputs;
        if (machine_.find(peak)) inputs.push_back(facts_.fact(peak));
        else
            inputs = {given("peak", roof_.flops, "FLOP/s"), facts_.fact(rate), facts_.fact("sm.count"),
                      facts_.fact(top_clock_key(machine_))};
        inputs.push_back(facts_.fact("dram.bandwidth"));
        return inputs;
    }
    std::vector<Input> exchange_inputs() const {
        std::vector<Input> inputs;
        if (r_.gemm.tile.split_k > 1) inputs = facts({"shared.bandwidth", "dsmem.bandwidth", "dsmem.latency", "barrier.cluster"});
        if (r_.gemm.tile.grid_split_k > 1)
            for (const char* key : {"l2.port", "l2.latency"}) inputs.push_back(facts_.fact(key));
        return inputs;
    }
    std::vector<Input> wave_inputs() const {
        const TiledGemm& g = r_.gemm;
        std::vector<Input> inputs{given("waves", g.waves.waves, ""), given("slots", g.waves.slots, "")};
        const int cluster = g.tile.cluster_m * g.tile.cluster_n * g.tile.split_k;
        if (cluster == 1) return inputs;
        const std::string key = "cluster.sms_" + std::to_string(cluster);
        inputs.push_back(facts_.fact(machine_.facts.contains(key) ? key : std::string("sm.per_gpc")));
        return inputs;
    }
    std::vector<Input> latency_facts() const {
        if (by_tma() && machine_.find("tma.latency_loaded")) return facts({"tma.latency_loaded"});
        std::vector<Input> inputs = facts({"dram.latency"});
        if (by_tma()) add_known(inputs, {"tma.latency_extra"});
        return inputs;
    }
    std::vector<Input> latency_inputs() const {
        std::vector<Input> inputs = latency_facts();
        if (by_tma() && machine_.find("tma.latency_loaded"))
            add_known(inputs, {"tma.latency_loaded_l2"});
        inputs.push_back(given("stages", r_.gemm.stages, ""));
        if (by_tma()) add_known(inputs, {"wgmma.step"});
        return inputs;
    }

    std::vector<Input> launch_inputs() const {
        std::vector<Input> inputs = facts({"launch.gap_stream"});
        if (!r_.following.programmatic && !std::isnan(r_.gemm.hw.programmatic_saving))
            inputs.push_back(facts_.fact("launch.programmatic_saving"));
        if (r_.following.early_weights) add_known(inputs, {"l2.latency", "dram.latency"});
        return inputs;
    }

    const Machine& machine_;
    Derivation facts_;
    const PlanEvaluation& r_;
    const DatasheetRoof& roof_;
};

// What a number of nothing does not say of itself.
std::string note_of(Term term, const GemmHardware& hw) {
    const auto unless = [](double number, const char* key) {
        return std::isnan(number) ? std::string("not charged: ") + key + " is unknown" : std::string();
    };
    switch (term) {
        case Term::launch:
            return unless(hw.launch_seconds, "launch.gap_stream");
        case Term::turn:
            return unless(hw.tile_turn, "wgmma.turn");
        case Term::l2:
            return unless(hw.l2_port, "l2.port");
        default:
            return {};
    }
}

}  // namespace

std::vector<RoofStep> gemm_roof_steps(const Machine& machine, const GemmPlan& plan) {
    const std::optional<PlanEvaluation> evaluation = evaluate_plan(machine, plan);
    // Of packed weights the terms are of another kind: one step for each unit.
    if (!evaluation || evaluation->gemm.problem.is_quantised()) return {};
    const PlanEvaluation& r = *evaluation;
    const DatasheetRoof roof = datasheet_roof(machine, r);
    const Inputs inputs(machine, r, roof);
    std::vector<RoofStep> steps;
    for (const AttainStep& s : attainability(r.gemm, roof, r.time.clock_hz)) {
        const bool asked = (s.term != Term::turn || r.family == "wgmma")
                           && (s.term != Term::exchange || r.gemm.tile.k_parts() > 1);
        steps.push_back({std::string(name_of(s.term)), s.time_ns, s.cost_ns,
                         asked ? inputs.of(s.term) : std::vector<Input>(),
                         asked ? note_of(s.term, r.gemm.hw) : std::string()});
    }
    return steps;
}

}  // namespace rooftile
