// What was probed as documents, and back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rooftile/probe/probe.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

Json result_json(const ProbeResult& result);
/// Throws nlohmann::json::exception where `json` is no result_json().
ProbeResult result_of(const Json& json);

/// `rooftile/probe/1`: `probes` with their seconds and failures, `values`, `points` (every row of every
/// curve), `differences`, `notes`.
Json probe_document(const DocumentContext& context, const ProbeRun& run,
                    const std::vector<std::string>& notes);

/// Every value with its spread beside the machine file's, the differences, then failures and notes.
std::string probe_text(const ProbeRun& run, const std::vector<std::string>& notes, const Terminal& terminal);

/// "tma.latency.dram  681.2 ns +- 3.1 (9 samples)".
std::string value_line(const ProbeValue& value);

}  // namespace rooftile
