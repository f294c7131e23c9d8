#include "rooftile/fuse/program.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <optional>

#include "rooftile/expression/graph_builder.hpp"
#include "rooftile/expression/row_steps.hpp"

namespace rooftile {
namespace {

struct Unwritable {
    std::string why;
};

/// Bands of the rows of a tensor whose outer extents are `own`, within the loop's outer extents `outer`.
std::vector<RowBand> bands_of(const Shape& outer, const Shape& own) {
    std::vector<RowBand> bands;
    std::int64_t below = 1, own_below = 1;  // rows of the axes further in
    const size_t lacking = outer.size() - own.size();
    bool open = false;  // the band further in continues
    for (size_t i = outer.size(); i-- > 0;) {
        const std::int64_t extent = outer[i], mine = i >= lacking ? own[i - lacking] : 1;
        if (extent == 1) continue;
        if (mine == 1) {
            open = false;
        } else if (open) {
            bands.back().modulo *= extent;
        } else {
            bands.push_back({below, extent, own_below});
            open = true;
        }
        below *= extent;
        if (mine != 1) own_below *= extent;
    }
    // The outermost band needs no remainder.
    if (!bands.empty() && bands.back().divide * bands.back().modulo == below) bands.back().modulo = 0;
    return bands;
}

class Lowering : private RowSteps {
  public:
    explicit Lowering(const ExpressionGraph& graph) : graph_(graph), of_(graph.nodes.size(), -1) {}

    Program program() {
        find_space();
        for (size_t i = 0; i < graph_.nodes.size(); ++i) of_[i] = lower(int(i));
        for (size_t i = 0; i < graph_.outputs.size(); ++i) store(int(i));
        find_form();
        return std::move(program_);
    }

  private:
    void find_space() {
        for (const GraphNode& n : graph_.nodes) {
            if (n.op != Op::number) space_ = broadcast(space_, n.shape);
        }
        if (too_large(space_))
            throw Unwritable{
                fmt::format("the tensors together span {}, which is 2^48 elements or more", text_of(space_))};
        program_.columns = space_.empty() ? 1 : space_.back();
        outer_ = space_;
        if (!outer_.empty()) outer_.pop_back();
        program_.rows = elements_of(outer_);
    }

    Access access_of(const Shape& shape) const {
        Access access;
        access.along_row = !shape.empty() && shape.back() == program_.columns && program_.columns != 1;
        Shape own = shape;
        if (!own.empty()) own.pop_back();
        while (own.size() > outer_.size()) own.erase(own.begin());  // leading axes of extent 1
        access.bands = bands_of(outer_, own);
        // With one column everything that has a row lies along it.
        if (program_.columns == 1) access.along_row = true;
        if (program_.rows == 1) access.bands = {RowBand{}};
        return access;
    }
    Level level_of(const Access& access) const {
        if (access.along_row && (program_.columns != 1 || !access.bands.empty())) return Level::element;
        return access.bands.empty() || program_.rows == 1 ? Level::uniform : Level::row;
    }

    int add(ProgramValue v) {
        for (int i : v.operands) {
            const ProgramValue& operand = value(i);
            if (v.kind != ValueKind::reduce) v.level = std::max(v.level, operand.level);
            v.pass = std::max(v.pass, operand.pass);
        }
        if (v.kind == ValueKind::part) ++v.pass;  // known once its reduction's pass is through
        program_.values.push_back(std::move(v));
        return int(program_.values.size()) - 1;
    }
    const ProgramValue& value(int i) const { return program_.values[size_t(i)]; }
    int number(double x) override { return add({.kind = ValueKind::number, .value = x}); }
    int compute(Op op, std::vector<int> operands) override {
        return add({.kind = ValueKind::compute, .op = op, .operands = std::move(operands)});
    }

    int lower(int index) {
        const GraphNode& n = graph_.nodes[size_t(index)];
        int made = -1;
        if (n.op == Op::number) made = number(n.value);
        else if (n.op == Op::input) made = load(index);
        else if (is_row_operation(n.op)) made = row_operation(n);
        else if (reduces_all(n.op)) made = whole(n);
        else if (reduces_columns(n.op)) made = column(n);
        else made = pointwise(n);
        ProgramValue& v = program_.values[size_t(made)];
        if (any_column_ && v.pass > 0 && !of_columns(n.shape))
            throw Unwritable{fmt::format("{} is {}, made from columns' reductions: the grid cannot wait for them in one kernel; "
                                      "compute it in an expression of its own",
                                      expression_of(graph_, index, 48), text_of(n.shape))};
        if (v.node < 0) v.node = index;
        if (v.name.empty()) v.name = n.name;
        return made;
    }

    int load(int index) {
        const GraphNode& n = graph_.nodes[size_t(index)];
        ProgramValue v{.kind = ValueKind::load, .element = n.element, .access = access_of(n.shape)};
        v.level = level_of(v.access);
        v.input = int(std::find(graph_.inputs.begin(), graph_.inputs.end(), index) - graph_.inputs.begin());
        return add(std::move(v));
    }

    int pointwise(const GraphNode& n) {
        ProgramValue v{.kind = ValueKind::compute,
                       .op = n.op,
                       .element = n.element,
                       .value = n.value,
                       .seed = n.seed,
                       .offset = n.offset};
        for (int i : n.operands) v.operands.push_back(of_[size_t(i)]);
        if (n.op == Op::dropout) {
            v.access = access_of(n.shape);
            v.level = level_of(v.access);
            v.columns = n.shape.empty() ? 1 : n.shape.back();
        }
        return add(std::move(v));
    }

    int reduce(Reduction reduction, int operand) override {
        return add(
            {.kind = ValueKind::reduce, .level = Level::row, .operands = {operand}, .reduction = reduction});
    }
    int part(RowPart part, int reduction, double epsilon = 0) override {
        return add({.kind = ValueKind::part,
                    .operands = {reduction},
                    .value = epsilon,
                    .part = part,
                    .count = reduced_elements_});
    }

    int row_operation(const GraphNode& n) {
        RowCall call{.x = of_[size_t(n.operands[0])], .epsilon = n.value};
        for (size_t i = 1; i < n.operands.size(); ++i) call.weights.push_back(of_[size_t(n.operands[i])]);
        reduced_elements_ = graph_.nodes[size_t(n.operands[0])].shape.back();
        const OperatorSteps& steps = operator_of(n.op).steps;
        if (value(call.x).level != Level::element) {
            // A row of one value, or of one value repeated: the kernel's rows must still be seen one by one.
            if (reduced_elements_ != 1)
                throw Unwritable{fmt::format("{} of rows that are one repeated value", name_of(n.op))};
            return steps.of_one(*this, call);
        }
        return steps.steps ? steps.steps(*this, call) : part(steps.part, reduce(steps.reduction, call.x));
    }

    /// Reductions of columns stand alone, or beside others of columns.
    static Unwritable beside_columns() {
        return {"reductions of columns beside others: compute the others in an expression of their own, and pass their results as "
                "tensors"};
    }

    int whole(const GraphNode& n) {
        if (any_column_) throw beside_columns();
        const GraphNode& operand = graph_.nodes[size_t(n.operands[0])];
        const int x = of_[size_t(n.operands[0])];
        if (elements_of(operand.shape) != program_.rows * program_.columns || value(x).pass > 0)
            throw Unwritable{
                fmt::format("{} of {} within {}: a whole reduction must see every element of the kernel "
                            "before any row reduction; give it an expression of its own",
                            name_of(n.op), text_of(operand.shape), text_of(space_))};
        const OperatorSteps& steps = operator_of(n.op).steps;
        ProgramValue r{.kind = ValueKind::reduce,
                       .level = Level::uniform,
                       .operands = {x},
                       .reduction = steps.reduction};
        any_whole_ = true;
        reduced_elements_ = elements_of(operand.shape);
        return part(steps.part, add(std::move(r)));
    }

    int column(const GraphNode& n) {
        const GraphNode& operand = graph_.nodes[size_t(n.operands[0])];
        const int x = of_[size_t(n.operands[0])];
        if (elements_of(operand.shape) != program_.rows * program_.columns || value(x).pass > 0)
            throw Unwritable{fmt::format("{} of {} within {}: columns must be those of the kernel, before any other reduction; give "
                                      "it an expression of its own",
                                      name_of(n.op), text_of(operand.shape), text_of(space_))};
        const OperatorSteps& steps = operator_of(n.op).steps;
        any_column_ = true;
        reduced_elements_ = program_.rows;
        const int r = add(
            {.kind = ValueKind::reduce, .level = Level::element, .operands = {x}, .reduction = steps.reduction});
        return part(steps.part, r);
    }

    void store(int output) {
        const GraphOutput& out = graph_.outputs[size_t(output)];
        const GraphNode& n = graph_.nodes[size_t(out.node)];
        const Access access = access_of(n.shape);
        const bool whole_result = any_whole_ && n.shape.empty();
        ProgramStore s{of_[size_t(out.node)], output, Level::element};
        if (whole_result) s.level = Level::uniform;
        else if (any_column_ && of_columns(n.shape)) s.level = Level::element;
        else if (any_column_) throw unlike_columns(out);
        else if (!access.along_row && access.plain_rows()) s.level = Level::row;
        else if (!(access.full())) throw unlike(out, ", or one value a row");
        program_.stores.push_back(s);
    }

    Unwritable unlike(const GraphOutput& out, std::string_view otherwise) const {
        return {fmt::format(
            "{} is {} where the kernel's space is {}: outputs must have its shape{}; give {} an "
            "expression of its own",
            out.name, text_of(graph_.nodes[size_t(out.node)].shape), text_of(space_), otherwise, out.name)};
    }

    /// A value a column, and nothing beside.
    bool of_columns(const Shape& shape) const {
        return elements_of(shape) == program_.columns && (shape.empty() || shape.back() == program_.columns);
    }
    Unwritable unlike_columns(const GraphOutput& out) const {
        return {fmt::format("{} is {} beside reductions of columns: outputs must have the {} columns alone; give {} an expression "
                            "of its own",
                            out.name, text_of(graph_.nodes[size_t(out.node)].shape), program_.columns, out.name)};
    }

    /// Of a reduction of columns.
    void check_columns() const {
        for (const ProgramValue& v : program_.values) {
            if (v.kind == ValueKind::reduce && v.level != Level::element)
                throw beside_columns();
            if (v.op == Op::dropout && v.pass == 0 && v.level != Level::uniform && !v.access.full())
                throw Unwritable{"dropout of what rows or columns share, in a reduction of columns: pass its result as a tensor"};
        }
    }

    void find_form() {
        for (const ProgramValue& v : program_.values) program_.passes = std::max(program_.passes, v.pass + 1);
        const bool rows = std::any_of(
            program_.values.begin(), program_.values.end(),
            [](const ProgramValue& v) { return v.kind == ValueKind::reduce && v.level == Level::row; });
        if (rows && any_whole_)
            throw Unwritable{"a whole reduction beside row operations: give each an expression"};
        if (any_column_) {
            check_columns();
            program_.form = FuseForm::columns;
            return;
        }
        program_.form = rows ? FuseForm::row : any_whole_ ? FuseForm::whole : FuseForm::pointwise;
        if (any_whole_)
            for (const ProgramStore& s : program_.stores)
                if (s.level != Level::uniform || program_.values[size_t(s.value)].level != Level::uniform)
                    throw Unwritable{
                        "a tensor that needs a whole reduction: the grid cannot wait for it in one kernel; "
                        "compute the reduction in an expression of its own"};
        if (program_.form == FuseForm::pointwise)  // whose threads know of no row's end
            for (const ProgramStore& s : program_.stores)
                if (s.level != Level::element)
                    throw unlike(graph_.outputs[size_t(s.output)], " where no row operation is");
        program_.flat = !rows;
        for (const ProgramValue& v : program_.values) {
            if (v.kind == ValueKind::load && v.level != Level::uniform && !v.access.full())
                program_.flat = false;
            if (v.kind == ValueKind::compute && v.op == Op::dropout && v.level != Level::uniform
                && !v.access.full())
                program_.flat = false;
        }
        for (const ProgramStore& s : program_.stores)
            if (s.level == Level::row) program_.flat = false;
        if (!rows && program_.flat) {  // one long row
            program_.columns *= program_.rows;
            program_.rows = 1;
        }
    }

    const ExpressionGraph& graph_;
    Program program_;
    std::vector<int> of_;                // value of each node
    std::int64_t reduced_elements_ = 1;  // by the operation that is taken apart
    Shape space_, outer_;
    bool any_whole_ = false, any_column_ = false;
};

/// Whether `greatest` is used only as in e^(x - greatest).
bool only_in_powers(const Program& p, int greatest, int x) {
    const auto is = [&](int i, Op op) {
        const ProgramValue& v = p.values[size_t(i)];
        return v.kind == ValueKind::compute && v.op == op;
    };
    for (int shifted : users_of(p, greatest)) {
        if (!is(shifted, Op::subtract) || p.values[size_t(shifted)].operands != std::vector{x, greatest})
            return false;
        for (int user : users_of(p, shifted))
            if (!is(user, Op::exp)) return false;
    }
    return true;
}

}  // namespace

bool stores_elements(const Program& p) {
    return std::any_of(p.stores.begin(), p.stores.end(),
                       [](const ProgramStore& s) { return s.level == Level::element; });
}

std::vector<int> users_of(const Program& p, int i) {
    std::vector<int> users;
    for (size_t u = 0; u < p.values.size(); ++u)
        for (int operand : p.values[u].operands)
            if (operand == i) users.push_back(int(u));
    return users;
}

bool only_for_means(const Program& p, int reduce) {
    const std::vector<int> users = users_of(p, reduce);
    return p.values[size_t(reduce)].reduction == Reduction::sum
           && std::all_of(users.begin(), users.end(), [&](int part) { return p.values[size_t(part)].part == RowPart::mean; });
}

bool gives_shared_base(const Program& p, int reduce) {
    const ProgramValue& r = p.values[size_t(reduce)];
    if (r.kind != ValueKind::reduce || r.reduction != Reduction::exponentials) return false;
    const ProgramValue& x = p.values[size_t(r.operands[0])];
    if (x.kind != ValueKind::load || bytes_of(x.element) != 2 || !x.access.full()) return false;
    for (int part : users_of(p, reduce)) {
        const RowPart kind = p.values[size_t(part)].part;
        if (kind == RowPart::inverse_sum) continue;
        if (kind != RowPart::greatest || !only_in_powers(p, part, r.operands[0])) return false;
    }
    return true;
}

int shared_base_of(const Program& p, int exp) {
    const ProgramValue& v = p.values[size_t(exp)];
    if (v.kind != ValueKind::compute || v.op != Op::exp) return -1;
    const ProgramValue& shifted = p.values[size_t(v.operands[0])];
    if (shifted.kind != ValueKind::compute || shifted.op != Op::subtract) return -1;
    const int greatest = shifted.operands[1];
    const ProgramValue& part = p.values[size_t(greatest)];
    if (part.kind != ValueKind::part || part.part != RowPart::greatest) return -1;
    return gives_shared_base(p, part.operands[0]) ? greatest : -1;
}

std::string_view name_of(FuseForm form) {
    constexpr std::string_view names[] = {"pointwise", "row", "whole", "columns"};
    return names[int(form)];
}

std::variant<Program, NoProgram> fuse_program(const ExpressionGraph& graph) {
    try {
        return Lowering(graph).program();
    } catch (const Unwritable& refusal) { return NoProgram{refusal.why}; }
}

}  // namespace rooftile
