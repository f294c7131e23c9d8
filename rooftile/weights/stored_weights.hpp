// Matrices of quantised weights as published files have them, read some rows at a time as the plain arrays that are packed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rooftile/core/packs.hpp"
#include "rooftile/weights/file.hpp"

namespace rooftile {

/// q [rows, k], scales and zero points [rows, groups]: what a file says, none of it rounded.
struct PlainRows {
    std::int64_t rows = 0, k = 0, groups = 0;
    std::vector<signed char> q{};
    std::vector<float> scales{};
    std::vector<signed char> zeros{};  ///< whole ones; (q - zero) * scale
    std::vector<float> less{};         ///< others; q * scale - less
    std::span<const float> table{};    ///< of 16 numbers that q are places in; else they are whole numbers

    PlainRows(RowRange range, std::int64_t all_k, std::int64_t groups_of_row);
    std::vector<PlainArray> arrays() const;
    /// The weights of one of these rows, in `to` of k.
    void values(std::int64_t row, std::span<double> to) const;
};

/// OCP's e2m1: 0, 0.5, 1, 1.5, 2, 3, 4, 6, and their negatives.
std::span<const float> e2m1_numbers();
/// Its scales' bits, e8m0: 2^(bits - 127), of 255 NaN.
double power_scale(unsigned bits);

class StoredWeights {
  public:
    virtual ~StoredWeights() = default;

    std::string name{};           ///< in the file
    std::string format{};         ///< "Q4_K", "AWQ", "GPTQ"
    std::int64_t n = 0, k = 0;    ///< [n, k]: rows are those of a linear layer's outputs
    std::string weights{};        ///< "int4", "uint4", "int8", "mxfp4"
    std::int64_t group = 0;       ///< of k; 0: a row
    std::string scale = "fp16";   ///< the packed scales' type that holds them best
    std::string zero = "none";    ///< "none", "int", "float"
    std::int64_t file_bytes = 0;  ///< that they take in the file

    virtual PlainRows rows(RowRange range) const = 0;

  protected:
    std::int64_t groups() const { return group == 0 ? 1 : k / group; }
};

/// A tensor of a GGUF file by its name, or the layer of a safetensors file whose tensors are NAME.qweight, NAME.scales and NAME.qzeros, or
/// NAME_blocks and NAME_scales. Of tensors that are a matrix for each expert NAME[E] is that of one. Valid as long as `file`. Throws RequestError, one line, where there is no such tensor (with the nearest name) or none that can be
/// packed.
std::unique_ptr<const StoredWeights> stored_weights(const WeightsFile& file, const std::string& name);

/// The parts of what stored_weights() does: a tensor of blocks that hold weights and scales; a layer of several tensors.
std::unique_ptr<const StoredWeights> block_weights(const StoredTensor& tensor);
std::unique_ptr<const StoredWeights> layer_weights(const WeightsFile& file, const std::string& name);
/// Microscaled e2m1 of two tensors.
std::unique_ptr<const StoredWeights> microscaled_weights(const StoredTensor& blocks, const StoredTensor& scales);

}  // namespace rooftile
