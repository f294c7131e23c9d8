#include "rooftile/chain/derivation.hpp"

#include <fmt/core.h>

#include <cmath>

#include "rooftile/chain/model.hpp"
#include "rooftile/core/derivation.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

class Writer {
  public:
    Writer(const Machine& machine, const ChainHardware& hw, const ChainPlan& plan)
        : steps_(machine), hw_(hw), plan_(plan), p_(plan.problem) {}

    std::vector<Step> written() {
        bounds();
        stationarity();
        if (plan_.config.form == ChainForm::on_chip) on_chip();
        else products();
        traffic();
        return steps_.take();
    }

  private:
    static Input of(std::string name, double value, std::string unit, std::string source = "the problem") {
        return Derivation::given(std::move(name), value, std::move(unit), std::move(source));
    }

    void bounds() {
        steps_.add("dram_lower_bound_bytes", "X + W1 + W2 + Y, each once   [M33]",
                   {of("X", double(p_.x_bytes()), "B"), of("W1", double(p_.w1_bytes()), "B"), of("W2", double(p_.w2_bytes()), "B"),
                    of("Y", double(p_.y_bytes()), "B")},
                   double(p_.compulsory_bytes()), "B",
                   plan_.prediction.dram_sum_of_bounds_bytes
                       ? fmt::format("the products' own bounds come to {}: the difference is the room that dataflow has",
                                     scaled_text(double(*plan_.prediction.dram_sum_of_bounds_bytes), "B"))
                       : "H need not move; more is proven of no chain");
        steps_.add("arithmetic_intensity", "FLOP / dram_lower_bound_bytes   [M1]",
                   {of("FLOP", p_.flops(), "FLOP"), of("dram_lower_bound_bytes", double(p_.compulsory_bytes()), "B", "above")},
                   p_.flops() / double(p_.compulsory_bytes()), "FLOP/B",
                   fmt::format("with H written and read once it is {}", number_text(p_.flops() / double(p_.compulsory_bytes() + 2 * p_.h_bytes()))));
    }

    /// M41: the second product output-stationary, its H through memory, or with its tile of H in place while partial sums of Y move.
    void stationarity() {
        const double tile_n = plan_.config.form == ChainForm::on_chip ? plan_.config.tile.tile_ff : plan_.config.products[0].tile_n;
        if (tile_n <= 0) return;
        constexpr double fp32_bytes = 4;
        const double through = 2.0 * double(p_.h_bytes());
        const double sums = (2 * std::ceil(double(p_.ff) / tile_n) - 1) * double(p_.m) * double(p_.d) * fp32_bytes;
        steps_.add("partial_sum_bytes", "(2 ceil(ff / tile_n) - 1) m d 4   [M41]",
                   {of("tile_n", tile_n, "columns of H", "the plan"), of("m", double(p_.m), "rows"), of("d", double(p_.d), "columns")}, sums, "B",
                   fmt::format("output-stationary twice, H is asked of L2 and written there, {}: {} is less; sums win where d < tile_n / 2 = {}, "
                               "and where they stay in registers nothing moves at all (form on_chip)",
                               scaled_text(through, "B"), through <= sums ? "that" : "the sums' traffic", number_text(tile_n / 2)));
    }

    void products() {
        for (std::size_t i = 0; i < 2; ++i) {
            const ChainProduct& c = plan_.config.products[i];
            steps_.add(i == 0 ? "first.clusters" : "second.clusters", "SMs / CTAs of a cluster",
                       {steps_.fact("sm.count"), of("cluster_m", c.cluster_m, "CTAs", "the product's plan"), of("cluster_n", c.cluster_n, "CTAs", "the product's plan")},
                       double(c.clusters), "clusters",
                       fmt::format("tiles of {}x{}x{}, order {}{}{}", c.tile_m, c.tile_n, c.tile_k, name_of_order(c.order),
                                   c.group > 1 ? fmt::format(" {}", c.group) : std::string(), c.reverse ? ", from the last tile on" : ""));
        }
        if (plan_.config.form == ChainForm::persistent)
            steps_.add("chunk_rows", "the fastest of those simulated, or about as fast with half the traffic   [M34]",
                       {steps_.fact("l2.size"), of("row of X and H", double(p_.ff + p_.d) * ChainProblem::element_bytes, "B"),
                        of("room_chunks", plan_.config.room_chunks, "chunks", "the plan")},
                       double(plan_.config.chunk_rows), "rows",
                       plan_.config.chunk_rows >= p_.m ? "all at once: the second product's tiles begin where the first one's no longer fill the GPU"
                                                       : "H of a chunk stays in L2, and its place is used again once it has been read");
    }

    void on_chip() {
        const ChainTile& t = plan_.config.tile;
        const Sm90ChainConfig k = kernel_config(p_, t);
        const ChainBlock b = chain_block(hw_, p_, t);
        const double available = role_registers(hw_, t.consumer_warpgroups()).consumer;
        steps_.add("registers_needed", "d / 2 + products tile_ff / 2 + tile_ff / 4 + beside   [M34]",
                   {of("d", k.d, "columns"), of("tile_ff", t.tile_ff, "columns", "the plan"), of("products", k.hidden_products(), "")},
                   registers_needed(p_, t), "registers",
                   fmt::format("a thread has {}: rows of Y and a block of H stay there", number_text(available)));
        steps_.add("shared_bytes", "x_stages X + stages (W1 + W2) + barriers   [M13]",
                   {of("X", k.x_bytes(), "B", "the plan"), of("W1", k.w1_bytes(), "B", "the plan"), of("W2", k.w2_bytes(), "B", "the plan"),
                    of("stages", t.stages, "blocks", "the plan"), of("x_stages", t.x_stages, "tiles", "the plan"), steps_.fact("shared.per_cta")},
                   k.shared_bytes(), "B", "every block of W1 and W2 comes from L2 for each tile of rows");
        const auto unit = [&](const char* name, double cycles, const char* formula, const char* key, std::string what) {
            steps_.add(name, formula, {steps_.fact(key)}, cycles, "clk", std::move(what));
        };
        unit("block.tensor", b.tensor, "2 tile_m tile_ff d (products + 1) / rate * wgmma.stretch", "wgmma.stretch", "both products of a block");
        const ActCost cost = act_cost(p_.act);
        unit("block.special", b.special, "tile_m tile_ff specials / rate.mufu", "rate.mufu", fmt::format("{} special functions an element", number_text(cost.exponentials)));
        unit("block.issue", b.issue, "tile_m tile_ff (instructions - specials) / lanes", "sm.partitions",
             fmt::format("{} instructions an element; products hardly go on during them", number_text(cost.instructions)));
        unit("block.shared", b.shared, "(filled + read) / shared.bandwidth", "shared.bandwidth", "copies in, operands out");
        unit("block.l2", max_known(b.port, b.l2), "filled / l2.bandwidth", "l2.bandwidth", "of an SM's share, and through its port");
        steps_.add("block.all", "sqrt(tensor^2 + special^2) + issue, or shared memory, or L2, and a step", {of("together", b.together, "clk", "above")}, b.all, "clk",
                   fmt::format("bound by {}", name_of(b.bound)));
    }

    void traffic() {
        const ChainTraffic& t = plan_.prediction.traffic;
        if (t.tensors.empty()) return;
        std::vector<Input> inputs = {steps_.fact("l2.size")};
        for (const ChainTensorTraffic& tensor : t.tensors)
            inputs.push_back(of(std::string(tensor.name), double(tensor.all()), "B", "simulated"));
        steps_.add("dram_bytes", "an LRU of one partition of L2, followed through the whole chain   [M32]", std::move(inputs), double(t.dram_bytes()), "B",
                   fmt::format("{} of the chain's lower bound", number_text(double(t.dram_bytes()) / double(p_.compulsory_bytes()))));
        if (plan_.prediction.time_us)
            steps_.add("time_us", plan_.config.form == ChainForm::on_chip ? "max(tiles of an SM, dram_bytes / bandwidth) + fill + launch"
                                  : plan_.config.form == ChainForm::persistent
                                      ? "the queue of both products' tiles, run on as many CTAs as there are SMs, and what DRAM takes longer"
                                      : "each product's time with the bytes that are left to it, one after the other, and the function's instructions",
                       {steps_.fact("dram.bandwidth"), of("dram_bytes", double(t.dram_bytes()), "B", "above")}, *plan_.prediction.time_us, "us",
                       plan_.prediction.bound ? fmt::format("bound by {}", name_of(*plan_.prediction.bound)) : "");
    }

    Derivation steps_;
    const ChainHardware& hw_;
    const ChainPlan& plan_;
    const ChainProblem& p_;
};

}  // namespace

std::vector<Step> chain_derivation(const Machine& machine, const ChainHardware& hw, const ChainPlan& plan) {
    return Writer(machine, hw, plan).written();
}

}  // namespace rooftile
