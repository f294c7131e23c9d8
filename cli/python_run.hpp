// A script of this program's own, run by a Python that has PyTorch, with the collector in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rooftile/core/field.hpp"
#include "rooftile/machine/machine.hpp"
#include "rooftile/profile/recorded.hpp"
#include "rooftile/report/context.hpp"
#include "rooftile/report/json.hpp"

namespace rooftile::cli {

/// --python and --recordings.
std::vector<Field> python_fields();

struct PythonRun {
    Json report;                       ///< what the script wrote
    std::vector<Recorded> recordings;  ///< none where nothing was timed
};

/// Runs the embedded `script`, beside all texts of its kind, on `request`. `timed`: recorded. Throws Error where Python does not start,
/// there is no GPU to be timed, or the script does not end well.
PythonRun run_python(const std::string& script, Json request, const Given& given, bool timed);

/// Of a document of such a run.
DocumentContext context_of_run(const Machine& machine, const PythonRun& run, const std::string& command, std::uint64_t seed);

}  // namespace rooftile::cli
