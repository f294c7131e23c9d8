// Which of many candidates a test compiles.
#pragma once

#include "tests/from_environment.hpp"

namespace rooftile {

/// Every `every`th, or only one in `few` of these, which ones follows from test_seed(); all of them, which takes minutes to an hour,
/// where ROOFTILE_TEST_COUNT is as many.
inline bool compiles_this(std::size_t place, std::size_t every, std::size_t few) {
    if (from_environment("ROOFTILE_TEST_COUNT", 0) > place) return true;
    return place % every == 0 && one_in(few, place / every);
}

}  // namespace rooftile
