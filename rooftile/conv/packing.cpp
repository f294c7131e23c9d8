#include "rooftile/conv/packing.hpp"

#include <cmath>

#include "rooftile/core/derivation.hpp"
#include "rooftile/physics/roofs.hpp"

namespace rooftile {

double packing_bytes(const ConvProblem& p) { return p.channels_first ? 2 * p.image_bytes() : 0; }

std::int64_t packed_image_bytes(const ConvProblem& p) {
    constexpr std::int64_t line = 256;
    return p.channels_first ? (p.image.elements() * p.element_bytes() + line - 1) / line * line : 0;
}

std::optional<double> packing_us(const Machine& machine, const ConvProblem& p) {
    if (!p.channels_first) return 0;
    const double bytes = packing_bytes(p);
    Demand demand;
    demand.tensors = {{"x", TensorRole::in, bytes / 2, bytes / 2}, {"packed", TensorRole::out, bytes / 2, bytes / 2}};
    demand.l2_bytes = demand.dram_bytes = bytes;
    const RoofTime roof = roof_time(demand, machine, {.sustained = true});
    const auto gap = machine.number<Seconds>("launch.gap_stream");
    if (!roof.unknown.empty() || !roof.seconds() || !gap) return {};
    return (gap->value + *roof.seconds()) * 1e6;
}

void add_packing(Demand& demand, const ConvProblem& p) {
    if (!p.channels_first) return;
    const double bytes = packing_bytes(p);
    const auto add = [bytes](std::optional<double>& to) { if (to) *to += bytes; };
    add(demand.dram_bytes), add(demand.l2_bytes);
    demand.loaded_bytes += bytes;
    for (TensorTraffic& tensor : demand.tensors)
        if (tensor.tensor == "x") add(tensor.dram_bytes);
    ++demand.launches;
}

Step packing_step(const Machine& machine, const ConvProblem& p) {
    Derivation steps(machine);
    steps.add("packing_us", "launch.gap_stream + (image + packed image) / DRAM's rate, before all else",
              {Derivation::given("image", p.image_bytes(), "B", "the problem"), Derivation::given("packed image", p.image_bytes(), "B", "the plan"),
               steps.fact(machine.find("dram.sustained_read") ? "dram.sustained_read" : "dram.bandwidth"), steps.fact("launch.gap_stream")},
              packing_us(machine, p).value_or(std::nan("")), "us", "channels are outermost in x: a kernel of its own copies it with them innermost; channels-last tensors need none");
    return steps.take().front();
}

}  // namespace rooftile
