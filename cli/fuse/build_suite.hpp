// `build fuse --suite`: plan 1 of every problem of a suite and its operators one by one, for programs of their own.
#pragma once

#include "cli/verb.hpp"

namespace rooftile::cli {

int build_fuse_suite(const Given& given, const OutputFlags& output, const Invocation& invocation);

}  // namespace rooftile::cli
