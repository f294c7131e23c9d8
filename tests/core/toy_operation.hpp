// A toy operation that has what the real ones lack: a list field, an extent that is read on the device, two launches that
// share a zeroed workspace, and two parts. docs/adding-an-operation.md walks through it.
#pragma once

#include <vector>

#include "rooftile/core/operation.hpp"
#include "tests/toy/gather.hpp"

namespace rooftile {

/// Sums of groups of rows: y[group] = sum of x[rows of that group], the groups' sizes given, how many rows count read from
/// a tensor on the device. A first launch counts into a zeroed workspace, a second sums; the scaling of x before and of y
/// after are parts that another operation plans, where this build has it.
const Operation& toy_operation();

/// The program's and the toys, for tests that run over every operation.
inline std::vector<const Operation*> all_operations() {
    std::vector<const Operation*> all(operations().begin(), operations().end());
    all.push_back(&toy_operation());
    all.push_back(&toy_gather());
    return all;
}

}  // namespace rooftile
