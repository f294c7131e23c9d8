// A problem of any operation, checked once and shared: its tensors by name, and what only its operation reads.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

namespace rooftile {

class Operation;

/// A value of a type that one operation alone knows. Copies share it; nobody changes it.
class Own {
  public:
    Own() = default;
    template <class T>
    static Own of(T value) {
        return Own(std::make_shared<const T>(std::move(value)), typeid(T));
    }
    /// What of() was given; for the operation that gave it.
    template <class T>
    const T& as() const {
        assert(type_ && *type_ == typeid(T));
        return *static_cast<const T*>(value_.get());
    }
    explicit operator bool() const { return value_ != nullptr; }

  private:
    Own(std::shared_ptr<const void> value, const std::type_info& type) : value_(std::move(value)), type_(&type) {}
    std::shared_ptr<const void> value_;
    const std::type_info* type_ = nullptr;
};

/// How long a tensor is along one axis: known, or read from a tensor on the device and no more than `most`.
struct Extent {
    std::int64_t most = 1;
    std::int64_t least = 1;   ///< as `most` where the extent is known
    std::string read_from{};  ///< the tensor on the device that holds it; empty: the host knows
    static Extent of(std::int64_t known) { return {known, known, {}}; }
    bool known() const { return read_from.empty() && least == most; }
};

enum class TensorRole : unsigned char { in, out, workspace };

/// A tensor of a problem. Parts of a plan are wired by names of tensors (Plan::wires).
struct TensorInfo {
    std::string name;
    std::string type;      ///< "bf16"
    int element_bits = 0;  ///< of one element: 4 of packed weights, 16 of bf16
    std::vector<Extent> extents;
    std::vector<std::int64_t> strides;  ///< elements, one an extent
    TensorRole role = TensorRole::in;
    std::int64_t offset = 0;  ///< elements from an address that is as aligned as allocations are to the first
};

/// Elements from its first to its last one, both counted.
inline std::int64_t spanned_elements(const TensorInfo& tensor) {
    std::int64_t last = 0;
    for (std::size_t axis = 0; axis < tensor.extents.size(); ++axis) last += (tensor.extents[axis].most - 1) * tensor.strides[axis];
    return last + 1;
}

struct Problem {
    const Operation* operation = nullptr;
    Own own;
};

}  // namespace rooftile
