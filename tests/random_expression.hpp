// Random expressions of the language that have a value: for properties that hold of all.
#pragma once

#include <random>
#include <string>
#include <vector>

namespace rooftile {

struct RandomExpression {
    std::string text;                  ///< "y = ..."
    std::vector<std::string> tensors;  ///< declarations of those that it uses
};

/// Expressions over tensors of one space: full, of a row, of a column, and without axes. Row operations and
/// dropout now and then. The same for the same seed.
class RandomExpressions {
  public:
    explicit RandomExpressions(std::uint64_t seed) : random_(seed) {}

    RandomExpression next() {
        used_.assign(names.size(), false);
        const std::string body = floating(4);
        RandomExpression e;
        const std::string rows = std::to_string(1 + pick(40)),
                          columns = std::to_string(column_counts[pick(8)]);
        if (!used_[0]) used_[0] = true, e.text = "y = x + " + body;
        else e.text = "y = " + body;
        const std::string shapes[] = {rows + "," + columns, rows + "," + columns, columns, rows + ",1", ""};
        for (size_t i = 0; i < names.size(); ++i)
            if (used_[i]) e.tensors.push_back(names[i] + ":" + types[pick(3)] + "[" + shapes[i] + "]");
        return e;
    }

  private:
    static constexpr int column_counts[8] = {1, 2, 7, 32, 33, 128, 260, 1024};
    inline static const std::vector<std::string> names = {"x", "z", "b", "c", "s"};
    static constexpr const char* types[3] = {"bf16", "fp16", "fp32"};

    size_t pick(size_t n) { return size_t(random_() % n); }
    std::string leaf() {
        if (pick(5) == 0) return std::vector<std::string>{"0.5", "2.0", "-1.5", "3", "0.1"}[pick(5)];
        const size_t i = pick(names.size());
        used_[i] = true;
        return names[i];
    }
    std::string tensor() {
        const size_t i = pick(2);
        used_[i] = true;
        return names[i];
    }

    std::string floating(int depth) {
        if (depth == 0) return leaf();
        switch (pick(12)) {
            case 0:
                return leaf();
            case 1:
                return "(" + floating(depth - 1) + " + " + floating(depth - 1) + ")";
            case 2:
                return "(" + floating(depth - 1) + " - " + tensor() + ")";
            case 3:
                return floating(depth - 1) + " * " + leaf_or_call(depth - 1);
            case 4:
                return leaf_or_call(depth - 1) + " / (" + tensor() + " ** 2 + 1.0)";
            case 5:
                return "where(" + tensor() + " > " + leaf() + ", " + floating(depth - 1) + ", " + tensor()
                       + ")";
            case 6:
                return row(depth - 1);
            case 7:
                return "dropout("
                       + (pick(3)   ? tensor() + " * " + leaf()
                          : pick(2) ? row(depth - 1)
                                    : leaf() + " * 1.5")
                       + ", 0.25, " + std::to_string(pick(100)) + ")";
            default:
                return function(depth - 1);
        }
    }
    std::string leaf_or_call(int depth) { return pick(2) ? leaf() : function(depth); }
    std::string function(int depth) {
        static constexpr const char* functions[] = {"tanh", "erf",  "sigmoid",   "silu",
                                                    "relu", "gelu", "gelu_tanh", "abs"};
        return std::string(functions[pick(8)]) + "(" + tensor() + " * " + floating(depth > 0 ? depth - 1 : 0)
               + ")";
    }
    std::string row(int depth) {
        static constexpr const char* operations[] = {"softmax", "log_softmax", "layernorm", "rmsnorm",
                                                     "sum",     "mean",        "max",       "logsumexp"};
        return std::string(operations[pick(8)]) + "(" + tensor() + " * " + floating(depth > 1 ? 1 : 0) + ")";
    }

    std::mt19937_64 random_;
    std::vector<bool> used_;
};

}  // namespace rooftile
