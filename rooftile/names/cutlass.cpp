// CUTLASS: names of its library ("cutlass_80_tensorop_s16816gemm_f16_128x128_32x4_tn_align8", "cutlass3x_sm90_…"), and its templates.
#include <cctype>

#include "rooftile/names/families.hpp"

namespace rooftile::names {
namespace {

/// What the letter before the shape of a matrix instruction sums in: s of "s16816gemm".
std::string accumulated_in(char letter) {
    switch (letter) {
        case 's':
            return "fp32";
        case 'h':
            return "fp16";
        case 'd':
            return "fp64";
        case 'i':
            return "int32";
        case 'c':
            return "complex_fp32";
        case 'z':
            return "complex_fp64";
        default:
            return "";
    }
}

struct Core {
    std::string accumulate, instruction, input, operation;
};

/// "s16816gemm", "s1688tf32gemm", "sgemm", "s16816fprop": sum, instruction, the type that inputs are converted to, operation.
std::optional<Core> core_of(std::string_view token) {
    for (const std::string_view operation : {"gemm", "fprop", "dgrad", "wgrad", "trmm", "symm", "hemm", "syrk", "herk"}) {
        if (!token.ends_with(operation) || token.size() <= operation.size()) continue;
        std::string_view head = token.substr(0, token.size() - operation.size());
        Core core{.accumulate = accumulated_in(head[0]), .instruction = "", .input = "", .operation = std::string(operation)};
        if (core.accumulate.empty()) continue;
        head.remove_prefix(1);
        if (contains(head, "x")) {  // CUTLASS 3: 64x128x16
            const std::vector<int> shape = extents(head);
            if (shape.size() == 3)
                core.instruction = "m" + std::to_string(shape[0]) + "n" + std::to_string(shape[1]) + "k" + std::to_string(shape[2]);
            return core;
        }
        std::size_t digits = 0;
        while (digits < head.size() && std::isdigit(static_cast<unsigned char>(head[digits]))) ++digits;
        core.instruction = instruction_of(head.substr(0, digits));
        core.input = type_name(head.substr(digits));
        return core;
    }
    return std::nullopt;
}

bool is_convolution(std::string_view operation) { return operation == "fprop" || operation == "dgrad" || operation == "wgrad"; }

void set_operation(const Core& core, KernelName& out) {
    out.role = is_convolution(core.operation) ? "conv" : "gemm";
    if (core.operation != "gemm") out.operation = core.operation;
    out.instruction = core.instruction;
    out.types.accumulate = core.accumulate;
}

void add_epilogue(std::string_view token, KernelName& out) {
    for (const std::string_view word : {"relu", "gelu", "bias", "silu", "aux"})
        if (token == word) out.epilogue += (out.epilogue.empty() ? "" : " + ") + std::string(word);
}

void align(std::optional<int> elements, KernelName& out) {
    const auto bits = bits_of_type(out.types.a);
    if (elements && bits) out.alignment_bytes = *elements * *bits / 8;
}

/// Behind "cutlass_".
void read_second_words(std::span<const std::string_view> tokens, KernelName& out) {
    std::string before, after;
    std::optional<Core> core;
    std::optional<int> alignment;
    for (const std::string_view token : tokens) {
        const std::vector<int> sizes = extents(token);
        if (sizes.size() == 1 && !core) out.arch = "sm_" + std::string(token);
        else if (sizes.size() == 2 && !out.tile_m) out.tile_m = sizes[0], out.tile_n = sizes[1];
        else if (sizes.size() == 2) out.tile_k = sizes[0], out.stages = sizes[1];
        else if (sizes.size() == 3) out.tile_m = sizes[0], out.tile_n = sizes[1], out.tile_k = sizes[2];
        else if (!core && core_of(token)) core = core_of(token);
        else if (const std::string type = type_name(token); !type.empty()) (core ? after : before) = type;
        else if (consists_of(token, 2, "tnhc")) out.layout = upper(token);
        else if (token.starts_with("nhwc")) out.layout = token;
        else if (const auto elements = number_after(token, "align")) alignment = elements;
        else add_epilogue(token, out);
    }
    if (!core) return;
    set_operation(*core, out);
    // The type of A stands behind the operation where it is not what is summed in, the type of C before where it is not either.
    out.types.a = out.types.b = !core->input.empty() ? core->input : after.empty() ? core->accumulate : after;
    out.types.c = before.empty() ? core->accumulate : before;
    if (after.empty() && core->input.empty() && core->accumulate == "fp32" && core->instruction == "m16n8k8") {
        out.types.a = out.types.b = "tf32";
        out.uncertain.push_back("types: inputs are fp32, which this instruction takes as tf32 alone");
    }
    align(alignment, out);
}

/// Behind "cutlass3x_sm90_tensorop_".
void read_third_words(std::span<const std::string_view> tokens, KernelName& out) {
    std::vector<std::string> types;
    std::optional<Core> core;
    std::optional<int> alignment;
    for (const std::string_view token : tokens) {
        const std::vector<int> sizes = extents(token);
        if (!core && (token == "gemm" || core_of(token)))
            core = token == "gemm" ? Core{.accumulate = "", .instruction = "", .input = "", .operation = "gemm"} : *core_of(token);
        else if (sizes.size() == 3 && !out.tile_m) out.tile_m = sizes[0], out.tile_n = sizes[1], out.tile_k = sizes[2];
        else if (sizes.size() == 3) out.cluster_m = sizes[0], out.cluster_n = sizes[1];
        else if (sizes.size() == 1) {
            if (sizes[0] > 0) out.stages = sizes[0];                                          // 0: chosen by what is left of shared memory
        } else if (!out.tile_m && core && token.starts_with("ue") && contains(token, "x")) {  // "ue4m3xf4": scales, and what they scale
            types.push_back(type_name(token.substr(token.find('x') + 1)));
            out.scaling = "a, b by " + std::string(token.substr(0, token.find('x')));
        } else if (!out.tile_m && core && (!type_name(token).empty() || token == "void" || token == "f8"))
            types.push_back(type_name(token));
        else if (consists_of(token, 3, "tnhc") && out.layout.empty()) out.layout = upper(token);
        else if (const auto elements = number_after(token, "align")) alignment = elements;
        else if (token == "cooperative" || token == "pingpong") out.schedule = token;
        else if (token == "warpspecialized" && out.schedule.empty()) out.schedule = "warp_specialized";
        else if (token == "1sm" || token == "2sm") out.cta_pair = token == "2sm";
        else if (token == "stream") {
            out.split_k = true;
            out.uncertain.push_back("split_k: a stream-K kernel splits where tiles do not fill the last wave");
        } else add_epilogue(token, out);
    }
    if (core) set_operation(*core, out);
    if (types.size() >= 5) out.types = {.a = types[0], .b = types[1], .c = types[4], .accumulate = types[2]};
    align(alignment, out);
}

std::string_view behind(std::string_view text, std::string_view prefix) {
    const std::size_t at = text.find(prefix);
    return at == text.npos ? std::string_view() : word_at(text, at);
}

std::vector<int> tuple_of(std::string_view text) { return positive(arguments_of(text, "tuple")); }

/// CollectiveMma<Mainloop…<stages, cluster, schedule>, tile, A, stride, B, …>
void read_collective(std::string_view text, KernelName& out) {
    const std::vector<std::string_view> parts = arguments_of(text, "CollectiveMma");
    if (parts.size() < 5) return;
    const Signature mainloop = signature_of(parts[0]);
    const std::size_t sm = mainloop.function.find("Sm");
    if (mainloop.function.starts_with("Mainloop") && sm != mainloop.function.npos) {
        std::string digits;
        for (const char c : mainloop.function.substr(sm + 2)) {
            if (!std::isdigit(static_cast<unsigned char>(c))) break;
            digits += c;
        }
        if (!digits.empty()) out.arch = "sm_" + digits;
    }
    if (!mainloop.arguments.empty())
        if (const auto stages = number(mainloop.arguments[0]); stages && *stages > 0 && *stages < 256) out.stages = int(*stages);
    for (const std::string_view argument : mainloop.arguments) {
        const std::vector<int> cluster = tuple_of(argument);
        if (cluster.size() == 3) out.cluster_m = cluster[0], out.cluster_n = cluster[1];
        if (contains(argument, "Pingpong")) out.schedule = "pingpong";
        else if (contains(argument, "Cooperative")) out.schedule = "cooperative";
        else if (contains(argument, "WarpSpecialized") && out.schedule.empty()) out.schedule = "warp_specialized";
    }
    const std::vector<int> tile = tuple_of(parts[1]);
    if (tile.size() == 3) out.tile_m = tile[0], out.tile_n = tile[1], out.tile_k = tile[2];
    out.types.a = type_name(parts[2]), out.types.b = type_name(parts[4]);
    out.role = "gemm";
}

}  // namespace

bool read_cutlass_named(const Text& text, KernelName& out) {
    if (const std::string_view third = behind(text.whole, "cutlass3x_"); !third.empty()) {
        out.family = "cutlass3", out.library = "CUTLASS";
        const std::vector<std::string_view> tokens = split(third, '_');
        if (tokens.size() > 1 && number_after(tokens[1], "sm")) out.arch = "sm_" + std::string(tokens[1].substr(2));
        read_third_words(std::span(tokens).subspan(1), out);
        return true;
    }
    for (const std::string_view prefix : {"cutlass_tensorop_", "cutlass_simt_", "cutlass_wmma_", "cutlass_70_", "cutlass_75_",
                                          "cutlass_80_", "cutlass_89_", "cutlass_90_", "cutlass_100_"}) {
        const std::string_view second = behind(text.whole, prefix);
        if (second.empty()) continue;
        out.family = "cutlass2", out.library = contains(text.whole, "x_cudnn") ? "cuDNN" : "CUTLASS";
        const std::vector<std::string_view> tokens = split(second, '_');
        read_second_words(std::span(tokens).subspan(1), out);
        return true;
    }
    return false;
}

bool read_cutlass_template(const Text& text, KernelName& out) {
    const std::string_view path = text.signature.path;
    if (!path.starts_with("cutlass")) return false;
    out.library = "CUTLASS";
    if (contains(text.whole, "CollectiveMma<")) {
        out.family = "cutlass3";
        read_collective(text.whole, out);
        return true;
    }
    out.family = path.starts_with("cutlass::device_kernel") ? "cutlass3" : "cutlass2";
    if (contains(text.whole, "conv::")) out.role = "conv";
    else if (contains(text.whole, "Gemm") || contains(text.whole, "gemm")) out.role = "gemm";
    // MmaMultistage<shape, …, stages, …>: what is behind the policy; MmaPipelined has two.
    const std::vector<std::string_view> shape = arguments_of(text.whole, "GemmShape");
    if (const std::vector<int> tile = positive(shape); tile.size() == 3) out.tile_m = tile[0], out.tile_n = tile[1], out.tile_k = tile[2];
    if (const auto multistage = arguments_of(text.whole, "MmaMultistage"); multistage.size() > 10) {
        if (const auto stages = number(multistage[10]); stages && *stages > 0 && *stages < 256) out.stages = int(*stages);
    } else if (contains(text.whole, "MmaPipelined<")) {
        out.stages = 2;
    }
    return true;
}

}  // namespace rooftile::names
