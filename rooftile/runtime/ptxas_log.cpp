// What ptxas says with -v, read; and the parallel compile of nvrtc.hpp.
#include <algorithm>
#include <charconv>
#include <exception>

#include <fmt/core.h>

#include "rooftile/core/in_parallel.hpp"
#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile {
namespace {

/// The number just before `words` in `line` ("24 bytes spill stores"); 0 where it does not say.
int number_before(std::string_view line, std::string_view words) {
    std::size_t at = line.find(words);
    if (at == line.npos) return 0;
    std::size_t begin = at;
    while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
    int value = 0;
    std::from_chars(line.data() + begin, line.data() + at, value);
    return value;
}

/// What follows `words` up to `end`, or nothing.
std::string_view between(std::string_view line, std::string_view words, char end) {
    std::size_t at = line.find(words);
    if (at == line.npos) return {};
    line.remove_prefix(at + words.size());
    return line.substr(0, line.find(end));
}

template <class F>
void for_each_line(std::string_view text, F f) {
    while (!text.empty()) {
        std::size_t end = std::min(text.find('\n'), text.size());
        f(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

/// Where "C75dd" or "C76dd" stands in `line`, else npos.
std::size_t find_refused_code(std::string_view line) {
    auto digit = [&](std::size_t i) { return i < line.size() && line[i] >= '0' && line[i] <= '9'; };
    for (std::string_view family : {"C75", "C76"})
        for (std::size_t at = line.find(family); at != line.npos; at = line.find(family, at + 1))
            if (digit(at + 3) && digit(at + 4) && !digit(at + 5)) return at;
    return line.npos;
}

}  // namespace

std::vector<EntryInfo> parse_entries(std::string_view log) {
    std::vector<EntryInfo> entries;
    for_each_line(log, [&](std::string_view line) {
        if (auto name = between(line, "Compiling entry function '", '\''); !name.empty()) {
            entries.push_back({});
            entries.back().name = name;
        } else if (entries.empty()) {
            return;
        } else if (line.find("bytes stack frame") != line.npos) {
            // Functions that were not inlined have lines of their own; their frames are the entry's too.
            EntryInfo& entry = entries.back();
            entry.stack_bytes += number_before(line, " bytes stack frame");
            entry.spill_store_bytes += number_before(line, " bytes spill stores");
            entry.spill_load_bytes += number_before(line, " bytes spill loads");
        } else if (line.find("Used ") != line.npos && line.find(" registers") != line.npos) {
            EntryInfo& entry = entries.back();
            entry.registers = number_before(line, " registers");
            entry.barriers = number_before(line, " barriers");
            entry.static_shared_bytes = number_before(line, " bytes smem");
            entry.local_bytes = number_before(line, " bytes lmem");
            entry.constant_bytes = number_before(line, " bytes cmem[0]");
        }
    });
    return entries;
}

static bool spills(const EntryInfo& entry) { return entry.spill_store_bytes || entry.spill_load_bytes; }

std::optional<std::string> unclean(const Compiled& compiled) {
    std::optional<std::string> reason;
    for_each_line(compiled.log, [&](std::string_view line) {
        if (!reason && find_refused_code(line) != line.npos) reason = "ptxas: " + std::string(line);
    });
    if (reason) return reason;
    for (const EntryInfo& entry : compiled.entries) {
        if (spills(entry))
            return fmt::format("registers spill: {} B stored, {} B loaded a thread at {} registers",
                               entry.spill_store_bytes, entry.spill_load_bytes, entry.registers);
        if (entry.stack_bytes) return fmt::format("a stack frame of {} B a thread", entry.stack_bytes);
        if (entry.local_bytes) return fmt::format("local memory of {} B a thread", entry.local_bytes);
    }
    return std::nullopt;
}

void check_clean(const Compiled& compiled, std::string_view name) {
    const auto reason = unclean(compiled);
    if (!reason) return;
    const std::string message = fmt::format("{} compiles, but not as planned: {}", name, *reason);
    if (std::ranges::any_of(compiled.entries, spills))
        throw SpillError(ExitCode::compile_failed, message, compiled.log);
    throw Error(ExitCode::compile_failed, message, compiled.log);
}

std::vector<CompileOutcome> compile_all(std::span<const Source> sources, unsigned threads) {
    std::vector<CompileOutcome> outcomes(sources.size());
    in_parallel(sources.size(), threads, [&](std::size_t i) {
        try {
            outcomes[i] = compile_source(sources[i]);
        } catch (const Error& error) { outcomes[i] = error; } catch (const std::exception& error) {
            outcomes[i] = Error(ExitCode::internal, error.what());
        }
    });
    return outcomes;
}

}  // namespace rooftile
