#include "rooftile/gemm/json.hpp"

#include <nlohmann/json.hpp>

#include "rooftile/gemm/records.hpp"

namespace rooftile {

Json problem_json(const GemmProblem& p) {
    Json out = {{"op", "gemm"}};
    out.update(to_json(problem_record(p)));
    return out;
}

Json config_json(const GemmConfig& config) { return to_json(config_record(config)); }

}  // namespace rooftile
