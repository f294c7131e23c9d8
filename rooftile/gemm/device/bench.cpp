#include "rooftile/gemm/device/bench.hpp"

#include <fmt/core.h>

#include "rooftile/gemm/device/cublaslt_loop.hpp"

namespace rooftile {
const CublasLt* GemmBench::baseline(const GemmProblem& problem, std::string& missing) {
    missing.clear();
    using Kept = std::shared_ptr<const CublasLt>;
    const auto* before = std::any_cast<Kept>(&bench_.kept);
    baseline_ = CublasLt::open(problem, missing, before ? before->get() : nullptr);
    if (baseline_) bench_.kept = baseline_;  // its handle and workspace serve the next problem
    return baseline_.get();
}

std::unique_ptr<const CublasLtLoop> GemmBench::loop(const GemmProblem& problem, std::string& missing) {
    missing.clear();
    using Kept = std::shared_ptr<const CublasLt>;
    const auto* before = std::any_cast<Kept>(&bench_.kept);
    std::unique_ptr<const CublasLtLoop> loop = CublasLtLoop::open(problem, missing, before ? before->get() : nullptr);
    if (loop) bench_.kept = loop->any();
    return loop;
}

std::function<void(Stream, std::int64_t)> on(const TensorSets& sets, TensorLaunch launch) {
    return [&sets, launch = std::move(launch)](Stream stream, std::int64_t set) {
        launch(stream, sets.tensors(set));
    };
}

TensorLaunch launch_of(const CublasLt& baseline, int index) {
    return [&baseline, index](Stream stream, TensorPointers tensors) { baseline.launch(index, stream, tensors); };
}

std::size_t add_cublaslt(std::vector<TimedWork>& works, const CublasLt* baseline, const TensorSets& sets) {
    const int count = baseline ? baseline->algorithms() : 0;
    for (int index = 0; index < count; ++index)
        works.push_back(
            {fmt::format("cuBLASLt {}", index),
             [&sets, launch = launch_of(*baseline, index)](Stream stream, std::int64_t set) { launch(stream, sets.tensors(set)); },
             Role::baseline});
    return static_cast<std::size_t>(count);
}

void note_timed(std::vector<std::string>& notes, Mode mode, const TimedResult& timed, const Roofs& roofs) {
    for (std::string& note : unchecked_roofs(mode, timed, roofs)) note_once(notes, std::move(note));
    const std::string words = clock_reason_words(timed.gpu.clock_reasons);
    if (!words.empty()) note_once(notes, "the GPU held its clock back: " + words);
}

}  // namespace rooftile
