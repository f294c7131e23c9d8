// Host text that launches a kernel as a recorded launch was: arguments member by member, tensor maps, grid.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rooftile/emit/program.hpp"
#include "rooftile/runtime/recorded_launch.hpp"

namespace rooftile::emit {

/// A pointer that launch() takes.
struct Parameter {
    std::string name;  ///< "a", of C++
    bool stored = false;
};

/// One kernel's launch in words that the file has.
struct LaunchText {
    std::string kernel;  ///< "rooftile::scale"
    RecordedLaunch recorded;
    bool at_most_resident = false;  ///< a persistent grid: no more CTAs than the GPU holds
};

/// Functions that launcher_text() calls and the device's own tables.
std::string launcher_helpers(const Recording& recording, bool maps);
/// `launch(...)`. Throws RequestError where a kernel's parameters are not understood.
std::string launcher_text(const Program& program, const std::vector<LaunchText>& launches, const Recording& recording,
                          const std::vector<Parameter>& parameters, const std::string& story);

/// A C++ name of a tensor's: "a" of "A".
std::string identifier_of(std::string_view name);

}  // namespace rooftile::emit
