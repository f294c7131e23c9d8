#include "rooftile/gemm/device/verify.hpp"

#include <algorithm>
#include <cassert>

#include <fmt/core.h>

#include "kernels/measure/numbers.hpp"

namespace rooftile {
namespace {

// The counters of a case, 64-bit words each: the inputs' checksum before all, then two of each launch.
constexpr int inputs_before = 0, counter_count = 1 + 2 * verify_max;
constexpr int inputs_after(int launch) { return 1 + 2 * launch; }
constexpr int touched(int launch) { return 2 + 2 * launch; }

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

}  // namespace

std::string_view name_of(VerifyCase which) {
    switch (which) {
        case VerifyCase::exact:
            return "exact";
        case VerifyCase::random:
            return "random";
        case VerifyCase::special:
            return "special";
        case VerifyCase::timed:
            return "timed";
    }
    assert(false);
    return "";
}

void absorb(Verification& v, VerifyCase which, const CaseOutcome& outcome) {
    std::optional<bool>& flag = which == VerifyCase::exact     ? v.exact
                                : which == VerifyCase::special ? v.special
                                : which == VerifyCase::timed   ? v.timed
                                                               : v.random;
    flag = outcome.right;
    if (outcome.ratio >= v.max_error) v.max_error = outcome.ratio, v.bound = outcome.bound;
    if (!outcome.right && v.failure.empty()) v.failure = outcome.failure;
}

std::vector<bool> faulty(const std::vector<LaunchEvidence>& launches) {
    std::vector<bool> result;
    for (std::size_t i = 0; i < launches.size(); ++i) {
        bool disturbed = false;
        for (std::size_t j = 0; j < launches.size(); ++j) disturbed |= j != i && launches[j].disturbs;
        result.push_back(!launches[i].alone || (!launches[i].together && !disturbed));
    }
    return result;
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

GemmVerifier::GemmVerifier(const MeasureKernels& kernels, const GemmProblem& problem, int results)
    : kernels_(kernels),
      problem_(problem),
      a_(problem, Operand::a),
      b_(problem, Operand::b),
      counters_(8 * counter_count),
      records_(sizeof(VerifyRecord) * static_cast<std::size_t>(kernels.verify_ctas() * results)) {
    assert(results >= 1 && results <= verify_max);
    assert(problem.a_type == problem.b_type && problem.a_type == problem.c_type
           && problem.a_type != Type::fp32);
    assert(problem.alpha == 1 && problem.beta == 0 && problem.batch == 1);
    for (int i = 0; i < results; ++i) c_.emplace_back(problem, Operand::c);
}

int GemmVerifier::results_for(const GemmProblem& problem, std::size_t launches, std::int64_t free_bytes) {
    const std::int64_t bytes =
        2 * (span_of(operand_view(problem, Operand::c, 0)) + FencedMatrix::fence_bytes);
    const auto most = static_cast<std::int64_t>(std::min<std::size_t>(launches, verify_max));
    return static_cast<int>(std::clamp<std::int64_t>(free_bytes / bytes, 1, std::max<std::int64_t>(most, 1)));
}

void GemmVerifier::inject_special_values(std::uint64_t seed) const {
    for (const InjectedValue& injected : special_values(problem_, seed)) {
        const FencedMatrix& to = injected.operand == Operand::a ? a_ : b_;
        const std::int64_t offset = offset_of(problem_, injected.operand, injected.row, injected.column);
        kernels_.inject(stream_, reinterpret_cast<DevicePointer>(to.view().data + offset), injected.bits);
    }
}

void GemmVerifier::checksum_inputs(DevicePointer to) const {
    for (const FencedMatrix* matrix : {&a_, &b_}) {
        kernels_.checksum(stream_, matrix->buffer().address(),
                          static_cast<std::int64_t>(matrix->buffer().bytes()), to);
    }
}

void GemmVerifier::checksum_operand(Operand operand, const void* data, DevicePointer to) const {
    // Whole words: an odd last element is left out, as the checksum reads 4 bytes at a time.
    const std::int64_t bytes = 2 * span_of(operand_view(problem_, operand, 0)) / 4 * 4;
    kernels_.checksum(stream_, reinterpret_cast<DevicePointer>(data), bytes, to);
}

void GemmVerifier::prepare(VerifyCase which, std::uint64_t seed) const {
    for (const FencedMatrix* matrix : {&a_, &b_}) matrix->poison(stream_);
    for (const FencedMatrix& c : c_) c.poison(stream_);
    const Fill fill = which == VerifyCase::exact ? Fill::integer : Fill::normal;
    kernels_.fill(stream_, fill_arguments(problem_, Operand::a, a_.view(), fill, seed));
    kernels_.fill(stream_, fill_arguments(problem_, Operand::b, b_.view(), fill, seed));
    if (which == VerifyCase::special) inject_special_values(seed);
}

/// The reference over the first `results` of c_, behind whatever is in the stream.
void GemmVerifier::refer(VerifyCase which, const void* a, const void* b, int results) const {
    std::vector<const void*> c;
    for (int i = 0; i < results; ++i) c.push_back(c_[static_cast<std::size_t>(i)].data());
    kernels_.verify(stream_, verify_arguments(problem_, a, b, c), which == VerifyCase::exact,
                    records_.address());
}

std::vector<CaseEvidence> GemmVerifier::evidence_of(int results) const {
    stream_.synchronize();
    const auto ctas = static_cast<std::size_t>(kernels_.verify_ctas());
    std::uint64_t counters[counter_count];
    std::vector<VerifyRecord> records(ctas * static_cast<std::size_t>(results));
    copy_to_host(counters, counters_.address(), sizeof counters);
    copy_to_host(records.data(), records_.address(), records.size() * sizeof(VerifyRecord));
    std::vector<CaseEvidence> evidence(static_cast<std::size_t>(results));
    for (int i = 0; i < results; ++i) {
        CaseEvidence& e = evidence[static_cast<std::size_t>(i)];
        const auto first = records.begin() + static_cast<std::ptrdiff_t>(ctas) * i;
        e.records.assign(first, first + static_cast<std::ptrdiff_t>(ctas));
        e.inputs_before = counters[i == 0 ? inputs_before : inputs_after(i - 1)];
        e.inputs_after = counters[inputs_after(i)];
        e.touched = counters[touched(i)];
    }
    return evidence;
}

std::vector<CaseOutcome> GemmVerifier::check_together(VerifyCase which, std::uint64_t seed,
                                                      std::span<const GemmLaunch> launches,
                                                      std::vector<CaseEvidence>& evidence) const {
    const int count = static_cast<int>(launches.size());
    fill_bytes(counters_.address(), 0, counters_.bytes(), stream_);
    fill_bytes(records_.address(), 0, records_.bytes(), stream_);
    prepare(which, seed);
    checksum_inputs(word(counters_, inputs_before));
    for (int i = 0; i < count; ++i) {
        const FencedMatrix& c = c_[static_cast<std::size_t>(i)];
        launches[static_cast<std::size_t>(i)](stream_, a_.data(), b_.data(), c.data());
        checksum_inputs(word(counters_, inputs_after(i)));
    }
    // After all of them: a write outside one C may land in the fence of another.
    for (int i = 0; i < count; ++i) {
        const FencedMatrix& c = c_[static_cast<std::size_t>(i)];
        kernels_.check_fence(stream_, c.view(), c.fence(), word(counters_, touched(i)));
    }
    refer(which, a_.data(), b_.data(), count);
    evidence = evidence_of(count);
    std::vector<CaseOutcome> outcomes;
    for (const CaseEvidence& e : evidence) outcomes.push_back(judge(e, problem_, which, seed));
    return outcomes;
}

std::vector<CaseOutcome> GemmVerifier::check(VerifyCase which, std::uint64_t seed,
                                             std::span<const GemmLaunch> launches) const {
    const auto right = [](const CaseOutcome& outcome) { return outcome.right; };
    std::vector<CaseOutcome> all;
    for (std::size_t first = 0; first < launches.size(); first += c_.size()) {
        const auto part = launches.subspan(first, std::min(c_.size(), launches.size() - first));
        std::vector<CaseEvidence> evidence;
        std::vector<CaseOutcome> together = check_together(which, seed, part, evidence);
        if (part.size() > 1 && !std::all_of(together.begin(), together.end(), right)) {
            std::vector<LaunchEvidence> judged;
            std::vector<CaseOutcome> alone;
            for (std::size_t i = 0; i < part.size(); ++i) {
                alone.push_back(check_together(which, seed, part.subspan(i, 1), evidence).front());
                const CaseEvidence& e = evidence.front();
                judged.push_back(
                    {together[i].right, alone[i].right, e.touched > 0 || e.inputs_before != e.inputs_after});
            }
            const std::vector<bool> wrong = faulty(judged);
            for (std::size_t i = 0; i < part.size(); ++i) {
                if (!alone[i].right || !wrong[i]) together[i] = alone[i];
            }
        }
        all.insert(all.end(), together.begin(), together.end());
    }
    return all;
}

CaseOutcome GemmVerifier::check(VerifyCase which, std::uint64_t seed, const GemmLaunch& launch) const {
    return check(which, seed, std::span(&launch, 1)).front();
}

std::vector<Verification> GemmVerifier::check_values(std::uint64_t seed,
                                                     std::span<const GemmLaunch> launches) const {
    std::vector<Verification> verifications(launches.size());
    for (Verification& v : verifications) v.checked_elements = problem_.m * problem_.n;
    const auto exact = check(VerifyCase::exact, seed, launches);
    std::vector<GemmLaunch> left;
    for (std::size_t i = 0; i < launches.size(); ++i) {
        absorb(verifications[i], VerifyCase::exact, exact[i]);
        if (exact[i].right) left.push_back(launches[i]);
    }
    const auto random = check(VerifyCase::random, seed, left);
    auto next = random.begin();
    for (Verification& v : verifications) {
        if (v.exact == true) absorb(v, VerifyCase::random, *next++);
    }
    return verifications;
}

Verification GemmVerifier::check_values(std::uint64_t seed, const GemmLaunch& launch) const {
    return check_values(seed, std::span(&launch, 1)).front();
}

void GemmVerifier::check_special(std::span<Verification> verifications, std::uint64_t seed,
                                 std::span<const GemmLaunch> launches) const {
    assert(verifications.size() == launches.size());
    std::vector<GemmLaunch> left;
    for (std::size_t i = 0; i < launches.size(); ++i) {
        if (verifications[i].exact == true && verifications[i].random == true) left.push_back(launches[i]);
    }
    const auto special = check(VerifyCase::special, seed, left);
    auto next = special.begin();
    for (Verification& v : verifications) {
        if (v.exact == true && v.random == true) absorb(v, VerifyCase::special, *next++);
    }
}

Verification GemmVerifier::check_all(std::uint64_t seed, const GemmLaunch& launch) const {
    Verification v = check_values(seed, launch);
    check_special(std::span(&v, 1), seed, std::span(&launch, 1));
    return v;
}

void GemmVerifier::check_again(Verification& v, std::uint64_t seed, const GemmLaunch& launch) const {
    for (const VerifyCase which : {VerifyCase::exact, VerifyCase::random}) {
        const bool before = (which == VerifyCase::exact ? v.exact : v.random).value_or(true);
        absorb(v, which, check(which, seed, launch));
        std::optional<bool>& flag = which == VerifyCase::exact ? v.exact : v.random;
        flag = *flag && before;
    }
}

void GemmVerifier::expect_left(const void* a, const void* b) const {
    fill_bytes(counters_.address(), 0, counters_.bytes(), stream_);
    for (const FencedMatrix& c : c_) c.poison(stream_);
    checksum_operand(Operand::a, a, word(counters_, inputs_before));
    checksum_operand(Operand::b, b, word(counters_, inputs_before));
    stream_.synchronize();
}

std::vector<CaseOutcome> GemmVerifier::judge_left(const void* a, const void* b, std::uint64_t seed,
                                                  int results) const {
    assert(results <= this->results());
    fill_bytes(records_.address(), 0, records_.bytes(), stream_);
    checksum_operand(Operand::a, a, word(counters_, inputs_after(0)));
    checksum_operand(Operand::b, b, word(counters_, inputs_after(0)));
    refer(VerifyCase::timed, a, b, results);
    std::vector<CaseOutcome> outcomes;
    std::vector<CaseEvidence> evidence = evidence_of(results);
    for (CaseEvidence& e : evidence) {
        // Any of the timed launches may have changed an input: then none of them is right.
        e.inputs_before = evidence.front().inputs_before, e.inputs_after = evidence.front().inputs_after;
        outcomes.push_back(judge(e, problem_, VerifyCase::timed, seed));
    }
    return outcomes;
}

std::uint64_t GemmVerifier::result_checksum(std::uint64_t seed, const GemmLaunch& launch) const {
    fill_bytes(counters_.address(), 0, counters_.bytes(), stream_);
    prepare(VerifyCase::random, seed);
    const FencedMatrix& c = c_.front();
    launch(stream_, a_.data(), b_.data(), c.data());
    kernels_.checksum(stream_, c.buffer().address(), static_cast<std::int64_t>(c.buffer().bytes()),
                      word(counters_, 0));
    stream_.synchronize();
    std::uint64_t sum = 0;
    copy_to_host(&sum, counters_.address(), sizeof sum);
    return sum;
}

}  // namespace rooftile
