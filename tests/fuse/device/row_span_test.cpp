// Rows that are no whole vectors, on a GPU: lengths around whole vectors, warps, CTAs and clusters, from one element on; every
// row storage; tensors of several types, operands that lie off the rows' own vectors; rows whose neighbours are not finite.
#include <cctype>

#include "tests/fuse/device/fixture.hpp"

namespace rooftile {
namespace {

class RowSpanTest : public FuseTest, public testing::WithParamInterface<std::pair<int, int>> {
  protected:
    /// Whether a tensor of one letter stands in `expression`.
    static bool names(std::string_view expression, char letter) {
        const auto in_word = [&](std::size_t at) {
            return at < expression.size() && std::isalnum(expression[at]);
        };
        for (std::size_t at = 0; at < expression.size(); ++at)
            if (expression[at] == letter && !in_word(at - 1) && !in_word(at + 1)) return true;
        return false;
    }
};

TEST_P(RowSpanTest, EveryRowStorageIsRight) {
    const auto [rows, columns] = GetParam();
    const auto tensor = [](const char* name, const char* type, const std::string& extents) {
        return fmt::format("{}:{}[{}]", name, type, extents);
    };
    const std::string full = fmt::format("{},{}", rows, columns), row = fmt::format("{}", columns),
                      column = fmt::format("{},1", rows);
    struct Types {
        const char *x, *z, *g;
    };
    constexpr Types types[] = {{"bf16", "bf16", "bf16"},
                               {"fp32", "fp32", "fp32"},
                               {"fp16", "fp32", "bf16"},
                               {"fp32", "bf16", "fp32"},
                               {"bf16", "fp16", "fp32"}};
    int turn = 0, ran = 0, short_rows = 0;
    for (const char* f :
         {"softmax(x)", "log_softmax(x * 0.5)", "layernorm(x, g, b)", "rmsnorm(x + z, g)", "sum(x * x)",
          "max(x)", "argmax(x)", "logsumexp(x * g)", "gelu(layernorm(x, g, b) + z)",
          "where(m, x - mean(x), z) * s", "softmax(dropout(x, 0.3, 5) * dropout(g, 0.2, 7)) + z"}) {
        const Types& t = types[std::size_t(turn++ + columns) % std::size(types)];
        std::vector<std::string> tensors = {tensor("x", t.x, full),   tensor("z", t.z, full),
                                            tensor("g", t.g, row),    tensor("b", t.x, row),
                                            tensor("s", t.z, column), tensor("m", "bool", full)};
        std::erase_if(tensors, [f](const std::string& name) { return !names(f, name[0]); });
        const ExpressionGraph p = made(std::string("y = ") + f, tensors);
        FuseTrial random(p, std::uint64_t(turn)), special(p, std::uint64_t(turn), 0, VerifyCase::special);
        const auto expect_all_right = [&](const FuseRequest& request) {
            for (const FusePlan& plan : plans_of(p, request)) {
                random.expect_right(plan);
                special.expect_right(plan);
                ++ran;
                short_rows += plan.config.row_storage == RowStorage::shared;
            }
        };
        for (const RowStorage row_storage :
             {RowStorage::registers, RowStorage::reload, RowStorage::pipelined})
            expect_all_right({.row_storage = row_storage, .top = 1});
        if (columns < 64)
            expect_all_right({.threads_per_row = 2, .row_storage = RowStorage::registers, .top = 1});
        expect_all_right({.row_storage = RowStorage::shared, .top = 3});
        if (columns < 16) expect_all_right({.threads_per_row = 1, .row_storage = RowStorage::shared, .top = 4});
    }
    EXPECT_GE(ran, 11);
    if (columns < 1000 && columns > 1) { EXPECT_GE(short_rows, 11); }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, RowSpanTest,
    testing::Values(std::pair(300, 1), std::pair(1000, 2), std::pair(999, 3), std::pair(513, 5),
                    std::pair(640, 7), std::pair(111, 8), std::pair(100, 9), std::pair(77, 15),
                    std::pair(130, 17), std::pair(65, 31), std::pair(33, 63), std::pair(51, 66),
                    std::pair(40, 100), std::pair(21, 255), std::pair(20, 258), std::pair(12, 1023),
                    std::pair(9, 2049), std::pair(7, 4099), std::pair(1, 9999), std::pair(300, 16391),
                    std::pair(150, 33333), std::pair(3, 70001), std::pair(3, 262147), std::pair(2, 1000003)),
    [](const auto& shape) { return fmt::format("{}x{}", shape.param.first, shape.param.second); });

// Point-wise, as if all rows were one: operands of columns and of rows, flags among them, in rows shorter and longer than a vector
// and a warp's vectors; a last vector that is not full. Rows that some rows share.
TEST_F(FuseTest, SharedOperandsOfRowsOffVectors) {
    for (const auto& [rows, columns] :
         {std::pair(3, 5), {1000, 3}, {77, 13}, {130, 257}, {33, 4099}, {2, 100003}})
        for (const char* type : {"bf16", "fp32"}) {
            const std::string full = fmt::format("x:{}[{},{}]", type, rows, columns);
            check("y = x * s + z",
                  {full, fmt::format("s:{}[{},1]", type, rows), fmt::format("z:fp16[{},{}]", rows, columns)},
                  2);
            check("y = where(m, gelu(x + b), s)",
                  {full, fmt::format("b:fp32[{}]", columns), fmt::format("m:bool[{}]", columns),
                   fmt::format("s:fp32[{},1]", rows)},
                  2);
        }
    for (const char* f : {"x + z", "softmax(x) * z", "layernorm(x + z)"})
        check(std::string("y = ") + f, {"x:bf16[6,4,37]", "z:fp32[6,1,37]"}, 4);
}

// The greatest of a row is a product, a quotient: less itself it is 0, not what it was rounded by.
TEST_F(FuseTest, SoftmaxOfHugeProducts) {
    for (const char* f : {"softmax(x * z)", "log_softmax(x / z)", "logsumexp(x * z)"})
        for (const std::int64_t columns : {std::int64_t(5), std::int64_t(100), std::int64_t(3000)}) {
            const std::string of = fmt::format("[16,{}]", columns);
            const ExpressionGraph p = made(std::string("y = ") + f, {"x:fp32" + of, "z:fp32" + of});
            FuseTrial::Values values = {random_values(16 * columns, Element::fp32, 3),
                                        random_values(16 * columns, Element::fp32, 5)};
            for (std::size_t i = 0; i < values[0].size(); ++i) {
                values[0][i] = rounded_to(1e19 * (1 + 0.1 * values[0][i]), Element::fp32);
                values[1][i] = rounded_to(
                    (std::string_view(f).find('/') < 20 ? 6e-20 : 1.7e19) * (1 + 0.01 * values[1][i]),
                    Element::fp32);
            }
            FuseTrial trial(p, values);
            for (const RowStorage row_storage :
                 {RowStorage::registers, RowStorage::reload})
                for (const FusePlan& plan : plans_of(p, {.row_storage = row_storage, .top = 1}))
                    trial.expect_right(plan);
        }
}

}  // namespace
}  // namespace rooftile
