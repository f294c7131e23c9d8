// What the probe kernels take and return; host and device see the same bytes. No includes.
#pragma once

namespace rooftile {

/// What one CTA saw of its own work, the set-up before it left out.
struct ProbeRecord {
    unsigned long long begin_cycles, end_cycles;            ///< of its SM's counter
    unsigned long long begin_nanoseconds, end_nanoseconds;  ///< of the GPU's timer
    unsigned long long boxes;  ///< TMA boxes that arrived, where the kernel loads any
    unsigned sm;
    unsigned sink;  ///< made from all that was read, so that no load is dead code
};

/// How a CTA reads a matrix of 16-bit elements in boxes of `box_rows` rows x 128 bytes: along a line, then
/// the next `box_rows` lines, then again from the region's first.
struct BoxSequence {
    int box_rows;
    int line_boxes;     ///< boxes side by side in a line
    int region_blocks;  ///< groups of `box_rows` lines in one region
    int regions;        ///< regions of the matrix
    int first_region;   ///< of CTA 0
    int region_step;    ///< 1: the next CTA has the next region; 0: all have the same
    int stagger;        ///< groups of lines that the next CTA starts further on, round its region
};

struct TmaStreamArguments {
    BoxSequence sequence;
    int stages;  ///< boxes in flight
    int boxes;   ///< that each CTA loads
};

constexpr int line_store_threads = 256;
/// Of the box that each warp stores: C's epilogue tile of 128 B a row.
constexpr int line_store_rows = 16, line_store_columns = 64;

/// A matrix of 2-byte elements, `pitch` bytes from one row to the next, stored `passes` times over.
struct LineStoreArguments {
    int rows, columns;  ///< whole tiles
    int passes;
    int turned;  ///< by element: two of a lane stand one above the other
    long long pitch;
};

struct WgmmaLoadArguments {
    BoxSequence sequence;  ///< of the boxes that are loaded beside the products
    int steps;           ///< k-steps of 64 that each warpgroup multiplies
    int cycles_per_box;  ///< x 16: one box each that many sixteenths of a cycle; 0: no loads
};

constexpr int alu_chains = 8;  ///< independent chains of a thread of fma_rate and mufu_rate
/// Operations of each chain a loop: the loop's own few take issue slots too, which every multiply-add needs.
constexpr int fma_unroll = 64, mufu_unroll = 4;

/// Boxes of 32 KiB in flight beside the products: the loading thread manages one in some 500 cycles there.
constexpr int wgmma_ring_stages = 4;
constexpr int wgmma_ring_rows = 256;

/// The main loop of a matrix product as a load: stages of A (128 x 64) and B (n x 64), each row 128 bytes.
constexpr int wgmma_stream_stages = 4;
constexpr int wgmma_stream_rows = 128;  ///< of a box; n is a multiple
constexpr int wgmma_stream_shared_bytes(int n) {
    return wgmma_stream_stages * (wgmma_stream_rows + n) * 128 + 1024;
}

struct WgmmaStreamArguments {
    BoxSequence sequence;
    int steps;  ///< k-steps of 64
};

/// Dynamic shared memory of wgmma_load: two stages of A (two warpgroups) and B, the ring, alignment.
constexpr int wgmma_load_shared_bytes(int n) {
    return 2 * (2 * 64 + n) * 128 + wgmma_ring_stages * wgmma_ring_rows * 128 + 1024;
}

}  // namespace rooftile
