#include "rooftile/measure/verify_case.hpp"

#include <cassert>

namespace rooftile {

std::string_view name_of(VerifyCase which) {
    switch (which) {
        case VerifyCase::exact:
            return "exact";
        case VerifyCase::random:
            return "random";
        case VerifyCase::shifted:
            return "shifted";
        case VerifyCase::special:
            return "special";
    }
    assert(false);
    return "";
}

}  // namespace rooftile
