#include "rooftile/expression/operators.hpp"

#include <algorithm>
#include <cassert>
#include <string>
#include <vector>

namespace rooftile {
namespace {

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

/// Calls `visit(name, row)` for each name of each function.
template <class Visit>
void each_function(Visit&& visit) {
    for (const Operator& row : operators()) {
        if (row.kind == OperatorKind::leaf || row.precedence != precedence::call) continue;
        if (row.aliases[0].empty()) visit(row.name, row);
        for (std::string_view alias : row.aliases)
            if (!alias.empty()) visit(alias, row);
    }
}

}  // namespace

const Operator* operator_of_sign(std::string_view sign) {
    for (const Operator& row : operators())
        if (row.name == sign && row.precedence < precedence::call && row.max_operands == 2) return &row;
    return nullptr;
}

const Operator* function_named(std::string_view name) {
    const Operator* found = nullptr;
    each_function([&](std::string_view one, const Operator& row) {
        if (one == name) found = &row;
    });
    return found;
}

Op op_named(std::string_view name) {
    const Operator* row = function_named(name);
    assert(row);
    return row->op;
}

std::string_view closest_function(std::string_view name) {
    std::string_view best;
    size_t least = std::max<size_t>(2, name.size() / 3 + 1);
    each_function([&](std::string_view one, const Operator&) {
        if (const size_t d = distance(name, one); d < least) {
            least = d;
            best = one;
        }
    });
    return best;
}

std::string_view name_of(Op op) { return operator_of(op).name; }

std::string_view identifier_of(Op op) {
    const Operator& row = operator_of(op);
    return row.identifier.empty() ? row.name : row.identifier;
}

std::string_view noun_of(Op op) {
    const Operator& row = operator_of(op);
    return row.noun.empty() ? row.name : row.noun;
}

bool is_comparison(Op op) { return operator_of(op).result == ResultType::boolean; }
bool keeps_row(Op op) { return operator_of(op).kind == OperatorKind::keeps_row; }
bool reduces_row(Op op) { return operator_of(op).kind == OperatorKind::reduces_row; }
bool is_row_operation(Op op) { return keeps_row(op) || reduces_row(op); }
bool reduces_columns(Op op) { return operator_of(op).kind == OperatorKind::reduces_columns; }
bool reduces_all(Op op) { return operator_of(op).kind == OperatorKind::reduces_all; }

std::string_view name_of(Reduction reduction) {
    constexpr std::string_view names[] = {"sum", "square_sum", "max", "argmax", "exponentials", "moments"};
    return names[int(reduction)];
}

}  // namespace rooftile
