// The GEMM problem: C[M x N] = alpha * A[M x K] * B[K x N] + beta * C, or a batch of them, or groups of its rows with a B each, and
// what it must move and compute.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/gemm/quantised_weights.hpp"
#include "kernels/types.hpp"
#include "rooftile/gemm/groups.hpp"
#include "rooftile/tiled/epilogue.hpp"
#include "rooftile/tiled/image_operand.hpp"
#include "rooftile/units.hpp"

namespace rooftile {

std::string_view name_of(Type type);
/// As a machine's rates, clocks and energies are named: "fp8" whichever its exponent has.
std::string_view rate_name_of(Type type);

/// Where sums of 8-bit operands stand, of which Hopper's matrix units keep 14 bits: there, or after each 128 of K in fp32 beside them.
enum class Accumulation : std::uint8_t { fast, promoted };
std::string_view name_of(Accumulation accumulation);

/// fp32 numbers of device memory, lines that begin at multiples of 16 bytes; of matrices, one behind the other.
struct ScaleLayout {
    std::int64_t lines = 0, width = 0, matrices = 1;
    std::int64_t pitch() const { return (width + 3) / 4 * 4; }
    std::int64_t matrix_elements() const { return lines * pitch(); }
    std::int64_t all_lines() const { return matrices * lines; }
};

/// Of each row of A and 128 of K: [K / 128][M]; of each 128 columns of B and 128 of K: [N / 128][K / 128], of groups for each of them.
ScaleLayout a_scale_layout(std::int64_t m, std::int64_t k);
ScaleLayout b_scale_layout(std::int64_t n, std::int64_t k, std::int64_t groups = 1);

inline constexpr std::int64_t max_gemm_extent = (std::int64_t{1} << 31) - 1;  ///< device code counts in 32 bits

/// How rows of A lie that a launch in front of the kernel widens from 8 bits.
struct NarrowRows {
    Type type;
    std::int64_t lda, a_offset;
    friend bool operator==(const NarrowRows&, const NarrowRows&) = default;
};

/// Sizes in elements. Leading dimensions are the distance, in elements, between consecutive lines of
/// the contiguous index. C is row-major M x N.
struct GemmProblem {
    std::int64_t m = 0, n = 0, k = 0;
    Type a_type = Type::bf16, b_type = Type::bf16, c_type = Type::bf16, accumulate_type = Type::fp32;
    Major a_major = Major::k, b_major = Major::k;
    std::int64_t lda = 0, ldb = 0, ldc = 0;
    std::int64_t a_offset = 0, b_offset = 0, c_offset = 0;  ///< where operands begin, past a multiple of 128 B
    std::int64_t batch = 1;  ///< products of that shape, one after the other in memory
    /// Elements from the first of one matrix to the first of the next; of A and B 0 where one serves all products. 0 without a batch.
    std::int64_t a_stride = 0, b_stride = 0, c_stride = 0;
    double alpha = 1, beta = 0;
    Accumulation accumulation = Accumulation::fast;  ///< as asked for; scales of blocks promote anyway
    SharedEpilogue epilogue{};  ///< of alpha and beta too; made by product_epilogue()
    SharedGroups groups{};      ///< of the m rows of A and C; B's matrices are then b_stride apart, one a group
    QuantisedLayout quantised{};  ///< B is packed so, one tensor of bytes, and multiplied as b_type; ldb means nothing then. A of 8 bits is widened to b_type
    QuantisedLayout unpacked{};  ///< B comes of weights packed so, which a launch in front unpacks; all else is of what it leaves in memory
    std::optional<NarrowRows> narrow{};  ///< A comes of these, widened by a launch in front; all else is of what it leaves in memory
    /// Where A's rows and columns are taken from, of which m and k are the counts; lda means nothing then. B n-major has filters that lie
    /// [channels][taps][n], whose taps are met in reverse. With A m-major it is where B's are from: k places, n channels of taps.
    std::optional<ImageOperand> image{};
    double image_columns = 0;  ///< elements of the image that are read, for each row of A, or column of B: worked out once
    bool gathered = false;     ///< of an image: blocks of K go over its taps, as those kernels have them that gather A; set by derive()

    bool block_scales() const { return epilogue && epilogue->scales == Scales::block; }
    bool promoted() const { return accumulation == Accumulation::promoted || block_scales(); }
    /// Of block_scales.
    ScaleLayout a_scales() const { return a_scale_layout(m, k); }
    ScaleLayout b_scales() const { return b_scale_layout(n, k, groups ? groups->count() : 1); }
    /// Among the operation's tensors: A's scales of blocks, behind A, B and where groups begin; B's follow.
    std::size_t first_scale() const { return groups ? 3 : 2; }
    /// And the first that the epilogue reads.
    std::size_t first_operand() const { return first_scale() + (block_scales() ? 2 : 0); }

    bool is_quantised() const { return quantised.weights != WeightType::none; }
    /// "int4": of what B holds in memory.
    std::string_view b_name() const;
    /// Of packed weights: of groups the columns of all, one group's after another's, as one matrix.
    std::int64_t packed_bytes() const { return quantised.bytes(n * b_matrices(), k); }
    /// Of one of B's matrices, with its scales and zero points where it is packed.
    double b_matrix_bytes() const { return is_quantised() ? double(quantised.bytes(n, k)) : double(n) * b_rows() * bytes_of(b_type); }
    /// The same as tiles load it: of an image every tap its pixels anew.
    double b_loaded_bytes() const { return image_is_b() ? double(n) * double(k) * bytes_of(b_type) : b_matrix_bytes(); }
    /// Of an element of B, what is beside the weights included.
    double b_element_bytes() const { return b_matrix_bytes() / (double(n) * double(k)); }
    /// The same product of weights that are not packed.
    GemmProblem dequantised() const;
    /// What a kernel multiplies behind a launch that unpacks the weights; or, where weights are packed and A is of 8 bits, that widens A; and the
    /// problem that such ones come of. Others are themselves.
    GemmProblem behind_unpacking() const;
    GemmProblem behind_widening() const;
    GemmProblem as_asked() const;
    bool is_unpacked() const { return unpacked.weights != WeightType::none; }

    Flops flops() const { return Flops(2.0 * double(m) * double(n) * double(k) * double(batch)); }
    std::int64_t a_matrices() const { return a_stride == 0 ? 1 : batch; }
    std::int64_t b_matrices() const { return groups ? groups->count() : b_stride == 0 ? 1 : batch; }
    /// Those that are read: of a group without rows B is not.
    std::int64_t b_matrices_read() const { return groups ? groups->with_rows() : b_matrices(); }
    /// Of all groups, or of all products.
    double rows_a_matrix() const { return groups ? double(m) / double(groups->with_rows()) : double(m); }
    /// Of all matrices, each element once.
    double a_bytes() const { return double(a_matrices()) * double(m) * a_columns() * bytes_of(a_type); }
    /// Of A in memory, for each of its rows: of an image fewer than k, since several rows and columns share an element.
    double a_columns() const { return image_is_a() ? image_columns : double(k); }
    double b_rows() const { return image_is_b() ? image_columns : double(k); }
    bool image_is_a() const { return image && a_major == Major::k; }
    bool image_is_b() const { return image && a_major != Major::k; }
    /// Blocks of K, of which those of an image on the left are a tap's unless it is gathered.
    std::int64_t k_blocks(std::int64_t tile_k) const { return image_is_a() && !gathered ? image->blocks(tile_k) : (k + tile_k - 1) / tile_k; }
    double b_bytes() const { return double(b_matrices_read()) * b_matrix_bytes(); }
    /// Of all results.
    double c_bytes() const { return double(results()) * double(batch) * double(m) * double(result_n()) * bytes_of(c_type); }
    std::size_t results() const { return epilogue ? epilogue->results() : 1; }
    /// Columns of the result: of pairs of B's columns half as many as B has.
    std::int64_t result_n() const { return epilogue ? epilogue->columns_of(n) : n; }
    Pairs pairs() const { return epilogue ? epilogue->pairs : Pairs::none; }
    /// Read beside A and B, each element once: scales of blocks, operands of an epilogue.
    double beside_bytes() const;
    /// A, B and what an epilogue reads once, C written once.
    Bytes compulsory_bytes() const;

    friend bool operator==(const GemmProblem&, const GemmProblem&) = default;
};

/// The dense problem: leading dimensions are the contiguous extents.
/// Throws RequestError where a size is below 1, above 2^31 - 1, or 2*M*N*K reaches 2^63.
GemmProblem gemm_problem(std::int64_t m, std::int64_t n, std::int64_t k, Type type = Type::bf16,
                         Major a_major = Major::k, Major b_major = Major::k);

/// Elements from one of a batch of matrices to the next where nothing lies between them.
std::int64_t dense_stride(const GemmProblem& problem, char operand);

/// Of a batch whose products share B, and whose rows of A and of the result lie evenly, all of them one behind the other or those of
/// all products side by side: one product that has the rows of all. Else `batch` itself.
GemmProblem as_one_product(const GemmProblem& batch);

/// Groups as a batch of as many products as groups have rows, each of the mean of them.
GemmProblem as_batch(const GemmProblem& groups);

/// Throws RequestError where sizes, leading dimensions or values are outside what the library accepts.
void check(const GemmProblem& problem);

std::string_view name_of(WeightType weights);
/// Of all packed weights, in the order of WeightType.
std::span<const std::string_view> weight_names();
/// Of a layout's scales: "bf16", "fp16", or "e8m0" where they are powers of two.
std::string_view scale_name(const QuantisedLayout& layout);
std::string_view name_of(ZeroType zeros);  ///< "none", "int", "float"

/// "k", "m" or "n": the name users write for the major of that operand.
std::string_view a_major_name(Major major);
std::string_view b_major_name(Major major);

}  // namespace rooftile
