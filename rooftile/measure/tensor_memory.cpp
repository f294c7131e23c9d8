#include "rooftile/measure/tensor_memory.hpp"

#include <algorithm>
#include <cassert>

#include "rooftile/units.hpp"

namespace rooftile {
namespace {

constexpr std::int64_t word_bytes = 4;  // of fingerprints
constexpr std::int64_t guard_lines = 512, min_guard = 4096, max_guard = std::int64_t{64} << 20;

std::int64_t round_up(std::int64_t x, std::int64_t to) { return ceil_div(x, to) * to; }

struct Axis {
    std::int64_t extent, stride;  // elements
};

/// Axes of more than one element, the outermost first; the longest that they may be.
std::vector<Axis> axes_of(const TensorInfo& tensor) {
    std::vector<Axis> axes;
    for (std::size_t i = 0; i < tensor.extents.size(); ++i)
        if (tensor.extents[i].most != 1) axes.push_back({tensor.extents[i].most, tensor.strides[i]});
    std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.stride > b.stride; });
    return axes;
}

std::int64_t bytes_of_elements(const TensorInfo& tensor, std::int64_t elements) {
    return ceil_div(elements * tensor.element_bits, 8);
}

std::int64_t offset_bytes(const TensorInfo& tensor) { return bytes_of_elements(tensor, tensor.offset); }

/// What a set takes: from an alignment to the last byte, and some to the next alignment.
std::int64_t padded_bytes(const TensorInfo& tensor) {
    return round_up(std::max<std::int64_t>(1, offset_bytes(tensor) + layout_of(tensor).bytes()), tensor_alignment);
}

bool is_output(const TensorInfo& tensor) { return tensor.role == TensorRole::out; }

/// What `add` adds to a word that is 0.
template <class Add>
std::uint64_t counted(Add&& add) {
    const StreamOwner stream;
    const DeviceBuffer word(8);
    fill_bytes(word.address(), 0, word.bytes(), stream);
    add(stream, word.address());
    stream.synchronize();
    std::uint64_t count = 0;
    copy_to_host(&count, word.address(), sizeof count);
    return count;
}

}  // namespace

TensorLayout layout_of(const TensorInfo& tensor) {
    const std::vector<Axis> axes = axes_of(tensor);
    std::int64_t line = 1;
    std::size_t outer = axes.size();
    while (outer > 0 && axes[outer - 1].stride == line) line *= axes[--outer].extent;
    TensorLayout layout{.line_bytes = bytes_of_elements(tensor, line)};
    layout.pitch_bytes = layout.line_bytes;
    if (outer == 0) return layout;
    layout.pitch_bytes = bytes_of_elements(tensor, axes[outer - 1].stride);
    layout.lines = axes[--outer].extent;
    while (outer > 0 && bytes_of_elements(tensor, axes[outer - 1].stride) == layout.lines * layout.pitch_bytes)
        layout.lines *= axes[--outer].extent;
    if (outer == 0) return layout;
    layout.block_pitch_bytes = bytes_of_elements(tensor, axes[outer - 1].stride);
    layout.blocks = axes[--outer].extent;
    while (outer-- > 0) {
        const std::int64_t bytes = layout.bytes() + bytes_of_elements(tensor, axes[outer].stride) * (axes[outer].extent - 1);
        layout = {.lines = 1, .line_bytes = bytes, .pitch_bytes = bytes};
    }
    return layout;
}

std::int64_t guard_bytes(const TensorInfo& tensor) {
    const std::vector<Axis> axes = axes_of(tensor);
    std::int64_t line = 1;
    if (axes.size() > 1) line = axes[axes.size() - 2].stride;
    else if (axes.size() == 1) line = std::max(axes[0].extent, axes[0].stride);
    const std::int64_t bytes = std::min(bytes_of_elements(tensor, line), max_guard) * guard_lines;
    return round_up(std::clamp(bytes, min_guard, max_guard), tensor_alignment);
}

std::int64_t GuardedTensor::bytes_of(const TensorInfo& tensor) {
    return round_up(offset_bytes(tensor) + layout_of(tensor).bytes(), word_bytes) + 2 * guard_bytes(tensor);
}

GuardedTensor::GuardedTensor(const TensorInfo& tensor)
    : layout_(layout_of(tensor)),
      guard_(guard_bytes(tensor)),
      offset_(offset_bytes(tensor)),
      buffer_(static_cast<std::size_t>(bytes_of(tensor))) {}

void GuardedTensor::fill(Stream stream, unsigned char byte) const { fill_bytes(buffer_.address(), byte, buffer_.bytes(), stream); }

void add_fingerprint(const MeasureKernels& kernels, Stream stream, DevicePointer tensor, const TensorLayout& layout,
                     std::size_t place, DevicePointer sums, std::int64_t set_pitch, std::int64_t sets) {
    // A first or last word that the tensor does not fill holds poison besides, in guards and sets alike.
    const auto before = std::int64_t(tensor % word_bytes);
    kernels.fingerprint(stream, tensor - DevicePointer(before + fingerprint_margin),
                        round_up(before + layout.bytes(), word_bytes) + 2 * fingerprint_margin, place, sums, set_pitch, sets);
}

std::int64_t TensorSets::set_bytes(const std::vector<TensorInfo>& tensors) {
    std::int64_t bytes = 0;
    for (const TensorInfo& tensor : tensors) bytes += padded_bytes(tensor);
    return bytes;
}

TensorSets::TensorSets(const std::vector<TensorInfo>& tensors, std::int64_t sets, const Reference& reference,
                       std::uint64_t seed)
    : infos_(tensors), sets_(sets) {
    assert(sets >= 1);
    for (const TensorInfo& tensor : tensors) {
        if (!is_output(tensor)) {
            input_bytes_ += padded_bytes(tensor);
            continue;
        }
        output_bytes_ += fingerprint_margin + padded_bytes(tensor);
        guard_ = std::max(guard_, guard_bytes(tensor));
    }
    inputs_ = DeviceBuffer(static_cast<std::size_t>(std::max(input_bytes_ * sets, tensor_alignment)));
    outputs_ = DeviceBuffer(static_cast<std::size_t>(outputs_bytes(sets) + 2 * guard_));
    sums_ = DeviceBuffer(8 * static_cast<std::size_t>(sets));
    for (std::int64_t set = 0; set < sets; ++set) {
        DevicePointer input = inputs_.address() + DevicePointer(set * input_bytes_);
        DevicePointer output = outputs_at(set);
        for (const TensorInfo& tensor : tensors) {
            DevicePointer& at = is_output(tensor) ? output : input;
            if (is_output(tensor)) at += DevicePointer(fingerprint_margin);
            pointers_.push_back(reinterpret_cast<void*>(at + DevicePointer(offset_bytes(tensor))));
            at += DevicePointer(padded_bytes(tensor));
        }
    }
    const StreamOwner stream;
    fill_bytes(inputs_.address(), poison, static_cast<std::size_t>(input_bytes_), stream);
    reference.fill(stream, VerifyCase::random, seed, this->tensors(0));
    // What is there already doubles until every set is filled.
    for (std::int64_t filled = 1; filled < sets;) {
        const std::int64_t more = std::min(filled, sets - filled);
        copy_on_device(inputs_.address() + DevicePointer(filled * input_bytes_), inputs_.address(),
                       static_cast<std::size_t>(more * input_bytes_), stream);
        filled += more;
    }
    fill_bytes(outputs_.address(), poison, outputs_.bytes(), stream);
    fill_bytes(sums_.address(), 0, sums_.bytes(), stream);
    stream.synchronize();
}

TensorPointers TensorSets::tensors(std::int64_t set) const {
    assert(set >= 0 && set < sets_);
    return std::span(pointers_).subspan(static_cast<std::size_t>(set) * infos_.size(), infos_.size());
}

DevicePointer TensorSets::outputs_at(std::int64_t set) const {
    return outputs_.address() + DevicePointer(guard_ + set * output_bytes_);
}

void TensorSets::poison_outputs(Stream stream, SetRange sets) const {
    fill_bytes(outputs_at(sets.first), poison, static_cast<std::size_t>(outputs_bytes(sets.count)), stream);
}

void TensorSets::add_fingerprints(const MeasureKernels& kernels, Stream stream, DevicePointer sums, SetRange sets) const {
    const TensorPointers pointers = tensors(sets.first);
    std::size_t place = 0;
    for (std::size_t i = 0; i < infos_.size(); ++i)
        if (is_output(infos_[i]))
            add_fingerprint(kernels, stream, reinterpret_cast<DevicePointer>(pointers[i]), layout_of(infos_[i]), place++,
                            sums, output_bytes_, sets.count);
}

void TensorSets::count_unequal(const MeasureKernels& kernels, Stream stream, std::uint64_t fingerprint,
                               DevicePointer unequal, SetRange sets) const {
    add_fingerprints(kernels, stream, sums_.address(), sets);
    kernels.count_unequal(stream, sums_.address(), sets.count, fingerprint, unequal);
}

std::uint64_t TensorSets::inputs_checksum(const MeasureKernels& kernels) const {
    return counted([&](Stream stream, DevicePointer sum) {
        kernels.checksum(stream, inputs_.address(), std::int64_t(inputs_.bytes()), sum);
    });
}

std::uint64_t TensorSets::touched_bytes(const MeasureKernels& kernels) const {
    const std::int64_t bytes = outputs_bytes(sets_);
    const TensorLayout outputs{.lines = 1, .line_bytes = bytes, .pitch_bytes = bytes};
    return counted([&](Stream stream, DevicePointer touched) {
        kernels.check_guard(stream, outputs_at(0), outputs, guard_, poison, touched);
    });
}

}  // namespace rooftile
