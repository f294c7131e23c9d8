#include "rooftile/report/code_accesses.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace rooftile {
namespace {

template <class F>
void for_each_line(std::string_view text, F f) {
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        f(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

/// The word of `line` that begins with `prefix`, as "LDG.E.128.CONSTANT"; empty where there is none.
std::string_view word_with(std::string_view line, std::string_view prefix) {
    const std::size_t at = line.find(prefix);
    if (at == line.npos || (at > 0 && line[at - 1] != ' ' && line[at - 1] != '\t')) return {};
    line.remove_prefix(at);
    return line.substr(0, line.find_first_of(" \t;"));
}

/// visit(part) of each part between points.
template <class F>
void for_each_part(std::string_view word, F visit) {
    while (!word.empty()) {
        const std::size_t end = std::min(word.find('.'), word.size());
        visit(word.substr(0, end));
        word.remove_prefix(std::min(end + 1, word.size()));
    }
}

/// What stands behind `head`, up to `end` or the text's end; empty where there is no such head.
std::string_view part_of(std::string_view text, std::string_view head, std::string_view end) {
    const std::size_t at = text.find(head);
    if (at == text.npos) return {};
    text.remove_prefix(at + head.size());
    return text.substr(0, text.find(end));
}

int number_of(std::string_view text) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? value : 0;
}

/// Of a SASS mnemonic: 4 bytes unless it says otherwise.
int sass_bytes(std::string_view mnemonic) {
    int bytes = 4;
    for_each_part(mnemonic, [&](std::string_view part) {
        if (part == "U8" || part == "S8") bytes = 1;
        if (part == "U16" || part == "S16") bytes = 2;
        if (part == "64" || part == "128" || part == "256") bytes = number_of(part) / 8;
    });
    return bytes;
}

/// Of a type as PTX writes it, "b8", "u64", "bf16x2": its bytes; 0 where it is none.
int ptx_type_bytes(std::string_view part) {
    const bool pair = part.size() > 2 && part.ends_with("x2");
    if (pair) part.remove_suffix(2);
    if (part.starts_with("bf")) part.remove_prefix(1);
    if (part.size() < 2 || std::string_view("busf").find(part[0]) == std::string_view::npos) return 0;
    return number_of(part.substr(1)) / 8 * (pair ? 2 : 1);
}

/// What a PTX instruction moves for a thread; 0 where it names no type.
struct PtxWidth {
    int bytes = 0;
    bool global = false;  ///< it accesses global memory
};
PtxWidth ptx_width(std::string_view instruction) {
    PtxWidth width;
    int vector = 1;
    for_each_part(instruction, [&](std::string_view part) {
        if (part == "global") width.global = true;
        if (part == "v2" || part == "v4" || part == "v8") vector = number_of(part.substr(1));
        if (const int of_type = ptx_type_bytes(part)) width.bytes = of_type;
    });
    width.bytes *= vector;
    return width;
}

/// A line's access of global memory, in SASS or PTX.
struct Access {
    bool stores;
    int bytes;  ///< that a thread moves
};
std::optional<Access> access_of(std::string_view line) {
    for (const bool stores : {false, true}) {
        if (const auto word = word_with(line, stores ? "STG." : "LDG."); !word.empty()) return Access{stores, sass_bytes(word)};
        if (const auto [bytes, global] = ptx_width(word_with(line, stores ? "st." : "ld.")); global && bytes) return Access{stores, bytes};
    }
    return {};
}

AccessWidths accesses(std::string_view code) {
    AccessWidths widths;
    for_each_line(code, [&](std::string_view line) {
        if (const auto access = access_of(line)) ++(access->stores ? widths.stores : widths.loads)[access->bytes];
    });
    return widths;
}

/// What an instruction that begins with a word is, where it is no access of global memory.
struct Remark {
    std::string_view word, text;
    bool has_width = false;  ///< "of 16 B a thread" follows
};
constexpr Remark remarks[] = {
    {"LDL", "load of spilled or indexed registers", true},
    {"STL", "store of spilled or indexed registers", true},
    {"ld.local", "load of spilled or indexed registers", true},
    {"st.local", "store of spilled or indexed registers", true},
    {"LDSM.", "ldmatrix: a warp loads 8 x 8 matrices from shared memory"},
    {"ldmatrix.", "ldmatrix: a warp loads 8 x 8 matrices from shared memory"},
    {"STSM.", "stmatrix: a warp stores 8 x 8 matrices to shared memory"},
    {"stmatrix.", "stmatrix: a warp stores 8 x 8 matrices to shared memory"},
    {"LDS", "shared memory: load", true},
    {"STS", "shared memory: store", true},
    {"ld.shared", "shared memory: load", true},
    {"st.shared", "shared memory: store", true},
    {"LDC", "constant memory: parameters of the kernel"},
    {"ULDC", "constant memory: parameters of the kernel, for the whole warp"},
    {"ld.param", "a parameter of the kernel"},
    {"LDGSTS.", "cp.async: copy from global to shared memory, past the registers"},
    {"cp.async.commit_group", "cp.async: end of a group"},
    {"cp.async.wait", "cp.async: waits until few groups are left"},
    {"cp.async.mbarrier", "cp.async: arrives at a barrier when its copies have"},
    {"cp.async.bulk.commit_group", "bulk copies: end of a group"},
    {"cp.async.bulk.wait", "bulk copies: waits until few groups are left"},
    {"cp.async.bulk.prefetch", "bulk copy to L2 alone"},
    {"cp.async.bulk.tensor", "TMA: copy of a box of a tensor, asked for by one thread"},
    {"cp.async.bulk", "bulk copy, asked for by one thread"},
    {"cp.async", "cp.async: copy from global to shared memory, past the registers"},
    {"UTMALDG", "TMA: load of a box of a tensor, asked for by one thread"},
    {"UTMASTG", "TMA: store of a box of a tensor, asked for by one thread"},
    {"UTMACMDFLUSH", "TMA: end of a group of stores"},
    {"UBLKCP", "bulk copy, asked for by one thread"},
    {"UTMAPF", "TMA: prefetch"},
    {"SYNCS.", "mbarrier: arrive, wait, or count of bytes to come"},
    {"mbarrier.", "mbarrier: arrive, wait, or count of bytes to come"},
    {"UCGABAR", "barrier of the cluster"},
    {"barrier.cluster", "barrier of the cluster"},
    {"WARPSYNC", "barrier of the warp"},
    {"bar.warp", "barrier of the warp"},
    {"BAR.", "barrier of the CTA"},
    {"bar.", "barrier of the CTA"},
    {"barrier.", "barrier of the CTA"},
    {"WARPGROUP.", "wgmma: fence or wait of a warpgroup"},
    {"wgmma.fence", "wgmma: registers are ready"},
    {"wgmma.commit", "wgmma: end of a group"},
    {"wgmma.wait", "wgmma: waits until few groups are left"},
    {"USETMAXREG", "registers moved between warpgroups"},
    {"setmaxnreg", "registers moved between warpgroups"},
    {"ACQBULK", "wait for the kernel before (programmatic launch)"},
    {"griddepcontrol", "meets the kernel before or after (programmatic launch)"},
    {"PREEXIT", "the kernel after it may begin (programmatic launch)"},
    {"MEMBAR", "fence: order of memory"},
    {"FENCE", "fence: order of memory"},
    {"fence.", "fence: order of memory"},
    {"membar.", "fence: order of memory"},
    {"ATOM", "atomic operation"},
    {"RED.", "atomic operation without a result"},
    {"REDG.", "atomic operation without a result"},
    {"atom.", "atomic operation"},
    {"red.", "atomic operation without a result"},
    {"SHFL.", "shuffle within the warp"},
    {"shfl.", "shuffle within the warp"},
    {"VOTE", "vote of the warp"},
    {"vote.", "vote of the warp"},
    {"MUFU.", "special function unit"},
    {"ex2.approx", "special function unit"},
    {"lg2.approx", "special function unit"},
    {"rcp.approx", "special function unit"},
    {"sqrt.approx", "special function unit"},
    {"sin.approx", "special function unit"},
    {"cos.approx", "special function unit"},
    {"rsqrt.approx", "special function unit"},
    {"tanh.approx", "special function unit"},
    {"HMMA.", "matrix unit"},
    {"IMMA.", "matrix unit"},
    {"DMMA.", "matrix unit"},
    {"QMMA.", "matrix unit"},
    {"HGMMA.", "matrix unit"},
    {"IGMMA.", "matrix unit"},
    {"QGMMA.", "matrix unit"},
    {"mma.sync", "matrix unit"},
    {"wgmma.mma_async", "matrix unit"},
    {"DFMA", "fp64 unit"},
    {"DADD", "fp64 unit"},
    {"DMUL", "fp64 unit"},
    {"F2F", "conversion"},
    {"F2I", "conversion"},
    {"I2F", "conversion"},
    {"BRA", "branch"},
    {"bra", "branch"},
    {"BSSY", "lanes that part meet again at its label"},
    {"BSYNC", "lanes that have parted meet"},
    {"EXIT", "end of the thread"},
    {"ret", "end of the thread"},
};
constexpr Remark registers[] = {
    {"%ctaid", "blockIdx: place of the CTA in the grid"},
    {"SR_CTAID", "blockIdx: place of the CTA in the grid"},
    {"%tid", "threadIdx: place of the thread in its CTA"},
    {"SR_TID", "threadIdx: place of the thread in its CTA"},
    {"%ntid", "blockDim: threads of a CTA"},
    {"%nctaid", "gridDim: CTAs of the grid"},
    {"%laneid", "place of the thread in its warp"},
    {"SR_LANEID", "place of the thread in its warp"},
    {"%cluster_ctarank", "place of the CTA in its cluster"},
    {"SR_CgaCtaId", "place of the CTA in its cluster"},
};

/// How many elements so many bytes are: "16 B a thread (4 of 32 bits, 8 of 16)".
std::string width_text(int bytes) {
    std::string elements;
    for (const int bits : {32, 16, 8})
        if (8 * bytes > bits && 8 * bytes % bits == 0)
            elements += fmt::format("{}{} of {}", elements.empty() ? "" : ", ", 8 * bytes / bits, bits) + (elements.empty() ? " bits" : "");
    return fmt::format("{} B a thread{}", bytes, elements.empty() ? "" : " (" + elements + ")");
}

/// Bytes that an instruction moves for a thread, in SASS or PTX; of ldmatrix and what has no width 0.
int width_of(std::string_view word) {
    return std::string_view("LS").find(word[0]) != std::string_view::npos ? sass_bytes(word) : ptx_width(word).bytes;
}

std::string unit_of(std::string_view line) {
    if (const auto access = access_of(line)) return fmt::format("global memory: {} of {}", access->stores ? "store" : "load", width_text(access->bytes));
    for (const Remark& r : remarks)
        if (const auto word = word_with(line, r.word); !word.empty()) {
            const int bytes = r.has_width ? width_of(word) : 0;
            return std::string(r.text) + (bytes > 0 ? " of " + width_text(bytes) : "");
        }
    for (const Remark& r : registers)
        if (line.find(r.word) != line.npos) return std::string(r.text);
    return {};
}

/// "%p1" of a line that begins with "@%p1", "not P0" of "@!P0", behind an address where there is one; empty where nothing is asked.
std::string predicate_of(std::string_view line) {
    const std::size_t at = line.find('@');
    if (at == line.npos || line.substr(0, at).find_first_not_of(" \t/*0123456789abcdef{") != line.npos) return {};
    std::string_view name = line.substr(at + 1);
    name = name.substr(0, name.find_first_of(" \t"));
    const bool opposite = name.starts_with('!');
    if (opposite) name.remove_prefix(1);
    return (opposite ? "not " : "") + std::string(name);
}

std::string remark_of(std::string_view line) {
    if (const std::size_t first = line.find_first_not_of(" \t"); first == line.npos || line.substr(first).starts_with("//")) return {};
    const std::string unit = unit_of(line), predicate = predicate_of(line);
    if (predicate.empty()) return unit;
    return unit.empty() ? "only where " + predicate : unit + ", only where " + predicate;
}

}  // namespace

std::string annotated_code(std::string_view text) {
    constexpr std::size_t column = 88;
    std::string out;
    for_each_line(text, [&](std::string_view line) {
        out += line;
        if (const std::string remark = remark_of(line); !remark.empty())
            out += std::string(line.size() < column ? column - line.size() : 2, ' ') + "// " + remark;
        out += '\n';
    });
    return out;
}

std::string ptx_legend() {
    return "// %r: 32-bit registers, %rd 64-bit, %rs and %h 16-bit, %f fp32, %fd fp64, %p predicates; as many as one likes, ptxas makes\n"
           "// machine registers of them. %ctaid is blockIdx, %tid threadIdx, %ntid blockDim, %nctaid gridDim. \"@%p1\" before an instruction:\n"
           "// only threads whose %p1 is true do it. ld and st name the memory (global, shared, local, param), the vector (v2, v4) and the type.\n";
}

std::string sass_legend() {
    return "// R0 to R254: 32-bit registers of a thread, pairs of them hold 64 bits; RZ is 0. UR: registers of the whole warp. P0 to P6:\n"
           "// predicates, PT is true. \"@P0\" before an instruction: only threads whose P0 is true do it. c[0x0][...]: parameters of the kernel.\n"
           "// In LDG.E.128 a thread loads 128 bits; without a number 32.\n";
}

std::vector<std::string> ptx_entries(std::string_view ptx) {
    std::vector<std::string> names;
    constexpr std::string_view head = ".entry ";
    for (std::size_t at = ptx.find(head); at != ptx.npos; at = ptx.find(head, at)) {
        at += head.size();
        names.emplace_back(ptx.substr(at, ptx.find_first_of("( \t\n", at) - at));
    }
    return names;
}

AccessWidths sass_accesses(std::string_view sass, std::string_view lowered_name) {
    // nvdisasm: a label, and a line of dashes before the next section; cuobjdump: a heading.
    std::string_view code = part_of(sass, fmt::format(".text.{}:\n", lowered_name), "//-----");
    if (code.empty()) code = part_of(sass, fmt::format("Function : {}\n", lowered_name), "Function : ");
    return accesses(code);
}

AccessWidths ptx_accesses(std::string_view ptx, std::string_view lowered_name) {
    return accesses(part_of(ptx, fmt::format(".entry {}(", lowered_name), "\n}"));
}

std::string widths_text(const std::map<int, int>& widths) {
    std::string out;
    for (auto width = widths.rbegin(); width != widths.rend(); ++width)
        out += fmt::format("{}{} of {} B", out.empty() ? "" : ", ", width->second, width->first);
    return out.empty() ? "none" : out;
}

std::string parameters_text(const std::vector<int>& bytes) {
    return bytes.empty() ? "none" : fmt::format("{} B", fmt::join(bytes, " B, "));
}

std::vector<int> entry_parameters(std::string_view ptx, std::string_view lowered_name) {
    const std::string head = fmt::format(".entry {}(", lowered_name);
    const std::size_t at = ptx.find(head);
    if (at == ptx.npos) return {};
    ptx.remove_prefix(at + head.size());
    std::string_view list = ptx.substr(0, ptx.find(')'));
    std::vector<int> sizes;
    while (!list.empty()) {
        const std::size_t end = std::min(list.find(','), list.size());
        const std::string_view one = list.substr(0, end);
        list.remove_prefix(std::min(end + 1, list.size()));
        // ".param .align 4 .b8 gelu_param_2[12]"
        int bytes = 0;
        for (std::size_t dot = one.find('.'); dot != one.npos; dot = one.find('.', dot + 1)) {
            const std::string_view word = one.substr(dot + 1, one.find_first_of(" \t\n", dot) - dot - 1);
            if (bytes == 0) bytes = ptx_type_bytes(word);
        }
        if (bytes == 0) continue;
        if (const std::size_t open = one.find('['); open != one.npos)
            bytes *= number_of(one.substr(open + 1, one.find(']') - open - 1));
        sizes.push_back(bytes);
    }
    return sizes;
}

}  // namespace rooftile
