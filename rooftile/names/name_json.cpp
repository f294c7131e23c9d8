#include "rooftile/names/name_json.hpp"

#include <nlohmann/json.hpp>

namespace rooftile {
Json name_json(const KernelName& n) {
    Json out = {{"family", n.family}};
    return out;
}
}  // namespace rooftile
