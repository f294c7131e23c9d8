#include "cli/verb.hpp"

namespace rooftile::cli {

void add_build_suite(std::vector<Verb>& verbs);
void add_fuse_verbs(std::vector<Verb>& verbs);

void add_fuse_verbs(std::vector<Verb>& verbs) { add_build_suite(verbs); }

}  // namespace rooftile::cli
