#include "rooftile/emit/plain_graph.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "rooftile/emit/launcher.hpp"
#include "rooftile/expression/evaluate.hpp"
#include "rooftile/expression/operators.hpp"

namespace rooftile::emit {
namespace {

constexpr std::string_view row_text =
    R"(/// A row whose elements a function gives, as row_meaning.hpp goes over one; what is wanted of it is one element.
template <Bounded (*element)(const Tensors&, long long), Bounded (*first_weight)(const Tensors&, long long),
          Bounded (*second_weight)(const Tensors&, long long)>
struct PlainRow {
    const Tensors& t;
    long long first, step, n;
    double epsilon;
    int weights;
    long long wanted;
    Bounded result = {};

    __device__ Bounded x(long long i) const { return element(t, first + i * step); }
    __device__ Bounded weight(int w, long long i) const { return w == 0 ? first_weight(t, i) : second_weight(t, i); }
    template <class R, class Step>
    __device__ R reduce(Step see) const {
        R r;
        for (long long i = 0; i < n; ++i) see(r, x(i), i);
        return r;
    }
    template <class F>
    __device__ void each(F f) {
        result = settled(f(x(wanted), wanted));
    }
    __device__ void give(Bounded b) { result = settled(b); }
};

)";

/// Index of a broadcast operand's element, of the result's e-th.
std::string stretched(const Shape& to, const Shape& from) {
    if (to == from) return "e";
    std::string out;
    std::int64_t stride = 1, inner = 1;
    for (std::size_t i = 0; i < to.size(); ++i) {
        const std::int64_t extent = to[to.size() - 1 - i], own = i < from.size() ? from[from.size() - 1 - i] : 1;
        if (own != 1) {
            std::string axis = inner == 1 ? "e" : fmt::format("e / {}", inner);
            if (i + 1 < to.size()) axis += fmt::format(" % {}", extent);
            out += fmt::format("{}{}{}", out.empty() ? "" : " + ", axis, stride == 1 ? "" : fmt::format(" * {}", stride));
            stride *= own;
        }
        inner *= extent;
    }
    return out.empty() ? "0" : out;
}

std::string_view element_name(Element e) {
    return e == Element::boolean ? "boolean"
           : e == Element::int64 ? "int64"
           : e == Element::fp16  ? "fp16"
           : e == Element::bf16  ? "bf16"
                                 : "fp32";
}

}  // namespace

std::string place_of(const TensorInfo& tensor, std::initializer_list<std::string> indices) {
    std::string out;
    std::size_t axis = tensor.extents.size() - std::min(indices.size(), tensor.extents.size());
    for (const std::string& index : indices) {
        if (axis >= tensor.extents.size()) break;
        const std::int64_t stride = tensor.strides[axis];
        if (tensor.extents[axis++].most == 1 || stride == 0) continue;
        out += fmt::format("{}{}{}", out.empty() ? "" : " + ", index, stride == 1 ? "" : fmt::format(" * {}ll", stride));
    }
    return out.empty() ? "0" : out;
}

PlainLoop plain_graph(const ExpressionGraph& g, const std::map<int, std::string>& leaves, double leaf_steps) {
    PlainLoop out;
    out.headers = {"kernels/expression/meaning.hpp", "kernels/expression/row_meaning.hpp"};
    const std::vector<Element> precisions = precisions_of(g);
    bool rows = false;
    int remembered = 0;
    std::vector<double> steps(g.nodes.size(), 1);  // of one element, where rows that reduce are remembered
    double of_rows = 0;
    for (std::size_t i = 0; i < g.nodes.size(); ++i) {
        const GraphNode& n = g.nodes[i];
        const std::string head = fmt::format("Bounded v{}(const Tensors& t, long long e) {{\n", i);
        if (const auto leaf = leaves.find(int(i)); leaf != leaves.end()) {
            out.text += "/// The sum itself.\n__device__ " + head + leaf->second + "}\n";
            steps[i] = leaf_steps;
            continue;
        }
        if (n.op == Op::number) {
            out.text +=
                fmt::format("__device__ {}    return {{{}, 0}};\n}}\n", head,
                            n.value == std::int64_t(n.value) ? fmt::format("{}.0", std::int64_t(n.value)) : fmt::format("{}", n.value));
            continue;
        }
        if (n.op == Op::input) {
            out.text += fmt::format("__device__ {}    return {{number(t.{}, e), 0}};\n}}\n", head, identifier_of(n.name));
            continue;
        }
        const Operator& op = operator_of(n.op);
        std::string body;
        if (op.meaning.row) {
            const RowsIn lie = rows_in(n.op, g.nodes[std::size_t(n.operands[0])].shape);
            const bool keeps = keeps_row(n.op);
            rows = true;
            const auto operand = [&](std::size_t o) { return fmt::format("v{}", n.operands[std::min(o, n.operands.size() - 1)]); };
            if (!keeps)
                body +=
                    fmt::format("    Remembered& known = t.known[{}];\n    if (known.behind == e + 1) return known.value;\n", remembered);
            body +=
                fmt::format("    PlainRow<{}, {}, {}> row{{t, {}, {}, {}, {}, {}, {}}};\n    meaning::{}(row);\n", operand(0), operand(1),
                            operand(2), keeps ? fmt::format("e / {0} * {1}", lie.columns, lie.pitch) : fmt::format("e * {}", lie.pitch),
                            lie.step, lie.columns, n.value == n.value ? n.value : 0.0, n.operands.size() - 1,
                            keeps ? fmt::format("e % {}", lie.columns) : "0", op.meaning.row.name);
            if (!keeps) body += "    known = {e + 1, row.result};\n", ++remembered;
            body += "    return row.result;\n";
            const double passes = 3 * double(lie.columns) * steps[std::size_t(n.operands[0])];
            if (keeps) steps[i] = passes;
            else of_rows += passes;
        } else {
            body += "    ElementCall call{};\n";
            constexpr const char* operands[] = {"x", "y", "z"};
            for (std::size_t o = 0; o < n.operands.size(); ++o) {
                body += fmt::format("    call.{} = v{}(t, {});\n", operands[o], n.operands[o],
                                    stretched(n.shape, g.nodes[std::size_t(n.operands[o])].shape));
                steps[i] += steps[std::size_t(n.operands[o])];
            }
            const ElementCall call = element_call(n, precisions[i]);
            body += fmt::format(
                "    call.index = (unsigned long long)e;\n    call.element = Element::{};\n    call.precision = Element::{};\n",
                element_name(n.element), element_name(precisions[i]));
            if (n.op == Op::dropout)
                body +=
                    fmt::format("    call.value = {};\n    call.seed = {}ull;\n    call.offset = {}ull;\n", n.value, n.seed, n.offset);
            if (call.of_flags) body += "    call.of_flags = true;\n";
            body += fmt::format("    return as_flag(call, {}(call));\n", op.meaning.element.name);
        }
        out.text += "__device__ " + head + body + "}\n";
    }
    for (const GraphOutput& o : g.outputs) {
        out.text += fmt::format("__device__ Bounded expected_{}(const Tensors& t, long long e) {{ return v{}(t, e); }}\n",
                                identifier_of(o.name), o.node);
        out.steps = std::max(out.steps, of_rows + steps[std::size_t(o.node)]);
    }
    if (rows) out.text.insert(0, row_text);
    out.text.insert(0, "using namespace meaning;\n\n");
    if (remembered > 0) out.members = fmt::format("    mutable Remembered known[{}];\n", remembered);
    return out;
}

}  // namespace rooftile::emit
