// Fused kernels on a GPU: every function and form against fp64 on odd shapes, the edges of IEEE, dropout's
// mask, misaligned tensors, every launch that the plan offers; a few hundred random expressions.
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "rooftile/expression/random.hpp"
#include "rooftile/fuse/device/measure.hpp"
#include "tests/fuse/device/fixture.hpp"
#include "tests/fuse/shifted_rows.hpp"

namespace rooftile {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

TEST_F(FuseTest, EveryFunctionInEveryType) {
    for (const char* f : {"exp(x)",         "log(abs(x))",
                          "tanh(x)",        "erf(x)",
                          "sqrt(abs(x))",   "rsqrt(abs(x) + 0.01)",
                          "sigmoid(x)",     "silu(x)",
                          "relu(x)",        "gelu(x)",
                          "gelu_tanh(x)",   "-x",
                          "abs(x)",         "x**2",
                          "x**-3",          "x**0.5",
                          "abs(x)**1.7",    "1/x",
                          "x/(x*x+1)",      "maximum(x, 0.5)",
                          "minimum(x, -x)", "where(x > 0, x, exp(x) - 1)",
                          "(x > 0.5) * x",  "bf16(x) * 2",
                          "fp16(x*3) + x",  "fp32(x) - 1"})
        for (const char* type : {"fp32", "bf16", "fp16"})
            check(std::string("y = ") + f, {fmt::format("x:{}[3,1001]", type)}, 1);
}

// Two vectors of a thread in two rows, and in one where rows are odd in number or shorter than a warp's vectors: rows of one
// vector, of 32 and 33, of none that a CTA's pieces end with; a last piece that is not full.
TEST_F(FuseTest, VectorsBelowOneAnother) {
    for (const char* shape :
         {"2,8", "6,248", "7,264", "2,256", "128,264", "34,1000", "4,131072", "1000,2056"})
        for (const char* f : {"gelu(x + b)", "x * b - dropout(x, 0.3, 5)", "where(x > b, x, b) * s"}) {
            const std::string of = shape, columns = of.substr(of.find(',') + 1),
                              rows = of.substr(0, of.find(','));
            std::vector<std::string> tensors = {"x:bf16[" + of + "]", "b:bf16[" + columns + "]"};
            if (std::string(f).ends_with("* s")) tensors.push_back("s:fp32[" + rows + ",1]");
            for (const int threads : {128, 512})
                check(std::string("y = ") + f, tensors, 1, {.vectors_per_thread = 2, .threads = threads});
        }
    check("y = x + b * r", {"x:bf16[6,4,264]", "b:bf16[264]", "r:bf16[6,1,264]"}, 2,
          {.vectors_per_thread = 2});
    check("y = x + b", {"x:fp32[6,132]", "b:fp32[132]"}, 2, {.vectors_per_thread = 2});
    check("y = x + b", {"x:bf16[6,37]", "b:bf16[37]"}, 2, {.vectors_per_thread = 2});
}

TEST_F(FuseTest, RowOperationsOnAnyShape) {
    for (const char* f : {"softmax(x)", "log_softmax(x)", "layernorm(x)", "rmsnorm(x)", "sum(x)", "mean(x)",
                          "max(x)", "argmax(x)", "logsumexp(x)", "x - mean(x)", "softmax(layernorm(x) * 2)"})
        for (const char* shape :
             {"1,1", "1,7", "5,1", "3,33", "7,256", "130,1000", "9,1009", "2,4096", "3,20000", "2,70000"})
            for (const char* type : {"bf16", "fp32"})
                check(std::string("y = ") + f, {fmt::format("x:{}[{}]", type, shape)}, 2);
}

TEST_F(FuseTest, EveryLaunchOfEveryRowStorageIsRight) {
    for (const char* shape : {"300,512", "40,8192", "5,65536"})
        for (RowStorage row_storage :
             {RowStorage::registers, RowStorage::reload, RowStorage::pipelined}) {
            const bool longest = std::string_view(shape) == "5,65536";
            if (row_storage == RowStorage::pipelined && !longest) continue;  // too short
            if (row_storage == RowStorage::registers && longest) continue;   // no CTA's registers hold it
            check("y = gelu(dropout(layernorm(x, g, b) + r, 0.1, 7, 3))",
                  {fmt::format("x:bf16[{}]", shape), fmt::format("r:bf16[{}]", shape),
                   fmt::format("g:bf16[{}]", std::string(shape).substr(std::string(shape).find(',') + 1)),
                   fmt::format("b:bf16[{}]", std::string(shape).substr(std::string(shape).find(',') + 1))},
                  64, {.row_storage = row_storage});
        }
}

// As many rows as teams: nobody asks whether he has one, and lanes of a warp reduce all at once. Also one row more.
TEST_F(FuseTest, ShortRowsInCtasOfOneWarpAndMore) {
    const auto all_forms = [&](const FuseRequest& request, int rows) {
        const int threads_per_row = *request.threads_per_row;
        const std::string row = fmt::format("{}", threads_per_row * 8 * 3 - 8);
        const std::string x = fmt::format("x:bf16[{},{}]", rows, row);
        const auto asked = [&](const FuseConfig& c) { return c.threads == request.threads; };
        const std::vector<std::string> weighed = {x, "g:bf16[" + row + "]", "b:bf16[" + row + "]"};
        EXPECT_GE(check("y = layernorm(x, g, b)", weighed, 2, request, asked), 1) << x;
        EXPECT_GE(check("y = softmax(x); m = max(x)", {x}, 1, request, asked), 1) << x;
        EXPECT_GE(check("y = argmax(x); s = sum(x * x)", {x}, 1, request, asked), 1) << x;
    };
    for (const int threads_per_row : {8, 16, 32})
        for (const int threads : {32, 64, 128, 256})
            for (const RowStorage row_storage :
                 {RowStorage::registers, RowStorage::reload}) {
                for (const int rows : {512, 513})
                    all_forms(
                        {.threads = threads, .threads_per_row = threads_per_row, .row_storage = row_storage},
                        rows);
            }
}
TEST_F(FuseTest, WholeReductions) {
    for (const char* shape : {"1", "7", "1000,1001", "3,5,7", "4096,4096"}) {
        check("s = sum_all(x)", {fmt::format("x:bf16[{}]", shape)}, 2);
        check("m = max_all(x * x); a = mean_all(x)", {fmt::format("x:fp32[{}]", shape)}, 2);
    }
    check("s = sum_all(x + b)", {"x:fp32[100,1000]", "b:fp32[1000]"}, 2);
}

TEST_F(FuseTest, BroadcastsOfEveryKind) {
    check("y = x + b", {"x:bf16[64,1000]", "b:bf16[1000]"});
    check("y = x + b", {"x:bf16[64,1009]", "b:bf16[1009]"});
    check("y = x * c", {"x:bf16[64,1000]", "c:fp32[64,1]"});
    check("y = x + z", {"x:fp32[2,3,5,8]", "z:fp32[2,1,5,8]"});
    check("y = x + z", {"x:fp32[4,3,8]", "z:fp32[3,1]"});
    check("y = a * b", {"a:bf16[4096,1]", "b:bf16[1,4096]"}, 1);
    check("y = softmax(x * s + m)", {"x:bf16[2,4,16,64]", "s:fp32[]", "m:bf16[2,1,16,64]"});
    check("y = where(m, x, -inf)", {"x:fp16[33,100]", "m:bool[33,100]"});
    check("h = x + r; y = rmsnorm(h, g); z = h; s = sum(h)",
          {"x:bf16[77,640]", "r:bf16[77,640]", "g:fp32[640]"});
}

TEST_F(FuseTest, MisalignedTensors) {
    const ExpressionGraph p = made("y = gelu(x)", {"x:bf16[999]"});
    for (int shift : {2, 4, 8, 16})
        FuseTrial(p, 3, shift).expect_right(plans_of(p, {.alignment = shift, .top = 1}).at(0));
    const FusePlan aligned = plans_of(p, {.top = 1}).at(0);
    EXPECT_THROW(FuseTrial(p, 3, 2).run(aligned), RequestError);
}

TEST_F(FuseTest, EmptyTensorsAreLeftAlone) {
    check("y = gelu(x)", {"x:bf16[0]"}, 1);
    check("y = softmax(x)", {"x:bf16[0,64]"}, 1);
    check("y = softmax(x)", {"x:bf16[64,0]"}, 1);
    check("s = sum_all(x)", {"x:fp32[0,64]"}, 1);
}

TEST_F(FuseTest, InfinitiesAndLargeArguments) {
    const std::vector<double> edges = {10.1, 100,  1e4,      -10.1,     -100,         -1e4,
                                       0,    -0.0, inf, -inf, std::nan(""), 88.8};
    for (const char* f :
         {"gelu(x)", "gelu_tanh(x)", "softplus(x)", "tanh(x)", "exp(x)", "sigmoid(x)", "silu(x)", "relu(x)",
          "erf(x)", "sqrt(x)", "log(x)", "1/x", "maximum(x, 0.0)", "x > 0"}) {
        const ExpressionGraph p = made(std::string("y = ") + f, {"x:fp32[12]"});
        FuseTrial(p, {edges}).expect_right(plans_of(p, {.top = 1}).at(0));
    }
    const std::vector<double> rows = {inf,  1, 2, 3, -inf,    -inf, -inf, -inf,
                                      -inf, 0, 1, 2, std::nan(""), 1,         2,         3};
    for (const char* f :
         {"softmax(x)", "log_softmax(x)", "logsumexp(x)", "max(x)", "argmax(x)", "sum(x)", "layernorm(x)"}) {
        for (const char* x : {"x:fp32[4,4]", "x:bf16[4,4]"}) {
            const ExpressionGraph p = made(std::string("y = ") + f, {x});
            FuseTrial trial(p, {rows});
            const std::vector<FusePlan> plans = plans_of(p, {.top = 4});
            EXPECT_FALSE(plans.empty()) << f;
            for (const FusePlan& plan : plans) trial.expect_right(plan);
        }
    }
}

// Of 16 bits softmax takes its powers from a base near the greatest value, and another one beyond 2^20: rows around
// that, up to the types' ends, of one sign and of both, rising along the row; with Inf, -Inf alone and NaN in some.
// In every row storage, short rows and such that several threads, warps and CTAs share.
TEST_F(FuseTest, SoftmaxOfHugeValues) {
    struct Rows {
        const char* type;
        double middle, spread;
    };
    constexpr std::int64_t rows = 8;
    for (const std::int64_t columns : {std::int64_t(64), std::int64_t(1000), std::int64_t(65544)})
        for (const Rows& r : {Rows{"bf16", 1048576, 65536}, Rows{"bf16", -1048576, 65536},
                              Rows{"bf16", 0, 4e6}, Rows{"bf16", 0, 1e30}, Rows{"bf16", -1e30, 1e29},
                              Rows{"bf16", 3e38, 5e36}, Rows{"bf16", 1000, 30}, Rows{"fp16", 64000, 250},
                              Rows{"fp16", -64000, 250}, Rows{"fp16", 0, 50}}) {
            const ExpressionGraph p =
                made("y = softmax(x)", {fmt::format("x:{}[{},{}]", r.type, rows, columns)});
            const Element element = p.nodes[size_t(p.inputs[0])].element;
            const std::int64_t count = rows * columns;
            std::vector<double> x = random_values(count, element, 5);
            for (std::int64_t i = 0; i < count; ++i) {
                const std::int64_t row = i / columns, column = i % columns;
                const double rise = row == 1 ? 2.0 * double(column) / double(columns) - 1 : 0;
                x[size_t(i)] = rounded_to(r.middle + r.spread * (x[size_t(i)] + rise), element);
            }
            x[size_t(2 * columns + columns / 2)] = inf;
            x[size_t(3 * columns + columns - 1)] = std::nan("");
            for (std::int64_t column = 0; column < columns; ++column) {
                x[size_t(4 * columns + column)] = -inf;
                if (column != columns / 3) x[size_t(5 * columns + column)] = -inf;
            }
            x[size_t(6 * columns)] = inf;
            x[size_t(6 * columns + 1)] = -inf;
            FuseTrial trial(p, {std::move(x)});
            int ran = 0;
            for (RowStorage row_storage :
                 {RowStorage::registers, RowStorage::reload, RowStorage::pipelined})
                for (const FusePlan& plan : plans_of(p, {.row_storage = row_storage, .top = 2})) {
                    trial.expect_right(plan);
                    ++ran;
                }
            EXPECT_GE(ran, 2) << columns << " columns";
        }
}

// Rows of any mean, of one value, of huge ones, with an outlier, with what is not finite, side by side; lanes, a warp, a
// CTA, a cluster, a ring a row.
TEST_F(FuseTest, MomentsOfEveryKindOfRow) {
    constexpr double means[] = {0, 1, 3.5, 8, 100, 30000}, huge = 1e30;
    for (const char* type : {"bf16", "fp16"})
        for (const auto& [rows, columns] : {std::pair{36, 64},
                                            {35, 64},
                                            {48, 256},
                                            {24, 1024},
                                            {24, 4096},
                                            {24, 16384},
                                            {13, 65536},
                                            {13, 262144},
                                            {300, 65536}}) {
            const std::string shape = fmt::format("[{},{}]", rows, columns);
            const ExpressionGraph p = made("y = layernorm(x, g) + r", {fmt::format("x:{}{}", type, shape),
                                                                       fmt::format("g:{}[{}]", type, columns),
                                                                       fmt::format("r:{}{}", type, shape)});
            auto inputs = random_inputs(p, 5);
            const Element element = p.nodes[size_t(p.inputs[0])].element;
            for (int row = 0; row < rows; ++row)
                for (int column = 0; column < columns; ++column) {
                    double& x = inputs[0][size_t(row) * size_t(columns) + size_t(column)];
                    const int kind = row % 13;
                    if (kind < 6) x += means[kind];
                    else if (kind == 6) x = 3;
                    else if (kind == 7) x = 0;
                    else if (kind == 8 && column == columns / 3) x = 20000;
                    else if (kind == 9 && column == columns - 1) x = inf;
                    else if (kind == 10 && column < columns / 2) x += 50;
                    else if (kind == 11) x = element == Element::bf16 ? huge : 60000;
                    // Their squares overflow together, those of what they differ by do not.
                    else if (kind == 12)
                        x = element == Element::bf16 ? 1e20 / std::sqrt(columns) * (1 + x / 100) : 300 + x;
                    x = rounded_to(x, element);
                }
            FuseTrial trial(p, std::move(inputs));
            trial.allow_undecided(0.1);  // rows of one huge number, one of 13: what rounding leaves of their variance is unknown
            int ran = 0;
            const auto expect_all_right = [&](const FuseRequest& request) {
                for (const FusePlan& plan : plans_of(p, request)) {
                    trial.expect_right(plan);
                    ++ran;
                }
            };
            for (RowStorage row_storage :
                 {RowStorage::registers, RowStorage::reload, RowStorage::pipelined})
                expect_all_right({.row_storage = row_storage, .top = 2});
            EXPECT_GE(ran, 2) << shape;
            // Rows that are gone over again among rows that are not.
            if (rows > 100)
                expect_all_right({.reduction_threads = 128, .row_storage = RowStorage::pipelined, .top = 2});
        }
}

TEST_F(FuseTest, RowsOfLargeMean) {
    const ExpressionGraph p = made("y = layernorm(x)", {"x:fp32[4,8192]"});
    std::vector<double> x;
    for (int i = 0; i < 4 * 8192; ++i) x.push_back(double(float(1e4 + std::sin(i * 0.37))));
    FuseTrial trial(p, {std::move(x)});
    const std::vector<FusePlan> plans = plans_of(p, {.top = 16});
    EXPECT_GE(plans.size(), 2u);
    for (const FusePlan& plan : plans) trial.expect_right(plan);
}

/// Errors of y against `exact` in a row.
double worst_error(std::span<const float> y, const std::function<double(std::size_t)>& exact) {
    double most = 0;
    for (std::size_t i = 0; i < y.size(); ++i) most = std::max(most, std::fabs(double(y[i]) - exact(i)));
    return most;
}

// Of rows of mean 1 to 10^5 and spread 0 to 1 layer norm errs at most twice as much as PyTorch's, and a mean that is subtracted again by half a
// unit in its last place, however rows are stored.
TEST_F(FuseTest, RowsFarFromZeroAsPyTorch) {
    std::mt19937_64 random(fresh_seed());
    constexpr double epsilon = 1e-5;
    for (const RowStorage row_storage : {RowStorage::registers, RowStorage::shared, RowStorage::reload, RowStorage::pipelined})
        for (int i = 0; i < 6; ++i) {
            const bool is_long = row_storage == RowStorage::pipelined || (row_storage == RowStorage::reload && i % 2);
            const double least = is_long ? 15 : 1, most = row_storage == RowStorage::shared ? 6 : is_long ? 18 : 13;
            const auto columns = std::size_t(std::exp2(least + (most - least) * std::uniform_real_distribution<double>()(random)));
            constexpr std::size_t rows = 24;
            const std::string tensor = fmt::format("x:fp32[{},{}]", rows, columns);
            std::vector<float> x;
            for (std::size_t row = 0; row < rows; ++row) {
                const std::vector<float> drawn = shifted_row(random, columns);
                x.insert(x.end(), drawn.begin(), drawn.end());
            }
            const std::vector<double> values(x.begin(), x.end());
            for (const bool norm : {true, false}) {
                const ExpressionGraph p = made(norm ? "y = layernorm(x)" : "y = x - mean(x)", {tensor});
                const FuseTrial trial(p, FuseTrial::Values{values});
                for (const FusePlan& plan : plans_of(p, {.row_storage = row_storage, .top = 3})) {
                    SCOPED_TRACE(fmt::format("{} of {}, {} of {} x {}", p.text, tensor, name_of(plan.config.row_storage),
                                             plan.config.threads_per_row, plan.config.cluster));
                    const std::vector<char> bytes = trial.run(plan).at(0);
                    std::vector<float> y(rows * columns);
                    std::memcpy(y.data(), bytes.data(), bytes.size());
                    for (std::size_t row = 0; row < rows; ++row) {
                        const std::span own(x.data() + row * columns, columns);
                        const ExactMoments exact = exact_moments(own);
                        const double scale = norm ? 1 / std::sqrt(exact.variance + epsilon) : 1;
                        const auto of = [&](std::size_t i) { return (double(own[i]) - exact.mean) * scale; };
                        const double got = worst_error({y.data() + row * columns, columns}, of);
                        double greatest = 0;
                        for (std::size_t k = 0; k < columns; ++k) greatest = std::max(greatest, std::fabs(of(k)));
                        const double allowed = norm ? 2 * torch_layernorm_error(own, epsilon) : 0.75 * fp32_ulp(exact.mean);
                        EXPECT_LE(got, allowed + 3 * fp32_ulp(greatest)) << "row " << row << " of " << exact.mean << " +- " << std::sqrt(exact.variance);
                    }
                }
            }
        }
}

// Every function over every exponent of its arguments: in fp32 10^-4 of a result that is a normal number, in 16 bits one unit beyond rounding.
TEST_F(FuseTest, FunctionsAreRightOverAllExponents) {
    const std::pair<const char*, bool> functions[] = {  // and whether of numbers above 0 alone
        {"exp(x)", false}, {"tanh(x)", false}, {"erf(x)", false}, {"sigmoid(x)", false}, {"silu(x)", false}, {"gelu(x)", false},
        {"gelu_tanh(x)", false}, {"softplus(x)", false}, {"relu(x)", false}, {"x**2", false}, {"x**3", false}, {"x**-1", false}, {"x**-2", false},
        {"1/x", false}, {"x / 3.0", false}, {"log(x)", true}, {"sqrt(x)", true}, {"rsqrt(x)", true}, {"x**0.5", true}, {"x**-0.5", true},
        {"x**1.7", true}, {"x**-0.3", true}};
    for (const Element element : {Element::fp32, Element::bf16, Element::fp16}) {
        std::vector<double> all;
        // Of fp32 64 numbers of each exponent, else every one.
        const std::uint64_t step = element == Element::fp32 ? 0x1ffff : 0x10000;
        for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += step) {
            const double x = element == Element::fp16 ? value_of_bits(unsigned(bits >> 16), Type::fp16) : double(std::bit_cast<float>(std::uint32_t(bits)));
            if (std::isfinite(x)) all.push_back(x);
        }
        for (const auto& [function, above] : functions) {
            std::vector<double> x = all;
            if (above) std::erase_if(x, [](double v) { return v <= 0; });
            const std::string tensor = fmt::format("x:{}[{}]", name_of(element), x.size());
            const ExpressionGraph p = made(fmt::format("y = {}", function), {tensor});
            const std::vector<double> inputs[] = {x};
            const BoundedTensor exact = evaluate(p, inputs)[0];
            const FuseTrial trial(p, FuseTrial::Values{x});
            const std::vector<char> bytes = trial.run(plans_of(p, {.top = 1}).at(0)).at(0);
            const std::vector<double> y = values_of_elements(bytes.data(), std::int64_t(x.size()), element);
            int told = 0;
            for (std::size_t i = 0; i < x.size() && told < 3; ++i) {
                const double e = exact[i].value;
                if (!std::isfinite(e) || !std::isfinite(rounded_to(e, element))) continue;
                if (element == Element::fp32 && std::fabs(e) < 0x1p-126) continue;
                const double allowed = element == Element::fp32 ? 1e-4 * std::fabs(e) : 1.5 * ulp_of(e, element);
                if (std::fabs(y[i] - e) <= allowed) continue;
                ++told;
                ADD_FAILURE() << function << " in " << name_of(element) << " of " << x[i] << ": " << y[i] << ", not " << e;
            }
        }
    }
}

// What PyTorch writes out by hand: 1 + tanh(u) is as small as tanh in bf16 is off by.
TEST_F(FuseTest, GeluByHandIsRightWhereItCancels) {
    std::vector<double> x;
    for (double v = -3.5; v < 4; v += 1.0 / 64) x.push_back(v);
    const ExpressionGraph p = made("y = 0.5 * x * (1 + tanh(0.79788456 * (x + 0.044715 * x**3)))", {fmt::format("x:bf16[{}]", x.size())});
    const FuseTrial trial(p, FuseTrial::Values{x});
    const std::vector<char> bytes = trial.run(plans_of(p, {.top = 1}).at(0)).at(0);
    const std::vector<double> y = values_of_elements(bytes.data(), std::int64_t(x.size()), Element::bf16);
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double v = rounded_to(x[i], Element::bf16), exact = 0.5 * v * (1 + std::tanh(0.79788456 * (v + 0.044715 * v * v * v)));
        EXPECT_LE(std::fabs(y[i] - exact), 1.5 * ulp_of(exact, Element::bf16)) << v;
    }
}

// Of one value a row, before and behind its reduction, beside rows, of some rows again and again, and of all: each by its own
// place.
TEST_F(FuseTest, DropoutOfFewerValues) {
    const std::vector<std::string> rows = {"x:bf16[300,1000]", "c:fp32[300,1]"};
    for (const char* f :
         {"dropout(mean(x) + c, 0.5, 3)", "x + dropout(mean(x) * c, 0.3, 5, 2)", "x * dropout(c, 0.4, 7)",
          "layernorm(x * dropout(c, 0.4, 7)) + dropout(max(x), 0.2)", "sum_all(x * dropout(c, 0.5, 9))"})
        check(std::string("y = ") + f, rows, 6);
    check("y = x * dropout(c, 0.5, 3)", {"x:fp32[6,50,33]", "c:fp32[50,1]"}, 4);
    check("y = softmax(x) * dropout(c, 0.5, 3)", {"x:bf16[6,50,64]", "c:fp32[50,1]"}, 4);
    check("y = x + dropout(s, 0.5, 4) * dropout(s, 0.5, 6)", {"x:bf16[1003]", "s:fp32[1]"}, 4);
    check("d = dropout(s, 0.5, 4); y = sum_all(x * d) * d + dropout(s, 0.5, 1)",
          {"x:bf16[70,1003]", "s:fp32[]"}, 4);
    check("y = dropout(sum_all(x), 0.25, 2)", {"x:bf16[70,1003]"}, 4);
    check("y = layernorm(x) + dropout(mean(x), 0.5, 3) + dropout(s, 0.5, 6)",
          {"x:bf16[140,16392]", "s:fp32[1]"}, 6, {.row_storage = RowStorage::pipelined});
}

TEST_F(FuseTest, DropoutReplaysElementByElement) {
    const ExpressionGraph p = made("y = dropout(x, 0.25, 123456789012345, 42)", {"x:fp32[1000,1003]"});
    const FuseTrial trial(p, {std::vector<double>(1003000, 1.0)});
    const std::vector<char> bytes = trial.run(plans_of(p, {.top = 1}).at(0))[0];
    const std::vector<double> y = values_of_elements(bytes.data(), 1003000, Element::fp32);
    std::int64_t kept = 0;
    for (size_t i = 0; i < y.size(); ++i) {
        ASSERT_EQ(y[i] != 0, dropout_keeps(i, 0.25, 123456789012345, 42)) << i;
        kept += y[i] != 0;
    }
    EXPECT_NEAR(double(kept), 0.75 * 1003000, 5 * std::sqrt(1003000 * 0.25 * 0.75));
}

TEST_F(FuseTest, RandomExpressions) {
    const std::uint64_t seed = fresh_seed();
    fmt::print("seed {}\n", seed);
    RandomExpressions random(seed);
    int compared = 0;
    for (int i = 0; i < 300; ++i) {
        const RandomExpression e = random.next();
        const ExpressionGraph p = made(e.text, e.tensors);
        const std::vector<FusePlan> plans = plans_of(p, {.top = 1});
        if (plans.empty() || !plans[0].buildable) continue;
        ++compared;
        FuseTrial(p, seed + std::uint64_t(i)).expect_right(plans[0]);
    }
    EXPECT_GE(compared, 200);
}

// Vectors of one element, 2^31 of them and more.
TEST_F(FuseTest, IndicesOfTwoWords) {
    const ExpressionGraph p = made("y = x + b", {"x:bf16[46343,46349]", "b:bf16[46349]"});
    MeasureOptions options;
    options.mode = Mode::burst;
    options.timing.rounds.least = options.timing.rounds.most = 1;
    options.baseline = false;
    const MeasureRun run = measure(plans_of(p, {.top = 1}), machine(), options);
    ASSERT_EQ(run.rows.size(), 1u);
    EXPECT_TRUE(run.rows[0].verified.ok()) << run.rows[0].verified.failure;
    EXPECT_EQ(run.rows[0].verified.checked_elements, std::int64_t{46343} * 46349);
}

TEST_F(FuseTest, MeasuresBesideCopiesAndTheUnfusedChain) {
    const ExpressionGraph p = made("y = gelu(x + b)", {"x:bf16[8192,8192]", "b:bf16[8192]"});
    const auto outcome = derive(machine(), p, {.top = 2});
    MeasureOptions options;
    options.mode = Mode::burst;
    options.timing.rounds.least = options.timing.rounds.most = 3;
    options.seed = 5;
    const MeasureRun run = measure(std::get<FusePlans>(outcome).plans, machine(), options);
    for (const Measurement& row : run.rows) {
        EXPECT_TRUE(row.verified.ok()) << row.verified.failure;
        ASSERT_TRUE(row.time_us) << row.invalid;
        EXPECT_LT(*row.time_us, *baseline_us(row, "unfused"));
        EXPECT_TRUE(baseline_us(row, "copy"));
        EXPECT_TRUE(baseline_us(row, "memcpy"));
    }
}

}  // namespace
}  // namespace rooftile
