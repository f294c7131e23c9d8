// A file of several kernels of the user's, to be measured one after the other.
#pragma once

#include <string>
#include <vector>

#include "rooftile/core/field.hpp"

namespace rooftile {

struct SourceSuite {
    std::string name;
    struct Kernel {
        std::string name;                   ///< for a reader: its own, else the entry's
        Given given{Given::Named::by_key};  ///< keys of source_fields(); the file's path is from here
    };
    std::vector<Kernel> kernels;
};

/// Reads [[source]] tables; files are looked for beside the suite's. Throws RequestError: one line that names file, place and what is
/// accepted. What only measure_source() could refuse is not looked at.
SourceSuite read_source_suite(const std::string& path);

}  // namespace rooftile
