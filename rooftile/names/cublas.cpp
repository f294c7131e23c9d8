// cuBLAS's other kernels: "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x3_tn" and those before it, vectors, sums of parts.
// cuDNN's of the same make have "cudnn" in the place of "gemm".
#include <cctype>

#include "rooftile/names/families.hpp"

namespace rooftile::names {
namespace {

std::string arch_of_generation(std::string_view generation) {
    if (generation == "maxwell") return "sm_50";
    if (generation == "volta") return "sm_70";
    if (generation == "turing") return "sm_75";
    if (generation == "ampere") return "sm_80";
    if (generation == "hopper") return "sm_90";
    return "";
}

std::string of_letter(std::string_view letters) {
    if (letters == "s") return "fp32";
    if (letters == "h") return "fp16";
    if (letters == "d") return "fp64";
    if (letters == "i") return "int32";
    if (letters == "c" || letters == "gc") return "complex_fp32";
    if (letters == "z" || letters == "gz") return "complex_fp64";
    return "";
}

/// GENERATION_[C type_]LETTER[INSTRUCTION]gemm_[A type_]MxN_…[stages_KxSTAGES_]LAYOUT
bool read_generation(std::string_view word, KernelName& out) {
    while (word.starts_with("_5x_cudnn_")) word.remove_prefix(10);
    const std::vector<std::string_view> tokens = split(word, '_');
    out.arch = arch_of_generation(tokens[0]);
    if (out.arch.empty() || tokens.size() < 3) return false;
    std::string before, after;
    bool core = false, integers = false;
    for (std::size_t i = 1; i < tokens.size(); ++i) {
        const std::string_view token = tokens[i];
        const std::vector<int> sizes = extents(token);
        const bool product = token.ends_with("gemm"), convolution = token.ends_with("cudnn");
        if (!core && (product || convolution) && token.size() > 4) {
            core = true;
            std::string_view head = token.substr(0, token.size() - (product ? 4 : 5));
            std::size_t letters = 0;
            while (letters < head.size() && !std::isdigit(static_cast<unsigned char>(head[letters]))) ++letters;
            out.types.accumulate = of_letter(head.substr(0, letters));
            out.instruction = letters < head.size() ? instruction_of(head.substr(letters)) : "fma";
            out.role = product ? "gemm" : "conv";
            out.family = product ? "cublas" : "cudnn";
            out.library = product ? "cuBLAS" : "cuDNN";
        } else if (sizes.size() == 2 && tokens[i - 1] == "stages") {
            out.tile_k = sizes[0], out.stages = sizes[1];
        } else if (sizes.size() == 2 && !out.tile_m) {
            out.tile_m = sizes[0], out.tile_n = sizes[1];
        } else if (token.starts_with("int8")) {
            integers = true;
        } else if (const std::string type = type_name(token); !type.empty()) {
            (core ? after : before) = type;
        } else if (token == "relu") {
            out.epilogue = "relu";
        } else if (token == "splitK") {
            out.split_k = true;
        } else if (token == "dgrad" || token == "wgrad" || token == "fprop") {
            out.operation = token;
        } else if (consists_of(token, 2, "tnc")) {
            out.layout = upper(token);
        }
    }
    if (!core) return false;
    const std::string& sum = out.types.accumulate;
    out.types.a = out.types.b = integers ? (sum.starts_with("complex") ? "complex_int8" : "int8") : after.empty() ? sum : after;
    out.types.c = before.empty() ? sum : before;
    return true;
}

struct Known {
    std::string_view start, role, operation;
    bool plain = false;  ///< others have kernels of that name too: cuBLAS's take its parameters
};
/// By how a function's name begins; the first that fits.
constexpr Known known[] = {{"splitKreduce_kernel", "reduce", "split-K parts added up"},
                           {"gemv2", "gemv", ""},
                           {"gemvNSP", "gemv", ""},
                           {"gemv", "gemv", "", true},
                           {"gemmSN_", "gemm", "small n"},
                           {"gemmk1_", "gemm", "k of 1"},
                           {"gemm_kernel1x1", "gemm", "k of 1"},
                           {"gemm_kernel2x2", "gemm", ""},
                           {"batch_gemm_kernel", "gemm", "batched"},
                           {"zgemm1x1", "gemm", "k of 1"},
                           {"zgemm_largek", "gemm", "large k"},
                           {"dgemm_largek", "gemm", "large k"},
                           {"cgemm_largek", "gemm", "large k"},
                           {"sgemm_largek", "gemm", "large k"},
                           {"magma_", "gemm", "magma"},
                           {"syherk_kernel", "gemm", "symmetric result"},
                           {"syhemm_kernel", "gemm", "symmetric"},
                           {"dot_kernel", "reduce", "dot product", true},
                           {"reduce_1Block_kernel", "reduce", "dot product, last step", true},
                           {"nrm2_kernel", "reduce", "norm", true},
                           {"asum_kernel", "reduce", "sum of magnitudes", true},
                           {"iamax_kernel", "reduce", "index of the largest", true},
                           {"axpy_kernel", "elementwise", "axpy", true},
                           {"scal_kernel", "elementwise", "scale", true},
                           {"geam_kernel", "elementwise", "sum of matrices", true},
                           {"copy_kernel", "copy", "", true},
                           {"transpose_readWrite", "copy", "transpose", true},
                           {"trsm_batch_", "solve", "triangular"},
                           {"trsm_left_kernel", "solve", "triangular"},
                           {"trsm_right_kernel", "solve", "triangular"},
                           {"batch_trsm_", "solve", "triangular"},
                           {"kernel_trsm_", "solve", "triangular"},
                           {"trsv_", "solve", "triangular"},
                           {"trmm_left_kernel", "gemm", "triangular"},
                           {"trmm_right_kernel", "gemm", "triangular"},
                           {"trmm2_kernel", "gemm", "triangular"},
                           {"symv_", "gemv", "symmetric"},
                           {"cuds_symv_", "gemv", "symmetric"},
                           {"syhemv", "gemv", "symmetric"}};

/// cublasGemvTensorStridedBatched<T> of the operands, in their order.
void read_operands(std::string_view text, KernelName& out) {
    constexpr std::string_view wrapper = "cublasGemvTensorStridedBatched";
    std::vector<std::string> types;
    for (std::size_t at = text.find(wrapper); at != text.npos && types.size() < 3; at = text.find(wrapper, at + 1)) {
        const auto argument = arguments_of(text.substr(at), wrapper);
        if (argument.empty()) break;
        types.push_back(type_name(argument[0]));
    }
    if (types.size() == 3) out.types.a = types[0], out.types.b = types[1], out.types.c = types[2];
}

}  // namespace

bool read_cublas(const Text& text, KernelName& out) {
    const Signature& s = text.signature;
    if (s.arguments.empty() && (s.path == s.function)) {
        KernelName read = out;
        if (read_generation(s.function, read)) {
            out = read;
            return true;
        }
    }
    if (s.path == "internal::gemvx::kernel" || contains(s.path, "gemvx::kernel")) {
        out.family = "cublas", out.library = "cuBLAS", out.role = "gemv";
        read_operands(text.whole, out);
        return true;
    }
    if (contains(s.path, "cublasLt::epilogue::")) {
        out.family = "cublas", out.library = "cuBLAS", out.role = "elementwise", out.operation = "epilogue of a gemm";
        if (contains(s.function, "Bgrad")) out.role = "reduce", out.operation = "gradient of the bias";
        return true;
    }
    if (contains(s.path, "cublasLt") && contains(s.function, "epilogue")) {
        out.family = "cublas", out.library = "cuBLAS", out.role = "elementwise", out.operation = "epilogue of a gemm";
        return true;
    }
    const bool own = s.path == s.function || s.path.starts_with("cublas") || s.path.starts_with("internal::");
    if (!own) return false;
    for (const Known& kernel : known) {
        if (!s.function.starts_with(kernel.start)) continue;
        if (kernel.plain && !contains(s.parameters, "cublas") && !s.path.starts_with("cublasLt::")) continue;
        out.family = "cublas", out.library = "cuBLAS", out.role = kernel.role, out.operation = kernel.operation;
        read_operands(text.whole, out);
        if (s.function.starts_with("magma_") && s.arguments.size() > 2)
            out.types = {.a = type_name(s.arguments[1]),
                         .b = type_name(s.arguments[1]),
                         .c = type_name(s.arguments[2]),
                         .accumulate = type_name(s.arguments[0])};
        return true;
    }
    return false;
}

}  // namespace rooftile::names
