// How long the compiler takes, on machines that differ and have other work.
#pragma once

#include <algorithm>
#include <ctime>
#include <string>

#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile {

/// Seconds that it took, by one clock or another.
using CompileClock = double (*)(const Source& source, Compiled& compiled);

/// This process's own: others may work on this machine.
inline double cpu_seconds(const Source& source, Compiled& compiled) {
    const auto now = [] { return double(std::clock()) / CLOCKS_PER_SEC; };
    const double start = now();
    compiled = compile_source(source);
    return now() - start;
}
/// As a user waits.
inline double wall_seconds(const Source& source, Compiled& compiled) {
    compiled = compile_source(source);
    return compiled.seconds;
}

/// A kernel of nobody's, which changes with none of ours: a few hundred unrolled instructions.
inline Source reference_source() {
    return {.name = "reference",
            .text = R"(
template <int n>
__device__ inline void turn(float (&v)[n], float by) {
#pragma unroll
    for (int i = 0; i < n; ++i) v[i] = v[i] * by + __expf(v[(i + 5) % n]);
}
extern "C" __global__ void reference(float* to, const float* from) {
    float v[48];
#pragma unroll
    for (int i = 0; i < 48; ++i) v[i] = from[threadIdx.x + 128 * i];
#pragma unroll
    for (int round = 0; round < 6; ++round) turn(v, float(round));
#pragma unroll
    for (int i = 0; i < 48; ++i) to[threadIdx.x + 128 * i] = v[i];
}
)",
            .name_expressions = {}};
}

/// Seconds of a compilation, the least of a few attempts to come below `bar`, as a core at rest would take
/// them: one that compiles reference_source() in `reference_seconds`, as the host of an H200 does (docs/facts.md
/// 64). A slower one, or one whose neighbours are at work, takes as much longer for both; a faster one is given
/// nothing.
inline double seconds_at_rest(CompileClock seconds, const Source& source, double bar, Compiled& compiled) {
    constexpr double reference_seconds = 0.15;
    constexpr int attempts = 6;  // neighbours come and go: both leasts are to be of a quiet moment
    double fastest = 1e9, reference = 1e9;
    for (int i = 0; i < attempts; ++i) {
        fastest = std::min(fastest, seconds(source, compiled));
        if (fastest <= bar) return fastest;
        Compiled other;
        reference = std::min(reference, seconds(reference_source(), other));
    }
    return fastest / std::max(1.0, reference / reference_seconds);
}

}  // namespace rooftile
