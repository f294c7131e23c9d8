// A graph as rows and passes: forms, accesses, and what no single kernel can do.
#include "rooftile/fuse/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rooftile/expression/expression.hpp"

namespace rooftile {
namespace {

std::variant<Program, NoProgram> lowered(std::string_view text, std::initializer_list<const char*> tensors) {
    std::vector<TensorDeclaration> declared;
    for (const char* t : tensors) declared.push_back(tensor_declaration(t));
    return fuse_program(expression_graph(text, declared));
}
Program program(std::string_view text, std::initializer_list<const char*> tensors) {
    return std::get<Program>(lowered(text, tensors));
}
const Access& access(const Program& p, int input) {
    for (const ProgramValue& v : p.values)
        if (v.kind == ValueKind::load && v.input == input) return v.access;
    throw std::logic_error("no such load");
}

TEST(Program, PointwiseIsOneLongRowWhereShapesAgree) {
    const Program flat = program("y = gelu(x) * s", {"x:bf16[64,32]", "s:fp32[]"});
    EXPECT_EQ(flat.form, FuseForm::pointwise);
    EXPECT_TRUE(flat.flat);
    EXPECT_EQ(flat.rows, 1);
    EXPECT_EQ(flat.columns, 64 * 32);
    const Program rows = program("y = gelu(x + b)", {"x:bf16[64,32]", "b:bf16[32]"});
    EXPECT_FALSE(rows.flat);
    EXPECT_EQ(rows.rows, 64);
    EXPECT_TRUE(access(rows, 0).full());
    EXPECT_TRUE(access(rows, 1).along_row);
    EXPECT_TRUE(access(rows, 1).bands.empty());
}

TEST(Program, AnyBroadcastIsSumsOfBands) {
    // x[b,t,h,c] with y[b,1,h,c]: row = (b T + t) H + h; y's row = b H + h = row / (T H) * H + row % H.
    const Program p = program("y = x + z", {"x:fp32[2,3,5,8]", "z:fp32[2,1,5,8]"});
    ASSERT_EQ(access(p, 1).bands.size(), 2u);
    EXPECT_EQ(access(p, 1).bands[0], (RowBand{1, 5, 1}));
    EXPECT_EQ(access(p, 1).bands[1], (RowBand{15, 0, 5}));
    // [t,1] under [b,t,c]: row % T, one value a row.
    const Program q = program("y = x + z", {"x:fp32[2,3,8]", "z:fp32[3,1]"});
    EXPECT_FALSE(access(q, 1).along_row);
    EXPECT_EQ(access(q, 1).bands[0], (RowBand{1, 3, 1}));
    // Every row of every tensor by brute force.
    for (int row = 0; row < 30; ++row) {
        const int h = row % 5, b = row / 15;
        std::int64_t at = 0;
        for (const RowBand& band : access(p, 1).bands)
            at += (band.modulo ? row / band.divide % band.modulo : row / band.divide) * band.multiply;
        EXPECT_EQ(at, b * 5 + h);
    }
}

TEST(Program, PassesFollowTheReductions) {
    const Program softmax = program("y = softmax(x)", {"x:bf16[64,32]"});
    EXPECT_EQ(softmax.form, FuseForm::row);
    EXPECT_EQ(softmax.passes, 2);  // greatest and sum in one; the result
    EXPECT_EQ(program("y = softmax(layernorm(x))", {"x:bf16[64,32]"}).passes, 3);
    EXPECT_EQ(program("y = sum(x) + max(x)", {"x:bf16[64,32]"}).passes, 2);  // side by side
    const Program whole = program("y = sqrt(sum_all(x * x))", {"x:bf16[64,32]"});
    EXPECT_EQ(whole.form, FuseForm::whole);
    EXPECT_TRUE(whole.flat);
}

TEST(Program, ColumnsGoOnWithColumns) {
    const Program p = program("db = column_sum(g * r) * w; m = column_max(g)", {"g:bf16[4,16,32]", "r:fp32[4,16,1]", "w:fp32[32]"});
    EXPECT_EQ(p.form, FuseForm::columns);
    EXPECT_EQ(p.rows, 64);
    EXPECT_EQ(p.columns, 32);
    EXPECT_EQ(p.stores.size(), 2u);
    EXPECT_EQ(program("y = x + column_sum(x)", {"x:bf16[1,32]"}).form, FuseForm::columns);  // its only row is its columns
    EXPECT_EQ(program("y = column_sum(x)", {"x:bf16[64,1]"}).form, FuseForm::columns);
}

TEST(Program, RowsOfOneElement) {
    EXPECT_EQ(program("y = softmax(x)", {"x:bf16[64,1]"}).form, FuseForm::row);
    EXPECT_EQ(program("y = sum(sum(x))", {"x:bf16[64,32]"}).passes, 2);  // a sum of one value is that value
    EXPECT_EQ(program("y = x", {"x:bf16[1,1]"}).columns, 1);
    EXPECT_EQ(program("y = x + s", {"x:bf16[7]", "s:fp32[1]"}).form, FuseForm::pointwise);
}

TEST(Program, WhatOneKernelCannotDoIsSaid) {
    const auto why = [](std::string_view text, std::initializer_list<const char*> tensors) {
        const auto outcome = lowered(text, tensors);
        const auto* none = std::get_if<NoProgram>(&outcome);
        return none ? none->why : "accepted";
    };
    EXPECT_THAT(why("y = x / sum_all(x)", {"x:fp32[4,8]"}), testing::HasSubstr("the grid cannot wait"));
    EXPECT_THAT(why("y = softmax(x); s = sum_all(x)", {"x:fp32[4,8]"}),
                testing::HasSubstr("beside row operations"));
    EXPECT_THAT(why("y = x - column_mean(x)", {"x:fp32[4,8]"}), testing::HasSubstr("the grid cannot wait"));
    EXPECT_THAT(why("y = column_sum(x); z = x * 2", {"x:fp32[4,8]"}), testing::HasSubstr("outputs must have the 8 columns alone"));
    EXPECT_THAT(why("y = column_sum(x); z = r * 2", {"x:fp32[8,8]", "r:fp32[8,1]"}),
                testing::HasSubstr("outputs must have the 8 columns alone"));
    for (const char* text : {"y = column_sum(softmax(x))", "y = column_sum(x * sum(x))", "y = column_sum(x); s = sum_all(x)",
                             "y = softmax(column_sum(x))"})
        EXPECT_THAT(why(text, {"x:fp32[4,8]"}), testing::AnyOf(testing::HasSubstr("pass their results as tensors"),
                                                               testing::HasSubstr("before any other reduction")))
            << text;
    EXPECT_THAT(why("y = column_sum(b) * column_sum(x)", {"x:fp32[4,8]", "b:fp32[1,8]"}),
                testing::HasSubstr("columns must be those of the kernel"));
    EXPECT_THAT(why("y = column_sum(x * dropout(r, 0.5))", {"x:fp32[4,8]", "r:fp32[4,1]"}),
                testing::HasSubstr("dropout of what rows or columns share"));
    EXPECT_THAT(why("y = x + b; z = exp(b)", {"x:fp32[4,8]", "b:fp32[8]"}),
                testing::HasSubstr("outputs must have its shape"));
    // A point-wise kernel would store each of its elements: as many as z has.
    for (const char* text :
         {"y = c * s; z = x + c", "y = dropout(c, 0.5); z = dropout(x, 0.1) * s", "y = c; z = x * s + c"})
        EXPECT_THAT(why(text, {"x:bf16[64,4096]", "c:fp32[64,1]", "s:fp32[]"}),
                    testing::HasSubstr("outputs must have its shape"))
            << text;
}

// Softmax of a 16-bit tensor's own values may take any base, if nothing else reads the greatest value.
TEST(Program, SoftmaxOfSixteenBitsSharesABase) {
    const auto shared = [](std::string_view text, std::initializer_list<const char*> tensors) {
        const Program p = program(text, tensors);
        int reductions = 0, powers = 0;
        for (int i = 0; i < int(p.values.size()); ++i) {
            reductions += gives_shared_base(p, i);
            powers += shared_base_of(p, i) >= 0;
        }
        EXPECT_EQ(reductions, powers) << text;
        return powers;
    };
    EXPECT_EQ(shared("y = softmax(x)", {"x:bf16[64,32]"}), 1);
    EXPECT_EQ(shared("y = softmax(x) * g + exp(x)", {"x:fp16[64,32]", "g:fp32[32]"}), 1);
    EXPECT_EQ(shared("y = softmax(x) + softmax(z)", {"x:bf16[64,32]", "z:fp16[64,32]"}), 2);
    EXPECT_EQ(shared("y = softmax(x); m = max(x)", {"x:bf16[64,32]"}), 1);
    // Each has a reduction of its own, and softmax alone shares its base.
    EXPECT_EQ(shared("y = softmax(x); l = logsumexp(x)", {"x:bf16[64,32]"}), 1);
    EXPECT_EQ(shared("y = softmax(x) + log_softmax(x)", {"x:bf16[64,32]"}), 1);
    EXPECT_EQ(shared("y = softmax(x)", {"x:fp32[64,32]"}), 0);
    EXPECT_EQ(shared("y = softmax(x * 2)", {"x:bf16[64,32]"}), 0);
    EXPECT_EQ(shared("y = log_softmax(x)", {"x:bf16[64,32]"}), 0);
    EXPECT_EQ(shared("y = exp(x - max(x))", {"x:bf16[64,32]"}), 0);
}

}  // namespace
}  // namespace rooftile
