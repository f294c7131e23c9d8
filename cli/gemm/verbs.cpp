#include "cli/gemm/verbs.hpp"

namespace rooftile::cli {

void add_gemm_verbs(std::vector<Verb>& verbs);

void add_gemm_verbs(std::vector<Verb>& verbs) {
    add_measure_ladder(verbs);
    add_report_ladder(verbs);
}

}  // namespace rooftile::cli
