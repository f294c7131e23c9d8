#include "rooftile/names/kernel_name.hpp"

#include <algorithm>

#include "rooftile/names/families.hpp"

namespace rooftile {
namespace {

constexpr std::size_t columns = 60;  ///< of a description

std::string extent_text(const KernelName& name) {
    std::string out;
    for (const auto& extent : {name.tile_m, name.tile_n, name.tile_k})
        if (extent) out += (out.empty() ? "" : "x") + std::to_string(*extent);
    return out;
}

std::string types_text(const KernelName::Types& types) {
    if (types.a.empty()) return "";
    std::string out = types.a;
    if (!types.b.empty() && types.b != types.a) out += "*" + types.b;
    if (!types.c.empty() && types.c != types.a && types.a != "tf32") out += "->" + types.c;
    return out;
}

/// So many elements in equal parts, each of one box or of whole boxes.
long whole_boxes(long elements, int bits, int parts) {
    const long box = 1024 / bits, part = elements / parts;
    return part > box ? parts * ((part + box - 1) / box * box) : elements;
}

/// At most `most` signs, whole words, and what shows that there is more.
std::string shortened(const std::string& text, std::size_t most) {
    if (text.size() <= most) return text;
    std::string out = text.substr(0, most - 3);
    const std::size_t space = out.rfind(' ');
    if (space != out.npos && space > most / 2) out.resize(space);
    return out + "...";
}

}  // namespace

KernelName decode(std::string_view given) {
    using namespace names;
    KernelName plain;
    plain.name = demangled(given);
    const Text text{plain.name, signature_of(plain.name)};
    // The first whose name it is: those that a word tells for sure before those that look into templates.
    for (const auto& read :
         {read_own, read_copy, read_nvjet, read_xmma, read_nccl, read_triton, read_flash_attention, read_memory_efficient, read_deep_gemm,
          read_cutlass_named, read_cub, read_serving, read_cublas, read_cudnn, read_cutlass_template, read_pytorch}) {
        KernelName out = plain;
        if (!read(text, out)) continue;
        if (plain.name.ends_with("...")) out.uncertain.push_back("name: cut short");
        return out;
    }
    return plain;
}

std::string describe(const KernelName& name) {
    if (name.family == "unknown") return "unknown kernel";
    std::vector<std::string> parts;
    std::string head = name.library.empty() ? name.family : name.library;
    const bool product = name.tile_m.has_value() && name.role != "reduce";
    if (const std::string types = types_text(name.types); !types.empty()) head += " " + types;
    if (product) head += " " + extent_text(name);
    if (!name.role.empty() && (!product || name.role != "gemm")) head += " " + name.role;
    parts.push_back(head);
    if (!name.operation.empty() && name.role == "attention") parts.push_back(name.operation);
    if (name.stages && product) parts.push_back(std::to_string(*name.stages) + (*name.stages == 1 ? " stage" : " stages"));
    if (name.cluster_m && name.cluster_n && long(*name.cluster_m) * *name.cluster_n > 1)
        parts.push_back("cluster " + std::to_string(*name.cluster_m) + "x" + std::to_string(*name.cluster_n));
    if (name.split_k == true && name.role != "reduce") parts.push_back("split-K");
    if (!name.layout.empty() && name.role == "gemm") parts.push_back(name.layout);
    if (!name.epilogue.empty()) parts.push_back(name.epilogue);
    if (!name.operation.empty() && name.role != "attention") parts.push_back(name.operation);
    // What does not fit goes, the least important first: the last.
    std::string out = parts[0];
    for (std::size_t i = 1; i < parts.size(); ++i)
        if (out.size() + 2 + parts[i].size() <= columns) out += (i == 1 && !product ? ": " : ", ") + parts[i];
        else if (i + 1 == parts.size() && out.size() + 16 <= columns)
            out += (i == 1 && !product ? ": " : ", ") + shortened(parts[i], columns - out.size() - 2);
    return shortened(out, columns);
}

bool is_matrix_work(const KernelName& name) { return name.role == "gemm" || name.role == "attention" || name.role == "conv"; }

std::optional<int> bits_of_type(std::string_view type) {
    const bool complex = type.starts_with("complex_");
    if (complex) type.remove_prefix(8);
    int bits = 0;
    if (type == "bf16" || type == "fp16") bits = 16;
    else if (type == "fp32" || type == "tf32" || type == "int32" || type == "uint32") bits = 32;
    else if (type == "fp64" || type == "int64" || type == "uint64") bits = 64;
    else if (type == "fp8_e4m3" || type == "fp8_e5m2" || type == "int8" || type == "uint8" || type == "bool") bits = 8;
    else if (type == "fp4_e2m1") bits = 4;
    else return std::nullopt;
    return complex ? 2 * bits : bits;
}

std::optional<long> stage_bytes(const KernelName& name) {
    const auto a = bits_of_type(name.types.a), b = bits_of_type(name.types.b);
    if (!a || !b || !name.tile_m || !name.tile_n || !name.tile_k || (name.role != "gemm" && name.role != "conv")) return std::nullopt;
    long m = *name.tile_m, n = *name.tile_n;
    if (name.cta_pair == true) {
        // Each CTA holds half of B. CUTLASS says the tile of both CTAs, nvjet that of one.
        if (name.family == "cutlass3") m /= 2;
        n /= 2;
    }
    if (name.family == "nvjet" && name.layout.size() == 3) {
        // An operand that is contiguous along the tile comes in boxes of 128 B, more than one of them whole; where two warpgroups
        // share the other operand, each has boxes of its own (docs/names.md).
        const bool halves_m = name.shared_operand == "b" && name.layout[2] == 'N',
                   halves_n = name.shared_operand == "b" && name.layout[2] == 'T';
        if (name.layout[0] == 'N') m = whole_boxes(m, *a, halves_m ? 2 : 1);
        if (name.layout[1] == 'T') n = whole_boxes(n, *b, halves_n ? 2 : 1);
    }
    return (m * *a + n * *b) * *name.tile_k / 8;
}

std::optional<long> expected_shared_bytes(const KernelName& name) {
    const auto stage = stage_bytes(name);
    return stage && name.stages ? std::optional(*stage * *name.stages) : std::nullopt;
}

}  // namespace rooftile
