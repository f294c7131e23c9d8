// The kernels that are written by hand compile without spills, for every architecture that has bf16.
#include <gtest/gtest.h>

#include <algorithm>

#include "rooftile/embedded.hpp"
#include "rooftile/measure/source_module.hpp"

namespace rooftile {
namespace {

TEST(WayKernels, CompileWithoutSpills) {
    std::size_t kernels = 0;
    for (const EmbeddedFile& file : embedded_exports()) {
        if (file.path.find("/ways/") == file.path.npos || !file.path.ends_with(".cu")) continue;
        std::vector<std::string> functions;
        if (file.path.ends_with("/matmul.cu")) functions = {"matmul<false, false>", "matmul<true, true>", "matmul<true, false>"};
        for (const char* arch : {"sm_80", "sm_90"}) {
            const SourceModule module = rooftile::load(std::string(file.text), functions, {.arch = arch});
            for (const auto& function : module.functions()) {
                EXPECT_EQ(function.entry.spill_store_bytes, 0) << file.path << " " << function.name;
                ++kernels;
            }
        }
    }
    EXPECT_EQ(kernels, 2u * (4 + 3));
}

}  // namespace
}  // namespace rooftile
