#include "rooftile/core/measured.hpp"

#include <cassert>

namespace rooftile {

std::string_view name_of(Mode mode) {
    switch (mode) {
        case Mode::cold:
            return "cold";
        case Mode::sustained:
            return "sustained";
        case Mode::burst:
            return "burst";
    }
    assert(!"a Mode without a name");
    return "?";
}

}  // namespace rooftile
