#include "cli/verb.hpp"

namespace rooftile::cli {

void add_attention_verbs(std::vector<Verb>& verbs);
/// Attention has no verb that the other operations lack.
void add_attention_verbs(std::vector<Verb>&) {}

}  // namespace rooftile::cli
