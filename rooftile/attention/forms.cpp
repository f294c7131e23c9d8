// The three inequalities as a form for attention: an outer loop over queries, an inner one over keys and values [M19].
#include "rooftile/attention/formulas.hpp"
#include "rooftile/core/shared_formulas.hpp"

namespace rooftile {
namespace {

namespace f = attention_formula;

constexpr Formula intensity{"arithmetic_intensity", "", "FLOP/B",
                            "I = 2 * tile_q * tile_kv * (dim + dim_v) / KV: of a block of keys against what serves K and V; query heads "
                            "that share them raise it   [M1, M19]",
                            {{{"tile_q", "rows", "below, times the heads that share"}, {"tile_kv", "keys", "below"},
                              {"dim", "elements", "the problem"},
                              {"dim_v", "elements", "the problem"}, {"KV", "B", "tile_kv * (dim + dim_v) * b"}}}};
constexpr Formula tile_kv{"tile_kv", "", "keys", "choose: 64 to 192; the more, the fewer registers are left; stages_max below   [M19]",
    {}};
constexpr Formula consumer_warpgroups{"consumer_warpgroups", "", "warpgroups", "choose: 1 to 3, of 64 queries each   [M19]", {}};
constexpr Formula hidden{"verdict", "", "", "load_cycles <= (stages - 1) * block_cycles, 2 <= stages <= stages_max   [M5, M19]",
                         {{{"load_cycles", "clk", "above"}, {"stages", "stages", "choose"}, {"block_cycles", "clk", "above"}}}};

}  // namespace

std::vector<FormulaPage> attention_forms() {
    return {{"Form: attention",
             "Blocks of queries outside, blocks of keys and values inside: both products and the softmax between them on chip. O, "
             "scores and their "
             "row maxima and sums are in registers, Q and stages of K and V in shared memory; large heads squeeze the tile.",
             {{"1 Bottleneck", {&f::tensor_cycles, &f::exponential_cycles, &f::overlap_ceiling, &shared_formula::intensity_critical}},
              {"2 Unknowns", {&consumer_warpgroups, &f::tile_q, &tile_kv}},
              {"3 Capacity: does it fit?", {&f::consumer_registers, &f::registers_needed, &f::stages_max}},
              {"4 Intensity: can the memory feed it?", {&intensity, &f::shared_cycles, &f::dram_bytes}},
              {"5 Latency: is K and V's load hidden, and the softmax?", {&f::softmax_cycles, &f::chain_cycles, &f::block_cycles,
                  &f::load_cycles, &hidden}},
              {"6 Output", {&f::section_heads, &f::blocks, &f::balance, &f::time_us}}}}};
}

}  // namespace rooftile
