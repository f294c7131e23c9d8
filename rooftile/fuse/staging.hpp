// Where the rows of a fused kernel lie in shared memory: what its search, its source and its launch all read.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "rooftile/fuse/plan.hpp"

namespace rooftile {

/// Shared memory of one CTA, bytes. Tensor after tensor: of each what the CTA works on, as it lies in memory,
/// or slot after slot of a ring.
struct StagedRows {
    struct Tensor {
        int load = 0;  ///< place in Program::values
        std::int64_t offset = 0, bytes = 0;
    };
    std::vector<Tensor> tensors;
    std::int64_t vectors = 0;  ///< of a tensor
    /// Behind the slots of a ring: what all rows share, the CTA's part of a row, as long as the CTA stays.
    std::vector<Tensor> kept;
    std::int64_t kept_bytes = 0;
    std::int64_t bytes = 0;  ///< what a launch must ask for
    /// Of one vector of all tensors.
    std::int64_t vector_bytes() const { return vectors > 0 ? (bytes - kept_bytes) / vectors : 0; }
};

/// Empty wherever shared memory is not where rows are stored.
StagedRows staged_rows(const Program& program, const FuseConfig& config);

/// Per value of the program: whether it is a load that only the last pass over a row reads, after all
/// reductions. A ring's threads bring such tensors themselves: nothing waits for them before.
std::vector<bool> epilogue_operands(const Program& program);
/// Whether some of them have every row.
bool has_epilogue_rows(const Program& program);
/// Bytes of an element of all tensors that lie in a ring's slots.
double slot_bytes(const Program& program);

/// Whether the threads of a row together take less than a line of 128 bytes at a time: a warp's access then touches more lines than it
/// fills, and comes back to them.
bool touches_parts_of_lines(const Program& program, const FuseConfig& config);

/// What a thread works on where it takes its share of a row element by element, of the rows that its warp has in shared memory.
FuseConfig config_by_element(FuseConfig config, const Program& program);

/// Vectors that a warp's rows touch together where they lie in shared memory; else, or where they are too many, 0.
std::int64_t gathered_vectors(const Program& program, const FuseConfig& config);
/// Whether it is a dropout whose masks lie there beside the rows.
bool shares_masks(const ProgramValue& value);
/// Shared memory of a CTA for rows, masks and results.
std::int64_t gathered_bytes(const ExpressionGraph& graph, const Program& program, const FuseConfig& config);

/// Whether bulk copies can bring the rows, or the vectors that they touch: whole 16-byte units at addresses that are multiples of 16.
bool rows_by_bulk(const Program& program, int vector_width, int alignment);
/// Whether vectors of `vector_width` elements of a load are whole units of bulk copies.
bool vectors_by_bulk(const ProgramValue& load, int vector_width);
/// Whether vectors of `vector_width` elements of all tensors in a ring's slots are whole units of bulk copies.
bool slots_by_bulk(const Program& program, int vector_width);

/// "cta", "cluster" or "grid": where the values of a row are reduced; a grid's in device memory, with a workspace.
std::string_view reduce_scope_of(const FuseConfig& config);
bool reduces_across_grid(const FuseConfig& config);
/// Whether each row has CTAs of its own, all of which are resident together and reduce through device memory: every row
/// waits in shared memory, and what does not fit there in L2, for its next pass.
bool grid_resident_rows(const FuseConfig& config);
/// Then how often all threads of a row take their vectors until they have gone over it.
std::int64_t iterations_of_row(const Program& program, const FuseConfig& config);
/// Then whether passes read it again, so that iterations wait in shared memory.
bool holds_iterations(const Program& program, const FuseConfig& config);
/// Then how many iterations of the first pass a thread asks for together. Fewer leave memory idle; more were as fast or slower, but
/// for a percent of softmax (docs/facts.md 90).
int unrolled_iterations(const FuseConfig& config);
/// Then of how many rows an SM has CTAs, which all have the same part of their rows.
int rows_gathered(const Program& program, const FuseConfig& config);

/// Whether a ring's CTAs keep a load in shared memory: a whole row that all rows share, if the plan says so.
bool kept_in_ring(const ProgramValue& load, const FuseConfig& config);

/// Whether bulk copies can bring what a ring keeps: each CTA's part begins at a multiple of 16 bytes.
bool kept_by_bulk(const Program& program, const FuseConfig& config);

/// Values of a row that elements of results take from its reductions, in order.
std::vector<int> numbers_of_rows(const Program& program);

/// Whether `config.reduction_threads` of a ring's threads can reduce a row while others store the one before: all reductions are
/// done in one pass over what lies in the slots, and results of elements take numbers of the row.
bool reduction_can_specialise(const Program& program, const FuseConfig& config);

/// Vectors of a row that each CTA of a cluster takes into its ring, and of its chunks how many they are.
std::int64_t ring_part(const Program& program, const FuseConfig& config);
std::int64_t ring_chunks(const Program& program, const FuseConfig& config);

/// Whether no iteration of a row's threads, or no chunk of a ring, ends behind the row: then none is asked for.
bool in_whole_iterations(const Program& program, const FuseConfig& config);

/// Whether the teams of a ring's grid take rows as they come for them: each of a team's CTAs has a chunk of every row, with
/// which it hears whose it is, and rows are counted in 32 bits.
bool schedules_dynamically(const Program& program, const FuseConfig& config);
/// Then of how many rows the first CTA of a cluster may tell while another has not yet heard of the first of them. It tells of a
/// row when the last chunk of the one before has a slot. That its own threads gave back, of a row as many before as fill the
/// ring; where the pass that reduces gives slots back, only the row before that one is surely reduced by all.
std::int64_t rows_known_ahead(const Program& program, const FuseConfig& config);

}  // namespace rooftile
