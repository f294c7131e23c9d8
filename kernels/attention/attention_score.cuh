// Scores as they are. Another score is a class that the host writes (rooftile/attention/device/score_source.cpp): `of` makes a score of
// Q K^T / sqrt(dim), and of the places of its query and key among the keys.
#pragma once

namespace rooftile {

struct PlainScore {
    static constexpr bool is_plain = true, by_place = false;
    struct OfHead {};
    __device__ OfHead of_head(int) const { return {}; }
};

}  // namespace rooftile
