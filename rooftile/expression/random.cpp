#include "rooftile/expression/random.hpp"

namespace rooftile {
namespace {

constexpr int column_counts[8] = {1, 2, 7, 32, 33, 128, 260, 1024};
constexpr const char* names[] = {"x", "z", "b", "c", "s"};
constexpr Extents extents[] = {Extents::full, Extents::full, Extents::row, Extents::column, Extents::number};
constexpr const char* types[] = {"bf16", "fp16", "fp32"};
constexpr const char* numbers[] = {"0.5", "2.0", "-1.5", "3", "0.1"};
constexpr const char* functions[] = {"tanh", "erf", "sigmoid", "silu", "relu", "gelu", "gelu_tanh", "abs"};
constexpr const char* row_operations[] = {"softmax", "log_softmax", "layernorm", "rmsnorm",
                                          "sum",     "mean",        "max",       "logsumexp"};

}  // namespace

// C++ leaves open in which order a sum of strings evaluates them. Wherever several parts of one text are drawn, each is
// a statement here, the last part first: a seed's expressions stand in recorded tests.

Shape shape_of(Extents extents, std::int64_t rows, std::int64_t columns) {
    switch (extents) {
        case Extents::full:
            return {rows, columns};
        case Extents::row:
            return {columns};
        case Extents::column:
            return {rows, 1};
        case Extents::number:
            break;
    }
    return {};
}

ExpressionForm RandomExpressions::form() {
    used_.assign(std::size(names), false);
    ExpressionForm e;
    e.body = floating(4);
    if (!used_[0]) e.body = "x + " + e.body;
    used_[0] = true;
    for (std::size_t i = 0; i < std::size(names); ++i)
        if (used_[i]) e.tensors.emplace_back(names[i], extents[i]);
    return e;
}

RandomExpression RandomExpressions::next() {
    const ExpressionForm drawn = form();
    const auto rows = std::int64_t(1 + pick(40));
    const std::int64_t columns = column_counts[pick(std::size(column_counts))];
    RandomExpression e{.text = "y = " + drawn.body, .tensors = {}};
    for (const auto& [name, extents] : drawn.tensors)
        e.tensors.push_back(name + ":" + types[pick(std::size(types))] + text_of(shape_of(extents, rows, columns)));
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
