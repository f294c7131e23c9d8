#include "rooftile/gemm/plan.hpp"

namespace rooftile {

std::string_view name_of(Schedule schedule) {
    return schedule == Schedule::cooperative ? "cooperative" : "pingpong";
}

std::string_view name_of(Order order) {
    switch (order) {
        case Order::row:
            return "row";
        case Order::column:
            return "column";
        case Order::grouped:
            return "grouped";
        case Order::serpentine:
            return "serpentine";
        case Order::morton:
            return "morton";
        case Order::hilbert:
            return "hilbert";
    }
    return "?";
}

std::string evict_first_letters(const GemmConfig& config) {
    std::string letters;
    if (config.a_policy == CachePolicy::evict_first) letters += 'a';
    if (config.b_policy == CachePolicy::evict_first) letters += 'b';
    if (config.c_policy == CachePolicy::evict_first) letters += 'c';
    return letters;
}

}  // namespace rooftile
