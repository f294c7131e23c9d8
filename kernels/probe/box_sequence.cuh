// Where a CTA's next TMA box lies.
#pragma once

#include "kernels/probe/arguments.hpp"

namespace rooftile {

/// The box that a CTA loads next, in boxes and groups of lines; no division once it has begun.
struct BoxCursor {
    int first_block, blocks, line_boxes, box_rows;
    int block, column = 0;

    __device__ explicit BoxCursor(const BoxSequence& w)
        : blocks(w.region_blocks), line_boxes(w.line_boxes), box_rows(w.box_rows) {
        const int cta = static_cast<int>(blockIdx.x);
        first_block = (w.first_region + cta * w.region_step) % w.regions * blocks;
        block = static_cast<int>(static_cast<long long>(cta) * w.stagger % blocks);
    }
    __device__ int x() const { return column * 64; }
    __device__ int y() const { return (first_block + block) * box_rows; }
    /// Of the same boxes laid one after the other.
    __device__ long long index() const {
        return static_cast<long long>(first_block + block) * line_boxes + column;
    }
    __device__ void advance() {
        if (++column < line_boxes) return;
        column = 0;
        if (++block == blocks) block = 0;
    }
};

}  // namespace rooftile
