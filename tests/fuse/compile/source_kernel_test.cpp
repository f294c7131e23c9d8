// A user's kernel compiled as `measure source` and `build source` do, without a GPU: the worked example of the documentation.
#include <gtest/gtest.h>

#include "rooftile/error.hpp"
#include "rooftile/measure/source_kernel.hpp"
#include "rooftile/report/code_accesses.hpp"

namespace rooftile {
namespace {

Given example(std::string_view argument = "int64:16777216") {
    Given given;
    given.add("file", ROOFTILE_SOURCE_DIR "/examples/source/gelu.cu");
    given.add("entry", "gelu");
    given.add("tensor", "x:bf16[4096,4096]");
    given.add("reference", "y = gelu(x)");
    given.add("arg", std::string(argument));
    given.add("grid", "1056");
    given.add("block", "512");
    return given;
}

TEST(SourceKernel, OfTheExampleMovesSixteenBytesAnAccess) {
    const SourceCode code = compile_source_code(source_request(example()), "sm_90");
    EXPECT_EQ(code.parameters, (std::vector<int>{8, 8, 8}));
    const AccessWidths accesses = ptx_accesses(code.ptx, code.compiled.lowered_names.front());
    EXPECT_EQ(accesses.loads, (std::map<int, int>{{16, 1}}));
    EXPECT_EQ(accesses.stores, (std::map<int, int>{{16, 1}}));
    EXPECT_EQ(code.compiled.entries.front().spill_store_bytes, 0);
}

TEST(SourceKernel, StandsBesidePlansWithoutAPrediction) {
    const CompiledKernel kernel = compile_source_kernel(source_request(example()), "sm_90");
    EXPECT_FALSE(kernel.plan().own);
    EXPECT_FALSE(kernel.plan().time_us.has_value());
    EXPECT_EQ(kernel.plan().launches.front().kernel, "gelu");
    EXPECT_EQ(kernel.code().name, "gelu");
    EXPECT_EQ(kernel.shared_bytes(), 0);
}

TEST(SourceKernel, TakesWhatItDeclares) {
    EXPECT_THROW(compile_source_kernel(source_request(example("int32:16777216")), "sm_90"), RequestError);
}

TEST(SourceRequest, ParametersAreTensorsAsDeclaredThenOutputsThenNumbers) {
    const SourceRequest left_out = source_request(example());
    ASSERT_EQ(left_out.parameters.size(), 3u);
    EXPECT_EQ(left_out.parameters[0].name, "x");
    EXPECT_EQ(left_out.parameters[0].tensor, 0);
    EXPECT_EQ(left_out.parameters[1].name, "y");
    EXPECT_EQ(left_out.parameters[1].tensor, 1);
    EXPECT_EQ(left_out.parameters[2].tensor, -1);
    EXPECT_EQ(left_out.parameters[2].bits, 16777216u);

    Given first;
    for (const char* key : {"file", "entry", "grid"}) first.add(key, example().text(key));
    first.add("tensor", "y:fp32[8]");
    first.add("tensor", "x:fp32[8]");
    first.add("reference", "y = x + x");
    first.add("arg", "fp32:0.5");
    first.add("arg", "int32:-1");
    const SourceRequest output_first = source_request(first);
    ASSERT_EQ(output_first.parameters.size(), 4u);
    EXPECT_EQ(output_first.parameters[0].tensor,
              1);  // y stands first, and behind x among the problem's tensors
    EXPECT_EQ(output_first.parameters[1].tensor, 0);
    EXPECT_EQ(output_first.parameters[2].bits, 0x3f000000u);  // 0.5f
    EXPECT_EQ(output_first.parameters[2].bytes, 4);
    EXPECT_EQ(output_first.parameters[3].bits, 0xffffffffu);
}

}  // namespace
}  // namespace rooftile
