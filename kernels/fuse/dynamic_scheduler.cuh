// Dynamic scheduler: the teams of a persistent grid take rows from a counter as they come for them. SMs that do the same are not equally fast: in
// fixed order the slowest of 131 ended 4 % behind their mean (docs/facts.md 95).
#pragma once

#include "kernels/fuse/arguments.hpp"
#include "kernels/ptx/cluster_barrier.cuh"
#include "kernels/ptx/cluster_memory.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile::fuse {

/// Stands for the row behind the last one.
constexpr unsigned beyond_last = 0xffffffffu;

/// Where the producers of a team hear of its next row.
template <int cluster, int ahead>
struct ScheduleSlots {
    unsigned long long told[ahead];
    unsigned row[ahead];
};
template <int ahead>
struct ScheduleSlots<1, ahead> {};

/// Of the one thread of each CTA that brings rows. A team, the `cluster` CTAs of a row, begins with the row of its own
/// number; which one follows the first CTA learns from a counter in the workspace, 0 before the launch and after it, and
/// tells the others. Without a workspace teams take rows in a fixed order.
/// `ahead`: rows that the first CTA may tell of while another has not yet heard of the first of them.
template <int cluster, int ahead>
class DynamicScheduler {
  public:
    using Places = ScheduleSlots<cluster, ahead>;

    /// Of thread 0, before any CTA of the cluster goes on.
    __device__ static void init(Places& places) {
        if constexpr (cluster > 1)
            for (unsigned long long& told : places.told) ptx::mbarrier_init(ptx::shared_address(&told), 1);
    }
    __device__ DynamicScheduler(Places& places, const FuseSizes& size)
        : places_(places),
          counter_(static_cast<unsigned*>(size.workspace)),
          rows_(static_cast<unsigned>(size.rows)),
          row_(known(blockIdx.x / cluster)) {}

    __device__ unsigned row() const { return row_; }
    /// Asks for the row behind this one; the answer is on its way while chunks are asked for.
    __device__ void ask() {
        const unsigned teams = gridDim.x / cluster;
        if (!first()) return;
        // As many questions as there are rows: the last one makes the counter 0 again.
        coming_ = counter_ ? teams + atomicInc(counter_, rows_ - 1) : row_ + teams;
    }
    /// When all of the row's chunks are asked for. Telling the others a row earlier was no sooner.
    __device__ void next() {
        if constexpr (cluster == 1) {
            row_ = known(coming_);
        } else {
            const unsigned told = ptx::shared_address(&places_.told[phase_]);
            if (first()) tell_all(ptx::shared_address(&places_.row[phase_]), told);
            ptx::mbarrier_arrive_expect(told, sizeof(unsigned));
            ptx::mbarrier_wait(told, round_);
            row_ = *const_cast<volatile unsigned*>(&places_.row[phase_]);
            if (++phase_ < ahead) return;
            phase_ = 0;
            round_ ^= 1;
        }
    }

  private:
    __device__ unsigned known(unsigned row) const { return row < rows_ ? row : beyond_last; }
    __device__ static bool first() {
        if constexpr (cluster == 1) return true;
        else return ptx::cluster_rank() == 0;
    }
    __device__ void tell_all(unsigned place, unsigned told) const {
        for (unsigned rank = 0; rank < cluster; ++rank)
            ptx::store_cluster_async(ptx::map_to_rank(place, rank), known(coming_),
                                     ptx::map_to_rank(told, rank));
    }

    Places& places_;
    unsigned* counter_;
    unsigned rows_, row_, coming_ = beyond_last;
    int phase_ = 0;
    unsigned round_ = 0;
};

}  // namespace rooftile::fuse
