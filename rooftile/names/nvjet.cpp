// cuBLAS's generated kernels: nvjet_[sm90_]TYPES_MxN_KxSTAGES_CLUSTER_[2cta_]RASTER_[FLAGS_]LAYOUT, and with mma instructions
// nvjet_sm120_TYPES_mma_MxNxK_STAGES_WARPTILE_LOADS_[FLAGS_]LAYOUT.
#include "rooftile/names/families.hpp"

namespace rooftile::names {
namespace {

/// What a letter of the types means.
std::string type_of_letter(char letter) {
    switch (letter) {
        case 't':
            return "bf16";
        case 'h':
            return "fp16";
        case 's':
            return "fp32";
        case 'd':
            return "fp64";
        case 'q':
            return "fp8_e4m3";
        case 'r':
            return "fp8_e5m2";
        case 'o':
            return "fp4_e2m1";
        case 'b':
            return "int8";
        case 'i':
            return "int32";
        default:
            return "";
    }
}

/// "tst": A and B, what is summed in, D. "qqtsq": A, B, C, what is summed in, D.
bool read_letters(std::string_view letters, KernelName& out) {
    if (letters.size() != 3 && letters.size() != 5) return false;
    const bool five = letters.size() == 5;
    out.types = {.a = type_of_letter(letters[0]),
                 .b = type_of_letter(letters[five ? 1 : 0]),
                 .c = type_of_letter(letters.back()),
                 .accumulate = type_of_letter(letters[five ? 3 : 1])};
    if (out.types.a.empty() || out.types.b.empty() || out.types.accumulate.empty()) {
        out.types = {};
        return false;
    }
    return true;
}

bool is_layout(std::string_view token) { return consists_of(token, 3, "NTC") || consists_of(token, 4, "NTC"); }

/// "a vec16 ue4m3" of A and "vec16UE4M3".
void add_scaling(KernelName& out, char operand, std::string_view kind) {
    const std::size_t length = kind.find_first_not_of("0123456789", kind.find_first_of("0123456789"));
    out.scaling += (out.scaling.empty() ? "" : ", ") + lower(std::string_view(&operand, 1)) + " " + std::string(kind.substr(0, length));
    if (length != kind.npos) out.scaling += " " + lower(kind.substr(length));
}

void add_epilogue_words(KernelName& out, std::string_view token) {
    for (const std::string_view part : {"relu", "gelu", "aux", "bias"})
        if (contains(token, part)) out.epilogue += (out.epilogue.empty() ? "" : " + ") + std::string(part);
}

void read_flag(std::string_view token, KernelName& out) {
    if (token == "v" || token == "h") {
        out.raster = token == "v" ? "along_m" : "along_n";
        out.uncertain.push_back("raster: v and h are read as the direction in which tiles follow each other");
    } else if (token == "coopA" || token == "coopB") {
        out.schedule = "cooperative";
        out.shared_operand = token == "coopA" ? "a" : "b";
    } else if (token == "splitK") {
        out.split_k = true;
    } else if (token == "2cta") {
        out.cta_pair = true;
    } else if (token.size() > 4 && (token[0] == 'A' || token[0] == 'B')
               && (token.substr(1).starts_with("vec") || token.substr(1).starts_with("blk"))) {
        add_scaling(out, token[0], token.substr(1));
    } else if (token == "bias" || token.starts_with("relu") || token.starts_with("gelu")) {
        add_epilogue_words(out, token);
    }
}

/// The grammar of kernels whose warps issue mma: three extents of the tile, stages, three of a warp's tile.
void read_warp_grammar(std::span<const std::string_view> tokens, KernelName& out) {
    for (const std::string_view token : tokens) {
        const std::vector<int> sizes = extents(token);
        if (sizes.size() == 3 && !out.tile_m) out.tile_m = sizes[0], out.tile_n = sizes[1], out.tile_k = sizes[2];
        else if (sizes.size() == 1 && out.tile_m && !out.stages) out.stages = sizes[0];
        else if (sizes.empty()) read_flag(token, out);
    }
}

}  // namespace

bool read_nvjet(const Text& text, KernelName& out) {
    const std::size_t at = text.whole.find("nvjet_");
    if (at == text.whole.npos || (at > 0 && text.whole[at - 1] != ' ')) return false;
    out.family = "nvjet", out.library = "cuBLAS", out.role = "gemm";
    const std::vector<std::string_view> tokens = split(word_at(text.whole, at), '_');
    std::span<const std::string_view> rest(tokens.data() + 1, tokens.size() - 1);
    if (!rest.empty() && rest[0].starts_with("sm") && number_after(rest[0], "sm")) {
        out.arch = "sm_" + std::string(rest[0].substr(2));
        rest = rest.subspan(1);
    }
    if (!rest.empty() && read_letters(rest[0], out)) {
        rest = rest.subspan(1);
        if (!rest.empty() && rest[0] == "tf32") {
            out.types.a = out.types.b = "tf32";
            rest = rest.subspan(1);
        }
    }
    if (!rest.empty() && is_layout(rest.back())) {
        out.layout = rest.back();
        rest = rest.first(rest.size() - 1);
    }
    out.split_k = false;
    if (!rest.empty() && rest[0] == "mma") {
        read_warp_grammar(rest.subspan(1), out);
        return true;
    }
    std::vector<std::vector<int>> pairs;
    for (const std::string_view token : rest) {
        const std::vector<int> sizes = extents(token);
        if (sizes.size() == 2 && pairs.size() < 3) pairs.push_back(sizes);
        else read_flag(token, out);
    }
    if (pairs.size() > 0) out.tile_m = pairs[0][0], out.tile_n = pairs[0][1];
    if (pairs.size() > 1) out.tile_k = pairs[1][0], out.stages = pairs[1][1];
    if (pairs.size() > 2) out.cluster_m = pairs[2][0], out.cluster_n = pairs[2][1];
    const bool cooperative = out.schedule == "cooperative";
    if (out.arch.empty() && cooperative) {
        out.arch = "sm_90";
        out.uncertain.push_back("arch: not in the name; only kernels for sm_90 say coopA or coopB");
    }
    if (out.arch == "sm_90") {
        out.consumer_warpgroups = 2, out.threads = 384;
        if (!cooperative) {
            out.schedule = "pingpong";
            out.uncertain.push_back(
                "schedule: neither coopA nor coopB, so that each warpgroup is taken to have a tile or half tile of its own");
        }
    }
    if (out.cta_pair) out.uncertain.push_back("cta_pair: each CTA is taken to hold all of its A and half of its B");
    return true;
}

}  // namespace rooftile::names
