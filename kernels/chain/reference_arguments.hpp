// What the reference of a chain takes and returns; host and device see the same bytes.
#pragma once

#include "kernels/chain/sm90_chain_config.hpp"
#include "kernels/expression/bounded.hpp"
#include "kernels/measure/arguments.hpp"

namespace rooftile {

/// From sums X W1^T of some rows, [rows][width] densely, to H as kernels round it, [rows][ff].
struct ChainRoundArguments {
    const Bounded* sums;
    unsigned short* hidden;
    unsigned short* slack;  ///< how far H may be rounded apart from that: 0 nearly everywhere
    long long rows, width, ff;
    ChainFunction act;
    Type type;
};

/// Each of `results` Y against H W2^T, [rows][d] densely, and what the slack of H leaves open.
struct ChainJudgeArguments {
    const Bounded *sums, *slack;
    const unsigned short* x;  ///< the residual; null: there is none
    const unsigned short* y[verify_max];
    int results;
    long long first_row, rows, d;
    double slack_sigmas;  ///< errors of `slack` times this bound what its signs may come to
    Type type;
    bool exact;
};

/// What one CTA saw of one result.
struct ChainRecord {
    unsigned long long wrong, undecided;
    double ratio, reference, bound;
    long long row, column;
    unsigned got;
};

}  // namespace rooftile
