// What Triton's compiler makes of a tile, and the fastest of its own configurations: the physics of gemm/model.hpp with its limits. Sides
// are powers of two, every warp loads and multiplies, sums stay in registers, tiles are launched one a CTA, nothing is shared in clusters.
#pragma once

#include <optional>
#include <vector>

#include "rooftile/gemm/time.hpp"

namespace rooftile {

/// How a kernel's operands come: by tensor descriptors (TMA), by pointers with masks (cp.async), the same with rows of A gathered.
enum class TritonLoads { descriptors, pointers, gathered };

/// As triton.Config has it.
struct TritonConfig {
    int block_m = 0, block_n = 0, block_k = 0, group_m = 1, warps = 4, stages = 2;
    friend bool operator==(const TritonConfig&, const TritonConfig&) = default;
};

/// What a configuration is compiled to (docs/facts.md, `bench/export/time_triton.py --compile-only`).
struct TritonUse {
    bool wgmma = false;                   ///< else mma.sync: of tiles of fewer than 64 rows, and before Hopper
    int accumulators = 0, registers = 0;  ///< 32-bit registers a thread
    std::int64_t shared_bytes = 0;
    int ctas_per_sm = 0;
    int warp_m = 0, warp_n = 0;  ///< block of C whose operands a warp, or a wgmma, reads
    double instructions = 0;     ///< of a warp and k-step
};

struct TritonPlan {
    TritonConfig config;
    TritonUse use;
    double seconds = 0, dram_bytes = 0;  ///< predicted; from and to DRAM
    double slow_seconds = 0;                               ///< where latencies are half as long again
    Waves waves;
    Bound bound = Bound::tensor;
};

class TritonModel {
  public:
    TritonModel(const Machine& machine, const GemmProblem& problem, TritonLoads loads);
    /// Empty: it spills, or does not fit.
    std::optional<TritonUse> use(const TritonConfig& config) const;
    /// The same where a number of the machine is unknown that its time needs.
    std::optional<TritonPlan> plan(const TritonConfig& config) const;
    /// Every configuration that the request leaves, which may fit or not. Throws RequestError where it fixes what Triton has not.
    static std::vector<TritonConfig> space(const GemmRequest& request, Type type);
    Type type() const { return problem_.a_type; }
    bool grouped() const { return loads_ == TritonLoads::gathered; }

  private:
    std::optional<TritonPlan> timed(const GemmHardware& hw, const TritonConfig& config, const TritonUse& use,
                                    double instruction_cycles) const;
    GemmProblem problem_;
    TritonLoads loads_;
    bool has_wgmma_;
    GemmHardware wgmma_, mma_sync_;
};

/// The fastest of the space by the sum of all models' times, with latencies as they are and slow: of products that one
/// configuration serves. A plan a model; empty: none is known.
std::vector<TritonPlan> fastest_triton(const std::vector<TritonModel>& models, const GemmRequest& request);

}  // namespace rooftile
