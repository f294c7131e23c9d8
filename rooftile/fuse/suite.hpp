// A suite of fused expressions: each over several shapes and types, read from a TOML file;
// docs/command-line.md has the format.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/expression/graph.hpp"
#include "rooftile/core/measured.hpp"

namespace rooftile {

/// One problem, named once: the group's name and "32768x256 bf16".
struct FuseSuiteProblem {
    ExpressionGraph problem;
    std::vector<SuiteLayer> layers;
};

struct FuseSuite {
    std::string name;
    std::vector<FuseSuiteProblem> problems;  ///< in the order of the file
};

/// As read_suite(): throws RequestError, one line naming file, place and what is accepted.
FuseSuite read_fuse_suite(const std::filesystem::path& path);
FuseSuite parse_fuse_suite(std::string_view text, std::string_view file_name);

/// The problems whose "group ROWSxCOLUMNS type" holds `text`.
FuseSuite filtered(FuseSuite suite, std::string_view text);

}  // namespace rooftile
