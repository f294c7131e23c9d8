#include "rooftile/chain/simulation_report.hpp"

#include <fmt/core.h>

#include "rooftile/chain/plan_text.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

using Align = Table::Align;

std::string share_text(double part, double whole) { return whole > 0 ? percent_text(part / whole) : "-"; }

}  // namespace

std::string chain_simulation_text(const PlanSet& plans, const Plan& plan, const Terminal& terminal) {
    const ChainPlan& own = plan.own.as<ChainPlan>();
    const ChainTraffic& t = own.prediction.traffic;
    std::string out = chain_heading_text(own.problem, plans.machine_id, plans.machine_name, terminal) + "\n";
    out += entry("plan", label_of(own.config), terminal) + "\n";
    Table table({{"tensor", Align::left}, {"asked of L2"}, {"hit"}, {"DRAM read"}, {"DRAM written"}});
    for (const ChainTensorTraffic& tensor : t.tensors)
        table.row({{std::string(tensor.name)},
                   {scaled_text(double(tensor.asked), "B")},
                   {share_text(double(tensor.asked - tensor.read), double(tensor.asked))},
                   {scaled_text(double(tensor.read), "B")},
                   {scaled_text(double(tensor.written), "B")}});
    out += table.text(terminal) + "\n";
    out += entry("both hit", fmt::format("{} of the steps of tiles find both operands in L2 or on their way [M40]", share_text(double(t.both_hits), double(t.steps))),
                 terminal);
    return out + entry("DRAM", fmt::format("{}, {} of the chain's bound", scaled_text(double(t.dram_bytes()), "B"),
                                           number_text(double(t.dram_bytes()) / double(own.problem.compulsory_bytes()), 3)),
                       terminal);
}

Record chain_simulation_record(const ChainTraffic& traffic) {
    List samples;
    for (const ChainSample& s : traffic.samples) {
        Record by_tensor;
        for (std::size_t i = 0; i < s.asked.size(); ++i)
            by_tensor.emplace_back(traffic.tensors[i].name, Record{{"asked_bytes", s.asked[i]}, {"read_bytes", s.read[i]}});
        samples.push_back(Record{{"steps", s.steps}, {"both_hits", s.both_hits}, {"tensors", by_tensor}});
    }
    Record tensors;
    for (const ChainTensorTraffic& t : traffic.tensors)
        tensors.emplace_back(t.name, Record{{"asked_bytes", t.asked}, {"read_bytes", t.read}, {"written_bytes", t.written}});
    return {{"tensors", tensors}, {"steps", traffic.steps}, {"both_hits", traffic.both_hits}, {"samples", samples}};
}

}  // namespace rooftile
