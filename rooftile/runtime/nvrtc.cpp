#include "rooftile/runtime/nvrtc.hpp"

#include <dlfcn.h>
#include <nvrtc.h>

#include <algorithm>
#include <chrono>

#include <fmt/core.h>

#include "rooftile/elapsed.hpp"
#include "rooftile/runtime/build_id.hpp"
#include "rooftile/runtime/library.hpp"

namespace rooftile {
namespace {

#define ROOFTILE_NVRTC_FUNCTIONS(X) \
    X(nvrtcVersion)                 \
    X(nvrtcGetErrorString)          \
    X(nvrtcCreateProgram)           \
    X(nvrtcDestroyProgram)          \
    X(nvrtcAddNameExpression)       \
    X(nvrtcCompileProgram)          \
    X(nvrtcGetProgramLogSize)       \
    X(nvrtcGetProgramLog)           \
    X(nvrtcGetCUBINSize) X(nvrtcGetCUBIN) X(nvrtcGetPTXSize) X(nvrtcGetPTX) X(nvrtcGetLoweredName)

struct Nvrtc {
#define ROOFTILE_MEMBER(function) decltype(&::function) function = nullptr;
    ROOFTILE_NVRTC_FUNCTIONS(ROOFTILE_MEMBER)
#undef ROOFTILE_MEMBER
    NvrtcInfo info;
};

Nvrtc open_nvrtc() {
    Library library = open_library(nvrtc_soname);
    if (!library) throw Error(ExitCode::compile_failed, library.not_found());
    Nvrtc nvrtc;
#define ROOFTILE_LOOK_UP(function)                                                       \
    nvrtc.function = reinterpret_cast<decltype(&::function)>(library.symbol(#function)); \
    if (!nvrtc.function)                                                                 \
        throw Error(ExitCode::compile_failed, fmt::format("{} lacks " #function, library.path));
    ROOFTILE_NVRTC_FUNCTIONS(ROOFTILE_LOOK_UP)
#undef ROOFTILE_LOOK_UP
    int major = 0, minor = 0;
    nvrtc.nvrtcVersion(&major, &minor);
    nvrtc.info.version = fmt::format("{}.{}", major, minor);
    nvrtc.info.path = library.path;
    // NVRTC opens its helper by bare name, which the loader finds only where a toolkit was registered with
    // it. Opened by path before, the one beside it is already loaded under that name.
    const std::string folder = library.path.substr(0, library.path.rfind('/') + 1);
    dlopen(fmt::format("{}libnvrtc-builtins.so.{}", folder, nvrtc.info.version).c_str(),
           RTLD_NOW | RTLD_LOCAL);
    nvrtc.info.build = build_id(library);
    return nvrtc;
}

const Nvrtc& table() {
    // A failed opening is tried again by the next caller: an exception leaves the static unset.
    static const Nvrtc nvrtc = open_nvrtc();
    return nvrtc;
}

void check(nvrtcResult result, std::string_view call) {
    if (result == NVRTC_SUCCESS) return;
    throw Error(ExitCode::compile_failed,
                fmt::format("{} failed: {}", call, table().nvrtcGetErrorString(result)));
}

class Program {
  public:
    explicit Program(const Source& source) {
        std::vector<const char*> texts, names;
        // Embedded texts end in a NUL beyond their size; string_view hides but does not remove it.
        for (const EmbeddedFile& header : source.headers) {
            copies_.emplace_back(header.text);
            copies_.emplace_back(header.path);
        }
        for (const auto& [name, text] : source.more_headers) copies_.push_back(text), copies_.push_back(name);
        for (std::size_t i = 0; i < copies_.size(); i += 2) {
            texts.push_back(copies_[i].c_str());
            names.push_back(copies_[i + 1].c_str());
        }
        check(table().nvrtcCreateProgram(&program_, source.text.c_str(), source.name.c_str(),
                                         int(texts.size()), texts.data(), names.data()),
              "nvrtcCreateProgram");
    }
    ~Program() { table().nvrtcDestroyProgram(&program_); }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;
    nvrtcProgram get() const { return program_; }

    std::string log() const {
        std::size_t size = 0;
        check(table().nvrtcGetProgramLogSize(program_, &size), "nvrtcGetProgramLogSize");
        std::string text(size, '\0');
        check(table().nvrtcGetProgramLog(program_, text.data()), "nvrtcGetProgramLog");
        while (!text.empty() && text.back() == '\0') text.pop_back();
        return text;
    }

  private:
    nvrtcProgram program_ = nullptr;
    std::vector<std::string> copies_;
};

/// The log's first line that speaks of an error, else its first line.
std::string first_error(std::string_view log) {
    std::string_view first;
    for (std::size_t at = 0; at < log.size();) {
        std::size_t end = std::min(log.find('\n', at), log.size());
        std::string_view line = log.substr(at, end - at);
        if (line.find("error") != line.npos || line.find("fatal") != line.npos) return std::string(line);
        if (first.empty()) first = line;
        at = end + 1;
    }
    return std::string(first);
}

/// Runs the compiler over `program`; returns its log. Throws with the log where it fails.
std::string run(const Program& program, const Source& source, const std::vector<std::string>& options) {
    for (const std::string& expression : source.name_expressions)
        check(table().nvrtcAddNameExpression(program.get(), expression.c_str()),
              fmt::format("nvrtcAddNameExpression({})", expression));
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    nvrtcResult result = table().nvrtcCompileProgram(program.get(), int(pointers.size()), pointers.data());
    std::string log = program.log();
    if (result != NVRTC_SUCCESS)
        throw Error(ExitCode::compile_failed,
                    fmt::format("{} does not compile for {}: {}", source.name, source.arch,
                                log.empty() ? table().nvrtcGetErrorString(result) : first_error(log)),
                    log);
    return log;
}

}  // namespace

const NvrtcInfo& nvrtc() { return table().info; }

std::string nvrtc_arch(std::string_view arch) {
    std::string name(arch);
    if (name == "sm_90" || name == "sm_100") name += 'a';
    return name;
}

Source source_of_header(std::string name, std::string_view header, std::vector<std::string> name_expressions, std::string_view arch) {
    Source source;
    source.name = std::move(name);
    source.text = fmt::format("#include \"{}\"\n", header);
    source.name_expressions = std::move(name_expressions);
    source.arch = nvrtc_arch(arch);
    return source;
}

std::vector<std::string> compile_options(const Source& source) {
    std::vector<std::string> options = {
        "--gpu-architecture=" + source.arch,
        "--std=c++20",
        "--device-as-default-execution-space",
        "--ptxas-options=-v",
        "--no-cache",  // the compiler's own disk cache: ours is enough, and it answers for what it returns
    };
    if (source.line_info) options.push_back("--generate-line-info");
    if (source.max_registers > 0) options.push_back(fmt::format("--maxrregcount={}", source.max_registers));
    for (const std::string& folder : source.include_folders) options.push_back("--include-path=" + folder);
    return options;
}

Compiled compile_source(const Source& source) {
    auto start = std::chrono::steady_clock::now();
    Program program(source);
    Compiled compiled;
    compiled.log = run(program, source, compile_options(source));
    std::size_t size = 0;
    check(table().nvrtcGetCUBINSize(program.get(), &size), "nvrtcGetCUBINSize");
    compiled.cubin.resize(size);
    check(table().nvrtcGetCUBIN(program.get(), compiled.cubin.data()), "nvrtcGetCUBIN");
    if (size == 0)
        throw Error(ExitCode::compile_failed,
                    fmt::format("{} for {} gave an empty cubin", source.name, source.arch), compiled.log);
    std::vector<EntryInfo> entries = parse_entries(compiled.log);
    for (const std::string& expression : source.name_expressions) {
        const char* lowered = nullptr;
        check(table().nvrtcGetLoweredName(program.get(), expression.c_str(), &lowered),
              fmt::format("nvrtcGetLoweredName({})", expression));
        compiled.lowered_names.push_back(lowered);
        auto entry = std::find_if(entries.begin(), entries.end(),
                                  [&](const EntryInfo& e) { return e.name == lowered; });
        if (entry == entries.end())
            throw Error(ExitCode::compile_failed, fmt::format("ptxas says nothing about {}", expression),
                        compiled.log);
        compiled.entries.push_back(*entry);
    }
    compiled.seconds = seconds_since(start);
    return compiled;
}

std::string compile_to_ptx(const Source& source) {
    Source virtual_source = source;
    if (virtual_source.arch.starts_with("sm_")) virtual_source.arch.replace(0, 3, "compute_");
    std::vector<std::string> options = compile_options(virtual_source);
    std::erase(options, "--ptxas-options=-v");
    Program program(virtual_source);
    run(program, virtual_source, options);
    std::size_t size = 0;
    check(table().nvrtcGetPTXSize(program.get(), &size), "nvrtcGetPTXSize");
    std::string text(size, '\0');
    check(table().nvrtcGetPTX(program.get(), text.data()), "nvrtcGetPTX");
    while (!text.empty() && text.back() == '\0') text.pop_back();
    return text;
}

}  // namespace rooftile
