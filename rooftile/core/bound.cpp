#include "rooftile/core/bound.hpp"

namespace rooftile {

std::string_view name_of(Bound bound) {
    switch (bound) {
        case Bound::tensor:
            return "tensor";
        case Bound::shared:
            return "shared";
        case Bound::l2:
            return "l2";
        case Bound::dram:
            return "dram";
        case Bound::issue:
            return "issue";
        case Bound::latency:
            return "latency";
        case Bound::launch:
            return "launch";
    }
    return "?";
}

}  // namespace rooftile
