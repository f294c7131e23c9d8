// Matrices of microscaled e2m1 as gpt-oss's safetensors files have them: NAME_blocks [.., N, K / 32, 16] of U8, whose byte i holds weights 2i and
// 2i + 1, the first in the low half, and NAME_scales [.., N, K / 32] of U8, exponents of powers of two (openai/gpt-oss, gpt_oss/torch/weights.py).
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "rooftile/error.hpp"
#include "rooftile/machine/units_text.hpp"
#include "rooftile/weights/stored_weights.hpp"

namespace rooftile {
namespace {

constexpr std::int64_t scaled_weights = 32, block_bytes = 16;

[[noreturn]] void refuse(const StoredTensor& tensor, std::string_view accepted) {
    throw RequestError(fmt::format("{} is {} [{}], {} B; accepted is {}", printable(tensor.name), tensor.type, fmt::join(tensor.extents, ", "),
                                   tensor.bytes.size(), accepted));
}

class MicroscaledWeights final : public StoredWeights {
  public:
    MicroscaledWeights(const StoredTensor& blocks, const StoredTensor& scales) : blocks_(blocks), scales_(scales) {
        const auto bytes = std::int64_t(blocks.bytes.size());
        if (blocks.type != "U8" || blocks.extents.size() != 3 || blocks.extents[2] != block_bytes || bytes == 0 || blocks.extents[0] < 1
            || blocks.extents[0] > bytes || bytes % (blocks.extents[0] * block_bytes) != 0
            || blocks.extents[1] != bytes / (blocks.extents[0] * block_bytes))
            refuse(blocks, fmt::format("U8 [N, K / {}, {}], or such a matrix for each expert, NAME[0]", scaled_weights, block_bytes));
        n = blocks.extents[0], k = blocks.extents[1] * scaled_weights, group = scaled_weights;
        if (scales.type != "U8" || scales.extents != std::vector{n, groups()} || std::int64_t(scales.bytes.size()) != n * groups())
            refuse(scales, fmt::format("U8 [{}, {}]", n, groups()));
        name = blocks.name, format = "MXFP4", weights = "mxfp4", scale = "e8m0";
        file_bytes = bytes + std::int64_t(scales.bytes.size());
    }
    PlainRows rows(RowRange range) const override {
        PlainRows out(range, k, groups());
        out.table = e2m1_numbers();
        for (std::size_t i = 0, first = std::size_t(range.first * k / 2); i < out.q.size(); ++i)
            out.q[i] = static_cast<signed char>(blocks_.bytes[first + i / 2] >> i % 2 * 4 & 15);
        for (std::size_t i = 0, first = std::size_t(range.first * groups()); i < out.scales.size(); ++i)
            out.scales[i] = float(power_scale(scales_.bytes[first + i]));
        return out;
    }

  private:
    StoredTensor blocks_, scales_;
};

}  // namespace

std::unique_ptr<const StoredWeights> microscaled_weights(const StoredTensor& blocks, const StoredTensor& scales) {
    return std::make_unique<const MicroscaledWeights>(blocks, scales);
}

}  // namespace rooftile
