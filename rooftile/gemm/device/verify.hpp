// Is a GEMM's result right? Every element of C against an fp64 reference, on inputs made here, with memory
// around it watched. A wrong result is a value that says where; only a failing GPU throws.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/measure/measure_kernels.hpp"
#include "rooftile/gemm/measurement.hpp"
#include "rooftile/gemm/device/operands.hpp"

namespace rooftile {

/// Anything that puts C = A * B of one problem into a stream.
using GemmLaunch = std::function<void(Stream stream, const void* a, const void* b, void* c)>;

/// The inputs of a check.
enum class VerifyCase : std::uint8_t {
    exact,    ///< small whole numbers: C is known bit for bit
    random,   ///< standard normal numbers: every element within error_bound()
    special,  ///< as random, with NaN, +Inf, -Inf and a product beyond the type injected in A and B
    timed,    ///< as random: what timed launches left behind
};
std::string_view name_of(VerifyCase which);

/// One case's outcome.
struct CaseOutcome {
    bool right = false;
    std::int64_t wrong = 0;  ///< elements of C outside their bound or of a wrong class
    double ratio = 0;        ///< largest |error| / bound
    double bound = 0;        ///< at that element
    std::string failure;     ///< one line where not right
};

/// What a case's device work left behind, and its reading.
struct CaseEvidence {
    std::vector<VerifyRecord> records;
    std::uint64_t inputs_before = 0, inputs_after = 0;  ///< checksums of A and B, fences included
    std::uint64_t touched = 0;                          ///< elements around C that were written
};
CaseOutcome judge(const CaseEvidence& evidence, const GemmProblem& problem, VerifyCase which,
                  std::uint64_t seed);

/// Whether a launch that was wrong beside others stays wrong though it is right alone. It does not where one
/// of the others, alone, changed an input or wrote outside its C: then that one is faulty.
struct LaunchEvidence {
    bool together = false, alone = false;  ///< right
    bool disturbs = false;                 ///< alone, it changed an input or wrote outside its C
};
std::vector<bool> faulty(const std::vector<LaunchEvidence>& launches);

/// Owns fenced operands of one problem, and a fenced C for each of up to `results` launches that are judged
/// by one pass of the reference; checks any number of launches. `kernels` must outlive it. A, B and C must
/// be of one 16-bit type, alpha 1, beta 0, batch 1.
class GemmVerifier {
  public:
    GemmVerifier(const MeasureKernels& kernels, const GemmProblem& problem, int results = 1);

    /// How many of `launches` results of `problem` are judged at once: at most verify_max, and what may be
    /// kept in `free_bytes`; at least one.
    static int results_for(const GemmProblem& problem, std::size_t launches, std::int64_t free_bytes);

    /// Poisons, fills from `seed`, launches each once and judges; waits for the result. What fails beside
    /// others is checked again alone, so that the faulty one is named.
    std::vector<CaseOutcome> check(VerifyCase which, std::uint64_t seed,
                                   std::span<const GemmLaunch> launches) const;
    CaseOutcome check(VerifyCase which, std::uint64_t seed, const GemmLaunch& launch) const;

    /// The exact, then the random case; each launch stops at the first that is not right.
    std::vector<Verification> check_values(std::uint64_t seed, std::span<const GemmLaunch> launches) const;
    Verification check_values(std::uint64_t seed, const GemmLaunch& launch) const;
    /// The special case, added to what check_values() found.
    void check_special(std::span<Verification> verifications, std::uint64_t seed,
                       std::span<const GemmLaunch> launches) const;
    /// All three.
    Verification check_all(std::uint64_t seed, const GemmLaunch& launch) const;
    /// The exact and the random case again on the inputs of another `seed`, after timing: keeps the worse
    /// figures in `verification`.
    void check_again(Verification& verification, std::uint64_t seed, const GemmLaunch& launch) const;

    /// What launches elsewhere left in A and B at `a` and `b`, random numbers of `seed`, and the results
    /// that were copied to c(0) .. c(results - 1): poisoned by expect_left(), which takes the inputs'
    /// checksums too.
    void expect_left(const void* a, const void* b) const;
    std::vector<CaseOutcome> judge_left(const void* a, const void* b, std::uint64_t seed, int results) const;

    /// A checksum of C for the random case of `seed`: the same from run to run of a deterministic kernel.
    std::uint64_t result_checksum(std::uint64_t seed, const GemmLaunch& launch) const;

    const FencedMatrix& a() const { return a_; }
    const FencedMatrix& b() const { return b_; }
    const FencedMatrix& c(std::size_t result = 0) const { return c_[result]; }
    int results() const { return static_cast<int>(c_.size()); }  ///< judged at once

  private:
    std::vector<CaseOutcome> check_together(VerifyCase which, std::uint64_t seed,
                                            std::span<const GemmLaunch> launches,
                                            std::vector<CaseEvidence>& evidence) const;
    void prepare(VerifyCase which, std::uint64_t seed) const;
    void inject_special_values(std::uint64_t seed) const;
    void checksum_inputs(DevicePointer to) const;
    void checksum_operand(Operand operand, const void* data, DevicePointer to) const;
    void refer(VerifyCase which, const void* a, const void* b, int results) const;
    std::vector<CaseEvidence> evidence_of(int results) const;

    const MeasureKernels& kernels_;
    GemmProblem problem_;
    StreamOwner stream_;
    FencedMatrix a_, b_;
    std::vector<FencedMatrix> c_;
    DeviceBuffer counters_, records_;
};

/// The outcome of one case as part of a verification: the worse figures, the first failure, its flag.
void absorb(Verification& verification, VerifyCase which, const CaseOutcome& outcome);

/// What is injected in the special case: bits at row/column (i, k) of A or (k, j) of B.
struct InjectedValue {
    Operand operand;
    std::int64_t row, column;
    std::uint16_t bits;
};
std::vector<InjectedValue> special_values(const GemmProblem& problem, std::uint64_t seed);

/// Element index within the operand's memory of A[row, column] or B[row, column].
std::int64_t offset_of(const GemmProblem& problem, Operand operand, std::int64_t row, std::int64_t column);

}  // namespace rooftile
