// A kernel's name against how it was launched: of a plan that was read right, both agree.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "rooftile/names/kernel_name.hpp"

namespace rooftile {

/// As a profiler has it; 0 where it does not.
struct LaunchData {
    std::array<int, 3> grid{}, block{}, cluster{};
    int registers = 0;  ///< a thread
    long static_shared = 0, dynamic_shared = 0;
};

struct LaunchAgreement {
    int checked = 0;                         ///< of what the name says and the launch has too
    std::vector<std::string> disagreements;  ///< a sentence each, with both values
    bool agrees() const { return disagreements.empty(); }
};

LaunchAgreement agrees(const KernelName& name, const LaunchData& launch);

}  // namespace rooftile
