// The launches of a row program that pass rows through rings of chunks in shared memory.
#pragma once

#include <optional>

#include "rooftile/fuse/search.hpp"
#include "rooftile/fuse/staging.hpp"

namespace rooftile {

/// What a search for launches knows.
struct FuseSearchContext {
    const Machine& machine;
    const FuseHardware& hw;
    const Program& program;
    const FuseRequest& request;
    const ProgramWork& work;
    const FusedBytes& bytes;
    int vector_width;  ///< elements of a vector
};

/// Whether a request leaves that value open or wants it.
template <class T>
bool asked(const std::optional<T>& wanted, T value) {
    return !wanted || *wanted == value;
}

/// The same of everything that a search tries in turn; stages and CTAs of an SM follow from those.
inline bool as_asked(const FuseRequest& r, const FuseConfig& c) {
    return asked(r.vectors_per_thread, c.vectors_per_thread) && asked(r.threads, c.threads)
           && asked(r.reduction_threads, c.reduction_threads) && asked(r.cluster, c.cluster) && asked(r.row_splits, c.row_splits)
           && asked(r.row_storage, c.row_storage) && asked(r.persistent, c.persistent)
           && asked(r.grid_reduction, c.grid_reduction) && asked(r.early_weights, c.early_weights)
           && asked(r.rows_per_cta, c.rows_per_cta()) && asked(r.reduce_scope, reduce_scope_of(c))
           && (c.threads_per_row == 0 || asked(r.threads_per_row, c.threads_per_row));
}

/// Of a ring's CTAs, clusters that work at once; NaN: unknown.
double ring_clusters(const Machine& machine, const Program& program, const FuseConfig& config);

/// Adds the rings that the machine and the request allow, timed, to `out`; what a constraint rejects is counted there.
void search_rings(const FuseSearchContext& context, FuseSearch& out);

}  // namespace rooftile
