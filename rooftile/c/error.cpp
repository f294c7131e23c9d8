#include "rooftile/c/error.hpp"

#include <cstdlib>

#include "rooftile/report/context.hpp"
#include "rooftile/rooftile.h"

namespace rooftile::c {
namespace {

struct LastError {
    std::string message, detail;
};
thread_local LastError last_error;

struct StatusName {
    ExitCode code;
    rooftile_status status;
    const char* name;
};
constexpr StatusName status_names[] = {
    {ExitCode::internal, ROOFTILE_INTERNAL, "InternalError"},
    {ExitCode::bad_request, ROOFTILE_BAD_REQUEST, "RequestError"},
    {ExitCode::verification_failed, ROOFTILE_VERIFICATION_FAILED, "VerificationFailed"},
    {ExitCode::no_gpu, ROOFTILE_NO_GPU, "NoGpu"},
    {ExitCode::compile_failed, ROOFTILE_COMPILE_FAILED, "CompileFailed"},
    {ExitCode::gpu_failed, ROOFTILE_GPU_FAILED, "GpuFailed"},
    {ExitCode::counters_denied, ROOFTILE_COUNTERS_DENIED, "CountersDenied"},
    {ExitCode::threshold_missed, ROOFTILE_THRESHOLD_MISSED, "ThresholdMissed"},
    {ExitCode::no_plan, ROOFTILE_NO_PLAN, "Infeasible"},
};
constexpr bool statuses_are_exit_codes() {
    for (const StatusName& entry : status_names)
        if (int(entry.code) != int(entry.status)) return false;
    return true;
}
static_assert(statuses_are_exit_codes());

/// The command line's flags by the keys that a request has: "--a-major" as "a_major".
std::string with_keys(const std::string& message) {
    std::string out;
    bool in_flag = false;
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    for (std::size_t i = 0; i < message.size(); ++i) {
        const bool begins = message.compare(i, 2, "--") == 0 && i + 2 < message.size() && is_letter(message[i + 2])
                            && (i == 0 || !(is_letter(message[i - 1]) || message[i - 1] == '-'));
        if (begins) {
            in_flag = true;
            ++i;
        } else if (in_flag && message[i] == '-' && i + 1 < message.size() && is_letter(message[i + 1])) {
            out += '_';
        } else {
            in_flag = in_flag && is_letter(message[i]);
            out += message[i];
        }
    }
    return out;
}

}  // namespace

int failed(ExitCode code, const std::string& message, const std::string& detail) noexcept {
    try {
        last_error = {code == ExitCode::bad_request ? with_keys(message) : message, detail};
    } catch (...) {
        last_error.message.clear(), last_error.detail.clear();
    }  // out of memory: the status is all there is
    return int(code);
}

char* text_of(const std::string& text) {
    auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
    if (!copy) throw std::bad_alloc();
    std::memcpy(copy, text.c_str(), text.size() + 1);
    return copy;
}

}  // namespace rooftile::c

using namespace rooftile;

extern "C" {

const char* rooftile_status_name(int status) {
    for (const c::StatusName& entry : c::status_names)
        if (int(entry.status) == status) return entry.name;
    return "";
}
const char* rooftile_error_message() { return c::last_error.message.c_str(); }
const char* rooftile_error_detail() { return c::last_error.detail.c_str(); }
const char* rooftile_version() { return version().data(); }
void rooftile_free_text(char* text) { std::free(text); }

}  // extern "C"
