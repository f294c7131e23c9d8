#include "rooftile/gemm/device/operands.hpp"

#include <algorithm>
#include <cassert>

#include "kernels/gemm/quantised_reference_arguments.hpp"
#include "kernels/measure/numbers.hpp"

namespace rooftile {
namespace {

bool k_is_width(const GemmProblem& p, Operand operand) {
    return (operand == Operand::a ? p.a_major : p.b_major) == Major::k;
}

}  // namespace

MatrixView operand_view(const GemmProblem& p, Operand operand, DevicePointer data) {
    MatrixView view{};
    view.data = reinterpret_cast<void*>(data);
    if (operand == Operand::c) {
        view.lines = p.m, view.width = p.result_n(), view.leading = p.ldc;
        return view;
    }
    const std::int64_t other = operand == Operand::a ? p.m : p.n;
    const bool k_width = k_is_width(p, operand);
    view.lines = k_width ? other : p.k;
    view.width = k_width ? p.k : other;
    view.leading = operand == Operand::a ? p.lda : p.ldb;
    return view;
}

ErrorModel error_model_of(const GemmProblem& p) { return error_model(p.k, is_fp8(p.b_type), p.promoted()); }

OperandBatch batch_of(const GemmProblem& p, Operand operand) {
    if (operand == Operand::a) return {p.a_matrices(), p.a_stride};
    if (operand == Operand::b) return {p.b_matrices(), p.b_stride};
    return {p.batch, p.c_stride};
}

std::int64_t span_of(const MatrixView& view) { return view.leading * (view.lines - 1) + view.width; }

namespace {

/// All bits of the significand.
int widest_number(Type type) { return (2 << float_format(type).fraction_bits) - 1; }

}  // namespace

ExactNumbers exact_numbers(std::int64_t k, Type type, Type result) {
    const std::int64_t limit = (std::int64_t{1} << (is_fp8(type) ? 13 : 24)) - 1;
    const std::int64_t of_small = limit / 4 * 3;  // products where no operand is wide
    ExactNumbers e{};
    e.range = 8;
    while (e.range > 1 && k * e.range * e.range > of_small) --e.range;
    e.sparsity = ceil_div(k, of_small);
    e.wide = widest_number(type);

    const double wide = e.wide;
    // An eighth of the type's largest number is to be the deviation of C, or it is Inf too often to tell much.
    const double deviation = overflow_threshold(result) / 8;
    const double before_infinity = 3 * deviation * deviation / (wide * wide);  // wide^2 / 3 each
    const std::int64_t exact = (limit - ceil_div(k, e.sparsity) * e.range * e.range) / e.wide;
    const auto most = static_cast<std::int64_t>(std::min(static_cast<double>(exact), before_infinity));
    // Odd, so that wide numbers come to every place of a block whose length is a power of two.
    constexpr std::int64_t least_period = 7;
    e.period = std::max(least_period, ceil_div(k, most)) | 1;
    return e;
}

FillArguments fill_arguments(const GemmProblem& p, Operand operand, const MatrixView& to, Fill fill,
                             std::uint64_t seed, std::int64_t matrix) {
    assert(operand != Operand::c);
    FillArguments f{};
    f.to = to;
    f.seed = seed;
    f.stream = static_cast<unsigned long long>(operand) + 4 * static_cast<unsigned long long>(matrix);
    f.fill = fill;
    f.type = operand == Operand::a ? p.a_type : p.b_type;
    // Both operands by the wider significand, so that they agree where the wide numbers stand.
    const bool by_a = float_format(p.a_type).fraction_bits >= float_format(p.b_type).fraction_bits;
    f.exact = exact_numbers(p.k, by_a ? p.a_type : p.b_type, p.c_type);
    f.exact.wide = widest_number(f.type);
    if (p.is_quantised()) {
        // Weights, in units of the last bit, by a scale of 2, and as much as 15 of these that is taken from them where zero points are numbers: every partial
        // sum below 2^24.
        constexpr std::int64_t scale = 2, zero = 15, limit = (std::int64_t{1} << 24) - 1;
        const std::int64_t most = exact_units(p.quantised, p.b_type),
                           weight = scale * (most + (p.quantised.zeros == ZeroType::real ? zero : 0));
        f.exact.range = int(std::clamp<std::int64_t>(limit / (p.k * weight), 1, 8));
        f.exact.sparsity = ceil_div(p.k * weight, limit);
        f.exact.wide = f.exact.range;
    }
    f.of_b = operand == Operand::b;
    f.k_is_width = k_is_width(p, operand);
    return f;
}

VerifyArguments verify_group(const GemmProblem& p, const void* a, const void* b, std::span<const void* const> c, std::int64_t group,
                             std::int64_t first_row) {
    GemmProblem one = p;
    one.groups = {};
    VerifyArguments v = verify_arguments(one, a, static_cast<const unsigned char*>(b) + group * p.b_stride * bytes_of(p.b_type), c);
    v.a = static_cast<const unsigned char*>(v.a) + first_row * v.a_m_stride * bytes_of(p.a_type);
    for (int i = 0; i < v.results; ++i)
        v.c[i] = static_cast<const unsigned char*>(v.c[i]) + first_row * p.ldc * bytes_of(p.c_type);
    v.first_row = first_row;
    v.m = p.groups->rows()[std::size_t(group)];
    return v;
}

FillArguments scale_fill(const ScaleLayout& layout, bool of_b, void* data, Fill fill, std::uint64_t seed) {
    FillArguments f{};
    f.to = {data, layout.all_lines(), layout.width, layout.pitch()};
    f.seed = seed;
    f.stream = of_b ? 3 : 2;
    f.fill = fill;
    f.type = Type::fp32;
    f.exact = {.range = 2, .sparsity = 1, .wide = 2, .period = 1};  // 1 or -1, or up to 2
    f.of_b = of_b;
    f.k_is_width = of_b;
    return f;
}

VerifyArguments verify_arguments(const GemmProblem& p, const void* a, const void* b, const void* c) {
    return verify_arguments(p, a, b, std::span(&c, 1));
}

VerifyArguments verify_arguments(const GemmProblem& p, const void* a, const void* b,
                                 std::span<const void* const> c, std::int64_t product) {
    assert(c.size() <= verify_max && !p.groups);
    VerifyArguments v{};
    const auto from = [](const void* data, std::int64_t elements, Type type) {
        return static_cast<const unsigned char*>(data) + elements * bytes_of(type);
    };
    v.a = from(a, product * p.a_stride, p.a_type);
    v.b = from(b, product * p.b_stride, p.b_type);
    for (const void* result : c) v.c[v.results++] = from(result, product * p.c_stride, p.c_type);
    v.first_row = product * p.m;
    v.m = p.m, v.n = p.n, v.k = p.k;
    v.a_m_stride = p.a_major == Major::k ? p.lda : 1;
    v.a_k_stride = p.a_major == Major::k ? 1 : p.lda;
    v.b_n_stride = p.b_major == Major::k ? p.ldb : 1;
    v.b_k_stride = p.b_major == Major::k ? 1 : p.ldb;
    v.c_m_stride = p.ldc;
    v.a_type = p.a_type, v.b_type = p.b_type, v.type = p.c_type;
    v.model = error_model_of(p);
    return v;
}

}  // namespace rooftile
