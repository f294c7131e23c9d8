#include "rooftile/emit/emit.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/core.h>

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/core/operation.hpp"
#include "rooftile/emit/check.hpp"
#include "rooftile/emit/launcher.hpp"
#include "rooftile/emit/program.hpp"
#include "rooftile/error.hpp"
#include "rooftile/measure/device_operation.hpp"
#include "rooftile/report/code_accesses.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/runtime/kernel_codes.hpp"
#include "rooftile/runtime/recorded_launch.hpp"
#include "rooftile/units.hpp"

namespace rooftile {
namespace {

using namespace emit;

/// Compiled once and launched twice, on the machine's GPU and on one of twice its SMs, by a driver that only writes down.
struct Recorded {
    std::vector<std::pair<Source, Compiled>> texts;
    Recording recording;
    std::size_t workspace_bytes = 0;
    std::string ptx;
    std::vector<KernelCode> codes;
    std::vector<Entry> entries;

    std::size_t launches() const { return recording.launches.size() / 2; }
};

Recorded record(const Machine& machine, const Plan& plan) {
    Recorded out;
    const auto count = [&](const char* key) { return int(machine.count(key).value_or(0)); };
    RecordedDevice device{
        .arch = machine.arch, .sms = std::max(1, count("sm.count")), .shared_per_sm_bytes = 0, .shared_per_cta_bytes = 0};
    if (const auto bytes = machine.number<Bytes>("shared.per_sm")) device.shared_per_sm_bytes = std::int64_t(bytes->value);
    if (const auto bytes = machine.number<Bytes>("shared.per_cta")) device.shared_per_cta_bytes = std::int64_t(bytes->value);
    const auto parameters = [&](std::string_view name) { return entry_parameters(out.ptx, name); };
    const auto tensors = plan.operation->tensors(plan.problem);
    out.recording = record_launches(device, parameters, [&] {
        CompileOptions options;
        options.told = [&](const Source& source, const Compiled& compiled) { out.texts.emplace_back(source, compiled); };
        const CompiledKernel kernel = on_device(*plan.operation).compile(plan, options);
        out.ptx = kernel.ptx();
        out.codes = codes_of(kernel);
        out.entries = on_device(*plan.operation).build_entries(kernel);
        std::vector<void*> pointers;
        for (std::size_t i = 0; i <= tensors.size(); ++i) pointers.push_back(reinterpret_cast<void*>(recorded_address(int(i))));
        void* const workspace = pointers.back();
        pointers.pop_back();
        out.workspace_bytes = kernel.workspace_bytes();
        kernel.launch(nullptr, pointers, out.workspace_bytes > 0 ? workspace : nullptr);
        // What is learnt of a GPU once is learnt again of this one.
        device.sms *= 2;
        kernel.launch(nullptr, pointers, out.workspace_bytes > 0 ? workspace : nullptr);
    });
    // Tables of the second launches are the first ones' again.
    std::erase_if(out.recording.memory, [&](const auto& table) {
        for (std::size_t i = 0; i < out.launches(); ++i)
            for (const std::string& argument : out.recording.launches[i].arguments)
                for (std::size_t at = 0; at + sizeof table.first <= argument.size(); at += sizeof table.first)
                    if (std::memcmp(argument.data() + at, &table.first, sizeof table.first) == 0) return false;
        return true;
    });
    return out;
}

/// `name` as `other`, where it is a word.
std::string renamed(const std::string& text, const std::string& name, const std::string& other) {
    std::string out;
    for (const Token& t : tokens_of(text)) out += t.kind == TokenKind::word && t.text == name ? other : t.text;
    return out;
}

/// All texts as one, each once: what a later one declares of its own has a namespace of its own. Each kernel's name stands where it did.
Source one_source(std::vector<std::pair<Source, Compiled>>& texts) {
    Source out = texts.front().first;
    int number = 0;
    for (auto& [source, _] : texts) {
        ++number;
        if (number > 1 && out.text.find(source.text) == std::string::npos) {
            constexpr std::string_view open = "namespace rooftile::";
            for (std::size_t at = source.text.find(open); at != std::string::npos; at = source.text.find(open, at + 1)) {
                const std::size_t begin = at + open.size();
                const std::string space = source.text.substr(begin, source.text.find_first_of(" :{", begin) - begin);
                if (out.text.find(std::string(open) + space + " {") == std::string::npos) continue;
                const std::string other = fmt::format("{}_{}", space, number);
                source.text = renamed(source.text, space, other);
                for (std::string& name : source.name_expressions) name = renamed(name, space, other);
            }
            out.text += source.text;
        }
        for (const std::string& name : source.name_expressions)
            if (std::ranges::find(out.name_expressions, name) == out.name_expressions.end()) out.name_expressions.push_back(name);
    }
    return out;
}

/// What the compiler says of conditions: it knows constants, functions and types.
std::map<std::pair<std::string, std::string>, bool> decided(const Source& source, const Program& program) {
    std::map<std::pair<std::string, std::string>, bool> out;
    std::vector<Program::Condition> asked = program.conditions();
    // Names that only a statement knows make the compiler refuse the line: those are left open.
    for (int tries = 0; tries < 8 && !asked.empty(); ++tries) {
        Source probe = source;
        probe.name = "conditions";
        probe.text += "\n";
        std::vector<std::size_t> line_of;
        auto line = std::size_t(std::ranges::count(probe.text, '\n'));
        for (const Configuration& c : program.configurations()) {
            probe.text += fmt::format("namespace rooftile {{ constexpr {} = {}; }}\n", c.type + " emitted_" + c.name, c.text());
            ++line;
        }
        std::string all;
        for (std::size_t i = 0; i < asked.size(); ++i) {
            std::string names;
            for (const auto& [parameter, configuration] : program.parameters())
                names += fmt::format("constexpr auto {} = rooftile::emitted_{}; ", parameter, configuration);
            const std::string scope = asked[i].scope;
            probe.text += fmt::format("namespace {} {{ namespace emitted_{} {{ {}constexpr bool answer = bool({}); }} }}\n",
                                      scope.empty() ? "rooftile" : scope, i, names, asked[i].text);
            line_of.push_back(++line);
            all += fmt::format(", {}::emitted_{}::answer", scope.empty() ? "rooftile" : scope, i);
        }
        probe.text += "extern \"C\" __device__ unsigned char emitted_answers[] = {2" + all + "};\n";
        probe.name_expressions = {"emitted_answers"};
        try {
            const std::string ptx = compile_to_ptx(probe);
            const std::size_t at = ptx.find("emitted_answers["), open = ptx.find('{', at), close = ptx.find('}', open);
            if (at == ptx.npos || close == ptx.npos) return out;
            std::size_t from = ptx.find(',', open);
            for (const Program::Condition& c : asked) {
                out[{c.scope, c.text}] = ptx.find_first_not_of(" ,", from) < close && ptx[ptx.find_first_not_of(" ,", from)] == '1';
                from = ptx.find(',', from + 1);
                if (from == ptx.npos) break;
            }
            return out;
        } catch (const Error& error) {
            std::set<std::size_t> bad;
            const std::string log = error.detail();
            for (std::size_t at = log.find("conditions("); at != log.npos; at = log.find("conditions(", at + 1)) {
                const std::size_t number = std::size_t(std::atoll(log.c_str() + at + 11));
                const std::size_t end = log.find(')', at);
                if (log.compare(end + 1, 7, ": error") == 0) bad.insert(number);
            }
            if (bad.empty()) return out;
            std::vector<Program::Condition> rest;
            for (std::size_t i = 0; i < asked.size(); ++i)
                if (!bad.contains(line_of[i])) rest.push_back(asked[i]);
            if (rest.size() == asked.size()) return out;
            asked = std::move(rest);
        }
    }
    return out;
}

/// The kernels' instructions, without names that C++ gave: what is the same code is the same text.
std::vector<std::string> instructions(const std::string& ptx) {
    std::vector<std::string> out;
    bool inside = false;
    for (std::size_t at = 0; at < ptx.size();) {
        const std::size_t end = std::min(ptx.find('\n', at), ptx.size());
        std::string line = ptx.substr(at, end - at);
        at = end + 1;
        if (line.find(".entry ") != std::string::npos) out.emplace_back(), inside = true;
        if (!inside || line.empty() || line.starts_with("//") || line.find(".entry ") != std::string::npos) continue;
        const auto drop = [&](std::string_view prefix, std::string_view until) {
            for (std::size_t name = line.find(prefix); name != std::string::npos; name = line.find(prefix, name + 1)) {
                std::size_t behind = name;
                while (behind < line.size() && (std::isalnum(static_cast<unsigned char>(line[behind])) || line[behind] == '_')) ++behind;
                const std::size_t kept = until.empty() ? behind : line.rfind(until, behind);
                line.erase(name + 1, (kept != std::string::npos && kept > name ? kept : behind) - name - 1);
            }
        };
        drop("_Z", "_param_");
        for (std::size_t label = line.find("$L__BB"); label != std::string::npos; label = line.find("$L__BB", label + 1)) {
            std::size_t number = label + 6;
            while (number < line.size() && std::isdigit(static_cast<unsigned char>(line[number]))) line.erase(number, 1);
        }
        out.back() += line + "\n";
        if (line == "}") inside = false;
    }
    std::ranges::sort(out);
    out.erase(std::ranges::unique(out).begin(), out.end());
    return out;
}

std::string commented(const std::string& text, int width = 118) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        std::string line = wrapped(std::string_view(text).substr(at, end - at), width, 4);
        for (std::size_t from = 0; from <= line.size();) {
            const std::size_t to = std::min(line.find('\n', from), line.size());
            std::string one = "// " + line.substr(from, to - from);
            one.erase(one.find_last_not_of(' ') + 1);
            out += one + "\n";
            from = to + 1;
        }
        at = end + 1;
    }
    return out;
}

/// The plan in words: what it computes, why it is as it is, how it lies in registers and shared memory.
std::string head(const PlanSet& plans, const Plan& plan, const Recorded& recorded, const std::string& file, bool compares) {
    const Terminal plain{.color = false, .utf8 = false, .width = 0};
    const Operation& operation = *plan.operation;
    std::string out = operation.heading(plan.problem, plans.machine_id, plans.machine_name, plain);
    while (out.ends_with("\n")) out.pop_back();
    out += "\n\nPlan: " + operation.label(plan);
    if (plan.time_us)
        out += fmt::format("\nPredicted: {} us{}", number_text(*plan.time_us, 3),
                           plan.bound ? fmt::format(", bound by {}", name_of(*plan.bound)) : "");
    for (std::size_t i = 0; i < recorded.launches(); ++i) {
        const Launch& l = recorded.recording.launches[i].launch;
        const EntryInfo& e = recorded.codes[std::min(i, recorded.codes.size() - 1)].entry;
        out += fmt::format("\nLaunch: {} x {} CTAs of {} threads{}, {} B of dynamic shared memory, {} registers a thread at launch",
                           l.grid_x, l.grid_y, l.block_x, l.cluster_x > 1 ? fmt::format(" in clusters of {}", l.cluster_x) : "",
                           l.shared_bytes, e.registers);
    }
    for (const Entry& entry : recorded.entries)
        out += fmt::format("\n{}: {}{}{}", char(std::toupper(entry.name[0])) + entry.name.substr(1), entry.value,
                           entry.remark.empty() ? "" : ", ", entry.remark);
    for (const std::string& line : on_device(operation).story(plan)) out += "\n" + line;
    out += "\n\nTensors, pointers to the first element:";
    for (const TensorInfo& t : operation.tensors(plan.problem)) {
        std::string extents, strides;
        for (std::size_t a = 0; a < t.extents.size(); ++a) {
            extents += fmt::format("{}{}", extents.empty() ? "" : ", ", t.extents[a].most);
            strides += fmt::format("{}{}", strides.empty() ? "" : ", ", t.strides[a]);
        }
        out += fmt::format("\n    {:<12} {}[{}], strides {} elements{}", t.name, t.type, extents, strides.empty() ? "none" : strides,
                           t.role == TensorRole::out ? ", result" : "");
    }
    if (recorded.workspace_bytes > 0) {
        const bool zeroed = std::ranges::any_of(plan.launches, [](const auto& launch) { return launch.before == WorkspaceState::zeroed; });
        out += fmt::format("\n    {:<12} {} B, {}", "workspace", recorded.workspace_bytes,
                           zeroed ? "zero before the first launch; each leaves it ready for the next" : "whatever it holds");
    }
    if (plan.derivation.size() > 0) {
        out += "\n\nWhy (`rooftile plan ... --explain=all` has the formulas):";
        for (const Step& step : plan.derivation) {
            std::string value = step.value ? number_text(*step.value, 4) + (step.unit.empty() ? "" : " " + step.unit) : "unknown";
            std::string line =
                fmt::format("    {} = {}{}{}", step.quantity, value, step.limit.empty() ? "" : ": ", displayable(step.limit, false));
            constexpr std::size_t most = 117;
            if (line.size() > most) line = line.substr(0, line.rfind(' ', most - 4)) + " ...";
            out += "\n" + line;
        }
    }
    const std::string arch = recorded.codes.front().arch;
    out += fmt::format(
        "\n\nCompile:  nvcc -std=c++20 -arch={0} -c {1}\n{2}    nvcc -std=c++20 -arch={0} -DROOFTILE_EMIT_MAIN {1} -o check && "
        "./check{3}",
        arch, file, compares ? "Check:" : "Time: ", compares ? "" : "   # checks no result: there is no plain loop of this problem");
    return commented(out);
}

std::string file_name(const Plan& plan) {
    std::string out = std::string(plan.operation->name()) + "_";
    for (const char c : plan.operation->short_name(plan.problem))
        out += std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' ? c : '_';
    if (out.size() > 100) out.resize(100);
    return out + ".cu";
}

}  // namespace

EmittedFile emit_file(const Machine& machine, const PlanSet& plans, const Plan& plan, const std::function<void()>& turn) {
    const auto turned = [&] { if (turn) turn(); };
    if (!plan.buildable) throw RequestError(fmt::format("plan {} cannot be built: {}", plan.rank, plan.why_not));
    Recorded recorded = record(machine, plan);
    turned();
    const Source source = one_source(recorded.texts);
    std::vector<Parameter> parameters;
    for (const TensorInfo& t : plan.operation->tensors(plan.problem))
        parameters.push_back({identifier_of(t.name), t.role == TensorRole::out});
    const CheckText check = check_text(plan, parameters, recorded.workspace_bytes);
    if (recorded.workspace_bytes > 0) parameters.push_back({"workspace", true});
    Program program(source, check.headers);
    const bool maps = !recorded.recording.maps.empty();
    EmittedFile out;
    out.name = file_name(plan), out.arch = recorded.codes.front().arch;
    for (const KernelCode& code : recorded.codes) out.registers = std::max(out.registers, code.entry.registers);
    const std::string whole = program.text();
    out.lines_before = int(std::ranges::count(whole, '\n'));

    std::set<std::string> words;
    if (maps) words.insert("TensorMap");
    for (const Token& t : tokens_of(check.text))
        if (t.kind == TokenKind::word) words.insert(t.text), words.insert(t.text + "()");
    const std::vector<std::string> planned = instructions(recorded.ptx);
    const auto reduced = [&](bool branches) {
        Program less = program;
        if (branches) {
            const auto answers = decided(source, less);
            turned();
            less.take_branches([&](const std::string& scope, const std::string& text) -> std::optional<bool> {
                const auto found = answers.find({scope, text});
                return found == answers.end() ? std::nullopt : std::optional(found->second);
            });
        }
        less.instantiate_kernels();
        less.take_unused(words);
        less.place_configurations();
        return less;
    };
    // What was taken away is worth nothing where another kernel comes of it: the compiler is asked.
    const auto is_same = [&](const Program& less) {
        Source kept = source;
        kept.text = less.text();
        kept.headers = {};
        kept.name_expressions = less.kernels();
        std::ranges::sort(kept.name_expressions);
        kept.name_expressions.erase(std::ranges::unique(kept.name_expressions).begin(), kept.name_expressions.end());
        try {
            return instructions(compile_to_ptx(kept)) == planned;
        } catch (const Error&) { return false; }
    };
    program = [&] {
        Program less = reduced(true);
        out.is_reduced = is_same(less);
        turned();
        return out.is_reduced ? std::move(less) : reduced(false);
    }();

    std::vector<LaunchText> launches;
    for (std::size_t i = 0; i < recorded.launches(); ++i) {
        LaunchText l{.kernel = {}, .recorded = recorded.recording.launches[i], .at_most_resident = false};
        const Launch &here = l.recorded.launch, &larger = recorded.recording.launches[recorded.launches() + i].launch;
        l.at_most_resident = here.grid_x != larger.grid_x;
        // Kernels of two texts may have one name: launches take them in turn.
        std::vector<std::string> kernels;
        for (const auto& [text, compiled] : recorded.texts)
            for (std::size_t k = 0; k < compiled.lowered_names.size(); ++k)
                if (compiled.lowered_names[k] == l.recorded.lowered_name)
                    kernels.push_back(program.kernels()[std::size_t(std::ranges::find(source.name_expressions, text.name_expressions[k])
                                                                    - source.name_expressions.begin())]);
        const auto before = std::ranges::count_if(
            launches, [&](const LaunchText& other) { return other.recorded.lowered_name == l.recorded.lowered_name; });
        if (kernels.empty()) throw Error(ExitCode::internal, "no text has the kernel " + l.recorded.lowered_name);
        l.kernel = kernels[std::min(std::size_t(before), kernels.size() - 1)];
        launches.push_back(std::move(l));
    }
    const std::string host = launcher_helpers(recorded.recording, maps)
                             + launcher_text(program, launches, recorded.recording, parameters,
                                             "/// On pointers to device memory, in `stream`; neither waits nor allocates.\n");
    program.say_where_functions_run();
    program.guard_kernels(recorded.codes.front().arch);

    out.text = head(plans, plan, recorded, out.name, check.compares)
               + "#include <cuda.h>\n#include <cuda_runtime.h>\n\n#include <cstring>\n#include <initializer_list>\n" + program.includes()
               + "\n" + program.text();
    out.text += "\nnamespace rooftile {\n\n" + host + "\n}  // namespace rooftile\n";
    out.text +=
        "\n#ifdef ROOFTILE_EMIT_MAIN\n// Random data, the kernel, a plain loop for some of its elements, and the time of a launch.\n";
    out.text +=
        "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n#include <cuda_fp8.h>\n\n#include <cmath>\n#include <cstdio>\n#include "
        "<cstdlib>\n\n";
    out.text += program.check_text() + check.text + "#endif\n";
    return out;
}

}  // namespace rooftile
