// Which of many candidates a test compiles.
#pragma once

#include <cstdlib>
#include <string_view>

namespace rooftile {

/// Every `every`th; all of them with ROOFTILE_COMPILE_ALL=1, which takes minutes to an hour.
inline bool compiles_this(int place, int every) {
    const char* all = std::getenv("ROOFTILE_COMPILE_ALL");
    return (all && std::string_view(all) == "1") || place % every == 0;
}

}  // namespace rooftile
