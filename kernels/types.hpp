// Names that host and device code share. No includes: NVRTC compiles this file too.
#pragma once

namespace rooftile {

/// Element types of a matrix. fp32 is of results and sums; fp8 e4m3 has no Inf, and its NaN is all ones.
enum class Type : unsigned char { bf16, fp16, fp32, fp8_e4m3, fp8_e5m2 };
constexpr bool is_fp8(Type type) { return type >= Type::fp8_e4m3; }
constexpr int bytes_of(Type type) { return is_fp8(type) ? 1 : type == Type::fp32 ? 4 : 2; }

/// Of tensors in an expression. int64 holds indices (argmax), boolean what comparisons give: one byte, 0 or 1.
enum class Element : unsigned char { boolean, int64, fp16, bf16, fp32 };
constexpr bool is_floating(Element element) { return element >= Element::fp16; }

/// Which index of an operand is contiguous in memory: k, or the one that is also C's (m of A, n of B).
enum class Major : unsigned char { k, mn };

/// How consumer warpgroups share work: all on one tile, or each on a tile of its own, in turns.
enum class Schedule : unsigned char { cooperative, pingpong };

/// The order in which a persistent grid takes the tiles of C.
enum class Order : unsigned char { row, column, grouped, serpentine, morton, hilbert };

/// How long L2 should keep what an access brings: as any line, as the first to go, as the last to go.
enum class CachePolicy : unsigned char { normal, evict_first, evict_last };

/// What a kernel is compiled without, to see what it costs. Every barrier is passed all the same; what comes
/// out of such a kernel is no result.
enum class Ablation : unsigned char { nothing, loads, products, store };

}  // namespace rooftile
