// What a GPU kernel's name says: of libraries that write their tile, types and stages into it, the plan; of others, what the kernel does.
// docs/names.md has the grammars, what confirms each, and what is a guess.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rooftile {

/// What a name does not say is empty. Extents of products are the library's own: cuBLAS is column-major, so its m is the columns of a
/// row-major C.
struct KernelName {
    /// "bf16", "fp16", "fp32", "tf32", "fp64", "fp8_e4m3", "fp8_e5m2", "fp4_e2m1", "int8", …; of complex numbers "complex_fp32".
    struct Types {
        std::string a, b, c, accumulate;
    };

    std::string name;                ///< without mangling
    std::string family = "unknown";  ///< whose grammar it is: "nvjet", "xmma", "cutlass2", "triton", …
    std::string library;             ///< as one says it: "cuBLAS"
    std::string role;                ///< "gemm", "conv", "attention", "elementwise", "reduce", "copy", "collective", …
    std::string operation;           ///< more of the role: "all-reduce sum, ring, LL", "gelu"
    std::string arch;                ///< "sm_90"
    Types types;
    /// Of attention: queries, keys, and the head's dimension.
    std::optional<int> tile_m, tile_n, tile_k;
    std::optional<int> stages, cluster_m, cluster_n;
    std::optional<bool> split_k;  ///< several CTAs share a tile's K; how many, the launch says
    std::string layout;           ///< "TNT": whether A, B and, where it has a third letter, the result are transposed; "nhwc"
    std::string schedule;         ///< "cooperative", "pingpong", "warp_specialized", …
    std::string shared_operand;   ///< "a" or "b": the side of the tile that cooperating warpgroups do not divide, as nvjet says it
    std::optional<int> consumer_warpgroups;         ///< that multiply
    std::optional<int> threads;                     ///< of a CTA
    std::optional<bool> cta_pair;                   ///< two CTAs issue one matrix instruction, and each holds half of B
    std::string raster;                             ///< "along_m", "along_n": tiles that run together are neighbours along it
    std::optional<int> alignment_bytes;             ///< of A
    std::string epilogue;                           ///< "bias + relu"
    std::string instruction;                        ///< "m16n8k16"
    std::string scaling;                            ///< of A and B in blocks: "vec16 ue4m3"
    std::optional<long> shape_m, shape_n, shape_k;  ///< of the problem, where the kernel is compiled for it
    std::vector<std::string> uncertain;             ///< "FIELD: why", of what was concluded and not read
};

/// Never throws on any text; what it cannot read is of family "unknown".
KernelName decode(std::string_view name);

/// At most 60 columns for a table: "cuBLAS bf16 192x8x64, 8 stages, cluster 2x1, split-K, TNT".
std::string describe(const KernelName& name);

/// Whether its time is mostly that of the matrix units.
bool is_matrix_work(const KernelName& name);

/// Of an element of a type that names use; nothing where the type is not known.
std::optional<int> bits_of_type(std::string_view type);

/// A and B of one stage in a CTA's shared memory; nothing where the name does not say enough.
std::optional<long> stage_bytes(const KernelName& name);

/// The stages together: the least shared memory that a CTA of the kernel takes.
std::optional<long> expected_shared_bytes(const KernelName& name);

}  // namespace rooftile
