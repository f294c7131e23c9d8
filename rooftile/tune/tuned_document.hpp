// Choices for readers: the document `rooftile/tuned/1`, whose rows are the lines of the store, and a terminal's table.
#pragma once

#include <span>
#include <string>

#include "rooftile/report/json.hpp"
#include "rooftile/report/terminal.hpp"
#include "rooftile/tune/store.hpp"

namespace rooftile {

Json choice_json(const TunedChoice& choice);
/// docs/schema/tuned-1.json is its JSON Schema.
Json tuned_document(const DocumentContext& context, std::span<const TunedChoice> choices);
std::string tuned_text(std::span<const TunedChoice> choices, const Terminal& terminal);

}  // namespace rooftile
