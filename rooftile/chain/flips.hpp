// From which size or which number of the machine another form of a chain is the first.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rooftile/chain/plan.hpp"
#include "rooftile/core/plan.hpp"
#include "rooftile/machine/machine.hpp"

namespace rooftile {

/// One line a quantity: of m, d, ff, L2's size and DRAM's bandwidth, each changed alone (numbers as `--set` does) by factors of two up to 64
/// either way, the nearest value at which another form than `plans`' first is ahead, and within half a percent of it, or beside it, one at which
/// the first still is. Both are planned anew, as a request for them is.
std::vector<std::string> chain_flips(const std::shared_ptr<const Machine>& machine, const Problem& problem, const ChainRequest& request, ChainForm first);

}  // namespace rooftile
