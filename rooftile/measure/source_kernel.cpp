#include "rooftile/measure/source_kernel.hpp"

#include <fmt/core.h>

#include <chrono>
#include <filesystem>
#include <mutex>
#include <thread>

#include "rooftile/core/operation.hpp"
#include "rooftile/elapsed.hpp"
#include "rooftile/error.hpp"
#include "rooftile/measure/device_text.hpp"
#include "rooftile/report/code_accesses.hpp"
#include "rooftile/runtime/driver_table.hpp"
#include "rooftile/runtime/in_contexts.hpp"
#include "rooftile/runtime/library.hpp"

namespace rooftile {
namespace {

namespace fs = std::filesystem;

unsigned threads_of(const Launch& launch) { return launch.block_x * launch.block_y * launch.block_z; }

/// Where cuda_bf16.h and its like lie: beside the compiler's library, or below a toolkit that is named. NVRTC has none of them.
std::vector<std::string> cuda_include_folders() {
    std::vector<std::string> folders;
    std::vector<std::string> roots = library_folders();
    roots.insert(roots.begin(), fs::path(nvrtc().path).parent_path().string());
    for (const std::string& root : roots)
        for (const char* below :
             {"../include", "../../../include", "nvidia/cu13/include", "../../cuda_runtime/include"}) {
            std::error_code ignored;
            const fs::path folder = fs::weakly_canonical(fs::path(root) / below, ignored);
            if (ignored || !fs::exists(folder / "cuda_bf16.h", ignored)) continue;
            folders.push_back(folder.string());
            if (fs::is_directory(folder / "cccl", ignored)) folders.push_back((folder / "cccl").string());
            return folders;
        }
    return folders;
}

/// What a file may include from memory: our kernels' headers, and stand-ins of the host's.
std::span<const EmbeddedFile> headers_of_files() {
    static const std::vector<EmbeddedFile> all = [] {
        std::vector<EmbeddedFile> out(embedded_kernels().begin(), embedded_kernels().end());
        out.insert(out.end(), host_headers().begin(), host_headers().end());
        return out;
    }();
    return all;
}

/// Throws where what is given is not what the kernel declares: it would read what lies behind.
void check_parameters(const SourceRequest& request, const std::vector<int>& declared) {
    std::vector<int> given;
    std::string names;
    for (const SourceParameter& p : request.parameters) {
        given.push_back(p.bytes);
        names += (names.empty() ? "" : ", ") + p.name;
    }
    if (given == declared) return;
    throw RequestError(fmt::format(
        "{} has {} parameters ({}); given are {} ({}: {}): --tensor and --arg name them in their order",
        request.entry, declared.size(), parameters_text(declared), given.size(), names, parameters_text(given)));
}

/// The user's code in each context it was launched in.
class SourceRunnable final : public Runnable {
  public:
    SourceRunnable(SourceRequest request, std::string_view arch, Source source, Compiled compiled)
        : request_(std::move(request)), arch_(arch), source_(std::move(source)), compiled_(std::move(compiled)) {}

    KernelCode code() const override {
        KernelCode code;
        code.name = request_.entry;
        code.lowered_name = compiled_.lowered_names.front();
        code.arch = source_.arch;
        code.source = request_.text;
        code.cubin = compiled_.cubin;
        code.entry = compiled_.entries.front();
        code.compile_seconds = compiled_.seconds;
        return code;
    }
    std::string ptx() const override { return compile_to_ptx(source_); }
    std::size_t workspace_bytes() const override { return 0; }
    std::int64_t shared_bytes() const override {
        return compiled_.entries.front().static_shared_bytes + std::int64_t(request_.launch.shared_bytes);
    }
    void load() const override { function(); }

    void launch(Stream stream, std::span<void* const> tensors, void*) const override {
        const Function& kernel = function();
        std::vector<std::uint64_t> words;
        std::vector<void*> arguments;
        words.reserve(request_.parameters.size());  // they stay where they are
        for (const SourceParameter& p : request_.parameters) {
            words.push_back(p.tensor < 0 ? p.bits
                                         : reinterpret_cast<std::uint64_t>(tensors[std::size_t(p.tensor)]));
            arguments.push_back(&words.back());
        }
        Launch launch = request_.launch;
        launch.stream = stream;
        if (!is_waited_for(stream)) return launch_raw(kernel, launch, arguments.data());
        synchronize(stream);  // what stood before it is not its fault, and not in its time
        launch.caller_waits = true;
        launch_raw(kernel, launch, arguments.data());
        wait_for(stream);
    }

  private:
    /// The first launches, which verify it, are; those that are recorded cannot be, and later ones would be slowed.
    bool is_waited_for(Stream stream) const {
        constexpr int first_launches = 4;
        CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
        check(driver_table().cuStreamIsCapturing(stream, &capture), "cuStreamIsCapturing");
        if (capture != CU_STREAM_CAPTURE_STATUS_NONE) return false;
        const std::lock_guard lock(mutex_);
        return launches_++ < first_launches || request_.debug;
    }

    /// A kernel that never ends ends with its process alone: whoever waits for it waits for good, the driver's clean-up included.
    void wait_for(Stream stream) const {
        const Event done(false);
        const auto start = std::chrono::steady_clock::now();
        try {
            done.record(stream);
            while (!done.finished()) {
                if (request_.on_timeout && seconds_since(start) > request_.timeout_seconds)
                    request_.on_timeout(
                        fmt::format("{} ({}) did not end within {} s: an endless loop, or a wait that "
                                    "nothing ends; --timeout S allows more",
                                    request_.entry, launch_text(request_.launch), request_.timeout_seconds));
                std::this_thread::sleep_for(std::chrono::microseconds(50));
            }
        } catch (const Error& error) {
            throw Error(ExitCode::gpu_failed,
                        fmt::format("{} ({}) failed on the GPU: it reads or writes where no memory is, or "
                                    "breaks a rule of an "
                                    "instruction; compute-sanitizer finds the line ({})",
                                    request_.entry, launch_text(request_.launch), error.what()));
        }
    }

    const Function& function() const {
        return contexts_.here(compiled_, arch_, [&](Function made, int device) {
            const EntryInfo& entry = compiled_.entries.front();
            const DeviceInfo info = Driver::instance().device(device);
            check_fits(request_.entry, request_.launch, entry, made.attributes().max_threads, info);
            check_clusters(made, request_.launch, entry, info);
            constexpr unsigned always_allowed = 48 << 10;
            if (request_.launch.shared_bytes > always_allowed) made.allow_shared(int(request_.launch.shared_bytes));
            return made;
        });
    }

    SourceRequest request_;
    std::string arch_;  ///< "sm_90"
    Source source_;
    Compiled compiled_;
    mutable std::mutex mutex_;
    mutable int launches_ = 0;
    InContexts<Function> contexts_;
};

}  // namespace

Source source_of(const SourceRequest& request, std::string_view arch) {
    Source source;
    source.name = request.path;
    source.text = request.text;
    source.name_expressions = {request.entry};
    source.headers = headers_of_files();
    source.more_headers = request.headers;
    source.arch = nvrtc_arch(arch);
    source.line_info = request.debug;
    source.include_folders = request.include_folders;
    for (std::string& folder : cuda_include_folders()) source.include_folders.push_back(std::move(folder));
    return source;
}

void check_fits(const std::string& name, const Launch& launch, const EntryInfo& entry, int max_threads, const DeviceInfo& device) {
    const int threads = int(threads_of(launch));
    if (max_threads > 0 && threads > max_threads)
        throw RequestError(fmt::format(
            "--block {}: {} was compiled for {} threads a CTA at most, by its {} registers or its "
            "__launch_bounds__",
            threads, name, max_threads, entry.registers));
    const std::int64_t shared = entry.static_shared_bytes + std::int64_t(launch.shared_bytes);
    if (shared > device.shared_per_cta_bytes)
        throw RequestError(fmt::format(
            "--shared {}: with {} B of its own {} takes {} B of shared memory; a CTA of {} has {}",
            launch.shared_bytes, entry.static_shared_bytes, name, shared, device.name, device.shared_per_cta_bytes));
}

void check_clusters(const Function& kernel, const Launch& launch, const EntryInfo& entry, const DeviceInfo& device) {
    const unsigned ctas = launch.cluster_x * launch.cluster_y * launch.cluster_z;
    if (ctas == 1) return;
    constexpr int first_with_clusters = 9;
    if (device.compute_major < first_with_clusters)
        throw RequestError(fmt::format("--cluster: {} has no clusters", device.name));
    if (active_clusters(kernel, launch) < 1)
        throw RequestError(fmt::format("--cluster: no cluster of {} CTAs of {} threads and {} B of shared memory fits on {}", ctas,
                                       threads_of(launch), entry.static_shared_bytes + std::int64_t(launch.shared_bytes), device.name));
}

std::string launch_text(const Launch& launch) {
    const auto size = [](unsigned x, unsigned y, unsigned z) {
        return z > 1   ? fmt::format("{}x{}x{}", x, y, z)
               : y > 1 ? fmt::format("{}x{}", x, y)
                       : fmt::format("{}", x);
    };
    std::string out = fmt::format("grid {}, block {}", size(launch.grid_x, launch.grid_y, launch.grid_z),
                                  size(launch.block_x, launch.block_y, launch.block_z));
    if (launch.cluster_x * launch.cluster_y * launch.cluster_z > 1)
        out += fmt::format(", cluster {}", size(launch.cluster_x, launch.cluster_y, launch.cluster_z));
    if (launch.shared_bytes > 0) out += fmt::format(", {} B of dynamic shared memory", launch.shared_bytes);
    return out;
}

Plan source_plan(const SourceRequest& request) {
    Plan plan;
    plan.operation = request.problem.operation;
    plan.problem = request.problem;
    plan.rank = 1;
    plan.buildable = true;
    plan.launches = {{.kernel = request.entry}};
    return plan;
}

SourceCode compile_source_code(const SourceRequest& request, std::string_view arch) {
    SourceCode code;
    code.source = source_of(request, arch);
    try {
        code.compiled = compile_source(code.source);
    } catch (const Error& error) {
        // The compiler speaks of the name that it was asked for as of a line behind the file.
        if (error.detail().find("name expression") == std::string::npos) throw;
        throw Error(ExitCode::compile_failed,
                    fmt::format("{} has no kernel {}: --entry names a __global__ function as C++ calls it, "
                                "templates with their "
                                "arguments",
                                request.path, request.entry),
                    error.detail());
    }
    code.ptx = compile_to_ptx(code.source);
    code.parameters = entry_parameters(code.ptx, code.compiled.lowered_names.front());
    return code;
}

CompiledKernel compile_source_kernel(const SourceRequest& request, std::string_view arch) {
    SourceCode code = compile_source_code(request, arch);
    check_parameters(request, code.parameters);
    return {source_plan(request), std::make_shared<const SourceRunnable>(request, arch, std::move(code.source),
                                                                         std::move(code.compiled))};
}

}  // namespace rooftile
