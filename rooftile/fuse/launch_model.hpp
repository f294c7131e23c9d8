// What one launch of a fused kernel keeps in flight and how long it takes [M20-M22]: pure functions of the
// program, the launch and the machine's numbers. NaN stands for an unknown number.
#pragma once

#include <initializer_list>

#include "rooftile/expression/graph.hpp"
#include "rooftile/fuse/hardware.hpp"
#include "rooftile/fuse/program.hpp"
#include "rooftile/fuse/time.hpp"

namespace rooftile {

/// What a program reads, writes and executes, whatever the launch.
struct ProgramWork {
    double full_bytes = 0;     ///< of an element of the loop: all tensors that are read at its own place
    double other_bytes = 0;    ///< in all: what rows or columns share
    double written_bytes = 0;  ///< in all
    int full_loads = 0;
    int shared_loads = 0;     ///< tensors that rows share, of a whole row
    double shared_bytes = 0;  ///< of an element of such a row
    OpCost first;        ///< an element's passes: all that is computed, each pass computing what it needs
    OpCost span;         ///< of an element, over all passes: whether its vector has neighbours' elements
    OpCost result;       ///< the part of `first` that comes after all reductions
    OpCost online;       ///< the same where the row passes by: its reductions keep more
    OpCost row;          ///< what each thread of a row computes once a row, beside its reductions
    int reductions = 0;  ///< of the row
    int reduction_rounds = 0;  ///< of its threads where the row is held: some reductions take two
    int readings = 1;          ///< of the row: passes that go over it
    int min_copy_bytes = 4;    ///< of the smallest element among the full tensors
    int narrow_bytes = 4;      ///< of the smallest floating element among the full tensors
};
/// Whether the threads of a row that is held go over it twice for reduction `reduce`: for the greatest value before exponentials, the
/// mean before deviations. Not where its values are dearer to have again than to reduce, and come in vectors, each of which rescales
/// what was before it: those of `shared` come one by one.
bool reduced_in_two_rounds(const ExpressionGraph& graph, const Program& program, int reduce, bool shared);

/// In vectors of `vector_width` elements; of an expression whose launch is open in such of eight. `shared`: they only bring rows
/// into shared memory.
ProgramWork program_work(const ExpressionGraph& graph, const Program& program, int vector_width = 8,
                         bool shared = false);

/// A launch, as far as time depends on it.
struct FuseLaunch {
    double vectors_per_thread = 1, vector_width = 1, threads = 0, threads_per_row = 0;
    double rows_per_thread = 1;
    double ctas_per_sm = 1;  ///< that are resident
    bool reload = false, persistent = false;
    bool early_weights = false;  ///< what rows share is loaded before the first reduction
    double shared_turns = 0;     ///< of shared memory for a warp's elements, one a lane
};

/// Turns in which shared memory serves a warp's access to one element a lane, where `threads_per_row` lanes have neighbouring ones of
/// a row of `columns` elements of `bytes`, and the next ones the same of the next row: its banks are 32 words of 4 bytes.
int bank_turns(std::int64_t columns, int threads_per_row, int bytes);

struct FuseFlow {
    double ctas = 0;                                         ///< of the grid
    double resident = 0;                                     ///< CTAs of an SM
    double bytes_in_flight = 0, bytes_in_flight_needed = 0;  ///< of an SM
    double round_cycles = 0;                                 ///< from a CTA's loads to its end
    double waves = 0;
    double dram_bytes = 0;
    double ends = 0;  ///< seconds of the first CTAs' start and the last stores, which overlap with nothing
    double held = 0;  ///< in L2 from one pass to the next, a share; of rows that are all resident in the grid
    FuseTime time{};
};
/// Mean value analysis of a closed network: pieces a cycle of a `population` of an SM's CTAs. Each thinks for `think_time`
/// cycles, then passes two stations with demands of `first_demand` and `second_demand` cycles.
double mva_throughput(double population, double think_time, double first_demand, double second_demand);

/// Of things that go on side by side: t^n is the sum of their t_i^n, so that the longest bends where another comes near
/// it. The longest where n is infinite, NaN where one is unknown.
double overlapped(std::initializer_list<double> times, double exponent);

FuseFlow fuse_flow(const FuseHardware& hw, const Program& program, const ProgramWork& work,
                   const FusedBytes& bytes, const FuseLaunch& launch);

}  // namespace rooftile
