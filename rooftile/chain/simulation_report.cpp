#include "rooftile/chain/simulation_report.hpp"

#include <fmt/core.h>

#include "rooftile/chain/plan_text.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/report/svg.hpp"

namespace rooftile {
namespace {

using Align = Table::Align;

std::string share_text(double part, double whole) { return whole > 0 ? percent_text(part / whole) : "-"; }

/// Of a part of the time: of what was asked, what was there. Less than 0: nothing was asked.
double hit_rate(const ChainSample& from, const ChainSample& to, std::size_t tensor) {
    const double asked = double(to.asked[tensor] - from.asked[tensor]), read = double(to.read[tensor] - from.read[tensor]);
    return asked > 0 ? 1 - read / asked : -1;
}

ChainSample nothing(const ChainSample& like) {
    ChainSample s;
    s.asked.assign(like.asked.size(), 0), s.read.assign(like.read.size(), 0);
    return s;
}

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

std::string chain_simulation_svg(const ChainProblem& problem, const ChainPlan& plan) {
    constexpr double left = 60, top = 60, width = 720, height = 240, foot = 60;
    constexpr svg::Color colors[] = {{33, 102, 172}, {27, 120, 55}, {178, 24, 43}, {118, 42, 131}, {0, 0, 0}};
    const ChainTraffic& t = plan.prediction.traffic;
    std::string out = svg::begin(left + width + 120, top + height + foot);
    out += svg::text(left, 24, 14, fmt::format("{}: {}", short_name(problem), label_of(plan.config)), "font-weight=\"bold\"");
    out += svg::text(left, 42, 11, "hits of what is asked of L2, by tensor, over the steps of tiles; grey: steps whose operands both hit");
    if (t.samples.empty()) return out + "</svg>\n";
    const double all = double(t.samples.back().steps);
    const auto at_x = [&](std::int64_t steps) { return left + width * double(steps) / all; };
    const auto at_y = [&](double rate) { return top + height * (1 - rate); };
    for (const double rate : {0.0, 0.5, 1.0}) out += svg::text(left - 6, at_y(rate) + 4, 10, percent_text(rate), "text-anchor=\"end\"");
    ChainSample before = nothing(t.samples.front());
    for (const ChainSample& s : t.samples) {
        const double both = double(s.both_hits - before.both_hits) / double(s.steps - before.steps);
        out += svg::rect(at_x(before.steps), at_y(both), at_x(s.steps) - at_x(before.steps), top + height - at_y(both), {230, 230, 230},
                         fmt::format("step {}: {} both hit", s.steps, percent_text(both)));
        before = s;
    }
    for (std::size_t tensor = 0; tensor < t.tensors.size(); ++tensor) {
        if (t.tensors[tensor].asked == 0) continue;
        std::string path;
        bool open = false;
        before = nothing(t.samples.front());
        for (const ChainSample& s : t.samples) {
            const double rate = hit_rate(before, s, tensor);
            if (rate >= 0) path += fmt::format("{}{:.1f} {:.1f} L{:.1f} {:.1f} ", open ? "L" : "M", at_x(before.steps), at_y(rate), at_x(s.steps), at_y(rate));
            open = rate >= 0;
            before = s;
        }
        const std::string color = svg::hex(colors[tensor]);
        out += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>\n", path, color);
        out += svg::text(left + width + 12, top + 16 + 18 * double(tensor), 12,
                         fmt::format("{} {}", t.tensors[tensor].name, percent_text(1 - double(t.tensors[tensor].read) / double(t.tensors[tensor].asked))),
                         fmt::format("style=\"fill:{}\"", color));
    }
    return out + svg::text(left + width / 2, top + height + 24, 12, "steps of tiles", "text-anchor=\"middle\"") + "</svg>\n";
}

}  // namespace rooftile
