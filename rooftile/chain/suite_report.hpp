// What a suite of chains says together: how fast plan 1 is, how far its prediction is off, and how it stands among its own.
#pragma once

#include "rooftile/report/suite_rows.hpp"

namespace rooftile {

SuiteReporter chain_suite_reporter(SuiteRecord record, const Suite* suite);

}  // namespace rooftile
