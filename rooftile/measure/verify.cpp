#include "rooftile/measure/verify.hpp"

#include <algorithm>
#include <cassert>

#include <fmt/core.h>

#include "kernels/measure/numbers.hpp"
#include "kernels/measure/philox.hpp"

namespace rooftile {
namespace {

// The counters of a case, 64-bit words each.
constexpr int inputs_before = 0, inputs_after = 1, touched = 2, counter_count = 3;

DevicePointer word(const DeviceBuffer& buffer, int index) {
    return buffer.address() + 8u * static_cast<unsigned>(index);
}

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

const VerifyRecord* worst_of(const std::vector<VerifyRecord>& records) {
    const VerifyRecord* worst = nullptr;
    for (const VerifyRecord& r : records) {
        if (r.ratio > 0 && (!worst || r.ratio > worst->ratio)) worst = &r;
    }
    return worst;
}

void absorb(Verification& v, const CaseOutcome& outcome, bool& flag) {
    flag = outcome.right;
    if (outcome.ratio >= v.max_error) v.max_error = outcome.ratio, v.bound = outcome.bound;
    if (!outcome.right && v.failure.empty()) v.failure = outcome.failure;
}

}  // namespace

std::string_view name_of(VerifyCase which) {
    switch (which) {
        case VerifyCase::exact:
            return "exact";
        case VerifyCase::random:
            return "random";
        case VerifyCase::special:
            return "special";
    }
    assert(false);
    return "";
}

CaseOutcome judge(const CaseEvidence& e, const GemmProblem& p, VerifyCase which, std::uint64_t seed) {
    CaseOutcome outcome;
    for (const VerifyRecord& r : e.records) outcome.wrong += static_cast<std::int64_t>(r.wrong);
    const VerifyRecord* worst = worst_of(e.records);
    if (worst) outcome.ratio = worst->ratio, outcome.bound = worst->bound;

    const std::string where = fmt::format("{}x{}x{}, {} case, seed {}", p.m, p.n, p.k, name_of(which), seed);
    if (outcome.wrong > 0 && worst) {
        const std::string bound = which == VerifyCase::exact ? "" : fmt::format(" +- {:.3g}", worst->bound);
        outcome.failure = fmt::format(
            "{} of {} elements of C are wrong ({}); the worst, C[{}, {}], is {} where {:.9g}{} rounds to {}",
            outcome.wrong, p.m * p.n, where, worst->row, worst->column, shown(worst->got, p.c_type),
            worst->reference, bound, shown(worst->expected, p.c_type));
    } else if (e.touched > 0) {
        outcome.failure =
            fmt::format("{} elements outside C were written ({}): around it or between its rows, ldc {}",
                        e.touched, where, p.ldc);
    } else if (e.inputs_before != e.inputs_after) {
        outcome.failure = fmt::format("A or B was changed by the kernel ({})", where);
    }
    outcome.right = outcome.failure.empty() && outcome.wrong == 0;
    return outcome;
}

std::int64_t offset_of(const GemmProblem& p, Operand operand, std::int64_t row, std::int64_t column) {
    switch (operand) {
        case Operand::a:
            return p.a_major == Major::k ? row * p.lda + column : column * p.lda + row;
        case Operand::b:
            return p.b_major == Major::k ? column * p.ldb + row : row * p.ldb + column;
        case Operand::c:
            return row * p.ldc + column;
    }
    assert(false);
    return 0;
}

std::vector<Plant> special_plants(const GemmProblem& p, std::uint64_t seed) {
    std::uint64_t counter = 0;
    // A stream of its own: A and B are filled from streams 0 and 1.
    const auto below = [&](std::int64_t extent) {
        const PhiloxBlock block = philox(counter++, 2, seed);
        const auto wide = (std::uint64_t{block.word[0]} << 32) | block.word[1];
        return static_cast<std::int64_t>(wide % static_cast<std::uint64_t>(extent));
    };
    const FloatFormat f = float_format(p.a_type);
    const auto infinity = static_cast<std::uint16_t>(f.infinity());
    const auto negative_infinity = static_cast<std::uint16_t>(f.sign_bit() | f.infinity());
    const auto nan = static_cast<std::uint16_t>(f.infinity() | 1u << (f.fraction_bits - 1));
    // A product just beyond the type that fp32 still holds: fp16 2^12 * 2^12; bf16 (181/128)^2 * 2^127, and
    // 181^2 / 2^14 = 1.99957 lies between its threshold 2 - 2^-8 = 1.99609 and fp32's 2 - 2^-24.
    const bool wide = p.a_type == Type::bf16;
    const auto large_a =
        static_cast<std::uint16_t>(round_to_bits(wide ? 1.4140625 * power_of_two(63) : 4096, p.a_type));
    const auto large_b =
        static_cast<std::uint16_t>(round_to_bits(wide ? 1.4140625 * power_of_two(64) : 4096, p.a_type));
    const std::int64_t shared_k = below(p.k);
    return {
        {Operand::a, below(p.m), shared_k, large_a},
        {Operand::b, shared_k, below(p.n), large_b},
        {Operand::a, below(p.m), below(p.k), nan},
        {Operand::b, below(p.k), below(p.n), nan},
        {Operand::a, below(p.m), below(p.k), infinity},
        {Operand::b, below(p.k), below(p.n), negative_infinity},
    };
}

GemmVerifier::GemmVerifier(const MeasureKernels& kernels, const GemmProblem& problem)
    : kernels_(kernels),
      problem_(problem),
      a_(problem, Operand::a),
      b_(problem, Operand::b),
      c_(problem, Operand::c),
      counters_(8 * counter_count),
      records_(sizeof(VerifyRecord) * static_cast<std::size_t>(kernels.verify_ctas())) {
    assert(problem.a_type == problem.b_type && problem.a_type == problem.c_type
           && problem.a_type != Type::fp32);
    assert(problem.alpha == 1 && problem.beta == 0 && problem.batch == 1);
}

void GemmVerifier::plant_specials(std::uint64_t seed) const {
    for (const Plant& plant : special_plants(problem_, seed)) {
        const FencedMatrix& to = plant.operand == Operand::a ? a_ : b_;
        const std::int64_t offset = offset_of(problem_, plant.operand, plant.row, plant.column);
        kernels_.plant(stream_, reinterpret_cast<DevicePointer>(to.view().data + offset), plant.bits);
    }
}

void GemmVerifier::checksum_inputs(DevicePointer to) const {
    for (const FencedMatrix* matrix : {&a_, &b_}) {
        kernels_.checksum(stream_, matrix->buffer().address(),
                          static_cast<std::int64_t>(matrix->buffer().bytes()), to);
    }
}

void GemmVerifier::prepare(VerifyCase which, std::uint64_t seed) const {
    for (const FencedMatrix* matrix : {&a_, &b_, &c_}) matrix->poison(stream_);
    const Fill fill = which == VerifyCase::exact ? Fill::integer : Fill::normal;
    kernels_.fill(stream_, fill_arguments(problem_, Operand::a, a_.view(), fill, seed));
    kernels_.fill(stream_, fill_arguments(problem_, Operand::b, b_.view(), fill, seed));
    if (which == VerifyCase::special) plant_specials(seed);
}

CaseOutcome GemmVerifier::check(VerifyCase which, std::uint64_t seed, const GemmLaunch& launch) const {
    fill_bytes(counters_.address(), 0, counters_.bytes(), stream_);
    fill_bytes(records_.address(), 0, records_.bytes(), stream_);
    prepare(which, seed);
    checksum_inputs(word(counters_, inputs_before));
    launch(stream_, a_.data(), b_.data(), c_.data());
    checksum_inputs(word(counters_, inputs_after));
    kernels_.check_fence(stream_, c_.view(), c_.fence(), word(counters_, touched));
    kernels_.verify(stream_, verify_arguments(problem_, a_.data(), b_.data(), c_.data()),
                    which == VerifyCase::exact, records_.address());
    stream_.synchronize();

    std::uint64_t counters[counter_count];
    CaseEvidence evidence;
    evidence.records.resize(static_cast<std::size_t>(kernels_.verify_ctas()));
    copy_to_host(counters, counters_.address(), sizeof counters);
    copy_to_host(evidence.records.data(), records_.address(), records_.bytes());
    evidence.inputs_before = counters[inputs_before];
    evidence.inputs_after = counters[inputs_after];
    evidence.touched = counters[touched];
    return judge(evidence, problem_, which, seed);
}

Verification GemmVerifier::check_values(std::uint64_t seed, const GemmLaunch& launch) const {
    Verification v;
    absorb(v, check(VerifyCase::exact, seed, launch), v.exact);
    if (v.exact) absorb(v, check(VerifyCase::random, seed, launch), v.random);
    return v;
}

void GemmVerifier::check_special(Verification& v, std::uint64_t seed, const GemmLaunch& launch) const {
    if (v.exact && v.random) absorb(v, check(VerifyCase::special, seed, launch), v.special);
}

Verification GemmVerifier::check_all(std::uint64_t seed, const GemmLaunch& launch) const {
    Verification v = check_values(seed, launch);
    check_special(v, seed, launch);
    return v;
}

void GemmVerifier::check_again(Verification& v, std::uint64_t seed, const GemmLaunch& launch) const {
    for (const VerifyCase which : {VerifyCase::exact, VerifyCase::random}) {
        bool& flag = which == VerifyCase::exact ? v.exact : v.random;
        bool again = false;
        absorb(v, check(which, seed, launch), again);
        flag = flag && again;
    }
}

std::uint64_t GemmVerifier::result_checksum(std::uint64_t seed, const GemmLaunch& launch) const {
    fill_bytes(counters_.address(), 0, counters_.bytes(), stream_);
    prepare(VerifyCase::random, seed);
    launch(stream_, a_.data(), b_.data(), c_.data());
    kernels_.checksum(stream_, c_.buffer().address(), static_cast<std::int64_t>(c_.buffer().bytes()),
                      word(counters_, 0));
    stream_.synchronize();
    std::uint64_t sum = 0;
    copy_to_host(&sum, counters_.address(), sizeof sum);
    return sum;
}

}  // namespace rooftile
