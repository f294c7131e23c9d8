#include "rooftile/expression/language.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace rooftile {
namespace {

constexpr double required = std::numeric_limits<double>::quiet_NaN();

constexpr LanguageFunction table[] = {
    {"abs", Op::absolute, 1, 1, {}, {}, "x"},
    {"exp", Op::exp, 1, 1, {}, {}, "x"},
    {"log", Op::log, 1, 1, {}, {}, "x"},
    {"tanh", Op::tanh, 1, 1, {}, {}, "x"},
    {"erf", Op::erf, 1, 1, {}, {}, "x"},
    {"sqrt", Op::sqrt, 1, 1, {}, {}, "x"},
    {"rsqrt", Op::rsqrt, 1, 1, {}, {}, "x"},
    {"sigmoid", Op::sigmoid, 1, 1, {}, {}, "x"},
    {"silu", Op::silu, 1, 1, {}, {}, "x"},
    {"relu", Op::relu, 1, 1, {}, {}, "x"},
    {"gelu", Op::gelu, 1, 1, {}, {}, "x"},
    {"gelu_tanh", Op::gelu_tanh, 1, 1, {}, {}, "x"},
    {"minimum", Op::minimum, 2, 2, {}, {}, "x, y"},
    {"maximum", Op::maximum, 2, 2, {}, {}, "x, y"},
    {"where", Op::where, 3, 3, {}, {}, "condition, x, y"},
    {"dropout", Op::dropout, 1, 1, {"p", "seed", "offset"}, {required, 0, 0}, "x, p, seed=0, offset=0"},
    {"softmax", Op::softmax, 1, 1, {}, {}, "x"},
    {"log_softmax", Op::log_softmax, 1, 1, {}, {}, "x"},
    {"layernorm", Op::layernorm, 1, 3, {"eps"}, {1e-5}, "x, gamma, beta, eps=1e-5"},
    {"rmsnorm", Op::rmsnorm, 1, 2, {"eps"}, {1e-6}, "x, gamma, eps=1e-6"},
    {"sum", Op::row_sum, 1, 1, {}, {}, "x"},
    {"mean", Op::row_mean, 1, 1, {}, {}, "x"},
    {"max", Op::row_max, 1, 1, {}, {}, "x"},
    {"argmax", Op::row_argmax, 1, 1, {}, {}, "x"},
    {"logsumexp", Op::row_logsumexp, 1, 1, {}, {}, "x"},
    {"sum_all", Op::all_sum, 1, 1, {}, {}, "x"},
    {"mean_all", Op::all_mean, 1, 1, {}, {}, "x"},
    {"max_all", Op::all_max, 1, 1, {}, {}, "x"},
    {"fp32", Op::cast, 1, 1, {}, {}, "x"},
    {"bf16", Op::cast, 1, 1, {}, {}, "x"},
    {"fp16", Op::cast, 1, 1, {}, {}, "x"},
};

/// Letters to insert, remove or change, and neighbours to swap.
size_t distance(std::string_view x, std::string_view y) {
    const size_t wide = y.size() + 1;
    std::vector<size_t> d((x.size() + 1) * wide);
    for (size_t i = 0; i <= x.size(); ++i)
        for (size_t j = 0; j <= y.size(); ++j) {
            size_t& here = d[i * wide + j];
            if (i == 0 || j == 0) {
                here = i + j;
                continue;
            }
            here = std::min({d[(i - 1) * wide + j] + 1, d[i * wide + j - 1] + 1,
                             d[(i - 1) * wide + j - 1] + (x[i - 1] != y[j - 1])});
            if (i > 1 && j > 1 && x[i - 1] == y[j - 2] && x[i - 2] == y[j - 1])
                here = std::min(here, d[(i - 2) * wide + j - 2] + 1);
        }
    return d.back();
}

}  // namespace

std::span<const LanguageFunction> functions() { return table; }

const LanguageFunction* function_by_name(std::string_view name) {
    for (const LanguageFunction& f : table)
        if (f.name == name) return &f;
    return nullptr;
}

std::string_view closest_function(std::string_view name) {
    std::string_view best;
    size_t least = std::max<size_t>(2, name.size() / 3 + 1);
    for (const LanguageFunction& f : table)
        if (const size_t d = distance(name, f.name); d < least) {
            least = d;
            best = f.name;
        }
    return best;
}

}  // namespace rooftile
