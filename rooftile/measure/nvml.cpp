#include "rooftile/measure/nvml.hpp"

#include <algorithm>

#include "rooftile/runtime/library.hpp"

namespace rooftile {

// Declared here, since the toolkit does not ship nvml.h everywhere: every function returns nvmlReturn_t, an
// int that is 0 for success; nvmlDevice_t is a pointer. NVML API reference, "Device Queries".
struct Nvml::Functions {
    int (*initialise)() = nullptr;
    int (*by_pci_bus_id)(const char*, void**) = nullptr;
    int (*clock)(void*, int, unsigned*) = nullptr;        // MHz
    int (*power)(void*, unsigned*) = nullptr;             // mW
    int (*temperature)(void*, int, unsigned*) = nullptr;  // degrees Celsius
    int (*reasons)(void*, unsigned long long*) = nullptr;
    int (*power_limit)(void*, unsigned*) = nullptr;       // mW
    int (*energy)(void*, unsigned long long*) = nullptr;  // mJ
    int (*driver_version)(char*, unsigned) = nullptr;
};

namespace {

constexpr int clock_sm = 1;         // NVML_CLOCK_SM
constexpr int temperature_gpu = 0;  // NVML_TEMPERATURE_GPU

template <class F>
bool load(const Library& library, const char* name, F& function) {
    function = reinterpret_cast<F>(library.symbol(name));
    return function != nullptr;
}

/// NVML stays open until the process ends: opening it again costs some 10 ms.
std::shared_ptr<const Nvml::Functions> nvml_functions() {
    static const std::shared_ptr<const Nvml::Functions> functions = [] {
        auto f = std::make_shared<Nvml::Functions>();
        const Library library = open_library(nvml_soname);
        if (!library || !load(library, "nvmlInit_v2", f->initialise)
            || !load(library, "nvmlDeviceGetHandleByPciBusId_v2", f->by_pci_bus_id) || f->initialise() != 0) {
            return std::shared_ptr<const Nvml::Functions>();
        }
        load(library, "nvmlDeviceGetClockInfo", f->clock);
        load(library, "nvmlDeviceGetPowerUsage", f->power);
        load(library, "nvmlDeviceGetTemperature", f->temperature);
        // Renamed in driver 535; the old name answers alike.
        if (!load(library, "nvmlDeviceGetCurrentClocksEventReasons", f->reasons)) {
            load(library, "nvmlDeviceGetCurrentClocksThrottleReasons", f->reasons);
        }
        load(library, "nvmlDeviceGetEnforcedPowerLimit", f->power_limit);
        load(library, "nvmlDeviceGetTotalEnergyConsumption", f->energy);
        load(library, "nvmlSystemGetDriverVersion", f->driver_version);
        return std::shared_ptr<const Nvml::Functions>(std::move(f));
    }();
    return functions;
}

}  // namespace

std::shared_ptr<const Nvml> Nvml::open(std::string_view pci_bus_id) {
    auto functions = nvml_functions();
    void* device = nullptr;
    if (!functions || functions->by_pci_bus_id(std::string(pci_bus_id).c_str(), &device) != 0) return nullptr;
    auto nvml = std::shared_ptr<Nvml>(new Nvml);
    nvml->functions_ = std::move(functions);
    nvml->device_ = device;
    return nvml;
}

GpuState Nvml::state() const {
    GpuState state;
    unsigned value = 0;
    unsigned long long bits = 0;
    const Functions& f = *functions_;
    if (f.clock && f.clock(device_, clock_sm, &value) == 0) state.sm_clock_mhz = value;
    if (f.power && f.power(device_, &value) == 0) state.power_w = value / 1000.0;
    if (f.temperature && f.temperature(device_, temperature_gpu, &value) == 0) state.temperature_c = value;
    if (f.reasons && f.reasons(device_, &bits) == 0) state.clock_reasons = bits;
    return state;
}

std::optional<double> Nvml::power_limit_w() const {
    unsigned value = 0;
    if (!functions_->power_limit || functions_->power_limit(device_, &value) != 0) return std::nullopt;
    return value / 1000.0;
}

std::optional<double> Nvml::energy_j() const {
    unsigned long long value = 0;
    if (!functions_->energy || functions_->energy(device_, &value) != 0) return std::nullopt;
    return static_cast<double>(value) / 1000.0;
}

std::string Nvml::driver_version() const {
    char text[96] = {};  // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE is 80
    if (!functions_->driver_version || functions_->driver_version(text, sizeof text) != 0) return {};
    return text;
}

std::string clock_reason_words(unsigned long long reasons) {
    struct Word {
        unsigned long long bit;
        const char* text;
    };
    // nvmlClocksEventReason*, without idle (1) and the clocks that a user chose (2, 16, 256).
    static constexpr Word words[] = {{0x4, "power cap"},
                                     {0x8, "hardware slowdown"},
                                     {0x20, "thermal"},
                                     {0x40, "hardware thermal slowdown"},
                                     {0x80, "hardware power brake"}};
    std::string text;
    for (const Word& word : words) {
        if (!(reasons & word.bit)) continue;
        if (!text.empty()) text += ", ";
        text += word.text;
    }
    return text;
}

GpuSampler::GpuSampler(std::shared_ptr<const Nvml> gpu, std::chrono::milliseconds period)
    : gpu_(std::move(gpu)) {
    if (gpu_) thread_ = std::thread([this, period] { run(period); });
}

GpuSampler::~GpuSampler() { stop(); }

void GpuSampler::run(std::chrono::milliseconds period) {
    auto next = std::chrono::steady_clock::now();
    while (!stopping_.load(std::memory_order_relaxed)) {
        const int before = slot_.load(std::memory_order_relaxed);
        const GpuState state = before >= 0 ? gpu_->state() : GpuState{};
        // A sample that began under one slot and ended under another belongs to neither.
        if (before >= 0 && before == slot_.load(std::memory_order_relaxed))
            samples_.emplace_back(before, state);
        next = std::max(next + period, std::chrono::steady_clock::now());
        std::this_thread::sleep_until(next);
    }
}

std::vector<GpuStateMeans> GpuSampler::stop() {
    stopping_.store(true, std::memory_order_relaxed);
    if (thread_.joinable()) thread_.join();
    return means_by_slot(samples_);
}

namespace {

/// Adds to a mean of `count` earlier values.
void add(std::optional<double>& mean, const std::optional<double>& value, int& count) {
    if (!value) return;
    mean = (mean.value_or(0) * count + *value) / (count + 1);
    ++count;
}

}  // namespace

std::vector<GpuStateMeans> means_by_slot(const std::vector<std::pair<int, GpuState>>& samples) {
    struct Counts {
        int clock = 0, power = 0, temperature = 0;
    };
    std::vector<GpuStateMeans> means;
    std::vector<Counts> counts;
    for (const auto& [slot, state] : samples) {
        const auto index = static_cast<std::size_t>(slot);
        if (index >= means.size()) means.resize(index + 1), counts.resize(index + 1);
        add(means[index].sm_clock_mhz, state.sm_clock_mhz, counts[index].clock);
        add(means[index].power_w, state.power_w, counts[index].power);
        add(means[index].temperature_c, state.temperature_c, counts[index].temperature);
        means[index].clock_reasons |= state.clock_reasons.value_or(0);
        ++means[index].samples;
    }
    return means;
}

}  // namespace rooftile
