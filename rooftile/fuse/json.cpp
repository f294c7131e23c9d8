#include "rooftile/fuse/json.hpp"

#include <nlohmann/json.hpp>

#include "rooftile/fuse/records.hpp"

namespace rooftile {

Json problem_json(const ExpressionGraph& problem) {
    Json out = {{"op", "fuse"}};
    out.update(to_json(problem_record(problem)));
    return out;
}

Json config_json(const FusePlan& plan) { return to_json(config_record(plan)); }
Json resources_json(const FuseResources& resources) { return to_json(resources_record(resources)); }

}  // namespace rooftile
