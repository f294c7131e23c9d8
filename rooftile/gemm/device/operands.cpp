#include "rooftile/gemm/device/operands.hpp"

#include <algorithm>
#include <cassert>

#include "kernels/measure/numbers.hpp"

namespace rooftile {
namespace {

bool k_is_width(const GemmProblem& p, Operand operand) {
    return (operand == Operand::a ? p.a_major : p.b_major) == Major::k;
}

}  // namespace

MatrixView operand_view(const GemmProblem& p, Operand operand, DevicePointer data) {
    MatrixView view{};
    view.data = reinterpret_cast<unsigned short*>(data);
    view.sets = 1;
    if (operand == Operand::c) {
        view.lines = p.m, view.width = p.n, view.leading = p.ldc;
        return view;
    }
    const std::int64_t other = operand == Operand::a ? p.m : p.n;
    const bool k_width = k_is_width(p, operand);
    view.lines = k_width ? other : p.k;
    view.width = k_width ? p.k : other;
    view.leading = operand == Operand::a ? p.lda : p.ldb;
    return view;
}

std::int64_t span_of(const MatrixView& view) { return view.leading * (view.lines - 1) + view.width; }

ExactRange exact_range(std::int64_t k) {
    constexpr std::int64_t limit = (std::int64_t{1} << 24) - 1;
    for (int range = 8; range > 1; --range) {
        if (k * range * range <= limit) return {range, 1};
    }
    return {1, ceil_div(k, limit)};
}

FillArguments fill_arguments(const GemmProblem& p, Operand operand, const MatrixView& to, Fill fill,
                             std::uint64_t seed) {
    assert(operand != Operand::c);
    const ExactRange exact = exact_range(p.k);
    FillArguments f{};
    f.to = to;
    f.seed = seed;
    f.stream = static_cast<unsigned long long>(operand);
    f.fill = fill;
    f.type = operand == Operand::a ? p.a_type : p.b_type;
    f.range = exact.range;
    f.sparsity = exact.sparsity;
    f.k_is_width = k_is_width(p, operand);
    return f;
}

VerifyArguments verify_arguments(const GemmProblem& p, const void* a, const void* b, const void* c) {
    return verify_arguments(p, a, b, std::span(&c, 1));
}

VerifyArguments verify_arguments(const GemmProblem& p, const void* a, const void* b,
                                 std::span<const void* const> c) {
    assert(c.size() <= verify_max);
    VerifyArguments v{};
    v.a = static_cast<const unsigned short*>(a);
    v.b = static_cast<const unsigned short*>(b);
    for (const void* result : c) v.c[v.results++] = static_cast<const unsigned short*>(result);
    v.m = p.m, v.n = p.n, v.k = p.k;
    v.a_m_stride = p.a_major == Major::k ? p.lda : 1;
    v.a_k_stride = p.a_major == Major::k ? 1 : p.lda;
    v.b_n_stride = p.b_major == Major::k ? p.ldb : 1;
    v.b_k_stride = p.b_major == Major::k ? 1 : p.ldb;
    v.c_m_stride = p.ldc;
    v.type = p.c_type;
    v.gamma = accumulation_error(p.k);
    return v;
}

}  // namespace rooftile
