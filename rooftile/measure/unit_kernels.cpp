#include "rooftile/measure/unit_kernels.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/elapsed.hpp"
#include "rooftile/measure/counters.hpp"
#include "rooftile/measure/measure_kernels.hpp"
#include "rooftile/measure/nvml.hpp"
#include "rooftile/measure/statistics.hpp"
#include "rooftile/measure/timer.hpp"
#include "rooftile/runtime/cache.hpp"
#include "rooftile/units.hpp"

namespace rooftile {
namespace {

constexpr int rounds = 7;
constexpr double sequence_us = 2000;  ///< of launches recorded together: long beside what begins and ends them
constexpr double cold_l2s = 2;        ///< x alone, of all sets, is so many L2: none of it is there when its turn comes again
constexpr double held_share = 0.5;    ///< of L2: halves of it keep lines of each other
constexpr double warm_seconds = 0.3;  ///< of work before the first timing: the clock rises
constexpr std::int64_t row_elements = unit_columns;

const char* cxx_name(UnitKind kind) {
    constexpr const char* names[] = {"product",  "silu_divide", "silu_fast_divide", "silu_reciprocal", "silu_no_division",
                                     "rms_norm", "gemv"};
    return names[int(kind)];
}

/// The three tensors of all sets, and the kernels.
class UnitBench {
  public:
    UnitBench(const UnitRequest& request, const MeasureKernels& measure, const CachedCompile& compiled, std::int64_t l2_bytes)
        : request_(request),
          measure_(measure),
          module_(std::span<const char>(compiled.compiled.cubin)),
          l2_bytes_(l2_bytes),
          verdict_(256) {
        for (std::size_t i = 0; i < 2 * unit_kinds; ++i) {
            const Function function = module_.function(compiled.compiled.lowered_names[i]);
            (i < unit_kinds ? kernels_ : judges_).push_back(function);
        }
        std::int64_t bytes = 0;
        for (const std::int64_t size : unit_sizes(request)) bytes = std::max(bytes, sets_of(size) * size);
        x_ = DeviceBuffer(std::size_t(bytes)), y_ = DeviceBuffer(std::size_t(bytes)), z_ = DeviceBuffer(std::size_t(bytes));
        fill(x_, 0), fill(y_, 1);
        stream_.synchronize();
    }

    Stream stream() const { return stream_; }
    /// That rotate where operands come from DRAM.
    std::int64_t sets_of(std::int64_t x_bytes) const {
        return std::min(max_sets, std::max<std::int64_t>(1, std::int64_t(std::ceil(cold_l2s * double(l2_bytes_) / double(x_bytes)))));
    }
    bool held_in_l2(UnitKind kind, std::int64_t x_bytes) const {
        const UnitWords& words = unit_words()[std::size_t(kind)];
        return double(x_bytes) * (words.read + words.written) <= held_share * double(l2_bytes_);
    }

    void launch_one(UnitKind kind, std::int64_t x_bytes, Stream stream, std::int64_t set) const {
        Launch grid;
        grid.stream = stream;
        grid.grid_x = unsigned(ceil_div(x_bytes, unit_cta_bytes(kind, request_.type)));
        grid.block_x = unsigned(unit_cta_threads(kind, request_.type));
        const auto offset = DevicePointer(set * x_bytes);
        const bool by_row = !is_pointwise(kind);
        const long long count = kind == UnitKind::gemv ? x_bytes / row_bytes() : x_bytes / 16;
        launch(kernels_[std::size_t(kind)], grid, z_.address() + offset, x_.address() + offset, y_.address() + (by_row ? 0 : offset),
               count);
    }

    /// Launches it on that set, whose result holds NaN before, and judges every element.
    UnitVerdict verify(UnitKind kind, std::int64_t x_bytes, std::int64_t set) const {
        const auto offset = DevicePointer(set * x_bytes);
        fill_bytes(z_.address() + offset, 0xff, std::size_t(x_bytes), stream_);
        launch_one(kind, x_bytes, stream_, set);
        fill_bytes(verdict_.address(), 0, sizeof(UnitVerdict), stream_);
        Launch grid;
        grid.stream = stream_;
        const long long rows = x_bytes / row_bytes();
        grid.grid_x = unsigned(std::clamp<long long>(ceil_div(rows, unit_threads / 32), 1, 4096));
        grid.block_x = unit_threads;
        launch(judges_[std::size_t(kind)], grid, z_.address() + offset, x_.address() + offset,
               y_.address() + (is_pointwise(kind) ? offset : 0), rows, verdict_.address());
        stream_.synchronize();
        UnitVerdict verdict{};
        copy_to_host(&verdict, verdict_.address(), sizeof verdict);
        return verdict;
    }
    /// What there is to judge.
    std::uint64_t elements(UnitKind kind, std::int64_t x_bytes) const {
        return std::uint64_t(kind == UnitKind::gemv ? x_bytes / row_bytes() : x_bytes / bytes_of(request_.type));
    }

  private:
    std::int64_t row_bytes() const { return row_elements * bytes_of(request_.type); }
    void fill(const DeviceBuffer& to, std::uint64_t stream) const {
        FillArguments arguments{};
        arguments.to.data = to.data();
        arguments.to.width = arguments.to.leading = row_elements;
        arguments.to.lines = std::int64_t(to.bytes()) / row_bytes();
        arguments.seed = request_.seed, arguments.stream = stream;
        arguments.fill = Fill::normal;
        arguments.type = request_.type;
        measure_.fill(stream_, arguments);
    }

    const UnitRequest& request_;
    const MeasureKernels& measure_;
    Module module_;
    std::vector<Function> kernels_, judges_;
    std::int64_t l2_bytes_;
    StreamOwner stream_;
    DeviceBuffer x_, y_, z_, verdict_;
};

/// One kernel at one size, in one place, ready to be timed.
struct TimedUnit {
    UnitPoint point;
    TimedWork work;
    std::unique_ptr<Sequence> sequence;
    std::vector<double> times;
};

void take(UnitPoint& point, const UnitVerdict& verdict, std::uint64_t elements) {
    const bool right = verdict.wrong == 0 && verdict.checked == elements;
    point.right = right && (point.right || point.launches == 0);
    point.worst = std::max(point.worst, double(verdict.worst));
}

void check_interrupted(const UnitRequest& request) {
    if (request.interrupted && request.interrupted()) throw Error(ExitCode::interrupted, "interrupted");
}

/// All kernels at one size, in turns.
std::vector<UnitPoint> timed_points(UnitBench& bench, const UnitRequest& request, std::int64_t x_bytes, bool from_dram) {
    std::vector<TimedUnit> units;
    units.reserve(unit_words().size());
    for (const UnitWords& words : unit_words()) {
        if (!from_dram && !bench.held_in_l2(words.kind, x_bytes)) continue;
        TimedUnit& one = units.emplace_back();
        one.point.kind = words.kind, one.point.x_bytes = x_bytes, one.point.from_dram = from_dram;
        one.point.sets = from_dram ? bench.sets_of(x_bytes) : 1;
        take(one.point, bench.verify(words.kind, x_bytes, 0), bench.elements(words.kind, x_bytes));
        if (!one.point.right) continue;
        one.work.name = words.id;
        one.work.launch = [&bench, kind = words.kind, x_bytes](Stream stream, std::int64_t set) {
            bench.launch_one(kind, x_bytes, stream, set);
        };
        // A first guess of its time decides how many launches are recorded; it need not be good.
        const double guess = 2 + double(x_bytes) * (words.read + words.written) / 4e6;
        one.point.launches = recorded_launches(guess, one.point.sets, sequence_us);
        one.sequence = std::make_unique<Sequence>(bench.stream(), one.work, one.point.sets, one.point.launches);
    }
    const auto orders = interleaved(units.size(), rounds + 1, request.seed);
    for (int round = 0; round <= rounds; ++round) {  // the first is not counted
        check_interrupted(request);
        for (const std::size_t i : orders[std::size_t(round)]) {
            TimedUnit& one = units[i];
            if (!one.sequence) continue;
            const Event start, stop;
            // What is in L2 is the work's own, of its last launch before.
            if (!from_dram) one.work.launch(bench.stream(), 0);
            start.record(bench.stream());
            one.sequence->run(bench.stream());
            stop.record(bench.stream());
            stop.synchronize();
            if (round > 0) one.times.push_back(elapsed_us(start, stop) / double(one.point.launches));
        }
    }
    std::vector<UnitPoint> points;
    for (TimedUnit& one : units) {
        if (one.sequence) {
            one.point.time_us = median(one.times);
            one.point.low_us = *std::ranges::min_element(one.times), one.point.high_us = *std::ranges::max_element(one.times);
            take(one.point, bench.verify(one.point.kind, x_bytes, one.point.sets - 1), bench.elements(one.point.kind, x_bytes));
        }
        points.push_back(std::move(one.point));
    }
    return points;
}

/// Those that say most: of each kernel the largest that L2 holds, and from DRAM a size in the middle and the largest.
std::vector<UnitPoint*> counted_points(std::vector<UnitPoint>& points) {
    std::vector<UnitPoint*> out;
    for (const UnitWords& words : unit_words()) {
        std::vector<UnitPoint*> dram, held;
        for (UnitPoint& point : points)
            if (point.kind == words.kind && point.right) (point.from_dram ? dram : held).push_back(&point);
        if (!held.empty()) out.push_back(held.back());
        if (dram.size() > 2) out.push_back(dram[dram.size() / 2]);
        if (!dram.empty()) out.push_back(dram.back());
    }
    return out;
}

void count(UnitBench& bench, const UnitRequest& request, const MeasureKernels& measure, UnitRun& run) {
    std::string why_not;
    std::unique_ptr<CounterSession> session;
    try {
        session = CounterSession::open(measure, request.device, why_not);
    } catch (const Error& error) {
        if (error.code() != ExitCode::counters_denied) throw;
        why_not = error.what();
    }
    if (!session) {
        run.notes.push_back("no counters: " + why_not);
        return;
    }
    run.chip = session->chip();
    std::vector<std::string> names;
    for (const UnitCounter& counter : unit_counters()) names.emplace_back(counter.metric);
    for (UnitPoint* point : counted_points(run.points)) {
        check_interrupted(request);
        const auto launch_numbered = [&](Stream stream, std::int64_t number) {
            bench.launch_one(point->kind, point->x_bytes, stream, number % point->sets);
        };
        // Of one place in L2 a launch before leaves it there.
        const std::vector<double> values = session->count(names, launch_numbered, min_counted_launches, point->from_dram ? 0 : 1);
        for (std::size_t i = 0; i < names.size(); ++i)
            if (std::isfinite(values[i])) point->counters[unit_counters()[i].key] = values[i];
        for (const char* sum : {"instructions", "special_instructions"})
            if (const auto found = point->counters.find(sum); found != point->counters.end()) found->second /= double(min_counted_launches);
    }
}

}  // namespace

std::vector<std::int64_t> unit_sizes(const UnitRequest& request) {
    std::vector<std::int64_t> out;
    for (std::int64_t size = request.least_bytes; size <= request.most_bytes; size *= 4) out.push_back(size);
    return out;
}

Source unit_source(Type type, std::string_view arch) {
    Source source;
    source.name = "units";
    source.text = "#include \"kernels/measure/units.cuh\"\n";
    const std::string element = type == Type::fp32 ? "rooftile::Type::fp32" : "rooftile::Type::bf16";
    for (const UnitWords& words : unit_words()) {
        const std::string kind = std::string("rooftile::UnitKind::") + cxx_name(words.kind);
        source.name_expressions.push_back(is_pointwise(words.kind) ? fmt::format("rooftile::unit_pointwise<{}, {}>", kind, element)
                                                                   : fmt::format("rooftile::unit_{}<{}>", cxx_name(words.kind), element));
    }
    for (const UnitWords& words : unit_words())
        source.name_expressions.push_back(fmt::format("rooftile::judge_units<rooftile::UnitKind::{}, {}>", cxx_name(words.kind), element));
    source.arch = nvrtc_arch(arch);
    return source;
}

std::vector<UnitCode> unit_code(const Compiled& compiled) {
    std::vector<UnitCode> out;
    for (std::size_t i = 0; i < unit_kinds; ++i) {
        const auto counts = straight_counts(compiled.cubin, compiled.lowered_names[i]);
        if (!counts) throw Error(ExitCode::internal, fmt::format("the code of {} cannot be counted: it has a loop", unit_words()[i].id));
        out.push_back({UnitKind(i), *counts, compiled.entries[i].registers});
    }
    return out;
}

UnitOutcome run_units(const UnitRequest& request) {
    UnitOutcome out;
    const DeviceInfo device = Driver::instance().device(request.device);
    const auto own = compile_measure_kernels(device.arch());
    const CachedCompile compiled = compile_cached(unit_source(request.type, device.arch()));
    const auto context = Context::current_or_primary(request.device);
    const MeasureKernels measure(own);
    out.gpu = device.name, out.nvrtc = nvrtc().version;
    const auto nvml = Nvml::open(device.pci_bus_id);
    out.driver = nvml ? nvml->driver_version() : std::to_string(Driver::instance().version());
    UnitRun& run = out.run;
    run.type = request.type;
    run.code = unit_code(compiled.compiled);
    UnitBench bench(request, measure, compiled, device.l2_bytes);
    const auto begin = std::chrono::steady_clock::now();
    while (seconds_since(begin) < warm_seconds) {
        for (int i = 0; i < 16; ++i) bench.launch_one(UnitKind::silu_divide, request.most_bytes, bench.stream(), 0);
        synchronize(bench.stream());
    }
    for (const std::int64_t size : unit_sizes(request))
        for (const bool from_dram : {true, false}) {
            const auto points = timed_points(bench, request, size, from_dram);
            run.points.insert(run.points.end(), points.begin(), points.end());
            if (request.progress)
                request.progress(fmt::format("{} KiB {}: {} kernels", size >> 10, from_dram ? "from DRAM" : "in L2", points.size()));
        }
    if (request.counters) count(bench, request, measure, run);
    return out;
}

}  // namespace rooftile
