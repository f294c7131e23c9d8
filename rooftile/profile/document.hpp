// `rooftile/profile/1`, and what people read of it. Text, pictures and comparisons are written from the document alone, so that a
// recorded one says the same.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "rooftile/profile/explained.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

Json profile_document(const DocumentContext& context, const Profile& profile, const ExplainedProfile& explained);

/// `top`: kernels to list. Throws nlohmann::json::exception where it is no such document.
std::string profile_text(const Json& document, int top, const Terminal& terminal);

/// Two runs by kernel: what takes longer, less, came or went. Of profiles with a range, a step of each.
std::string profile_comparison_text(const Json& first, const Json& second, int top, const Terminal& terminal);

/// Folded stacks, "range;range;kernel 1234" a line in ns, as flame graph tools read them.
std::string folded_stacks(const Json& document);

/// Trace events of recordings, which Perfetto and chrome://tracing show: kernels and copies by stream, calls and ranges by thread.
Json timeline(const std::vector<Recorded>& recordings);

/// What the sums say to do first: at most three, the largest first.
struct Saving {
    double us = 0;  ///< a step
    std::string what, command;
};
std::vector<Saving> savings_of(const Json& document);

/// A kernel's name for a table: decoded where it is known, else the name without its arguments.
std::string short_name(const KernelName& name);

}  // namespace rooftile
