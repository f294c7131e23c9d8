// The sm90_gemm family: its candidates, its constraints, and the kernel configuration of a plan.
#pragma once

#include "kernels/gemm/gemm_config.hpp"
#include "rooftile/gemm/search.hpp"
#include "rooftile/tiled/registers.hpp"

namespace rooftile {

/// An SM's registers among `ctas` CTAs of one producer and `consumers` consumer warpgroups. The producer
/// keeps a comfortable 40, or the least it can do with.
struct RegisterSplits {
    RegisterSplit roomy, tight;  ///< for the producer

    RegisterSplits() = default;
    RegisterSplits(double registers_per_sm, double registers_per_thread, int consumers, int ctas);
    /// The one that gives a consumer thread `need` registers, if any does.
    const RegisterSplit& for_need(int need) const { return need > roomy.consumer ? tight : roomy; }
};

/// What an SM gives each of `ctas_per_sm` CTAs of one producer and `warpgroups` consumer warpgroups.
struct Residency {
    RegisterSplits registers;
    Constraint constraint{};  ///< of threads and CTAs
    double shared_limit = 0;  ///< B; NaN unknown

    Residency() = default;
    Residency(const GemmHardware& hw, int warpgroups, int ctas_per_sm);
};

/// Parts of K tried: all up to the portable cluster.
inline constexpr std::array<int, 8> searched_splits{1, 2, 3, 4, 5, 6, 7, 8};
/// The others are taken seldom: those into which few tiles divide, and residencies that hardly any problem gains by.
constexpr bool usual_split(int parts) { return parts != 5 && parts != 7; }
inline constexpr int usual_warpgroups = 3, usual_ctas_per_sm = 2;

class Sm90GemmFamily {
  public:
    Sm90GemmFamily(const GemmHardware& hw, const GemmProblem& problem);

    /// Takes every candidate against the constraints of the instruction, threads, registers, alignment and cluster.
    /// Fixed values of the request are taken even where the search would skip them.
    void enumerate(const GemmHardware& hw, const GemmProblem& problem, const GemmRequest& request,
                   GemmVisitor& visitor) const;
    /// The same for one candidate, whose tile it completes.
    Constraint examine(const GemmHardware& hw, const GemmProblem& problem, GemmCandidate& candidate) const;

  private:
    static constexpr int max_warpgroups = 4, max_ctas = 4;
    Residency residencies_[max_warpgroups][max_ctas];

    /// `other` where the table has none.
    const Residency& residency_of(const GemmHardware& hw, int warpgroups, int ctas_per_sm,
                                  Residency& other) const;
};

/// Why a finished tile cannot wait until the next one's products run, however many registers there are; null
/// where it can.
const char* bars_overlapped_epilogue(const Sm90GemmConfig& config);

/// Lines that begin at whole 16 bytes: what TMA takes as it lies, however long they are. Beyond their end it reads zeros
/// (docs/facts.md 115). Elements between lines, and from an aligned address to the first.
bool taken_by_tma(std::int64_t leading, std::int64_t offset, std::int64_t stride, Type type);
/// Groups that a kernel for so many has room for: a lane of a warp counts as many as any other.
int group_slots(std::int64_t groups);
/// An operand of its epilogue comes by TMA, where K is in one piece and C leaves so; of groups none does, whose last rows leave otherwise.
bool operand_staged(const GemmProblem& problem, int k_parts);
/// Elements in the 16 bytes at whose multiples TMA wants lines to begin.
constexpr int tma_elements(Type type) { return 16 / bytes_of(type); }

/// Whether C goes out by TMA: rows of whole 16-byte pieces, and as far apart.
bool stores_by_tma(const GemmProblem& problem);

/// The kernel's template parameter for a configuration of this family, without setmaxnreg, or for a finished plan.
Sm90GemmConfig kernel_config(const GemmProblem& problem, const GemmConfig& choices);
Sm90GemmConfig kernel_config(const GemmPlan& plan);

}  // namespace rooftile
