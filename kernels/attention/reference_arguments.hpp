// What attention's reference takes and returns; host and device see the same bytes.
#pragma once

#include "kernels/attention/attention_arguments.hpp"
#include "kernels/measure/arguments.hpp"

namespace rooftile {

/// Results of one problem, judged against one fp64 evaluation.
struct AttentionJudgeArguments {
    AttentionArguments problem;  ///< its inputs; what it would write is not used
    double scale;                ///< what a score is multiplied by, as a double
    Type type;
    bool exact;  ///< results are whole numbers of the type, known bit for bit
    int results;
    const unsigned short* o[verify_max];  ///< the first `results`
    const float* log_sum_exp[verify_max];
    long long log_sum_exp_head;  ///< elements from one head's to the next's
    double score_error;  ///< of a sum of products of queries and keys, as a share of its deviation
    double value_error;  ///< the same of products with values
};

/// What one CTA saw of one result. In an array, all CTAs of the first result, then all of the second.
struct AttentionRecord {
    unsigned long long wrong;
    WorstElement worst;  ///< row: (batch heads + head) queries + query; column -1: of the log-sum-exp
};

/// Numbers for which every query's weights are 1 for one key and so small for all others that O is that key's row of V, bit for bit.
///
/// A key's number, in binary, stands in its row of K as +-magnitude, bit d % bits in element d; a query has the number of the key
/// that it is to find. The nearest other key differs in one bit: dim / bits times 2 magnitude^2 less, which exp() makes nothing of.
struct AttentionExactFill {
    AttentionArguments problem;
    Type type;
    int bits;  ///< of a key's number that rows hold: keys that are alike in them have the same values
    unsigned seed;
    bool values_in_keys;  ///< there are no rows of V: O is then the key's row of K, as far as it has values

    static constexpr int magnitude = 8;
    static constexpr int largest_value = 127;
};

/// Bits that tell `keys` apart, in rows of `dim`.
constexpr int attention_key_bits(long long keys, int dim) {
    int bits = 1;
    while (bits < dim && (1ll << bits) < keys && bits < 30) ++bits;
    return bits;
}

}  // namespace rooftile
