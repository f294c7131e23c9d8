// Reductions of columns on a GPU: every way in which rows lie in vectors, every number of CTAs, what follows, what is not finite.
#include "tests/fuse/device/fixture.hpp"

namespace rooftile {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::vector<std::int64_t> few() { return {1, 2, 3, 7, 33, 1000, 4099}; }

TEST_F(FuseTest, ReductionsOfColumnsOfAnyShape) {
    const char *functions[] = {"column_sum(x)", "column_mean(x * 0.5)", "column_max(x)"}, *types[] = {"bf16", "fp32", "fp16"};
    int problem = 0;
    for (const std::int64_t rows : few())
        for (const std::int64_t columns : few()) {
            check(std::string("y = ") + functions[problem % 3], {fmt::format("x:{}[{},{}]", types[problem / 3 % 3], rows, columns)}, 2);
            ++problem;
        }
}

TEST_F(FuseTest, EveryLaunchOfColumnsIsRight) {
    for (const char* shape : {"5000,256", "3001,33", "700,1030", "20,20000", "9000,5"})
        check("y = column_sum(x)", {fmt::format("x:bf16[{}]", shape)}, 64);
    for (const int splits : {1, 2, 3, 17})
        check("y = column_sum(x); m = column_max(x)", {"x:bf16[4099,1000]"}, 2, {.row_splits = splits});
}

TEST_F(FuseTest, ColumnsBesideOperands) {
    for (const char* shape : {"513,1030", "513,96", "77,4099", "1001,5"}) {
        const std::string of = shape, rows = of.substr(0, of.find(',')), columns = of.substr(of.find(',') + 1);
        check("d = column_sum(g * n); b = column_mean(g) * w + s; m = column_max(dropout(g, 0.5, 3))",
              {"g:bf16[" + of + "]", "n:fp32[" + columns + "]", "w:bf16[" + columns + "]", "s:fp32[1]"}, 3);
        check("d = column_sum(gelu(g) * k); e = dropout(column_sum(dropout(h, 0.1, 9, 4)) / 3.0, 0.3, 2)",
              {"g:fp16[" + of + "]", "h:fp32[" + of + "]", "k:fp32[" + rows + ",1]"}, 3);
        check("d = column_sum(where(m, g, s))", {"g:fp16[" + of + "]", "m:bool[" + of + "]", "s:fp32[]"}, 2);
    }
    check("d = column_sum(g * k)", {"g:bf16[5,13,24]", "k:bf16[13,24]"}, 2);
    check("d = column_sum(g * k)", {"g:bf16[5,13,25]", "k:bf16[5,1,25]"}, 2);
    check("y = x + column_sum(x)", {"x:bf16[1,77]"}, 2);
}

TEST_F(FuseTest, ColumnsWithoutRowsOrWithout) {
    check("y = column_sum(x); z = column_mean(x)", {"x:fp32[0,70]"}, 1);
    check("y = column_sum(x)", {"x:fp32[70,0]"}, 1);
}

// Each in one column of its own; the columns beside it stay finite.
TEST_F(FuseTest, ColumnsOfWhatIsNotFinite) {
    for (const std::int64_t columns : {8, 33, 1003}) {
        const std::int64_t rows = 600;
        std::vector<double> values(size_t(rows * columns), 0.25);
        const double special[] = {std::nan(""), infinity, -infinity, 3e38};
        for (std::int64_t i = 0; i < 4; ++i) values[size_t((rows - 1 - 97 * i) * columns + 2 * i)] = special[i];
        values[size_t(3 * columns + 2)] = -infinity;  // beside +Inf in its column: NaN of the sum
        for (const char* f : {"column_sum(x)", "column_mean(x)", "column_max(x)"}) {
            const ExpressionGraph p = made(std::string("y = ") + f, {fmt::format("x:bf16[{},{}]", rows, columns)});
            FuseTrial trial(p, FuseTrial::Values{values});
            trial.allow_undecided(0.15);
            for (const FusePlan& plan : plans_of(p, {.top = 2})) trial.expect_right(plan);
        }
    }
}

// Whole numbers up to 4: sums are exact in any order, and equal bits come of every plan.
TEST_F(FuseTest, ExactColumnsAreTheSameByEveryPlan) {
    std::vector<double> values;
    for (int i = 0; i < 3001 * 67; ++i) values.push_back(i * 7 % 9 - 4);
    const FuseTrial trial(made("y = column_sum(fp32(x))", {"x:bf16[3001,67]"}), FuseTrial::Values{values});
    std::vector<std::vector<char>> first;
    for (const FusePlan& plan : plans_of(trial.problem(), {.top = 24})) {
        const auto result = trial.run(plan);
        if (first.empty()) first = result;
        EXPECT_EQ(result, first) << plan.config.threads_per_row << " of " << plan.config.threads << ", " << plan.config.row_splits;
    }
}

TEST_F(FuseTest, ColumnsAtAddressesOffSixteenBytes) {
    for (const int shift : {2, 4, 8, 16})
        for (const char* shape : {"300,64", "300,37"}) {
            const ExpressionGraph p = made("y = column_sum(x)", {fmt::format("x:bf16[{}]", shape)});
            FuseTrial(p, 3, shift).expect_right(plans_of(p, {.alignment = shift, .top = 1}).at(0));
        }
}

}  // namespace
}  // namespace rooftile
