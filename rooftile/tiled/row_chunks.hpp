// How rows that one product stores and another one reads go through both.
#pragma once

#include <cstdint>

namespace rooftile {

/// `rows` at a time, tiles column by column, or all, with room for so many times that.
struct RowChunks {
    std::int64_t rows = 0;
    int in_room = 2;
};

}  // namespace rooftile
