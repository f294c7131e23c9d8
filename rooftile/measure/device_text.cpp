#include "rooftile/measure/device_text.hpp"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "rooftile/emit/tokens.hpp"

namespace rooftile {
namespace {

/// A token that is neither space nor comment, and where it stands. A directive is one, with the lines that continue it.
struct Piece {
    std::size_t begin = 0, end = 0;
    std::string_view text{};
    emit::TokenKind kind{};
    bool is(std::string_view other) const { return text == other; }
    bool word() const { return kind == emit::TokenKind::word; }
    bool directive() const { return kind == emit::TokenKind::directive; }
};

std::vector<Piece> pieces_of(std::string_view text) {
    std::vector<Piece> out;
    std::size_t at = 0;
    for (const emit::Token& token : emit::tokens_of(text)) {
        const std::size_t begin = at;
        at += token.text.size();
        if (token.counts()) out.push_back({begin, at, text.substr(begin, at - begin), token.kind});
    }
    return out;
}

// Their content is for the host alone; what kernels use of those with a text is in host_headers().
constexpr std::string_view host_libraries[] = {
    "torch/", "ATen/", "c10/", "pybind11/", "Python.h", "boost/", "Eigen/", "opencv2/", "gtest/", "benchmark/", "nvToolsExt.h", "nvtx3/",
    "cublas", "cudnn", "cusparse", "cusolver", "curand.h", "cufft", "nccl.h", "mpi.h", "omp.h", "nvml.h", "cuda_profiler_api.h", "cudaProfiler.h",
    "driver_types.h", "helper_cuda.h", "helper_functions.h", "helper_string.h", "cuda_runtime_api.h", "cuda_runtime.h", "device_launch_parameters.h",
    "sys/", "unistd.h", "getopt.h", "pthread.h", "windows.h", "thrust/host_vector.h", "thrust/device_vector.h"};
constexpr std::string_view host_standard[] = {
    "any", "atomic", "bitset", "chrono", "condition_variable", "ctime", "deque", "exception", "filesystem", "format", "forward_list", "fstream", "future",
    "initializer_list", "iomanip", "ios", "iosfwd", "iostream", "istream", "iterator", "list", "locale", "map", "memory", "mutex", "new", "numeric", "optional", "ostream",
    "queue", "random", "ranges", "ratio", "regex", "set", "span", "sstream", "stack", "stdexcept", "string", "string_view", "system_error", "thread",
    "typeindex", "typeinfo", "unordered_map", "unordered_set", "valarray", "variant", "vector", "errno.h", "cerrno", "signal.h", "csignal", "time.h", "locale.h"};

/// Its text, by the file that it is of; each may be included beside the others.
#define ROOFTILE_ASSERT_TEXT "#pragma once\n#ifndef assert\n#ifdef NDEBUG\n#define assert(what) ((void)0)\n#else\n#define assert(what) ((what) ? (void)0 : __trap())\n#endif\n#endif\n"
#define ROOFTILE_INTEGER_TEXT                                                                                                   \
    "#pragma once\n"                                                                                                            \
    "typedef signed char int8_t;\ntypedef short int16_t;\ntypedef int int32_t;\ntypedef long long int64_t;\n"                       \
    "typedef unsigned char uint8_t;\ntypedef unsigned short uint16_t;\ntypedef unsigned uint32_t;\ntypedef unsigned long long uint64_t;\n" \
    "typedef long long intptr_t;\ntypedef unsigned long long uintptr_t;\n"                                                               \
    "namespace std {\nusing ::int8_t;\nusing ::int16_t;\nusing ::int32_t;\nusing ::int64_t;\nusing ::uint8_t;\nusing ::uint16_t;\n" \
    "using ::uint32_t;\nusing ::uint64_t;\nusing ::intptr_t;\nusing ::uintptr_t;\n}\n"                                        \
    "#ifndef INT32_MAX\n#define INT8_MAX 127\n#define INT16_MAX 32767\n#define INT32_MAX 2147483647\n#define INT64_MAX 9223372036854775807LL\n" \
    "#define INT32_MIN (-2147483647 - 1)\n#define INT64_MIN (-9223372036854775807LL - 1)\n#define UINT8_MAX 255\n#define UINT16_MAX 65535\n" \
    "#define UINT32_MAX 4294967295U\n#define UINT64_MAX 18446744073709551615ULL\n#endif\n"
#define ROOFTILE_LIMITS_TEXT                                                                                                     \
    "#pragma once\n#ifndef INT_MAX\n#define CHAR_BIT 8\n#define SHRT_MAX 32767\n#define INT_MAX 2147483647\n#define INT_MIN (-2147483647 - 1)\n" \
    "#define UINT_MAX 4294967295U\n#define LONG_MAX 9223372036854775807L\n#define LONG_MIN (-9223372036854775807L - 1)\n"      \
    "#define ULONG_MAX 18446744073709551615UL\n#define LLONG_MAX 9223372036854775807LL\n#define ULLONG_MAX 18446744073709551615ULL\n#endif\n"
#define ROOFTILE_FLOAT_TEXT                                                                                                      \
    "#pragma once\n#ifndef FLT_MAX\n#define FLT_MAX 3.402823466e+38F\n#define FLT_MIN 1.175494351e-38F\n#define FLT_EPSILON 1.192092896e-07F\n" \
    "#define DBL_MAX 1.7976931348623158e+308\n#define DBL_MIN 2.2250738585072014e-308\n#define DBL_EPSILON 2.2204460492503131e-016\n#endif\n"
#define ROOFTILE_MATH_TEXT                                                                                                       \
    "#pragma once\n#ifndef M_PI\n#define M_E 2.7182818284590452354\n#define M_LOG2E 1.4426950408889634074\n#define M_LN2 0.69314718055994530942\n" \
    "#define M_PI 3.14159265358979323846\n#define M_PI_2 1.57079632679489661923\n#define M_1_PI 0.31830988618379067154\n"      \
    "#define M_2_SQRTPI 1.12837916709551257390\n#define M_SQRT2 1.41421356237309504880\n#define M_SQRT1_2 0.70710678118654752440\n#endif\n" \
    "#ifndef INFINITY\n#define INFINITY __builtin_bit_cast(float, 0x7f800000)\n#define HUGE_VALF INFINITY\n#define HUGE_VAL __builtin_bit_cast(double, 0x7ff0000000000000)\n#endif\n" \
    "#ifndef NAN\n#define NAN __builtin_bit_cast(float, 0x7fc00000)\n#endif\n"
#define ROOFTILE_OF_CCCL(name) "#pragma once\n#include <cuda/std/" name ">\nnamespace std {\nusing namespace cuda::std;\n}\n"

constexpr EmbeddedFile headers[] = {
    {"assert.h", ROOFTILE_ASSERT_TEXT},
    {"cassert", ROOFTILE_ASSERT_TEXT},
    {"stdint.h", ROOFTILE_INTEGER_TEXT},
    {"cstdint", ROOFTILE_INTEGER_TEXT},
    {"inttypes.h", ROOFTILE_INTEGER_TEXT},
    {"cinttypes", ROOFTILE_INTEGER_TEXT},
    {"limits.h", ROOFTILE_LIMITS_TEXT},
    {"climits", ROOFTILE_LIMITS_TEXT},
    {"float.h", ROOFTILE_FLOAT_TEXT},
    {"cfloat", ROOFTILE_FLOAT_TEXT},
    {"math.h", ROOFTILE_MATH_TEXT},
    {"cmath", ROOFTILE_MATH_TEXT},
    {"stddef.h", ""},
    {"cstddef", ""},
    {"stdio.h", ""},
    {"cstdio", ""},
    {"stdlib.h", ""},
    {"cstdlib", ""},
    {"string.h", ""},
    {"cstring", ""},
    {"algorithm",
     "#pragma once\nnamespace std {\n"
     "template <class T>\n__host__ __device__ constexpr const T& min(const T& a, const T& b) {\n    return b < a ? b : a;\n}\n"
     "template <class T>\n__host__ __device__ constexpr const T& max(const T& a, const T& b) {\n    return a < b ? b : a;\n}\n"
     "template <class T>\n__host__ __device__ constexpr void swap(T& a, T& b) {\n    T was = a;\n    a = b;\n    b = was;\n}\n}\n"},
    {"limits", ROOFTILE_OF_CCCL("limits")},
    {"type_traits", ROOFTILE_OF_CCCL("type_traits")},
    {"utility", ROOFTILE_OF_CCCL("utility")},
    {"tuple", ROOFTILE_OF_CCCL("tuple")},
    {"array", ROOFTILE_OF_CCCL("array")},
    {"functional", ROOFTILE_OF_CCCL("functional")},
    {"complex", ROOFTILE_OF_CCCL("complex")},
    {"bit", ROOFTILE_OF_CCCL("bit")},
    {"concepts", ROOFTILE_OF_CCCL("concepts")},
};

/// "vector" of `#include <vector>`; empty where the line includes nothing, or by a macro.
std::string_view included(std::string_view line) {
    const std::size_t word = line.find_first_not_of(" \t", 1);
    if (word == line.npos || !line.substr(word).starts_with("include")) return {};
    const std::size_t open = line.find_first_of("<\"", word);
    if (open == line.npos) return {};
    const std::size_t close = line.find(line[open] == '<' ? '>' : '"', open + 1);
    return close == line.npos ? std::string_view() : line.substr(open + 1, close - open - 1);
}

/// The macro that the line defines, where its text annotates a function for the device.
std::string_view annotation_of(std::string_view line) {
    const std::size_t word = line.find_first_not_of(" \t", 1);
    if (word == line.npos || !line.substr(word).starts_with("define")) return {};
    const std::size_t begin = line.find_first_not_of(" \t", word + 6);
    if (begin == line.npos) return {};
    const std::size_t end = std::min(line.find_first_of(" \t(\\", begin), line.size());
    const std::string_view text = line.substr(end);
    return text.find("__device__") != text.npos || text.find("__global__") != text.npos ? line.substr(begin, end - begin) : std::string_view();
}

/// Goes through a file's declarations, one by one.
class Declarations {
  public:
    explicit Declarations(std::string file) {
        out_.text = std::move(file);
        pieces_ = pieces_of(out_.text);
        // Macros are known before the functions that they annotate, wherever they stand.
        for (const Piece& line : pieces_) {
            const auto name = line.directive() ? annotation_of(line.text) : std::string_view();
            if (name.empty()) continue;
            annotations_.emplace(name);
            if (line.text.find("__global__") != line.text.npos) kernel_macros_.emplace(name);
        }
    }

    DeviceText read() {
        while (const Piece* next = take()) {
            const Piece& t = *next;
            if (seen_.empty() && t.is("}")) {  // of a namespace or a type
                if (!scopes_.empty()) scopes_.pop_back();
                continue;
            }
            seen_.push_back(t);
            if (seen_.size() == 2 && t.is(":") && (seen_[0].is("public") || seen_[0].is("protected") || seen_[0].is("private"))) {
                end();
                continue;
            }
            if (t.is("(") || t.is("[")) ++depth_;
            if (t.is(")") || t.is("]")) --depth_;
            if (depth_ > 0) continue;
            if (t.is(";")) {
                if (is_host_declaration() || is_of_host_type()) leave_out(t.end);
                end();
            } else if (t.is("{")) {
                if (opens_scope()) {
                    scopes_.push_back(scope_name());
                    end();
                    continue;
                }
                const bool function = is_function(), host = function && is_host();
                const std::size_t close = skip_braces();
                if (!function) continue;  // the declaration goes on to its semicolon
                if (host) leave_out(close);
                else if (annotated("__global__") || is_kernel_by_macro()) add_kernel();
                end();
            }
        }
        for (const auto& [begin, end] : cuts_)
            for (std::size_t i = begin; i < end; ++i)
                if (out_.text[i] != '\n') out_.text[i] = ' ';
        return std::move(out_);
    }

  private:
    /// The next piece; directives on the way are read. Null at the end.
    const Piece* take() {
        for (; at_ < pieces_.size(); ++at_) {
            if (!pieces_[at_].directive()) return &pieces_[at_++];
            read_include(pieces_[at_]);
        }
        return nullptr;
    }
    void end() { seen_.clear(), depth_ = 0; }
    void leave_out(std::size_t end) {
        const std::string what = name();
        if (out_.left_out.empty() || out_.left_out.back() != what) out_.left_out.push_back(what);
        cuts_.emplace_back(seen_.front().begin, end);
    }
    void read_include(const Piece& line) {
        const std::string_view file = included(line.text);
        if (file.empty()) return;
        const bool host = std::ranges::find(host_standard, file) != std::end(host_standard)
                          || std::ranges::any_of(host_libraries, [&](std::string_view library) { return file.starts_with(library); });
        if (!host) {
            out_.includes.emplace_back(file);
            return;
        }
        out_.left_out.push_back(fmt::format("#include <{}>", file));
        cuts_.emplace_back(line.begin, line.end);
    }

    /// Behind the brace that was met, to the one that closes it.
    std::size_t skip_braces() {
        int open = 1;
        while (const Piece* t = take()) {
            open += t->is("{") - t->is("}");
            if (open == 0) return t->end;
        }
        return out_.text.size();
    }

    bool opens_scope() const {
        const Piece& first = seen_.front();
        if (first.is("namespace") || (first.is("inline") && seen_.size() > 1 && seen_[1].is("namespace"))) return true;
        if (first.is("extern") && seen_.size() == 3 && seen_[1].text.starts_with('"')) return true;
        // Of a type each member is looked at.
        const auto rest = behind_template();
        return !rest.empty() && is_type(rest[0]) && !rest[0].is("enum") && (!has("(") || has("alignas") || has("__align__") || has("__attribute__"));
    }
    /// The declaration's tokens but for a template's parameters before it.
    std::span<const Piece> behind_template() const {
        std::span<const Piece> rest = seen_;
        while (rest.size() > 1 && rest[0].is("template") && rest[1].is("<")) {
            int open = 0;
            std::size_t i = 1;
            for (; i < rest.size(); ++i) {
                open += rest[i].is("<") - rest[i].is(">");
                if (open == 0) break;
            }
            rest = rest.subspan(std::min(i + 1, rest.size()));
        }
        return rest;
    }
    static bool is_type(const Piece& t) { return t.is("struct") || t.is("class") || t.is("union") || t.is("enum"); }
    bool has(std::string_view word) const {
        return std::ranges::any_of(seen_, [&](const Piece& t) { return t.is(word); });
    }
    /// "mine::" of a namespace; nothing of types, which have no kernels, and of extern "C".
    std::string scope_name() const {
        std::string out;
        if (!has("namespace")) return out;
        for (const Piece& t : seen_)
            if (t.word() && !t.is("namespace") && !t.is("inline")) out += std::string(t.text) + "::";
        return out;
    }
    void add_kernel() {
        std::string full;
        for (const std::string& scope : scopes_) full += scope;
        full += name();
        if (seen_.front().is("template")) out_.templates.push_back(full);
        out_.kernels.push_back(std::move(full));
    }
    /// Outside of parentheses.
    bool assigns() const {
        int open = 0;
        for (const Piece& t : behind_template()) {
            open += t.is("(") - t.is(")");
            if (open == 0 && t.is("=")) return true;
        }
        return false;
    }
    bool is_function() const {
        const auto rest = behind_template();
        if (rest.empty() || is_type(rest[0]) || rest[0].is("typedef") || assigns()) return has("operator") && has("(");
        return has("(");
    }
    /// Outside of parentheses, where a parameter's default may say KERNEL_SIZE.
    bool annotated(std::string_view with) const {
        int open = 0;
        for (const Piece& t : behind_template()) {
            open += t.is("(") - t.is(")");
            if (open > 0) continue;
            if (t.is(with)) return true;
            if (with == "__device__" && t.word() && (annotations_.contains(t.text) || is_annotating(t.text))) return true;
        }
        return false;
    }
    bool is_kernel_by_macro() const {
        return std::ranges::any_of(behind_template(), [&](const Piece& t) { return kernel_macros_.contains(t.text); });
    }
    static bool is_annotating(std::string_view word) {
        const bool large = std::ranges::none_of(word, [](char c) { return c >= 'a' && c <= 'z'; });
        return large && (word.find("DEVICE") != word.npos || word.find("GLOBAL") != word.npos || word.find("KERNEL") != word.npos);
    }
    bool is_host() const { return !annotated("__device__") && !annotated("__global__") && !has("constexpr") && !has("consteval"); }
    /// A variable or a member of a type that the standard library has for the host alone.
    bool is_of_host_type() const {
        static constexpr std::string_view types[] = {"string", "vector", "map", "unordered_map", "set", "unordered_set", "function", "unique_ptr", "shared_ptr", "thread", "mutex",
                                                     "ostream", "ofstream", "ifstream", "stringstream", "chrono", "random_device", "mt19937", "filesystem", "list", "deque"};
        const auto rest = behind_template();
        if (rest.empty() || rest[0].is("using") || rest[0].is("typedef")) return false;
        for (std::size_t i = 0; i + 2 < rest.size(); ++i)
            if (rest[i].is("std") && rest[i + 1].is("::") && std::ranges::find(types, rest[i + 2].text) != std::end(types)) return true;
        return false;
    }
    /// Of a function; a call of a macro, which begins with its name, may be anything.
    bool is_host_declaration() const {
        const auto rest = behind_template();
        if (rest.size() < 4 || is_type(rest[0]) || !rest[0].word() || rest[1].is("(") || assigns() || !has("(")) return false;
        for (const char* other : {"typedef", "using", "static_assert", "friend", "asm", "__constant__", "__shared__", "__managed__"})
            if (has(other)) return false;
        return is_host() && rest[rest.size() - 2].is(")");
    }
    /// Before the parameters.
    std::string name() const {
        const auto rest = behind_template();
        // __launch_bounds__(256, 2) and __attribute__((...)) have parentheses before the name has.
        for (std::size_t i = 1; i < rest.size(); ++i) {
            if (!rest[i].is("(") || !rest[i - 1].word()) continue;
            if (rest[i - 1].text.starts_with("__") && rest[i - 1].text.ends_with("__")) {
                int open = 0;
                for (; i < rest.size(); ++i) {
                    open += rest[i].is("(") - rest[i].is(")");
                    if (open == 0) break;
                }
                continue;
            }
            return std::string(rest[i - 1].text);
        }
        return "a declaration";
    }

    DeviceText out_;
    std::vector<Piece> pieces_;  ///< of the text
    std::size_t at_ = 0;         ///< the first that was not taken
    std::set<std::string, std::less<>> annotations_, kernel_macros_;  ///< macros of the file; of these with __global__
    std::vector<Piece> seen_;                         ///< of the declaration that is read
    std::vector<std::string> scopes_;                 ///< that are open, as they stand before a name
    int depth_ = 0;
    std::vector<std::pair<std::size_t, std::size_t>> cuts_;
};

std::string unix_text(std::string_view file) {
    if (file.starts_with("\xef\xbb\xbf")) file.remove_prefix(3);
    std::string out;
    out.reserve(file.size());
    for (std::size_t i = 0; i < file.size(); ++i)
        if (file[i] != '\r' || (i + 1 < file.size() && file[i + 1] != '\n')) out += file[i];
    return out;
}

}  // namespace

DeviceText device_header(std::string_view file) { return Declarations(unix_text(file)).read(); }

DeviceText device_text(std::string_view file) {
    DeviceText out = device_header(file);
    // What nvcc includes before any file.
    out.text.insert(0, "#include <math.h>\ntypedef unsigned uint;\ntypedef unsigned short ushort;\ntypedef unsigned long ulong;\n#line 1\n");
    return out;
}

std::span<const EmbeddedFile> host_headers() { return headers; }

}  // namespace rooftile
