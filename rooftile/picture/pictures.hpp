// What can be drawn of a document: each picture's numbers are the document's own. A kind of document has one function here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rooftile/picture/picture.hpp"

namespace rooftile {

/// Of any document, by its `schema`; the first says the most. None: it has nothing to draw, or nothing that this program knows.
/// Throws nlohmann::json::exception, or RequestError, where it is not what its schema says.
std::vector<Picture> pictures_of(const Json& document);
/// The same, one at least; where `id` is not empty, that one alone. `asked`: how an error calls the id. Throws RequestError.
std::vector<Picture> pictures_of(const Json& document, std::string_view id, std::string_view asked);

/// The one that needs `map` of a plan document.
inline constexpr std::string_view tile_map_id = "tile_map";
std::vector<Picture> plan_pictures(const Json& document);
std::vector<Picture> measurement_pictures(const Json& document);
std::vector<Picture> sweep_pictures(const Json& document);
std::vector<Picture> planned_pictures(const Json& document);  ///< of many problems that were planned, not measured
std::vector<Picture> validation_pictures(const Json& document);
std::vector<Picture> simulation_pictures(const Json& document);
std::vector<Picture> layered_simulation_pictures(const Json& document);  ///< of one form of two products in a row

std::vector<Picture> profile_pictures(const Json& document);
std::vector<Picture> ways_pictures(const Json& document);  ///< of an operator in several ways
std::vector<Picture> unit_pictures(const Json& document);  ///< of short kernels: a curve each over bytes
std::vector<Picture> probe_pictures(const Json& document);  ///< of a probe of device memory: its rates
std::vector<Picture> mlp_pictures(const Json& document);   ///< of an MLP at many sizes: a curve each
std::vector<Picture> layer_pictures(const Json& document);  ///< of a model's layer: its kernels, or maps of many steps

/// The document `rooftile/pictures/1`: each with its data, its Vega-Lite specification and its SVG. `document` is what they are of.
Json pictures_document(const Json& document, const std::vector<Picture>& pictures);

/// One below the other.
std::string svg_text(const std::vector<Picture>& pictures);

/// One CTA's way through a tile as trace events, which Perfetto and chrome://tracing show. Of `pipeline` of a plan.
Json pipeline_trace(const Json& pipeline);

/// "4096x14336x4096 on h100-sxm"; what the document says of its problem and machine.
std::string subject_of(const Json& document, const Json& row);

}  // namespace rooftile
