// The cases by which results are verified, and what one of them gives. Any operation's reference speaks in these.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rooftile {

/// The inputs of a check.
enum class VerifyCase : std::uint8_t {
    exact,    ///< whole numbers so small that the result is known bit for bit
    random,   ///< standard normal numbers: every element within its bound
    shifted,  ///< rows whose mean is large beside their spread, some of one value
    special,  ///< as random, with NaN, +Inf, -Inf and what overflows the type injected
};
std::string_view name_of(VerifyCase which);

/// What a reference says of one result.
struct CaseOutcome {
    bool right = false;
    std::int64_t checked = 0;    ///< elements compared
    std::int64_t wrong = 0;      ///< outside their bound, or of a wrong class (NaN, Inf, finite)
    std::int64_t undecided = 0;  ///< whose bound is infinite: they pass whatever they are
    std::int64_t wrong_tiles = 0;  ///< whose errors together are more than rounding and accumulation make
    double tile_ratio = 0;       ///< largest root mean square error of a tile / allowed; 0 where tiles are not judged
    double whole_ratio = 0;      ///< the same of the whole output
    bool guarded = true;         ///< nothing outside the outputs was written, no input changed; the Verifier's to say
    double ratio = 0;            ///< largest |error| / bound; 1 is the limit
    double bound = 0;            ///< at that element, in the output's units
    std::string failure{};       ///< one line where not right: element, got, expected, bound
};

}  // namespace rooftile
