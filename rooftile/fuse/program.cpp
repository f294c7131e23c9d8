#include "rooftile/fuse/program.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <optional>

#include "rooftile/expression/graph_builder.hpp"

namespace rooftile {
namespace {

struct Refusal {
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

class Lowering {
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
            throw Refusal{
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
    int number(double x) { return add({.kind = ValueKind::number, .value = x}); }
    int compute(Op op, std::vector<int> operands) {
        return add({.kind = ValueKind::compute, .op = op, .operands = std::move(operands)});
    }

    int lower(int index) {
        const GraphNode& n = graph_.nodes[size_t(index)];
        int made = -1;
        if (n.op == Op::number) made = number(n.value);
        else if (n.op == Op::input) made = load(index);
        else if (is_row_operation(n.op)) made = row_operation(n);
        else if (reduces_all(n.op)) made = whole(n);
        else made = pointwise(n);
        ProgramValue& v = program_.values[size_t(made)];
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

    int reduce(Reduction reduction, int operand) {
        return add(
            {.kind = ValueKind::reduce, .level = Level::row, .operands = {operand}, .reduction = reduction});
    }
    int part(RowPart part, int reduction, std::int64_t count, double epsilon = 0) {
        return add({.kind = ValueKind::part,
                    .operands = {reduction},
                    .value = epsilon,
                    .part = part,
                    .count = count});
    }

    int row_operation(const GraphNode& n) {
        int x = of_[size_t(n.operands[0])];
        const Shape& shape = graph_.nodes[size_t(n.operands[0])].shape;
        const std::int64_t columns = shape.back();
        if (value(x).level != Level::element) {
            // A row of one value, or of one value repeated: the kernel's rows must still be seen one by one.
            if (columns != 1)
                throw Refusal{fmt::format("{} of rows that are one repeated value", name_of(n.op))};
            return row_of_one(n, x);
        }
        switch (n.op) {
            case Op::row_sum:
                return part(RowPart::sum, reduce(Reduction::sum, x), columns);
            case Op::row_mean:
                return part(RowPart::mean, reduce(Reduction::sum, x), columns);
            case Op::row_max:
                return part(RowPart::greatest, reduce(Reduction::max, x), columns);
            case Op::row_argmax:
                return part(RowPart::place, reduce(Reduction::argmax, x), columns);
            case Op::row_logsumexp:
                return part(RowPart::log_sum_exp, reduce(Reduction::exponentials, x), columns);
            case Op::softmax: {
                const int r = reduce(Reduction::exponentials, x);
                const int shifted = compute(Op::subtract, {x, part(RowPart::greatest, r, columns)});
                return compute(Op::multiply,
                               {compute(Op::exp, {shifted}), part(RowPart::inverse_sum, r, columns)});
            }
            case Op::log_softmax: {
                const int r = reduce(Reduction::exponentials, x);
                const int shifted = compute(Op::subtract, {x, part(RowPart::greatest, r, columns)});
                return compute(Op::subtract, {shifted, part(RowPart::log_sum, r, columns)});
            }
            case Op::layernorm: {
                const int r = reduce(Reduction::moments, x);
                const int mean = part(RowPart::mean, r, columns);
                const int scale = part(RowPart::inverse_deviation, r, columns, n.value);
                return weighted(n, normal(x, mean, scale));
            }
            default: {
                assert(n.op == Op::rmsnorm);
                const int r = reduce(Reduction::square_sum, x);
                return weighted(n,
                                compute(Op::multiply, {x, part(RowPart::inverse_root, r, columns, n.value)}));
            }
        }
    }

    /// (x - mean) * scale. For a result of 16 bits one fused product, which rounds mean * scale once more: no worse
    /// than the mean's own last digit does. Rows of one value, which have to give 0, have a scale of 0.
    int normal(int x, int mean, int scale) {
        if (precision_of(graph_) == Element::fp32)
            return compute(Op::multiply, {compute(Op::subtract, {x, mean}), scale});
        return compute(Op::subtract,
                       {compute(Op::multiply, {x, scale}), compute(Op::multiply, {mean, scale})});
    }

    int weighted(const GraphNode& n, int normal) {
        if (n.operands.size() > 1) normal = compute(Op::multiply, {normal, of_[size_t(n.operands[1])]});
        if (n.operands.size() > 2) normal = compute(Op::add, {normal, of_[size_t(n.operands[2])]});
        return normal;
    }

    int row_of_one(const GraphNode& n, int x) {
        switch (n.op) {
            case Op::row_argmax:
                return compute(Op::multiply, {number(0), number(0)});
            case Op::softmax:
                return compute(Op::exp, {compute(Op::subtract, {x, x})});
            case Op::log_softmax:
                return compute(Op::subtract, {x, x});
            case Op::layernorm:
                return weighted(n, compute(Op::subtract, {x, x}));
            case Op::rmsnorm: {
                const int square = compute(Op::add, {compute(Op::multiply, {x, x}), number(n.value)});
                return weighted(n, compute(Op::multiply, {x, compute(Op::rsqrt, {square})}));
            }
            default:  // a sum, mean, greatest of one; a second value so that it has a name of its own
                return compute(Op::multiply, {x, number(1)});
        }
    }

    int whole(const GraphNode& n) {
        const GraphNode& operand = graph_.nodes[size_t(n.operands[0])];
        const int x = of_[size_t(n.operands[0])];
        if (elements_of(operand.shape) != program_.rows * program_.columns || value(x).pass > 0)
            throw Refusal{
                fmt::format("{} of {} within {}: a whole reduction must see every element of the kernel "
                            "before any row reduction; give it an expression of its own",
                            name_of(n.op), text_of(operand.shape), text_of(space_))};
        const Reduction kind = n.op == Op::all_max ? Reduction::max : Reduction::sum;
        ProgramValue r{
            .kind = ValueKind::reduce, .level = Level::uniform, .operands = {x}, .reduction = kind};
        const RowPart what = n.op == Op::all_max    ? RowPart::greatest
                             : n.op == Op::all_mean ? RowPart::mean
                                                    : RowPart::sum;
        any_whole_ = true;
        return part(what, add(std::move(r)), elements_of(operand.shape));
    }

    void store(int output) {
        const GraphOutput& out = graph_.outputs[size_t(output)];
        const GraphNode& n = graph_.nodes[size_t(out.node)];
        const Access access = access_of(n.shape);
        const bool whole_result = any_whole_ && n.shape.empty();
        ProgramStore s{of_[size_t(out.node)], output, Level::element};
        if (whole_result) s.level = Level::uniform;
        else if (!access.along_row && access.plain_rows()) s.level = Level::row;
        else if (!(access.full())) throw unlike(out, ", or one value a row");
        program_.stores.push_back(s);
    }

    Refusal unlike(const GraphOutput& out, std::string_view otherwise) const {
        return {fmt::format(
            "{} is {} where the kernel's space is {}: outputs must have its shape{}; give {} an "
            "expression of its own",
            out.name, text_of(graph_.nodes[size_t(out.node)].shape), text_of(space_), otherwise, out.name)};
    }

    void find_form() {
        for (const ProgramValue& v : program_.values) program_.passes = std::max(program_.passes, v.pass + 1);
        const bool rows = std::any_of(
            program_.values.begin(), program_.values.end(),
            [](const ProgramValue& v) { return v.kind == ValueKind::reduce && v.level == Level::row; });
        if (rows && any_whole_)
            throw Refusal{"a whole reduction beside row operations: give each an expression"};
        program_.form = rows ? FuseForm::row : any_whole_ ? FuseForm::whole : FuseForm::pointwise;
        if (any_whole_)
            for (const ProgramStore& s : program_.stores)
                if (s.level != Level::uniform || program_.values[size_t(s.value)].level != Level::uniform)
                    throw Refusal{
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
    std::vector<int> of_;  // value of each node
    Shape space_, outer_;
    bool any_whole_ = false;
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

std::vector<int> users_of(const Program& p, int i) {
    std::vector<int> users;
    for (size_t u = 0; u < p.values.size(); ++u)
        for (int operand : p.values[u].operands)
            if (operand == i) users.push_back(int(u));
    return users;
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

std::string_view name_of(Reduction reduction) {
    constexpr std::string_view names[] = {"sum", "square_sum", "max", "argmax", "exponentials", "moments"};
    return names[int(reduction)];
}

std::string_view name_of(FuseForm form) {
    constexpr std::string_view names[] = {"pointwise", "row", "whole"};
    return names[int(form)];
}

std::variant<Program, NoProgram> fuse_program(const ExpressionGraph& graph) {
    try {
        return Lowering(graph).program();
    } catch (const Refusal& refusal) { return NoProgram{refusal.why}; }
}

}  // namespace rooftile
