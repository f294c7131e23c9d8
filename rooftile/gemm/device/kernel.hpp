// A plan made runnable: compiled for its machine, loaded into a context, launched on the caller's stream.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "kernels/gemm/sm90_gemm_config.hpp"
#include "rooftile/runtime/compile_options.hpp"
#include "rooftile/runtime/driver.hpp"
#include "rooftile/runtime/nvrtc.hpp"
#include "rooftile/gemm/plan.hpp"

namespace rooftile {

/// Sizes and leading dimensions of one launch, in elements, as in GemmProblem.
struct GemmShape {
    std::int64_t m = 0, n = 0, k = 0;
    std::int64_t lda = 0, ldb = 0, ldc = 0;
};
GemmShape shape_of(const GemmProblem& problem);

/// "rooftile::sm90_gemm<rooftile::Sm90GemmConfig{.tile_m=128, ...}>": what NVRTC instantiates, and what
/// logs and profilers show.
std::string sm90_name_expression(const Sm90GemmConfig& config);

/// A compiled GEMM kernel. A handle: copies share the code and what is loaded. One cubin serves every
/// shape of its types and majors.
class Kernel {
  public:
    const GemmPlan& plan() const;
    const Sm90GemmConfig& config() const;
    const std::string& name_expression() const;
    const std::string& lowered_name() const;
    const std::string& arch() const;  ///< "sm_90a"
    const std::string& cubin() const;
    const std::string& log() const;   ///< of NVRTC and ptxas
    const EntryInfo& entry() const;   ///< registers and the like, as ptxas reports them
    const std::string& hash() const;  ///< of everything that decides the cubin; 32 hex digits
    bool from_cache() const;
    double compile_seconds() const;  ///< all of compile(), 0.0x where it came from the cache
    /// Compiles the same source to PTX, for reading.
    std::string ptx() const;

    /// Loads the code into the current context, once; what launch() does on its first call there. Call it
    /// before capturing a graph: loading cannot be captured. Thread-safe.
    /// Throws RequestError where no context is current, Error(no_gpu) on a GPU of another architecture,
    /// Error(gpu_failed) where the driver refuses.
    void load() const;
    /// The same, and makes ready what a launch of `shape` needs besides: the table of orders morton and
    /// hilbert.
    void load(const GemmShape& shape) const;
    /// The loaded kernel in the current context; loads it first where needed.
    Function function() const;

    /// C = A * B of the plan's problem, on device pointers of the current context, in `stream`.
    /// Neither synchronises nor (once loaded) allocates; may be captured into a graph; thread-safe.
    /// Orders morton and hilbert read a table, made by load() or the first launch of a grid of tiles.
    /// Throws RequestError where a pointer or a leading dimension is not aligned as the kernel needs it.
    void launch(Stream stream, const void* a, const void* b, void* c) const;
    /// The same for another shape of the same types and majors.
    void launch(Stream stream, const void* a, const void* b, void* c, const GemmShape& shape) const;

    struct State;
    explicit Kernel(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  private:
    std::shared_ptr<const State> state_;
};

/// Compiles exactly the planned kernel, or takes it from the cache. Needs NVRTC, no GPU.
/// Throws RequestError where the plan is not buildable, Error(compile_failed) where the compiler refuses or
/// its code is not as planned: a C75xx or C76xx message, spills, a stack frame, local memory.
Kernel compile(const GemmPlan& plan, const CompileOptions& options = {});

using KernelOutcome = std::variant<Error, Kernel>;
/// Compiles all, in up to `threads` threads (0: one a core); outcomes in the order of `plans`.
std::vector<KernelOutcome> compile_all(std::span<const GemmPlan> plans, const CompileOptions& options = {},
                                       unsigned threads = 0);

/// The source that compile() gives to NVRTC for that configuration.
Source gemm_source(const Sm90GemmConfig& config);

/// CTAs of a persistent grid: what is resident at once, in whole clusters, and no more than there are tiles.
/// Throws RequestError where there are 2^31 tiles or more.
int gemm_grid(const Sm90GemmConfig& config, const GemmShape& shape, int resident_ctas);

/// Tiles of C in units of a cluster's, which the walk counts.
struct ClusterTiles {
    std::int64_t rows = 0, columns = 0;
};
ClusterTiles cluster_tiles(const Sm90GemmConfig& config, const GemmShape& shape);

/// The walk of an order that the kernel reads from a table (morton, hilbert), packed as the kernel reads it.
/// Throws RequestError where there are more rows or columns than the packing can count.
std::vector<std::uint32_t> walk_table(Order order, const ClusterTiles& tiles);

/// What the copies of one operand bring into a stage.
struct OperandCopies {
    int box = 0;     ///< rows (of A) or columns (of B) that one CTA loads
    int slices = 0;  ///< peers that load one; the others' slices lie outside C
};
/// A k-major tile that is larger than C is loaded as far as C reaches, to a multiple of 8: TMA is slow at
/// what lies outside a tensor (docs/facts.md 22).
struct GemmCopies {
    OperandCopies a, b;
    int stage_bytes = 0;  ///< that arrive in each CTA
};
GemmCopies gemm_copies(const Sm90GemmConfig& config, const GemmShape& shape);

/// Throws RequestError naming the first size, leading dimension or pointer that the kernel cannot address.
void check_operands(const Sm90GemmConfig& config, const GemmShape& shape, const void* a, const void* b,
                    const void* c);

/// What TMA needs to know of A, B and C (C: only with tma_store), tile boxes of [outer][inner] elements. What
/// L2 is to drop first it fetches no further than a box reads.
struct GemmTensors {
    TensorMapRequest a, b, c;
};
GemmTensors gemm_tensors(const Sm90GemmConfig& config, const GemmShape& shape, const void* a, const void* b,
                         const void* c, CachePolicy a_policy = CachePolicy::normal,
                         CachePolicy b_policy = CachePolicy::normal);

}  // namespace rooftile
