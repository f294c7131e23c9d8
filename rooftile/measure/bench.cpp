#include "rooftile/measure/bench.hpp"

namespace rooftile {
namespace {

using Clock_ = std::chrono::steady_clock;

/// Left idle for longer than this, clock and temperature are no longer those of the load.
constexpr std::chrono::milliseconds idle_limit(500);

}  // namespace

double seconds_since(Clock_::time_point start) {
    return std::chrono::duration<double>(Clock_::now() - start).count();
}

Bench::Bench(const MeasureOptions& options, const std::vector<CachedCompile>& own)
    : options_(options), device_(Driver::instance().device(options.device)), kernels_(own) {}

std::shared_ptr<const Nvml> Bench::gpu() {
    if (!gpu_) gpu_ = Nvml::open(device_.pci_bus_id);
    return gpu_;
}

RunningGpu Bench::running() {
    RunningGpu r;
    r.gpu = device_.name;
    if (gpu()) r.driver = gpu()->driver_version();
    if (r.driver.empty()) r.driver = std::to_string(Driver::instance().version());
    r.nvrtc = nvrtc().version;
    return r;
}

const CublasLt* Bench::rival(const GemmProblem& problem, std::string& missing) {
    missing.clear();
    if (auto next = CublasLt::open(problem, missing, rival_.get())) {
        rival_ = std::move(next);
        return rival_.get();
    }
    return nullptr;
}

void Bench::busy_from_now() {
    if (Clock_::now() - busy_until_ > idle_limit) loaded_ = false;
}

double Bench::load_seconds() {
    busy_from_now();
    const double seconds = loaded_ ? options_.reload_seconds : options_.timing.load_seconds;
    loaded_ = true;
    return seconds;
}

}  // namespace rooftile
