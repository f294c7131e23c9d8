#include "rooftile/measure/stream_kernels.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "rooftile/measure/statistics.hpp"
#include "rooftile/units.hpp"

namespace rooftile {
namespace {

constexpr PieceKernel pieces_kernels[] = {
    {1, false, false, true},  {2, false, false, true},  {4, false, false, true},  {8, false, false, true},
    {1, true, false, true},   {2, true, false, true},   {1, false, true, true},   {4, false, true, true},
    {1, true, true, true},    {1, false, false, false}, {2, false, false, false}, {4, false, false, false},
    {8, false, false, false}, {1, true, false, false},  {2, true, false, false}};
constexpr int threads_of_pieces[] = {128, 256, 512, 1024};
constexpr unsigned bulk_threads = 32;  ///< of a CTA, one of which works
constexpr int bulk_own_shared = 1024;  ///< a CTA's barriers and what the driver keeps, at most

Source source_of(const char* name, const char* header, std::string_view arch) {
    Source s;
    s.name = name;
    s.text = std::string("#include \"") + header + "\"\n";
    s.arch = nvrtc_arch(arch);
    return s;
}

bool has_bulk(std::string_view arch) {
    return arch.starts_with("sm_") && std::stoi(std::string(arch.substr(3))) >= 90;
}

}  // namespace

std::string name_of(const StreamForm& form) {
    switch (form.kind) {
        case StreamForm::Kind::persistent:
            return "one wave of CTAs";
        case StreamForm::Kind::pieces:
            return fmt::format(
                "pieces of {} x 16 B, {} threads{}", form.accesses, form.threads,
                std::string(form.cached ? ", through L1" : "") + (form.last ? ", reads go last" : ""));
        case StreamForm::Kind::bulk:
            return fmt::format("bulk ring of {} x {} KiB, {} CTAs an SM{}", form.stages, form.piece / 1024,
                               form.ctas_per_sm, form.last ? ", reads go last" : "");
    }
    assert(!"a StreamForm without a name");
    return "?";
}

std::span<const PieceKernel> piece_kernels() { return pieces_kernels; }

std::vector<StreamForm> stream_forms(std::string_view arch, int shared_bytes) {
    std::vector<StreamForm> forms = {{}};
    for (const PieceKernel& k : pieces_kernels) {
        if (!k.copies) continue;  // a form that reads has one that copies
        for (const int threads : threads_of_pieces)
            forms.push_back({StreamForm::Kind::pieces, k.accesses, threads, 0, 0, 0, k.cached, k.last});
    }
    if (!has_bulk(arch)) return forms;
    for (const auto& [piece, stages, ctas] :
         {std::tuple{4096, 8, 6}, {8192, 4, 6}, {8192, 8, 3}, {16384, 4, 3}, {16384, 12, 1}, {32768, 6, 1}})
        for (const bool last : {false, true})
            if (ctas * (piece * stages + bulk_own_shared) <= shared_bytes)
                forms.push_back({StreamForm::Kind::bulk, 0, 0, piece, stages, ctas, false, last});
    return forms;
}

std::vector<Source> stream_sources(std::string_view arch) {
    std::vector<Source> sources = {source_of("measure_stream", "kernels/measure/stream.cuh", arch)};
    for (const PieceKernel& k : pieces_kernels)
        sources[0].name_expressions.push_back(
            k.copies ? fmt::format("rooftile::copy_pieces<{}, {}, {}>", k.accesses, k.cached, k.last)
                     : fmt::format("rooftile::read_pieces<{}, {}>", k.accesses, k.cached));
    if (!has_bulk(arch)) return sources;
    sources.push_back(source_of("measure_stream_bulk", "kernels/measure/stream_bulk.cuh", arch));
    sources[1].name_expressions = {"rooftile::copy_bulk<false>", "rooftile::copy_bulk<true>",
                                   "rooftile::read_bulk"};
    return sources;
}

unsigned stream_grid(const StreamForm& form, std::int64_t bytes, int sms) {
    if (form.kind == StreamForm::Kind::bulk) {
        const std::int64_t pieces = ceil_div(bytes, form.piece);
        const std::int64_t resident = std::int64_t{sms} * form.ctas_per_sm;
        return static_cast<unsigned>(std::clamp<std::int64_t>(pieces, 1, resident));
    }
    assert(form.kind == StreamForm::Kind::pieces);
    const std::int64_t piece = std::int64_t{16} * form.accesses * form.threads;
    return static_cast<unsigned>(std::max<std::int64_t>(1, ceil_div(bytes, piece)));
}

StreamKernels::StreamKernels(const MeasureKernels& own, std::string_view arch, int shared_bytes)
    : own_(own), forms_(stream_forms(arch, shared_bytes)) {
    std::vector<CachedCompile> compiled;
    for (const Source& source : stream_sources(arch)) compiled.push_back(compile_cached(source));
    for (const CachedCompile& c : compiled) modules_.emplace_back(std::span<const char>(c.compiled.cubin));
    std::size_t next = 0;
    for (const PieceKernel& k : pieces_kernels)
        pieces_[{k.accesses, k.cached, k.last, k.copies}] =
            modules_[0].function(compiled[0].compiled.lowered_names[next++]);
    if (modules_.size() == 1) return;
    for (const bool last : {false, true})
        copy_bulk_[last] = modules_[1].function(compiled[1].compiled.lowered_names[last]);
    read_bulk_ = modules_[1].function(compiled[1].compiled.lowered_names[2]);
    int most = 0;
    for (const StreamForm& form : forms_) most = std::max(most, form.piece * form.stages);
    for (Function& copy : copy_bulk_) copy.allow_shared(most);
    read_bulk_.allow_shared(most);
}

namespace {

Launch launch_of(const StreamForm& form, std::int64_t bytes, int sms, Stream stream) {
    Launch launch;
    launch.grid_x = stream_grid(form, bytes, sms);
    launch.stream = stream;
    const bool bulk = form.kind == StreamForm::Kind::bulk;
    launch.block_x = bulk ? bulk_threads : static_cast<unsigned>(form.threads);
    launch.shared_bytes = bulk ? static_cast<unsigned>(form.piece * form.stages) : 0;
    return launch;
}

}  // namespace

void StreamKernels::copy(Stream stream, const StreamForm& form, DevicePointer to, DevicePointer from,
                         std::int64_t bytes) const {
    assert(bytes % 16 == 0);
    if (form.kind == StreamForm::Kind::persistent) return own_.copy(stream, to, from, bytes);
    const Launch how = launch_of(form, bytes, own_.sms(), stream);
    if (form.kind == StreamForm::Kind::bulk) {
        const long long all = bytes;
        return launch(copy_bulk_[form.last], how, to, from, all, form.piece, form.stages);
    }
    const long long count = bytes / 16;
    launch(pieces_.at({form.accesses, form.cached, form.last, true}), how, to, from, count);
}

void StreamKernels::read(Stream stream, const StreamForm& form, DevicePointer from, std::int64_t bytes,
                         DevicePointer told) const {
    assert(bytes % 16 == 0);
    if (form.kind == StreamForm::Kind::persistent) return own_.read(stream, from, bytes, told);
    const Launch how = launch_of(form, bytes, own_.sms(), stream);
    if (form.kind == StreamForm::Kind::bulk) {
        const long long all = bytes;
        return launch(read_bulk_, how, from, all, form.piece, form.stages);
    }
    const long long count = bytes / 16;
    const unsigned never = 0x9e3779b9u;
    launch(pieces_.at({form.accesses, form.cached, false, false}), how, from, count, never, told);
}

/// The median of a few launches, us. Cold: each behind a kernel that overwrites L2; else launches in a row over
/// the rotated sets.
double StreamChoice::time(Stream stream, Mode mode, const std::function<void(std::int64_t)>& launch,
                          double seconds) {
    constexpr int least = 3, most = 9;
    std::vector<double> samples;
    double spent_us = 0;
    std::int64_t set = 0;
    launch(set++);  // code is loaded, and what is refused is found
    for (int n = 0; n < most && (n < least || spent_us < seconds * 1e6); ++n) {
        Event begin, start, stop;
        const int launches = mode == Mode::cold ? 1 : 8;
        begin.record(stream);
        if (mode == Mode::cold) {
            synchronize(stream);  // the launch before may still ask L2 to keep lines
            reset_persisting_l2();
            kernels_.flush(stream, flushed_.address(), static_cast<std::int64_t>(flushed_.bytes()));
        }
        start.record(stream);
        for (int i = 0; i < launches; ++i) launch(set++);
        stop.record(stream);
        stop.synchronize();
        samples.push_back(elapsed_us(start, stop) / launches);
        spent_us += elapsed_us(begin, stop);
    }
    return median(std::move(samples));
}

StreamForm StreamChoice::fastest(const StreamKernels& streams, bool copies, std::int64_t bytes, Mode mode,
                                 std::int64_t sets, const StreamLaunch& launch) {
    const auto key = std::tuple(copies, bytes, mode);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
    if (mode == Mode::cold && flushed_.bytes() == 0)
        flushed_ = DeviceBuffer(static_cast<std::size_t>(ceil_div(2 * l2_bytes_, 16) * 16));
    constexpr double all_seconds = 0.03;  // 3 launches each may take a little longer
    const StreamOwner stream;
    StreamForm best;
    double least = INFINITY;
    std::vector<StreamForm> forms = streams.forms();
    if (!copies) std::erase_if(forms, [](const StreamForm& form) { return form.last; });
    for (const StreamForm& form : forms) {
        const double us = time(
            stream, mode, [&](std::int64_t set) { launch(stream, form, set % sets); },
            all_seconds / double(forms.size()));
        if (us < least) least = us, best = form;
    }
    return known_[key] = best;
}

}  // namespace rooftile
