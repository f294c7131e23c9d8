#include "rooftile/measure/verifier.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>

namespace rooftile {
namespace {

// 64-bit words at `counters_`: the inputs' checksum before all, then these of each launch.
enum Word { inputs_after, touched, fingerprint_sum, words_of_a_launch };

std::size_t word_of(std::size_t launch, Word word) { return 1 + launch * words_of_a_launch + word; }

DevicePointer at(const DeviceBuffer& counters, std::size_t word) { return counters.address() + 8 * word; }

/// "m = 139, n = 150 ..." is the operation's business; its tensors tell the problem as well: "a[139,203] b[203,150]".
std::string text_of(const std::vector<TensorInfo>& tensors) {
    std::string text;
    for (const TensorInfo& tensor : tensors) {
        std::string extents;
        for (const Extent& extent : tensor.extents) extents += fmt::format("{}{}", extents.empty() ? "" : ",", extent.most);
        text += fmt::format("{}{}[{}]", text.empty() ? "" : " ", tensor.name, extents);
    }
    return text;
}

}  // namespace

unsigned char output_poison(VerifyCase which) {
    constexpr unsigned char finite = 0x5a;  // 1.5e16 in bf16 and fp32, 203 in fp16, no flag
    return which == VerifyCase::special ? finite : poison;
}

CaseOutcome with_traces(CaseOutcome outcome, const LaunchTraces& traces, const std::string& where) {
    if (outcome.right && traces.touched > 0)
        outcome.failure = fmt::format("{} bytes outside the outputs were written ({}): around them or between their lines",
                                      traces.touched, where);
    else if (outcome.right && traces.inputs_changed)
        outcome.failure = fmt::format("an input was changed by the kernel ({})", where);
    else if (!outcome.right)
        outcome.failure += fmt::format(" ({})", where);
    outcome.right = outcome.right && outcome.failure.empty();
    return outcome;
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

void absorb(Verification& v, VerifyCase which, const CaseOutcome& outcome) {
    std::optional<bool>& flag = which == VerifyCase::exact     ? v.exact
                                : which == VerifyCase::random  ? v.random
                                : which == VerifyCase::shifted ? v.shifted
                                                               : v.special;
    flag = outcome.right;
    v.guards = v.guards.value_or(true) && outcome.guarded;
    if (which == VerifyCase::random) {
        v.max_error = outcome.ratio, v.bound = outcome.bound;
        v.checked_elements = outcome.checked, v.undecided_elements = outcome.undecided;
    }
    if (!outcome.right && v.failure.empty()) v.failure = outcome.failure;
}

Verifier::Verifier(const MeasureKernels& kernels, const Reference& reference, std::vector<TensorInfo> tensors,
                   std::size_t launches, std::int64_t free_bytes)
    : kernels_(kernels), reference_(reference), infos_(std::move(tensors)) {
    std::int64_t of_result = 0;
    for (const TensorInfo& tensor : infos_)
        if (tensor.role == TensorRole::out) of_result += GuardedTensor::bytes_of(tensor);
        else inputs_.emplace_back(tensor);
    const auto most = std::min<std::int64_t>(std::int64_t(launches), reference.max_results());
    const std::int64_t results =
        std::clamp<std::int64_t>(free_bytes / std::max<std::int64_t>(1, of_result), 1, std::max<std::int64_t>(most, 1));
    counters_ = DeviceBuffer(8 * word_of(std::size_t(results), inputs_after));
    for (std::int64_t result = 0; result < results; ++result) {
        std::vector<GuardedTensor>& outputs = outputs_.emplace_back();
        std::vector<void*>& pointers = pointers_.emplace_back();
        std::size_t input = 0;
        for (const TensorInfo& tensor : infos_) {
            if (tensor.role == TensorRole::out) pointers.push_back(outputs.emplace_back(tensor).data());
            else pointers.push_back(inputs_[input++].data());
        }
    }
}

void Verifier::checksum_inputs(DevicePointer to) const {
    for (const GuardedTensor& input : inputs_)
        kernels_.checksum(stream_, input.buffer().address(), std::int64_t(input.buffer().bytes()), to);
}

void Verifier::add_fingerprints(std::size_t result, DevicePointer to) const {
    const std::vector<GuardedTensor>& outputs = outputs_[result];
    for (std::size_t i = 0; i < outputs.size(); ++i)
        add_fingerprint(kernels_, stream_, outputs[i].address(), outputs[i].layout(), i, to);
}

std::vector<CaseOutcome> Verifier::check_together(VerifyCase which, std::uint64_t seed,
                                                  std::span<const TensorLaunch> launches,
                                                  std::vector<LaunchTraces>& traces,
                                                  std::span<std::optional<std::uint64_t>> fingerprints) {
    const std::size_t count = launches.size();
    fill_bytes(counters_.address(), 0, counters_.bytes(), stream_);
    const unsigned char unwritten = output_poison(which);
    for (const GuardedTensor& input : inputs_) input.fill(stream_);
    for (std::size_t i = 0; i < count; ++i)
        for (const GuardedTensor& output : outputs_[i]) output.fill(stream_, unwritten);
    reference_.fill(stream_, which, seed, pointers_[0]);
    checksum_inputs(at(counters_, 0));
    for (std::size_t i = 0; i < count; ++i) {
        launches[i](stream_, pointers_[i]);
        checksum_inputs(at(counters_, word_of(i, inputs_after)));
    }
    // After all of them: a write outside one output may land in the guard of another.
    for (std::size_t i = 0; i < count; ++i) {
        for (const GuardedTensor& output : outputs_[i])
            kernels_.check_guard(stream_, output.address(), output.layout(), output.guard(), unwritten,
                                 at(counters_, word_of(i, touched)));
        add_fingerprints(i, at(counters_, word_of(i, fingerprint_sum)));
    }
    std::vector<TensorPointers> results(pointers_.begin(), pointers_.begin() + std::ptrdiff_t(count));
    std::vector<CaseOutcome> outcomes = reference_.judge(stream_, which, seed, results);
    assert(outcomes.size() == count);
    stream_.synchronize();
    std::vector<std::uint64_t> counters(counters_.bytes() / 8);
    copy_to_host(counters.data(), counters_.address(), counters_.bytes());
    traces.assign(count, {});
    const std::string where = fmt::format("{}; {} case, seed {}", text_of(infos_), name_of(which), seed);
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t before = i == 0 ? counters[0] : counters[word_of(i - 1, inputs_after)];
        traces[i] = {counters[word_of(i, touched)], counters[word_of(i, inputs_after)] != before};
        fingerprints[i] = counters[word_of(i, fingerprint_sum)];
        outcomes[i].guarded = traces[i].touched == 0 && !traces[i].inputs_changed;
        outcomes[i] = with_traces(std::move(outcomes[i]), traces[i], where);
    }
    return outcomes;
}

std::vector<CaseOutcome> Verifier::check(VerifyCase which, std::uint64_t seed, std::span<const TensorLaunch> launches) {
    const auto right = [](const CaseOutcome& outcome) { return outcome.right; };
    std::vector<CaseOutcome> all;
    fingerprints_.assign(launches.size(), std::nullopt);
    for (std::size_t first = 0; first < launches.size(); first += results()) {
        const auto part = launches.subspan(first, std::min(results(), launches.size() - first));
        const auto fingerprints = std::span(fingerprints_).subspan(first, part.size());
        std::vector<LaunchTraces> traces;
        std::vector<CaseOutcome> together = check_together(which, seed, part, traces, fingerprints);
        if (part.size() > 1 && !std::all_of(together.begin(), together.end(), right)) {
            std::vector<LaunchEvidence> judged;
            std::vector<CaseOutcome> alone;
            for (std::size_t i = 0; i < part.size(); ++i) {
                alone.push_back(
                    check_together(which, seed, part.subspan(i, 1), traces, fingerprints.subspan(i, 1)).front());
                judged.push_back({together[i].right, alone[i].right, traces[0].touched > 0 || traces[0].inputs_changed});
            }
            const std::vector<bool> wrong = faulty(judged);
            for (std::size_t i = 0; i < part.size(); ++i)
                if (!alone[i].right || !wrong[i]) together[i] = alone[i];
        }
        std::move(together.begin(), together.end(), std::back_inserter(all));
    }
    return all;
}

std::vector<Verification> Verifier::verify(std::uint64_t seed, std::span<const TensorLaunch> launches,
                                           std::span<const VerifyCase> cases) {
    std::vector<Verification> verified(launches.size());
    std::vector<std::optional<std::uint64_t>> of_random(launches.size());
    for (const VerifyCase which : reference_.cases()) {
        if (std::find(cases.begin(), cases.end(), which) == cases.end()) continue;
        std::vector<TensorLaunch> left;
        std::vector<std::size_t> places;
        for (std::size_t i = 0; i < launches.size(); ++i) {
            if (verified[i].wrong()) continue;
            left.push_back(launches[i]);
            places.push_back(i);
        }
        const std::vector<CaseOutcome> outcomes = check(which, seed, left);
        for (std::size_t i = 0; i < left.size(); ++i) {
            absorb(verified[places[i]], which, outcomes[i]);
            if (which == VerifyCase::random) of_random[places[i]] = fingerprints_[i];
        }
    }
    fingerprints_ = std::move(of_random);
    return verified;
}

VerifiedLaunches verify_launches(const MeasureKernels& kernels, std::span<const Reference* const> references,
                                 const std::vector<TensorInfo>& tensors, std::span<const TensorLaunch> launches,
                                 std::int64_t free_bytes, std::uint64_t seed, std::span<const VerifyCase> cases) {
    VerifiedLaunches out;
    out.verified.resize(launches.size()), out.fingerprints.resize(launches.size());
    for (std::size_t first = 0; first < launches.size(); ++first) {
        const Reference* const reference = references[first];
        const auto before = references.first(first);
        if (std::find(before.begin(), before.end(), reference) != before.end()) continue;  // judged with that one
        std::vector<std::size_t> places;
        std::vector<TensorLaunch> alike;
        for (std::size_t i = first; i < launches.size(); ++i)
            if (references[i] == reference) places.push_back(i), alike.push_back(launches[i]);
        Verifier verifier(kernels, *reference, tensors, alike.size(), free_bytes);
        const std::vector<Verification> verified = verifier.verify(seed, alike, cases);
        for (std::size_t i = 0; i < places.size(); ++i) {
            out.verified[places[i]] = verified[i];
            out.fingerprints[places[i]] = verifier.fingerprint(i);
        }
    }
    return out;
}

}  // namespace rooftile
