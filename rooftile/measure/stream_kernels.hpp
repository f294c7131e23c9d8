// Kernels that only copy or only read, in several forms: the fastest of them for a size is the roof that
// memory-bound kernels are held against. A single form is not: which one is fastest depends on the size.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "rooftile/measure/measure_kernels.hpp"
#include "rooftile/core/measured.hpp"

namespace rooftile {

/// How one of them is launched.
struct StreamForm {
    enum class Kind : std::uint8_t {
        persistent,  ///< MeasureKernels' copy and read: one wave of CTAs goes through everything
        pieces,      ///< a CTA for each `threads` x `accesses` x 16 B
        bulk,  ///< rings of `stages` x `piece` bytes in shared memory, `ctas_per_sm` of them an SM; sm_90 on
    };
    Kind kind = Kind::persistent;
    int accesses = 0, threads = 0;
    int piece = 0, stages = 0, ctas_per_sm = 0;
    bool cached = false;  ///< pieces: loads go through L1
    bool last = false;    ///< only copies: of its lines L2 gives up last what was read; sm_80 on
};
/// "pieces of 4 x 16 B, 512 threads", "bulk ring of 4 x 16 KiB, 3 CTAs an SM".
std::string name_of(const StreamForm& form);

/// Those that an SM of `arch` with `shared_bytes` of shared memory can run.
std::vector<StreamForm> stream_forms(std::string_view arch, int shared_bytes);

/// What a kernel of pieces is compiled for.
struct PieceKernel {
    int accesses;  ///< of 16 B, of each thread
    bool cached;   ///< loads go through L1
    bool last;     ///< of its lines L2 gives up last what was read
    bool copies;   ///< else it reads alone
};
std::span<const PieceKernel> piece_kernels();

/// The programs of them: ordinary accesses, the PieceKernels in turn; then, where `arch` has it, the bulk engine.
std::vector<Source> stream_sources(std::string_view arch);

/// CTAs of `form` for so many bytes on `sms` SMs.
unsigned stream_grid(const StreamForm& form, std::int64_t bytes, int sms);

/// In the context current at construction; `own` must outlive them. Throws Error(compile_failed, gpu_failed).
class StreamKernels {
  public:
    StreamKernels(const MeasureKernels& own, std::string_view arch, int shared_bytes);
    const std::vector<StreamForm>& forms() const { return forms_; }
    /// `bytes`, a multiple of 16.
    void copy(Stream stream, const StreamForm& form, DevicePointer to, DevicePointer from,
              std::int64_t bytes) const;
    /// As MeasureKernels::read.
    void read(Stream stream, const StreamForm& form, DevicePointer from, std::int64_t bytes,
              DevicePointer told) const;

  private:
    const MeasureKernels& own_;
    std::vector<StreamForm> forms_;
    std::vector<Module> modules_;
    /// By accesses, whether they are cached, whether they go last, and whether it copies.
    std::map<std::tuple<int, bool, bool, bool>, Function> pieces_;
    Function copy_bulk_[2], read_bulk_;  // of copies: as any other, and those whose reads go last
};

/// What a form does on buffer set `set`.
using StreamLaunch = std::function<void(Stream stream, const StreamForm& form, std::int64_t set)>;

/// Which form is the fastest: a few launches of each in the state of `mode`, medians. Some 30 ms
/// in all, or as long as 3 launches of each take. Neither their times nor that one of them won enter any figure.
class StreamChoice {
  public:
    StreamChoice(const MeasureKernels& kernels, std::int64_t l2_bytes)
        : kernels_(kernels), l2_bytes_(l2_bytes) {}
    /// The same answer for the same bytes, once it was found.
    StreamForm fastest(const StreamKernels& streams, bool copies, std::int64_t bytes, Mode mode,
                       std::int64_t sets, const StreamLaunch& launch);

  private:
    double time(Stream stream, Mode mode, const std::function<void(std::int64_t)>& launch, double seconds);
    const MeasureKernels& kernels_;
    std::int64_t l2_bytes_;
    DeviceBuffer flushed_;
    std::map<std::tuple<bool, std::int64_t, Mode>, StreamForm> known_;
};

}  // namespace rooftile
