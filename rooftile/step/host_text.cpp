#include "rooftile/step/host_text.hpp"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "rooftile/emit/tokens.hpp"
#include "rooftile/error.hpp"

namespace rooftile {
namespace {

using emit::Token;
using emit::TokenKind;
using emit::Tokens;

constexpr std::string_view headers[] = {"cuda.h",
                                        "cuda_runtime.h",
                                        "cuda_fp16.h",
                                        "cuda_fp16.hpp",
                                        "cuda_bf16.h",
                                        "cuda_bf16.hpp",
                                        "cuda_pipeline.h",
                                        "cuda_pipeline_primitives.h",
                                        "cooperative_groups.h",
                                        "cooperative_groups/reduce.h",
                                        "vector_types.h",
                                        "vector_functions.h",
                                        "math_constants.h",
                                        "device_functions.h",
                                        "device_atomic_functions.h",
                                        "sm_30_intrinsics.h",
                                        "crt/host_defines.h",
                                        "host_defines.h"};

/// "cub/cub.cuh" of a line that includes it, where it is of a device library that has no text for a CPU; else empty.
std::string_view refused_include(std::string_view line) {
    constexpr std::string_view families[] = {"mma.h", "cub/",   "thrust/", "cute/", "cutlass/", "cuda/",
                                             "cuda_", "curand", "crt/",    "nv/",   "sm_",      "cooperative_groups/"};
    const std::size_t open = line.find_first_of("<\""), close = line.find_first_of(">\"", std::min(open + 1, line.size()));
    if (line.find("include") > open || close == line.npos) return {};
    const std::string_view name = line.substr(open + 1, close - open - 1);
    const bool refused = std::ranges::any_of(families, [&](std::string_view family) { return name.starts_with(family); });
    return refused && std::ranges::find(headers, name) == std::end(headers) ? name : std::string_view();
}

class Rewriting {
  public:
    /// Of a directive's text each line but the last ends in a backslash.
    Rewriting(std::string_view text, bool of_directive) : tokens_(emit::tokens_of(text)), line_end_(of_directive ? "\\\n" : "\n") {}

    void watch(std::span<const Watch> watches) {
        for (const Watch& w : watches)
            if (!watch(w))
                throw RequestError(fmt::format("--watch {}:{}: no statement that can be followed by another ends in line {}", w.line,
                                               w.expression, w.line));
    }

    std::string text(int& gaps) {
        for (std::size_t i = 0; i < tokens_.size(); ++i) {
            Token& t = tokens_[i];
            if (t.kind == TokenKind::directive) t.text = directive(t.text, gaps);
            else if (t.kind != TokenKind::word) continue;
            else if (t.text == "asm" || t.text == "__asm__" || t.text == "__asm") replace_asm(i);
            else if (t.text == "__shared__") replace_shared(i, gaps);
        }
        std::string out;
        for (std::size_t i = 0; i < tokens_.size(); ++i) {
            const auto added = before_.find(i);
            if (added != before_.end()) out += added->second;
            out += tokens_[i].text;
            const auto behind = behind_.find(i);
            if (behind != behind_.end()) out += behind->second;
        }
        return out;
    }

  private:
    bool is(std::size_t i, std::string_view text) const { return i < tokens_.size() && tokens_[i].is(text); }
    std::size_t next(std::size_t i) const { return emit::next_counting(tokens_, i + 1); }
    /// The one before that counts; the number of tokens where there is none.
    std::size_t previous(std::size_t i) const {
        while (i-- > 0)
            if (tokens_[i].counts()) return i;
        return tokens_.size();
    }
    /// The bracket that opens what `close` closes.
    std::size_t opening(std::size_t close) const {
        int depth = 0;
        for (std::size_t i = close; i < tokens_.size(); i = previous(i)) {
            const Token& t = tokens_[i];
            depth += t.is(")") || t.is("]") || t.is("}");
            depth -= t.is("(") || t.is("[") || t.is("{");
            if (depth == 0) return i;
        }
        return 0;
    }
    /// Tokens from `begin` to before `end` go; their lines stay.
    void clear(std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            std::string lines;
            for (auto n = std::ranges::count(tokens_[i].text, '\n'); n > 0; --n) lines += line_end_;
            tokens_[i].text = lines.empty() && i > begin && tokens_[i].kind == TokenKind::space ? " " : lines;
        }
    }

    static std::string directive(const std::string& text, int& gaps) {
        if (const auto name = refused_include(text); !name.empty()) return fmt::format("#error {}{}", refused_header, name);
        const std::size_t define = text.find("define");
        if (define == text.npos || (text.find("__shared__") == text.npos && text.find("asm") == text.npos)) return text;
        Rewriting body(std::string_view(text).substr(define), true);
        return text.substr(0, define) + body.text(gaps);
    }

    /// A call in the place of asm(...): it names the first instruction.
    void replace_asm(std::size_t i) {
        std::size_t open = next(i);
        while (open < tokens_.size() && tokens_[open].kind == TokenKind::word) open = next(open);
        if (!is(open, "(")) return;
        const std::size_t close = emit::closing(tokens_, open), first = next(open);
        const std::string said = first < close && tokens_[first].kind == TokenKind::text ? tokens_[first].text : "\"\"";
        clear(i, std::min(close + 1, tokens_.size()));
        tokens_[i].text = "rooftile_stop(\"ptx\", " + said + ")" + tokens_[i].text;
    }

    /// The first token of the declaration that has `i` among its specifiers.
    std::size_t declaration_begin(std::size_t i) const {
        std::size_t begin = i;
        for (std::size_t at = previous(i); at < tokens_.size(); at = previous(at)) {
            if (tokens_[at].is(")")) {
                at = previous(opening(at));
                if (!is(at, "alignas") && !is(at, "__align__") && !is(at, "__attribute__")) break;
            } else if (tokens_[at].kind != TokenKind::word || tokens_[at].text == "else" || tokens_[at].text == "do") break;
            begin = at;
        }
        return begin;
    }

    void replace_shared(std::size_t i, int& gaps) {
        const std::size_t begin = declaration_begin(i);
        bool is_extern = false, is_static = false;
        for (std::size_t at = begin; at < tokens_.size() && !is(at, ";") && !is(at, "["); ++at) {
            is_extern = is_extern || is(at, "extern");
            is_static = is_static || is(at, "static");
        }
        if (is_extern) return replace_dynamic(begin);
        const std::string storage = is_static ? "__thread" : "static __thread";
        // What comes before alignas(...) cannot be a specifier.
        std::size_t at = i;
        if (const std::size_t align = next(i); is(align, "alignas")) at = emit::closing(tokens_, next(align)), tokens_[i].text.clear();
        else tokens_[i].text = storage;
        if (at != i) behind_[at] += " " + storage + " ";
        before_[begin] += fmt::format("static __thread __attribute__((used)) char rooftile_gap_{}[128]; ", gaps++);
    }

    /// "extern __shared__ float s[][4];": a reference to an array without end.
    void replace_dynamic(std::size_t begin) {
        std::size_t end = begin, bracket = tokens_.size(), name = tokens_.size();
        for (; end < tokens_.size() && !is(end, ";"); ++end) {
            if (is(end, "__attribute__") || is(end, "__align__") || is(end, "alignas")) {
                const std::size_t close = emit::closing(tokens_, next(end));
                clear(end, close + 1);
            }
            for (const char* word : {"extern", "__shared__", "static"})
                if (is(end, word)) clear(end, end + 1);
            if (is(end, "[") && bracket == tokens_.size()) bracket = end;
            if (tokens_[end].kind == TokenKind::word && !tokens_[end].text.empty() && bracket == tokens_.size()) name = end;
        }
        if (bracket == tokens_.size() || name == tokens_.size()) return;
        const std::size_t close = emit::closing(tokens_, bracket);
        const std::string called = tokens_[name].text;
        tokens_[name].text = " (*)";
        tokens_[bracket].text = "[1 << 30";
        before_[begin] += fmt::format("[[maybe_unused]] static auto& {} = *reinterpret_cast<", called);
        tokens_[std::max(close, end - 1)].text += ">(rooftile_dynamic_shared)";
    }

    bool watch(const Watch& w) {
        const std::string call = fmt::format(" rooftile_watch({}, {}, {});", w.line, quoted(w.expression), w.expression);
        int line = 1, depth = 0;
        std::size_t last = tokens_.size();
        for (std::size_t i = 0; i < tokens_.size() && line <= w.line; ++i) {
            const Token& t = tokens_[i];
            depth += int(t.is("(")) - int(t.is(")"));
            if (line == w.line && depth == 0 && (t.is(";") || t.is("{"))) last = i;
            line += int(std::ranges::count(t.text, '\n'));
        }
        if (last == tokens_.size()) return false;
        if (is(last, "{")) return behind_[last] += call, true;
        const std::size_t begin = statement_begin(last), body = body_begin(begin);
        const std::string& word = tokens_[body].text;
        const bool leaves = word == "return" || word == "break" || word == "continue" || word == "goto";
        if (body == begin && !leaves) {
            if (is(next(last), "else") || is(begin, "for") || is(begin, "while")) return false;
            behind_[last] += call;
            return true;
        }
        before_[body] += leaves ? "{" + call + " " : "{ ";
        behind_[last] += leaves ? " }" : call + " }";
        return true;
    }
    /// Behind what ends the statement before the one that ends at `semicolon`.
    std::size_t statement_begin(std::size_t semicolon) const {
        std::size_t begin = semicolon;
        for (std::size_t at = previous(semicolon); at < tokens_.size(); at = previous(at)) {
            const Token& t = tokens_[at];
            if (t.is(";") || t.is("{")) break;
            if (t.is("}")) {
                const std::size_t open = opening(at), before = previous(open);
                const bool value = is(before, "=") || is(before, ",") || is(before, "(") || is(before, "]") || is(before, ">");
                if (!value) break;
                at = open;
            } else if (t.is(")") || t.is("]")) at = opening(at);
            begin = at;
        }
        return begin;
    }
    /// Behind the heads "if (...)", "for (...)", "while (...)" and "else" that begin there.
    std::size_t body_begin(std::size_t at) const {
        while (at < tokens_.size()) {
            if (is(at, "else")) at = next(at);
            else if (is(at, "if") || is(at, "for") || is(at, "while")) {
                std::size_t open = next(at);
                if (is(open, "constexpr")) open = next(open);
                at = next(emit::closing(tokens_, open));
            } else break;
        }
        return at;
    }
    static std::string quoted(std::string_view text) {
        std::string out = "\"";
        for (const char c : text) {
            if (c == '"' || c == '\\') out += '\\';
            out += c;
        }
        return out + "\"";
    }

    Tokens tokens_;
    std::string line_end_;
    std::map<std::size_t, std::string> before_, behind_;
};

}  // namespace

std::span<const std::string_view> cuda_headers() { return headers; }

std::string host_text(std::string_view device_text, std::span<const Watch> watches) {
    Rewriting rewriting(device_text, false);
    rewriting.watch(watches);
    int gaps = 0;
    return rewriting.text(gaps);
}

}  // namespace rooftile
