#include "rooftile/gemm/device/bench.hpp"

#include <fmt/core.h>

namespace rooftile {
namespace {

constexpr double results_share = 0.25;  ///< of what is free, for results that are judged together

}  // namespace

const CublasLt* GemmBench::baseline(const GemmProblem& problem, std::string& missing) {
    missing.clear();
    using Kept = std::shared_ptr<const CublasLt>;
    const auto* before = std::any_cast<Kept>(&bench_.kept);
    baseline_ = CublasLt::open(problem, missing, before ? before->get() : nullptr);
    if (baseline_) bench_.kept = baseline_;  // its handle and workspace serve the next problem
    return baseline_.get();
}

std::unique_ptr<GemmVerifier> GemmBench::verifier(const GemmProblem& problem, std::size_t launches) const {
    const int results = GemmVerifier::results_for(problem, launches, share_of_free(results_share));
    return std::make_unique<GemmVerifier>(bench_.kernels(), problem, results);
}

OperandSets GemmBench::operand_sets(const GemmProblem& problem, std::vector<std::string>& notes) const {
    const std::int64_t free = share_of_free(free_memory_share), bytes = OperandSets::set_bytes(problem);
    const std::int64_t count = rotated_sets(bytes, bench_.device().l2_bytes, l2_factor, free);
    if (count < 1)
        throw Error(ExitCode::gpu_failed,
                    fmt::format("one set of A, B and C takes {} B, {} B of GPU memory may be used; free some "
                                "or take a smaller problem",
                                bytes, free));
    if (count * bytes < l2_factor * bench_.device().l2_bytes)
        notes.push_back(
            fmt::format("{} buffer sets of {} B are less than {} x L2: part of the inputs may come from L2",
                        count, bytes, l2_factor));
    OperandSets sets(problem, count);
    const StreamOwner stream;
    for (const Operand operand : {Operand::a, Operand::b})
        bench_.kernels().fill(stream,
                      fill_arguments(problem, operand, sets.view(operand), Fill::normal, bench_.options().seed));
    stream.synchronize();
    return sets;
}

std::function<void(Stream, std::int64_t)> on(const OperandSets& sets, GemmLaunch launch) {
    return [&sets, launch = std::move(launch)](Stream stream, std::int64_t set) {
        launch(stream, sets.data(Operand::a, set), sets.data(Operand::b, set), sets.data(Operand::c, set));
    };
}

GemmLaunch launch_of(const CublasLt& baseline, int index) {
    return [&baseline, index](Stream stream, const void* a, const void* b, void* c) {
        baseline.launch(index, stream, a, b, c);
    };
}

std::size_t add_cublaslt(std::vector<TimedWork>& works, const CublasLt* baseline, const OperandSets& sets) {
    const int count = baseline ? baseline->algorithms() : 0;
    for (int index = 0; index < count; ++index)
        works.push_back(
            {fmt::format("cuBLASLt {}", index), on(sets, launch_of(*baseline, index)), Role::baseline});
    return static_cast<std::size_t>(count);
}

void note_timed(std::vector<std::string>& notes, Mode mode, const TimedResult& timed, const Roofs& roofs) {
    for (std::string& note : unchecked_roofs(mode, timed, roofs)) note_once(notes, std::move(note));
    const std::string words = clock_reason_words(timed.gpu.clock_reasons);
    if (!words.empty()) note_once(notes, "the GPU held its clock back: " + words);
}

}  // namespace rooftile
