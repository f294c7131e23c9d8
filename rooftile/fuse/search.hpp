// The launches that a program allows on a machine, each against the constraints of registers, threads and shared
// memory, timed; the best first.
#pragma once

#include <string>
#include <vector>

#include "rooftile/fuse/launch_model.hpp"
#include "rooftile/fuse/plan.hpp"

namespace rooftile {

struct FuseCandidate {
    FuseConfig config;
    TimedLaunch launch;
    FuseFlow flow;
    double registers = 0;     ///< a thread, estimated
    double shared_bytes = 0;  ///< of a CTA, for the rows
    double held_back = 1;     ///< how many times the model's own seconds are told; see FusePlan
};

struct FuseSearch {
    std::vector<FuseCandidate> kept;  ///< best first
    Rejected rejected;
    std::vector<std::string> unchecked_constraints;
    double register_need =
        0;  ///< of the least candidate whose threads need more than one may have; 0: none does
};

FuseSearch search_launches(const Machine& machine, const FuseHardware& hw, const ExpressionGraph& graph,
                           const Program& program, const FuseRequest& request);

/// The widest vector, in elements, that 16-byte accesses, the row's length and the tensors' alignment allow.
int widest_vector(const ExpressionGraph& graph, const Program& program, const ProgramWork& work,
                  int alignment);
/// Whether every row holds whole vectors of `vector_width` elements, at addresses that are multiples of `alignment` B.
bool vector_fits(const ExpressionGraph& graph, const Program& program, int alignment, int vector_width);

/// Registers that a thread needs: what it holds, what one vector's arithmetic takes, and the rest.
double registers_needed(const Program& program, const FuseConfig& config);

}  // namespace rooftile
