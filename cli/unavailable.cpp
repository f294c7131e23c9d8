#include "cli/verb.hpp"

namespace rooftile::cli {

void add_unavailable(std::vector<Verb>& verbs) {
    Verb verb;
    verb.path = "validate";
    verb.meaning = "Compare predictions with measurements (not available yet)";
    verbs.push_back(std::move(verb));
}

}  // namespace rooftile::cli
