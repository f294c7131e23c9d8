#include "rooftile/gemm/device/verify.hpp"

#include <cassert>

#include <fmt/core.h>

#include "kernels/measure/numbers.hpp"

namespace rooftile {
namespace {

std::string shown(unsigned bits, Type type) {
    switch (class_of_bits(bits, type)) {
        case NumberClass::nan:
            return fmt::format("NaN (0x{:04x})", bits);
        case NumberClass::infinite:
            return "+Inf";
        case NumberClass::negative_infinite:
            return "-Inf";
        case NumberClass::finite:
            break;
    }
    return fmt::format("{:.9g}", value_of_bits(bits, type));
}

const VerifyRecord* worst_of(std::span<const VerifyRecord> records) {
    const VerifyRecord* worst = nullptr;
    for (const VerifyRecord& r : records) {
        if (r.ratio > 0 && (!worst || r.ratio > worst->ratio)) worst = &r;
    }
    return worst;
}

}  // namespace

CaseOutcome judge(std::span<const VerifyRecord> records, const GemmProblem& p, VerifyCase which) {
    CaseOutcome outcome;
    outcome.checked = p.m * p.n;
    for (const VerifyRecord& r : records) outcome.wrong += static_cast<std::int64_t>(r.wrong);
    const VerifyRecord* worst = worst_of(records);
    if (worst) outcome.ratio = worst->ratio, outcome.bound = worst->bound;
    outcome.right = outcome.wrong == 0;
    if (outcome.right || !worst) return outcome;
    const std::string bound = which == VerifyCase::exact ? "" : fmt::format(" +- {:.3g}", worst->bound);
    outcome.failure = fmt::format(
        "{} of {} elements of C are wrong; the worst, C[{}, {}], is {} where {:.9g}{} rounds to {}", outcome.wrong,
        outcome.checked, worst->row, worst->column, shown(worst->got, p.c_type), worst->reference, bound,
        shown(worst->expected, p.c_type));
    return outcome;
}

GemmReference::GemmReference(const MeasureKernels& kernels, const GemmProblem& problem)
    : kernels_(kernels),
      problem_(problem),
      records_(sizeof(VerifyRecord) * static_cast<std::size_t>(kernels.verify_ctas() * verify_max)) {
    assert(problem.a_type == problem.b_type && problem.a_type == problem.c_type
           && problem.a_type != Type::fp32);
    assert(problem.alpha == 1 && problem.beta == 0 && problem.batch == 1);
}

std::span<const VerifyCase> GemmReference::cases() const {
    static constexpr VerifyCase all[] = {VerifyCase::exact, VerifyCase::random, VerifyCase::special};
    return all;
}

void GemmReference::fill(Stream stream, VerifyCase which, std::uint64_t seed, TensorPointers tensors) const {
    const Fill fill = which == VerifyCase::exact ? Fill::integer : Fill::normal;
    for (const Operand operand : {Operand::a, Operand::b}) {
        const auto data = reinterpret_cast<DevicePointer>(tensors[static_cast<std::size_t>(operand)]);
        const MatrixView view = operand_view(problem_, operand, data);
        kernels_.fill(stream, fill_arguments(problem_, operand, view, fill, seed));
    }
    if (which != VerifyCase::special) return;
    for (const InjectedValue& injected : special_values(problem_, seed)) {
        const auto data = reinterpret_cast<DevicePointer>(tensors[static_cast<std::size_t>(injected.operand)]);
        const std::int64_t offset = offset_of(problem_, injected.operand, injected.row, injected.column);
        kernels_.inject(stream, data + DevicePointer(2 * offset), injected.bits);
    }
}

std::vector<CaseOutcome> GemmReference::judge(Stream stream, VerifyCase which, std::uint64_t,
                                              std::span<const TensorPointers> results) const {
    std::vector<const void*> c;
    for (const TensorPointers& result : results) c.push_back(result[2]);
    fill_bytes(records_.address(), 0, records_.bytes(), stream);
    kernels_.verify(stream, verify_arguments(problem_, results[0][0], results[0][1], c), which == VerifyCase::exact,
                    records_.address());
    synchronize(stream);
    const auto ctas = static_cast<std::size_t>(kernels_.verify_ctas());
    std::vector<VerifyRecord> records(ctas * results.size());
    copy_to_host(records.data(), records_.address(), records.size() * sizeof(VerifyRecord));
    std::vector<CaseOutcome> outcomes;
    for (std::size_t i = 0; i < results.size(); ++i)
        outcomes.push_back(rooftile::judge(std::span(records).subspan(i * ctas, ctas), problem_, which));
    return outcomes;
}

}  // namespace rooftile
