// What a document says of itself: which version, machine, kernel and command made it, and on which GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rooftile {

class Machine;

/// Of a run on a GPU.
struct GpuContext {
    std::string gpu;     ///< the driver's name for it
    std::string driver;  ///< "580.82.07" or the CUDA version it supports
    std::string nvrtc;   ///< "13.0"
    std::string date;    ///< ISO 8601, UTC
    std::uint64_t seed = 0;
};

struct DocumentContext {
    std::string version;
    std::string machine_id, machine_name, machine_hash;
    std::string kernel_hash;  ///< empty where no kernel was compiled, or more than one
    std::string command;      ///< the command line, quoted for a shell
    std::optional<GpuContext> gpu;
};

/// This library's version, "0.1.0".
std::string_view version();

/// The context of a document that speaks of no single machine.
DocumentContext context_of(const std::string& command);
/// The context of a run that saw no GPU.
DocumentContext context_of(const Machine& machine, const std::string& command);

/// `word` as a shell would take it back: quoted only where it must be.
std::string shell_quoted(std::string_view word);

/// Now, as "2025-06-01T12:00:00Z".
std::string utc_now();

}  // namespace rooftile
