// A reader a family of names. Each returns whether the name is of its family, and if so has filled what the name says.
#pragma once

#include "rooftile/names/kernel_name.hpp"
#include "rooftile/names/reading.hpp"

namespace rooftile::names {

/// A name, demangled, in its parts.
struct Text {
    std::string_view whole;
    Signature signature;
};

bool read_nvjet(const Text& text, KernelName& out);
bool read_xmma(const Text& text, KernelName& out);
bool read_cutlass_named(const Text& text, KernelName& out);     ///< "cutlass_80_tensorop_…", "cutlass3x_sm90_…"
bool read_cutlass_template(const Text& text, KernelName& out);  ///< cutlass::…<…>
bool read_cublas(const Text& text, KernelName& out);
bool read_cudnn(const Text& text, KernelName& out);
bool read_flash_attention(const Text& text, KernelName& out);
bool read_memory_efficient(const Text& text, KernelName& out);  ///< fmha_cutlassF_…
bool read_deep_gemm(const Text& text, KernelName& out);
bool read_triton(const Text& text, KernelName& out);
bool read_pytorch(const Text& text, KernelName& out);
bool read_cub(const Text& text, KernelName& out);
bool read_nccl(const Text& text, KernelName& out);
bool read_copy(const Text& text, KernelName& out);     ///< "[CUDA memcpy HtoD]"
bool read_serving(const Text& text, KernelName& out);  ///< vllm::, flashinfer::, …
bool read_own(const Text& text, KernelName& out);

}  // namespace rooftile::names
