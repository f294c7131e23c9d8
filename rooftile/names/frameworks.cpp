// Triton's and torch.compile's kernels, PyTorch's own, CUB's and Thrust's, and those of serving systems.
#include <algorithm>
#include <cctype>

#include "rooftile/names/families.hpp"

namespace rooftile::names {
namespace {

/// What the kernels of a framework do, by a part of the function's name; the first that fits.
struct Word {
    std::string_view part, role, operation;
};
constexpr Word words[] = {{"elementwise_kernel", "elementwise", ""},
                          {"multi_tensor_apply", "elementwise", "many tensors"},
                          {"softmax", "reduce", "softmax"},
                          {"SoftMax", "reduce", "softmax"},
                          {"Softmax", "reduce", "softmax"},
                          {"layer_norm", "reduce", "layer norm"},
                          {"LayerNorm", "reduce", "layer norm"},
                          {"rms_norm", "reduce", "RMS norm"},
                          {"RMSNorm", "reduce", "RMS norm"},
                          {"rmsnorm", "reduce", "RMS norm"},
                          {"GroupNorm", "reduce", "group norm"},
                          {"RowwiseMoments", "reduce", "moments of rows"},
                          {"batch_norm", "reduce", "batch norm"},
                          {"nll_loss", "reduce", "negative log likelihood"},
                          {"NLLLoss", "reduce", "negative log likelihood"},
                          {"reduce_kernel", "reduce", ""},
                          {"CatArrayBatchedCopy", "copy", "concatenation"},
                          {"gather", "index", "gather"},
                          {"scatter", "index", "scatter"},
                          {"indexSelect", "index", "select"},
                          {"index_elementwise", "index", ""},
                          {"indexFunc", "index", ""},
                          {"embedding", "index", "embedding"},
                          {"RadixSort", "sort", ""},
                          {"radixSort", "sort", ""},
                          {"bitonicSort", "sort", ""},
                          {"opk", "sort", "top k"},
                          {"OneSweep", "sort", ""},
                          {"Onesweep", "sort", ""},
                          {"scan", "scan", ""},
                          {"Scan", "scan", ""},
                          {"distribution_", "random", ""},
                          {"dropout", "random", "dropout"},
                          {"triu_tril", "elementwise", "triangle of a matrix"},
                          {"upsample", "elementwise", "upsample"},
                          {"avg_pool", "reduce", "pooling"},
                          {"max_pool", "reduce", "pooling"},
                          {"all_reduce", "collective", "all-reduce"},
                          {"allreduce", "collective", "all-reduce"},
                          {"cross_device_reduce", "collective", "all-reduce"},
                          {"all_gather", "collective", "all-gather"},
                          {"allgather", "collective", "all-gather"},
                          {"PrefillWith", "attention", "prefill"},
                          {"DecodeWith", "attention", "decode"},
                          {"paged_attention", "attention", "paged"},
                          {"reshape_and_cache", "copy", "keys and values into the cache"},
                          {"act_and_mul", "elementwise", "activation and product"},
                          {"rotary", "elementwise", "rotary embedding"},
                          {"quant", "elementwise", "quantisation"},
                          {"transform", "elementwise", ""},
                          {"for_each", "elementwise", ""},
                          {"ForEach", "elementwise", ""},
                          {"Transform", "elementwise", ""},
                          {"Histogram", "reduce", "histogram"},
                          {"Reduce", "reduce", ""},
                          {"reduce", "reduce", ""},
                          {"Select", "index", "select"},
                          {"Unique", "index", "unique"},
                          {"Merge", "sort", "merge"},
                          {"copy", "copy", ""},
                          {"Copy", "copy", ""},
                          {"fill", "elementwise", "fill"}};

void set_role(std::string_view function, KernelName& out) {
    for (const Word& word : words)
        if (contains(function, word.part)) {
            out.role = word.role, out.operation = word.operation;
            return;
        }
}

bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Names that wrap what a kernel does, and say nothing of it.
bool is_wrapper(std::string_view word) {
    for (const std::string_view wrapper : {"BinaryFunctor", "AUnaryFunctor", "BUnaryFunctor", "UnaryFunctor", "CompareFunctor",
                                           "opmath_gpu_kernel", "gpu_kernel_impl", "gpu_kernel_impl_nocast"})
        if (word == wrapper) return true;
    return false;
}

/// "gelu" of "GeluCUDAKernelImpl", "add" of "CUDAFunctor_add": empty for a word that names no operator.
std::string operator_in(std::string_view word) {
    if (is_wrapper(word)) return "";
    for (const std::string_view ending : {"_kernel_cuda", "CUDAKernelImpl", "KernelImpl", "_kernel_impl", "_functor", "Functor", "Ops",
                                          "_kernel_cuda_impl", "_cuda_out", "_kernel"}) {
        if (!word.ends_with(ending) || word.size() == ending.size()) continue;
        std::string out = words_of(word.substr(0, word.size() - ending.size()));
        std::replace(out.begin(), out.end(), '_', ' ');
        return out;
    }
    if (word.starts_with("CUDAFunctor_") || word.starts_with("CUDAFunctorOnSelf_")) return std::string(word.substr(word.find('_') + 1));
    return "";
}

/// Of what a kernel is a template over: the operator within most brackets, and the first type of an element.
void read_functors(std::string_view text, KernelName& out) {
    std::string found;
    for (std::size_t at = 0; at < text.size();) {
        if (!is_letter(text[at])) {
            ++at;
            continue;
        }
        const std::string_view word = word_at(text, at);
        at += word.size();
        if (const std::string name = operator_in(word); !name.empty()) found = name;
        if (out.types.a.empty())
            if (const std::string type = type_name(word);
                !type.empty() && type != "int32" && type != "uint32" && type != "int64" && type != "bool")
                out.types.a = type;
    }
    if (!found.empty()) out.operation = found;
    if (out.role == "elementwise" && (contains(found, "copy"))) out.role = "copy";
}

}  // namespace

bool read_triton(const Text& text, KernelName& out) {
    struct Kind {
        std::string_view prefix, role;
    };
    static constexpr Kind kinds[] = {
        {"triton_poi_", "elementwise"}, {"triton_red_", "reduce"}, {"triton_per_", "reduce"}, {"triton_tem_", ""},
        {"triton_for_", "elementwise"}, {"triton_spl_", "scan"},   {"triton_mm", "gemm"}};
    const std::string_view word = word_at(text.whole, 0);
    for (const Kind& kind : kinds) {
        if (!word.starts_with(kind.prefix)) continue;
        out.family = "inductor", out.library = "torch.compile", out.role = kind.role;
        std::vector<std::string_view> tokens = split(word, '_');
        const auto fused = std::find(tokens.begin(), tokens.end(), "fused");
        for (auto token = fused == tokens.end() ? tokens.end() : fused + 1; token != tokens.end(); ++token)
            if (!token->empty() && !(token + 1 == tokens.end() && number(*token)))
                out.operation += (out.operation.empty() ? "" : " ") + std::string(*token);
        if (kind.prefix == "triton_tem_") {  // a template: of a product or of attention
            if (contains(word, "attention")) out.role = "attention";
            else if (contains(word, "conv")) out.role = "conv";
            else if (contains(word, "mm")) out.role = "gemm";
        }
        return true;
    }
    // Triton before 3.0 wrote the arguments' kinds behind the name: _0d1d2de3.
    if (word != text.whole) return false;
    const std::size_t at = word.rfind("_0d1");
    if (word.starts_with("triton_") || (at != word.npos && word.find_first_not_of("0123456789dec", at + 1) == word.npos)) {
        out.family = "triton", out.library = "Triton";
        return true;
    }
    return false;
}

bool read_pytorch(const Text& text, KernelName& out) {
    const std::string_view path = text.signature.path;
    const bool own = path.starts_with("at::") || path.starts_with("c10::") || path.starts_with("caffe2::") || path.starts_with("torch::")
                     || path.starts_with("pytorch_");
    // Kernels without a namespace take what PyTorch's have.
    const bool nameless =
        text.signature.path == text.signature.function && (contains(text.whole, "at::native") || contains(text.whole, "c10::"));
    const bool softmax =
        path.starts_with("softmax_warp_") || path.starts_with("cunn_") || path.starts_with("elementwise_kernel_with_index");
    if (!own && !nameless && !softmax) return false;
    out.family = "pytorch", out.library = "PyTorch";
    set_role(path, out);
    // One kernel serves both norms; its last argument says which.
    const std::vector<std::string_view>& of = text.signature.arguments;
    if (text.signature.function == "vectorized_layer_norm_kernel" && of.size() > 2 && number(of[2]) == 1)
        out.operation = "RMS norm";
    std::string over;
    for (const std::string_view argument : text.signature.arguments) over += std::string(argument) + " ";
    if (out.operation.empty()) read_functors(over, out);
    else {
        KernelName types = out;
        types.operation.clear();
        read_functors(over, types);
        out.types = types.types;
    }
    return true;
}

bool read_cub(const Text& text, KernelName& out) {
    const std::string_view path = text.signature.path;
    const bool cub = contains(path, "cub::"), thrust = contains(path, "thrust::");
    if (!cub && !thrust) return false;
    out.family = cub ? "cub" : "thrust", out.library = cub ? "CUB" : "Thrust";
    set_role(text.signature.function, out);
    if (out.role.empty() && thrust) set_role(text.whole, out);
    return true;
}

bool read_serving(const Text& text, KernelName& out) {
    struct System {
        std::string_view space, family, library;
    };
    static constexpr System systems[] = {{"vllm::", "vllm", "vLLM"},
                                         {"flashinfer::", "flashinfer", "FlashInfer"},
                                         {"tensorrt_llm::", "tensorrt-llm", "TensorRT-LLM"},
                                         {"sglang::", "sglang", "SGLang"},
                                         {"deep_ep::", "deepep", "DeepEP"}};
    for (const System& system : systems) {
        if (!text.signature.path.starts_with(system.space)) continue;
        out.family = system.family, out.library = system.library;
        set_role(text.signature.function, out);
        if (out.family == "deepep") out.role = "collective", out.operation = std::string(text.signature.function);
        return true;
    }
    return false;
}

}  // namespace rooftile::names
