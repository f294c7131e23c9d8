// What a kernel walks an image by.
#pragma once

#include "kernels/matrix/image_arguments.hpp"
#include "rooftile/gemm/problem.hpp"

namespace rooftile {

/// `block`: channels of a step that is of one tap, or places of one.
inline ImageArguments image_arguments(const ImageOperand& image, int block) {
    ImageArguments out{};
    for (std::size_t i = 0; i < image.axes.size(); ++i) {
        const ImageAxis& axis = image.axes[i];
        out.axes[i] = {divider(unsigned(axis.places())), divider(unsigned(axis.taps)), int(axis.stride), int(axis.padding),
                       int(axis.dilation)};
    }
    out.channel_blocks = divider(unsigned((image.channels + block - 1) / block));
    out.step_by(unsigned(block));
    return out;
}

}  // namespace rooftile
