// Convolutions have no verb of their own.
#include "cli/verb.hpp"

namespace rooftile::cli {

void add_conv_verbs(std::vector<Verb>&);
void add_conv_verbs(std::vector<Verb>&) {}

}  // namespace rooftile::cli
