// Other programs, where they are installed: SASS of a cubin, and a cubin of PTX, by NVIDIA's disassembler and assembler.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rooftile {

/// A program on PATH, below ROOFTILE_CUDA_PATH, CUDA_HOME, CUDA_PATH or /usr/local/cuda. Empty where there is none.
std::optional<std::string> find_program(std::string_view name);

/// g++, for a kernel's text on the CPU: what CXX names unless that is clang, else g++ or c++ on PATH. Empty where there is none.
std::optional<std::string> find_host_compiler();

/// nvdisasm or cuobjdump: on PATH, below ROOFTILE_CUDA_PATH, CUDA_HOME, CUDA_PATH or /usr/local/cuda. Empty
/// where there is none.
std::optional<std::string> find_disassembler();

/// The SASS text of `cubin`; empty where no disassembler is found. Throws Error(compile_failed) where it
/// fails. Give it only what this process compiled or its own cache held: these tools are not made for
/// malicious files.
std::optional<std::string> disassemble(std::string_view cubin);

struct Assembled {
    std::string cubin;
    std::string log;  ///< of ptxas -v, for parse_entries()
};

/// What ptxas makes of `ptx` for `arch` ("sm_90a"); empty where none is found, where find_disassembler() looks. Throws
/// Error(compile_failed), with what ptxas says, where it refuses the text.
std::optional<Assembled> assemble(std::string_view ptx, const std::string& arch);

}  // namespace rooftile
