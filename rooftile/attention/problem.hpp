// O = softmax(Q K^T / sqrt(dim)) V of every head of every batch: what is computed, and how its tensors lie.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/attention/attention_mask.hpp"
#include "kernels/types.hpp"
#include "rooftile/attention/score.hpp"
#include "rooftile/core/problem.hpp"

namespace rooftile {

/// Which axis of a tensor [batch, heads, rows, dim] lies outside which; the row's elements are contiguous in both.
enum class AttentionLayout : std::uint8_t {
    bhsd,  ///< a head's rows follow each other
    bshd,  ///< a row's heads follow each other, as projections give them
};
std::string_view name_of(AttentionLayout layout);

inline constexpr std::int64_t max_attention_rows = std::int64_t{1} << 30;  ///< the kernel counts queries and keys in 32 bits
inline constexpr std::int64_t max_attention_heads = 65536;                 ///< and batches
inline constexpr std::int64_t attention_dim_step = 8, max_attention_dim = 256;
/// Of latent rows: those of keys in whole k-steps, values in whole boxes of each of two warpgroups; and queries, which are few.
inline constexpr std::int64_t latent_dim_step = 16, max_latent_dim = 576, latent_dim_v_step = 128, max_latent_dim_v = 512, max_latent_queries = 32;
inline constexpr std::int64_t max_attention_stride = std::int64_t{1} << 36;

/// Elements from one row, head and batch of a tensor to the next.
struct AttentionPitch {
    std::int64_t row, head, batch;
    friend bool operator==(const AttentionPitch&, const AttentionPitch&) = default;
};
enum class AttentionOperand : std::uint8_t { q, k, v, o };
inline constexpr AttentionOperand attention_operands[] = {AttentionOperand::q, AttentionOperand::k, AttentionOperand::v, AttentionOperand::o};
/// Of its strides in requests and documents.
constexpr std::string_view strides_key(AttentionOperand operand) {
    constexpr std::string_view keys[] = {"q_strides", "k_strides", "v_strides", "o_strides"};
    return keys[int(operand)];
}

struct AttentionProblem {
    std::int64_t batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, dim = 64, dim_v = 64;
    /// Of packed sequences, `batch` of them: each its own queries and keys, one behind the other in every tensor. On the device their
    /// bounds are read from cu_seqlens, so that a launch may have others of as many rows together. `queries` and `keys` are then the
    /// longest. Empty: all batches are alike.
    std::vector<std::int64_t> lengths;
    /// The lengths are those of the keys of a cache, in which every batch has room for `keys`: read on the device too, so that one launch serves any
    /// of them. What stands behind them counts for nothing.
    bool cached = false;
    /// Keys of a page, where keys lie in pages that a table names: K and V then are `pages` of them in place of batches. 0: they do not.
    std::int64_t page = 0, pages = 0;
    AttentionMask mask = AttentionMask::none;
    std::int64_t window = 0;  ///< keys that a query sees at most, of mask window
    AttentionLayout layout = AttentionLayout::bhsd;
    Type type = Type::bf16;
    bool log_sum_exp = false;  ///< of the scores of every query, too
    /// Values are the first dim_v elements of keys' rows, one row a key for all heads: there is no V, and K is read once. Multi-head latent attention
    /// (DeepSeek-V2, arXiv 2405.04434, section 2.1.2) with its up-projections absorbed.
    bool latent = false;
    double scale = 0;          ///< what scores are multiplied by; 0: 1 / sqrt(dim)
    SharedScore score;         ///< what is made of a score before its exponential
    /// Heads that share keys, taken as one whose rows are a query's heads, then the next one's: how many, and `queries` counts rows. Of the planner
    /// alone (heads_as_rows()); strides are the heads' own.
    std::int64_t group = 1;
    /// Of Q, K, V and O where they do not lie as `layout` says: views of a projection's result, or of what the next one reads.
    std::array<std::optional<AttentionPitch>, 4> strides;

    /// What scores are multiplied by.
    double score_scale() const;
    /// Elements that are read of a key and its values.
    std::int64_t key_elements() const { return latent ? dim : dim + dim_v; }
    bool packed() const { return !lengths.empty() && !cached; }
    bool paged() const { return page > 0; }
    /// Whether all batches have the same queries and keys.
    bool alike() const { return lengths.empty(); }
    std::int64_t pages_of_a_batch() const { return paged() ? (keys + page - 1) / page : 0; }
    /// Of K and V, along their first axis.
    std::int64_t key_batches() const { return packed() ? 1 : paged() ? pages : batch; }
    /// Rows of Q, and of K, that a head has in memory: of a packed batch those of all sequences.
    std::int64_t query_rows() const;
    std::int64_t key_rows() const;
    /// What is counted one by one: sequences where they are unlike, else one for all.
    std::int64_t sequences() const { return alike() ? 1 : batch; }
    std::int64_t first_row(std::int64_t sequence) const;
    AttentionExtent extent(std::int64_t sequence = 0) const;
    /// Heads of all batches; packed sequences share theirs.
    std::int64_t heads_of_all() const { return packed() ? heads : batch * heads; }
    /// Keys of a head that some query sees, and queries that see some: all but those that lie before every window, or before the first key.
    std::int64_t seen_keys() const;
    std::int64_t seeing_queries() const;
    /// Of the longest sequence.
    std::int64_t most_seen_keys() const { return alike() ? seen_keys() : keys; }
    /// Pairs of a query and a key that it sees, of one head.
    double visible_pairs() const;
    /// Of both products, of visible pairs alone.
    double flops() const { return 2.0 * double(heads_counted()) * visible_pairs() * double(dim + dim_v); }
    /// Heads that have what is summed over sequences().
    std::int64_t heads_counted() const { return alike() ? batch * heads : heads; }
    std::int64_t q_bytes() const;  ///< of seeing_queries()
    std::int64_t k_bytes() const;  ///< of seen_keys()
    std::int64_t v_bytes() const;  ///< 0 where values are in K
    std::int64_t o_bytes() const;
    /// Every tensor read or written once, as far as the mask asks for it.
    std::int64_t compulsory_bytes() const;

    /// What a product, a softmax and a product read and write as kernels of their own: scores and probabilities twice each, those behind
    /// the mask among them [M24].
    double unfused_bytes() const;

    friend bool operator==(const AttentionProblem&, const AttentionProblem&) = default;
};

/// "none", "causal", "window:128".
std::string mask_text(const AttentionProblem& problem);
std::string_view name_of(AttentionMask mask);
std::string_view attention_type_name(Type type);

/// Throws RequestError, one line, where no such problem can be had.
void check(const AttentionProblem& problem);

/// Of a dense tensor of `heads` x `rows` x `dim`.
AttentionPitch dense_pitch(AttentionLayout layout, std::int64_t heads, std::int64_t rows, std::int64_t dim);
AttentionPitch pitch_of(const AttentionProblem& problem, AttentionOperand operand);

/// "128,512,..."; empty: not packed.
std::string lengths_text(const AttentionProblem& problem);

/// Which of attention_tensors() has the values; is cu_seqlens, or the lengths of a cache; its table of pages; the score's first, and O.
inline std::size_t values_tensor(const AttentionProblem& problem) { return problem.latent ? 1 : 2; }
inline std::size_t bounds_tensor(const AttentionProblem& problem) { return values_tensor(problem) + 1; }
inline std::size_t table_tensor(const AttentionProblem& problem) { return values_tensor(problem) + 2; }
std::size_t first_score_tensor(const AttentionProblem& problem);
std::size_t output_tensor(const AttentionProblem& problem);

/// Q, K, V unless it is in K, of packed sequences cu_seqlens, what the score reads, then O and, where asked for, L.
std::vector<TensorInfo> attention_tensors(const AttentionProblem& problem);

}  // namespace rooftile
