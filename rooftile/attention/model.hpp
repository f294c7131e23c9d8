// How long a configuration takes [M19, M36, M38]: blocks on units that work side by side, tiles on SMs, the clock that power
// leaves.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "rooftile/attention/hardware.hpp"
#include "rooftile/attention/plan.hpp"

namespace rooftile {

/// Cycles of one block of a CTA, unit by unit. NaN: unknown.
struct BlockCycles {
    double tensor;       ///< both products
    double exponential;  ///< the special function unit
    double arithmetic;   ///< multiply-adds and sums of the softmax, and O's rescaling
    double comparison;   ///< maxima and conversions
    double issue;        ///< all of these instructions
    double shared;       ///< shared memory's port: operands and copies
    double port, l2;     ///< an SM's way to L2; its share of L2
    double products;     ///< both products, each no sooner than shared memory reads its operands
    double softmax;      ///< of one warpgroup, from its scores to its probabilities
    double chain;        ///< of one warpgroup: its scores, then its softmax beside its product with V
    double ceiling() const;      ///< (tensor + exponential) / max [M38]
    double all = 0;              ///< what a block takes in the steady state
    Bound bound = Bound::tensor;
};

/// What a launch does, counted.
struct AttentionWork {
    double tiles = 0, blocks = 0;  ///< of all heads
    double masked_blocks = 0;      ///< of these
    double longest = 0;            ///< blocks of a tile
    double scores = 0, matrix_flops = 0, exponentials = 0, instructions = 0;  ///< executed, with what padding and masks add
    double filled_bytes = 0, shared_read_bytes = 0, l2_bytes = 0, dram_bytes = 0, dram_lower_bound_bytes = 0;
};

struct AttentionTime {
    BlockCycles block;         ///< of a block that every query sees whole
    double masked_block = 0;   ///< cycles of one that needs the mask
    AttentionWork work;
    double tile_turn = 0;  ///< cycles of a tile beside its blocks
    double store = 0;      ///< of these, of O on its way out
    double cycles = 0;     ///< of the SM that ends last
    double balance = 0;    ///< mean over SMs of what they do, of that
    double clock_hz = 0, seconds = 0;
    double held_back = 1;  ///< of seconds, in the model's own: of what a rule leaves out and a request fixes
    Bound bound = Bound::tensor;
};

/// `masked`: of a block of which some query of the tile does not see every key.
BlockCycles block_cycles(const AttentionHardware& hw, const AttentionProblem& problem, const AttentionConfig& config,
                         bool masked = false);
AttentionWork attention_work(const AttentionHardware& hw, const AttentionProblem& problem, const AttentionConfig& config);
/// Of a cache, what blocks read behind its keys: up to the end of a page, or of a block.
double tail_bytes(const AttentionProblem& problem, const AttentionConfig& config);
/// Cycles until the first block is there. Few queries find no keys in L2; and of a cache the lengths come first, and the table of pages after
/// them, one load after the other.
double first_load_cycles(const AttentionHardware& hw, const AttentionProblem& problem);
AttentionTime attention_time(const AttentionHardware& hw, const AttentionProblem& problem, const AttentionConfig& config);

/// A configuration's time but for its sections of heads, which change the order of tiles and what stays in L2.
class TimedAttention {
  public:
    TimedAttention(const AttentionHardware& hardware, const AttentionProblem& problem, const AttentionConfig& config);

    /// No sections take less.
    AttentionTime least() const;
    AttentionTime in_sections(std::int64_t heads) const;
    /// Heads of a section: `usual` unless others are sooner by more than a thousandth.
    std::int64_t fastest_sections(std::int64_t usual) const;

  private:
    struct Tiles;
    void time_tiles(const AttentionConfig& config, const std::shared_ptr<Tiles>& tiles);
    AttentionTime with(double cycles, double dram_bytes) const;

    double clock_hz_ = 0;         ///< that the tiles run at, whatever the sections
    AttentionHardware hardware_;  ///< in cycles of the clock that the tiles run at
    const AttentionProblem* problem_;
    AttentionTime begun_;  ///< what sections do not change
    double adding_ = 0;    ///< cycles in which the last tile's parts are added up
    double busy_ = 0;      ///< cycles of all tiles together
    double tails_ = 0;     ///< tail_bytes()
    std::optional<double> dram_;  ///< bytes without these, of latent rows, which have no sections
    std::shared_ptr<const Tiles> tiles_;
};

}  // namespace rooftile
