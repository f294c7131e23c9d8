// A kernel that a user wrote: its file, how it is launched, and the expression that says what its results must be. Compiled, it is
// a CompiledKernel as any planned one, so that it is verified, timed and counted beside those.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/core/field.hpp"
#include "rooftile/core/operation.hpp"
#include "rooftile/core/plan.hpp"
#include "rooftile/runtime/compiled_kernel.hpp"

namespace rooftile {

/// What the kernel gets in one of its parameters' places.
struct SourceParameter {
    std::string name;        ///< of the tensor; of a number as it was given: "int32:1024"
    int tensor = -1;         ///< its place in Operation::tensors(); -1: a number
    int bytes = 8;           ///< of the parameter
    std::uint64_t bits = 0;  ///< of a number
};

/// What the same takes in another way, measured elsewhere.
struct OtherTime {
    std::string key, name;  ///< "pytorch" and "PyTorch"
    double us = 0;
    std::optional<std::int64_t> launches;  ///< kernels; empty: nobody counted
};

struct SourceRequest {
    std::string path, text;  ///< of the user's file; without what is for the host
    std::vector<std::pair<std::string, std::string>> headers;  ///< of the user's too: as they are included, without what is for the host
    std::vector<std::string> left_out;  ///< of all of them: functions and includes (device_text.hpp)
    std::vector<std::string> kernels, templates;  ///< of the file (device_text.hpp)
    std::string entry;       ///< as one calls it in C++: "scale", "scale<float>"
    Problem problem;         ///< of the reference, of the one operation that takes expressions
    std::vector<SourceParameter> parameters;
    std::vector<std::string> include_folders;  ///< the file's own first
    Launch launch;
    std::vector<OtherTime> others;  ///< shown beside
    /// A launch may take so long; then `on_timeout` is told of it in a line, and must end the process: nothing else ends a
    /// kernel. Empty: the launch is waited for.
    double timeout_seconds = 10;
    std::function<void(const std::string&)> on_timeout;
    bool debug = false;  ///< with line numbers for sanitizers; every launch is waited for
};

/// The operation whose problem is an expression and its tensors. Throws RequestError where this build has none.
const Operation& expressions();
/// Of a request to measure such a kernel, without the flags of measuring.
std::span<const Field> source_fields();
/// Reads the file. Throws RequestError, one line, where anything of it is wrong.
SourceRequest source_request(const Given& given);

/// "grid 1024, block 256, 0 B of dynamic shared memory".
std::string launch_text(const Launch& launch);

/// The plan that stands for the kernel beside planned ones: it has no prediction and nothing of the operation's own.
Plan source_plan(const SourceRequest& request);

/// What compiling makes of the file alone, whatever its results must be.
struct SourceCode {
    Source source;
    Compiled compiled;
    std::string ptx;
    std::vector<int> parameters;  ///< bytes of each
};
/// What the compiler is given: the request's entry, for "sm_90" as the compiler calls it.
Source source_of(const SourceRequest& request, std::string_view arch);
/// Throws RequestError where no launch of that size can start: of a kernel that was compiled as `entry` says, for at most `max_threads`
/// a CTA (0: unknown).
void check_fits(const std::string& name, const Launch& launch, const EntryInfo& entry, int max_threads, const DeviceInfo& device);
/// The same where the grid is made of clusters.
void check_clusters(const Function& kernel, const Launch& launch, const EntryInfo& entry, const DeviceInfo& device);

/// For `arch`. Spills are taken: they are shown. Throws Error(compile_failed), whose detail is the compiler's log with the lines of the
/// user's file.
SourceCode compile_source_code(const SourceRequest& request, std::string_view arch);

/// The same as a kernel to launch. Throws RequestError where the parameters are not as many, or as large, as the kernel's.
CompiledKernel compile_source_kernel(const SourceRequest& request, std::string_view arch);

/// Text as the compiler takes it, with its headers from `folders` that lie there; `path` is what messages call it.
SourceRequest source_text_request(std::string path, std::string_view text, std::vector<std::string> folders);
/// Where a file's includes look first.
std::string folder_of(const std::string& path);
/// The part of a request that compiling needs: file, entry and folders. Throws RequestError.
SourceRequest source_code_request(const Given& given);
/// Its launch, a parameter that is a number ("int32:1024", "fp32:1e-5"), and seconds, each as `name` gives it. Throw RequestError.
Launch source_launch(const Given& given);
SourceParameter source_number(const std::string& name, const std::string& text);
double source_seconds(const std::string& name, const std::string& text);

}  // namespace rooftile
