// A script of this program's own, run by a Python that has PyTorch, with the collector in it.
#pragma once

#include <string>
#include <vector>

#include "rooftile/core/field.hpp"
#include "rooftile/profile/recorded.hpp"
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

}  // namespace rooftile::cli
