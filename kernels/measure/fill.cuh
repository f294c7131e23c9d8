// Fills operands with numbers that depend on their index and the seed alone.
#pragma once

#include "kernels/measure/arguments.hpp"
#include "kernels/measure/numbers.hpp"
#include "kernels/measure/philox.hpp"

namespace rooftile {

constexpr int fill_group = 4;  ///< elements made from one Philox block

/// Two independent standard normals from two uniform words (Box and Muller). The first word's uniform
/// lies in (0, 1], so that the logarithm is finite; the largest magnitude is sqrt(64 ln 2) = 6.7.
__device__ inline void two_normals(unsigned radius_word, unsigned angle_word, double (&to)[2]) {
    const float uniform = (static_cast<float>(radius_word) + 1.0f) * 0x1p-32f;
    const float radius = sqrtf(-2.0f * logf(uniform < 1.0f ? uniform : 1.0f));
    float sine, cosine;
    sincospif(static_cast<float>(angle_word) * 0x1p-31f, &sine, &cosine);
    to[0] = radius * cosine;
    to[1] = radius * sine;
}

__device__ inline void make_group(const FillArguments& p, long long group, long long line, long long column,
                                  double (&values)[fill_group]) {
    const PhiloxBlock block = philox(group, p.stream, p.seed);
    if (p.fill == Fill::normal) {
        two_normals(block.word[0], block.word[1], reinterpret_cast<double(&)[2]>(values[0]));
        two_normals(block.word[2], block.word[3], reinterpret_cast<double(&)[2]>(values[2]));
        return;
    }
    for (int i = 0; i < fill_group; ++i) {
        const long long k = p.k_is_width ? column + i : line;
        values[i] = exact_number(p.exact, p.of_b, k, block.word[i]);
    }
}

/// One thread a group of a line, grid-stride. Padding between lines is not touched.
__global__ void fill(FillArguments p) {
    const long long groups = (p.to.width + fill_group - 1) / fill_group;  // of a line
    const long long all = p.to.lines * groups;
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long g = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; g < all; g += step) {
        const long long line = g / groups;
        const long long column = (g - line * groups) * fill_group;
        double values[fill_group];
        make_group(p, g, line, column, values);
        const long long first = line * p.to.leading + column;
        for (int i = 0; i < fill_group; ++i) {
            if (column + i >= p.to.width) continue;
            const unsigned bits = round_to_bits(values[i], p.type);
            if (p.type == Type::fp32) static_cast<unsigned*>(p.to.data)[first + i] = bits;
            else if (is_fp8(p.type)) static_cast<unsigned char*>(p.to.data)[first + i] = static_cast<unsigned char>(bits);
            else static_cast<unsigned short*>(p.to.data)[first + i] = static_cast<unsigned short>(bits);
        }
    }
}

}  // namespace rooftile
