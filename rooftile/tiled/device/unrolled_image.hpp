// An image's rows written out on the GPU, for verification.
#pragma once

#include <cstdint>
#include <string_view>

#include "rooftile/runtime/driver.hpp"
#include "rooftile/runtime/nvrtc.hpp"
#include "rooftile/tiled/image_operand.hpp"

namespace rooftile {

Source unroll_image_source(std::string_view arch);

/// Of 16-bit elements, in the context current at construction. Calls are asynchronous on their stream.
class UnrolledImage {
  public:
    /// `channels`: that are written out, all of a pixel's or those of a group.
    UnrolledImage(const ImageOperand& image, std::int64_t channels);

    /// Rows that rows_of() has room for: all, or as many as a gigabyte holds, in whole tiles of the verification.
    std::int64_t room() const { return room_; }
    /// `rows` rows from `first` on, of the channels from `first_channel` on: [rows][taps][channels], valid until the next call.
    const void* rows_of(Stream stream, const void* image, std::int64_t first, std::int64_t rows, std::int64_t first_channel = 0) const;

  private:
    ImageOperand image_;
    std::int64_t channels_, room_;
    Module module_;
    Function unroll_;
    unsigned ctas_;
    DeviceBuffer to_;
};

}  // namespace rooftile
