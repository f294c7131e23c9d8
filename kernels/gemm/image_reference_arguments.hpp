// Arguments of the kernel that writes an image's rows out as a matrix, laid out alike on host and device.
#pragma once

namespace rooftile {

struct UnrollImage {
    const unsigned short* image;  ///< [images][z][y][x][channels], dense
    unsigned short* to;           ///< [rows][taps][channels]
    long long first_row, rows, channels;
    struct Axis {
        long long extent, places, taps, stride, padding, dilation;
    } axes[3];  ///< x first
};

}  // namespace rooftile
