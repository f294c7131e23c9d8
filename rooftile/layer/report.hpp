// The document `rooftile/layer/1` (docs/schema/layer-1.json) and what a terminal shows of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rooftile/layer/plan.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// The model's configuration and where it was read.
struct LayerModel {
    std::string file;
    ModelConfig config;
};

/// Without cells: add_layer_cells() adds those of one planner after the other.
Json layer_document(const DocumentContext& context, const LayerModel& model, const LayerRequest& request, const Machine& machine);

/// Plans the request's cells for the planner's machine, of whose numbers `set` says which are others than the document's: "l2.size=25 MB".
void add_layer_cells(Json& document, LayerPlanner& planner, const std::vector<std::string>& set,
                     const LayerModel& model, const LayerRequest& request);

/// Of a cell of a document: the gaps' share of its time in a graph. Empty: unknown.
std::optional<double> gaps_share(const Json& cell);

/// Lines of their own, within the terminal's width.
std::string layer_heading(const std::string& text, Tone tone, const Terminal& terminal);

/// Throws nlohmann::json::exception where it is no such document.
std::string layer_text(const Json& document, const Terminal& terminal);

}  // namespace rooftile
