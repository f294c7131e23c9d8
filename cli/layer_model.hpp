// What `plan layer` and `measure layer` take of a model alike.
#pragma once

#include "cli/verb.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/layer/report.hpp"
#include "rooftile/machine/file_text.hpp"

namespace rooftile::cli {

/// Of --config, which is given. Throws RequestError, one line.
inline LayerModel layer_model(const Given& given) {
    constexpr std::size_t most_bytes = 1 << 20;
    const std::string& file = given.text("config");
    const std::string text = read_small_file(file, {.bytes = most_bytes, .line_bytes = most_bytes});
    return {file, model_config(text, file)};
}

/// Of --layer, or the first of the kind that most layers are of.
inline std::int64_t layer_number(const Given& given, const ModelConfig& model) {
    const auto layers = std::int64_t(model.layers.size());
    return given.has("layer") ? whole_number(given.name("layer"), given.text("layer"), 0, layers - 1) : model.usual_layer();
}

}  // namespace rooftile::cli
