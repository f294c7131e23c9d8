// The run-time compiler: source text in, one cubin with names, registers and log out. Needs no GPU.
//
// NVRTC reads any file that a source includes by path. The library's own sources take every header from memory and have no
// include path. A file of the user's (rooftile/measure/source_kernel.hpp) is the one text that is not ours: its folders are given
// by the user, too.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "rooftile/embedded.hpp"
#include "rooftile/error.hpp"

namespace rooftile {

/// What to compile. Names and texts must live until compile() returns.
struct Source {
    std::string name;  ///< shown in messages: "copy"
    std::string text;
    std::span<const EmbeddedFile> headers = embedded_kernels();  ///< included as "kernels/..."
    std::vector<std::string> name_expressions;                   ///< the kernels to instantiate
    std::string arch = "sm_90a";                                 ///< real, with its suffix: nvrtc_arch()
    bool line_info = false;                                      ///< for sanitizers and profilers
    int max_registers = 0;                                       ///< a thread; 0: what the kernel declares
    std::vector<std::string> include_folders = {};               ///< of a user's file alone; the cache does not see them
    std::vector<std::pair<std::string, std::string>> more_headers = {};  ///< likewise: as it is included, and its text
};

/// What ptxas says about one entry function.
struct EntryInfo {
    std::string name;  ///< lowered
    int registers = 0;
    int stack_bytes = 0, spill_store_bytes = 0, spill_load_bytes = 0, local_bytes = 0;
    int static_shared_bytes = 0, constant_bytes = 0, barriers = 0;
};

struct Compiled {
    std::string cubin;
    std::vector<std::string> lowered_names;  ///< in the order of Source::name_expressions
    std::vector<EntryInfo> entries;          ///< likewise
    std::string log;
    double seconds = 0;  ///< of the compiler
};

/// "sm_90" -> "sm_90a", "sm_100" -> "sm_100a"; others as they are: the suffix unlocks wgmma and tcgen05.
std::string nvrtc_arch(std::string_view arch);

/// The compiler in use. `build` tells apart libraries that give the same version.
struct NvrtcInfo {
    std::string version;  ///< "13.0"
    std::string path;
    std::string build;  ///< the ELF build id in hex, else a hash of the file's beginning and size
};
/// Throws Error(compile_failed) that lists the places tried where libnvrtc is not found.
const NvrtcInfo& nvrtc();

/// The options of a compile in their order; part of the cache key.
std::vector<std::string> compile_options(const Source& source);

/// Compiles to a cubin. Throws Error(compile_failed): its message holds the first error, its detail the
/// whole log. Thread-safe, and parallel in threads.
Compiled compile_source(const Source& source);

/// A source that is one include, "kernels/...", and what it instantiates.
Source source_of_header(std::string name, std::string_view header, std::vector<std::string> name_expressions, std::string_view arch);

/// The PTX of the same source, for reading. Throws as compile_source.
std::string compile_to_ptx(const Source& source);

using CompileOutcome = std::variant<Compiled, Error>;
/// Compiles all in up to `threads` threads (0: one a core); outcomes in the order of `sources`.
std::vector<CompileOutcome> compile_all(std::span<const Source> sources, unsigned threads = 0);

/// The entries that a ptxas log describes, in its order.
std::vector<EntryInfo> parse_entries(std::string_view log);

/// Why this result may not run as planned: a C75xx or C76xx message (wgmma serialised, setmaxnreg
/// ignored), spills, a stack frame or local memory. Empty where it is clean.
std::optional<std::string> unclean(const Compiled& compiled);
/// Registers that did not suffice: with fewer CTAs an SM a plan leaves its threads more.
class SpillError : public Error {
  public:
    using Error::Error;
};

/// Throws Error(compile_failed) with that reason, and the log as detail; of spills SpillError.
void check_clean(const Compiled& compiled, std::string_view name);

}  // namespace rooftile
