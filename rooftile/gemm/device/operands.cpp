#include "rooftile/gemm/device/operands.hpp"

#include <algorithm>
#include <cassert>

#include "kernels/measure/numbers.hpp"

namespace rooftile {
namespace {

constexpr std::int64_t element_bytes = 2;
constexpr std::int64_t set_alignment = 256;  ///< bytes; what cuBLASLt assumes of every pointer

std::int64_t round_up(std::int64_t x, std::int64_t to) { return ceil_div(x, to) * to; }

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

FencedMatrix::FencedMatrix(const GemmProblem& problem, Operand operand) {
    const std::int64_t bytes = span_of(operand_view(problem, operand, 0)) * element_bytes;
    buffer_ = DeviceBuffer(static_cast<std::size_t>(round_up(bytes, 4) + 2 * fence_bytes));
    view_ = operand_view(problem, operand, buffer_.address() + fence_bytes);
}

void FencedMatrix::poison(Stream stream) const {
    fill_bytes(buffer_.address(), 0xff, buffer_.bytes(), stream);
}

std::int64_t OperandSets::set_bytes(const GemmProblem& problem) {
    std::int64_t bytes = 0;
    for (const Operand operand : {Operand::a, Operand::b, Operand::c}) {
        bytes += round_up(span_of(operand_view(problem, operand, 0)) * element_bytes, set_alignment);
    }
    return bytes;
}

OperandSets::OperandSets(const GemmProblem& problem, std::int64_t sets) {
    for (const Operand operand : {Operand::a, Operand::b, Operand::c}) {
        const auto index = static_cast<std::size_t>(operand);
        MatrixView view = operand_view(problem, operand, 0);
        const std::int64_t pitch = round_up(span_of(view) * element_bytes, set_alignment);
        buffers_[index] = DeviceBuffer(static_cast<std::size_t>(pitch * sets));
        view.data = static_cast<unsigned short*>(buffers_[index].data());
        view.sets = sets;
        view.pitch = pitch / element_bytes;
        views_[index] = view;
    }
}

void* OperandSets::data(Operand operand, std::int64_t set) const {
    assert(set >= 0 && set < sets());
    return view(operand).data + set * view(operand).pitch;
}

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
