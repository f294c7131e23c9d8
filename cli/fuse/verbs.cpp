#include "cli/fuse/verbs.hpp"

namespace rooftile::cli {

void add_fuse_verbs(std::vector<Verb>& verbs);

void add_fuse_verbs(std::vector<Verb>& verbs) {
    add_fuse_build(verbs);
    add_fuse_measure(verbs);
}

}  // namespace rooftile::cli
