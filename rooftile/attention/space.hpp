// Which configurations of the kernel there are, and the walls that they meet [M19].
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/attention/sm90_attention_config.hpp"
#include "rooftile/attention/hardware.hpp"
#include "rooftile/attention/plan.hpp"
#include "rooftile/tiled/registers.hpp"

namespace rooftile {

/// Registers of a consumer thread beside O, scores and probabilities: addresses, the rows' maxima and sums, positions in the
/// rings; where scores are masked, the bounds of what a row sees, too; of rows of more than two boxes, more addresses; of packed sequences, where each lies; where keys are split, the
/// sums of eight parts on their way, and more of them where several warpgroups have rows, which of long rows is less the fewer keys a block then has; of latent rows all of it, whatever the mask and the cache. From what
/// ptxas needs (tests/attention/compile).
inline constexpr int registers_beside = 28, registers_beside_masked = 40, registers_of_long_rows = 8, registers_of_packed = 8,
                     registers_of_split = 40, registers_beside_split = 96, registers_of_shared_split = 72, registers_of_long_shared_split = 52,
                     registers_beside_latent = 64;

/// Where no instruction moves registers all threads have the same.
RoleRegisters register_shares(const AttentionHardware& hw, const AttentionProblem& problem, const AttentionConfig& config);

/// The kernel's template parameter.
Sm90AttentionConfig kernel_config(const AttentionProblem& problem, const AttentionConfig& config);
/// Warpgroups that compute: each 64 rows of a tile, or, of latent rows, half of their columns.
int warpgroups_of(const AttentionProblem& problem, const AttentionConfig& config);
/// Registers of a consumer thread that the tiles need.
int registers_needed(const AttentionProblem& problem, const AttentionConfig& config);
/// Blocks of K and V that fit into shared memory beside Q, by half stages no more; NaN: unknown.
double stages_max(const AttentionHardware& hw, const AttentionProblem& problem, const AttentionConfig& config);

/// Why a configuration cannot be had.
struct AttentionWall {
    Reason reason = Reason::registers;
    double needed = 0, available = 0;
};
/// Empty where it can. Unknown numbers bind nothing.
std::optional<AttentionWall> wall_of(const AttentionHardware& hw, const AttentionProblem& problem,
                                     const AttentionConfig& config);
inline constexpr Rule one_stage{"one_stage", "with one stage nothing is loaded while a block is computed, which no time tells where the latency of a load is unknown"};
/// What a search leaves out although it meets every wall; null: nothing.
const Rule* rule_of(const AttentionHardware& hw, const AttentionProblem& problem, const AttentionConfig& config);
/// Walls that an unknown number leaves unchecked.
std::vector<std::string> unchecked_walls(const AttentionHardware& hw);

/// Calls `take` with every configuration that the request leaves open, feasible or not, but for sections of heads.
void for_each_config(const AttentionRequest& request, const AttentionProblem& problem, double sms, const std::function<void(const AttentionConfig&)>& take);

/// The same problem with the heads that share keys as rows of one, so that one tile has them all: of few queries; of latent rows as many of them as
/// fill a tile. Any other as it is.
AttentionProblem heads_as_rows(const AttentionProblem& problem);

/// A request for the same bits whatever else is in the batch, with the tiles that they need: these follow from heads, queries, dims, types,
/// mask and pages alone.
AttentionRequest with_own_tiles(const AttentionHardware& hw, const AttentionProblem& problem, const AttentionRequest& request);

/// Few queries over keys, where bytes are what counts.
bool few_queries(const AttentionProblem& problem);

/// Whether the blocks of all tiles may be shared out to CTAs, which asks for tiles that have as many; of all tiles how many those are; and
/// in how many parts a tile then is. Units are what is shared out: blocks, or pieces where a tile's cuts are its own.
bool may_split(const AttentionProblem& problem);
std::int64_t blocks_of_all(const AttentionProblem& problem, const AttentionConfig& config);
std::int64_t units_of_all(const AttentionProblem& problem, const AttentionConfig& config);
/// Blocks of the CTA that has most; and turns, each a tile or a piece of one: where sequences are short a share is of many.
std::int64_t longest_share(const AttentionProblem& problem, const AttentionConfig& config);
std::int64_t most_turns(const AttentionProblem& problem, const AttentionConfig& config);
double parts_of_a_tile(const AttentionProblem& problem, const AttentionConfig& config);
SplitBytes split_bytes(const AttentionProblem& problem, const AttentionConfig& config);

/// What the kernel counts to: tiles, of packed sequences places of tiles, whatever their lengths are.
std::int64_t most_tiles(const AttentionProblem& problem, int tile_q);

/// Heads whose keys and values fill L2, no fewer than give every SM a tile; at most all.
std::int64_t section_heads(const AttentionHardware& hw, const AttentionProblem& problem, int tile_q);

}  // namespace rooftile
