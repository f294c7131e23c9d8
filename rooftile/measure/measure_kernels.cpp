#include "rooftile/measure/measure_kernels.hpp"
#include "rooftile/core/in_parallel.hpp"
#include "rooftile/units.hpp"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

namespace rooftile {
namespace {

constexpr unsigned stride_threads = 256;
constexpr int stride_ctas_per_sm = 8;  ///< of the grid-stride kernels: all 2048 threads of an SM

Launch grid(std::int64_t items, int sms, Stream stream) {
    const std::int64_t most = std::int64_t{sms} * stride_ctas_per_sm;
    Launch launch;
    launch.grid_x = static_cast<unsigned>(std::clamp<std::int64_t>(ceil_div(items, stride_threads), 1, most));
    launch.block_x = stride_threads;
    launch.stream = stream;
    return launch;
}

}  // namespace

std::vector<Source> measure_sources(std::string_view arch) {
    const auto source = [&](const char* name, const char* header, std::vector<std::string> kernels) {
        return source_of_header(name, header, std::move(kernels), arch);
    };
    return {
        source("measure", "kernels/measure/measure.cuh",
               {"rooftile::fill", "rooftile::check_guard", "rooftile::checksum", "rooftile::fingerprint",
                "rooftile::count_unequal", "rooftile::inject",
                "rooftile::flush", "rooftile::copy", "rooftile::read", "rooftile::stamp"}),
        source("verify_exact", "kernels/measure/verify.cuh", {"rooftile::verify<true>", "rooftile::bounded_sums<true>"}),
        source("verify_bounded", "kernels/measure/verify.cuh", {"rooftile::verify<false>", "rooftile::bounded_sums<false>"}),
        source("verify_scaled", "kernels/measure/verify.cuh", {"rooftile::bounded_sums<true, true>", "rooftile::bounded_sums<false, true>"}),
    };
}

std::vector<CachedCompile> compile_measure_kernels(std::string_view arch) {
    const std::vector<Source> sources = measure_sources(arch);
    std::vector<CachedCompile> compiled(sources.size());
    in_parallel(sources.size(), 0, [&](std::size_t i) { compiled[i] = compile_cached(sources[i]); });
    return compiled;
}

MeasureKernels::MeasureKernels(const std::vector<CachedCompile>& compiled)
    : sms_(Driver::instance().device(current_device()).sm_count) {
    assert(compiled.size() == 4);
    for (const CachedCompile& c : compiled) modules_.emplace_back(std::span<const char>(c.compiled.cubin));
    Function* const functions[] = {&fill_,   &check_guard_, &checksum_, &fingerprint_, &count_unequal_,
                                   &inject_, &flush_,       &copy_,     &read_,        &stamp_};
    for (std::size_t i = 0; i < std::size(functions); ++i) {
        *functions[i] = modules_[0].function(compiled[0].compiled.lowered_names[i]);
    }
    verify_exact_ = modules_[1].function(compiled[1].compiled.lowered_names[0]);
    verify_bounded_ = modules_[2].function(compiled[2].compiled.lowered_names[0]);
    sums_exact_ = modules_[1].function(compiled[1].compiled.lowered_names[1]);
    sums_bounded_ = modules_[2].function(compiled[2].compiled.lowered_names[1]);
    scaled_exact_ = modules_[3].function(compiled[3].compiled.lowered_names[0]);
    scaled_bounded_ = modules_[3].function(compiled[3].compiled.lowered_names[1]);
}

void MeasureKernels::fill(Stream stream, const FillArguments& arguments) const {
    const MatrixView& to = arguments.to;
    launch(fill_, grid(to.lines * ceil_div(to.width, 4), sms_, stream), arguments);
}

void MeasureKernels::check_guard(Stream stream, DevicePointer data, const TensorLayout& layout, std::int64_t guard,
                                 unsigned char poison, DevicePointer touched) const {
    const long long bytes = guard;
    const std::int64_t padding = (layout.pitch_bytes - layout.line_bytes) * (layout.lines - 1);
    launch(check_guard_, grid(2 * guard + padding, sms_, stream), data, layout, bytes, poison, touched);
}

void MeasureKernels::checksum(Stream stream, DevicePointer data, std::int64_t bytes,
                              DevicePointer sum) const {
    assert(bytes % 4 == 0);
    const long long words = bytes / 4;
    launch(checksum_, grid(words, sms_, stream), data, words, sum);
}

void MeasureKernels::fingerprint(Stream stream, DevicePointer data, std::int64_t bytes, std::size_t place,
                                 DevicePointer sums, std::int64_t set_pitch, std::int64_t sets) const {
    assert(bytes % 4 == 0 && set_pitch % 4 == 0 && sets <= max_sets);
    const long long words = bytes / 4, pitch = set_pitch / 4;
    const unsigned long long tensor = place;
    Launch all = grid(words * sets, sms_, stream);
    all.grid_x = static_cast<unsigned>(ceil_div(all.grid_x, sets));
    all.grid_y = static_cast<unsigned>(sets);
    launch(fingerprint_, all, data, words, tensor, pitch, sums);
}

void MeasureKernels::count_unequal(Stream stream, DevicePointer sums, std::int64_t count, std::uint64_t expected,
                                   DevicePointer unequal) const {
    assert(count <= max_sets);
    Launch all;
    all.grid_x = static_cast<unsigned>(ceil_div(count, std::int64_t{stride_threads}));
    all.block_x = stride_threads;
    all.stream = stream;
    const int sets = static_cast<int>(count);
    const unsigned long long sum = expected;
    launch(count_unequal_, all, sums, sets, sum, unequal);
}

void MeasureKernels::inject(Stream stream, DevicePointer at, std::uint16_t bits, int bytes) const {
    Launch one;
    one.stream = stream;
    launch(inject_, one, at, bits, bytes);
}

void MeasureKernels::flush(Stream stream, DevicePointer data, std::int64_t bytes) const {
    assert(bytes % 16 == 0);
    const long long count = bytes / 16;
    launch(flush_, grid(count, sms_, stream), data, count);
}

void MeasureKernels::copy(Stream stream, DevicePointer to, DevicePointer from, std::int64_t bytes) const {
    assert(bytes % 16 == 0);
    const long long count = bytes / 16;
    launch(copy_, grid(count, sms_, stream), to, from, count);
}

void MeasureKernels::read(Stream stream, DevicePointer from, std::int64_t bytes, DevicePointer told) const {
    assert(bytes % 16 == 0);
    const long long count = bytes / 16;
    const unsigned never = 0x9e3779b9u;
    launch(read_, grid(count, sms_, stream), from, count, never, told);
}

void MeasureKernels::stamp(Stream stream, DevicePointer stamps) const {
    Launch all;
    all.grid_x = static_cast<unsigned>(4 * sms_);  // CTAs go to the emptiest SM first: each gets some
    all.block_x = 32;
    all.stream = stream;
    const unsigned sms = static_cast<unsigned>(sms_);
    launch(stamp_, all, stamps, sms);
}

void MeasureKernels::bounded_sums(Stream stream, const VerifyArguments& arguments, bool exact, Bounded* out) const {
    Launch all;
    all.grid_x = static_cast<unsigned>(verify_ctas());
    all.block_x = 256;
    all.stream = stream;
    const Function& scaled = exact ? scaled_exact_ : scaled_bounded_;
    launch(arguments.a_scales ? scaled : exact ? sums_exact_ : sums_bounded_, all, arguments, out);
}

void MeasureKernels::verify(Stream stream, const VerifyArguments& arguments, bool exact,
                            DevicePointer records) const {
    Launch all;
    all.grid_x = static_cast<unsigned>(verify_ctas());
    all.block_x = 256;
    all.stream = stream;
    launch(exact ? verify_exact_ : verify_bounded_, all, arguments, records);
}

}  // namespace rooftile
