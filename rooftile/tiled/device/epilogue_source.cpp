#include "rooftile/tiled/device/epilogue_source.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "kernels/measure/philox.hpp"
#include "rooftile/expression/emit.hpp"

namespace rooftile {
namespace {

/// Writes the class. Nothing that a person wrote becomes text but names, each with a suffix that no keyword or library name has.
class EpilogueText {
  public:
    EpilogueText(const Epilogue& epilogue, const EpilogueKernel& kernel)
        : kernel_(kernel), e_(epilogue), graph_(epilogue.graph), staged_(kernel.staged ? epilogue.staged_operand() : std::nullopt), emitter_(values()) {}

    std::string text() {
        out_ = dropouts_.empty() ? "" : "#include \"kernels/expression/dropout.cuh\"\n";
        out_ += "#include \"kernels/expression/element.cuh\"\n#include \"kernels/expression/math.cuh\"\n";
        out_ += fmt::format("#include \"{}\"\n", kernel_.header);
        out_ += fmt::format("\nnamespace rooftile::{} {{\n\nusing namespace expression;\n\n", kernel_.space);
        line(0, "/// {}", graph_.text);
        line(0, "struct Epilogue {{");
        for (const EpilogueOperand& o : e_.operands) line(1, "const {}* {}_in;  // {}", kernel_type(o.element), o.name, lie(o));
        for (int d : dropouts_) line(1, "DropoutKey {}_key;", base(d));
        line(1, "/// Whose operands are loaded before the first is used.");
        line(1, "template <bool turned>");
        line(1, "static constexpr int pairs_in_flight = turned ? {} : {};", e_.pairs_in_flight(true, staged_.has_value()), e_.pairs_in_flight(false, staged_.has_value()));
        line(1, "/// Nothing is loaded of an element, and no function makes many registers of it: ptxas may begin all of them at once.");
        line(1, "static constexpr bool is_light = {};", e_.is_light());
        line(1, "");
        once();
        operands();
        if (kernel_.prefetches) prefetch();
        element();
        apply();
        out_ += fmt::format("}};\n\n}}  // namespace rooftile::{}\n", kernel_.space);
        return out_;
    }

  private:
    template <class... Args>
    void line(int depth, fmt::format_string<Args...> text, Args&&... args) {
        out_ += std::string(std::size_t(depth) * 4, ' ') + fmt::format(text, std::forward<Args>(args)...) + "\n";
    }
    std::string lie(const EpilogueOperand& o) const {
        const std::string_view width = !o.by_column ? "1" : e_.pairs == Pairs::none ? "N" : "N/2";
        if (o.by_product) return fmt::format("[B,{},{}]", o.by_row ? "M" : "1", width);
        return o.by_row ? fmt::format("[M,{}]", width) : fmt::format("[{}]", width);
    }
    const GraphNode& node(int i) const { return graph_.nodes[std::size_t(i)]; }
    /// Gates and ups, where the expression is of pairs.
    std::span<const int> sums() const { return std::span(graph_.inputs).first(e_.sums()); }
    /// Whether what is stored somewhere is that node.
    bool is_output(int i) const {
        return std::ranges::any_of(graph_.outputs, [i](const GraphOutput& out) { return out.node == i; });
    }

    std::string base(int i) const {
        const GraphNode& n = node(i);
        return n.name.empty() ? fmt::format("{}_{}", noun_of(n.op), i) : n.name;
    }
    std::vector<CodeValue> values() {
        std::vector<CodeValue> out;
        const std::vector<Element> precisions = precisions_of(graph_);
        for (int i = 0; i < int(graph_.nodes.size()); ++i) {
            const GraphNode& n = node(i);
            // A name that a statement gave may be an operand's too by the number behind it: places tell them apart.
            CodeValue v{.name = n.op == Op::input ? base(i) + "_k" : fmt::format("{}_{}_v", base(i), i), .op = n.op,
                        .operands = n.operands, .element = n.element, .value = n.value,
                        .precision = precisions[std::size_t(i)], .keeps_name = n.op != Op::input && !n.name.empty() && !is_output(i)};
            v.kind = n.op == Op::input ? CodeKind::named : n.op == Op::number ? CodeKind::number : CodeKind::computed;
            if (n.op == Op::input && n.element != Element::boolean) v.element = Element::fp32;
            if (n.op == Op::dropout) {
                v.mask = base(i) + "_keep";
                dropouts_.push_back(i);
            }
            out.push_back(std::move(v));
        }
        return out;
    }

    void once() {
        line(1, "/// The same for all elements.");
        line(1, "struct Once {{");
        for (const EpilogueOperand& o : e_.operands)
            if (o.is_one()) line(2, "{} {}_one;", kernel_type(o.element), o.name);
        line(1, "}};");
        std::string values;
        for (const EpilogueOperand& o : e_.operands)
            if (o.is_one()) values += fmt::format("{}*{}_in", values.empty() ? "" : ", ", o.name);
        line(1, "__device__ Once once() const {{ return {{{}}}; }}", values);
    }

    void operands() {
        line(1, "/// For two neighbours.");
        line(1, "struct Operands {{");
        for (const EpilogueOperand& o : e_.operands)
            if (!o.is_one()) line(2, "{} {}[2];", kernel_type(o.element), o.name + "_pair");
        line(1, "}};");
        line(1, "template <bool turned>");
        line(1, "__device__ void load([[maybe_unused]] Operands& to, [[maybe_unused]] const EpiloguePair& at) const {{");
        for (std::size_t i = 0; i < e_.operands.size(); ++i) {
            const EpilogueOperand& o = e_.operands[i];
            if (o.is_one()) continue;
            if (i == staged_) line(2, "load_staged_pair<turned>(to.{}_pair, at);", o.name);
            else line(2, "load_pair<turned, {}, {}, {}, {}>(to.{}_pair, {}_in, at);", o.by_product, o.by_row, o.by_column, e_.paired(), o.name, o.name);
        }
        line(1, "}}");
    }

    void prefetch() {
        line(1, "template <MatrixConfig C>");
        line(1, "__device__ void prefetch([[maybe_unused]] const MatrixArguments& args, [[maybe_unused]] const TileOrigin& at,");
        line(1, "                         [[maybe_unused]] int thread, [[maybe_unused]] int threads) const {{");
        for (std::size_t i = 0; i < e_.operands.size(); ++i)
            if (const EpilogueOperand& o = e_.operands[i]; o.by_row && o.by_column && i != staged_)
                line(2, "prefetch_tile<C, {}>({}_in, args, at, thread, threads);", o.by_product, o.name);
        line(1, "}}");
    }

    void element() {
        std::string parameters;
        std::set<int> known;
        for (const int input : graph_.inputs) {
            parameters += fmt::format("{}{} {}", parameters.empty() ? "" : ", ", emitter_.is_flag(input) ? "bool" : "float", emitter_.use(input, false));
            known.insert(input);
        }
        for (int d : dropouts_) parameters += fmt::format(", bool {}_keep", base(d));
        const bool one = e_.results() == 1;
        line(1, "/// One element{}.", one ? "" : ", of each result");
        if (one) line(1, "static __device__ float element({}) {{", parameters);
        else line(1, "static __device__ void element(float (&to)[{}], {}) {{", e_.results(), parameters);
        for (std::size_t r = 0; r < e_.results(); ++r) {
            // What is stored is rounded there: a cast to that type at the end would be a second one.
            const int output = graph_.outputs[r].node;
            const int target = node(output).op == Op::cast ? node(output).operands.front() : output;
            std::vector<std::string> results;
            if (known.contains(target)) results = {emitter_.use(target, true)};
            else out_ += emitter_.statements({target}, known, "        ", "", &results);
            if (one) line(2, "return {};", results.front());
            else line(2, "to[{}] = {};", r, results.front());
        }
        line(1, "}}");
    }

    void apply() {
        line(1, "template <bool turned>");
        const bool pairs = sums().size() > 1;
        line(1, "__device__ void apply(float (&to)[{}], float first, float second,{} [[maybe_unused]] const Operands& with,",
             2 * e_.results(), pairs ? " float first_up, float second_up," : "");
        line(1, "                      [[maybe_unused]] const Once& once, [[maybe_unused]] const EpiloguePair& at) const {{");
        for (int d : dropouts_) {
            line(2, "bool {}_keep[2];", base(d));
            line(2, "const long long {}_at = at.index();", base(d));
            if (e_.paired()) line(2, "if constexpr (!turned) kept({0}_keep, {0}_at, {0}_key);\n        else", base(d));
            line(2, "{{");
            line(3, "bool one[1];");
            line(3, "kept(one, {0}_at, {0}_key), {0}_keep[0] = one[0];", base(d));
            line(3, "kept(one, {0}_at + (turned ? at.columns : 1), {0}_key), {0}_keep[1] = one[0];", base(d));
            line(2, "}}");
        }
        for (int i = 0; i < 2; ++i) {
            std::string arguments = i == 0 ? "first" : "second";
            if (pairs) arguments += fmt::format(", {}_up", arguments);
            for (const EpilogueOperand& o : e_.operands)
                arguments += o.is_one() ? fmt::format(", widened(once.{}_one)", o.name) : fmt::format(", widened(with.{}_pair[{}])", o.name, i);
            for (int d : dropouts_) arguments += fmt::format(", {}_keep[{}]", base(d), i);
            if (e_.results() == 1) {
                line(2, "to[{}] = element({});", i, arguments);
                continue;
            }
            const std::string_view of = i == 0 ? "first" : "second";
            line(2, "float {}_results[{}];", of, e_.results());
            line(2, "element({}_results, {});", of, arguments);
            for (std::size_t r = 0; r < e_.results(); ++r) line(2, "to[{}] = {}_results[{}];", 2 * r + i, of, r);
        }
        line(1, "}}");
    }

    EpilogueKernel kernel_;
    const Epilogue& e_;
    const ExpressionGraph& graph_;
    std::optional<std::size_t> staged_;
    std::vector<int> dropouts_;
    ValueEmitter emitter_;
    std::string out_;
};

}  // namespace

std::string epilogue_text(const Epilogue& epilogue, const EpilogueKernel& kernel) { return EpilogueText(epilogue, kernel).text(); }

void name_with_epilogue(Source& source, std::string_view kernel) {
    std::string& name = source.name_expressions.front();
    name.replace(0, name.find('<'), kernel);
    name.insert(name.size() - 1, fmt::format(", {}", epilogue_class));
}

void add_epilogue(Source& source, const SharedEpilogue& epilogue, std::string_view header) {
    if (!epilogue) return;
    source.text = epilogue_text(*epilogue, {.header = header});
    name_with_epilogue(source, fmt::format("rooftile::{}_epilogue", source.name));
}

std::vector<std::uint64_t> epilogue_words(const Epilogue& epilogue, std::span<const void* const> operands) {
    std::vector<std::uint64_t> words;
    for (const void* operand : operands) words.push_back(reinterpret_cast<std::uint64_t>(operand));
    for (const GraphNode& n : epilogue.graph.nodes) {
        if (n.op != Op::dropout) continue;
        const auto keys = dropout_keys(n.seed);
        for (int i = 0; i < 2 * dropout_rounds; i += 2)
            words.push_back(keys.word[i] | std::uint64_t(keys.word[i + 1]) << 32);
        words.push_back(n.offset);
        const auto threshold = std::uint64_t(std::llround(n.value * 4294967296.0));
        words.push_back(std::min<std::uint64_t>(threshold, 0xffffffffu) | std::uint64_t(dropout_fold) << 32);
    }
    if (words.empty()) words.push_back(0);  // an empty class has a byte
    return words;
}

}  // namespace rooftile
