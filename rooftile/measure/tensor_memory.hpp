// A problem's tensors in device memory: one by one between guards, for verification, and in sets that timed launches
// rotate over. What nobody may touch holds bytes of poison.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rooftile/core/problem.hpp"
#include "rooftile/measure/measure_kernels.hpp"
#include "rooftile/measure/reference.hpp"

namespace rooftile {

/// Bytes that the address of every tensor here is a multiple of, but for its offset: that of an allocation.
inline constexpr std::int64_t tensor_alignment = 256;

/// A byte of what nobody has written: elements of it are NaN in every floating-point type.
inline constexpr unsigned char poison = 0xff;

/// How a tensor lies in memory: `lines` of `line_bytes`, `pitch_bytes` apart, and blocks of them. Axes that follow each other
/// without a gap are one line, or more lines of one block; of more axes than that gaps belong to the tensor.
TensorLayout layout_of(const TensorInfo& tensor);

/// Bytes on either side of a tensor that nobody may touch: as many as 512 lines take, which no tile of a cluster exceeds, at
/// least 4 KiB and at most 64 MiB.
std::int64_t guard_bytes(const TensorInfo& tensor);

/// Bytes of poison on either side of an output that its fingerprint covers: a launch that writes just outside is seen while it is
/// timed, too.
inline constexpr std::int64_t fingerprint_margin = 4096;

/// One tensor between two guards.
class GuardedTensor {
  public:
    explicit GuardedTensor(const TensorInfo& tensor);

    /// Guards and padding too.
    void fill(Stream stream, unsigned char byte = rooftile::poison) const;
    void* data() const { return reinterpret_cast<void*>(address()); }
    DevicePointer address() const { return buffer_.address() + DevicePointer(guard_ + offset_); }
    const TensorLayout& layout() const { return layout_; }
    std::int64_t guard() const { return guard_; }  ///< bytes on either side, a multiple of 256
    const DeviceBuffer& buffer() const { return buffer_; }
    /// Of such a tensor, guards included.
    static std::int64_t bytes_of(const TensorInfo& tensor);

  private:
    TensorLayout layout_;
    std::int64_t guard_, offset_;
    DeviceBuffer buffer_;
};

/// A fingerprint of a tensor's bytes, of the padding between its lines and of the margins around it, added to the 64-bit word at
/// `sums`: of `sets` such tensors `set_pitch` bytes apart, one word each. `place` is the tensor's among the outputs, so that two
/// that are swapped differ.
void add_fingerprint(const MeasureKernels& kernels, Stream stream, DevicePointer tensor, const TensorLayout& layout,
                     std::size_t place, DevicePointer sums, std::int64_t set_pitch = 0, std::int64_t sets = 1);

/// Sets of all tensors of a problem, each 256 bytes aligned but for its offset; inputs hold the random case of a seed, the same in every
/// set. Outputs stand between margins of poison, those of all sets together between two guards.
class TensorSets {
  public:
    /// Throws Error(gpu_failed) where memory is short.
    TensorSets(const std::vector<TensorInfo>& tensors, std::int64_t sets, const Reference& reference, std::uint64_t seed);

    std::int64_t sets() const { return sets_; }
    TensorPointers tensors(std::int64_t set) const;
    /// Of one set, without margins.
    static std::int64_t set_bytes(const std::vector<TensorInfo>& tensors);

    SetRange all() const { return {0, sets_}; }
    /// Poison into the outputs of `sets`.
    void poison_outputs(Stream stream, SetRange sets) const;
    /// Adds the fingerprint of each set's outputs to one 64-bit word a set at `sums`.
    void add_fingerprints(const MeasureKernels& kernels, Stream stream, DevicePointer sums, SetRange sets) const;
    /// Adds to the counter at `unequal` how many of `sets` have outputs other than those with `fingerprint`.
    void count_unequal(const MeasureKernels& kernels, Stream stream, std::uint64_t fingerprint, DevicePointer unequal,
                       SetRange sets) const;
    /// Of the inputs of all sets: differs where a launch has changed one. Waits.
    std::uint64_t inputs_checksum(const MeasureKernels& kernels) const;
    /// Bytes that launches have written into the guards. Waits.
    std::uint64_t touched_bytes(const MeasureKernels& kernels) const;

  private:
    DevicePointer outputs_at(std::int64_t set) const;
    /// From the margin before the first of `sets` to that behind the last.
    std::int64_t outputs_bytes(std::int64_t sets) const { return sets * output_bytes_ + fingerprint_margin; }

    std::vector<TensorInfo> infos_;
    std::int64_t sets_, input_bytes_ = 0, output_bytes_ = 0;  ///< of a set, an output with the margin before it
    std::int64_t guard_ = 0;                                  ///< bytes on either side of all outputs
    DeviceBuffer inputs_, outputs_, sums_;
    std::vector<void*> pointers_;  ///< set by set
};

}  // namespace rooftile
