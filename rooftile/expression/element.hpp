// The element types of tensors in an expression, and the type that PyTorch gives a mixture of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/types.hpp"

namespace rooftile {

int bytes_of(Element element);
std::string_view name_of(Element element);  ///< "bool", "int64", "fp16", "bf16", "fp32"
/// Empty for another name.
std::optional<Element> element_by_name(std::string_view name);

/// The least type that holds both: fp16 with bf16 is fp32.
Element promoted(Element x, Element y);

/// How much an operand has to say: a tensor with axes outranks one without, which outranks a number that
/// stands in the expression.
enum class Rank : std::uint8_t { number, scalar, tensor };

/// PyTorch's result type of a mixture: the highest rank decides, unless a lower one is of a higher kind
/// (boolean < integer < floating). A number alone is int64 or fp32.
class Promotion {
  public:
    void add(Element element, Rank rank);
    Element result() const;

  private:
    std::optional<Element> ranks_[3];
};

}  // namespace rooftile
