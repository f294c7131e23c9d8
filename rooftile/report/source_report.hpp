// A user's kernel beside what computes the same: one table, what their code says, and the document.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rooftile/measure/measurement.hpp"
#include "rooftile/report/code_accesses.hpp"
#include "rooftile/report/context.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// What a compiled kernel says of itself.
struct CodeFacts {
    std::string entry, launch;  ///< "scale"; "grid 1024, block 256"
    int registers = 0, spill_store_bytes = 0, spill_load_bytes = 0, stack_bytes = 0;
    std::int64_t shared_bytes = 0;
    AccessWidths accesses;
    bool from_sass = true;                      ///< else of the PTX: no disassembler was found
    std::optional<double> elements_per_thread;  ///< of the outputs
};

/// A measured user's kernel, the first of `rows`, with the derived one behind it, where there is any.
struct SourceReport {
    std::string file;
    std::vector<Measurement> rows;
    std::vector<CodeFacts> codes;                 ///< of the rows
    std::map<std::string, std::int64_t> launches;  ///< of baselines that do the same work, by their keys, where they are known
    std::vector<std::string> notes;
};

std::string source_text(const DocumentContext& context, const SourceReport& report, const Terminal& terminal);
/// `rooftile/measurement/1`; each row has `source`: the file (null of the derived kernel) and what its code says.
Json source_document(const DocumentContext& context, const SourceReport& report,
                     const std::vector<Timing>& timings);

}  // namespace rooftile
