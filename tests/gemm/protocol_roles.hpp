// What decides how the roles of sm90_gemm meet, beside the depth of its ring: all that tests/gemm/protocol_test.cpp goes through, and
// tests/gemm/protocol_roles_test.cpp holds plans against.
#pragma once

#include <array>
#include <cstddef>

namespace rooftile::protocol {

struct GemmRoles {
    bool pingpong = false;
    int warpgroups = 1;  ///< consumers
    bool overlapped = false, dynamic = false;
    int sharing = 1, split_k = 1;  ///< CTAs of a cluster that share loads, and that share a tile's K; 2 stands for more of these
    constexpr bool operator==(const GemmRoles&) const = default;
};

/// Whether sm90_gemm has them: the asserts of kernels/matrix/layout.cuh.
constexpr bool exist(const GemmRoles& r) {
    const bool in_turns = r.pingpong && r.warpgroups != 2;
    return !in_turns && !(r.overlapped && (r.pingpong || r.split_k > 1)) && !(r.pingpong && r.split_k > 1);
}

/// All of them.
inline constexpr auto gemm_roles = [] {
    constexpr auto each = [](auto take) {
        for (const bool dynamic : {false, true})
            for (const int sharing : {1, 2})
                for (const int split_k : {1, 2})
                    for (const bool overlapped : {false, true})
                        for (const bool pingpong : {false, true})
                            for (int warpgroups = 1; warpgroups <= 4; ++warpgroups)
                                if (const GemmRoles r{pingpong, warpgroups, overlapped, dynamic, sharing, split_k}; exist(r)) take(r);
    };
    constexpr std::size_t count = [&] {
        std::size_t n = 0;
        each([&](const GemmRoles&) { ++n; });
        return n;
    }();
    std::array<GemmRoles, count> all{};
    std::size_t n = 0;
    each([&](const GemmRoles& r) { all[n++] = r; });
    return all;
}();

}  // namespace rooftile::protocol
