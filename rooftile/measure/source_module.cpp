#include "rooftile/measure/source_module.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/machine/units_text.hpp"
#include "rooftile/measure/source_kernel.hpp"
#include "rooftile/report/code_accesses.hpp"
#include "rooftile/runtime/in_contexts.hpp"

namespace rooftile {
namespace {

// PTX says how long a parameter is, but calls a pointer what it calls a long number. The compiler knows: this, before the file, whose
// macros may have any name, has it write down each parameter's kind, as a place in ParameterKind.
constexpr std::string_view kinds_text = R"(namespace rooftile_kinds {
template <class T, bool is_enum = __is_enum(T)> struct Of { static constexpr unsigned char kind = 4; };
template <class T> struct Of<T, true> { static constexpr unsigned char kind = T(-1) < T(0) ? 1 : 2; };
template <class T> struct Of<T*, false> { static constexpr unsigned char kind = 0; };
template <class T> struct Number { static constexpr unsigned char kind = T(0.5) != T(0) && T(0.5) != T(1) ? 3 : T(-1) < T(0) ? 1 : 2; };
#define ROOFTILE_NUMBER(T) template <> struct Of<T> : Number<T> {};
ROOFTILE_NUMBER(bool) ROOFTILE_NUMBER(char) ROOFTILE_NUMBER(signed char) ROOFTILE_NUMBER(unsigned char)
ROOFTILE_NUMBER(short) ROOFTILE_NUMBER(unsigned short) ROOFTILE_NUMBER(int) ROOFTILE_NUMBER(unsigned)
ROOFTILE_NUMBER(long) ROOFTILE_NUMBER(unsigned long) ROOFTILE_NUMBER(long long) ROOFTILE_NUMBER(unsigned long long)
ROOFTILE_NUMBER(wchar_t) ROOFTILE_NUMBER(char8_t) ROOFTILE_NUMBER(char16_t) ROOFTILE_NUMBER(char32_t)
ROOFTILE_NUMBER(float) ROOFTILE_NUMBER(double)
template <class F> struct List;
template <class... T> struct List<void(T...)> { unsigned char kinds[sizeof...(T) + 1] = {Of<T>::kind..., 9}; };
}
)";

/// What the compiler wrote down of function `index`: ".global .align 1 .b8 rooftile_kinds_0[3] = {0, 1, 9};"
std::vector<ParameterKind> kinds_of(std::string_view ptx, std::size_t index, std::size_t count) {
    std::vector<ParameterKind> kinds;
    const std::size_t at = ptx.find(fmt::format("rooftile_kinds_{}[", index));
    // Of zeros alone, which cannot be (the last one is 9), nothing would stand there.
    const std::size_t open = ptx.find('{', std::min(at, ptx.size()));
    if (open == ptx.npos) throw Error(ExitCode::internal, "the compiler wrote no kinds of parameters");
    for (std::size_t i = open + 1; kinds.size() < count;) {
        int kind = 9;
        while (ptx[i] == ' ' || ptx[i] == ',') ++i;
        const auto [end, error] = std::from_chars(ptx.data() + i, ptx.data() + ptx.size(), kind);
        if (error != std::errc() || kind > int(ParameterKind::struct_))
            throw Error(ExitCode::internal, "the compiler wrote other kinds than there are parameters");
        i = std::size_t(end - ptx.data());
        kinds.push_back(ParameterKind(kind));
    }
    return kinds;
}

/// Without template arguments and namespaces: "gelu" of "mine::gelu<float>".
std::string_view base_name(std::string_view name) {
    name = name.substr(0, name.find('<'));
    const std::size_t colon = name.rfind("::");
    return colon == name.npos ? name : name.substr(colon + 2);
}

bool is_text(const std::string& source) { return source.find('\n') != source.npos || source.find("__global__") != source.npos; }

SourceRequest request_of(const std::string& source, const LoadOptions& options) {
    std::vector<std::string> folders = {is_text(source) ? "." : folder_of(source)};
    folders.insert(folders.end(), options.include.begin(), options.include.end());
    if (is_text(source)) return source_text_request("source.cu", source, std::move(folders));
    return source_text_request(source, read_whole_file(source), std::move(folders));
}

bool contains(const std::vector<std::string>& list, std::string_view text) { return std::ranges::find(list, text) != list.end(); }

/// "mine::gelu<float>" of "gelu<float>", where the file has one kernel of that name alone.
std::string with_namespaces(const std::string& function, const SourceRequest& request) {
    const std::string name = function.substr(0, function.find('<'));
    std::vector<std::string> found;
    for (const std::string& kernel : request.kernels)
        if (kernel.ends_with("::" + name) && !contains(found, kernel)) found.push_back(kernel);
    return contains(request.kernels, name) || found.size() != 1 ? function : found.front() + function.substr(name.size());
}

/// Those that are asked for, or all that need no arguments of a template.
void choose(std::vector<std::string>& functions, const SourceRequest& request) {
    const std::string there = request.kernels.empty() ? "no __global__ function" : fmt::format("{}", fmt::join(request.kernels, ", "));
    if (functions.empty())
        for (const std::string& kernel : request.kernels)  // which may stand in each branch of an #if
            if (!contains(request.templates, kernel) && !contains(functions, kernel)) functions.push_back(kernel);
    if (functions.empty())
        throw RequestError(request.kernels.empty()
                               ? fmt::format("{} has no __global__ function; --functions names those that it includes", request.path)
                               : fmt::format("{} has templates alone: {}; --functions names them with their arguments, as {}<float>",
                                             request.path, there, request.templates.front()));
    for (std::size_t i = 0; i < functions.size(); ++i) {
        if (functions[i].empty() || printable(functions[i]) != functions[i])
            throw RequestError(fmt::format("--functions: {} is no name of a function; there is {}", printable(functions[i]), there));
        if (std::ranges::count(functions, functions[i]) > 1)
            throw RequestError(fmt::format("--functions: {} is given twice", functions[i]));
        if (contains(request.templates, with_namespaces(functions[i], request)))
            throw RequestError(fmt::format("--functions: {0} is a template: give its arguments, as {0}<float>", functions[i]));
    }
}

std::string arch_of(const LoadOptions& options) {
    if (!options.arch.empty()) return options.arch;
    const Driver& driver = Driver::instance();
    return driver.device(current_context() ? current_device() : 0).arch();
}

/// Of these names those that the compiler does not know: the file has none, or a branch of its preprocessor leaves it out.
std::vector<std::string> unknown_names(const std::vector<std::string>& names, const SourceRequest& request, const std::string& log) {
    std::vector<std::string> out;
    for (const std::string& name : names) {
        const bool there = contains(request.kernels, name.substr(0, name.find('<')));
        const auto says = [&](const char* what) { return log.find(fmt::format(fmt::runtime(what), base_name(name))) != log.npos; };
        if (!there || says("identifier \"{}\" is undefined") || says("has no member \"{}\"")) out.push_back(name);
    }
    return out;
}

/// Where `all` were chosen, those that the compiler does not know are taken away.
Compiled compiled_of(const SourceRequest& request, Source& source, bool all) {
    try {
        return compile_source(source);
    } catch (const Error& error) {
        // The compiler speaks of the names that it was asked for as of lines behind the file.
        if (error.detail().find("name expression") == std::string::npos) throw;
        const std::vector<std::string> unknown = unknown_names(source.name_expressions, request, error.detail());
        if (unknown.empty()) throw;  // overloads, or wrong arguments of a template
        if (all && unknown.size() < source.name_expressions.size()) {
            std::erase_if(source.name_expressions, [&](const std::string& name) { return contains(unknown, name); });
            return compiled_of(request, source, false);
        }
        std::vector<std::string> there = request.kernels;
        std::erase_if(there, [&](const std::string& name) { return contains(unknown, name); });
        throw RequestError(fmt::format("{} has no kernel {}; there is {}", request.path, fmt::join(unknown, ", "),
                                       there.empty() ? "none" : fmt::format("{}", fmt::join(there, ", "))));
    }
}

std::string sizes_text(std::span<const ModuleParameter> parameters) {
    std::string out;
    for (const ModuleParameter& p : parameters) out += fmt::format("{}{} {} B", out.empty() ? "" : ", ", name_of(p.kind), p.bytes);
    return out.empty() ? "none" : out;
}

void check_arguments(const ModuleFunction& function, std::span<const ModuleArgument> arguments) {
    const auto& declared = function.parameters;
    if (arguments.size() != declared.size())
        throw RequestError(fmt::format("{} takes {} arguments ({}); given are {}", function.name, declared.size(), sizes_text(declared),
                                       arguments.size()));
    for (std::size_t i = 0; i < declared.size(); ++i) {
        if (!arguments[i].value) throw RequestError(fmt::format("argument {} of {} is null", i + 1, function.name));
        if (arguments[i].bytes != std::size_t(declared[i].bytes))
            throw RequestError(fmt::format("argument {} of {} has {} B; the kernel takes {} B ({})", i + 1, function.name,
                                           arguments[i].bytes, declared[i].bytes, sizes_text(declared)));
    }
}

}  // namespace

std::string_view name_of(ParameterKind kind) {
    constexpr std::string_view names[] = {"pointer", "int", "uint", "float", "struct"};
    return names[int(kind)];
}

struct SourceModule::State {
    struct Loaded {
        std::vector<Function> kernels;
        std::vector<int> max_threads;
        DeviceInfo device;
    };

    std::string arch;
    std::vector<std::string> left_out;
    std::vector<ModuleFunction> functions;
    Compiled compiled;
    InContexts<Loaded> contexts;

    const Loaded& here() const {
        return contexts.of_module(compiled, arch, [&](const Module& module, int device) {
            Loaded out;
            out.device = Driver::instance().device(device);
            for (std::size_t i = 0; i < functions.size(); ++i) {
                const Function& made = out.kernels.emplace_back(module.function(compiled.lowered_names[i]));
                out.max_threads.push_back(made.attributes().max_threads);
                // Once for any launch: it takes nothing that a launch does not ask for.
                const auto most = out.device.shared_per_cta_bytes - functions[i].entry.static_shared_bytes;
                if (most > 0) made.allow_shared(int(most));
            }
            return out;
        });
    }
};

const std::string& SourceModule::arch() const { return state_->arch; }
std::span<const ModuleFunction> SourceModule::functions() const { return state_->functions; }
std::span<const std::string> SourceModule::left_out() const { return state_->left_out; }

int SourceModule::find(std::string_view name) const {
    std::vector<int> found;
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < state_->functions.size(); ++i) {
        const std::string& own = state_->functions[i].name;
        if (own == name) return int(i);
        if (base_name(own) == name) found.push_back(int(i));
        names.push_back(own);
    }
    if (found.size() == 1) return found.front();
    throw RequestError(fmt::format("there is {} function {}; there is {}", found.empty() ? "no" : "more than one", printable(name),
                                   fmt::join(names, ", ")));
}

void SourceModule::load() const { state_->here(); }

void SourceModule::launch(int function, const Launch& launch, std::span<const ModuleArgument> arguments) const {
    if (function < 0 || std::size_t(function) >= state_->functions.size())
        throw RequestError(fmt::format("there is no function {}; the module has {}, counted from 0", function, state_->functions.size()));
    const ModuleFunction& what = state_->functions[std::size_t(function)];
    check_arguments(what, arguments);
    const std::int64_t threads = std::int64_t{launch.block_x} * launch.block_y * launch.block_z,
                       ctas = std::int64_t{launch.cluster_x} * launch.cluster_y * launch.cluster_z;
    if (threads < 1 || threads > max_block_extents[0])
        throw RequestError(fmt::format("--block: {} threads; a CTA has 1 to {}", threads, max_block_extents[0]));
    if (ctas < 1 || ctas > max_cluster_extents[0])
        throw RequestError(fmt::format("--cluster: {} CTAs; a cluster has 1 to {}", ctas, max_cluster_extents[0]));
    if (launch.grid_x % launch.cluster_x || launch.grid_y % launch.cluster_y || launch.grid_z % launch.cluster_z)
        throw RequestError("--cluster: the grid is not made of whole clusters");
    if (launch.grid_x == 0 || launch.grid_y == 0 || launch.grid_z == 0) return;
    const State::Loaded& loaded = state_->here();
    const Function& kernel = loaded.kernels[std::size_t(function)];
    check_fits(what.name, launch, what.entry, loaded.max_threads[std::size_t(function)], loaded.device);
    check_clusters(kernel, launch, what.entry, loaded.device);
    std::vector<void*> pointers;
    for (const ModuleArgument& argument : arguments) pointers.push_back(const_cast<void*>(argument.value));
    launch_raw(kernel, launch, pointers.data());
    keep_for_capture(launch.stream, state_);
}

SourceModule load(const std::string& source, std::vector<std::string> functions, const LoadOptions& options) {
    const SourceRequest request = request_of(source, options);
    const bool all = functions.empty();
    choose(functions, request);
    auto state = std::make_shared<SourceModule::State>();
    state->arch = arch_of(options);
    state->left_out = request.left_out;
    Source program = source_of(request, state->arch);
    for (std::string& name : program.name_expressions = functions) name = with_namespaces(name, request);
    state->compiled = compiled_of(request, program, all);
    if (all) functions = program.name_expressions;
    program.text.insert(0, kinds_text);
    for (std::size_t i = 0; i < functions.size(); ++i)
        program.text += fmt::format("extern \"C\" {{ __device__ rooftile_kinds::List<decltype({})> rooftile_kinds_{}; }}\n",
                                    program.name_expressions[i], i);
    const std::string ptx = compile_to_ptx(program);
    for (std::size_t i = 0; i < functions.size(); ++i) {
        ModuleFunction& made = state->functions.emplace_back();
        made.name = functions[i];
        made.entry = state->compiled.entries[i];
        const std::vector<int> sizes = entry_parameters(ptx, state->compiled.lowered_names[i]);
        const std::vector<ParameterKind> kinds = kinds_of(ptx, i, sizes.size());
        for (std::size_t p = 0; p < sizes.size(); ++p) made.parameters.push_back({sizes[p], kinds[p]});
    }
    return SourceModule(std::move(state));
}

}  // namespace rooftile
