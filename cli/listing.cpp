#include "cli/listing.hpp"

#include "cli/output.hpp"
#include "rooftile/report/code_accesses.hpp"
#include "rooftile/runtime/disassemble.hpp"

namespace rooftile::cli {

std::string ptx_listing(std::string_view ptx) { return ptx_legend() + annotated_code(ptx); }

std::string sass_listing(std::string_view cubin) {
    if (auto sass = disassemble(cubin)) return sass_legend() + annotated_code(*sass);
    say("no disassembler found for --sass: the CUDA toolkit has nvdisasm, and so has the package "
        "nvidia-cuda-nvdisasm; put it on PATH or set ROOFTILE_CUDA_PATH");
    return "";
}

}  // namespace rooftile::cli
