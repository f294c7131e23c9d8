#include "rooftile/step/report.hpp"

#include <algorithm>
#include <charconv>
#include <map>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "rooftile/error.hpp"
#include "rooftile/runtime/child.hpp"
#include "rooftile/runtime/disassemble.hpp"

namespace rooftile {
namespace {

std::int64_t number(std::string_view text, int base = 10) {
    std::int64_t out = 0;
    std::from_chars(text.data(), text.data() + text.size(), out, base);
    return out;
}

/// Lines of "key<TAB>value"; of a key that is there twice the last, but for lists.
struct Report {
    std::map<std::string, std::string, std::less<>> facts;
    std::vector<std::string> groups, watches;
    explicit Report(std::string_view text) {
        for (const std::string& line : parts_of(text, '\n')) {
            const std::size_t tab = std::min(line.find('\t'), line.size());
            const std::string key = line.substr(0, tab), value = line.substr(std::min(tab + 1, line.size()));
            if (key == "reset") facts.clear(), groups.clear();
            else if (key == "group") groups.push_back(value);
            else if (key == "watch") watches.push_back(value);
            else facts[key] = value;
        }
    }
    bool has(std::string_view key) const { return facts.find(key) != facts.end(); }
    std::string text(std::string_view key) const {
        const auto at = facts.find(key);
        return at == facts.end() ? "" : at->second;
    }
    std::int64_t number(std::string_view key) const { return rooftile::number(text(key)); }
    std::vector<std::string> parts(std::string_view key) const { return parts_of(text(key), ' '); }
};

std::string line_text(std::string_view text, int line) {
    const std::vector<std::string> lines = parts_of(text, '\n');
    if (line < 1 || std::size_t(line) > lines.size()) return "";
    const std::string& whole = lines[std::size_t(line) - 1];
    const std::size_t first = whole.find_first_not_of(" \t"), last = whole.find_last_not_of(" \t\r");
    return first == whole.npos ? "" : whole.substr(first, last - first + 1);
}

/// Addresses of the program as lines of the user's files.
class Places {
  public:
    Places(const StepRequest& request, const std::string& program, const std::vector<std::string>& pcs) : request_(request) {
        if (pcs.empty()) return;
        const auto tool = find_program("addr2line");
        if (!tool) throw RequestError("step finds no addr2line on PATH, which finds the lines; it comes with g++'s binutils");
        std::vector<std::string> command = {*tool, "-a", "-i", "-e", program};
        command.insert(command.end(), pcs.begin(), pcs.end());
        std::string pc;
        for (const std::string& line : parts_of(run_child(command).out, '\n')) {
            if (line.starts_with("0x")) {
                pc = line;
                continue;
            }
            const std::size_t colon = line.rfind(':');
            if (colon == line.npos || places_[number(pc.substr(2), 16)].line > 0) continue;  // the innermost of the user's
            places_[number(pc.substr(2), 16)] = user_place(line.substr(0, colon), int(number(line.substr(colon + 1))));
        }
    }
    StepPlace of(const std::string& pc) const {
        const auto at = places_.find(number(pc, 16));
        return at == places_.end() ? StepPlace() : at->second;
    }

  private:
    StepPlace user_place(const std::string& file, int line) const {
        const auto is = [&](const std::string& name) {
            return file.ends_with(name) && (file.size() == name.size() || file[file.size() - name.size() - 1] == '/' || name[0] == '/');
        };
        if (line < 1) return {};
        for (const auto& [name, text] : request_.source.headers)
            if (is(name)) return {name, line_text(text, line), line};
        const std::string& path = request_.source.path;
        return is(path) ? StepPlace{path, line_text(request_.whole, line), line} : StepPlace{};
    }
    const StepRequest& request_;
    std::map<std::int64_t, StepPlace> places_;
};

/// "4-7,12" stays; of a place "gelu.cu:12".
std::string named(const StepPlace& at) { return at.line > 0 ? fmt::format("{}:{}", at.file, at.line) : "a place that has no line"; }

std::string triple(const std::array<unsigned, 3>& p) { return fmt::format("({},{},{})", p[0], p[1], p[2]); }
std::string block_text(const StepRequest& r, std::int64_t cta) {
    return triple(place_of(cta, r.source.launch.grid_x, r.source.launch.grid_y));
}
std::string thread_text(const StepRequest& r, std::int64_t thread) {
    return triple(place_of(thread, r.source.launch.block_x, r.source.launch.block_y));
}

/// What runtime.cc calls an object: "tensor 1 - 4000 16" or "shared 0 tile 4224 4300", with the access's bytes.
struct Object {
    std::string kind, name;
    std::int64_t index = 0, extent = 0, offset = 0, bytes = 1;
    explicit Object(const Report& report) {
        const auto parts = report.parts("object"), access = report.parts("access");
        if (parts.size() == 5)
            kind = parts[0], index = number(parts[1]), name = parts[2], extent = number(parts[3]), offset = number(parts[4]);
        if (!access.empty()) bytes = std::max<std::int64_t>(1, number(access[0]));
    }
    std::string text(const StepRequest& request) const {
        if (kind == "tensor") {
            const StepTensor& t = request.tensors[std::size_t(index)];
            const std::int64_t element = offset >= 0 ? offset / t.bytes : (offset - t.bytes + 1) / t.bytes;
            return element_text(t, element);
        }
        const std::string what = kind == "dynamic" ? "dynamic shared memory" : "shared " + name;
        return kind.empty() ? "memory" : fmt::format("{} at byte {} (element {} of {} B)", what, offset, offset / bytes, bytes);
    }
    std::string extents(const StepRequest& request) const {
        if (kind == "tensor") {
            const StepTensor& t = request.tensors[std::size_t(index)];
            const std::int64_t elements = elements_of(t.shape);
            return fmt::format("{}{} has {}", t.type, text_of(t.shape),
                               elements == 0   ? "no elements"
                               : elements == 1 ? "element 0 alone"
                                               : fmt::format("elements 0 to {}", elements - 1));
        }
        return kind == "dynamic" ? fmt::format("--shared gives {} B", extent) : fmt::format("it has {} B", extent);
    }
};

std::string doing(const Report& report) {
    const auto access = report.parts("access");
    const std::int64_t how = access.size() == 2 ? number(access[1]) : 0;
    return how == 0 ? "reads" : how == 1 ? "writes" : "updates by an atomic";
}
std::string did(std::int64_t how) { return how == 0 ? "read" : how == 1 ? "wrote" : "updated by an atomic"; }

void describe_race(const StepRequest& request, const Report& report, const Object& object, StepFault& fault) {
    const StepFault::Other& other = *fault.other;
    const bool elsewhere = other.cta != fault.cta;
    const std::string whose = elsewhere
                                  ? fmt::format("thread {} of block {}", thread_text(request, other.thread), block_text(request, other.cta))
                                  : fmt::format("thread {}", thread_text(request, other.thread));
    fault.message = fmt::format("race: {} {}, which {} {} at {}; {}", doing(report), object.text(request), whose, other.did,
                                named(other.at), elsewhere ? "nothing orders the blocks of a launch" : "no barrier is between them");
    constexpr int lanes = 32;
    const Launch& l = request.source.launch;
    const bool one_warp = l.block_x * l.block_y * l.block_z <= lanes;
    fault.advice = elsewhere ? "use an atomic, or let one block write each element and a second launch read it"
                   : fault.thread / lanes != other.thread / lanes
                       ? "put __syncthreads() between the two lines, where all threads reach it"
                       : fmt::format("put {} between them: since Volta threads of a warp do not run in step",
                                     one_warp ? "__syncwarp()" : "__syncthreads(), or __syncwarp() where all of it stays within a warp,");
}

void describe(const StepRequest& request, const Report& report, StepFault& fault) {
    const Object object(report);
    const std::string& kind = fault.kind;
    std::string type = report.text("type");  // 'const struct float4'
    for (const std::string_view word : {"const ", "volatile ", "struct "})
        if (const std::size_t at = type.find(word); at != type.npos) type.erase(at, word.size());
    if (kind == "outside") {
        fault.message = fmt::format("out of bounds: {} {}; {}", doing(report), object.text(request), object.extents(request));
        fault.advice = object.kind == "dynamic" ? "give --shared as many bytes as the host code passes at the launch, or bound the index"
                                                : "compare the index with the extent before the access";
    } else if (kind == "index") {
        fault.message = fmt::format("out of bounds: index {} of an array of type {}", report.text("index"), type);
        fault.advice = "bound the index by the array's extent";
    } else if (kind == "wild") {
        fault.message = fmt::format("out of bounds: {} address 0x{}, which is in no tensor and no shared memory", doing(report),
                                    report.text("address"));
        fault.advice = "is the pointer one of the parameters, with an index that did not overflow?";
    } else if (kind == "misaligned") {
        const std::int64_t alignment = report.number("alignment");
        fault.message = fmt::format("misaligned: an access of type {} at {}, whose address is no multiple of {} B", type,
                                    object.text(request), alignment);
        fault.advice = fmt::format("let index and row length be multiples of {} B, or use a narrower type", alignment);
    } else if (kind == "unwritten") {
        fault.message = fmt::format("never written: reads {}, which no thread of the block has written", object.text(request));
        fault.advice = "shared memory has no value at a block's start: let a thread write it, with a barrier between";
    } else if (kind == "race") describe_race(request, report, object, fault);
    else if (kind == "divergent") {
        fault.message = "divergent barrier: not all threads reach the same one";
        fault.advice = "move the barrier out of the branch, and let no thread return before it";
    } else if (kind == "mask") {
        fault.message = fmt::format("the thread's lane is not in the mask 0x{} that it gives", report.text("mask"));
        fault.advice = "name by the mask all lanes that reach the call";
    } else if (kind == "endless") {
        fault.message = fmt::format("no end after {} s: an endless loop, a wait that nothing ends, or more work than that",
                                    request.source.timeout_seconds);
        fault.advice = "--timeout S allows more";
    } else if (kind == "division") fault.message = "an integer is divided by 0, or the quotient has no value";
    else if (kind == "stack") fault.message = "a thread needs more than 240 KiB of stack: an endless recursion, or large local arrays";
    else if (kind == "local")
        fault.message =
            fmt::format("reaches local memory of thread {}: no thread has another's", thread_text(request, report.number("owner")));
    else if (kind == "lane")
        fault.message = report.text("message"), fault.advice = "let all lanes of the mask reach the call, with the branch after it";
    else if (kind == "assert") fault.message = "assertion failed: " + report.text("message");
    else fault.message = fmt::format("stops: {}", report.has("message") ? report.text("message") : "a trap, or an abort");
}

}  // namespace

std::vector<std::string> parts_of(std::string_view text, char at) {
    std::vector<std::string> out;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(at), text.size());
        out.emplace_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return out;
}

std::array<unsigned, 3> place_of(std::int64_t index, unsigned x, unsigned y) {
    return {unsigned(index % x), unsigned(index / x % y), unsigned(index / x / y)};
}

std::string element_text(const StepTensor& t, std::int64_t element) {
    if (element < 0 || element >= elements_of(t.shape)) return fmt::format("element {} of {}", element, t.name);
    std::vector<std::int64_t> at(t.shape.size());
    for (std::size_t i = at.size(); i-- > 0; element /= t.shape[i]) at[i] = element % t.shape[i];
    return fmt::format("{}[{}]", t.name, fmt::join(at, ","));
}

std::string refusal_of(std::string_view report) { return Report(report).text("mismatch"); }

StepOutcome outcome_of(const StepRequest& request, std::string_view text, const std::string& program) {
    const Report report(text);
    StepOutcome out;
    const auto ctas = report.parts("ctas");
    if (ctas.size() == 2) out.stepped = number(ctas[0]), out.ctas = number(ctas[1]);
    for (const std::string& line : report.watches) {
        const auto parts = parts_of(line, '\t');
        if (parts.size() == 4) out.watched.push_back({int(number(parts[0])), number(parts[1]), parts[2], parts[3]});
    }
    if (!report.has("fault")) return out;
    StepFault fault;
    fault.kind = report.text("fault");
    fault.cta = report.number("cta");
    fault.thread = int(report.number("thread"));
    // A return address is behind its call; where a signal came, the first is the instruction itself.
    const bool by_signal =
        fault.kind == "endless" || fault.kind == "division" || fault.kind == "stack" || (fault.kind == "wild" && report.has("last_pc"));
    const auto before = [](const std::string& pc, bool itself) {
        return fmt::format("{:x}", std::max<std::int64_t>(0, number(pc, 16) - (itself ? 0 : 1)));
    };
    std::vector<std::string> pcs;
    for (const std::string& pc : report.parts("pc")) pcs.push_back(before(pc, by_signal && pcs.empty()));
    const std::size_t own = pcs.size();
    const std::string last = before(report.text("last_pc"), false), others = before(report.text("other_pc"), false);
    pcs.insert(pcs.end(), {last, others});
    for (const std::string& group : report.groups) pcs.push_back(before(parts_of(group, ' ').front(), false));
    const Places places(request, program, pcs);
    std::vector<StepPlace> chain;
    for (std::size_t i = 0; i < own; ++i)
        if (const StepPlace at = places.of(pcs[i]); at.line > 0) chain.push_back(at);
    if (!chain.empty()) fault.at = chain.front(), fault.called_from.assign(chain.begin() + 1, chain.end());
    else fault.at = places.of(last);
    if (fault.kind == "ptx" || fault.kind == "refused")
        throw RequestError(
            fmt::format("{}: {} cannot be stepped", named(fault.at),
                        fault.kind == "ptx" ? fmt::format("inline PTX ({})", report.text("message")) : report.text("message")));
    if (report.has("other_pc"))
        fault.other = {report.number("other_cta"), int(report.number("other_thread")), did(report.number("other_access")),
                       places.of(others)};
    for (std::size_t i = 0; i < report.groups.size(); ++i) {
        const auto parts = parts_of(report.groups[i], ' ');
        const std::size_t threads = report.groups[i].find(' ', report.groups[i].find(' ') + 1);
        constexpr const char* states[] = {"runs", "waits at a barrier", "waits for its warp", "ended"};
        fault.waiting.push_back({report.groups[i].substr(std::min(threads + 1, report.groups[i].size())),
                                 states[std::size_t(number(parts[1])) % 4], places.of(pcs[own + 2 + i])});
    }
    describe(request, report, fault);
    out.fault = std::move(fault);
    return out;
}

void throw_compile_error(const SourceRequest& source, const std::string& log, const std::string& compiler) {
    std::string first;
    for (const std::string& line : parts_of(log, '\n')) {
        if (line.find("error:") == line.npos) continue;
        constexpr std::string_view fatal = ": fatal error: ";
        const std::size_t missing = line.find(": No such file or directory"), at = line.find(fatal);
        if (missing != line.npos && at != line.npos)
            throw RequestError(fmt::format("{}: #include <{}>: no such header beside the file or in --include", line.substr(0, at),
                                           line.substr(at + fatal.size(), missing - at - fatal.size())));
        if (const std::size_t refused = line.find(refused_header); refused != line.npos)
            throw RequestError(fmt::format(
                "{}: #include <{}> cannot be stepped: fragments of tensor cores and libraries of device code have no text for a CPU",
                line.substr(0, line.find(": ")), line.substr(refused + refused_header.size())));
        first = line;
        break;
    }
    if (first.find("rooftile_step.cc:") == 0)
        throw Error(ExitCode::compile_failed,
                    fmt::format("{} has no kernel {}: --entry names a __global__ function as C++ calls it, templates with their arguments",
                                source.path, source.entry));
    throw Error(ExitCode::compile_failed,
                fmt::format("{} refuses the kernel's text for the CPU: {}", compiler, first.empty() ? "see below" : first), log);
}

std::string step_text(const StepRequest& request, const StepOutcome& outcome, const Terminal& terminal) {
    const Launch& launch = request.source.launch;
    std::string out =
        terminal.paint(fmt::format("{} of {}, stepped on the CPU: {}", request.source.entry, request.source.path, launch_text(launch)),
                       Tone::strong)
        + "\n\n";
    for (const StepOutcome::Watched& w : outcome.watched)
        out += displayable(fmt::format("  {}:{}  block {}  {} = {}", request.source.path, w.line, block_text(request, w.cta), w.expression,
                                       w.value),
                           terminal.utf8)
               + "\n";
    if (!outcome.watched.empty()) out += "\n";
    for (const std::string& line : parts_of(outcome.printed, '\n')) out += "  printed  " + displayable(line, terminal.utf8) + "\n";
    if (!outcome.printed.empty()) out += "\n";
    std::vector<Entry> entries;
    if (outcome.fault) {
        const StepFault& f = *outcome.fault;
        entries.push_back({"fault", f.message, ""});
        entries.push_back({"at", f.at.line > 0 ? fmt::format("{}: {}", named(f.at), f.at.text) : named(f.at), ""});
        for (const StepPlace& at : f.called_from) entries.push_back({"called from", fmt::format("{}: {}", named(at), at.text), ""});
        if (f.kind != "divergent")
            entries.push_back({"thread", fmt::format("{} of block {}", thread_text(request, f.thread), block_text(request, f.cta)), ""});
        else entries.push_back({"block", block_text(request, f.cta), ""});
        if (f.other) entries.push_back({"other", fmt::format("{}: {}", named(f.other->at), f.other->at.text), ""});
        for (const StepFault::Group& g : f.waiting)
            entries.push_back(
                {"threads " + g.threads, g.at.line > 0 ? fmt::format("{}: {}: {}", g.state, named(g.at), g.at.text) : g.state, ""});
        if (!f.advice.empty()) entries.push_back({"next", f.advice, ""});
    } else {
        entries.push_back(
            {"faults",
             "none: accesses in bounds and aligned, shared memory written before it is read, no races, all threads at each barrier", ""});
    }
    entries.push_back({"stepped",
                       fmt::format("{} of {} blocks{}", outcome.stepped, outcome.ctas,
                                   outcome.fault                     ? ""
                                   : request.cta && outcome.ctas > 1 ? "; without --cta all are stepped"
                                   : !request.cta && outcome.stepped < outcome.ctas
                                       ? fmt::format(" in {} s; --timeout S allows more", request.source.timeout_seconds)
                                       : ""),
                       ""});
    for (std::size_t i = 0; i < request.tensors.size() && !outcome.fault; ++i) {
        const StepTensor& t = request.tensors[i];
        const StepOutcome::Changed& c = outcome.changed[i];
        if (c.elements > 0)
            entries.push_back(
                {t.name, fmt::format("{} of {} elements changed; it begins {}", c.elements, elements_of(t.shape), fmt::join(c.first, ", ")),
                 ""});
    }
    if (outcome.right) entries.push_back({"reference", *outcome.right ? "right at every element" : "WRONG: " + outcome.comparison, ""});
    else if (!outcome.comparison.empty()) entries.push_back({"reference", outcome.comparison, ""});
    return out + entries_text(entries, 2, terminal);
}

Json step_document(const DocumentContext& context, const StepRequest& request, const StepOutcome& outcome) {
    const Launch& l = request.source.launch;
    const auto at = [](const StepPlace& p) -> Json {
        return p.line > 0 ? Json{{"file", p.file}, {"line", p.line}, {"text", p.text}} : Json();
    };
    const auto block = [&](std::int64_t cta) { return place_of(cta, l.grid_x, l.grid_y); };
    const auto thread = [&](int t) { return place_of(t, l.block_x, l.block_y); };
    Json fault;
    if (outcome.fault) {
        const StepFault& f = *outcome.fault;
        fault = {{"kind", f.kind},
                 {"message", f.message},
                 {"advice", text_or_null(f.advice)},
                 {"at", at(f.at)},
                 {"called_from", Json::array()},
                 {"block", block(f.cta)},
                 {"thread", thread(f.thread)},
                 {"other", nullptr},
                 {"waiting", Json::array()}};
        for (const StepPlace& p : f.called_from) fault["called_from"].push_back(at(p));
        if (f.other)
            fault["other"] = {
                {"block", block(f.other->cta)}, {"thread", thread(f.other->thread)}, {"did", f.other->did}, {"at", at(f.other->at)}};
        for (const StepFault::Group& g : f.waiting)
            fault["waiting"].push_back({{"threads", g.threads}, {"state", g.state}, {"at", at(g.at)}});
    }
    Json tensors = Json::array(), watched = Json::array();
    for (std::size_t i = 0; i < request.tensors.size(); ++i) {
        const StepTensor& t = request.tensors[i];
        tensors.push_back({{"name", t.name},
                           {"type", t.type},
                           {"shape", t.shape},
                           {"changed", outcome.changed[i].elements},
                           {"first", outcome.changed[i].first}});
    }
    for (const StepOutcome::Watched& w : outcome.watched)
        watched.push_back({{"line", w.line}, {"block", block(w.cta)}, {"expression", w.expression}, {"value", w.value}});
    Json reference;
    if (request.reference)
        reference = {{"right", outcome.right ? Json(*outcome.right) : Json()}, {"message", text_or_null(outcome.comparison)}};
    return {{"schema", "rooftile/step/1"},
            {"context", context_json(context)},
            {"source", {{"file", request.source.path}, {"entry", request.source.entry}, {"left_out", request.source.left_out}}},
            {"launch",
             {{"grid", {l.grid_x, l.grid_y, l.grid_z}}, {"block", {l.block_x, l.block_y, l.block_z}}, {"shared_bytes", l.shared_bytes}}},
            {"blocks", outcome.ctas},
            {"stepped", outcome.stepped},
            {"fault", fault},
            {"watch_thread", thread(request.thread)},
            {"watched", watched},
            {"printed", outcome.printed},
            {"tensors", tensors},
            {"reference", reference}};
}

}  // namespace rooftile
