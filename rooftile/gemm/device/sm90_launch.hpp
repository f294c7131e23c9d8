// From a configuration of sm90_gemm and a shape to its source and what a launch needs.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/gemm/gemm_arguments.hpp"
#include "kernels/gemm/gemm_config.hpp"
#include "rooftile/gemm/device/code.hpp"
#include "rooftile/gemm/device/launch.hpp"
#include "rooftile/runtime/driver.hpp"
#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile {

/// "rooftile::sm90_gemm<rooftile::Sm90GemmConfig{.tile_m=128, ...}>": what NVRTC instantiates, and what
/// logs and profilers show.
std::string sm90_name_expression(const Sm90GemmConfig& config);
/// Its argument alone.
std::string sm90_config_text(const Sm90GemmConfig& config);

/// The source that compile() gives to NVRTC for that configuration.
Source gemm_source(const Sm90GemmConfig& config);

/// CTAs of a persistent grid: what is resident at once, in whole clusters, and no more than there are tiles.
/// Throws RequestError where there are 2^31 tiles or more.
/// With K in `pieces` a cluster has one tile, and there are all of them.
int gemm_grid(const Sm90GemmConfig& config, const GemmShape& shape, int resident_ctas, int pieces = 1);

ClusterTiles cluster_tiles(const Sm90GemmConfig& config, const GemmShape& shape);

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

/// What a kernel reads of one product, whose tensors are 16 bits wide and lie as TMA takes them: the maps of A, B, the result and the
/// operand that is staged, and all arguments.
struct Sm90Operands {
    TensorMap a, b, c, operand;
    GemmArguments arguments;
};
/// Rows that A and the result have room for, where that is not M; 0: it is.
struct RoomRows {
    std::int64_t a = 0, c = 0;
};
Sm90Operands sm90_operands(const GemmPlan& plan, const Sm90GemmConfig& config, const GemmPointers& pointers, const RoomRows& room = {});

}  // namespace rooftile
