// A GEMM kernel as the planning stations see it: what it can compute, its candidates, what each uses, and the steps
// of a derivation that are its own. rooftile/gemm/kernels.def lists them; device/code.hpp has source and launch.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/core/formula.hpp"
#include "rooftile/core/plan.hpp"
#include "rooftile/gemm/packing.hpp"
#include "rooftile/gemm/search.hpp"

namespace rooftile {

struct GemmContext;
struct DerivationWriter;
class Derivation;

/// What the steps that every kernel has say of one of them.
struct GemmWords {
    const Formula* tile_k;
    const char* tile_k_limit;
    const Formula* accumulators;
    const char* sharers_name;  ///< what counts those that hold one tile's sums, in that formula
    int sharers;               ///< 0: the formula names none
    const char* registers_source; ///< of those beside the accumulators
    const char* reserved_source;  ///< of the shared memory beside the stages
    const char* overhead_source = "full and empty mbarrier";  ///< of that beside what a stage is filled with
};

class GemmKernel {
  public:
    virtual ~GemmKernel() = default;

    /// "sm90_gemm": `config.kernel` of documents.
    virtual std::string_view name() const = 0;
    /// Of the matrix instruction, as the machine's rates are named: "wgmma", "mma_sync"; "generic" where none is known.
    virtual std::string instruction(const Machine& machine, Type type) const = 0;

    /// What it needs and the machine lacks, as "wgmma, tma"; empty where the machine runs it.
    virtual std::string missing_on(const Machine& machine) const = 0;
    /// Why no candidate can compute the problem as the request has it; empty where one may.
    virtual std::optional<Refusal> refusal(const Machine& machine, const GemmProblem& problem,
                                           const GemmRequest& request) const = 0;

    /// Operands that it reads from copies which a launch of its own makes first.
    virtual PackedOperands packs(const GemmProblem&, const GemmRequest&) const { return {}; }
    /// All choices of them that the request leaves, packs() first: rows that begin off a line cost L2 more than those of a copy.
    virtual std::vector<PackedOperands> packings(const GemmProblem& problem, const GemmRequest& request,
                                                 const GemmHardware&) const {
        return {packs(problem, request)};
    }

    /// Whether it is planned beside the machine's best kernel, by which such a problem takes more than its bytes, where the request names none.
    virtual bool joins(const GemmProblem&) const { return false; }
    /// Whether its blocks of K go over the taps of an image, whose pixels it gathers piece by piece.
    virtual bool gathers() const { return false; }
    /// Whether packed weights are what it multiplies, and nothing else.
    virtual bool is_of_quantised() const { return false; }
    /// Whether it multiplies packed weights that a launch in front of it unpacks.
    virtual bool is_behind_unpacking() const { return false; }
    /// Whether it has room for that problem's rows of A.
    virtual bool takes_rows(const GemmProblem&) const { return true; }
    /// Whether its predicted times leave out what such a problem costs it: plans of a kernel that joins go first then.
    virtual bool is_flattered(const GemmProblem&) const { return false; }

    /// Takes every candidate past its constraints. Values that the request fixes are taken even where the search
    /// would skip them. The enumeration itself is typed and allocates nothing a candidate.
    virtual void enumerate(const GemmHardware& hw, const GemmProblem& problem, const GemmRequest& request,
                           GemmVisitor& visitor) const = 0;
    /// The same for one candidate, whose tile it completes.
    virtual Constraint examine(const GemmHardware& hw, const GemmProblem& problem, GemmCandidate& candidate) const = 0;

    /// Sets what of a configuration no candidate has.
    virtual void complete(const GemmContext&, const Kept&, GemmConfig&) const {}
    /// Why a plan cannot be built; empty where it can.
    virtual std::string why_not(const Machine& machine, const GemmProblem& problem, const GemmConfig& config,
                                const GemmHardware& hw) const = 0;
    /// What a reader of the plans must know.
    virtual std::vector<std::string> notes(const GemmProblem&, const GemmRequest&, const GemmHardware&) const {
        return {};
    }

    virtual GemmWords words(const GemmCandidate& candidate) const = 0;
    /// Appends steps behind the one that counts stages.
    virtual void explain_capacity(DerivationWriter&) const {}
    /// Appends a step for every parameter of its own that the search settled.
    virtual void explain_choices(const GemmContext& context, const Kept& kept, const GemmConfig& config,
                                 Derivation& steps) const = 0;
};

/// All of kernels.def, in its order.
std::span<const GemmKernel* const> gemm_kernels();
/// Null where there is none of that name.
const GemmKernel* find_gemm_kernel(std::string_view name);
/// The first that the machine runs.
const GemmKernel& best_gemm_kernel(const Machine& machine);
/// The same, of a problem with packed weights the first that is of them and takes its rows; else one behind a launch that unpacks.
const GemmKernel& best_gemm_kernel(const Machine& machine, const GemmProblem& problem);

/// The problem as the kernel meets it: weights that the launch in front of it unpacks are unpacked, rows that it widens wide.
GemmProblem multiplied(const GemmKernel* kernel, const GemmProblem& problem);
inline GemmProblem multiplied(const GemmPlan& plan) { return multiplied(plan.config.kernel, plan.problem); }
/// Whether packed weights are rounded to the activations' type before they are multiplied: what is right is then another number.
bool rounds_weights(const GemmPlan& plan);

// Refusals that several kernels share.

/// The machine has no matrix instruction of the problem's type.
std::optional<Refusal> refuse_type(const Machine& machine, const GemmProblem& problem);
/// Of kernels that store the bare sums of one product.
std::optional<Refusal> refuse_more_than_a_product(const GemmProblem& problem);
/// What of that no kernel but sm90_gemm has.
std::optional<Refusal> refuse_sm90_alone(const GemmProblem& problem);
/// What the request fixes that `kernel` lacks: parts of K in a cluster, and knobs of others.
std::optional<Refusal> refuse_knobs(const GemmKernel& kernel, const Machine& machine, const GemmRequest& request);
/// What of launches before the kernel in front has ended the machine or the kernel does not have. Of kernels that have their knobs.
std::optional<Refusal> refuse_following(const Machine& machine, const GemmRequest& request);
/// Whether a kernel that has the knob can be launched before the one in front has ended.
bool launches_dependents(const Machine& machine);
/// As the request, or a configuration, has it.
Following following(const GemmKernel& kernel, bool programmatic, bool early_weights);
/// What behind a launch that unpacks weights, or widens A beside packed ones, no kernel multiplies yet.
std::optional<Refusal> refuse_packed_weights(const GemmProblem& problem, const GemmRequest& request);
/// The request but for the packing that such a launch does whatever it says.
GemmRequest without_packing(const GemmProblem& problem, const GemmRequest& request);
/// Operands that 16-byte copies cannot address.
std::optional<Refusal> refuse_copies(const GemmProblem& problem);
/// Why the configuration's order of tiles cannot be followed; empty where it can.
std::string order_obstacle(const GemmProblem& problem, const GemmConfig& config);

}  // namespace rooftile
