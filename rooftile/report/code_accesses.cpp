#include "rooftile/report/code_accesses.hpp"

#include <fmt/core.h>

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

/// Of a PTX instruction; 0 where it accesses no global memory.
int ptx_bytes(std::string_view instruction) {
    int bytes = 0, vector = 1;
    bool global = false;
    for_each_part(instruction, [&](std::string_view part) {
        if (part == "global") global = true;
        if (part == "v2" || part == "v4" || part == "v8") vector = number_of(part.substr(1));
        if (const int of_type = ptx_type_bytes(part)) bytes = of_type;
    });
    return global ? bytes * vector : 0;
}

/// A line's access of global memory, in SASS or PTX.
struct Access {
    bool stores;
    int bytes;  ///< that a thread moves
};
std::optional<Access> access_of(std::string_view line) {
    for (const bool stores : {false, true}) {
        if (const auto word = word_with(line, stores ? "STG." : "LDG."); !word.empty()) return Access{stores, sass_bytes(word)};
        if (const int bytes = ptx_bytes(word_with(line, stores ? "st." : "ld."))) return Access{stores, bytes};
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
};
constexpr Remark remarks[] = {
    {"BAR.", "barrier of the CTA"},
    {"bar.", "barrier of the CTA"},
    {"barrier.", "barrier of the CTA"},
    {"SHFL.", "shuffle within the warp"},
    {"shfl.", "shuffle within the warp"},
    {"MUFU.", "special function unit"},
    {"ex2.approx", "special function unit"},
    {"rsqrt.approx", "special function unit"},
    {"tanh.approx", "special function unit"},
    {"HMMA.", "matrix unit"},
    {"HGMMA.", "matrix unit"},
    {"mma.sync", "matrix unit"},
    {"wgmma.mma_async", "matrix unit"},
    {"BRA", "branch"},
    {"bra", "branch"},
};
constexpr Remark spills[] = {
    {"LDL.", "load of spilled or indexed registers"},
    {"STL.", "store of spilled or indexed registers"},
};
constexpr Remark registers[] = {
    {"%ctaid", "place of the CTA in the grid"},
    {"SR_CTAID", "place of the CTA in the grid"},
    {"%tid", "place of the thread in its CTA"},
    {"SR_TID", "place of the thread in its CTA"},
    {"%ntid", "threads of a CTA"},
    {"%nctaid", "CTAs of the grid"},
};

std::string remark_of(std::string_view line) {
    if (const auto access = access_of(line))
        return fmt::format("global {} of {} B a thread", access->stores ? "store" : "load", access->bytes);
    for (const Remark& spill : spills)
        if (const auto word = word_with(line, spill.word); !word.empty())
            return fmt::format("{} of {} B a thread", spill.text, sass_bytes(word));
    for (const Remark& r : remarks)
        if (!word_with(line, r.word).empty()) return std::string(r.text);
    for (const Remark& r : registers)
        if (line.find(r.word) != line.npos) return std::string(r.text);
    return {};
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
