#include "rooftile/measure/cupti.hpp"

#include <dlfcn.h>

#include <type_traits>

#include <fmt/core.h>

#include "rooftile/runtime/library.hpp"

namespace rooftile {

namespace api = cupti;

namespace {

constexpr std::size_t most_passes = 64;  ///< more than any set takes: CUPTI then never says that it is done

/// A call's parameters: their size filled in, everything else zero, as CUPTI wants it.
template <class T>
T parameters() {
    T p{};
    p.size = api::struct_size<T>;
    return p;
}

bool load(const Library& library, api::Functions& f) {
    bool all = true;
    const auto take = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.symbol(name));
        all = all && function;
    };
    take(f.initialize, "cuptiProfilerInitialize");
    take(f.deinitialize, "cuptiProfilerDeInitialize");
    take(f.device_supported, "cuptiProfilerDeviceSupported");
    take(f.chip_name, "cuptiDeviceGetChipName");
    take(f.host_initialize, "cuptiProfilerHostInitialize");
    take(f.host_deinitialize, "cuptiProfilerHostDeinitialize");
    take(f.metric_properties, "cuptiProfilerHostGetMetricProperties");
    take(f.add_metrics, "cuptiProfilerHostConfigAddMetrics");
    take(f.config_image_size, "cuptiProfilerHostGetConfigImageSize");
    take(f.config_image, "cuptiProfilerHostGetConfigImage");
    take(f.passes, "cuptiProfilerHostGetNumOfPasses");
    take(f.evaluate, "cuptiProfilerHostEvaluateToGpuValues");
    take(f.enable, "cuptiRangeProfilerEnable");
    take(f.disable, "cuptiRangeProfilerDisable");
    take(f.counter_data_size, "cuptiRangeProfilerGetCounterDataSize");
    take(f.counter_data_initialize, "cuptiRangeProfilerCounterDataImageInitialize");
    take(f.set_config, "cuptiRangeProfilerSetConfig");
    take(f.start, "cuptiRangeProfilerStart");
    take(f.push_range, "cuptiRangeProfilerPushRange");
    take(f.pop_range, "cuptiRangeProfilerPopRange");
    take(f.stop, "cuptiRangeProfilerStop");
    take(f.decode, "cuptiRangeProfilerDecodeData");
    take(f.result_name, "cuptiGetResultString");
    return all;
}

/// CUPTI opens libnvperf_host.so by its bare name, which finds only what is already open or on the loader's
/// path: a wheel folder is neither.
void open_companions(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return;
    for (const char* name : {"libnvperf_host.so", "libnvperf_target.so"})
        dlopen((path.substr(0, slash + 1) + name).c_str(), RTLD_NOW | RTLD_LOCAL);
}

/// What to do where the counters exist but not for us; null for every other status of cupti_result.h.
const char* refusal_advice(int status) {
    switch (status) {
        case 35:  // INSUFFICIENT_PRIVILEGES
            return "ask the administrator to load the driver with NVreg_RestrictProfilingToAdminUsers=0, or "
                   "run "
                   "as root (in a container with CAP_SYS_ADMIN)";
        case 23:  // DISABLED
        case 39:  // MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
            return "another profiler or debugger holds this process; run it without one";
        case 26:  // HARDWARE_BUSY
            return "another process holds the counters; if it is DCGM, pause it with dcgmi profile --pause";
        case 33:  // VIRTUALIZED_DEVICE_NOT_SUPPORTED
        case 40:  // VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES
            return "the hypervisor gives this virtual GPU no counters";
        case 41:  // CONFIDENTIAL_COMPUTING_NOT_SUPPORTED
            return "there are none in confidential computing mode";
        case 42:  // CMP_DEVICE_NOT_SUPPORTED
        case 43:  // MIG_DEVICE_NOT_SUPPORTED
        case 44:  // SLI_DEVICE_NOT_SUPPORTED
        case 45:  // WSL_DEVICE_NOT_SUPPORTED
            return "this kind of device has none for us; take a whole GPU on Linux";
        default:
            return nullptr;
    }
}

/// The range profiler of one context. Whatever is open when it goes is closed, in reverse.
class Recording {
  public:
    Recording(const Cupti& cupti, void* context) : cupti_(cupti) {
        auto p = parameters<api::Enable>();
        p.context = context;
        check("cuptiRangeProfilerEnable", f().enable(&p));
        profiler_ = p.profiler;
    }
    ~Recording() {
        auto p = on();
        auto stopped = parameters<api::Stop>();
        stopped.profiler = profiler_;
        if (in_range_) f().pop_range(&p);
        if (started_) f().stop(&stopped);
        f().disable(&p);
    }
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

    /// Memory for the values of one range.
    std::vector<std::uint8_t> counter_data(std::vector<const char*> metrics) const {
        auto size = parameters<api::CounterDataSize>();
        size.profiler = profiler_;
        size.metrics = metrics.data();
        size.count = metrics.size();
        size.ranges = 1;
        size.tree_nodes = 1;
        check("cuptiRangeProfilerGetCounterDataSize", f().counter_data_size(&size));
        std::vector<std::uint8_t> data(size.bytes);
        auto p = parameters<api::CounterDataInitialize>();
        p.profiler = profiler_;
        p.bytes = data.size();
        p.data = data.data();
        check("cuptiRangeProfilerCounterDataImageInitialize", f().counter_data_initialize(&p));
        return data;
    }

    void configure(const std::vector<std::uint8_t>& config, std::vector<std::uint8_t>& data) const {
        auto p = parameters<api::SetConfig>();
        p.profiler = profiler_;
        p.config_bytes = config.size();
        p.config = config.data();
        p.data_bytes = data.size();
        p.data = data.data();
        p.range = api::user_range;
        p.replay = api::user_replay;
        p.ranges_per_pass = 1;
        p.nesting_levels = p.least_nesting_level = p.target_nesting_level = 1;
        check("cuptiRangeProfilerSetConfig", f().set_config(&p));
    }

    /// True where CUPTI has seen every pass.
    bool pass(const std::function<void()>& prepare, const std::function<void()>& work) {
        prepare();
        auto p = on();
        check("cuptiRangeProfilerStart", f().start(&p));
        started_ = true;
        auto push = parameters<api::PushRange>();
        push.profiler = profiler_;
        push.name = "rooftile";
        check("cuptiRangeProfilerPushRange", f().push_range(&push));
        in_range_ = true;
        work();
        in_range_ = false;
        p = on();
        check("cuptiRangeProfilerPopRange", f().pop_range(&p));
        started_ = false;
        auto stop = parameters<api::Stop>();
        stop.profiler = profiler_;
        check("cuptiRangeProfilerStop", f().stop(&stop));
        return stop.all_passes_submitted != 0;
    }

    void decode() const {
        auto p = parameters<api::Decode>();
        p.profiler = profiler_;
        check("cuptiRangeProfilerDecodeData", f().decode(&p));
        if (p.ranges_dropped > 0)
            throw Error(ExitCode::gpu_failed,
                        fmt::format("CUPTI dropped {} of 1 counted ranges", p.ranges_dropped));
    }

  private:
    const api::Functions& f() const { return cupti_.functions(); }
    void check(const char* call, int status) const { cupti_.check(call, status); }
    api::OnProfiler on() const {
        auto p = parameters<api::OnProfiler>();
        p.profiler = profiler_;
        return p;
    }

    const Cupti& cupti_;
    void* profiler_ = nullptr;
    bool started_ = false, in_range_ = false;
};

}  // namespace

std::shared_ptr<const Cupti> Cupti::open(std::string& missing) {
    const Library library = open_library(cupti_soname);
    if (!library) {
        missing = library.not_found();
        return nullptr;
    }
    open_companions(library.path);
    auto cupti = std::shared_ptr<Cupti>(new Cupti);
    if (!load(library, cupti->functions_)) {
        missing = fmt::format("{} lacks a function of CUDA 13", library.path);
        return nullptr;
    }
    return cupti;
}

Error Cupti::error_of(const char* call, int status) const {
    const char* name = nullptr;
    functions_.result_name(status, &name);
    if (!name) name = "a status without a name";
    if (const char* advice = refusal_advice(status)) {
        return Error(ExitCode::counters_denied,
                     fmt::format("hardware counters are not permitted here: {} says {} ({}); {}; everything "
                                 "but --counters works without them",
                                 call, name, status, advice));
    }
    return Error(ExitCode::gpu_failed, fmt::format("{} failed: {} ({})", call, name, status));
}

void Cupti::check(const char* call, int status) const {
    if (status != api::success) throw error_of(call, status);
}

CounterSet::CounterSet(std::shared_ptr<const Cupti> cupti, const std::string& chip,
                       std::vector<std::string> metrics)
    : cupti_(std::move(cupti)), metrics_(std::move(metrics)) {
    auto p = parameters<api::HostInitialize>();
    p.profiler = api::range_profiler;
    p.chip = chip.c_str();
    cupti_->check("cuptiProfilerHostInitialize", cupti_->functions().host_initialize(&p));
    host_ = std::shared_ptr<void>(p.host, [cupti = cupti_](void* host) {
        auto gone = parameters<api::HostDeinitialize>();
        gone.host = host;
        cupti->functions().host_deinitialize(&gone);
    });
    configure();
}

std::vector<const char*> CounterSet::names() const {
    std::vector<const char*> names;
    for (const std::string& metric : metrics_) names.push_back(metric.c_str());
    return names;
}

void CounterSet::configure() {
    const api::Functions& f = cupti_->functions();
    // A name that the chip lacks would only make AddMetrics say "invalid parameter".
    for (const std::string& metric : metrics_) {
        auto p = parameters<api::MetricProperties>();
        p.host = host_.get();
        p.metric = metric.c_str();
        if (f.metric_properties(&p) != api::success)
            throw Error(ExitCode::internal, fmt::format("this GPU has no metric {}", metric));
    }
    auto add = parameters<api::AddMetrics>();
    std::vector<const char*> metrics = names();
    add.host = host_.get();
    add.metrics = metrics.data();
    add.count = metrics.size();
    cupti_->check("cuptiProfilerHostConfigAddMetrics", f.add_metrics(&add));
    auto size = parameters<api::ConfigImageSize>();
    size.host = host_.get();
    cupti_->check("cuptiProfilerHostGetConfigImageSize", f.config_image_size(&size));
    config_.resize(size.bytes);
    auto image = parameters<api::ConfigImage>();
    image.host = host_.get();
    image.bytes = config_.size();
    image.image = config_.data();
    cupti_->check("cuptiProfilerHostGetConfigImage", f.config_image(&image));
    auto passes = parameters<api::Passes>();
    passes.bytes = config_.size();
    passes.image = config_.data();
    cupti_->check("cuptiProfilerHostGetNumOfPasses", f.passes(&passes));
    passes_ = passes.passes;
}

std::vector<double> CounterSet::count(void* context, const std::function<void()>& prepare,
                                      const std::function<void()>& work) const {
    std::vector<std::uint8_t> data;  // outlives `recording`: where work fails, CUPTI closes its pass with it
    Recording recording(*cupti_, context);
    data = recording.counter_data(names());
    recording.configure(config_, data);
    for (std::size_t pass = 1; !recording.pass(prepare, work); ++pass) {
        if (pass == most_passes)
            throw Error(ExitCode::gpu_failed,
                        fmt::format("CUPTI wants more than {} passes for {} metrics that take {}",
                                    most_passes, metrics_.size(), passes_));
    }
    recording.decode();
    return evaluate(data);
}

std::vector<double> CounterSet::evaluate(const std::vector<std::uint8_t>& data) const {
    std::vector<const char*> metrics = names();
    std::vector<double> values(metrics.size());
    auto p = parameters<api::Evaluate>();
    p.host = host_.get();
    p.data = data.data();
    p.data_bytes = data.size();
    p.metrics = metrics.data();
    p.count = metrics.size();
    p.values = values.data();
    cupti_->check("cuptiProfilerHostEvaluateToGpuValues", cupti_->functions().evaluate(&p));
    return values;
}

}  // namespace rooftile
