// What an expression's results must be, at every element: its graph in fp64 with error bounds, node by node on the GPU, and
// results judged where they lie. The meanings are those of evaluate() (rooftile/expression/evaluate.hpp), compiled from the
// same lines.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/measure/expression_arguments.hpp"
#include "rooftile/expression/evaluate.hpp"
#include "rooftile/expression/graph.hpp"
#include "rooftile/measure/reference.hpp"
#include "rooftile/runtime/cache.hpp"
#include "rooftile/runtime/driver.hpp"

namespace rooftile {

/// One program: a kernel of every operator, of judging and of filling.
Source expression_reference_source(std::string_view arch);

/// Compiled once a process, or read from the cache; needs no GPU. Throws Error(compile_failed).
const CachedCompile& compile_expression_reference(std::string_view arch);

/// An element that a special case puts into an input.
struct SpecialValue {
    std::size_t input = 0;  ///< in the order of ExpressionGraph::inputs
    std::int64_t element = 0;
    double value = 0;
};
/// NaN, +Inf, -Inf and numbers near their type's largest, so that at least seven of eight rows stay ordinary; where rows are
/// not alone, or fewer than eight, one Inf; of reductions of columns, columns in the place of rows. The same for the same seed.
std::vector<SpecialValue> special_values(const ExpressionGraph& graph, std::uint64_t seed);

/// Inputs of numbers whose rows are their own, or that are as large as any: whose lanes special and shifted cases change.
std::vector<std::size_t> lane_inputs(const ExpressionGraph& graph);

/// The graph in parts of whole rows.
class RowParts {
  public:
    /// Of at most some `elements` a tensor. Where rows are not alone there is one part.
    RowParts(const ExpressionGraph& graph, std::int64_t elements);

    std::int64_t rows() const { return rows_; }  ///< 1 where they are not alone
    std::int64_t rows_a_part() const { return rows_a_part_; }
    void set_rows_a_part(std::int64_t rows) { rows_a_part_ = rows; }
    bool cut() const { return rows_ > 1; }
    /// `graph` with so many rows.
    ExpressionGraph graph(std::int64_t rows) const;
    /// Whether a node of graph(rows) has rows of its own; else it is the same in every part.
    bool has_rows(const GraphNode& node) const { return cut() && node.shape.size() == 2; }

  private:
    ExpressionGraph whole_;
    std::int64_t rows_ = 1, rows_a_part_ = 1;
};

/// Undecided elements of an output that a result may have: this share of them, and never fewer than `few`, but all of them only
/// where the share is 1: an output of which nothing is decided was not compared. Of 2000 random
/// expressions on normal inputs none has any; a comparison with a number that was rounded to bf16 hangs in some 0.3 %.
struct UndecidedLimit {
    double share = 0.01;
    std::int64_t few = 16;
    std::int64_t of(std::int64_t elements) const;
};
/// In a special case whole rows with a special value may be undecided: Inf times what may be 0, an overflow.
UndecidedLimit undecided_limit(const ExpressionGraph& graph, VerifyCase which);

/// An input that no memory holds: rows `first` to `first` + `rows` - 1 of it, with their errors, to `out`.
using MadeRows = std::function<void(Stream stream, std::int64_t first, std::int64_t rows, Bounded* out)>;

/// Rows of the results, where rows are alone, and the inputs that they are of.
struct JudgedRows {
    std::int64_t first = 0, count = 0;
    std::vector<const void*> inputs;
};

/// In the context current at construction.
class ExpressionReference final : public Reference {
  public:
    /// Where rows are alone, `part_elements` of a tensor are evaluated at a time. Throws Error(compile_failed, gpu_failed).
    ExpressionReference(ExpressionGraph graph, std::string_view arch, std::int64_t part_elements = 1 << 24);

    /// Fills a set of inputs: standard normal numbers, of flags even odds; for VerifyCase::special with special_values(), for
    /// VerifyCase::shifted with rows, or columns where those are reduced, around a large mean. The same for the same seed. Asynchronous. What stands behind the inputs is left alone.
    void fill(Stream stream, VerifyCase which, std::uint64_t seed, TensorPointers inputs) const override;

    std::span<const VerifyCase> cases() const override;
    int max_results() const override;
    std::vector<CaseOutcome> judge(Stream stream, VerifyCase which, std::uint64_t seed,
                                   std::span<const TensorPointers> results) const override;

    /// Every element of every output of `results`, each a set of outputs in the graph's order. Where the GPU has too little
    /// memory nothing is checked, and that is not right. Waits for `stream`.
    std::vector<CaseOutcome> judge(Stream stream, std::span<const void* const> inputs,
                                   std::span<const std::span<void* const>> results,
                                   UndecidedLimit limit = {}) const;
    /// The same of results whose rows do not all read the same inputs; `rows` are all of them, each once.
    std::vector<CaseOutcome> judge(Stream stream, std::span<const JudgedRows> rows, std::span<const std::span<void* const>> results,
                                   UndecidedLimit limit = {}) const;

    /// The outputs themselves, for tests. Waits for `stream`.
    std::vector<BoundedTensor> evaluate(Stream stream, std::span<const void* const> inputs) const;

    /// The first inputs, of two axes, are made by `rows`, one each, and their pointers are not looked at: null.
    void set_made_inputs(std::vector<MadeRows> rows) { made_ = std::move(rows); }
    /// Rows of each of the results lie so many elements apart.
    void set_result_pitches(std::vector<std::int64_t> elements) { result_pitches_ = std::move(elements); }
    /// The result, fp32 in the graph, is stored in 8 bits, saturated.
    void set_stored(Type type) { stored_ = type; }
    const ExpressionGraph& graph() const { return graph_; }

  private:
    struct Storage;
    class Part;
    template <class Visit>
    std::string each_output(Stream stream, std::span<const JudgedRows> all, Visit&& visit) const;
    JudgedRows all_rows(std::span<const void* const> inputs) const;
    Function function(std::string_view meaning) const;
    Launch grid(std::int64_t items, Stream stream) const;
    void run_elements(Stream stream, std::string_view meaning, const ElementArguments& arguments) const;
    void run_rows(Stream stream, std::string_view meaning, RowArguments arguments) const;

    ExpressionGraph graph_;
    std::int64_t part_elements_;
    std::vector<MadeRows> made_{};
    std::vector<std::int64_t> result_pitches_{};  ///< empty: all dense
    Type stored_ = Type::fp32;  ///< of 8 bits where it is another than the graph says
    Module module_;
    std::map<std::string_view, Function> functions_;  ///< by what they mean
    Function judge_, fill_, shift_, set_one_;
    int sms_ = 0;
};

}  // namespace rooftile
