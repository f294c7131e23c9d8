// The probe of mma.sync compiles clean wherever there is mma.m16n8k16, and multiplies from registers alone.
#include <gtest/gtest.h>

#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile {
namespace {

TEST(MmaSyncStream, CompilesWithoutSpills) {
    for (const char* arch : {"sm_80", "sm_89", "sm_90", "sm_120"}) {
        const Source source{.name = "mma_sync_stream",
                            .text = "#include \"kernels/probe/mma_sync_stream.cuh\"\n",
                            .name_expressions = {"rooftile::mma_sync_stream<rooftile::Type::bf16, 8, 4, 8>",
                                                 "rooftile::mma_sync_stream<rooftile::Type::fp16, 4, 4, 4>"},
                            .arch = nvrtc_arch(arch)};
        const Compiled compiled = compile_source(source);
        EXPECT_EQ(unclean(compiled).value_or(""), "") << arch << '\n' << compiled.log;
        EXPECT_EQ(compiled.entries.at(0).static_shared_bytes, 0);
    }
}

}  // namespace
}  // namespace rooftile
