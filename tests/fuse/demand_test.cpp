#include "rooftile/fuse/operation.hpp"
#include "tests/roof_below.hpp"

namespace rooftile {
namespace {

Problem problem(const char* expression, std::initializer_list<const char*> tensors) {
    Given given(Given::Named::by_key);
    given.add("expression", expression);
    for (const char* tensor : tensors) given.add("tensor", tensor);
    return fuse_operation().problem(given);
}

TEST(FuseDemand, NoPredictionIsBelowItsRoof) {
    for (const char* extents : {"[64,64]", "[4096,4096]", "[16,1048576]", "[65536,300]", "[4,100000000]"}) {
        const std::string x = std::string("x:bf16") + extents;
        for (const char* expression : {"y = softmax(x)", "y = gelu(x)", "y = sum(x * x)", "y = layernorm(x)", "y = exp(tanh(x))"})
            expect_roofs_below(problem(expression, {x.c_str()}));
        expect_roofs_below(problem("y = x + z", {x.c_str(), (std::string("z:fp32") + extents).c_str()}));
    }
}

}  // namespace
}  // namespace rooftile
