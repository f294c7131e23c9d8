// Arguments of the kernel that writes an image's rows out as a matrix, laid out alike on host and device.
#pragma once

namespace rooftile {

struct UnrollImage {
    const unsigned short* image;  ///< [images][z][y][x][channels], dense
    unsigned short* to;           ///< [rows][taps][channels]: some of the pixels' channels, or all; or reversed
    long long first_row, rows;
    long long channels, pixel_channels;  ///< that are written out, from `image` on; of a pixel
    bool reversed;                ///< [rows][channels][taps], the last tap first
    struct Axis {
        long long extent, places, taps, stride, padding, dilation;
    } axes[3];  ///< x first
};

}  // namespace rooftile
