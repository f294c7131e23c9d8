#include "rooftile/measure/copy_baseline.hpp"

#include "rooftile/core/arithmetic.hpp"

namespace rooftile {

std::optional<CopyBaseline> CopyBaseline::of(const Bench& bench, std::int64_t compulsory_bytes) {
    constexpr std::int64_t aligned = 256;
    CopyBaseline c;
    c.bytes_ = ceil_div(compulsory_bytes / 2, aligned) * aligned;
    if (c.bytes_ == 0) return std::nullopt;
    c.slots_ = rotated_sets(2 * c.bytes_, bench.device().l2_bytes, l2_factor, memory_info().free_bytes / 2);
    if (c.slots_ < 1) return std::nullopt;
    c.from_ = DeviceBuffer(std::size_t(c.slots_ * c.bytes_));
    c.to_ = DeviceBuffer(std::size_t(c.slots_ * c.bytes_));
    fill_bytes(c.from_.address(), 0x5a, c.from_.bytes(), nullptr);
    synchronize();
    return c;
}

TimedWork CopyBaseline::work(const MeasureKernels& kernels) const {
    return {"copy",
            [this, &kernels](Stream stream, std::int64_t set) {
                const auto offset = DevicePointer(set % slots_ * bytes_);
                kernels.copy(stream, to_.address() + offset, from_.address() + offset, bytes_);
            },
            Role::aside};
}

}  // namespace rooftile
