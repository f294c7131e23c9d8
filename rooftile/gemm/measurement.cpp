#include "rooftile/gemm/measurement.hpp"

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

std::optional<double> measured_joules(const Measurement& m) {
    if (!m.power_w || m.mode != Mode::sustained) return std::nullopt;
    return *m.power_w * m.time_us / 1e6;
}

}  // namespace rooftile
