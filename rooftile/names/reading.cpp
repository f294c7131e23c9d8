#include "rooftile/names/reading.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <memory>

namespace rooftile::names {
namespace {

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}

/// Without one spelling of what has no name, which profilers write with brackets of their own.
void drop_all(std::string& text, std::string_view part) {
    for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at)) text.erase(at, part.size());
}

/// How deep brackets are after `c`, of which "->" closes none.
int deeper(int depth, std::string_view text, std::size_t at) {
    const char c = text[at];
    if (c == '<' || c == '(' || c == '{' || c == '[') return depth + 1;
    if (c == ')' || c == '}' || c == ']' || (c == '>' && (at == 0 || text[at - 1] != '-'))) return depth - 1;
    return depth;
}

/// Arguments between the bracket at `open` and its end, or the end of a text that was cut short; `end` is behind the bracket.
std::vector<std::string_view> list_at(std::string_view text, std::size_t open, std::size_t& end) {
    std::vector<std::string_view> out;
    std::size_t from = open + 1;
    int depth = 0;
    for (end = open; end < text.size(); ++end) {
        depth = deeper(depth, text, end);
        if (depth == 0 || (depth == 1 && text[end] == ',')) {
            out.push_back(trimmed(text.substr(from, end - from)));
            from = end + 1;
            if (depth == 0) break;
        }
    }
    if (end == text.size() && from < end) out.push_back(trimmed(text.substr(from)));
    else if (end < text.size()) ++end;
    return out;
}

}  // namespace

std::string unmangled(std::string_view name) {
    std::string text(name);
    // Compilers refuse what is longer only by the time that it takes.
    constexpr std::size_t longest = 1 << 16;
    if (text.starts_with("_Z") && text.size() < longest) {
        int status = 0;
        const std::unique_ptr<char, void (*)(void*)> plain(abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status), std::free);
        if (status == 0 && plain) text = plain.get();
    }
    return text;
}

std::string demangled(std::string_view name) {
    std::string text = unmangled(name);
    for (const std::string_view nameless : {"(anonymous namespace)::", "<unnamed>::", "_GLOBAL__N__::"}) drop_all(text, nameless);
    return text;
}

Signature signature_of(std::string_view text) {
    Signature out;
    // A function's name is the last word before its parameters, outside all brackets; before it is what it returns.
    std::size_t begin = 0, open = text.npos, end = text.size();
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (depth == 0 && text[i] == '(' && i > begin) {
            end = i;
            break;
        }
        if (depth == 0 && text[i] == ' ') begin = i + 1, open = text.npos;
        if (depth == 0 && text[i] == '<') open = i;
        depth = std::max(0, deeper(depth, text, i));
    }
    std::size_t after = end;
    if (open != text.npos) out.arguments = list_at(text, open, after);
    out.path = text.substr(begin, std::min(open, end) - begin);
    const std::size_t colon = out.path.rfind("::");
    out.function = colon == out.path.npos ? out.path : out.path.substr(colon + 2);
    out.parameters = text.substr(std::min(end, text.size()));
    return out;
}

std::vector<std::string_view> arguments_of(std::string_view text, std::string_view name) {
    for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
        if (at > 0 && is_word(text[at - 1])) continue;
        const std::size_t open = at + name.size();
        std::size_t end = 0;
        if (open < text.size() && text[open] == '<') return list_at(text, open, end);
    }
    return {};
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }
bool has(std::span<const std::string_view> tokens, std::string_view token) {
    return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

bool consists_of(std::string_view token, std::size_t count, std::string_view letters) {
    return token.size() == count && token.find_first_not_of(letters) == token.npos;
}

std::string_view word_at(std::string_view text, std::size_t from) {
    std::size_t to = from;
    while (to < text.size() && is_word(text[to])) ++to;
    return text.substr(from, to - from);
}

std::optional<long> number(std::string_view text) {
    text = trimmed(text);
    if (text == "true") return 1;
    if (text == "false") return 0;
    if (text.starts_with("(")) {  // a cast, as profilers and enumerators have it
        const std::size_t close = text.find(')');
        if (close == text.npos) return std::nullopt;
        text = trimmed(text.substr(close + 1));
    }
    for (const std::string_view wrapper : {"cute::C<", "cute::_", "C<"})
        if (text.starts_with(wrapper)) text.remove_prefix(wrapper.size());
    long value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) return std::nullopt;
    const std::string_view rest = trimmed(text.substr(std::size_t(end - text.data())));
    for (const std::string_view suffix : {"", "u", "ul", "l", ">", "u>"})
        if (rest == suffix) return value;
    return std::nullopt;
}

std::vector<int> positive(std::span<const std::string_view> arguments) {
    constexpr long most = 1 << 20;
    std::vector<int> out;
    for (const std::string_view argument : arguments)
        if (const auto value = number(argument); value && *value > 0 && *value <= most) out.push_back(int(*value));
    return out;
}

std::vector<int> extents(std::string_view text) {
    constexpr std::size_t most_digits = 5;
    std::vector<int> out;
    for (const std::string_view part : split(text, 'x')) {
        if (part.empty() || part.size() > most_digits || !std::all_of(part.begin(), part.end(), is_digit)) return {};
        out.push_back(int(*number(part)));
        if (out.back() == 0) return {};
    }
    return out;
}

std::optional<int> threads_of(int factor, std::span<const int> counts) {
    constexpr long most = 1024;
    long threads = factor;
    for (const int count : counts) threads = threads > most ? threads : threads * count;
    return threads > 0 && threads <= most ? std::optional(int(threads)) : std::nullopt;
}

std::optional<int> number_after(std::string_view token, std::string_view prefix) {
    if (!token.starts_with(prefix)) return std::nullopt;
    const std::vector<int> value = extents(token.substr(prefix.size()));
    if (value.size() != 1) return std::nullopt;
    return value[0];
}

std::string type_name(std::string_view text) {
    text = trimmed(text);
    if (text.ends_with(" const")) text.remove_suffix(6);
    if (text.starts_with("const ")) text.remove_prefix(6);
    while (text.ends_with("*") || text.ends_with("&") || text.ends_with(" ")) text.remove_suffix(1);
    const std::size_t colon = text.rfind("::");
    if (colon != text.npos && !contains(text, "<")) text.remove_prefix(colon + 2);
    struct Spellings {
        std::string_view type, written;
    };
    static constexpr Spellings all[] = {{"bf16", "__nv_bfloat16,BFloat16,bfloat16_t,bf16,BF16,bfloat16,nv_bfloat16"},
                                        {"fp16", "__half,Half,half_t,half,f16,fp16,float16,F16"},
                                        {"fp32", "float,f32,fp32,float32,F32"},
                                        {"fp64", "double,f64,fp64,float64"},
                                        {"tf32", "tf32,tfloat32_t"},
                                        {"fp8_e4m3", "__nv_fp8_e4m3,float_e4m3_t,e4m3,Float8_e4m3fn,f8e4m3"},
                                        {"fp8_e5m2", "__nv_fp8_e5m2,float_e5m2_t,e5m2,Float8_e5m2,f8e5m2"},
                                        {"fp4_e2m1", "__nv_fp4_e2m1,float_e2m1_t,e2m1,f4,xf4"},
                                        {"int8", "s8,i8,int8_t,int8,signed char"},
                                        {"uint8", "u8,uint8,unsigned char"},
                                        {"int32", "s32,i32,int,int32"},
                                        {"uint32", "u32,unsigned int"},
                                        {"int64", "long,i64"},
                                        {"uint64", "u64"},
                                        {"bool", "bool"},
                                        {"complex_fp32", "cf32,float2,cp32,complex<float>,c10::complex<float>"},
                                        {"complex_fp64", "cf64,double2,c10::complex<double>"},
                                        {"complex_fp16", "cf16"},
                                        {"complex_bf16", "cbf16"},
                                        {"complex_int8", "ci8"}};
    for (const Spellings& spellings : all)
        if (has(split(spellings.written, ','), text)) return std::string(spellings.type);
    return "";
}

std::string instruction_of(std::string_view digits) {
    struct Shape {
        std::string_view digits, name;
    };
    static constexpr Shape shapes[] = {{"884", "m8n8k4"},       {"8816", "m8n8k16"},     {"8832", "m8n8k32"},   {"1688", "m16n8k8"},
                                       {"16816", "m16n8k16"},   {"16832", "m16n8k32"},   {"16864", "m16n8k64"}, {"168128", "m16n8k128"},
                                       {"168256", "m16n8k256"}, {"161616", "m16n16k16"}, {"32816", "m32n8k16"}, {"83216", "m8n32k16"},
                                       {"88128", "m8n8k128"}};
    for (const Shape& shape : shapes)
        if (digits == shape.digits) return std::string(shape.name);
    return "";
}

std::string upper(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (c >= 'a' && c <= 'z') c = char(c - 'a' + 'A');
    return out;
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
    return out;
}

std::string words_of(std::string_view name) {
    std::string out;
    for (const char c : name) {
        const bool capital = c >= 'A' && c <= 'Z';
        if (capital && !out.empty() && out.back() != '-') out += '-';
        out += capital ? char(c - 'A' + 'a') : c;
    }
    return out;
}

}  // namespace rooftile::names
