// Plain arrays in host memory, packed once into a tensor as kernels read it. A facet of an operation that has such a tensor.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "rooftile/core/operation.hpp"

namespace rooftile {

/// Dense, `rows` of `columns`.
struct PlainArray {
    const void* data = nullptr;
    std::string_view type{};  ///< "int8", "fp32"
    std::int64_t rows = 0, columns = 0;
};

/// Some rows of the matrix that a packed tensor holds.
struct RowRange {
    std::int64_t first = 0, count = 0;
};

class Packs : public Facet {
  public:
    /// Of the packed tensor. Throws RequestError where the problem has none.
    virtual std::int64_t packed_bytes(const Problem& problem) const = 0;
    /// `to` has packed_bytes(). Throws RequestError, one line, naming the first array or element that does not fit.
    virtual void pack(const Problem& problem, std::span<const PlainArray> arrays, std::span<unsigned char> to) const = 0;
    /// Rows that lie together: a range begins at a multiple of them, and ends there or with the matrix.
    virtual std::int64_t rows_together() const = 0;
    /// The same of some rows, of which `arrays` has these alone; other ranges may be packed at the same time. All of them make what pack()
    /// makes.
    virtual void pack_rows(const Problem& problem, RowRange rows, std::span<const PlainArray> arrays,
                           std::span<unsigned char> to) const = 0;
    /// What the packed rows are as numbers, one row after the other.
    virtual void unpack_rows(const Problem& problem, RowRange rows, std::span<const unsigned char> packed, std::span<double> to) const = 0;
};

}  // namespace rooftile
