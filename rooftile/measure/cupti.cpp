#include "rooftile/measure/cupti.hpp"

#include <dlfcn.h>

#include <fmt/core.h>

#include "rooftile/measure/cupti_table.hpp"
#include "rooftile/runtime/library.hpp"

namespace rooftile {

namespace {

constexpr std::size_t max_passes = 64;  ///< more than any set takes: CUPTI then never says that it is done

/// False where the library lacks a function.
bool look_up(const Library& library, CuptiTable& table) {
#define ROOFTILE_LOOK_UP(function)                                                      \
    table.function = reinterpret_cast<decltype(&::function)>(library.symbol(#function)); \
    if (!table.function) return false;
    ROOFTILE_CUPTI_FUNCTIONS(ROOFTILE_LOOK_UP)
#undef ROOFTILE_LOOK_UP
    return true;
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
        case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
            return "ask the administrator to load the driver with NVreg_RestrictProfilingToAdminUsers=0, or run "
                   "as root (in a container with CAP_SYS_ADMIN)";
        case CUPTI_ERROR_DISABLED:
        case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
            return "another profiler or debugger holds this process; run it without one";
        case CUPTI_ERROR_HARDWARE_BUSY:
            return "another process holds the counters; if it is DCGM, pause it with dcgmi profile --pause";
        case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
        case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
            return "the hypervisor gives this virtual GPU no counters";
        case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
            return "there are none in confidential computing mode";
        case CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED:
        case CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED:
        case CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED:
        case CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED:
            return "this kind of device has none for us; take a whole GPU on Linux";
        default:
            return nullptr;
    }
}

/// The range profiler of one context. Whatever is open when it goes is closed, in reverse.
class Recording {
  public:
    Recording(const Cupti& cupti, void* context) : cupti_(cupti) {
        ROOFTILE_CUPTI_PARAMETERS(p, RangeProfiler_Enable);
        p.ctx = static_cast<CUcontext>(context);
        check("cuptiRangeProfilerEnable", f().cuptiRangeProfilerEnable(&p));
        profiler_ = p.pRangeProfilerObject;
    }
    ~Recording() {
        if (in_range_) pop_range();
        if (started_) {
            bool all_passes;
            stop(all_passes);
        }
        ROOFTILE_CUPTI_PARAMETERS(p, RangeProfiler_Disable);
        p.pRangeProfilerObject = profiler_;
        f().cuptiRangeProfilerDisable(&p);
    }
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

    /// Memory for the values of one range.
    std::vector<std::uint8_t> counter_data(std::vector<const char*> metrics) const {
        ROOFTILE_CUPTI_PARAMETERS(size, RangeProfiler_GetCounterDataSize);
        size.pRangeProfilerObject = profiler_;
        size.pMetricNames = metrics.data();
        size.numMetrics = metrics.size();
        size.maxNumOfRanges = 1;
        size.maxNumRangeTreeNodes = 1;
        check("cuptiRangeProfilerGetCounterDataSize", f().cuptiRangeProfilerGetCounterDataSize(&size));
        std::vector<std::uint8_t> data(size.counterDataSize);
        ROOFTILE_CUPTI_PARAMETERS(p, RangeProfiler_CounterDataImage_Initialize);
        p.pRangeProfilerObject = profiler_;
        p.counterDataSize = data.size();
        p.pCounterData = data.data();
        check("cuptiRangeProfilerCounterDataImageInitialize", f().cuptiRangeProfilerCounterDataImageInitialize(&p));
        return data;
    }

    void configure(const std::vector<std::uint8_t>& config, std::vector<std::uint8_t>& data) const {
        ROOFTILE_CUPTI_PARAMETERS(p, RangeProfiler_SetConfig);
        p.pRangeProfilerObject = profiler_;
        p.configSize = config.size();
        p.pConfig = config.data();
        p.counterDataImageSize = data.size();
        p.pCounterDataImage = data.data();
        p.range = CUPTI_UserRange;
        p.replayMode = CUPTI_UserReplay;
        p.maxRangesPerPass = 1;
        p.numNestingLevels = p.minNestingLevel = p.targetNestingLevel = 1;
        check("cuptiRangeProfilerSetConfig", f().cuptiRangeProfilerSetConfig(&p));
    }

    /// True where CUPTI has seen every pass.
    bool pass(const std::function<void()>& prepare, const std::function<void()>& work) {
        prepare();
        ROOFTILE_CUPTI_PARAMETERS(p, RangeProfiler_Start);
        p.pRangeProfilerObject = profiler_;
        check("cuptiRangeProfilerStart", f().cuptiRangeProfilerStart(&p));
        started_ = true;
        ROOFTILE_CUPTI_PARAMETERS(push, RangeProfiler_PushRange);
        push.pRangeProfilerObject = profiler_;
        push.pRangeName = "rooftile";
        check("cuptiRangeProfilerPushRange", f().cuptiRangeProfilerPushRange(&push));
        in_range_ = true;
        work();
        in_range_ = false;
        check("cuptiRangeProfilerPopRange", pop_range());
        started_ = false;
        bool all_passes = false;
        check("cuptiRangeProfilerStop", stop(all_passes));
        return all_passes;
    }

    void decode() const {
        ROOFTILE_CUPTI_PARAMETERS(p, RangeProfiler_DecodeData);
        p.pRangeProfilerObject = profiler_;
        check("cuptiRangeProfilerDecodeData", f().cuptiRangeProfilerDecodeData(&p));
        if (p.numOfRangeDropped > 0)
            throw Error(ExitCode::gpu_failed,
                        fmt::format("CUPTI dropped {} of 1 counted ranges", p.numOfRangeDropped));
    }

  private:
    const CuptiTable& f() const { return cupti_.functions(); }
    void check(const char* call, int status) const { cupti_.check(call, status); }
    int pop_range() const {
        ROOFTILE_CUPTI_PARAMETERS(p, RangeProfiler_PopRange);
        p.pRangeProfilerObject = profiler_;
        return f().cuptiRangeProfilerPopRange(&p);
    }
    int stop(bool& all_passes) const {
        ROOFTILE_CUPTI_PARAMETERS(p, RangeProfiler_Stop);
        p.pRangeProfilerObject = profiler_;
        const int status = f().cuptiRangeProfilerStop(&p);
        all_passes = p.isAllPassSubmitted != 0;
        return status;
    }

    const Cupti& cupti_;
    CUpti_RangeProfiler_Object* profiler_ = nullptr;
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
    cupti->functions_ = std::make_shared<CuptiTable>();
    if (!look_up(library, *cupti->functions_)) {
        missing = fmt::format("{} lacks a function of CUDA 13", library.path);
        return nullptr;
    }
    return cupti;
}

Error Cupti::error_of(const char* call, int status) const {
    const char* name = nullptr;
    functions_->cuptiGetResultString(CUptiResult(status), &name);
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
    if (status != CUPTI_SUCCESS) throw error_of(call, status);
}

CounterSet::CounterSet(std::shared_ptr<const Cupti> cupti, const std::string& chip,
                       std::vector<std::string> metrics)
    : cupti_(std::move(cupti)), metrics_(std::move(metrics)) {
    ROOFTILE_CUPTI_PARAMETERS(p, Profiler_Host_Initialize);
    p.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    p.pChipName = chip.c_str();
    cupti_->check("cuptiProfilerHostInitialize", cupti_->functions().cuptiProfilerHostInitialize(&p));
    host_ = std::shared_ptr<void>(p.pHostObject, [cupti = cupti_](void* host) {
        ROOFTILE_CUPTI_PARAMETERS(gone, Profiler_Host_Deinitialize);
        gone.pHostObject = static_cast<CUpti_Profiler_Host_Object*>(host);
        cupti->functions().cuptiProfilerHostDeinitialize(&gone);
    });
    configure();
}

std::vector<const char*> CounterSet::names() const {
    std::vector<const char*> names;
    for (const std::string& metric : metrics_) names.push_back(metric.c_str());
    return names;
}

void CounterSet::configure() {
    const CuptiTable& f = cupti_->functions();
    auto* const host_object = static_cast<CUpti_Profiler_Host_Object*>(host_.get());
    // A name that the chip lacks would only make AddMetrics say "invalid parameter".
    for (const std::string& metric : metrics_) {
        ROOFTILE_CUPTI_PARAMETERS(p, Profiler_Host_GetMetricProperties);
        p.pHostObject = host_object;
        p.pMetricName = metric.c_str();
        if (f.cuptiProfilerHostGetMetricProperties(&p) != CUPTI_SUCCESS)
            throw Error(ExitCode::internal, fmt::format("this GPU has no metric {}", metric));
    }
    ROOFTILE_CUPTI_PARAMETERS(add, Profiler_Host_ConfigAddMetrics);
    std::vector<const char*> metrics = names();
    add.pHostObject = host_object;
    add.ppMetricNames = metrics.data();
    add.numMetrics = metrics.size();
    cupti_->check("cuptiProfilerHostConfigAddMetrics", f.cuptiProfilerHostConfigAddMetrics(&add));
    ROOFTILE_CUPTI_PARAMETERS(size, Profiler_Host_GetConfigImageSize);
    size.pHostObject = host_object;
    cupti_->check("cuptiProfilerHostGetConfigImageSize", f.cuptiProfilerHostGetConfigImageSize(&size));
    config_.resize(size.configImageSize);
    ROOFTILE_CUPTI_PARAMETERS(image, Profiler_Host_GetConfigImage);
    image.pHostObject = host_object;
    image.configImageSize = config_.size();
    image.pConfigImage = config_.data();
    cupti_->check("cuptiProfilerHostGetConfigImage", f.cuptiProfilerHostGetConfigImage(&image));
    ROOFTILE_CUPTI_PARAMETERS(passes, Profiler_Host_GetNumOfPasses);
    passes.configImageSize = config_.size();
    passes.pConfigImage = config_.data();
    cupti_->check("cuptiProfilerHostGetNumOfPasses", f.cuptiProfilerHostGetNumOfPasses(&passes));
    passes_ = passes.numOfPasses;
}

std::vector<double> CounterSet::count(void* context, const std::function<void()>& prepare,
                                      const std::function<void()>& work) const {
    std::vector<std::uint8_t> data;  // outlives `recording`: where work fails, CUPTI closes its pass with it
    Recording recording(*cupti_, context);
    data = recording.counter_data(names());
    recording.configure(config_, data);
    for (std::size_t pass = 1; !recording.pass(prepare, work); ++pass) {
        if (pass == max_passes)
            throw Error(ExitCode::gpu_failed,
                        fmt::format("CUPTI wants more than {} passes for {} metrics that take {}", max_passes,
                                    metrics_.size(), passes_));
    }
    recording.decode();
    return evaluate(data);
}

std::vector<double> CounterSet::evaluate(const std::vector<std::uint8_t>& data) const {
    std::vector<const char*> metrics = names();
    std::vector<double> values(metrics.size());
    ROOFTILE_CUPTI_PARAMETERS(p, Profiler_Host_EvaluateToGpuValues);
    p.pHostObject = static_cast<CUpti_Profiler_Host_Object*>(host_.get());
    p.pCounterDataImage = data.data();
    p.counterDataImageSize = data.size();
    p.ppMetricNames = metrics.data();
    p.numMetrics = metrics.size();
    p.pMetricValues = values.data();
    cupti_->check("cuptiProfilerHostEvaluateToGpuValues", cupti_->functions().cuptiProfilerHostEvaluateToGpuValues(&p));
    return values;
}

}  // namespace rooftile
