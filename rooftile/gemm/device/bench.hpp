// What measurements of GEMMs share on a readied GPU: the vendor's library, and launches on sets of operands.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rooftile/gemm/device/cublaslt.hpp"
#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/device/figures.hpp"
#include "rooftile/gemm/device/verify.hpp"
#include "rooftile/measure/bench.hpp"
#include "rooftile/measure/tensor_memory.hpp"
#include "rooftile/measure/verifier.hpp"

namespace rooftile {

class CublasLtLoop;

/// A readied GPU, and cuBLASLt open on it.
class GemmBench {
  public:
    explicit GemmBench(Bench& bench) : bench_(bench) {}
    Bench& gpu() const { return bench_; }

    /// cuBLASLt for that problem, alive as this is; null with the reason in `missing`. Opened once on a GPU.
    const CublasLt* baseline(const GemmProblem& problem, std::string& missing);
    /// Of a problem with groups, the same of a launch a group; the caller's.
    std::unique_ptr<const CublasLtLoop> loop(const GemmProblem& problem, std::string& missing);

  private:
    Bench& bench_;
    std::shared_ptr<const CublasLt> baseline_;
};

/// `launch` on buffer set `set` of `sets`, which must outlive it.
std::function<void(Stream, std::int64_t set)> on(const TensorSets& sets, TensorLaunch launch);

/// Algorithm `index` of `baseline`, which must outlive it.
TensorLaunch launch_of(const CublasLt& baseline, int index);

/// All algorithms of `baseline`, which may be null, on `sets`; returns how many.
std::size_t add_cublaslt(std::vector<TimedWork>& works, const CublasLt* baseline, const TensorSets& sets);

/// What a reader must know of one timing: roofs that were not checked, a clock that was held back.
void note_timed(std::vector<std::string>& notes, Mode mode, const TimedResult& timed, const Roofs& roofs);

}  // namespace rooftile
