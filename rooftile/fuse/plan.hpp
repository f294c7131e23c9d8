// A plan for one kernel that computes an expression at the memory's rate: form, launch, prediction, reasons.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rooftile/core/bound.hpp"
#include "rooftile/core/step.hpp"
#include "rooftile/core/warp.hpp"
#include "rooftile/expression/graph.hpp"
#include "rooftile/fuse/columns_model.hpp"
#include "rooftile/fuse/grid_resident_model.hpp"
#include "rooftile/fuse/program.hpp"
#include "rooftile/fuse/ring_model.hpp"
#include "rooftile/machine/machine.hpp"

namespace rooftile {

/// Where a row waits between its passes [M21].
enum class RowStorage : std::uint8_t {
    none,       ///< point-wise: there is one pass
    registers,  ///< of the threads that share it
    reload,     ///< none: the row is read again for every pass
    pipelined,  ///< shared memory: chunks that a producer warp brings, row after row where CTAs stay
    shared,     ///< shared memory: a warp's rows as they lie together, of which its threads take element by element
};
std::string_view name_of(RowStorage row_storage);

struct FuseConfig {
    FuseForm form = FuseForm::pointwise;
    RowStorage row_storage = RowStorage::none;
    int vector_width = 1;        ///< elements of a vector
    int vectors_per_thread = 1;  ///< vectors of each full tensor that a thread holds, or brings into shared memory
    int threads = 0;             ///< of a CTA, a producer warp among them
    int threads_per_row = 0;     ///< of one CTA; 0: point-wise
    int reduction_threads =
        0;  ///< threads of a ring's CTA that only reduce, while the others store the row before; 0: all do both
    int rows_per_thread = 1;  ///< rows in shared memory that a thread has one after the other
    int cluster = 1;  ///< CTAs that share a row
    int row_splits = 1;  ///< CTAs that share the rows of a tile of columns
    int stages =
        1;  ///< slots of a ring; vectors_per_thread vectors of each thread lie in one. Of grid-resident rows: iterations that are held
    int ctas_per_sm = 1;
    bool persistent = false;     ///< one wave of CTAs goes through everything
    bool early_weights = false;  ///< what all rows share is loaded before a reduction; in a ring once
    bool grid_reduction =
        false;              ///< the CTAs of a row are no hardware cluster: they reduce through device memory
    std::int64_t grid = 0;  ///< CTAs

    int rows_per_cta() const {
        return form == FuseForm::columns      ? threads / threads_per_row
               : threads_per_row > warp_threads ? 1
               : threads_per_row > 0          ? threads / threads_per_row * rows_per_thread
                                              : 0;
    }
    friend bool operator==(const FuseConfig&, const FuseConfig&) = default;
};

struct FuseResources {
    std::optional<std::int64_t> threads, registers, shared_bytes, ctas_per_sm;
    std::optional<std::int64_t> bytes_in_flight, bytes_in_flight_needed;  ///< of an SM [M20]
};

/// A whole chain, one kernel or many.
struct FuseTotals {
    std::optional<std::int64_t> moved_bytes, dram_bytes;
    std::optional<double> time_us;
    std::int64_t kernels = 1;
};

/// One operation of the chain as a kernel of its own.
struct FuseOperator {
    std::string text;  ///< "gelu(x + bias)"
    std::string type;  ///< of its result: "bf16[8192,8192]"
    FuseTotals totals;
    std::optional<Bound> bound;
};

struct FusePrediction {
    std::optional<double> time_us, gbytes_per_s;
    std::optional<Bound> bound;
    std::optional<std::int64_t> moved_bytes, dram_bytes;
    std::optional<double> issue_share;  ///< issue slots used while DRAM is the limit: 1 binds
    std::optional<double> waves, speedup;
};

/// A launch as the model of its kind takes it.
using TimedLaunch = std::variant<FuseLaunch, RingLaunch, GridResidentLaunch, ColumnsLaunch>;

struct FusePlan {
    int rank = 0;
    bool buildable = false;
    std::string why_not;
    std::string arch;  ///< "sm_90"
    ExpressionGraph problem;
    Program program;
    FuseConfig config;
    TimedLaunch launch;
    /// What a search leaves out lost wherever it was measured, as no term of the model tells. Where a request fixes such a launch it is told no
    /// sooner than the best that the search takes: so many times the model's own seconds. 1 of all others.
    double held_back = 1;
    FuseResources resources;
    FusePrediction prediction;
    std::vector<Step> derivation;
    std::vector<std::string> unknown;
};

struct FusePlans {
    std::string machine_id, machine_name, machine_hash;
    ExpressionGraph problem;
    std::vector<FusePlan> plans;  ///< best first
    FuseTotals fused, unfused;
    std::vector<FuseOperator> operators;  ///< the unfused kernels in order
    Rejected rejected;
    std::vector<std::string> unknown, unchecked_constraints, notes;
};

/// The request is right but no kernel computes it.
struct FuseInfeasible {
    Reason reason = Reason::instruction;
    std::string message;
    std::string machine_id, machine_name, machine_hash;
    ExpressionGraph problem;
    FuseTotals unfused;
    std::vector<FuseOperator> operators;
    Rejected rejected;
    std::vector<std::string> unknown, notes;
};

/// What the caller fixes; the rest is searched.
struct FuseRequest {
    std::optional<int> vector_width{}, vectors_per_thread{}, threads{}, threads_per_row{}, cluster{},
        stages{}, ctas_per_sm{}, reduction_threads{}, rows_per_cta{}, row_splits{};
    std::optional<RowStorage> row_storage{};
    std::optional<bool> persistent{}, grid_reduction{}, early_weights{};
    std::optional<std::string_view> reduce_scope{};  ///< as reduce_scope_of() says (fuse/staging.hpp)
    int alignment = 256;  ///< bytes that every tensor's address is a multiple of
    int top = 8;
    bool exhaustive = false;  ///< search also what rules leave out (fuse/rules.hpp)
};

/// Derives the launch of one kernel for all of `graph` [M20-M25]. Never throws for an unknown number.
std::variant<FusePlans, FuseInfeasible> derive(const Machine& machine, const ExpressionGraph& graph,
                                               const FuseRequest& request = {});

}  // namespace rooftile
