// Point-wise kernels whose threads take vectors one below the other: what rows share is loaded once, and the code is clean.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rooftile/fuse/device/kernel.hpp"
#include "rooftile/fuse/device/source.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/expression/expression.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;
using testing::Not;

FusePlan plan_of(const char* text, const std::vector<std::string>& tensors, const char* machine) {
    std::vector<TensorDeclaration> declared;
    for (const std::string& t : tensors) declared.push_back(tensor_declaration(t));
    const auto outcome = derive(machine_by_id(machine), expression_graph(text, declared),
                                {.vectors_per_thread = 2, .threads = 128, .top = 1});
    return std::get<FusePlans>(outcome).plans.at(0);
}

TEST(FuseStacksCode, LoadsOnceWhatRowsShare) {
    for (const char* machine : {"a100-80-sxm", "h200-sxm"}) {
        const FusePlan plan =
            plan_of("y = dropout(gelu(x + b) * s + r, 0.1, seed=2)",
                    {"x:bf16[6,8,4096]", "b:bf16[4096]", "s:fp32[6,8,1]", "r:bf16[6,1,4096]"}, machine);
        const Source source = fuse_source(plan);
        EXPECT_THAT(source.text, HasSubstr("Pack<bf16, vector_width> b_pack;"));
        EXPECT_THAT(source.text, HasSubstr("load_again(b_pack, t.b_in, column);"));
        EXPECT_THAT(source.text, HasSubstr("const unsigned row = stack * vectors_per_thread + i;"));
        EXPECT_THAT(
            source.text,
            HasSubstr("load_again(r_pack[i], t.r_in, (row / 8) * size.row_vectors.divisor + column);"));
        EXPECT_EQ(unclean(compile_source(source)).value_or(""), "") << machine;
    }
    const FusePlan odd = plan_of("y = gelu(x + b)", {"x:bf16[7,4096]", "b:bf16[4096]"}, "h200-sxm");
    EXPECT_THAT(fuse_source(odd).text, HasSubstr("load_again(b_pack[i], t.b_in, column);"));
    EXPECT_THAT(fuse_source(odd).text, Not(HasSubstr("stack")));
}

}  // namespace
}  // namespace rooftile
