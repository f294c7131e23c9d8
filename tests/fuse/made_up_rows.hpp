// Fused rows and a GPU with round numbers, for arithmetic that a reader can follow.
#pragma once

#include "rooftile/fuse/launch_model.hpp"

namespace rooftile {

/// 4 SMs at 1 GHz that wait for nothing, with as many bytes a second of DRAM whichever way, and a round fit.
inline FuseHardware four_sms(double bandwidth) {
    FuseHardware hw{};
    hw.sms = 4;
    hw.clock_hz = 1e9;
    hw.read_bandwidth = hw.write_bandwidth = hw.copy_bandwidth = bandwidth;
    hw.issue_lanes = 128;
    hw.mufu_rate = 16;
    hw.alu_rate = 64;
    hw.fit = {.overlap_exponent = 5,
              .thread_instructions = 100,
              .reduction = 1000,
              .grid_reduction = 20,
              .ring_chunk = 100};
    return hw;
}

inline Program rows_of(std::int64_t rows, std::int64_t columns) {
    Program p;
    p.form = FuseForm::row;
    p.rows = rows;
    p.columns = columns;
    return p;
}

/// Of elements of 2 B, which take `issue` instructions each: one to add up, one to store.
inline ProgramWork two_passes(double issue) {
    ProgramWork work;
    work.full_bytes = 2;
    work.online = {issue, 0};
    work.reductions = work.reduction_rounds = 1;
    work.readings = 2;
    return work;
}

}  // namespace rooftile
