// An operator written in several ways, measured side by side: `rooftile/ways/1` from a script's report and the recording of its run.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rooftile/machine/machine.hpp"
#include "rooftile/profile/recorded.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/terminal.hpp"
#include "rooftile/ways/operators.hpp"

namespace rooftile {

/// Of one way: who writes it, and who decides what.
struct Way {
    const char *id, *name;
    const char* code_to_change;  ///< none, small, medium, large
    const char *coalescing, *shared_memory, *within_sm, *across_sms;
};
const std::vector<Way>& ways();

/// A range of a run, on the device.
struct RangedWork {
    /// ns, from its first kernel's start to its last one's end, gaps included; what came before and still ran is not its own.
    double window = 0;
    double kernels = 0;  ///< ns of all of its kernels, each without what came before
    double host = 0;     ///< ns of the host between the range's ends
    double step = 0;     ///< ns from its first kernel's start to that of the next range of the name; 0: there is none
    std::vector<const DeviceWork*> work;  ///< kernels, copies and memsets, by start
};

/// Every range of that name whose work was seen, in the order of time.
std::vector<RangedWork> ranged_work(const std::vector<Recorded>& recordings, std::string_view name);

/// What was asked for.
struct WaysRequest {
    const WayOperator* what = nullptr;
    WaySizes sizes;
    std::string type;
};

/// What an operator should take on a machine.
struct WaysPrediction {
    std::optional<double> possible, predicted;  ///< us: the datasheet's roof; Rooftile's plans, from the first kernel's start
    std::string plan;     ///< in a few words, one for each part
    std::string command;  ///< that shows the first of them
    std::string why_not;  ///< where one is unknown
};
WaysPrediction ways_prediction(const WaysRequest& request, const std::shared_ptr<const Machine>& machine);

/// `report`: what ways.py wrote. `machine`: whose roof counts. `elsewhere`: machines to predict for.
Json ways_document(const DocumentContext& context, const WaysRequest& request, const Json& report, const std::vector<Recorded>& recordings,
                   const std::shared_ptr<const Machine>& machine, const std::vector<std::string>& elsewhere);

/// Throws nlohmann::json::exception where it is no such document.
std::string ways_text(const Json& document, const Terminal& terminal);

}  // namespace rooftile
