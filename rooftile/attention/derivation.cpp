#include "rooftile/attention/derivation.hpp"

#include <fmt/core.h>

#include <cmath>

#include "rooftile/attention/space.hpp"
#include "rooftile/core/derivation.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/machine/units_text.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

class Writer {
  public:
    Writer(const Machine& machine, const AttentionHardware& hw, const AttentionProblem& problem, const AttentionConfig& config,
           const AttentionTime& time)
        : steps_(machine), hw_(hw), p_(problem), c_(config), k_(kernel_config(problem, config)), t_(time) {}

    std::vector<Step> written() {
        tile_q();
        tile_kv();
        stages();
        order();
        units();
        overlap();
        work();
        traffic();
        time();
        return steps_.take();
    }

  private:
    static Input of(std::string name, double value, std::string unit, std::string source) {
        return Derivation::given(std::move(name), value, std::move(unit), std::move(source));
    }
    static Input ours(std::string name, double value, std::string unit) {
        return of(std::move(name), value, std::move(unit), "the plan");
    }
    std::string rate() const {
        return rate_key(hw_.family.empty() ? "mma_sync" : hw_.family, attention_type_name(p_.type), "fp32");
    }

    void tile_q() {
        const RegisterShares shares = register_shares(hw_, c_.consumer_warpgroups());
        steps_.add("tile_q", "64 consumer_warpgroups   [M19]",
                   {ours("consumer_warpgroups", c_.consumer_warpgroups(), "warpgroups"),
                    of("queries", double(p_.queries), "rows", "the problem")},
                   c_.tile_q, "rows",
                   fmt::format("each block of K and V that comes from L2 serves {} queries; more warpgroups leave each thread "
                               "fewer registers",
                               c_.tile_q));
        steps_.add("consumer_registers", "(registers / 128 - producer) / consumer_warpgroups, down to 8",
                   {steps_.fact("sm.registers"), ours("producer", shares.producer, "registers"),
                    ours("consumer_warpgroups", c_.consumer_warpgroups(), "warpgroups")},
                   shares.consumer, "registers", "setmaxnreg moves what the producer does not need");
    }

    void tile_kv() {
        const int needed = registers_needed(p_, c_), beside = needed - k_.accumulator_registers();
        AttentionConfig more = c_;
        more.tile_kv += 16;
        std::string limit = fmt::format("{} of O, {} of scores, {} of probabilities and {} beside them", k_.dim_v / 2,
                                        k_.tile_kv / 2, k_.tile_kv / 4, beside);
        if (const auto wall = wall_of(hw_, p_, more)) {
            if (wall->reason == Reason::registers)
                limit += fmt::format("; {} keys would need {:.0f} where there are {:.0f}", more.tile_kv, wall->needed, wall->available);
            if (wall->reason == Reason::shared)
                limit += fmt::format("; {} keys would need {:.0f} B of shared memory where there are {:.0f}", more.tile_kv,
                                     wall->needed, wall->available);
        }
        steps_.add("registers_needed", "dim_v / 2 + tile_kv / 2 + tile_kv / 4 + beside   [M19]",
                   {ours("tile_kv", c_.tile_kv, "keys"), ours("dim_v", k_.dim_v, "elements"),
                    ours("beside", beside, "registers")},
                   needed, "registers", std::move(limit));
    }

    void stages() {
        const double stage = k_.k_bytes() + k_.v_bytes();
        steps_.add("stages_max", "(shared - Q) / (K + V), rows in boxes of 128 B   [M19]",
                   {steps_.fact("shared.per_cta"), ours("Q", k_.q_bytes(), "B"), ours("K + V", stage, "B")},
                   stages_max(hw_, p_, c_), "stages", fmt::format("{} are used", c_.stages));
        const double load = hw_.load_latency + max_known(t_.block.port, t_.block.l2);
        steps_.add("load_cycles", "latency + (K + V) / max(port, share of L2)",
                   {of("latency", hw_.load_latency, "clk", "the machine: a TMA load that L2 serves"), steps_.fact("l2.port"),
                    steps_.fact("l2.bandwidth")},
                   load, "clk",
                   load <= (c_.stages - 1) * t_.block.all
                       ? fmt::format("hidden behind {} block{} of {:.0f} clk", c_.stages - 1, c_.stages == 2 ? "" : "s", t_.block.all)
                       : fmt::format("{} block{} of {:.0f} clk do not hide it", c_.stages - 1, c_.stages == 2 ? "" : "s", t_.block.all));
    }

    void order() {
        if (p_.packed())
            steps_.add("tile_places", "rows / tile_q + sequences, of a head",
                       {of("rows", double(p_.query_rows()), "rows", "the problem"), of("sequences", double(p_.batch), "sequences", "the problem")},
                       double(most_tiles(p_, c_.tile_q)) / double(p_.heads), "places",
                       "whatever the lengths are that stand on the device: which sequence a place is of is looked up there, and one without rows left is passed over");
        const std::int64_t usual = section_heads(hw_, p_, c_.tile_q);
        steps_.add("section_heads", c_.section_heads == usual ? "heads whose K and V fill half of L2's partition, no fewer than give each SM a tile"
                                                              : "heads whose tiles end soonest, of 1 to all",
                   {steps_.fact("l2.size"), steps_.fact("sm.count"), ours("half of L2", double(usual), "heads"),
                    of("heads", double(p_.heads_of_all()), "heads", "the problem, all batches")},
                   double(c_.section_heads), "heads",
                   p_.mask == AttentionMask::none
                       ? "all tiles are alike; who is done takes the next from a counter"
                       : "in a section the tiles with most blocks come first; who is done takes the next from a counter");
    }

    void units() {
        steps_.add("tensor_cycles", "2 tile_q tile_kv (dim + dim_v) / rate, of a block",
                   {ours("tile_q", c_.tile_q, "rows"), ours("tile_kv", c_.tile_kv, "keys"), ours("dim", k_.dim, "elements"),
                    ours("dim_v", k_.dim_v, "elements"), steps_.fact(rate())},
                   t_.block.tensor, "clk",
                   k_.dim != p_.dim || k_.dim_v != p_.dim_v ? "dim and dim_v are padded on chip" : "both products");
        steps_.add("exponential_cycles", "tile_q tile_kv / rate.mufu, of a block", {steps_.fact("rate.mufu")},
                   t_.block.exponential, "clk",
                   p_.score ? fmt::format("one exponential a score, and {} of {}", number_text(p_.score->cost.mufu), printable(p_.score->expression))
                            : "one exponential a score");
        steps_.add("softmax_cycles", "the most of exponentials, multiply-adds, maxima and issue slots, of a block",
                   {ours("exponentials", t_.block.exponential, "clk"), ours("multiply-adds", t_.block.arithmetic, "clk"),
                    ours("maxima", t_.block.comparison, "clk"), ours("issue", t_.block.issue, "clk")},
                   max_known(max_known(t_.block.exponential, t_.block.arithmetic), max_known(t_.block.comparison, t_.block.issue)),
                   "clk",
                   p_.score ? fmt::format("two multiply-adds, one maximum, one exponential a score; a conversion of two; and {} issue slots of {}",
                                          number_text(1 + p_.score->cost.issue), printable(p_.score->expression))
                            : "two multiply-adds, one maximum, one exponential a score; a conversion of two");
        steps_.add("shared_cycles", "(copies + operands of products) / shared.bandwidth, of a block",
                   {steps_.fact("shared.bandwidth"), ours("one product after the other", t_.block.products, "clk")}, t_.block.shared, "clk",
                   "P is an operand from registers: it never goes through shared memory");
    }

    void overlap() {
        const BlockCycles& b = t_.block;
        steps_.add("overlap_ceiling", "(t_mma + t_exp) / max(t_mma, t_exp)   [M38]",
                   {ours("t_mma", b.tensor, "clk"), ours("t_exp", b.exponential, "clk")}, b.ceiling(), "1",
                   fmt::format("what running both units at once can gain; this plan has {} of it",
                               number_text((b.tensor + b.exponential) / b.all, 3)));
        steps_.add("chain_cycles", "t_scores + max(t_values, softmax), of one warpgroup",
                   {ours("softmax", b.softmax, "clk"), steps_.fact("softmax.stretch"), steps_.fact("softmax.latency")}, b.chain,
                   "clk", "what a warpgroup's block takes where it waits for nobody: its softmax hides its product with V, or that it");
        steps_.add("block_cycles", "max(t_mma, chain, and every other unit) + step   [M36, M38]",
                   {ours("t_mma", b.tensor, "clk"), ours("chain", b.chain, "clk"), steps_.fact("wgmma.step")}, b.all, "clk",
                   c_.schedule == Schedule::pingpong
                       ? "warpgroups issue products in turns: one's softmax runs beside another's products"
                       : "a warpgroup's softmax runs beside its own product of values");
    }

    void work() {
        if (t_.work.masked_blocks > 0)
            steps_.add("masked_block_cycles", "block_cycles with 2 more comparisons a score (4 of a window) and one of each element of O",
                       {ours("masked blocks", t_.work.masked_blocks, "blocks"), steps_.fact("rate.alu")}, t_.masked_block, "clk",
                       "the last keys of a tile's queries, and the first of a window: scores behind the mask become minus infinity");
        steps_.add("blocks", "blocks of keys that some query of a tile sees, over all tiles",
                   {ours("tiles", t_.work.tiles, "tiles"), ours("longest", t_.work.longest, "blocks")}, t_.work.blocks,
                   "blocks",
                   fmt::format("{} of their scores are seen",
                               percent_text(p_.visible_pairs() * double(p_.heads_of_all()) / t_.work.scores)));
        steps_.add("balance", "mean over SMs of their work, of the last one's",
                   {steps_.fact("sm.count"), ours("tiles", t_.work.tiles, "tiles")}, t_.balance, "1",
                   fmt::format("{} clk an SM, {} of them between tiles", number_text(t_.cycles),
                               number_text(t_.tile_turn * t_.work.tiles / hw_.sms)));
    }

    void traffic() {
        steps_.add("dram_bytes", "Q, K, V once and O once, and K and V again where a section outgrows L2   [M33]",
                   {of("compulsory", double(p_.compulsory_bytes()), "B", "the problem"), steps_.fact("l2.size")},
                   t_.work.dram_bytes, "B",
                   fmt::format("the least is {}; a product, a softmax and a product as kernels of their own move {} [M24]",
                               scaled_text(t_.work.dram_lower_bound_bytes, "B"), scaled_text(p_.unfused_bytes(), "B")));
    }

    void time() {
        steps_.add("clock", "where static power and the work's energy are power.sustained's, at most clock.tensor",
                   {steps_.fact("power.sustained"), steps_.fact("power.static"),
                    steps_.fact("energy.flop." + std::string(attention_type_name(p_.type))), steps_.fact("softmax.flops")},
                   t_.clock_hz / 1e6, "MHz", t_.clock_hz < hw_.top_hz ? "power binds" : "power does not bind");
        steps_.add("time_us", "launch + 2 latencies + max(cycles / clock, dram_bytes / bandwidth)",
                   {steps_.fact("launch.gap_stream"), ours("cycles", t_.cycles, "clk"),
                    ours("clock", t_.clock_hz / 1e6, "MHz")},
                   t_.seconds * 1e6, "us",
                   t_.held_back > 1 ? fmt::format("bound by {}; the model alone says {} us: what a rule leaves out lost where it was measured, and is told no "
                                                  "sooner than the best that the search takes",
                                                  name_of(t_.bound), number_text(t_.seconds / t_.held_back * 1e6))
                                    : fmt::format("bound by {}", name_of(t_.bound)));
    }

    Derivation steps_;
    const AttentionHardware& hw_;
    const AttentionProblem& p_;
    const AttentionConfig& c_;
    Sm90AttentionConfig k_;
    const AttentionTime& t_;
};

}  // namespace

std::vector<Step> attention_derivation(const Machine& machine, const AttentionHardware& hw, const AttentionProblem& problem,
                                       const AttentionConfig& config, const AttentionTime& time) {
    return Writer(machine, hw, problem, config, time).written();
}

}  // namespace rooftile
