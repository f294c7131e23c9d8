// What a suite of fused kernels says together: each beside the bandwidth of a copy or of reads, beside its
// operators one by one, beside its prediction and beside the best of its own plans; and whether the bars are met.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rooftile/core/suite.hpp"
#include "rooftile/fuse/suite_row.hpp"
#include "rooftile/report/prediction_error.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// Which bar a problem stands under.
enum class FuseKind : std::uint8_t {
    pointwise,
    pointwise_issue,  ///< the plan says that instructions bind it, and how long they take is known
    row,              ///< rows of 1024 to 262144 elements, as long as they are read
    edge_row,         ///< shorter and longer ones
    reading,          ///< sums, maxima: beside read bandwidth
};

/// One problem: its plan ranked first.
struct FuseFigures {
    FuseSuiteRow row;
    std::string name;  ///< "softmax 32768x256 bf16"
    FuseKind kind = FuseKind::pointwise;
    std::optional<double> share;             ///< of the roof that its kind is held against
    std::optional<double> speedup;           ///< over the operators one by one
    std::optional<double> prediction_error;  ///< predicted / measured - 1
    std::optional<double> best_of_own;  ///< how many times as fast the fastest of its plans is; at least 1
    std::string why_none;               ///< where there is no result
};

/// One thing that must hold. The worst of those it speaks of stands for all.
struct FuseBar {
    std::string name;
    double wanted = 0;
    bool at_least = true;
    int count = 0;                ///< problems it speaks of; of none it holds only where it may
    std::optional<double> worst;  ///< or the mean
    std::string where;            ///< which problem that is
    bool may_be_of_none = false;  ///< which problems it speaks of depends on the plans
    bool ok() const {
        if (count == 0) return may_be_of_none;
        return worst && (at_least ? *worst >= wanted : *worst <= wanted);
    }
};

struct FuseSuiteReport {
    SuiteRecord record;  ///< without its lines and shapes
    std::string mode;
    std::vector<FuseFigures> problems;  ///< in the order of the file
    std::vector<FuseBar> bars;
    std::optional<PredictionError> prediction_error;
    std::vector<std::string> missing;  ///< problems of the suite that the file has not
};

/// `suite`: what the record should hold; null: what it holds is all.
FuseSuiteReport fuse_suite_report(SuiteRecord record, const Suite* suite = nullptr);

std::string suite_text(const FuseSuiteReport& report, const Terminal& terminal);
std::string suite_markdown(const FuseSuiteReport& report);
/// One line for each bar that is missed.
std::vector<std::string> missed_bars(const FuseSuiteReport& report);

}  // namespace rooftile
