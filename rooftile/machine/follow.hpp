// What-if: which measured numbers follow a rated one that `--set` changes, so that no measured value keeps winning in
// silence. docs/machines.md lists them.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "rooftile/machine/machine.hpp"

namespace rooftile {

/// `before` with its fact under `key` changed is `machine`. Scales what follows that fact by the same ratio, and says so in
/// each source; what is in `set` stays. Throws RequestError where a number leaves its range, or where the old and the
/// new one are in forms that the machine's SM count and clock cannot compare.
void scale_followers(Machine& machine, const Machine& before, std::string_view key,
                     const std::set<std::string, std::less<>>& set);

/// Assignments are made in this order: a clock before what it scales, a rated number before a measured one.
int order_of_setting(std::string_view key);

}  // namespace rooftile
