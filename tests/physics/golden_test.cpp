// What plans side by side, changed numbers and workers come to, as it was when somebody last looked: of drawn ones (tests/golden/physics.txt).
#include "tests/golden.hpp"

#include <fmt/format.h>

#include <cmath>

#include "rooftile/core/operation.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/physics/beside.hpp"
#include "rooftile/physics/what_if.hpp"
#include "rooftile/physics/workers.hpp"

namespace rooftile {
namespace {

std::string rounded(double value) { return fmt::format("{:.4g}", value); }

PlanSet drawn_plans(Random& random, const Operation& op, const std::shared_ptr<const Machine>& machine, int top) {
    for (;;) {
        PlanSet set = op.derive(machine, op.draw(random, {}), op.request(Given(Given::Named::by_key), {.top = top}));
        if (!set.plans.empty()) return set;
    }
}

std::string beside(Random& random) {
    static constexpr const char* ids[] = {"h200-sxm", "h100-sxm", "a100-80-sxm", "h20"};
    const auto machine = std::make_shared<const Machine>(machine_by_id(random.one_of(ids)));
    std::string text = machine->id, why;
    std::vector<Plan> plans;
    for (int i = 0; i < 2; ++i) {
        const Operation& op = *random.one_of(operations());
        plans.push_back(drawn_plans(random, op, machine, 1).plans.front());
        text += fmt::format("{} {} {}", i ? " beside " : ": ", op.name(), op.short_name(plans.back().problem));
    }
    const auto s = side_by_side(*machine, plans[0], plans[1], why);
    if (!s) return text + ": " + why + "\n";
    text += fmt::format("\n  {} + {} SMs, in turn {} together {} at {}, bound {}, ceiling {}; {}\n", s->sms[0], s->sms[1],
                        rounded(s->in_turn), rounded(s->together), rounded(s->clock_hz), s->bound, rounded(s->ceiling), s->against);
    for (const UnitShares& p : s->parts)
        text += fmt::format("  {} s: SMs {}, L2 {}, DRAM {}, by SMs {}, launch {}, {} Hz, {} J at {}\n", rounded(p.seconds),
                            rounded(p.of_sms), rounded(p.of_l2), rounded(p.of_dram), rounded(p.dram_by_sms), rounded(p.launch),
                            rounded(p.clock_hz), rounded(p.joules), rounded(p.stated_hz));
    return text;
}

std::string wins_if(Random& random, const Operation& op) {
    const auto machine = std::make_shared<const Machine>(machine_by_id("h200-sxm"));
    const PlanSet set = drawn_plans(random, op, machine, 4);
    if (!set.plans.front().parts.empty()) return {};  // plans inside plans take long
    std::string text = fmt::format("{} {}\n", op.name(), op.short_name(set.problem));
    const WinsIf wins = counterfactuals(*machine, set.plans);
    for (std::size_t i = 0; i < wins.size(); ++i) {
        text += "  " + op.label(set.plans[i]) + ":";
        if (!wins[i]) text += " as it is";
        else
            for (const Counterfactual& c : *wins[i])
                text += fmt::format(" {} {} -> {} {};", c.key, rounded(c.value), rounded(c.threshold), c.unit);
        text += "\n";
    }
    return text;
}

std::string workers(Random& random) {
    static constexpr const char *units[] = {"port", "tensor", "special"}, *ids[] = {"h100-sxm", "a100-80-sxm", "rtx4090", "b200"};
    std::vector<WorkerStage> stages;
    std::string text;
    if (random.coin()) {
        for (std::int64_t i = random.whole(1, 5); i-- > 0;)
            stages.push_back({"s", random.one_of(units), double(random.whole(1, 9)), random.coin()});
    } else {
        const char* id = random.one_of(ids);
        stages = stages_of(machine_by_id(id), {.work = random.coin() ? Work::softmax : Work::silu,
                                               .m = int(64 * random.whole(1, 4)),
                                               .n = int(16 * random.whole(1, 16)),
                                               .dim = 16 * random.whole(1, 100)});
        text = std::string(id) + " ";
    }
    for (const WorkerStage& s : stages) text += fmt::format("{} {}{} ", s.unit, rounded(s.cycles), s.asynchronous ? " async" : "");
    const int in_flight = int(random.whole(1, 3));
    text += fmt::format("in flight {}: ceiling {}", in_flight, rounded(workers_ceiling(stages, in_flight)));
    for (const auto& [count, phase] : {std::pair{1, Phase::apart}, {2, Phase::together}, {2, Phase::apart}}) {
        const WorkersRun run = simulate_workers(stages, count, phase, in_flight);
        text += "; " + rounded(run.cycles_per_block);
        for (const auto& b : run.busy) text += " " + rounded(b.share);
    }
    return text + "\n";
}

TEST(PhysicsGolden, IsAsBefore) {
    Random random(470110);
    std::string text;
    for (int i = 0; i < 5; ++i) text += beside(random);
    for (const Operation* op : operations())
        for (int i = 0; i < 2; ++i) text += wins_if(random, *op);
    for (int i = 0; i < 40; ++i) text += workers(random);
    expect_golden("physics.txt", text);
}

}  // namespace
}  // namespace rooftile
