// A suite: problems of one operation, read from a TOML file; docs/command-line.md has the format.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/core/measured.hpp"
#include "rooftile/core/problem.hpp"

namespace rooftile {

/// One problem, named by every layer that has it.
struct SuiteProblem {
    Problem problem;
    std::vector<SuiteLayer> layers;
    int rounds = 0;  ///< least blocks of plan 1 and of what it is held against; 0: none named
};

/// "Llama-3-8B down, Qwen2.5-7B up 4096x4096x14336": the layers that have it.
std::string name_of(const SuiteProblem& problem);

struct Suite {
    std::string name;
    std::string law;  ///< what its problems were drawn by; empty: by nobody
    const Operation* operation = nullptr;
    std::vector<SuiteProblem> problems;  ///< each once, in the order in which the file first names them
};

/// Reads the suite file at `path`, whose problems are `operation`'s. Throws RequestError: one line naming file, place
/// and what is accepted. Refuses what is no regular file, or larger than 64 KiB.
Suite read_suite(const Operation& operation, const std::filesystem::path& path);

/// The suite as a file: a [[problem]] row each, keyed by the operation's fields. The same bytes for the same suite.
std::string suite_toml(const Suite& suite);

/// The problems of which a name holds `text`; each keeps all its names.
Suite filtered(Suite suite, std::string_view text);

}  // namespace rooftile
