#include "rooftile/attention/derivation.hpp"

#include <fmt/core.h>

#include <cmath>

#include "rooftile/attention/formulas.hpp"
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
        parts();
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
        const RoleRegisters shares = register_shares(hw_, p_, c_);
        const int warpgroups = warpgroups_of(p_, c_);
        steps_.add(p_.latent ? attention_formula::tile_q_of_latent : attention_formula::tile_q,
                   {ours("consumer_warpgroups", warpgroups, "warpgroups"),
                    of("queries", double(p_.queries), "rows", "the problem")},
                   c_.tile_q, p_.latent ? fmt::format("{} heads a query; O of {} columns is more than one warpgroup's registers hold", p_.group, p_.dim_v)
                                        : fmt::format("each block of K and V that comes from L2 serves {} queries; more warpgroups leave each thread "
                               "fewer registers",
                               c_.tile_q));
        steps_.add(attention_formula::consumer_registers,
                   {steps_.fact("sm.registers"), steps_.fact("sm.max_registers_per_thread"), ours("producer", shares.producer, "registers"),
                    ours("consumer_warpgroups", warpgroups, "warpgroups")},
                   shares.consumer, "setmaxnreg moves what the producer does not need");
    }

    void tile_kv() {
        const int needed = registers_needed(p_, c_), beside = needed - k_.accumulator_registers();
        AttentionConfig more = c_;
        more.tile_kv += p_.latent ? 32 : 16;
        std::string limit = p_.latent ? fmt::format("{} of O, {} of scores and {} beside them; probabilities are in shared memory", k_.columns_of_warpgroup() / 2, k_.keys_of_warpgroup() / 2, beside)
                                      : fmt::format("{} of O, {} of scores, {} of probabilities and {} beside them", k_.dim_v / 2,
                                        k_.tile_kv / 2, k_.tile_kv / 4, beside);
        if (const auto wall = wall_of(hw_, p_, more)) {
            if (wall->reason == Reason::registers)
                limit += fmt::format("; {} keys would need {:.0f} where there are {:.0f}", more.tile_kv, wall->needed, wall->available);
            if (wall->reason == Reason::shared)
                limit += fmt::format("; {} keys would need {:.0f} B of shared memory where there are {:.0f}", more.tile_kv,
                                     wall->needed, wall->available);
        }
        steps_.add(p_.latent ? attention_formula::registers_needed_of_latent : attention_formula::registers_needed,
                   {ours("tile_kv", c_.tile_kv, "keys"), ours("dim_v", k_.dim_v, "elements"),
                    ours("beside", beside, "registers")},
                   needed, std::move(limit));
    }

    void stages() {
        const double stage = k_.k_bytes() + k_.v_bytes();
        steps_.add(attention_formula::stages_max,
                   {steps_.fact("shared.per_cta"), ours("Q", k_.q_stages() * k_.q_bytes() + (p_.latent ? k_.probability_bytes() : 0), "B"), ours("KV", stage, "B")},
                   stages_max(hw_, p_, c_), fmt::format("{} are used", c_.stages));
        const double load = hw_.few_loads_latency() + max_known(t_.block.port, t_.block.l2);
        steps_.add(attention_formula::load_cycles,
                   {of("latency", hw_.few_loads_latency(), "clk", "the machine: l2.latency + tma.latency_extra"), ours("KV", stage, "B"), steps_.fact("l2.port"),
                    steps_.fact("l2.bandwidth")},
                   load, std::isnan(load + t_.block.all) ? "not known: a latency or a rate is unknown"
                   : load <= (c_.stages - 1) * t_.block.all
                       ? fmt::format("hidden behind {} block{} of {:.0f} clk", c_.stages - 1, c_.stages == 2 ? "" : "s", t_.block.all)
                       : fmt::format("{} block{} of {:.0f} clk do not hide it", c_.stages - 1, c_.stages == 2 ? "" : "s", t_.block.all));
    }

    void order() {
        if (p_.packed())
            steps_.add(attention_formula::tile_places,
                       {of("rows", double(p_.query_rows()), "rows", "the problem"), ours("tile_q", c_.tile_q, "rows"), of("sequences", double(p_.batch), "sequences", "the problem")},
                       double(most_tiles(p_, c_.tile_q)) / double(p_.heads), "whatever the lengths on the device are: which sequence a place is of is looked up there, and one without rows left is passed over");
        const std::int64_t usual = section_heads(hw_, p_, c_.tile_q);
        steps_.add(c_.section_heads == usual ? attention_formula::section_heads : attention_formula::section_heads_that_end_soonest,
                   {steps_.fact("l2.size"), steps_.fact("sm.count"), ours("half of L2", double(usual), "heads"),
                    of("heads", double(p_.heads_of_all()), "heads", "the problem, all batches")},
                   double(c_.section_heads), p_.mask == AttentionMask::none
                       ? "all tiles are alike; who is done takes the next from a counter"
                       : "in a section the tiles with most blocks come first; who is done takes the next from a counter");
    }

    void parts() {
        if (c_.splits == 1) return;
        const double tiles = double(most_tiles(p_, c_.tile_q)), blocks = double(blocks_of_all(p_, c_));
        steps_.add(
            attention_formula::splits,
            {steps_.fact("sm.count"), ours("tiles", tiles, "tiles"), ours("blocks", blocks, "blocks"), steps_.fact("l2.latency")},
            c_.splits,
            c_.batch_invariant
                ? fmt::format("{} pieces a CTA; a tile is cut every {} keys, or in 128 pieces, whatever else is in the batch: in {:.0f} at "
                              "most, which who is last adds "
                              "up row by row; {}",
                              number_text(double(units_of_all(p_, c_)) / c_.splits, 3), k_.piece * c_.tile_kv, parts_of_a_tile(p_, c_),
                              ledger())
                : fmt::format(
                    "{} blocks a CTA, cut where a tile ends; a tile is in {:.0f} to {:.0f} parts, which who is last adds up row by row; {}",
                    number_text(blocks / c_.splits), parts_of_a_tile(p_, c_), parts_of_a_tile(p_, c_) + 1, ledger()));
    }

    /// What other numbers of CTAs would take, each twice the one before, and all SMs.
    std::string ledger() const {
        const int sms = std::isnan(hw_.sms) ? c_.splits : int(hw_.sms);
        std::string text;
        for (int splits = 2; splits <= sms; splits = splits == sms ? sms + 1 : std::min(2 * splits, sms)) {
            AttentionConfig other = c_;
            other.splits = splits;
            if (wall_of(hw_, p_, other)) continue;
            const double seconds = attention_time(hw_, p_, other).seconds;
            if (!std::isnan(seconds)) text += fmt::format("{}{} {} us", text.empty() ? "over " : ", ", splits, number_text(seconds * 1e6, 3));
        }
        return text.empty() ? "what others would take is not known" : text;
    }

    /// Bytes by kind: DRAM's, and what goes to L2 and back.
    std::string kinds() const {
        std::string text = fmt::format("K and V {}, Q and O {}", scaled_text(double(p_.k_bytes() + p_.v_bytes()), "B"), scaled_text(double(p_.q_bytes() + p_.o_bytes()), "B"));
        if (p_.cached) text += fmt::format(", behind the keys {}", scaled_text(tail_bytes(p_, c_), "B"));
        if (p_.paged()) text += fmt::format(", table {}", scaled_text(double(p_.batch * p_.pages_of_a_batch() * std::int64_t(sizeof(int))), "B"));
        if (c_.splits > 1) text += fmt::format("; parts, through L2, at most {}", scaled_text(double(split_bytes(p_, c_).partials), "B"));
        return text;
    }

    void units() {
        steps_.add(attention_formula::tensor_cycles,
                   {ours("tile_q", c_.tile_q, "rows"), ours("tile_kv", c_.tile_kv, "keys"), ours("dim", k_.dim, "elements"),
                    ours("dim_v", k_.dim_v, "elements"), steps_.fact(rate())},
                   t_.block.tensor, k_.dim != p_.dim || k_.dim_v != p_.dim_v ? "dim and dim_v are padded on chip" : "both products");
        steps_.add(attention_formula::exponential_cycles,
                   {ours("tile_q", c_.tile_q, "rows"), ours("tile_kv", c_.tile_kv, "keys"), ours("exponentials", p_.score ? 1 + p_.score->cost.mufu : 1, ""),
                    steps_.fact("rate.mufu")},
                   t_.block.exponential, p_.score ? fmt::format("one exponential a score, and {} of {}", number_text(p_.score->cost.mufu), printable(p_.score->expression))
                            : "one exponential a score");
        steps_.add(attention_formula::softmax_cycles,
                   {ours("exponentials", t_.block.exponential, "clk"), ours("multiply_adds", t_.block.arithmetic, "clk"),
                    ours("maxima", t_.block.comparison, "clk"), ours("issue", t_.block.issue, "clk")},
                   max_known(max_known(t_.block.exponential, t_.block.arithmetic), max_known(t_.block.comparison, t_.block.issue)),
                   p_.score ? fmt::format("two multiply-adds, one maximum, one exponential a score; a conversion of two; and {} issue slots of {}",
                                          number_text(1 + p_.score->cost.issue), printable(p_.score->expression))
                            : "two multiply-adds, one maximum, one exponential a score; a conversion of two");
        steps_.add(attention_formula::shared_cycles,
                   {steps_.fact("shared.bandwidth"), ours("one product after the other", t_.block.products, "clk")}, t_.block.shared, p_.latent ? "a block is loaded once, for scores and values; P goes through shared memory, as each warpgroup needs all of it" : "P is an operand from registers: it never goes through shared memory");
    }

    void overlap() {
        const BlockCycles& b = t_.block;
        steps_.add(attention_formula::overlap_ceiling,
                   {ours("t_mma", b.tensor, "clk"), ours("t_exp", b.exponential, "clk")}, b.ceiling(), fmt::format("what running both units at once can gain; this plan has {} of it",
                               number_text(c_.ctas_per_sm * (b.tensor + b.exponential) / b.all, 3)));
        if (p_.latent)
            steps_.add(attention_formula::chain_cycles_of_latent,
                       {ours("products", b.products, "clk"), ours("softmax", b.softmax, "clk"), steps_.fact("softmax.stretch"), steps_.fact("softmax.latency")}, b.chain,
                       "both warpgroups go through a block together: scores, softmax, values; two stages are all that shared memory holds, and a block stays until its values are added");
        else
            steps_.add(attention_formula::chain_cycles,
                   {ours("softmax", b.softmax, "clk"), steps_.fact("softmax.stretch"), steps_.fact("softmax.latency")}, b.chain,
                   "what a warpgroup's block takes where it waits for nobody: its softmax hides its product with V, or that it");
        steps_.add(attention_formula::block_cycles,
                   {ours("t_mma", b.tensor, "clk"), ours("chain", b.chain, "clk"), steps_.fact("wgmma.step")}, b.all, c_.schedule == Schedule::pingpong
                       ? "warpgroups issue products in turns: one's softmax runs during another's products"
                       : p_.latent ? "nothing of a block runs during another's but its load"
                       : "a warpgroup's softmax runs during its own product of values");
    }

    void work() {
        if (t_.work.masked_blocks > 0)
            steps_.add(attention_formula::masked_block_cycles,
                       {ours("masked blocks", t_.work.masked_blocks, "blocks"), steps_.fact("rate.alu")}, t_.masked_block, "the last keys of a tile's queries, and the first of a window: masked scores become minus infinity");
        steps_.add(attention_formula::blocks,
                   {ours("tiles", t_.work.tiles, "tiles"), ours("longest", t_.work.longest, "blocks")}, t_.work.blocks,
                   fmt::format("{} of their scores are seen",
                               percent_text(p_.visible_pairs() * double(p_.heads_counted()) / t_.work.scores)));
        steps_.add(attention_formula::balance,
                   {steps_.fact("sm.count"), ours("tiles", t_.work.tiles, "tiles")}, t_.balance, fmt::format("{} clk an SM, {} of them between tiles", number_text(t_.cycles),
                               number_text(t_.tile_turn * t_.work.tiles / hw_.sms)));
    }

    void traffic() {
        steps_.add(attention_formula::dram_bytes,
                   {of("compulsory", double(p_.compulsory_bytes()), "B", "the problem"), steps_.fact("l2.size")},
                   t_.work.dram_bytes, fmt::format("{}; the least is {}; a product, a softmax and a product as kernels of their own move {} [M24]",
                               kinds(), scaled_text(t_.work.dram_lower_bound_bytes, "B"), scaled_text(p_.unfused_bytes(), "B")));
    }

    void time() {
        steps_.add(attention_formula::clock,
                   {steps_.fact("power.sustained"), steps_.fact("power.static"),
                    steps_.fact("energy.flop." + std::string(attention_type_name(p_.type))), steps_.fact("softmax.flops")},
                   t_.clock_hz / 1e6, t_.clock_hz < hw_.top_hz ? "power binds" : "power does not bind");
        steps_.add(attention_formula::time_us,
                   {steps_.fact("launch.gap_stream"), ours("first load", first_load_cycles(hw_, p_), "clk"),
                    ours("cycles", t_.cycles, "clk"), ours("clock", t_.clock_hz / 1e6, "MHz")},
                   t_.seconds * 1e6,
                   t_.held_back > 1 ? fmt::format(
                       "bound by {}; the model alone says {} us: what a rule leaves out lost where it was measured, and is predicted no "
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
