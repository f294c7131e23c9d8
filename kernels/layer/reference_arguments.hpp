// What the kernels of kernels/layer/reference.cuh are told and tell; host and device see the same bytes.
#pragma once

#include "kernels/types.hpp"

namespace rooftile {

struct LayerHeads {
    long long tokens, tokens_of_sequence, heads, kv_heads, dim, rotated;
    long long keys;    ///< of each sequence, this step's last
    long long window;  ///< keys that a query sees at most
    double eps;        ///< of the norms of heads; negative: there are none
    double scale;      ///< of scores
    double amplitude;  ///< of the sines and cosines that queries and keys are turned by
    Type type;
};

/// Rows of a result: dense, or tokens' places in a cache.
struct LayerPlace {
    long long columns, tokens_of_sequence, keys;  ///< keys 0: dense
};

/// What was seen of a result.
struct LayerSeen {
    double row;                  ///< the worst row: root mean square of its errors over that of the row
    double element;              ///< the worst error over the root mean square of its row
    double errors, all;          ///< sums of squares, of errors and of what they are errors of
    unsigned long long changed;  ///< elements that nobody may change and somebody did
};

}  // namespace rooftile
