// The bulk tensor copy engine over images: PTX ISA 9.7.9.27 "cp.async.bulk.tensor", load mode .im2col.
//
// The tensor map says how many pixels and channels a copy takes, how far pixels lie apart, and between which corners the first tap's pixel
// may be. The engine counts pixels along x, y, z and images by itself; a tap adds its offsets to all of them. What lies outside the image
// arrives as zeros and counts in full.
#pragma once

#include "kernels/ptx/tensor_map.hpp"

namespace rooftile::ptx {

/// Channels from `channel` on of the pixels that begin at `pixel` (x, y, z where there are three axes, and the image), each moved by `tap`.
template <int axes, bool shared_by_peers, bool hinted>
__device__ inline void tma_load_image(unsigned shared, const TensorMap& map, int channel, const int (&pixel)[axes + 1],
                                      const unsigned short (&tap)[axes], unsigned barrier, unsigned short ctas, unsigned long long policy) {
    static_assert(axes == 2 || axes == 3);
#define ROOFTILE_IMAGE_2(SUFFIX, MORE, ...)                                                                                            \
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes" SUFFIX                           \
                 " [%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8}" MORE ";" ::"r"(shared),                                               \
                 "l"(&map), "r"(channel), "r"(pixel[0]), "r"(pixel[1]), "r"(pixel[2]), "r"(barrier), "h"(tap[0]), "h"(tap[1]) __VA_ARGS__ \
                 : "memory")
#define ROOFTILE_IMAGE_3(SUFFIX, MORE, ...)                                                                                            \
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes" SUFFIX                           \
                 " [%0], [%1, {%2, %3, %4, %5, %6}], [%7], {%8, %9, %10}" MORE ";" ::"r"(shared),                                      \
                 "l"(&map), "r"(channel), "r"(pixel[0]), "r"(pixel[1]), "r"(pixel[2]), "r"(pixel[3]), "r"(barrier), "h"(tap[0]),         \
                 "h"(tap[1]), "h"(tap[2]) __VA_ARGS__                                                                                  \
                 : "memory")
    if constexpr (axes == 2) {
        if constexpr (shared_by_peers && hinted)
            ROOFTILE_IMAGE_2(".multicast::cluster.L2::cache_hint", ", %9, %10", , "h"(ctas), "l"(policy));
        else if constexpr (shared_by_peers) ROOFTILE_IMAGE_2(".multicast::cluster", ", %9", , "h"(ctas));
        else if constexpr (hinted) ROOFTILE_IMAGE_2(".L2::cache_hint", ", %9", , "l"(policy));
        else ROOFTILE_IMAGE_2("", "");
    } else {
        if constexpr (shared_by_peers && hinted)
            ROOFTILE_IMAGE_3(".multicast::cluster.L2::cache_hint", ", %11, %12", , "h"(ctas), "l"(policy));
        else if constexpr (shared_by_peers) ROOFTILE_IMAGE_3(".multicast::cluster", ", %11", , "h"(ctas));
        else if constexpr (hinted) ROOFTILE_IMAGE_3(".L2::cache_hint", ", %11", , "l"(policy));
        else ROOFTILE_IMAGE_3("", "");
    }
#undef ROOFTILE_IMAGE_2
#undef ROOFTILE_IMAGE_3
}

}  // namespace rooftile::ptx
