#include "rooftile/gemm/measurement.hpp"

namespace rooftile {

std::optional<double> measured_joules(const Measurement& m) {
    if (!m.power_w || m.mode != Mode::sustained) return std::nullopt;
    return *m.power_w * m.time_us / 1e6;
}

}  // namespace rooftile
