// Kernels of attention: FlashAttention 2 and 3, cuDNN's generated ones, and PyTorch's memory-efficient one; and cuDNN's others.
#include <array>

#include "rooftile/names/families.hpp"

namespace rooftile::names {
namespace {

/// Nothing for 0 too: what is false, or given at run time.
std::optional<int> whole_at(std::span<const std::string_view> arguments, std::size_t at) {
    if (at >= arguments.size()) return std::nullopt;
    constexpr long most = 1 << 20;  // of an extent or a count
    const auto value = number(arguments[at]);
    return value && *value > 0 && *value <= most ? std::optional(int(*value)) : std::nullopt;
}

void set_tile(KernelName& out, const std::vector<std::string_view>& tuple) {
    if (tuple.size() < 3) return;
    out.tile_m = whole_at(tuple, 0), out.tile_n = whole_at(tuple, 1), out.tile_k = whole_at(tuple, 2);
}

void add_word(std::string& operation, std::string_view word) { operation += (operation.empty() ? "" : ", ") + std::string(word); }

/// FlashAttnFwdSm90<CollectiveMainloopFwdSm90<stages, cluster, tile, dim of V, type, sum, arch, causal, local, …>, …>
void read_flash_third(std::string_view text, std::string_view mainloop, bool forward, KernelName& out) {
    const std::vector<std::string_view> m = arguments_of(text, mainloop);
    std::size_t tuples = 0;
    std::vector<std::string_view> flags;
    if (forward) out.stages = whole_at(m, 0);  // backward has one count for each of its operands
    for (const std::string_view argument : m) {
        const std::vector<std::string_view> tuple = arguments_of(argument, "tuple");
        if (tuple.size() == 3 && tuples++ == 0) out.cluster_m = whole_at(tuple, 0), out.cluster_n = whole_at(tuple, 1);
        else if (tuple.size() == 3 && tuples == 2) set_tile(out, tuple);
        else if (out.types.a.empty() && out.tile_m && !type_name(argument).empty()) out.types.a = out.types.b = type_name(argument);
        else if (argument == "true" || argument == "false" || argument.starts_with("(bool)")) flags.push_back(argument);
    }
    if (!out.types.a.empty()) out.types.accumulate = "fp32";
    if (!flags.empty() && number(flags[0]) == 1) add_word(out.operation, "causal");
}

/// Flash_fwd_kernel_traits<dim, queries, keys, warps, …, type, …>, then what the kernel is compiled for.
void read_flash_second(const Text& text, std::string_view traits, bool forward, KernelName& out) {
    const std::vector<std::string_view> t = arguments_of(text.whole, traits);
    out.tile_k = whole_at(t, 0), out.tile_m = whole_at(t, 1), out.tile_n = whole_at(t, 2);
    if (const auto warps = whole_at(t, 3)) out.threads = threads_of(32, std::array{*warps});
    for (const std::string_view argument : t)
        if (const std::string type = type_name(argument); type == "bf16" || type == "fp16") out.types.a = out.types.b = type;
    if (!out.types.a.empty()) out.types.accumulate = "fp32";
    // Behind the traits: dropout, then causal; of a kernel that splits keys causal comes first.
    const std::size_t causal = forward && contains(text.signature.function, "splitkv") ? 1 : 2;
    if (whole_at(text.signature.arguments, causal) == 1) add_word(out.operation, "causal");
}

}  // namespace

bool read_flash_attention(const Text& text, KernelName& out) {
    const std::string_view function = text.signature.function;
    const bool third = contains(text.whole, "FlashAttnFwd") || contains(text.whole, "FlashAttnBwd");
    const bool second = function.starts_with("flash_fwd_") || function.starts_with("flash_bwd_");
    const bool forward_class = contains(text.whole, "FlashAttentionForwardSm"),
               backward_class = contains(text.whole, "FlashAttentionBackwardSm");
    if (!third && !second && !forward_class && !backward_class) return false;
    out.family = "flash-attention", out.library = "FlashAttention", out.role = "attention";
    if (forward_class || backward_class) {  // of CuTe's DSL: a class's name, and tensors'
        const std::string_view start = forward_class ? "FlashAttentionForwardSm" : "FlashAttentionBackwardSm";
        const std::string_view rest = text.whole.substr(text.whole.find(start) + start.size());
        const std::string_view digits = rest.substr(0, rest.find_first_not_of("0123456789"));
        if (!digits.empty()) out.arch = "sm_" + std::string(digits);
        out.operation = forward_class ? "forward" : "backward";
        return true;
    }
    if (third && contains(text.whole, "FlashAttnFwdCombine")) {
        out.role = "reduce", out.operation = "parts of attention added up";
        return true;
    }
    if (function.starts_with("flash_fwd_splitkv_combine")) {
        out.role = "reduce", out.operation = "parts of attention added up";
        return true;
    }
    if (function.starts_with("flash_bwd_dot_do_o") || function.starts_with("flash_bwd_convert_dq")
        || contains(text.whole, "FlashAttnBwdPreprocess") || contains(text.whole, "FlashAttnBwdPostprocess")) {
        out.role = "elementwise", out.operation = "backward, preparation or conversion";
        return true;
    }
    const bool forward = contains(text.whole, "FlashAttnFwd") || function.starts_with("flash_fwd_");
    out.operation = forward ? "forward" : "backward";
    if (second) {
        if (contains(function, "splitkv")) out.operation += ", keys split";
        read_flash_second(text, forward ? "Flash_fwd_kernel_traits" : "Flash_bwd_kernel_traits", forward, out);
        return true;
    }
    out.arch = contains(text.whole, "Sm90<") ? "sm_90" : contains(text.whole, "Sm80<") ? "sm_80" : "";
    for (const std::string_view arch : {"Sm90", "Sm80"}) {
        const std::string mainloop = std::string(forward ? "CollectiveMainloopFwd" : "CollectiveMainloopBwd") + std::string(arch);
        if (contains(text.whole, mainloop + "<")) read_flash_third(text.whole, mainloop, forward, out);
    }
    return true;
}

bool read_memory_efficient(const Text& text, KernelName& out) {
    std::string_view function = text.signature.function;
    if (!function.starts_with("fmha_cutlass")) return false;
    out.family = "pytorch", out.library = "PyTorch", out.role = "attention";
    const std::vector<std::string_view> tokens = split(function, '_');
    out.operation = tokens[1].ends_with("B") ? "backward, memory-efficient" : "forward, memory-efficient";
    for (const std::string_view token : std::span(tokens).subspan(2)) {
        const std::vector<int> sizes = extents(token);
        if (sizes.size() == 2) out.tile_m = sizes[0], out.tile_n = sizes[1];
        else if (number_after(token, "sm")) out.arch = "sm_" + std::string(token.substr(2));
        else if (const std::string type = type_name(token); !type.empty())
            out.types.a = out.types.b = out.types.c = type, out.types.accumulate = "fp32";
    }
    return true;
}

namespace {

/// cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_cga1x1x1_kernel0_0
void read_generated(std::string_view word, KernelName& out) {
    const std::vector<std::string_view> tokens = split(word, '_');
    const bool attention = has(tokens, "sdpa");
    out.role = attention                                                                                 ? "attention"
               : contains(word, "convFwd") || contains(word, "convDgrad") || contains(word, "convWgrad") ? "conv"
               : contains(word, "matmul")                                                                ? "gemm"
                                                                                                         : "";
    if (has(tokens, "fprop") || contains(word, "Fwd")) out.operation = "forward";
    else if (has(tokens, "bprop") || contains(word, "Dgrad") || contains(word, "Wgrad")) out.operation = "backward";
    for (const std::string_view token : tokens) {
        const std::vector<int> sizes = extents(token);
        if (sizes.size() == 3 && !out.tile_m) out.tile_m = sizes[0], out.tile_n = sizes[1], out.tile_k = sizes[2];
        else if (number_after(token, "sm")) out.arch = "sm_" + std::string(token.substr(2));
        else if (token.starts_with("cga")) {
            const std::vector<int> cluster = extents(token.substr(3));
            if (cluster.size() == 3) out.cluster_m = cluster[0], out.cluster_n = cluster[1];
        } else if (token == "wgmma" || token == "wmma" || token == "tcgen05") out.instruction = token;
        else if (out.types.a.empty() && !out.instruction.empty() && !type_name(token).empty()) {
            out.types.a = out.types.b = type_name(token);
            if (token == "f16") {
                out.types = {};  // a run on bf16 was named f16: 16 bits is all that it says
                out.uncertain.push_back("types: f16 is printed for bf16 too");
            }
        }
    }
    if (out.tile_m)
        out.uncertain.push_back("tile: the first three extents are read as queries, keys and the head's dimension, or m, n and k");
}

struct CudnnWord {
    std::string_view part, role, operation;
};
constexpr CudnnWord cudnn_words[] = {{"nchwToNhwc", "copy", "nchw to nhwc"},
                                     {"nhwcToNchw", "copy", "nhwc to nchw"},
                                     {"ToFolded", "copy", "layout"},
                                     {"folded", "copy", "layout"},
                                     {"AddPadding", "copy", "padding"},
                                     {"tensorTransform", "copy", "layout"},
                                     {"transpose", "copy", "transpose"},
                                     {"softmax", "reduce", "softmax"},
                                     {"pooling", "reduce", "pooling"},
                                     {"bn_fw", "reduce", "batch norm, forward"},
                                     {"bn_bw", "reduce", "batch norm, backward"},
                                     {"batchnorm", "reduce", "batch norm"},
                                     {"convolve", "conv", ""},
                                     {"conv2d", "conv", ""},
                                     {"winograd", "conv", "winograd"},
                                     {"fft2d", "conv", "FFT"},
                                     {"dgrad_engine", "conv", "dgrad"},
                                     {"wgrad", "conv", "wgrad"},
                                     {"RNN", "rnn", ""},
                                     {"op_tensor", "elementwise", ""},
                                     {"op_generic", "elementwise", ""},
                                     {"dropout", "elementwise", "dropout"},
                                     {"reorder", "copy", "layout of filters"}};

}  // namespace

bool read_cudnn(const Text& text, KernelName& out) {
    const Signature& s = text.signature;
    if (const std::size_t at = text.whole.find("cudnn_generated_"); at != text.whole.npos) {
        out.family = "cudnn", out.library = "cuDNN";
        read_generated(word_at(text.whole, at), out);
        return true;
    }
    const bool plain = s.path == s.function && contains(text.whole, "cudnn");
    bool ours = contains(s.path, "cudnn") || plain;
    for (const std::string_view start : {"implicit_convolve", "explicit_convolve", "precomputed_convolve", "convolve_common_engine", "RNN_",
                                         "persistRNN", "elemWiseRNN", "fft2d_", "softmax_fw_small", "softmax_bw_small"})
        ours = ours || s.function.starts_with(start);
    if (!ours) return false;
    out.family = "cudnn", out.library = "cuDNN";
    for (const CudnnWord& word : cudnn_words)
        if (contains(s.function, word.part)) {
            out.role = word.role, out.operation = word.operation;
            break;
        }
    return true;
}

}  // namespace rooftile::names
