#include "cli/verb.hpp"

namespace rooftile::cli {

void add_unavailable(std::vector<Verb>& verbs) {
    for (const auto& [path, meaning] : {std::pair{"sweep", "Plan or measure over ranges of a problem"},
                                        {"validate", "Compare predictions with measurements"}}) {
        Verb verb;
        verb.path = path;
        verb.meaning = std::string(meaning) + " (not available yet)";
        verbs.push_back(std::move(verb));
    }
}

}  // namespace rooftile::cli
