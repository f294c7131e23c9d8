// The measure station's own kernels (kernels/measure/), compiled through the cache and ready to launch.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/expression/bounded.hpp"
#include "kernels/measure/arguments.hpp"
#include "rooftile/runtime/cache.hpp"
#include "rooftile/runtime/driver.hpp"

namespace rooftile {

/// Of tensors that launches rotate over, at most: more would be no slower to run, but long to record as a graph.
inline constexpr std::int64_t max_sets = 16384;

/// Buffer sets `first` to `first + count - 1`.
struct SetRange {
    std::int64_t first = 0, count = 0;
};

/// Programs that as many threads compile: fill and guard, the exact reference, the bounded one, sums with scales of blocks.
std::vector<Source> measure_sources(std::string_view arch);

/// Compiles or reads them from the cache, in parallel; needs no GPU. Throws Error(compile_failed).
std::vector<CachedCompile> compile_measure_kernels(std::string_view arch);

/// The kernels in the context current at construction. Every call is asynchronous on its stream.
class MeasureKernels {
  public:
    explicit MeasureKernels(const std::vector<CachedCompile>& compiled);

    void fill(Stream stream, const FillArguments& arguments) const;
    /// Adds to `*touched` the bytes around and between the lines of the tensor at `data` that are not `poison`; `guard`
    /// bytes on each side.
    void check_guard(Stream stream, DevicePointer data, const TensorLayout& layout, std::int64_t guard,
                     unsigned char poison, DevicePointer touched) const;
    /// Adds a sum over `bytes` (a multiple of 4) at `data` to the 64-bit word at `sum`.
    void checksum(Stream stream, DevicePointer data, std::int64_t bytes, DevicePointer sum) const;
    /// Adds a sum over `bytes` (a multiple of 4) at `data`, and at each `set_pitch` bytes behind it, to one 64-bit word a
    /// set at `sums`; `place` tells tensors apart.
    void fingerprint(Stream stream, DevicePointer data, std::int64_t bytes, std::size_t place, DevicePointer sums,
                     std::int64_t set_pitch, std::int64_t sets) const;
    /// Adds to `*unequal` how many of `count` words at `sums` are not `expected`, and zeroes them.
    void count_unequal(Stream stream, DevicePointer sums, std::int64_t count, std::uint64_t expected,
                       DevicePointer unequal) const;
    void inject(Stream stream, DevicePointer at, std::uint16_t bits, int bytes) const;
    /// Reads and writes `bytes` (a multiple of 16).
    void flush(Stream stream, DevicePointer data, std::int64_t bytes) const;
    void copy(Stream stream, DevicePointer to, DevicePointer from, std::int64_t bytes) const;
    /// Reads `bytes` (a multiple of 16); may write a word at `told`.
    void read(Stream stream, DevicePointer from, std::int64_t bytes, DevicePointer told) const;
    /// Writes one ClockStamp for each of `sms()` SMs at `stamps`.
    void stamp(Stream stream, DevicePointer stamps) const;
    /// Judges every element of every result; `records` holds `verify_ctas()` zeroed entries a result.
    void verify(Stream stream, const VerifyArguments& arguments, bool exact, DevicePointer records) const;

    /// Every sum, [m][n], dense or at the arguments' pitch, with the bound on what fp32 may have made of it; where `exact` there is none.
    void bounded_sums(Stream stream, const VerifyArguments& arguments, bool exact, Bounded* out) const;

    int sms() const { return sms_; }
    int verify_ctas() const { return 2 * sms_; }  ///< verify's launch bounds let two share an SM

  private:
    std::vector<Module> modules_;
    Function fill_, check_guard_, checksum_, fingerprint_, count_unequal_, inject_, flush_, copy_, read_, stamp_, verify_exact_,
        verify_bounded_, sums_exact_, sums_bounded_, scaled_exact_, scaled_bounded_;
    int sms_ = 0;
};

}  // namespace rooftile
