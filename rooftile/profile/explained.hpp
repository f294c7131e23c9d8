// What kernels of a profile should take: predicted for that very kernel, for ours in its place, and the least that the machine allows.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rooftile/machine/machine.hpp"
#include "rooftile/names/kernel_name.hpp"
#include "rooftile/profile/profile.hpp"

namespace rooftile {

/// Of a group of kernels, for one call. Empty: unknown.
struct ExplainedKernel {
    std::optional<double> predicted, ours, least;  ///< ns
    std::optional<double> least_bytes;           ///< every tensor that is read or written once
    std::string problem;   ///< "4096x14336x4096", empty where none is known
    std::string operation; ///< that plans it
    std::string plan;      ///< ours in a few words
    std::string command;   ///< that shows ours, and why
    std::string why_not;   ///< where something is unknown
    std::vector<std::string> disagreements;  ///< of the name with the launch, a sentence each
};

struct ExplainedProfile {
    std::vector<KernelName> names;          ///< of each group of the profile's kernels
    std::vector<ExplainedKernel> kernels;   ///< the same
    std::vector<std::string> machines;      ///< of each device, the id of the machine file; empty: none is known
};

/// `machine`: for all devices; null: the shipped one that a device's name and SMs stand for.
ExplainedProfile explained(const Profile& profile, const std::shared_ptr<const Machine>& machine);

}  // namespace rooftile
