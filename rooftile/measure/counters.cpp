#include "rooftile/measure/counters.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <optional>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "rooftile/error.hpp"
#include "rooftile/measure/cupti.hpp"
#include "rooftile/measure/cupti_table.hpp"
#include "rooftile/units.hpp"

namespace rooftile {

namespace {

using M = CounterMetric;

constexpr std::int64_t buffer_l2s = 4;  ///< a buffer of so many L2 leaves nothing else in it
constexpr double sector_bytes = 32;    ///< what L2 counts in
constexpr const char* none = nullptr;  ///< the chip has no such counter
constexpr int chip_count = 3;
constexpr std::string_view chips[chip_count] = {"GH100", "GA100", "AD102"};

/// What CUPTI can collect in one pass on each of the chips; tests/measure/counters_test.cpp asks it.
enum class Pass : std::uint8_t { work, hits, banks, dram };

struct Row {
    CounterMetric metric;
    Pass pass;
    const char* names[chip_count];
};

/// The same name on every chip.
constexpr Row row(CounterMetric metric, Pass pass, const char* name) {
    return {metric, pass, {name, name, name}};
}

// `tex` is the SM's way to L2; the plain lts__t_sectors also count what one half of L2 asks of the other.
constexpr Row rows[] = {
    row(M::time_ns, Pass::work, "gpu__time_duration.sum"),
    row(M::clock_hz, Pass::work, "sm__cycles_elapsed.avg.per_second"),
    row(M::sm_cycles, Pass::work, "sm__cycles_elapsed.max"),
    row(M::sm_active_percent, Pass::work, "sm__cycles_active.avg.pct_of_peak_sustained_elapsed"),
    row(M::tensor_active_percent, Pass::work,
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"),
    {M::tensor_instructions,
     Pass::work,
     {"sm__inst_executed_pipe_tensor_op_gmma.sum", "sm__inst_executed_pipe_tensor.sum",
      "sm__inst_executed_pipe_tensor.sum"}},
    row(M::shared_wavefronts, Pass::work, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"),
    row(M::shared_wavefront_percent, Pass::work,
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_active"),
    row(M::shared_bank_conflicts, Pass::work, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"),
    row(M::l2_read_sectors, Pass::work, "lts__t_sectors_srcunit_tex_op_read.sum"),
    row(M::l2_write_sectors, Pass::work, "lts__t_sectors_srcunit_tex_op_write.sum"),
    {M::l2_fabric_sectors,
     Pass::work,
     {"lts__t_sectors_srcunit_ltcfabric.sum", "lts__t_sectors_srcunit_ltcfabric.sum", none}},
    row(M::l2_read_hit_sectors, Pass::hits, "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum"),
    row(M::sm_read_bytes, Pass::hits, "l1tex__m_xbar2l1tex_read_bytes.sum"),
    row(M::data_bank_read_percent, Pass::banks, "l1tex__data_bank_reads.avg.pct_of_peak_sustained_active"),
    row(M::data_bank_write_percent, Pass::banks, "l1tex__data_bank_writes.avg.pct_of_peak_sustained_active"),
    row(M::dram_read_bytes, Pass::dram, "dram__bytes_read.sum"),
    row(M::dram_write_bytes, Pass::dram, "dram__bytes_write.sum"),
};

/// The first of CUPTI's reasons against this device; empty where there is none.
std::string unsupported(const CUpti_Profiler_DeviceSupported_Params& device) {
    constexpr auto supported = CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
    if (device.isSupported == supported) return {};
    const std::pair<CUpti_Profiler_Support_Level, const char*> reasons[] = {
        {device.architecture, "GPUs before Volta have none"},
        {device.sli, "not with SLI"},
        {device.vGpu, "not on this virtual GPU, or switched off by its hypervisor"},
        {device.confidentialCompute, "not in confidential computing mode"},
        {device.cmp, "not on mining processors"},
        {device.wsl, "not under WSL"},
    };
    for (const auto& [level, reason] : reasons) {
        if (level != supported) return reason;
    }
    return "CUPTI does not say why";
}

}  // namespace

std::vector<std::string_view> counted_chips() { return {std::begin(chips), std::end(chips)}; }

std::vector<CounterGroup> counter_groups(std::string_view chip) {
    const auto column = std::find(std::begin(chips), std::end(chips), chip) - std::begin(chips);
    if (column == chip_count) return {};
    std::vector<CounterGroup> groups;
    for (const Pass pass : {Pass::work, Pass::hits, Pass::banks, Pass::dram}) {
        CounterGroup& group = groups.emplace_back();
        group.write_back = pass == Pass::dram;
        for (const Row& row : rows) {
            if (row.pass != pass || !row.names[column]) continue;
            group.metrics.push_back(row.metric);
            group.names.emplace_back(row.names[column]);
        }
    }
    return groups;
}

CounterValues counter_values(const RawCounters& raw, std::int64_t launches) {
    assert(launches > 0);
    const auto value = [&raw](M metric, double scale) -> std::optional<double> {
        const auto found = raw.find(metric);
        if (found == raw.end() || !std::isfinite(found->second)) return std::nullopt;
        return found->second * scale;
    };
    const double each = 1 / static_cast<double>(launches), percent = 0.01;
    CounterValues v;
    v.launches = launches;
    v.time_us = value(M::time_ns, 1e-3 * each);
    v.sm_clock_mhz = value(M::clock_hz, 1e-6);
    v.sm_cycles = value(M::sm_cycles, each);
    v.sm_active_share = value(M::sm_active_percent, percent);
    v.tensor_active_share = value(M::tensor_active_percent, percent);
    v.shared_wavefront_share = value(M::shared_wavefront_percent, percent);
    v.data_bank_read_share = value(M::data_bank_read_percent, percent);
    v.data_bank_write_share = value(M::data_bank_write_percent, percent);
    v.tensor_instructions = value(M::tensor_instructions, each);
    v.shared_wavefronts = value(M::shared_wavefronts, each);
    v.shared_bank_conflicts = value(M::shared_bank_conflicts, each);
    v.l2_read_bytes = value(M::l2_read_sectors, sector_bytes * each);
    v.l2_write_bytes = value(M::l2_write_sectors, sector_bytes * each);
    v.l2_fabric_bytes = value(M::l2_fabric_sectors, sector_bytes * each);
    v.sm_read_bytes = value(M::sm_read_bytes, each);
    v.dram_read_bytes = value(M::dram_read_bytes, each);
    v.dram_write_bytes = value(M::dram_write_bytes, each);
    const auto hit_bytes = value(M::l2_read_hit_sectors, sector_bytes * each);
    if (hit_bytes && v.l2_read_bytes && *v.l2_read_bytes > 0) v.l2_hit_rate = *hit_bytes / *v.l2_read_bytes;
    return v;
}

RawCounters without(RawCounters counted, const RawCounters& own) {
    for (auto& [metric, value] : counted) {
        const auto found = own.find(metric);
        if (found == own.end()) continue;
        value -= found->second;
        if (value < 0)
            value = 0;  // chance, where the work moves next to nothing; what is not a number stays so
    }
    return counted;
}

struct CounterSession::State {
    /// Counters work from here until it goes.
    struct Profiler {
        explicit Profiler(std::shared_ptr<const Cupti> opened) : cupti(std::move(opened)) {
            ROOFTILE_CUPTI_PARAMETERS(p, Profiler_Initialize);
            cupti->check("cuptiProfilerInitialize", cupti->functions().cuptiProfilerInitialize(&p));
        }
        ~Profiler() {
            ROOFTILE_CUPTI_PARAMETERS(p, Profiler_DeInitialize);
            cupti->functions().cuptiProfilerDeInitialize(&p);
        }
        Profiler(const Profiler&) = delete;
        std::shared_ptr<const Cupti> cupti;
    };
    struct Group {
        CounterGroup group;
        CounterSet set;
    };

    State(const MeasureKernels& measure_kernels, std::shared_ptr<const Cupti> cupti, std::int64_t l2)
        : kernels(measure_kernels), profiler(std::move(cupti)), l2_bytes(l2) {}

    const MeasureKernels& kernels;
    Profiler profiler;
    std::string chip;
    std::vector<std::unique_ptr<Group>> groups;
    std::int64_t l2_bytes;
    DeviceBuffer before, after, sum;  ///< read before each pass; read at the end of DRAM's; 8 bytes for a sum
    StreamOwner stream;
    RawCounters own;  ///< what reading `after` counts by itself

    /// Reads all of `buffer`, which leaves L2 full of its clean lines.
    void read(const DeviceBuffer& buffer) const {
        kernels.checksum(stream, buffer.address(), static_cast<std::int64_t>(buffer.bytes()), sum.address());
    }
    /// The metrics of `group` over `work`, which does not wait for what it launches.
    RawCounters count(const Group& group, const std::function<void()>& work) const {
        const std::vector<double> values = group.set.count(
            current_context(),
            [this] {
                read(before);
                stream.synchronize();
            },
            [&] {
                work();
                if (group.group.write_back) read(after);
                stream.synchronize();
            });
        RawCounters raw;
        for (std::size_t i = 0; i < values.size(); ++i) raw[group.group.metrics[i]] = values[i];
        return raw;
    }
    void allocate() {
        const auto bytes = static_cast<std::size_t>(ceil_div(buffer_l2s * l2_bytes, 256) * 256);
        before = DeviceBuffer(bytes);
        after = DeviceBuffer(bytes);
        sum = DeviceBuffer(256);
        for (const DeviceBuffer* buffer : {&before, &after, &sum})
            fill_bytes(buffer->address(), 0, buffer->bytes(), stream);
        stream.synchronize();
    }
};

namespace {

std::string chip_of(const Cupti& cupti, int device) {
    ROOFTILE_CUPTI_PARAMETERS(p, Device_GetChipName);
    p.deviceIndex = static_cast<std::size_t>(device);
    cupti.check("cuptiDeviceGetChipName", cupti.functions().cuptiDeviceGetChipName(&p));
    return p.pChipName ? p.pChipName : "";
}

std::string unsupported(const Cupti& cupti, int device) {
    ROOFTILE_CUPTI_PARAMETERS(p, Profiler_DeviceSupported);
    p.cuDevice = device;
    p.api = CUPTI_PROFILER_RANGE_PROFILING;
    cupti.check("cuptiProfilerDeviceSupported", cupti.functions().cuptiProfilerDeviceSupported(&p));
    return unsupported(p);
}

}  // namespace

CounterSession::CounterSession(std::unique_ptr<State> state) : state_(std::move(state)) {}
CounterSession::~CounterSession() = default;

std::unique_ptr<CounterSession> CounterSession::open(const MeasureKernels& kernels, int device,
                                                     std::string& why_not) {
    std::shared_ptr<const Cupti> cupti = Cupti::open(why_not);
    if (!cupti) return nullptr;
    auto state = std::make_unique<State>(kernels, cupti, Driver::instance().device(device).l2_bytes);
    if (const std::string reason = unsupported(*cupti, device); !reason.empty()) {
        why_not = "this GPU gives no hardware counters: " + reason;
        return nullptr;
    }
    state->chip = chip_of(*cupti, device);
    for (CounterGroup& group : counter_groups(state->chip)) {
        CounterSet set(cupti, state->chip, group.names);
        state->groups.push_back(
            std::make_unique<State::Group>(State::Group{std::move(group), std::move(set)}));
    }
    if (state->groups.empty()) {
        why_not = fmt::format("the counters of chip {} have no names here; those of {} do", state->chip,
                              fmt::join(chips, ", "));
        return nullptr;
    }
    state->allocate();
    // A refusal to count shows here, before anybody has waited for anything else.
    for (const auto& group : state->groups) {
        if (group->group.write_back) state->own = state->count(*group, [] {});
    }
    return std::unique_ptr<CounterSession>(new CounterSession(std::move(state)));
}

std::unique_ptr<CounterSession> CounterSession::open(const MeasureKernels& kernels, int device) {
    std::string why_not;
    auto session = open(kernels, device, why_not);
    if (!session)
        throw Error(ExitCode::counters_denied, why_not + "; everything but --counters works without them");
    return session;
}

CounterValues CounterSession::measure(const std::function<void(Stream stream, std::int64_t number)>& launch,
                                      std::int64_t launches) const {
    const State& s = *state_;
    const auto run = [&] {
        for (std::int64_t number = 0; number < launches; ++number) launch(s.stream, number);
    };
    run();  // what a first launch loads or sets up belongs to no count
    s.stream.synchronize();
    RawCounters raw;
    for (const auto& group : s.groups) {
        RawCounters counted = s.count(*group, run);
        if (group->group.write_back) counted = without(std::move(counted), s.own);
        raw.merge(counted);
    }
    CounterValues values = counter_values(raw, launches);
    values.chip = s.chip;
    values.passes = passes();
    return values;
}

std::vector<double> CounterSession::count(const std::vector<std::string>& names,
                                          const std::function<void(Stream stream, std::int64_t number)>& launch, std::int64_t launches,
                                          std::int64_t warm) const {
    const State& s = *state_;
    const CounterSet set(s.profiler.cupti, s.chip, names);
    const auto run = [&](std::int64_t count) {
        for (std::int64_t number = 0; number < count; ++number) launch(s.stream, number);
        s.stream.synchronize();
    };
    run(launches);  // what a first launch loads or sets up belongs to no count
    return set.count(
        current_context(),
        [&] {
            s.read(s.before);
            run(warm);
        },
        [&] { run(launches); });
}

const std::string& CounterSession::chip() const { return state_->chip; }

std::int64_t CounterSession::passes() const {
    std::size_t passes = 0;
    for (const auto& group : state_->groups) passes += group->set.passes();
    return static_cast<std::int64_t>(passes);
}

}  // namespace rooftile
