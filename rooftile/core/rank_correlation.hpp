// How alike two orders are.
#pragma once

#include <span>

namespace rooftile {

/// Spearman's rank correlation of two lists of equal length; ties share their mean rank. NaN where either
/// list is constant or empty.
double rank_correlation(std::span<const double> x, std::span<const double> y);

}  // namespace rooftile
