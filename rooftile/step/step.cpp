#include "rooftile/step/step.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "rooftile/core/random.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/embedded.hpp"
#include "rooftile/error.hpp"
#include "rooftile/expression/element_bits.hpp"
#include "rooftile/expression/evaluate.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/runtime/child.hpp"
#include "rooftile/runtime/disassemble.hpp"
#include "rooftile/runtime/temporary_folder.hpp"
#include "rooftile/step/report.hpp"

namespace rooftile {
namespace {

namespace fs = std::filesystem;

/// A folder for what is compiled and run.
class PrivateFolder {
  public:
    fs::path operator/(std::string_view name) const { return folder_.path() / name; }
    void write(std::string_view name, std::string_view text) const {
        const fs::path to = *this / name;
        fs::create_directories(to.parent_path());
        if (!(std::ofstream(to, std::ios::binary) << text))
            throw Error(ExitCode::internal, fmt::format("{} cannot be written", to.string()));
    }

  private:
    TemporaryFolder folder_{"rooftile-step"};
};

std::string_view embedded(std::string_view name) {
    for (const EmbeddedFile& file : embedded_step())
        if (file.path.ends_with(name)) return file.text;
    throw Error(ExitCode::internal, "no text " + std::string(name));
}

std::string compiler() {
    if (const auto path = find_host_compiler()) return *path;
    throw RequestError(
        "step compiles the kernel's text for this CPU and finds no g++ on PATH; install it (Debian, Ubuntu: apt install g++), or name one "
        "by CXX");
}

/// `path` as a C string's content.
std::string escaped(std::string_view path) {
    std::string out;
    for (const char c : path) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out;
}

/// From `marker`'s "#line 1" on: what device_text() puts before is in cuda.hh or given by it.
std::string_view own_text(std::string_view text) {
    constexpr std::string_view marker = "#line 1\n";
    const std::size_t at = text.find(marker);
    return at == text.npos ? text : text.substr(at + marker.size());
}

/// The program that runs the kernel, in `folder`.
void compile(const StepRequest& request, const PrivateFolder& folder) {
    const SourceRequest& source = request.source;
    folder.write("rooftile_cuda.hh", embedded("cuda.hh"));
    folder.write("rooftile_runtime.cc", embedded("runtime.cc"));
    for (const std::string_view header : cuda_headers()) folder.write("include/" + std::string(header), "");
    // The user's files lie deep enough for "../".
    const std::string base = "1/2/3/4/";
    for (const auto& [name, text] : source.headers) {
        const std::string to = (fs::path(base) / name).lexically_normal().string();
        if (to.starts_with("..") || to.starts_with("/"))
            throw RequestError(fmt::format("#include \"{}\": it cannot be stepped; name its folder by --include", name));
        folder.write(to, fmt::format("#line 1 \"{}\"\n{}", escaped(name), host_text(text)));
    }
    const std::string entry = source.entry.starts_with("::") ? source.entry : "::" + source.entry;
    folder.write(base + "rooftile_step.cc",
                 fmt::format("#include \"rooftile_cuda.hh\"\n#line 1 \"{}\"\n{}\n#line 1 \"rooftile_step.cc\"\nROOFTILE_STEP({})\n",
                             escaped(source.path), host_text(own_text(source.text), request.watches), entry));
    const std::string cxx = compiler(), root = (folder / "").string();
    const auto must = [&](std::vector<std::string> command) {
        command.insert(command.begin(), cxx);
        const ChildOutcome made = run_child(command);
        if (made.code == 0) return;
        std::string log = made.err;
        for (const std::string& own : {root + base, root})
            for (std::size_t at; (at = log.find(own)) != log.npos;) log.erase(at, own.size());
        throw_compile_error(source, log, cxx);
    };
    auto runtime = std::async(
        std::launch::async, must,
        std::vector<std::string>{"-std=c++20", "-O1", "-w", "-fno-pie", "-c", root + "rooftile_runtime.cc", "-o" + root + "runtime.o"});
    // Locals that are never set hold 0xfe in each byte, not what a GPU's register happens to have.
    const std::string flags =
        "-std=c++20 -O0 -g1 -gdwarf-4 -w -fmax-errors=3 -fno-exceptions -fno-pie -ftrivial-auto-var-init=pattern -fstack-clash-protection "
        "-fsanitize=thread,bounds,alignment --param tsan-distinguish-volatile=1 -c";
    std::vector<std::string> command = parts_of(flags, ' ');
    for (const std::string& more :
         {"-I" + root, "-I" + root + base, "-I" + root + "include", root + base + "rooftile_step.cc", "-o" + root + "kernel.o"})
        command.push_back(more);
    must(command);
    runtime.get();
    must({"-no-pie", root + "kernel.o", root + "runtime.o", "-o", root + "stepped"});
}

double number_of(const std::string& name, const std::string& text) {
    double value = 0;
    const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || at != text.data() + text.size())
        throw RequestError(fmt::format("--fill {}={}: accepted: normal, index, below:N or a number", name, text));
    return value;
}

bool is_floating(const StepTensor& t) { return t.type.starts_with("fp") || t.type == "bf16"; }

std::vector<char> bytes_of_values(const StepTensor& t, std::span<const double> values) {
    if (t.element) return elements_of_values(values, *t.element);
    std::vector<char> out(values.size() * std::size_t(t.bytes));
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::uint64_t bits = t.type == "fp64" ? std::bit_cast<std::uint64_t>(values[i]) : std::uint64_t(std::int64_t(values[i]));
        std::memcpy(out.data() + i * std::size_t(t.bytes), &bits, std::size_t(t.bytes));
    }
    return out;
}

std::vector<char> first_bytes(const StepRequest& request, std::size_t which) {
    const StepTensor& t = request.tensors[which];
    const std::int64_t count = elements_of(t.shape);
    const auto is_output = [&](const GraphOutput& o) { return o.name == t.name; };
    if (t.fill.empty() && request.reference && std::ranges::any_of(request.reference->outputs, is_output))
        return std::vector<char>(std::size_t(count) * std::size_t(t.bytes), char(0xff));  // NaN: what is not written is seen
    const std::uint64_t seed = request.seed + which;
    if (t.fill == "normal" || (t.fill.empty() && (is_floating(t) || t.type == "bool")))
        return bytes_of_values(t, random_values(count, t.element.value_or(Element::fp32), seed));
    std::vector<double> values(std::size_t(count), 0);
    if (t.fill == "index")
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = double(i);
    else if (constexpr std::string_view below = "below:"; t.fill.starts_with(below)) {
        const std::int64_t most = whole_number("--fill " + t.name, t.fill.substr(below.size()), 1, std::int64_t{1} << 53);
        Random random(seed);
        for (double& value : values) value = double(random.pick(std::size_t(most)));
    } else if (!t.fill.empty()) std::ranges::fill(values, number_of(t.name, t.fill));
    return bytes_of_values(t, values);
}

/// The tensors in one file, with room between them in which what misses one is found, as the stepped process sees them too.
class Memory {
  public:
    Memory(const StepRequest& request, const fs::path& path) {
        constexpr std::size_t page = 4096, least_room = 1 << 20;
        std::size_t at = 0;
        for (std::size_t i = 0; i < request.tensors.size(); ++i) {
            before_.push_back(first_bytes(request, i));
            const std::size_t room = std::max(least_room, before_.back().size());
            begins_.push_back(at = (at + room + page - 1) / page * page);
            at += before_.back().size() + room;
        }
        bytes_ = at + page;
        const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (file < 0 || ftruncate(file, off_t(bytes_)) != 0)
            throw Error(ExitCode::internal, fmt::format("{} of {} B cannot be made: {}", path.string(), bytes_, std::strerror(errno)));
        void* mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
        close(file);
        if (mapped == MAP_FAILED) throw Error(ExitCode::internal, fmt::format("{} B cannot be mapped: {}", bytes_, std::strerror(errno)));
        memory_ = static_cast<char*>(mapped);
        for (std::size_t i = 0; i < before_.size(); ++i) std::ranges::copy(before_[i], memory_ + begins_[i]);
    }
    ~Memory() { munmap(memory_, bytes_); }
    Memory(const Memory&) = delete;
    std::size_t bytes() const { return bytes_; }
    std::size_t begin(std::size_t tensor) const { return begins_[tensor]; }
    const std::vector<char>& before(std::size_t tensor) const { return before_[tensor]; }
    const char* now(std::size_t tensor) const { return memory_ + begins_[tensor]; }
    /// Blocks that have ended, as runtime.cc counts them before the first tensor.
    std::int64_t stepped() const { return *reinterpret_cast<const volatile std::int64_t*>(memory_); }

  private:
    std::vector<std::vector<char>> before_;
    std::vector<std::size_t> begins_;
    std::size_t bytes_ = 0;
    char* memory_ = nullptr;
};

/// As runtime.cc reads it.
std::string request_text(const StepRequest& request, const Memory& memory) {
    const SourceRequest& source = request.source;
    const Launch& l = source.launch;
    std::string out = fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {}\n", l.grid_x, l.grid_y, l.grid_z, l.block_x, l.block_y, l.block_z,
                                  l.shared_bytes, source.timeout_seconds, request.cta.value_or(-1), request.thread, request.tensors.size(),
                                  memory.bytes(), source.parameters.size());
    for (std::size_t i = 0; i < request.tensors.size(); ++i) {
        const StepTensor& t = request.tensors[i];
        out += fmt::format("{} {} {}\n", memory.begin(i), elements_of(t.shape) * t.bytes, t.bytes);
    }
    for (const SourceParameter& p : source.parameters) {
        const StepTensor* const t = p.tensor >= 0 ? &request.tensors[std::size_t(p.tensor)] : nullptr;
        const std::string& type = t ? t->type : p.name;
        const char kind = type == "fp16" ? 'h' : type == "bf16" ? 'b' : type.starts_with("fp") ? 'f' : 'i';
        out += fmt::format("{} {} {} {:x} {}\n", p.tensor, t ? t->bytes : p.bytes, kind, p.bits, p.name);
    }
    return out;
}

std::string value_text(const StepTensor& t, const char* at) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, at, std::size_t(t.bytes));
    if (t.element) {
        const double value = values_of_elements(at, 1, *t.element).front();
        return is_floating(t) ? fmt::format("{:.6g}", value) : fmt::format("{}", std::int64_t(value));
    }
    if (t.type == "fp64") return fmt::format("{:.6g}", std::bit_cast<double>(bits));
    const int unused = 64 - 8 * t.bytes;
    return t.type.starts_with('u') ? fmt::format("{}", bits) : fmt::format("{}", std::int64_t(bits << unused) >> unused);
}

StepOutcome::Changed changed(const StepTensor& t, const std::vector<char>& before, const char* now) {
    constexpr std::size_t shown = 8;
    StepOutcome::Changed out;
    const std::size_t size = std::size_t(t.bytes);
    for (std::size_t at = 0; at < before.size(); at += size) {
        out.elements += std::memcmp(before.data() + at, now + at, size) != 0;
        if (out.first.size() < shown) out.first.push_back(value_text(t, now + at));
    }
    return out;
}

void compare(const StepRequest& request, const Memory& memory, StepOutcome& outcome) {
    const ExpressionGraph& graph = *request.reference;
    const auto tensor_named = [&](const std::string& name) {
        return std::size_t(std::ranges::find(request.tensors, name, &StepTensor::name) - request.tensors.begin());
    };
    if (outcome.stepped < outcome.ctas) {
        outcome.comparison = fmt::format("not compared: {} of {} blocks ran", outcome.stepped, outcome.ctas);
        return;
    }
    std::vector<std::vector<double>> inputs;
    for (const int node : graph.inputs) {
        const std::size_t i = tensor_named(graph.nodes[std::size_t(node)].name);
        inputs.push_back(values_of_elements(memory.before(i).data(), elements_of(request.tensors[i].shape), *request.tensors[i].element));
    }
    const std::vector<BoundedTensor> expected = evaluate(graph, inputs);
    outcome.right = true;
    for (std::size_t o = 0; o < expected.size(); ++o) {
        const std::size_t i = tensor_named(graph.outputs[o].name);
        const StepTensor& t = request.tensors[i];
        const auto got = values_of_elements(memory.now(i), elements_of(t.shape), *t.element);
        std::size_t wrong = 0, first = 0;
        for (std::size_t e = got.size(); e-- > 0;)
            if (!agrees(got[e], expected[o][e], *t.element)) ++wrong, first = e;
        if (wrong == 0 || !*outcome.right) continue;
        outcome.right = false;
        outcome.comparison =
            fmt::format("{}: got {}, expected {:.6g}; {} of {} elements are wrong", element_text(t, std::int64_t(first)),
                        value_text(t, memory.now(i) + first * std::size_t(t.bytes)), expected[o][first].value, wrong, got.size());
    }
}

}  // namespace

StepOutcome step(const StepRequest& request, const std::function<void(std::int64_t, std::int64_t)>& progress) {
    const PrivateFolder folder;
    compile(request, folder);
    const Memory memory(request, folder / "memory");
    folder.write("request", request_text(request, memory));
    const Launch& launch = request.source.launch;
    const std::int64_t ctas = request.cta ? 1 : std::int64_t(launch.grid_x) * launch.grid_y * launch.grid_z;
    std::function<void()> meanwhile;
    if (progress) meanwhile = [&] { progress(memory.stepped(), ctas); };
    const ChildOutcome ran = run_child(
        {(folder / "stepped").string(), (folder / "report").string(), (folder / "request").string(), (folder / "memory").string()},
        meanwhile);
    std::error_code ignored;
    const std::string said = fs::exists(folder / "report", ignored) ? read_whole_file(folder / "report") : "";
    if (const auto why = refusal_of(said); !why.empty())
        throw RequestError(fmt::format("{} of {}: {}", request.source.entry, request.source.path, why));
    if (ran.signal || (ran.code != 0 && ran.code != int(ExitCode::verification_failed)))
        throw Error(
            ExitCode::internal,
            fmt::format("the stepped kernel ended by {} {}", ran.signal ? "signal" : "exit code", ran.signal ? ran.signal : ran.code),
            ran.err);
    StepOutcome outcome = outcome_of(request, said, (folder / "stepped").string());
    outcome.printed = ran.out;
    for (std::size_t i = 0; i < request.tensors.size(); ++i)
        outcome.changed.push_back(changed(request.tensors[i], memory.before(i), memory.now(i)));
    if (request.reference && !outcome.fault) compare(request, memory, outcome);
    return outcome;
}

}  // namespace rooftile
