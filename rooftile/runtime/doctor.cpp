#include "rooftile/runtime/doctor.hpp"

#include "rooftile/core/operation.hpp"

#include <unistd.h>

#include <fstream>
#include <functional>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "rooftile/runtime/cache.hpp"
#include "rooftile/runtime/disassemble.hpp"
#include "rooftile/runtime/driver.hpp"
#include "rooftile/runtime/library.hpp"
#include "rooftile/runtime/trusted_file.hpp"
#include "rooftile/machine/live.hpp"

namespace rooftile {
namespace {

using Status = Finding::Status;
constexpr std::string_view runnable_arch = "sm_90";

bool has_gpu() { return Driver::status().kind == DriverStatus::Kind::usable; }

Finding driver() {
    const DriverStatus& status = Driver::status();
    if (has_gpu()) return {Status::ok, "driver", status.message, ""};
    // Without a GPU everything but running kernels works.
    return {Status::warn, "driver", status.message, "planning and building need no GPU; measuring does"};
}

Finding device(int ordinal) {
    std::string what = fmt::format("GPU {}", ordinal);
    try {
        LiveMachine live = live_machine(ordinal);
        const DeviceInfo& info = live.device;
        std::string detail =
            fmt::format("{}, {}, {} SMs, {:.1f} GiB, {}", info.name, info.arch(), info.sm_count,
                        double(info.memory_bytes) / (1 << 30),
                        live.known ? "machine file " + live.machine.id : std::string("no machine file"));
        if (info.arch() != runnable_arch)
            return {Status::warn, what, detail,
                    fmt::format("kernels are built for {} so far; plans can be made for this GPU",
                                runnable_arch)};
        if (!live.known) return {Status::warn, what, detail, "run `rooftile machine probe`"};
        return {Status::ok, what, detail, ""};
    } catch (const std::exception& error) { return {Status::fail, what, error.what(), "check nvidia-smi"}; }
}

Finding compiler() {
    try {
        const NvrtcInfo& info = nvrtc();
        return {Status::ok, "NVRTC", fmt::format("{}, {}", info.version, info.path), ""};
    } catch (const Error& error) {
        return {Status::fail, "NVRTC", error.what(), "run make, which fetches it, or pip install nvidia-cuda-nvrtc beside the Python package, or set ROOFTILE_CUDA_PATH"};
    }
}

Finding library(std::string_view what, std::string_view soname, std::string_view use) {
    Library found = open_library(soname);
    if (found) return {Status::ok, std::string(what), found.path, ""};
    return {Status::warn, std::string(what),
            fmt::format("{} was not found (tried {})", soname, fmt::join(found.tried, ", ")),
            std::string(use)};
}

Finding disassembler() {
    if (auto program = find_disassembler()) return {Status::ok, "disassembler", *program, ""};
    return {Status::warn, "disassembler", "neither nvdisasm nor cuobjdump was found",
            "only `build --sass` needs it: install a CUDA toolkit, or put nvdisasm on PATH"};
}

Finding host_compiler() {
    if (auto program = find_host_compiler()) return {Status::ok, "g++", *program, ""};
    return {Status::warn, "g++", "not found", "only `step` needs it: install g++, or name one by CXX"};
}

Finding cache() {
    try {
        CacheSettings settings = cache_settings();
        if (settings.mode == CacheMode::off)
            return {settings.note.empty() ? Status::ok : Status::warn, "kernel cache",
                    settings.note.empty() ? "off, as ROOFTILE_CACHE says" : "off: " + settings.note,
                    settings.note.empty()
                        ? ""
                        : "set ROOFTILE_CACHE_DIR; without a cache each run compiles again"};
        const bool writes = settings.mode == CacheMode::read_write;
        std::string obstacle = KernelCache(settings).obstacle(writes);
        if (obstacle.empty() || obstacle == no_entry)
            return {Status::ok, "kernel cache", settings.folder + (writes ? "" : ", read only"), ""};
        return {Status::warn, "kernel cache", obstacle,
                "set ROOFTILE_CACHE_DIR; without a cache each run compiles again"};
    } catch (const Error& error) {
        return {Status::fail, "kernel cache", error.what(), "unset ROOFTILE_CACHE"};
    }
}

Finding counters() {
    constexpr const char* file = "/proc/driver/nvidia/params";
    constexpr std::string_view key = "RmProfilingAdminOnly:";
    std::ifstream params(file);
    for (std::string line; std::getline(params, line);) {
        std::size_t at = line.find(key);
        if (at == line.npos) continue;
        const bool admin_only = line.find('1', at + key.size()) != line.npos;
        if (!admin_only) return {Status::ok, "hardware counters", "permitted to every user", ""};
        if (geteuid() == 0)
            return {Status::ok, "hardware counters", "permitted to administrators, and this is one", ""};
        return {Status::warn, "hardware counters", "permitted to administrators only",
                "load the driver with NVreg_RestrictProfilingToAdminUsers=0, or run as root; only --counters "
                "needs it"};
    }
    return {Status::warn, "hardware counters", fmt::format("{} does not say who may read them", file),
            "only --counters needs them"};
}

}  // namespace

std::string_view name_of(Status status) {
    switch (status) {
        case Status::ok:
            return "OK";
        case Status::warn:
            return "WARN";
        case Status::fail:
            return "FAIL";
    }
    return "";
}

std::vector<Finding> diagnose() {
    std::vector<std::function<Finding()>> checks = {driver};
    for (int i = 0; has_gpu() && i < Driver::status().devices; ++i)
        checks.push_back([i] { return device(i); });
    checks.push_back(compiler);
    for (const Operation* operation : operations())
        if (const BaselineLibrary* needed = operation->baseline_library())
            checks.push_back([needed] { return library(needed->name, needed->soname, needed->fix); });
    checks.push_back([] { return library("CUPTI", cupti_soname, "only --counters needs it"); });
    checks.push_back(
        [] { return library("NVML", nvml_soname, "part of the driver; clocks and power need it"); });
    checks.push_back(disassembler);
    checks.push_back(host_compiler);
    checks.push_back(cache);
    if (has_gpu()) checks.push_back(counters);

    std::vector<Finding> findings;
    for (const auto& check : checks) {
        try {
            findings.push_back(check());
        } catch (const std::exception& error) {
            findings.push_back({Status::fail, "check", error.what(), ""});
        }
    }
    return findings;
}

bool gpu_usable() {
    if (!has_gpu()) return false;
    try {
        for (int i = 0; i < Driver::status().devices; ++i)
            if (Driver::instance().device(i).arch() == runnable_arch) return true;
    } catch (const Error&) {}
    return false;
}

}  // namespace rooftile
