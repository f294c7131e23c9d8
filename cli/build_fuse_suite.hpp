// `build fuse --suite`: every problem's kernel, and its operators', as files that another program can launch.
#pragma once

#include <string>

#include "cli/fuse_arguments.hpp"
#include "cli/output.hpp"

namespace rooftile::cli {

struct BuildSuiteFlags {
    FuseFlags fuse;
    OutputFlags output;
    std::string suite, into, filter;
};
int build_fuse_suite(const BuildSuiteFlags& flags, const std::string& command);

}  // namespace rooftile::cli
