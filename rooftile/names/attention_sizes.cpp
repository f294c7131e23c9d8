#include "rooftile/names/attention_sizes.hpp"

#include "rooftile/names/reading.hpp"

namespace rooftile {
namespace {

std::optional<HeadSizes> possible(const HeadSizes& s) {
    constexpr std::int64_t most = std::int64_t{1} << 30;
    for (const std::int64_t size : {s.batch, s.heads, s.kv_heads, s.queries, s.keys, s.dim, s.dim_v})
        if (size <= 0 || size > most) return std::nullopt;
    return s.heads % s.kv_heads == 0 ? std::optional(s) : std::nullopt;
}

std::int64_t parts(std::int64_t extent, std::int64_t part) { return (extent + part - 1) / part; }

/// Batch, heads of Q, of K and of V, queries, keys, and the two dimensions come first; the copy engine's descriptors of all four tensors
/// repeat them, each extent less one; and tiles of a head times heads are all tiles. Nothing there tells the mask: launches with and
/// without one hold the same.
std::optional<HeadSizes> of_cudnn(const ParameterBytes& p) {
    constexpr std::size_t tiles = 40, tiles_of_head = 56, bytes = 432, extents_at = 32;
    struct Tensor {
        std::size_t descriptor, heads, rows, dim;
    };
    static constexpr Tensor tensors[] = {{112, 4, 16, 24}, {176, 8, 20, 24}, {304, 12, 20, 28}, {368, 4, 16, 28}};
    if (p.bytes.size() != bytes) return std::nullopt;
    for (const Tensor& tensor : tensors) {
        const std::size_t places[] = {tensor.dim, tensor.rows, tensor.heads, 0};
        for (std::size_t axis = 0; axis < 4; ++axis)
            if (p.word(tensor.descriptor + extents_at + 4 * axis) + 1 != p.word(places[axis])) return std::nullopt;
    }
    if (p.word(tiles) != p.word(tiles_of_head) * p.word(0) * p.word(4) || p.word(8) != p.word(12)) return std::nullopt;
    return possible({p.word(0), p.word(4), p.word(8), p.word(16), p.word(20), p.word(24), p.word(28), {}});
}

/// FlashAttention 2's struct: pointers and strides, heads and how many share keys; after O's the batch, lengths, the dimension, and each of
/// them rounded up. The grid has a tile's queries along x.
std::optional<HeadSizes> of_flash_second(const KernelName& name, const ParameterBytes& p, const LaunchExtents& launch) {
    constexpr std::size_t heads = 96, kv_heads = 100, ratio = 104, batch = 176, queries = 180, keys = 184, dim = 192, queries_rounded = 196,
                          keys_rounded = 200, dim_rounded = 204, first_rows = 224;
    constexpr std::int64_t rounded_to = 128;
    if (!name.tile_m || !name.tile_k || p.word(ratio) <= 0) return std::nullopt;
    HeadSizes s{p.word(batch), p.word(heads), p.word(kv_heads), p.word(queries), p.word(keys), p.word(dim), p.word(dim), {}};
    if (!possible(s) || s.heads != s.kv_heads * p.word(ratio)) return std::nullopt;
    if (p.word(queries_rounded) != parts(s.queries, rounded_to) * rounded_to
        || p.word(keys_rounded) != parts(s.keys, rounded_to) * rounded_to || p.word(dim_rounded) < s.dim || s.dim > *name.tile_k)
        return std::nullopt;
    if (p.address(first_rows) != 0) return std::nullopt;  // packed sequences
    const auto& g = launch.grid;
    const bool one_by_one = g[1] == s.batch && g[2] == s.heads, split = g[2] == s.batch * s.heads;
    if (g[0] != parts(s.queries, *name.tile_m) || !(one_by_one || split)) return std::nullopt;
    // Behind the traits: dropout, causal, a window; of a kernel that splits keys causal comes first.
    const names::Signature signature = names::signature_of(name.name);
    const std::size_t window = names::contains(signature.function, "splitkv") ? 2 : 3;
    if (signature.arguments.size() <= window || names::number(signature.arguments[window]) != 0) return std::nullopt;
    s.causal = names::contains(name.operation, "causal");
    return s;
}

}  // namespace

std::optional<HeadSizes> attention_sizes(const KernelName& name, const ParameterBytes& parameters, const LaunchExtents& launch) {
    if (name.role != "attention" || !name.operation.starts_with("forward")) return std::nullopt;
    if (name.family == "cudnn") return of_cudnn(parameters);
    if (names::contains(name.name, "Flash_fwd_kernel_traits")) return of_flash_second(name, parameters, launch);
    return std::nullopt;
}

std::optional<HeadSizes> attention_of_operator(std::string_view op, const std::vector<std::vector<std::int64_t>>& shapes,
                                               const KernelName& name) {
    const bool heads_first = op.starts_with("_scaled_dot_product_") || op == "scaled_dot_product_attention",
               rows_first = op == "_flash_attention_forward";
    if (!(heads_first || rows_first) || op.ends_with("_backward") || !name.operation.starts_with("forward") || shapes.size() < 3)
        return std::nullopt;
    const auto &q = shapes[0], &k = shapes[1], &v = shapes[2];
    if (q.size() != 4 || k.size() != 4 || v.size() != 4) return std::nullopt;
    const std::size_t head = heads_first ? 1 : 2, row = heads_first ? 2 : 1;
    if (q[0] != k[0] || k[0] != v[0] || k[head] != v[head] || k[row] != v[row] || q[3] != k[3]) return std::nullopt;
    HeadSizes s{q[0], q[head], k[head], q[row], k[row], q[3], v[3], {}};
    // Only FlashAttention's names have the mask.
    if (name.family == "flash-attention") s.causal = names::contains(name.operation, "causal");
    return possible(s);
}

}  // namespace rooftile
