#include "cli/listing.hpp"

#include "cli/output.hpp"
#include "rooftile/runtime/disassemble.hpp"

namespace rooftile::cli {

std::string sass_of(std::string_view cubin) {
    if (auto sass = disassemble(cubin)) return *sass;
    say("no disassembler found for --sass: the CUDA toolkit has nvdisasm, and so has the package "
        "nvidia-cuda-nvdisasm; put it on PATH or set ROOFTILE_CUDA_PATH");
    return "";
}

}  // namespace rooftile::cli
