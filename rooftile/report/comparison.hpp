// Two runs of the same problems compared: of each, whether the second is the same, faster, slower, or undecided.
#pragma once

#include <string>
#include <vector>

#include "rooftile/report/suite_rows.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

enum class Change : unsigned char { slower, undecided, faster, same };
std::string_view name_of(Change change);

/// The plan ranked first of each run. The ratio is the first run's time over the second's: above 1 the second is faster. Its interval
/// follows from those of both times, at their ends.
struct ComparedProblem {
    std::string name;
    double first_us, second_us, ratio, low, high;
    bool same_plan;
    Change change;
};

struct Comparison {
    std::string first, second;              ///< what the runs are: GPU, driver, program, date
    std::vector<ComparedProblem> problems;  ///< slower ones first, then by how far the ratio is from 1
    int in_one_only = 0;                    ///< problems that one run lacks, or has no time for
    double within;                          ///< ratios that close to 1 are the same

    int count(Change change) const;
};

/// Of what read_suite_record() read: an interval within `within` of 1 is the same, one wholly above 1 + within is
/// faster, wholly below 1 / (1 + within) slower, any other undecided. Throws RequestError where no problem is in both.
Comparison compared(const SuiteRecord& first, const SuiteRecord& second, double within);

std::string comparison_text(const Comparison& comparison, const Terminal& terminal);

}  // namespace rooftile
