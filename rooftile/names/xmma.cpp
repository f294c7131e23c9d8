// xmma, of cuBLAS and cuDNN: sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_stage4_warpsize2x2x1_…_execute_kernel__5x_cublas.
#include <cctype>

#include "rooftile/names/families.hpp"

namespace rooftile::names {
namespace {

/// "e5m2e4m3bf16" in its types; none where it is not made of types alone.
std::vector<std::string> types_in(std::string_view token) {
    static constexpr std::string_view written[] = {"cbf16", "bf16", "cf16", "cf32", "cf64", "cp32", "tf32", "e4m3", "e5m2",
                                                   "fp32",  "f16",  "f32",  "f64",  "i32",  "ci8",  "i8",   "u8"};
    std::vector<std::string> out;
    while (!token.empty()) {
        const std::size_t before = token.size();
        for (const std::string_view type : written) {
            if (!token.starts_with(type)) continue;
            out.push_back(type_name(type));
            token.remove_prefix(type.size());
            break;
        }
        if (token.size() == before) return {};
    }
    return out;
}

/// "f16f16_f16f32_f32": A (B too, or A, B and) C in memory; what the matrix instruction takes, and sums in; what the epilogue computes in.
bool read_type_words(std::span<const std::string_view> tokens, std::size_t at, KernelName& out) {
    if (at + 1 >= tokens.size()) return false;
    const std::vector<std::string> memory = types_in(tokens[at]), matrix = types_in(tokens[at + 1]);
    if (memory.size() < 2 || matrix.empty()) return false;
    out.types = {.a = memory[0], .b = memory.size() > 2 ? memory[1] : memory[0], .c = memory.back(), .accumulate = matrix.back()};
    if (matrix[0] == "tf32") out.types.a = out.types.b = memory[0].starts_with("complex_") ? "complex_tf32" : "tf32";
    return true;
}

void read_words(std::span<const std::string_view> tokens, KernelName& out) {
    std::size_t at = 0;
    bool typed = false;
    for (; at < tokens.size(); ++at) {
        const std::string_view token = tokens[at];
        if (!typed && read_type_words(tokens, at, out)) {
            typed = true;
            ++at;
        } else if (consists_of(token, 2, "tnc") && out.layout.empty()) {
            out.layout = upper(token);
            if (at + 1 < tokens.size() && (tokens[at + 1] == "n" || tokens[at + 1] == "t")) out.layout += upper(tokens[at + 1]);
        } else if (token.starts_with("nhwc") || token.starts_with("nchw")) {
            out.layout += (out.layout.empty() ? "" : "_") + std::string(token);
        } else if (token.starts_with("tilesize")) {
            // Direct convolutions have more numbers behind it, of rows and columns of the picture.
            const std::vector<int> sizes = extents(token.substr(8));
            if (sizes.size() == 3) out.tile_m = sizes[0], out.tile_n = sizes[1], out.tile_k = sizes[2];
        } else if (token.starts_with("stage")) {
            out.stages = number_after(token, "stage");
        } else if (token.starts_with("warpsize")) {
            const std::vector<int> warps = extents(token.substr(8));
            if (warps.size() == 3) out.threads = threads_of(32, warps);
        } else if (token.starts_with("warpgroupsize")) {
            const std::vector<int> groups = extents(token.substr(13));
            if (const auto threads = threads_of(128, groups); groups.size() == 3 && threads && *threads > 128) {
                out.consumer_warpgroups = *threads / 128;
                out.schedule = "cooperative";
                out.uncertain.push_back("schedule: several warpgroups of one tile are read as cooperative");
            }
        } else if (token.starts_with("cgasize")) {
            const std::vector<int> cluster = extents(token.substr(7));
            if (cluster.size() == 3) out.cluster_m = cluster[0], out.cluster_n = cluster[1];
        } else if (token.starts_with("tensor")) {
            const std::vector<int> shape = extents(token.substr(6));
            if (shape.size() == 3)
                out.instruction = "m" + std::to_string(shape[0]) + "n" + std::to_string(shape[1]) + "k" + std::to_string(shape[2]);
            else out.instruction = instruction_of(token.substr(6));
        } else if (token == "ffma") {
            out.instruction = "fma";
        } else if (token == "fp32" || token == "cp32") {
            if (!typed) out.types = {.a = type_name(token), .b = type_name(token), .c = type_name(token), .accumulate = type_name(token)};
        } else if (const auto bytes = number_after(token, "aligna")) {
            out.alignment_bytes = bytes;
        } else if (token == "relu" || token == "gelu" || token == "bias" || token == "aux" || token == "drelu" || token == "dgelu"
                   || token == "bgrada" || token == "bgradb") {
            out.epilogue += (out.epilogue.empty() ? "" : " + ") + std::string(token);
        }
    }
}

/// xmma::gemm::kernel_blasl3<…Cta_tile<arch, m, n, k, …>…>
bool read_template(const Text& text, KernelName& out) {
    out.family = "xmma";
    if (contains(text.whole, "batchnorm")) out.operation = "batch norm";
    out.role = contains(text.signature.function, "split_k") ? "reduce" : contains(text.whole, "implicit_gemm") ? "conv" : "gemm";
    std::vector<std::string_view> tile = arguments_of(text.whole, "Cta_tile");
    if (!tile.empty()) tile.erase(tile.begin());  // the architecture
    if (const std::vector<int> sides = positive(tile); sides.size() >= 3)
        out.tile_m = sides[0], out.tile_n = sides[1], out.tile_k = sides[2];
    return true;
}

}  // namespace

bool read_xmma(const Text& text, KernelName& out) {
    if (text.signature.path.starts_with("xmma") && !text.signature.arguments.empty()) return read_template(text, out);
    const std::size_t at = text.whole.find("_xmma_");
    if (at == text.whole.npos) return false;
    std::size_t from = at;
    while (from > 0 && (text.whole[from - 1] == '_' || std::isalnum(static_cast<unsigned char>(text.whole[from - 1])))) --from;
    const std::string_view word = word_at(text.whole, from);
    if (!word.starts_with("sm")) return false;
    const std::vector<std::string_view> tokens = split(word, '_');
    if (!number_after(tokens[0], "sm") || tokens.size() < 3) return false;
    out.family = "xmma";
    out.arch = "sm_" + std::string(tokens[0].substr(2));
    out.library = word.ends_with("cudnn") ? "cuDNN" : word.ends_with("cublas") ? "cuBLAS" : "";
    const std::string_view what = tokens[2];
    if (what == "fprop" || what == "dgrad" || what == "wgrad" || what == "depthwise") {
        out.role = "conv";
        out.operation = what == "depthwise" && tokens.size() > 4 ? "depthwise " + std::string(tokens[4]) : std::string(what);
    } else {
        out.role = "gemm";
        if (what != "gemm") out.operation = what;
    }
    read_words(std::span(tokens).subspan(3), out);
    if (what == "depthwise") out.tile_m.reset(), out.tile_n.reset(), out.tile_k.reset();  // of a picture, not of a product
    // What follows "execute": the product itself, or the kernel that adds up its parts of K.
    if (contains(word, "_split_k_kernel") || word.ends_with("kernel_split_k")) {
        out.role = "reduce", out.operation = "split-K parts added up", out.split_k = true;
        out.threads.reset(), out.consumer_warpgroups.reset();
    } else if (contains(word, "_helper_kernel") || contains(word, "_pre_execute_") || contains(word, "_post_execute_")) {
        out.operation += ", preparation";
        out.threads.reset();
    } else if (contains(word, "segment_k_on") || contains(word, "segment_k_off")) {
        out.split_k = contains(word, "segment_k_on");
        out.uncertain.push_back("split_k: segment_k is read as CTAs that share a tile's K");
    }
    return true;
}

}  // namespace rooftile::names
