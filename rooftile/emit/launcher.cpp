#include "rooftile/emit/launcher.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>

#include <fmt/core.h>

#include "rooftile/error.hpp"

namespace rooftile::emit {
namespace {

template <class T>
T read(std::string_view bytes) {
    T value{};
    std::memcpy(&value, bytes.data(), std::min(sizeof value, bytes.size()));
    return value;
}

/// A plain type, or an enum's.
struct Scalar {
    std::string_view name;
    int bytes;
    char kind;  ///< i signed, u unsigned, f floating
};
constexpr Scalar scalars[] = {{"bool", 1, 'u'},          {"char", 1, 'i'},      {"signed char", 1, 'i'},
                              {"unsigned char", 1, 'u'}, {"short", 2, 'i'},     {"unsigned short", 2, 'u'},
                              {"int", 4, 'i'},           {"unsigned", 4, 'u'},  {"unsigned int", 4, 'u'},
                              {"float", 4, 'f'},         {"long long", 8, 'i'}, {"unsigned long long", 8, 'u'},
                              {"double", 8, 'f'}};

const Scalar* scalar_of(std::string_view name) {
    const auto found = std::ranges::find(scalars, name, &Scalar::name);
    return found == std::end(scalars) ? nullptr : found;
}

/// One member of a struct, or one parameter.
struct Declared {
    std::string type, name;
    bool pointer = false, preset = false;
    std::vector<int> extents;
    int count() const {
        int n = 1;
        for (const int e : extents) n *= e;
        return n;
    }
};

/// "const void *a, *b;" is two.
std::optional<std::vector<Declared>> declared(TokenSpan all) {
    Tokens t;
    for (const Token& token : all)
        if (token.counts() && !token.is("const") && !token.is("__grid_constant__") && !token.is("mutable")) t.push_back(token);
    std::vector<Declared> out;
    std::string base;
    std::size_t i = 0;
    while (i < t.size() && t[i].is("[")) i = closing(t, i) + 1;
    for (; i < t.size(); ++i) {
        if (t[i].is("*") || t[i].is("&")) break;
        if (t[i].kind == TokenKind::word && !base.empty() && !base.ends_with("::")) {
            const bool last =
                i + 1 == t.size()
                || (t[i + 1].kind == TokenKind::mark && std::string_view(",;=[{").find(t[i + 1].text[0]) != std::string_view::npos);
            if (last) break;
            base += ' ';
        }
        if (t[i].is("<")) {
            const std::size_t end = behind_angles(t, i);
            base += text_of(TokenSpan(t).subspan(i, end - i));
            i = end - 1;
            continue;
        }
        base += t[i].text;
    }
    while (i < t.size() && !t[i].is(";")) {
        Declared one{.type = base, .name = {}, .extents = {}};
        for (; i < t.size() && t[i].is("*"); ++i) one.pointer = true;
        if (i >= t.size() || t[i].kind != TokenKind::word) return std::nullopt;
        one.name = t[i++].text;
        for (; i < t.size() && t[i].is("["); i = closing(t, i) + 1) {
            int extent = 0;
            const std::string& text = t[i + 1].text;
            if (std::from_chars(text.data(), text.data() + text.size(), extent).ec != std::errc{} || !t[i + 2].is("]"))
                return std::nullopt;
            one.extents.push_back(extent);
        }
        if (i < t.size() && (t[i].is("=") || t[i].is("{"))) {
            one.preset = true;
            while (i < t.size() && !t[i].is(",") && !t[i].is(";")) i = t[i].is("{") || t[i].is("(") ? closing(t, i) + 1 : i + 1;
        }
        if (i < t.size() && t[i].is(",")) ++i;
        out.push_back(std::move(one));
    }
    return out;
}

struct Layout {
    int bytes = 0, alignment = 1;
};

class Assignments {
  public:
    Assignments(const Program& program, const Recording& recording, const std::vector<Parameter>& parameters)
        : program_(program), recording_(recording), parameters_(parameters) {}

    /// Lines that give `name`, of that type and zero, those bytes; empty where its members are not understood.
    std::optional<std::vector<std::string>> of(const std::string& type, const std::string& name, std::string_view bytes) {
        lines_.clear();
        const auto layout = assign(type, name, bytes, false);
        if (!layout || up(layout->bytes, layout->alignment) != int(bytes.size())) return std::nullopt;
        return lines_;
    }
    /// Where a recorded pointer leads, of `type` ("unsigned*").
    std::string pointer(std::uint64_t value, const std::string& type) const {
        std::string from, offset;
        if (const int tensor = recorded_tensor(value); tensor >= 0 && std::size_t(tensor) < parameters_.size()) {
            from = parameters_[std::size_t(tensor)].name;
            if (const std::uint64_t behind = value - recorded_address(tensor)) offset = fmt::format(" + {}", behind);
        } else {
            int n = 0;
            for (const auto& [address, _] : recording_.memory) {
                if (address == value) return fmt::format("({})device_address(table_{})", type, n);
                ++n;
            }
            return {};
        }
        return offset.empty() ? fmt::format("({}){}", type, from) : fmt::format("({})((char*){}{})", type, from, offset);
    }

  private:
    static int up(int at, int alignment) { return (at + alignment - 1) / alignment * alignment; }

    std::optional<Layout> assign(const std::string& type, const std::string& name, std::string_view bytes, bool preset) {
        if (const Scalar* scalar = scalar_of(type)) return value(*scalar, name, bytes, preset, {});
        const Item* item = program_.find_type(type.substr(type.rfind(':') == std::string::npos ? 0 : type.rfind(':') + 1));
        if (!item) return std::nullopt;
        if (!item->has_members) {  // an enum
            const std::string head = plain_text(item->head);
            const std::size_t colon = head.find(" : ");
            std::string under = colon == std::string::npos ? "int" : head.substr(colon + 3, head.find(" {", colon) - colon - 3);
            const Scalar* scalar = scalar_of(under);
            return head.starts_with("enum") && scalar ? value(*scalar, name, bytes, preset, type) : std::nullopt;
        }
        Layout out{0, 1};
        for (const Item& member : item->members) {
            if (member.kind != Item::Kind::data) continue;
            const auto all = declared(member.head);
            if (!all) return std::nullopt;
            for (const Declared& d : *all) {
                if (d.pointer) {
                    out.bytes = up(out.bytes, 8), out.alignment = std::max(out.alignment, 8);
                    for (int e = 0; e < d.count(); ++e, out.bytes += 8) {
                        if (std::size_t(out.bytes) + 8 > bytes.size()) return std::nullopt;
                        const auto address = read<std::uint64_t>(bytes.substr(std::size_t(out.bytes), 8));
                        const std::string to = name + "." + d.name + (d.extents.empty() ? "" : fmt::format("[{}]", e));
                        if (address == 0) continue;
                        // A type of its own may be one of another namespace.
                        std::string type = pointer_type(member.head);
                        const std::string_view pointed = std::string_view(type).substr(type.starts_with("const ") ? 6 : 0);
                        if (!scalar_of(pointed.substr(0, pointed.size() - 1)) && pointed != "void*")
                            type = fmt::format("decltype({})", to);
                        const std::string text = pointer(address, type);
                        if (text.empty()) return std::nullopt;
                        lines_.push_back(to + " = " + text + ";");
                    }
                    continue;
                }
                // Its size is known once it is read at the right place: alignment first.
                const auto size = layout_of(d.type);
                if (!size) return std::nullopt;
                out.bytes = up(out.bytes, size->alignment), out.alignment = std::max(out.alignment, size->alignment);
                for (int e = 0; e < d.count(); ++e, out.bytes += size->bytes) {
                    if (std::size_t(out.bytes + size->bytes) > bytes.size()) return std::nullopt;
                    const std::string to = name + "." + d.name + (d.extents.empty() ? "" : fmt::format("[{}]", e));
                    if (!assign(d.type, to, bytes.substr(std::size_t(out.bytes), std::size_t(size->bytes)), d.preset))
                        return std::nullopt;
                }
            }
        }
        out.bytes = std::max(1, up(out.bytes, out.alignment));
        return out;
    }
    std::optional<Layout> layout_of(const std::string& type) {
        static const std::string zeros(4096, '\0');
        const std::vector<std::string> before = lines_;
        const auto out = assign(type, "", zeros, false);
        lines_ = before;
        return out;
    }
    static std::string pointer_type(TokenSpan head) {
        std::string out;
        for (const Token& t : head) {
            if (t.is("*")) break;
            if (t.counts() && t.kind != TokenKind::space) out += (out.empty() || out.ends_with("::") || t.is("::") ? "" : " ") + t.text;
        }
        return out + "*";
    }
    std::optional<Layout> value(const Scalar& scalar, const std::string& name, std::string_view bytes, bool preset,
                                const std::string& as) {
        const Layout layout{scalar.bytes, scalar.bytes};
        const auto bits = read<std::uint64_t>(bytes.substr(0, std::size_t(scalar.bytes)));
        if (bits == 0 && !preset) return layout;
        std::string text;
        if (scalar.kind == 'f') {
            const double number = scalar.bytes == 4 ? double(std::bit_cast<float>(std::uint32_t(bits))) : std::bit_cast<double>(bits);
            if (!std::isfinite(number)) return std::nullopt;
            text = scalar.bytes == 4 ? fmt::format("{}", float(number)) : fmt::format("{}", number);
            if (text.find_first_of(".e") == std::string::npos) text += ".0";
            if (scalar.bytes == 4) text += "f";
        } else if (scalar.name == "bool") {
            text = bits ? "true" : "false";
        } else if (scalar.kind == 'u') {
            text = scalar.bytes == 8 && bits > 0xffffffffu ? fmt::format("{:#x}ull", bits) : fmt::format("{}", bits);
        } else {
            const int shift = 64 - 8 * scalar.bytes;
            text = fmt::format("{}", std::int64_t(bits << shift) >> shift);
            if (text == "-2147483648") text = "-2147483647 - 1";
        }
        lines_.push_back(name + " = " + (as.empty() ? text : as + "(" + text + ")") + ";");
        return layout;
    }

    const Program& program_;
    const Recording& recording_;
    const std::vector<Parameter>& parameters_;
    std::vector<std::string> lines_;
};

/// Of a kernel: what its parameters are called, and of which type.
std::vector<Declared> parameters_of(const Program& program, const std::string& kernel) {
    const std::size_t angle = kernel.find('<');
    const std::string plain = kernel.substr(0, angle);
    const std::string scope = plain.substr(0, plain.rfind("::"));
    const Item* function = program.find_function(plain.substr(plain.rfind("::") + 2));
    if (!function) throw RequestError("emit: the text has no kernel " + plain);
    const Tokens& t = function->head;
    // Types that the kernel is a template of.
    std::vector<std::pair<std::string, std::string>> types;
    std::size_t at = next_counting(t, 0);
    if (t[at].is("template")) {
        std::vector<std::string> given;
        const Tokens arguments = tokens_of(
            angle == std::string::npos ? std::string_view() : std::string_view(kernel).substr(angle + 1, kernel.size() - angle - 2));
        std::string one;
        for (std::size_t i = 0; i <= arguments.size(); ++i) {
            if (i < arguments.size() && !arguments[i].is(",")) {
                one += arguments[i].text;
                continue;
            }
            given.push_back(one.substr(std::min(one.find_first_not_of(' '), one.size())));
            one.clear();
        }
        const std::size_t open = next_counting(t, at + 1), end = behind_angles(t, open);
        std::size_t place = 0;
        for (std::size_t i = open + 1; i < end; ++i) {
            if (!t[i].is(",") && i + 1 != end) continue;
            std::size_t name = i - 1;
            while (!t[name].counts()) --name;
            if (place < given.size()) types.emplace_back(t[name].text, given[place]);
            ++place;
        }
        at = end;
    }
    std::size_t open = at;
    for (; open < t.size(); ++open) {
        if (!t[open].is("(")) continue;
        std::size_t before = open - 1;
        while (!t[before].counts()) --before;
        if (t[before].is("__launch_bounds__")) {
            open = closing(t, open);
            continue;
        }
        break;
    }
    const std::size_t close = closing(t, open);
    std::vector<Declared> out;
    std::size_t begin = open + 1;
    for (std::size_t i = begin; i <= close; ++i) {
        if (i < close && (t[i].is("<"))) {
            i = behind_angles(t, i) - 1;
            continue;
        }
        if (i < close && !t[i].is(",")) continue;
        const auto one = declared(TokenSpan(t).subspan(begin, i - begin));
        if (!one || one->size() != 1) throw RequestError("emit: a parameter of " + plain + " is not understood");
        Declared d = one->front();
        for (const auto& [name, type] : types)
            if (d.type == name) d.type = type;
        if (d.pointer) {
            std::string text;
            for (std::size_t k = begin; k < i && !t[k].is("*"); ++k)
                if (t[k].counts() && !t[k].is("__grid_constant__"))
                    text += (text.empty() || text.ends_with("::") || t[k].is("::") ? "" : " ") + t[k].text;
            d.type = text + "*";
        } else if (d.type.find("::") == std::string::npos && !scalar_of(d.type) && d.type != "TensorMap") {
            const Item* found = program.find_type(d.type);
            if (found && scope != "rooftile") d.type = scope + "::" + d.type;
        }
        out.push_back(std::move(d));
        begin = i + 1;
    }
    return out;
}

std::string list_of(const auto& numbers) {
    std::string out;
    for (const auto n : numbers) out += fmt::format("{}{}", out.empty() ? "" : ", ", n);
    return "{" + out + "}";
}

}  // namespace

std::string identifier_of(std::string_view name) {
    std::string out;
    for (const char c : name)
        out += std::isalnum(static_cast<unsigned char>(c)) ? char(std::tolower(static_cast<unsigned char>(c))) : '_';
    if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out = "_" + out;
    static constexpr std::string_view taken[] = {"stream", "workspace", "launch", "kernel", "config", "int",    "float", "double",
                                                 "bool",   "char",      "long",   "short",  "new",    "delete", "this",  "class",
                                                 "struct", "auto",      "for",    "if",     "do",     "or",     "and",   "not"};
    if (std::ranges::find(taken, out) != std::end(taken)) out += '_';
    return out;
}

std::string launcher_helpers(const Recording& recording, bool maps) {
    std::string out;
    if (maps)
        out +=
            R"(/// A tensor for TMA, its innermost axis first: extents and the box of one copy in elements,
/// strides in bytes from the second axis on. The driver's function is found by the runtime: nothing but cudart is linked.
inline cudaError_t make_tensor_map(TensorMap* map, CUtensorMapDataType type, const void* base, std::initializer_list<cuuint64_t> extents,
                                   std::initializer_list<cuuint64_t> strides, std::initializer_list<cuuint32_t> box,
                                   CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion) {
    static void* encode = nullptr;
    cudaDriverEntryPointQueryResult found;
    if (!encode)
        if (const cudaError_t error =
                cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &found))
            return error;
    const cuuint32_t steps[5] = {1, 1, 1, 1, 1};
    const CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(
        reinterpret_cast<CUtensorMap*>(map), type, cuuint32_t(extents.size()), const_cast<void*>(base), extents.begin(),
        strides.begin(), box.begin(), steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

)";
    if (std::ranges::any_of(recording.maps, [](const RecordedMap& map) { return !map.steps.empty(); }))
        out +=
            R"(/// The same of images, channels innermost: the box is channels and pixels of one copy; the first tap's pixel lies between the corners, a
/// step from the next.
inline cudaError_t make_image_map(TensorMap* map, CUtensorMapDataType type, const void* base, std::initializer_list<cuuint64_t> extents,
                                  std::initializer_list<cuuint64_t> strides, std::initializer_list<cuuint32_t> box, CUtensorMapSwizzle swizzle,
                                  CUtensorMapL2promotion promotion, std::initializer_list<int> first, std::initializer_list<int> past_last,
                                  std::initializer_list<cuuint32_t> steps) {
    static void* encode = nullptr;
    cudaDriverEntryPointQueryResult found;
    if (!encode)
        if (const cudaError_t error =
                cudaGetDriverEntryPointByVersion("cuTensorMapEncodeIm2col", &encode, 12000, cudaEnableDefault, &found))
            return error;
    const CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeIm2col)>(encode)(
        reinterpret_cast<CUtensorMap*>(map), type, cuuint32_t(extents.size()), const_cast<void*>(base), extents.begin(), strides.begin(),
        first.begin(), past_last.begin(), box.begin()[0], box.begin()[1], steps.begin(), CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, promotion,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

)";
    int n = 0;
    for (const auto& [address, bytes] : recording.memory) {
        const std::size_t words = bytes.size() / 4;
        out += fmt::format("/// The tiles in their order, row << 16 | column.\n__device__ unsigned table_{}[{}] = {{", n++, words);
        for (std::size_t i = 0; i < words; ++i)
            out += fmt::format("{}{}",
                               i == 0        ? "\n    "
                               : i % 12 == 0 ? ",\n    "
                                             : ", ",
                               read<std::uint32_t>(std::string_view(bytes).substr(4 * i, 4)));
        out += "};\n\n";
    }
    if (n > 0)
        out += R"(template <class T>
inline void* device_address(T& symbol) {
    void* address = nullptr;
    cudaGetSymbolAddress(&address, symbol);
    return address;
}

)";
    return out;
}

namespace {

std::string grid_lines(const LaunchText& l, const std::string& in) {
    const Launch& launch = l.recorded.launch;
    std::string out;
    const unsigned cluster = launch.cluster_x * launch.cluster_y * launch.cluster_z;
    const auto dim3 = [](unsigned x, unsigned y, unsigned z) {
        return z > 1 ? fmt::format("dim3({}, {}, {})", x, y, z) : y > 1 ? fmt::format("dim3({}, {})", x, y) : fmt::format("{}", x);
    };
    out += in + "cudaLaunchAttribute attributes[3]{};\n" + in + "cudaLaunchConfig_t launch{};\n";
    out += fmt::format("{}launch.gridDim = {};\n", in, dim3(launch.grid_x, launch.grid_y, launch.grid_z));
    out += fmt::format("{}launch.blockDim = {};\n", in, dim3(launch.block_x, launch.block_y, launch.block_z));
    if (launch.shared_bytes > 0) out += fmt::format("{}launch.dynamicSmemBytes = {};\n", in, launch.shared_bytes);
    out += in + "launch.stream = stream;\n" + in + "launch.attrs = attributes;\n";
    if (cluster > 1) {
        out += in + "attributes[launch.numAttrs].id = cudaLaunchAttributeClusterDimension;\n";
        out += fmt::format("{}attributes[launch.numAttrs++].val.clusterDim = {{{}, {}, {}}};\n", in, launch.cluster_x, launch.cluster_y,
                           launch.cluster_z);
    }
    if (launch.cooperative) {
        out += in + "attributes[launch.numAttrs].id = cudaLaunchAttributeCooperative;\n";
        out += in + "attributes[launch.numAttrs++].val.cooperative = 1;\n";
    }
    if (launch.programmatic_dependent) {
        out += in + "// It may begin during the end of the kernel before: it waits for it by itself.\n";
        out += in + "attributes[launch.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;\n";
        out += in + "attributes[launch.numAttrs++].val.programmaticStreamSerializationAllowed = 1;\n";
    }
    if (!l.at_most_resident) return out;
    // Persistent: whoever waits for an SM would begin when the others end.
    out += fmt::format("{}// Persistent: no more CTAs than the GPU holds at once, which may be fewer than were planned for.\n", in);
    if (cluster > 1) {
        out += fmt::format(
            "{0}int clusters = 0;\n{0}if (const cudaError_t error = cudaOccupancyMaxActiveClusters(&clusters, kernel, &launch)) return "
            "error;\n",
            in);
        out += fmt::format("{0}if (unsigned(clusters) * {1} < launch.gridDim.x) launch.gridDim.x = unsigned(clusters) * {1};\n", in,
                           cluster);
    } else {
        out += fmt::format(
            "{0}int device = 0, sms = 0, fitting = 0;\n{0}cudaGetDevice(&device);\n"
            "{0}cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);\n"
            "{0}if (const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fitting, kernel, {1}, {2})) return error;\n"
            "{0}if (unsigned(sms * fitting) < launch.gridDim.x) launch.gridDim.x = unsigned(sms * fitting);\n",
            in, launch.block_x * launch.block_y * launch.block_z, launch.shared_bytes);
    }
    return out;
}

}  // namespace

std::string launcher_text(const Program& program, const std::vector<LaunchText>& launches, const Recording& recording,
                          const std::vector<Parameter>& parameters, const std::string& story) {
    Assignments assignments(program, recording, parameters);
    std::string body;
    const bool several = launches.size() > 1;
    for (const LaunchText& l : launches) {
        const std::string in = several ? "        " : "    ";
        if (several) body += "    {\n";
        body += fmt::format("{}const auto kernel = {};\n", in, l.kernel);
        const auto set = [&](int which, const char* name) {
            const auto found = l.recorded.attributes.find(which);
            if (found == l.recorded.attributes.end() || found->second == 0) return;
            body += fmt::format("{}if (const cudaError_t error = cudaFuncSetAttribute(kernel, {}, {})) return error;\n", in, name,
                                found->second);
        };
        set(8, "cudaFuncAttributeMaxDynamicSharedMemorySize");
        set(9, "cudaFuncAttributePreferredSharedMemoryCarveout");
        set(14, "cudaFuncAttributeNonPortableClusterSizeAllowed");
        const std::vector<Declared> of_kernel = parameters_of(program, l.kernel);
        if (of_kernel.size() != l.recorded.arguments.size())
            throw RequestError(fmt::format("emit: {} has {} parameters, and is launched with {}", l.kernel, of_kernel.size(),
                                           l.recorded.arguments.size()));
        std::string call;
        for (std::size_t i = 0; i < of_kernel.size(); ++i) {
            const Declared& p = of_kernel[i];
            const std::string& bytes = l.recorded.arguments[i];
            call += ", " + p.name;
            if (const int m = map_of(bytes); m >= 0) {
                const RecordedMap& map = recording.maps[std::size_t(m)];
                const std::string base = assignments.pointer(map.base, "const void*");
                const std::string image = map.steps.empty() ? "" : fmt::format(", {}, {}, {}", list_of(map.first), list_of(map.past_last), list_of(map.steps));
                body += fmt::format(
                    "{0}TensorMap {1}{{}};\n{0}if (const cudaError_t error = make_{9}map(&{1}, {2}, {3}, {4}, {5}, {6},\n{0}        "
                    "{7}, {8}{10}))\n{0}    return error;\n",
                    in, p.name, map.type, base.empty() ? "nullptr" : base, list_of(map.extents), list_of(map.strides), list_of(map.box),
                    map.swizzle, map.l2_promotion, image.empty() ? "tensor_" : "image_", image);
                continue;
            }
            if (p.pointer) {
                const auto address = read<std::uint64_t>(bytes);
                body += fmt::format("{}const auto {} = {};\n", in, p.name,
                                    address == 0 ? fmt::format("({})nullptr", p.type) : assignments.pointer(address, p.type));
                continue;
            }
            body += fmt::format("{}{} {}{{}};\n", in, p.type, p.name);
            if (bytes.find_first_not_of('\0') == std::string::npos && p.type == "TensorMap") continue;
            if (const auto lines = assignments.of(p.type, p.name, bytes)) {
                for (const std::string& line : *lines) body += in + line + "\n";
                continue;
            }
            // Members that are not understood: its words.
            std::string words;
            for (std::size_t w = 0; w < bytes.size(); w += 8) {
                const auto word = read<std::uint64_t>(std::string_view(bytes).substr(w, 8));
                const std::string pointer = recorded_tensor(word) >= 0 ? assignments.pointer(word, "unsigned long long") : std::string();
                words += fmt::format("{}{}", words.empty() ? "" : ", ", pointer.empty() ? fmt::format("{:#x}ull", word) : pointer);
            }
            body += fmt::format("{0}const unsigned long long {1}_words[] = {{{2}}};\n{0}memcpy(&{1}, {1}_words, sizeof {1});\n", in,
                                p.name, words);
        }
        body += grid_lines(l, in);
        if (several)
            body +=
                fmt::format("{0}if (const cudaError_t error = cudaLaunchKernelEx(&launch, kernel{1})) return error;\n    }}\n", in, call);
        else body += fmt::format("{}return cudaLaunchKernelEx(&launch, kernel{});\n", in, call);
    }
    if (several) body += "    return cudaSuccess;\n";
    std::string list;
    for (const Parameter& p : parameters) list += fmt::format("{}{}void* {}", list.empty() ? "" : ", ", p.stored ? "" : "const ", p.name);
    return story + fmt::format("inline cudaError_t launch({}, cudaStream_t stream) {{\n{}}}\n", list, body);
}

}  // namespace rooftile::emit
