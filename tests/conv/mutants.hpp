// Convolutions made wrong on purpose: one small mistake each, in the kernel's own text. What must catch each is in
// tests/conv/device/wrong_on_purpose_test.cpp.
#pragma once

#include <string_view>
#include <vector>

#include "tests/device/mutant.hpp"

namespace rooftile::conv_mutants {

inline constexpr std::string_view arguments = "kernels/matrix/image_arguments.hpp", load = "kernels/matrix/load_image.cuh", direct = "kernels/conv/direct_conv.cuh",
                                  gather = "kernels/gemm/sm80_image_gemm.cuh", gather_arguments = "kernels/gemm/sm80_image_arguments.hpp", rows = "kernels/matrix/store_rows.cuh", packing = "kernels/conv/channels_last.cuh", stem = "kernels/conv/stem_conv.cuh", stem_config = "kernels/conv/stem_conv_config.hpp",
                                  planes = "kernels/conv/depthwise_conv.cuh", planes_config = "kernels/conv/depthwise_conv_config.hpp";

// A last block of channels that is not full, unlike axes, strides and dilation, several images, tiles that cross rows and images.
inline constexpr const char* image = "--batch 3 --channels 96 --height 33 --width 29 --kernel-size 3x5 --stride 2x1 --padding 1x2 --dilation 1x2 --filters 128";
// Steps of three taps less a piece, the last of K short, two images.
inline constexpr const char* gathered = "--batch 2 --channels 24 --height 33 --width 29 --kernel-size 3x5 --stride 2x1 --padding 1x2 --dilation 1x2 --filters 40 --kernel sm80_gemm --tile 64x64x64";
inline constexpr const char* parts = "--batch 1 --channels 96 --height 9 --width 9 --kernel-size 3 --padding 1 --filters 64 --split-k 4";
inline constexpr const char* depthwise = "--batch 2 --channels 96 --height 33 --width 29 --kernel-size 3x5 --stride 2x1 --padding 1x2 --filters 96 --groups 96";
// Tiles that hang over the image below and beside it, a last one of channels that is not full, two images.
inline constexpr const char* banded = "--batch 2 --channels 40 --height 33 --width 29 --kernel-size 5x7 --padding 2x3 --filters 40 --groups 40 --planes 1x2x4x2x16x4";
inline constexpr const char* banded_images = "--batch 5 --channels 16 --height 7 --width 9 --kernel-size 3 --padding 1 --filters 16 --groups 16 --planes 4x1x7x2x16x4";
inline constexpr const char* finished = "--batch 2 --channels 96 --height 17 --width 19 --kernel-size 3 --padding 1 --filters 96 --groups 96 --rows 2 "
                                       "--epilogue \"y = relu(acc) + r\" --tensor r:bf16[M,N]";
inline constexpr const char* thin = "--batch 2 --channels 64 --height 17 --width 19 --kernel-size 3 --padding 1 --filters 64 --groups 16";
inline constexpr const char* odd = "--batch 2 --channels 64 --height 17 --width 19 --kernel-size 3 --padding 1 --filters 255 --swap-ab off";

// The last pixel is beside every window, and the first word of the next row of taps after it.
inline constexpr const char* grey = "--batch 2 --channels 1 --height 19 --width 20 --kernel-size 3 --stride 2 --filters 32 --places 4x8";
inline constexpr const char* colours = "--batch 2 --channels 3 --height 33 --width 30 --kernel-size 5x7 --stride 1 --padding 2x3 --filters 40 --places 4x16";

// Gradients: a last block of filters that is not full, tiles that cross rows and images; columns of a tile that are of several taps, the last one beyond them.
inline constexpr const char* data = "--batch 3 --channels 72 --height 33 --width 29 --kernel-size 3x5 --padding 1x2 --dilation 1x2 --filters 96 --gradient data";
inline constexpr const char* weights = "--batch 3 --channels 64 --height 33 --width 29 --kernel-size 3x5 --stride 2x1 --padding 1x2 --dilation 1x2 --filters 72 --gradient weights --tile 64x128x64 --cluster 1x1";
// 324 places are 6 blocks of K: two to each of the first three parts, and none to the fourth.
inline constexpr const char* short_part = "--batch 4 --channels 64 --height 9 --width 9 --kernel-size 3 --padding 1 --filters 64 --gradient weights --tile 64x64x64 --split-k 4";

inline Mutant taps_of_rows_for_columns() {
    return {"a tap's place along x is taken for that along y", image, {{load, "next.offset(image, offset);",
                                                                       "next.offset(image, offset);\n        { const unsigned short x = offset[0]; offset[0] = offset[1], offset[1] = x; }"}}};
}
// By the taps' distances: a first pixel outside of the tensor map's corners is no wrong result but an illegal instruction, after which the context is
// lost for the tests that follow. Of the mistakes here none names such a pixel: places without their stride are before the last place's, swapped
// distances are within what a load takes (255), and what is beyond the channels or the image is zeros.
inline Mutant padding_one_less() {
    return {"a pixel of padding is left out", image, {{arguments, "static_cast<unsigned>(image.axes[i].dilation));", "static_cast<unsigned>(image.axes[i].dilation) + 1);"}}};
}
inline Mutant stride_left_out() { return {"places are a pixel apart", image, {{arguments, "axis.places.divisor) * axis.stride - axis.before;", "axis.places.divisor) - axis.before;"}}}; }
inline Mutant image_before() { return {"pixels are of the first image", image, {{arguments, "pixel[count] = static_cast<int>(place);", "pixel[count] = 0;"}}}; }
inline Mutant filters_of_the_tap_before() {
    return {"the weights are of the tap before", image, {{load, "next.channel, static_cast<int>(next.tap), n);", "next.channel, static_cast<int>(next.tap > 0 ? next.tap - 1 : 0), n);"}}};
}
inline Mutant channels_again() {
    return {"every block of K is a tile's first one", image,
            {{arguments, "channel += tile_k;\n", "channel += 0;\n"}}};
}
inline Mutant weights_of_the_neighbour() {
    return {"weights of the lane beside it", depthwise, {{direct, "own.weight_place(lane, first));", "own.weight_place(lane ^ 1, first));"}}};
}
inline Mutant row_wraps() {
    return {"a pixel beside the row is the next row's", depthwise,
            {{direct, "const bool there = row_there && static_cast<unsigned>(from_x + right) < static_cast<unsigned>(p.width);", "const bool there = row_there && from_x + right >= 0;"}}};
}
inline Mutant group_before() {
    return {"the channels are of the group before", thin,
            {{direct, "filter / C.group_filters * C.group_channels;", "(filter / C.group_filters & ~1) * C.group_channels;"}}};
}
inline Mutant place_past_the_last() {
    return {"a place behind the last of a row is written", depthwise, {{direct, "&& first_x + place_x < p.places_x;", "&& first_x + place_x <= p.places_x;"}}};
}
inline Mutant residual_of_the_row_before() {
    return {"what is added is of the place before", finished,
            {{direct, "p, static_cast<int>(first_row + on), filter);", "p, static_cast<int>(first_row + on > 0 ? first_row + on - 1 : 0), filter);"}}};
}
inline Mutant row_moved_by_one() {
    return {"a row is moved on by an element too few", odd, {{rows, "line[e - past] = ptx::load_shared_half(own + 2 * e);", "line[e - past] = ptx::load_shared_half(own + 2 * e + 2);"}}};
}
inline Mutant rows_end_left_out() { return {"the end of a tile's rows is left out", odd, {{rows, "if (x < end) line", "if (x < end - 1) line"}}}; }
inline Mutant windows_end_left_out() { return {"what is beside a window's end is multiplied by a weight of zero", grey, {{stem_config, "(front + row_elements()) % 2 != 0 ? 0xffffu", "(front + row_elements()) % 2 > 1 ? 0xffffu"}}}; }
inline Mutant rows_of_padding_read() {
    return {"rows below the image are the next image's", colours, {{stem, "static_cast<unsigned>(row) < static_cast<unsigned>(p.height) &&", "row >= 0 &&"}}};
}
inline Mutant next_row_of_taps() { return {"pixels are of the next row of taps", colours, {{stem_config, "pair / row_pairs() * dilation_y", "(pair / row_pairs() + 1) % taps_y * dilation_y"}}}; }
inline Mutant halves_of_one_word() { return {"a place that begins amid a word has its first element twice", colours, {{stem, "ptx::load_shared_half(at + 2)", "ptx::load_shared_half(at)"}}}; }
inline Mutant pixels_swapped() {
    return {"two pixels of a channel are packed in each other's place", "--batch 2 --channels 96 --height 17 --width 19 --kernel-size 3 --padding 1 --filters 64 --layout nchw",
            {{packing, "(upper & 0xffffu) | lower << 16;", "(upper & 0xffffu) | (lower & 0xffff0000u);"}}};
}
inline Mutant last_channel_left_out() {
    return {"an odd last channel is not packed", "--batch 2 --channels 3 --height 17 --width 19 --kernel-size 3 --padding 1 --filters 64 --layout nchw",
            {{packing, "const int pairs = static_cast<int>(min((p.channels - channel + 1) / 2,", "const int pairs = static_cast<int>(min((p.channels - channel) / 2,"}}};
}

inline Mutant piece_of_the_first_step() { return {"each step has the first one's pixels", gathered, {{gather, "piece += C.tile_k / C.chunk_elements;", "piece += C.tile_k / C.chunk_elements * 0;"}}}; }
inline Mutant tap_without_dilation() { return {"taps are a pixel apart", gathered, {{gather, "walk.axes[axis].dilation * image.pitch[axis];", "image.pitch[axis];"}}}; }
inline Mutant bits_of_one_axis() { return {"pixels beside the row are those of the next one", gathered, {{gather, "met |= image.first_bit[axis] << along;", "if (axis > 0) met |= image.first_bit[axis] << along;"}}}; }
inline Mutant image_gathered_before() { return {"pixels are of the first image", gathered, {{gather, "at = pixel[axes] * image.pitch[Sm80ImageArguments::axes];", "at = 0 * image.pitch[Sm80ImageArguments::axes];"}}}; }
inline Mutant row_of_the_peer() { return {"a row is the one that its neighbour found", gathered, {{gather, "threadIdx.x % 32 - of_peers) + peer;", "threadIdx.x % 32 - of_peers) + peer / 2;"}}}; }
inline Mutant pixel_past_the_row() { return {"a pixel past the last of a row is read", gathered, {{gather_arguments, "taps_before(extent[axis] - pixel)", "taps_before(extent[axis] + 1 - pixel)"}}}; }

inline Mutant taps_moved_by_one() { return {"a band has each tap one column on", banded, {{planes, "const int tap = first + 8 * (upper ? 1 : half);", "const int tap = first + 8 * (upper ? 1 : half) - 1;"}}}; }
inline Mutant band_of_the_neighbour() {
    return {"a channel has the band of the one before", banded, {{planes, "load_bands<C>(bands, filter + (channel + C.warps) * taps);", "load_bands<C>(bands, filter + (channel + C.warps - 1) * taps);"}}};
}
inline Mutant band_of_the_row_before() { return {"pixels meet the row of taps before", banded, {{planes, "a, bands[down - row][0], bands[down - row][1]);", "a, bands[(down - row + 1) % C.taps_y][0], bands[(down - row + 1) % C.taps_y][1]);"}}}; }
inline Mutant padding_not_zero() {
    return {"pixels beside the row are those of the next one", banded, {{planes, "inside[i][0] = there[i] && static_cast<unsigned>(x) < static_cast<unsigned>(p.width)", "inside[i][0] = there[i] && x >= 0"}}};
}
inline Mutant zeros_of_bands_met() { return {"a band's zeros meet NaN and Inf", banded, {{planes, "return (zeros & 0x7fff7fff) == 0;", "return (zeros & 0x7fff7fff) != 1;"}}}; }
inline Mutant windows_of_the_tile_before() { return {"windows are of the image's rows without the halo between images", banded_images, {{planes, "(line + of_image * (C.taps_y - 1)) * (8 * C.pitch)", "line * (8 * C.pitch)"}}}; }
inline Mutant image_of_the_group_before() { return {"a slot's pixels are a group's rows too high", banded, {{planes_config, "group % groups * rows * pitch + slot % blocks", "group % groups * (rows - 1) * pitch + slot % blocks"}}}; }

inline Mutant taps_not_reversed() { return {"dy meets the filters' taps in their order", data, {{load, "image.taps() - 1 - next.tap", "next.tap"}}}; }
inline Mutant reversed_taps_moved_by_one() { return {"dy meets the tap after its own", data, {{load, "image.taps() - 1 - next.tap", "(image.taps() - next.tap) % image.taps()"}}}; }
inline Mutant box_of_the_first_tap() { return {"all columns of a tile are of its first tap", weights, {{load, "box.offset(image, offset);", "next.offset(image, offset);"}}}; }
inline Mutant columns_of_the_next_box() { return {"columns are of the box after theirs", weights, {{load, ": args.n) / box_columns, box_columns};", ": args.n) / box_columns + 1, box_columns};"}}}; }
inline Mutant rows_of_places_run_on() { return {"a block's places go on in the same row of the image", weights, {{arguments, "at[i] += image.step[i] + carried;", "at[i] += image.step[i];"}}}; }
inline Mutant block_beyond_the_end_read() { return {"a part without places has the last one's pixels", short_part, {{load, "inside ? at_c.n + b_slice(scheduler) * slice_columns : args.n)", "at_c.n + b_slice(scheduler) * slice_columns)"}}}; }

inline std::vector<Mutant> all() {
    return {taps_not_reversed(), reversed_taps_moved_by_one(), box_of_the_first_tap(), columns_of_the_next_box(), rows_of_places_run_on(), block_beyond_the_end_read(),
            taps_of_rows_for_columns(), padding_one_less(), stride_left_out(),     image_before(),     filters_of_the_tap_before(), channels_again(), weights_of_the_neighbour(),
            row_wraps(),                residual_of_the_row_before(), group_before(),     place_past_the_last(), row_moved_by_one(), rows_end_left_out(),
            pixels_swapped(),           last_channel_left_out(),
            piece_of_the_first_step(),  tap_without_dilation(),     bits_of_one_axis(), image_gathered_before(), pixel_past_the_row(), row_of_the_peer(),
            windows_end_left_out(),     rows_of_padding_read(),       next_row_of_taps(), halves_of_one_word(),
            taps_moved_by_one(),        band_of_the_neighbour(),      band_of_the_row_before(), padding_not_zero(), zeros_of_bands_met(), windows_of_the_tile_before(), image_of_the_group_before()};
}

}  // namespace rooftile::conv_mutants
