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
    /// taps: tap by tap, the channels of each; reversed: channel by channel, its taps, the last one first; one_tap: the channels of one.
    enum class Columns : std::uint8_t { taps, reversed, one_tap };
    /// `channels`: that are written out, all of a pixel's or those of a group.
    UnrolledImage(const ImageOperand& image, std::int64_t channels, Columns columns = Columns::taps);
    /// So many channels of one tap of all rows a gigabyte holds: all, or their half, a quarter, as long as they are even.
    static std::int64_t channels_together(const ImageOperand& image);

    std::int64_t channels() const { return channels_; }
    /// Rows that rows_of() has room for: all, or, but of one tap, as many as a gigabyte holds, in whole tiles of the verification.
    std::int64_t room() const { return room_; }
    /// `rows` rows from `first` on, of the channels from `first_channel` on: [rows][taps][channels], valid until the next call; `tap`: of one.
    const void* rows_of(Stream stream, const void* image, std::int64_t first, std::int64_t rows, std::int64_t first_channel = 0, std::int64_t tap = 0) const;

  private:
    ImageOperand image_;
    std::int64_t channels_, room_;
    Columns columns_;
    Module module_;
    Function unroll_;
    unsigned ctas_;
    DeviceBuffer to_;
};

}  // namespace rooftile
