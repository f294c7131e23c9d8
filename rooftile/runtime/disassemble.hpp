// SASS of a cubin, where one of NVIDIA's disassemblers is installed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rooftile {

/// nvdisasm or cuobjdump: on PATH, below ROOFTILE_CUDA_PATH, CUDA_HOME, CUDA_PATH or /usr/local/cuda. Empty
/// where there is none.
std::optional<std::string> find_disassembler();

/// The SASS text of `cubin`; empty where no disassembler is found. Throws Error(compile_failed) where it
/// fails. Give it only what this process compiled or its own cache held: these tools are not made for
/// malicious files.
std::optional<std::string> disassemble(std::string_view cubin);

}  // namespace rooftile
