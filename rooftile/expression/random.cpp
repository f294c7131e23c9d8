#include "rooftile/expression/random.hpp"

namespace rooftile {
namespace {

constexpr int column_counts[8] = {1, 2, 7, 32, 33, 128, 260, 1024};
constexpr const char* names[] = {"x", "z", "b", "c", "s"};
constexpr const char* types[] = {"bf16", "fp16", "fp32"};
constexpr const char* numbers[] = {"0.5", "2.0", "-1.5", "3", "0.1"};
constexpr const char* functions[] = {"tanh", "erf", "sigmoid", "silu", "relu", "gelu", "gelu_tanh", "abs"};
constexpr const char* row_operations[] = {"softmax", "log_softmax", "layernorm", "rmsnorm",
                                          "sum",     "mean",        "max",       "logsumexp"};

}  // namespace

// C++ leaves open in which order a sum of strings evaluates them. Wherever several parts of one text are drawn, each is
// a statement here, the last part first: a seed's expressions stand in recorded tests.

RandomExpression RandomExpressions::next() {
    used_.assign(std::size(names), false);
    const std::string body = floating(4);
    RandomExpression e;
    const std::string rows = std::to_string(1 + pick(40));
    const std::string columns = std::to_string(column_counts[pick(std::size(column_counts))]);
    e.text = used_[0] ? "y = " + body : "y = x + " + body;
    used_[0] = true;
    const std::string shapes[] = {rows + "," + columns, rows + "," + columns, columns, rows + ",1", ""};
    for (std::size_t i = 0; i < std::size(names); ++i)
        if (used_[i])
            e.tensors.push_back(std::string(names[i]) + ":" + types[pick(std::size(types))] + "[" + shapes[i]
                                + "]");
    return e;
}

std::string RandomExpressions::leaf() {
    if (pick(5) == 0) return numbers[pick(std::size(numbers))];
    const std::size_t i = pick(std::size(names));
    used_[i] = true;
    return names[i];
}

std::string RandomExpressions::tensor() {
    const std::size_t i = pick(2);
    used_[i] = true;
    return names[i];
}

std::string RandomExpressions::floating(int depth) {
    if (depth == 0) return leaf();
    switch (pick(12)) {
        case 0:
            return leaf();
        case 1: {
            const std::string right = floating(depth - 1), left = floating(depth - 1);
            return "(" + left + " + " + right + ")";
        }
        case 2: {
            const std::string right = tensor(), left = floating(depth - 1);
            return "(" + left + " - " + right + ")";
        }
        case 3: {
            const std::string right = leaf_or_call(depth - 1), left = floating(depth - 1);
            return left + " * " + right;
        }
        case 4: {
            const std::string right = tensor(), left = leaf_or_call(depth - 1);
            return left + " / (" + right + " ** 2 + 1.0)";
        }
        case 5: {
            const std::string otherwise = tensor(), then = floating(depth - 1), limit = leaf();
            return "where(" + tensor() + " > " + limit + ", " + then + ", " + otherwise + ")";
        }
        case 6:
            return row(depth - 1);
        case 7: {
            const std::string seed = std::to_string(pick(100));
            return "dropout(" + dropped(depth - 1) + ", 0.25, " + seed + ")";
        }
        default:
            return function(depth - 1);
    }
}

std::string RandomExpressions::dropped(int depth) {
    if (pick(3)) {
        const std::string right = leaf();
        return tensor() + " * " + right;
    }
    return pick(2) ? row(depth) : leaf() + " * 1.5";
}

std::string RandomExpressions::leaf_or_call(int depth) { return pick(2) ? leaf() : function(depth); }

std::string RandomExpressions::function(int depth) {
    const std::string right = floating(depth > 0 ? depth - 1 : 0), left = tensor();
    return std::string(functions[pick(std::size(functions))]) + "(" + left + " * " + right + ")";
}

std::string RandomExpressions::row(int depth) {
    const std::string right = floating(depth > 1 ? 1 : 0), left = tensor();
    return std::string(row_operations[pick(std::size(row_operations))]) + "(" + left + " * " + right + ")";
}

}  // namespace rooftile
