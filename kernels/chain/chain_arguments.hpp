// Run-time arguments of sm90_chain, laid out alike on host and device.
#pragma once

namespace rooftile {

struct ChainArguments {
    int m, d, ff;      ///< d and ff are multiples of 8
    const void* x;     ///< read as the residual where the configuration has one
    void* y;           ///< 16-byte aligned
    unsigned* counter; ///< of tiles begun, 0 before the launch and after it
};

}  // namespace rooftile
