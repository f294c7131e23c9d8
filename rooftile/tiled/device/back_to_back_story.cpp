#include "rooftile/tiled/device/back_to_back_story.hpp"

#include <fmt/core.h>

namespace rooftile {

std::string wgmma_fragment(const std::string& sums) {
    return fmt::format(
        "Fragments of {}: of 64 rows thread t of a warpgroup (0 .. 127) has rows 16 (t / 32) + t % 32 / 4 and that + 8, columns 2 (t % "
        "4) + 8 j and the next: "
        "sums d[4 j], d[4 j + 1] of the first row, d[4 j + 2], d[4 j + 3] of the second",
        sums);
}

std::vector<std::string> back_to_back_story(const BackToBackShape& s, const BackToBackNames& n) {
    const int b = s.a_stages * s.a_bytes(), e = b + s.stages * s.b_bytes(), barriers = e + s.stages * s.e_bytes();
    std::vector<std::string> out;
    out.push_back(fmt::format(
        "Shared memory, {} B: {} of {} x {} at 0, {} B each; a ring of {} blocks of {}, {} rows x {} each{}, at {}, {} B each; one of {} "
        "blocks of {} at {}, {} B each; "
        "barriers and what tiles are announced at {}. Rows are in boxes of 64 elements, 128 B, swizzled by 128 B",
        s.shared_bytes(), s.a_stages == 1 ? "a tile" : fmt::format("{} tiles", s.a_stages), n.a,
        fmt::format("{} rows x {}", s.rows, s.depth), s.a_bytes(), s.stages, n.b, s.block, s.depth,
        s.products > 1 ? fmt::format(", of {} matrices", s.products) : "", b, s.b_bytes(), s.stages, n.e, e, s.e_bytes(), barriers));
    out.push_back(
        fmt::format("Warps: {}; warpgroup 0 loads by one thread ({} registers), warpgroups 1 .. {} compute 64 rows of the tile each ({} "
                    "registers): {} fp32 sums of {}, {} of a block, and the block in pairs, {}",
                    4 * (1 + s.consumer_warpgroups()), s.producer_registers, s.consumer_warpgroups(), s.consumer_registers, s.width / 2,
                    n.d, s.products * s.block / 2, s.block / 4));
    out.push_back(
        wgmma_fragment(fmt::format("{} and of a block alike, so that a block is the next product's first operand as it is", n.d)));
    return out;
}

}  // namespace rooftile
