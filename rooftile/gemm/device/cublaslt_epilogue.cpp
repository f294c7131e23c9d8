#include "rooftile/gemm/device/cublaslt_epilogue.hpp"

#include <utility>

#include "rooftile/expression/graph.hpp"
#include "rooftile/gemm/device/cublaslt_api.hpp"

namespace rooftile {
namespace {

namespace api = cublaslt;

class Matcher {
  public:
    explicit Matcher(const GemmProblem& problem)
        : problem_(problem), epilogue_(*problem.epilogue), graph_(epilogue_.graph) {}

    std::optional<CublasLtEpilogue> match() {
        int last = graph_.outputs.front().node;
        if (node(last).op == Op::cast) last = node(last).operands.front();
        if (is_fp8(problem_.c_type)) last = without_result_scale(last);
        int activation = 0;
        if (const std::string_view name = name_of(node(last).op); name == "relu" || name == "gelu" || name == "gelu_tanh") {
            activation = name == "relu" ? api::epilogue_relu : api::epilogue_gelu;
            out_.other_gelu = name == "gelu";
            last = node(last).operands.front();
        }
        if (!sum(last, 1) || !summed_) return std::nullopt;
        out_.kind = activation | (out_.bias ? api::epilogue_bias : 0);
        if (out_.kind == 0) out_.kind = api::epilogue_default;
        return out_;
    }

  private:
    const GraphNode& node(int i) const { return graph_.nodes[std::size_t(i)]; }

    /// A result of 8 bits may be one number of device memory times the rest, of any name but the operands' own.
    int without_result_scale(int i) {
        const GraphNode& n = node(i);
        for (int of = 0; n.op == Op::multiply && of < 2; ++of) {
            const GraphNode& by = node(n.operands[std::size_t(1 - of)]);
            if (by.op != Op::input || by.name == "scale_a" || by.name == "scale_b" || n.operands[std::size_t(1 - of)] == graph_.inputs.front()) continue;
            const std::size_t operand = operand_of(n.operands[std::size_t(1 - of)]);
            if (!epilogue_.operands[operand].is_one() || by.element != Element::fp32) continue;
            out_.scale_d = operand;
            return n.operands[std::size_t(of)];
        }
        return i;
    }

    /// Whether `i`, times `factor`, is a sum of terms that the library has.
    bool sum(int i, double factor) {
        const GraphNode& n = node(i);
        if (n.op == Op::add) return sum(n.operands[0], factor) && sum(n.operands[1], factor);
        if (n.op == Op::subtract) return sum(n.operands[0], factor) && sum(n.operands[1], -factor);
        if (n.op == Op::multiply)
            return product(n.operands[0], n.operands[1], factor) || product(n.operands[1], n.operands[0], factor);
        return n.op == Op::input && term(i, factor);
    }

    /// A sum times a number, or the bare sum times a scale.
    bool product(int of, int by, double factor) {
        const GraphNode& n = node(by);
        if (n.op == Op::number) return sum(of, factor * n.value);
        if (n.op != Op::input || !is_fp8(problem_.a_type) || !(n.name == "scale_a" || n.name == "scale_b")) return false;
        const std::size_t operand = operand_of(by);
        const EpilogueOperand& o = epilogue_.operands[operand];
        std::optional<std::size_t>& scale = n.name == "scale_a" ? out_.scale_a : out_.scale_b;
        const bool outer = n.name == "scale_a" ? o.by_row && !o.by_column : o.by_column && !o.by_row;
        if (scale || (!outer && !o.is_one()) || o.element != Element::fp32 || o.by_product) return false;
        scale = operand, out_.outer_scales = outer;
        return sum(of, factor) && !out_.bias && !out_.residual;
    }

    bool term(int i, double factor) {
        if (i == graph_.inputs.front()) {
            out_.alpha = float(factor);
            return !std::exchange(summed_, true);
        }
        const std::size_t operand = operand_of(i);
        const EpilogueOperand& o = epilogue_.operands[operand];
        const Element result = problem_.c_type == Type::bf16 ? Element::bf16 : problem_.c_type == Type::fp16 ? Element::fp16 : Element::fp32;
        // What it adds to a result of 8 bits it takes in other types, which are not told here. Of a batch it takes one bias for all, and a
        // C for each.
        if (is_fp8(problem_.c_type) || !o.by_column || o.element != result || (problem_.batch > 1 && o.by_product != o.by_row)) return false;
        std::optional<std::size_t>& place = o.by_row ? out_.residual : out_.bias;
        if (place || (!o.by_row && factor != 1)) return false;
        place = operand;
        if (o.by_row) out_.beta = float(factor);
        return true;
    }

    /// The bare sum is the first input.
    std::size_t operand_of(int input) const {
        std::size_t i = 1;
        while (graph_.inputs[i] != input) ++i;
        return i - 1;
    }

    const GemmProblem& problem_;
    const Epilogue& epilogue_;
    const ExpressionGraph& graph_;
    CublasLtEpilogue out_{.kind = api::epilogue_default};
    bool summed_ = false;
};

}  // namespace

std::optional<CublasLtEpilogue> cublaslt_epilogue(const GemmProblem& problem, std::string& missing) {
    if (!problem.epilogue) return CublasLtEpilogue{.kind = api::epilogue_default};
    if (problem.pairs() != Pairs::none) {
        missing = "cuBLASLt has no epilogue of pairs of columns";
        return std::nullopt;
    }
    if (problem.results() > 1) {
        missing = "cuBLASLt's epilogue has one result";
        return std::nullopt;
    }
    auto found = Matcher(problem).match();
    if (!found) missing = "cuBLASLt has no such epilogue: it computes relu or gelu of alpha A B + beta C + bias, C and the bias of the result's type";
    return found;
}

}  // namespace rooftile
