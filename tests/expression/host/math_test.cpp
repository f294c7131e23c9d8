// The text of kernels/expression/math.cuh and dropout.cuh, run on the CPU: every number of a 16-bit type and many of
// fp32 stay within the errors that evaluate() allows, and masks are the reference's. tests/fake/device stands
// in for the instructions of the special function unit.
#include "kernels/expression/math.cuh"

#include "kernels/expression/dropout.cuh"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "rooftile/expression/evaluate.hpp"
#include "rooftile/expression/expression.hpp"

namespace rooftile {
namespace {

using Function = float (*)(float);

/// Of fp32: every bf16 number, and what lies between them.
std::vector<double> numbers(unsigned step) {
    std::vector<double> x;
    for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += step)
        x.push_back(double(std::bit_cast<float>(std::uint32_t(bits))));
    return x;
}
constexpr unsigned all_bf16 = 0x10000, between = 0x10000 / 8 + 1;

/// The greatest error, as a share of what is allowed.
double worst(Function f, const std::string& name, const char* type, const std::vector<double>& x) {
    const std::vector<TensorDeclaration> tensors = {
        tensor_declaration("x:" + std::string(type) + "[" + std::to_string(x.size()) + "]")};
    const std::vector<double> inputs[] = {x};
    const BoundedTensor expected = evaluate(expression_graph("y = " + name + "(x)", tensors), inputs)[0];
    double most = 0;
    for (double direction : {-1.0, 0.0, 1.0}) {
        ptx::special_error = direction;
        for (size_t i = 0; i < x.size(); ++i) {
            const double got = double(f(float(x[i])));
            const Bounded& e = expected[i];
            if (std::isinf(e.error)) continue;
            if (std::isnan(e.value) || std::isinf(e.value)) {
                EXPECT_TRUE(std::isnan(e.value) ? std::isnan(got) : got == e.value) << name << " of " << x[i];
                continue;
            }
            most = std::max(most, std::fabs(got - e.value) / e.error);
            if (most > 1) {
                ADD_FAILURE() << name << " of " << x[i] << " is " << got << ", not " << e.value << " within "
                              << e.error;
                return most;
            }
        }
    }
    ptx::special_error = 0;
    return most;
}

TEST(FuseMath, FunctionsKeepTheErrorsTheyState) {
    const std::vector<std::pair<const char*, Function>> functions = {
        {"gelu", expression::gelu},        {"gelu_tanh", expression::gelu_tanh},
        {"sigmoid", expression::sigmoid},  {"silu", expression::silu},
        {"relu", expression::relu},        {"tanh", expression::hyperbolic_tangent},
        {"sqrt", expression::square_root}, {"rsqrt", expression::inverse_root},
        {"softplus", expression::softplus}};
    for (const auto& [name, f] : functions)
        for (unsigned step : {all_bf16, between}) EXPECT_LE(worst(f, name, "fp32", numbers(step)), 1) << name;
}

TEST(FuseMath, CheaperGelusKeepTheErrorsTheyState) {
    for (unsigned step : {all_bf16, between}) {
        const double bf16 = worst(expression::gelu_16<Type::bf16>, "gelu", "bf16", numbers(step));
        const double fp16 = worst(expression::gelu_16<Type::fp16>, "gelu", "fp16", numbers(step));
        EXPECT_LE(bf16, 1);
        EXPECT_LE(fp16, 1);
        EXPECT_GE(bf16, 0.5);  // and what they state is not far from what they need
        EXPECT_GE(fp16, 0.2);
    }
    EXPECT_LE(worst(expression::exponential_16, "exp", "fp16", numbers(all_bf16)), 1);
    EXPECT_LE(worst(expression::exponential_bf16, "exp", "bf16", numbers(all_bf16)), 1);
    EXPECT_LE(worst(expression::hyperbolic_tangent_bf16, "tanh", "bf16", numbers(all_bf16)), 1);
    EXPECT_LE(worst(expression::hyperbolic_tangent_16, "tanh", "fp16", numbers(between)), 1);
    EXPECT_LE(worst(expression::hyperbolic_tangent_of_score, "tanh", "fp16", numbers(between)), 1);
}

/// A function of the device for results of `element`; one of fp32 is for all.
struct Tail {
    const char* name;
    Element element;
    Function device;
};

/// What a result may be off by, over every exponent that arguments have: in fp32 10^-4 of it wherever it is a normal number, in 16 bits one
/// unit beyond rounding, subnormal numbers too.
TEST(FuseMath, TailsAreRightOverAllExponents) {
    using namespace expression;
    const std::vector<Tail> tails = {
        {"gelu", Element::fp32, gelu},
        {"gelu", Element::bf16, gelu_16<Type::bf16>},
        {"gelu", Element::fp16, gelu_16<Type::fp16>},
        {"gelu_tanh", Element::fp32, gelu_tanh},
        {"sigmoid", Element::fp32, sigmoid},
        {"silu", Element::fp32, silu},
        {"softplus", Element::fp32, softplus},
        {"tanh", Element::fp32, hyperbolic_tangent},
        {"tanh", Element::bf16, hyperbolic_tangent_bf16},
        {"tanh", Element::fp16, hyperbolic_tangent_16},
        {"tanh", Element::fp16, hyperbolic_tangent_of_score},
        {"exp", Element::bf16, exponential_bf16},
        {"exp", Element::fp16, exponential_16},
        {"sqrt", Element::fp32, square_root},
        {"rsqrt", Element::fp32, inverse_root},
        {"x**2", Element::fp32, power<2>},
        {"x**7", Element::fp32, power<7>},
        {"x**-1", Element::fp32, power<-1>},
        {"x**-2", Element::fp32, power<-2>},
        {"x**-3", Element::fp32, power<-3>},
        {"x**-16", Element::fp32, power<-16>}};
    for (const Tail& tail : tails)
        for (const Element element : {Element::fp32, Element::bf16, Element::fp16}) {
            if (tail.element != Element::fp32 && tail.element != element) continue;
            SCOPED_TRACE(std::string(tail.name) + " in " + std::string(name_of(element)));
            std::vector<double> x = numbers(element == Element::fp32 ? between : all_bf16);
            if (element == Element::fp16)
                for (double& value : x) value = rounded_to(value, element);
            const std::vector<double> inputs[] = {x};
            const std::vector<TensorDeclaration> tensors = {tensor_declaration("x:fp32[" + std::to_string(x.size()) + "]")};
            const std::string written = tail.name[0] == 'x' ? tail.name : std::string(tail.name) + "(x)";
            const BoundedTensor exact = evaluate(expression_graph("y = " + written, tensors), inputs)[0];
            for (double direction : {-1.0, 0.0, 1.0}) {
                ptx::special_error = direction;
                for (std::size_t i = 0; i < x.size(); ++i) {
                    const double y = exact[i].value;
                    if (!std::isfinite(y) || !std::isfinite(x[i]) || !std::isfinite(rounded_to(y, element))) continue;
                    const double got = rounded_to(double(tail.device(float(x[i]))), element);
                    if (element == Element::fp32 && std::fabs(y) < 0x1p-126) continue;
                    if (std::fabs(got - y) <= (element == Element::fp32 ? 1e-4 * std::fabs(y) : 1.5 * ulp_of(y, element))) continue;
                    ADD_FAILURE() << "of " << x[i] << ": " << got << ", not " << y;
                    break;
                }
            }
        }
    ptx::special_error = 0;
}

/// What counts in the end: units in the last place of the result, rounding included.
TEST(FuseMath, CheaperGelusStayWithinTwoUnits) {
    const auto units = [](Function f, Element element, double x) {
        const double exact = x * 0.5 * std::erfc(-x / std::sqrt(2.0));
        return std::fabs(rounded_to(double(f(float(x))), element) - exact) / ulp_of(exact, element);
    };
    double bf16 = 0, fp16 = 0;
    for (double x : numbers(all_bf16)) {
        if (!std::isfinite(x)) continue;
        bf16 = std::max(bf16, units(expression::gelu_16<Type::bf16>, Element::bf16, x));
        const double half = rounded_to(x, Element::fp16);
        if (std::isfinite(half))
            fp16 = std::max(fp16, units(expression::gelu_16<Type::fp16>, Element::fp16, half));
    }
    EXPECT_LE(bf16, 0.64);
    EXPECT_LE(fp16, 0.6);
}

TEST(FuseMath, GelusOfInfinitiesAndNothing) {
    for (Function f : {expression::gelu, expression::gelu_16<Type::bf16>, expression::gelu_16<Type::fp16>}) {
        EXPECT_EQ(f(expression::infinity), expression::infinity);
        EXPECT_TRUE(std::isnan(f(-expression::infinity)));  // -Inf * 0, as PyTorch
        EXPECT_TRUE(std::isnan(f(expression::not_a_number)));
        EXPECT_EQ(f(0.0f), 0.0f);
        EXPECT_TRUE(std::signbit(f(-0.0f)));
        for (float x : {10.1f, 100.0f, 1e4f, 3e38f}) {
            EXPECT_EQ(f(x), x);
            EXPECT_LE(std::fabs(f(-x)), x < 13 ? 1e-21f : 0.0f);
        }
    }
}

/// The mask of `width` elements at once, as a kernel makes it, against the reference's one by one.
template <int width>
void expect_replay() {
    constexpr std::uint64_t seed = 123456789012345, offset = 42;
    for (double p : {0.1, 0.5, 0.999})
        for (std::uint64_t first : {std::uint64_t(0), std::uint64_t(1) << 34}) {
            const expression::DropoutKey key = {dropout_keys(seed), offset, unsigned(p * 4294967296.0 + 0.5),
                                                dropout_fold};
            for (std::uint64_t at = first; at < first + 64; at += width) {
                bool keep[width];
                expression::kept(keep, at, key);
                for (int k = 0; k < width; ++k)
                    EXPECT_EQ(keep[k], dropout_keeps(at + unsigned(k), p, seed, offset)) << at << " + " << k;
            }
        }
}
TEST(FuseMath, DropoutReplaysInVectorsOfAnyWidth) {
    expect_replay<1>();
    expect_replay<2>();
    expect_replay<4>();
    expect_replay<8>();
    expect_replay<16>();
}

}  // namespace
}  // namespace rooftile
