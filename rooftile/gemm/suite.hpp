// A suite: the problems of some models' layers, read from a TOML file; docs/command-line.md has the format.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/core/measured.hpp"
#include "rooftile/gemm/problem.hpp"

namespace rooftile {

/// One problem, named by every layer that has it.
struct SuiteProblem {
    GemmProblem problem;
    std::vector<SuiteLayer> layers;
    int rounds = 0;  ///< least blocks of plan 1 and its rivals, the most that a model names; 0: none named
};

struct Suite {
    std::string name;
    std::vector<SuiteProblem> problems;  ///< each once, in the order in which the file first names them
};

/// Reads the suite file at `path`. Throws RequestError: one line naming file, place and what is accepted.
/// Refuses what is no regular file, or larger than 64 KiB.
Suite read_suite(const std::filesystem::path& path);

/// The same from memory; `file_name` is for messages.
Suite parse_suite(std::string_view text, std::string_view file_name);

/// The problems of which a layer's "model layer MxNxK" holds `text`; each keeps all its names.
Suite filtered(Suite suite, std::string_view text);

}  // namespace rooftile
