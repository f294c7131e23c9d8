#include "cli/verb.hpp"

namespace rooftile::cli {

void add_chain_verbs(std::vector<Verb>& verbs);
/// Chains have no verb that the other operations lack.
void add_chain_verbs(std::vector<Verb>&) {}

}  // namespace rooftile::cli
