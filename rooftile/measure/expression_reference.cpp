#include "rooftile/measure/expression_reference.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>

#include "rooftile/core/random.hpp"
#include "rooftile/expression/graph_builder.hpp"
#include "rooftile/units.hpp"

namespace rooftile {
namespace {

constexpr unsigned threads = reference_threads;
constexpr int ctas_per_sm = 8;  // grid-stride: all 2048 threads of an SM
constexpr std::string_view itself = "itself";

/// Each meaning once, though operators may share it.
struct MeaningKernel {
    std::string_view meaning;
    std::string name;
    bool of_rows;
};
std::vector<MeaningKernel> meaning_kernels() {
    std::vector<MeaningKernel> out = {{itself, "element_itself", false}};
    for (const Operator& row : operators()) {
        const std::string_view meaning = row.meaning.row ? row.meaning.row.name : row.meaning.element.name;
        const auto same = [&](const MeaningKernel& k) { return k.meaning == meaning; };
        if (meaning.empty() || std::ranges::any_of(out, same)) continue;
        const bool of_rows = bool(row.meaning.row);
        out.push_back({meaning, fmt::format("{}_{}", of_rows ? "row" : "element", out.size()), of_rows});
    }
    return out;
}

constexpr const char* other_kernels[] = {"rooftile::judge_elements", "rooftile::fill_elements",
                                         "rooftile::shift_lanes", "rooftile::set_one_element"};

bool has_row_operation(const ExpressionGraph& graph) {
    return std::ranges::any_of(
        graph.nodes, [](const GraphNode& n) { return is_row_operation(n.op) || reduces_columns(n.op) || reduces_all(n.op); });
}

Shape space_of(const ExpressionGraph& graph) {
    Shape space;
    for (const GraphNode& n : graph.nodes) space = broadcast(space, n.shape);
    return space;
}

/// "y[3,17]"
std::string place_in(const std::string& name, const Shape& shape, std::int64_t element) {
    std::string out;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
        out = fmt::format("{}{}{}", element % shape[axis], out.empty() ? "" : ",", out);
        element /= shape[axis];
    }
    return fmt::format("{}[{}]", name, out);
}

}  // namespace

Source expression_reference_source(std::string_view arch) {
    Source source;
    source.name = "expression_reference";
    source.text = "#include \"kernels/measure/expression.cuh\"\n";
    for (const MeaningKernel& k : meaning_kernels()) {
        source.text += k.of_rows ? fmt::format("ROOFTILE_ROW_KERNEL({}, {})\n", k.name, k.meaning)
                                 : fmt::format("ROOFTILE_ELEMENT_KERNEL({}, {})\n", k.name, k.meaning);
        source.name_expressions.push_back("rooftile::meaning::" + k.name);
    }
    for (const char* name : other_kernels) source.name_expressions.emplace_back(name);
    source.arch = nvrtc_arch(arch);
    return source;
}

const CachedCompile& compile_expression_reference(std::string_view arch) {
    static std::mutex mutex;
    static std::map<std::string, CachedCompile, std::less<>> compiled;
    const std::lock_guard lock(mutex);
    auto found = compiled.find(arch);
    if (found == compiled.end())
        found = compiled.emplace(std::string(arch), compile_cached(expression_reference_source(arch))).first;
    return found->second;
}

RowParts::RowParts(const ExpressionGraph& graph, std::int64_t elements) : whole_(graph) {
    Shape space = space_of(whole_);
    // Elements of one axis that no row brings together are rows of one.
    if (space.size() == 1 && !has_row_operation(whole_)) {
        for (GraphNode& n : whole_.nodes)
            if (!n.shape.empty() && n.shape == space && space[0] > 1) n.shape.push_back(1);
        space.push_back(1);
    }
    if (space.size() < 2 || !rows_of(whole_, 1)) return;
    const std::int64_t columns = std::max<std::int64_t>(1, space.back());
    space.pop_back();
    rows_ = std::max<std::int64_t>(1, elements_of(space));
    rows_a_part_ = std::clamp<std::int64_t>(elements / columns, 1, rows_);
}

ExpressionGraph RowParts::graph(std::int64_t rows) const { return cut() ? *rows_of(whole_, rows) : whole_; }

std::int64_t UndecidedLimit::of(std::int64_t elements) const {
    const std::int64_t most = std::max(few, std::int64_t(share * double(elements)));
    return share < 1 ? std::clamp<std::int64_t>(elements - 1, 0, most) : most;
}

namespace {
constexpr std::int64_t ordinary = 8;  ///< rows of which one may be special

bool has_columns(const ExpressionGraph& graph) {
    return std::ranges::any_of(graph.nodes, [](const GraphNode& n) { return reduces_columns(n.op); });
}

/// Rows that nothing brings together, or of reductions of columns the columns: a special value stays in its own.
std::int64_t lanes_of(const ExpressionGraph& graph, const RowParts& parts) {
    return has_columns(graph) ? space_of(graph).back() : parts.rows();
}
}

UndecidedLimit undecided_limit(const ExpressionGraph& graph, VerifyCase which) {
    if (which == VerifyCase::shifted) return {.share = 1};  // of large numbers functions may overflow
    if (which != VerifyCase::special) return {};
    return {.share = lanes_of(graph, RowParts(graph, 1)) < ordinary ? 1.0 : 1.0 / double(ordinary)};
}

std::vector<std::size_t> lane_inputs(const ExpressionGraph& graph) {
    const RowParts parts(graph, 1);
    const ExpressionGraph cut = parts.graph(1);
    std::vector<std::size_t> out;
    std::int64_t most = 0;
    for (int i : graph.inputs) most = std::max(most, elements_of(graph.nodes[std::size_t(i)].shape));
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
        const auto node = std::size_t(graph.inputs[i]);
        const std::int64_t elements = elements_of(graph.nodes[node].shape);
        const bool large = parts.cut() ? parts.has_rows(cut.nodes[node]) : elements == most;
        if (is_floating(graph.nodes[node].element) && large && elements > 0) out.push_back(i);
    }
    return out;
}

std::vector<SpecialValue> special_values(const ExpressionGraph& graph, std::uint64_t seed) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr std::int64_t few_rows = 1024;  // below that, a row that overflows is too large a share
    const RowParts parts(graph, 1);
    Random random(seed);
    const std::vector<std::size_t> candidates = lane_inputs(graph);
    std::vector<SpecialValue> out;
    if (candidates.empty()) return out;
    const auto put = [&](std::size_t input, std::int64_t first, std::int64_t count, double value, std::int64_t step = 1) {
        out.push_back({input, first + step * std::int64_t(random.pick(std::size_t(count))), value});
    };
    const std::int64_t lanes = lanes_of(graph, parts);
    if (lanes < ordinary) {
        const std::size_t input = random.one_of(candidates);
        put(input, 0, elements_of(graph.nodes[std::size_t(graph.inputs[input])].shape),
            random.coin() ? infinity : -infinity);
        return out;
    }
    // Rows are dealt out among the values: a band of rows to each, one row of the band taken.
    const bool overflows = lanes >= few_rows;
    const std::int64_t kinds = overflows ? 4 : 3;
    const std::int64_t each =
        std::clamp<std::int64_t>(lanes / (ordinary * std::int64_t(candidates.size())), 1, kinds);
    const std::int64_t values = std::min(lanes / ordinary, each * std::int64_t(candidates.size()));
    const std::int64_t band = lanes / values;
    auto kind = std::int64_t(random.pick(std::size_t(kinds)));
    for (std::int64_t v = 0; v < values; ++v, kind = (kind + 1) % kinds) {
        const std::size_t input = candidates[std::size_t(v) % candidates.size()];
        const GraphNode& n = graph.nodes[std::size_t(graph.inputs[input])];
        const std::int64_t across = elements_of(n.shape) / lanes;  // elements of a row, or of a column
        const double largest = rounded_to(0.9 * format_of(n.element).largest, n.element);
        const double number[] = {std::nan(""), infinity, -infinity, random.coin() ? largest : -largest};
        const std::int64_t lane = v * band + std::int64_t(random.pick(std::size_t(band)));
        if (has_columns(graph)) put(input, lane, across, number[kind], lanes);
        else put(input, lane * across, across, number[kind]);
    }
    return out;
}

/// Where the tensors that are computed lie: of those that nobody reads any more, others take the place.
struct ExpressionReference::Storage {
    std::vector<int> slot;  ///< of each node; -1: an input or a number
    std::vector<std::int64_t> bytes;

    explicit Storage(const ExpressionGraph& graph) : slot(graph.nodes.size(), -1) {
        const std::vector<std::size_t> last = last_readers(graph);
        std::vector<int> free;
        for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
            const GraphNode& n = graph.nodes[i];
            if (n.op == Op::input || n.op == Op::number) continue;
            slot[i] =
                take(free, std::max<std::int64_t>(1, elements_of(n.shape)) * std::int64_t(sizeof(Bounded)));
            for (int operand : n.operands) {
                const int s = slot[std::size_t(operand)];
                if (last[std::size_t(operand)] == i && s >= 0 && std::ranges::find(free, s) == free.end())
                    free.push_back(s);
            }
        }
    }
    std::int64_t sum() const {
        std::int64_t all = 0;
        for (std::int64_t b : bytes) all += b;
        return all;
    }

  private:
    /// The smallest free one that is large enough, else one of its own.
    int take(std::vector<int>& free, std::int64_t wanted) {
        auto best = free.end();
        for (auto at = free.begin(); at != free.end(); ++at)
            if (bytes[std::size_t(*at)] >= wanted
                && (best == free.end() || bytes[std::size_t(*at)] < bytes[std::size_t(*best)]))
                best = at;
        if (best == free.end()) {
            bytes.push_back(wanted);
            return int(bytes.size()) - 1;
        }
        const int taken = *best;
        free.erase(best);
        return taken;
    }
};

ExpressionReference::ExpressionReference(ExpressionGraph graph, std::string_view arch,
                                         std::int64_t part_elements)
    : graph_(std::move(graph)),
      part_elements_(part_elements),
      sms_(Driver::instance().device(current_device()).sm_count) {
    const Compiled& compiled = compile_expression_reference(arch).compiled;
    module_ = Module(std::span<const char>(compiled.cubin));
    std::size_t next = 0;
    for (const MeaningKernel& k : meaning_kernels())
        functions_.emplace(k.meaning, module_.function(compiled.lowered_names[next++]));
    for (Function* f : {&judge_, &fill_, &shift_, &set_one_}) *f = module_.function(compiled.lowered_names[next++]);
}

Function ExpressionReference::function(std::string_view meaning) const {
    const auto found = functions_.find(meaning);
    assert(found != functions_.end());
    return found->second;
}

Launch ExpressionReference::grid(std::int64_t items, Stream stream) const {
    Launch launch;
    launch.grid_x =
        unsigned(std::clamp<std::int64_t>(ceil_div(items, threads), 1, std::int64_t(sms_) * ctas_per_sm));
    launch.block_x = threads;
    launch.stream = stream;
    return launch;
}

void ExpressionReference::fill(Stream stream, VerifyCase which, std::uint64_t seed,
                               std::span<void* const> inputs) const {
    assert(which != VerifyCase::exact && inputs.size() >= graph_.inputs.size());
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
        const GraphNode& n = graph_.nodes[std::size_t(graph_.inputs[i])];
        if (i < made_.size()) continue;
        const ElementFillArguments arguments{inputs[i], n.element, elements_of(n.shape), seed, i};
        if (arguments.count > 0) launch(fill_, grid(ceil_div(arguments.count, 4), stream), arguments);
    }
    if (which == VerifyCase::shifted) {
        constexpr double most = 1e5;
        for (std::size_t input : lane_inputs(graph_)) {
            if (input < made_.size()) continue;
            const GraphNode& n = graph_.nodes[std::size_t(graph_.inputs[input])];
            const std::int64_t count = elements_of(n.shape);
            // What nothing brings together is one lane; a quarter of what the type holds, so that sums with other inputs stay in it.
            const bool lanes = !n.shape.empty() && (has_columns(graph_) || RowParts(graph_, 1).cut());
            const LaneShiftArguments arguments{{inputs[input], n.element, count, seed, input}, lanes ? n.shape.back() : count,
                                               lanes && has_columns(graph_), std::min(most, format_of(n.element).largest / 4)};
            launch(shift_, grid(count, stream), arguments);
        }
    }
    if (which != VerifyCase::special) return;
    for (const SpecialValue& v : special_values(graph_, seed)) {
        if (v.input < made_.size()) continue;
        Launch one;
        one.stream = stream;
        const Element element = graph_.nodes[std::size_t(graph_.inputs[v.input])].element;
        const long long at = v.element;
        launch(set_one_, one, inputs[v.input], element, at, v.value);
    }
}

void ExpressionReference::run_elements(Stream stream, std::string_view meaning,
                                       const ElementArguments& arguments) const {
    if (arguments.count > 0) launch(function(meaning), grid(arguments.count, stream), arguments);
}

void ExpressionReference::run_rows(Stream stream, std::string_view meaning, RowArguments p) const {
    if (p.rows == 0) return;
    const Function& f = function(meaning);
    constexpr std::int64_t a_thread = 4, a_warp = 32, a_cta = 1024, many_ctas = 16384;  // elements
    p.threads = int(threads);
    if (p.columns <= a_cta)
        for (p.threads = 1; p.threads < a_warp && p.threads * a_thread < p.columns;) p.threads *= 2;
    p.ctas = 1;
    const std::int64_t resident = std::int64_t(sms_) * f.ctas_per_sm(int(threads), 0);
    if (p.columns > many_ctas && p.rows * 2 <= resident)
        p.ctas = int(
            std::min<std::int64_t>(resident / p.rows, ceil_div(p.columns, std::int64_t(threads) * a_thread)));
    Launch l = grid(p.rows * p.threads, stream);
    DeviceBuffer meeting;
    if (p.ctas > 1) {
        l.grid_x = unsigned(p.rows * p.ctas);
        l.cooperative = true;
        const std::int64_t counters = p.rows * std::int64_t(sizeof(unsigned));
        const std::int64_t first_part = ceil_div(counters, std::int64_t(256)) * 256;
        meeting = DeviceBuffer(std::size_t(first_part + p.rows * 2 * p.ctas * row_part_bytes));
        fill_bytes(meeting.address(), 0, std::size_t(first_part), stream);
        p.arrived = static_cast<unsigned*>(meeting.data());
        p.parts = static_cast<char*>(meeting.data()) + first_part;
    }
    launch(f, l, p);
    if (p.ctas > 1) synchronize(stream);  // before the meeting's memory goes
}

/// One part of the graph, evaluated node by node.
class ExpressionReference::Part {
  public:
    Part(const ExpressionReference& reference, Stream stream, const RowParts& parts,
         const ExpressionGraph& graph, std::int64_t first_row, std::span<const void* const> inputs,
         const Storage& storage, const std::vector<DeviceBuffer>& slots, const std::vector<DeviceBuffer>& made)
        : reference_(reference),
          stream_(stream),
          parts_(parts),
          graph_(graph),
          precisions_(precisions_of(graph)),
          first_row_(first_row),
          inputs_(inputs),
          storage_(storage),
          slots_(slots),
          made_(made) {}

    void run() const {
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
            const Operator& row = operator_of(graph_.nodes[i].op);
            if (row.meaning.row) run_rows(i, row.meaning.row.name);
            else if (row.meaning.element) run_elements(i, row.meaning.element.name, graph_.nodes[i].operands);
        }
    }

    const GraphNode& node(int i) const { return graph_.nodes[std::size_t(i)]; }
    /// The node's first element here, in its whole tensor.
    std::int64_t first_of(int i) const {
        return parts_.has_rows(node(i)) ? first_row_ * node(i).shape.back() : 0;
    }
    /// Whether the node is new in this part.
    bool is_new(int i) const { return first_row_ == 0 || parts_.has_rows(node(i)); }

    BoundedView view(int i) const {
        const GraphNode& n = node(i);
        if (n.op == Op::number) return {.number = double(float(n.value)), .held = Held::number};
        if (n.op != Op::input)
            return {.data = slots_[std::size_t(storage_.slot[std::size_t(i)])].data(), .held = Held::bounded};
        const auto place = std::size_t(std::ranges::find(graph_.inputs, i) - graph_.inputs.begin());
        if (place < made_.size()) return {.data = made_[place].data(), .held = Held::bounded};
        return {.data = static_cast<const char*>(inputs_[place]) + first_of(i) * bytes_of(n.element),
                .held = Held::element,
                .element = n.element};
    }

    /// `out` = node `i`, bounded.
    void copy(int i, Bounded* out) const { run_elements(std::size_t(i), itself, {i}, out); }

  private:
    Bounded* out_of(std::size_t i) const {
        return static_cast<Bounded*>(slots_[std::size_t(storage_.slot[i])].data());
    }

    void run_elements(std::size_t i, std::string_view meaning, const std::vector<int>& operands,
                      Bounded* out = nullptr) const {
        const GraphNode& n = graph_.nodes[i];
        ElementArguments p{};
        p.call = element_call(n, precisions_[i]);
        if (meaning == itself) p.call.of_flags = false;
        p.operand_count = int(operands.size());
        p.axes = int(n.shape.size());
        std::ranges::copy(n.shape, p.extents);
        for (std::size_t o = 0; o < operands.size(); ++o) {
            const Shape& from = node(operands[o]).shape;
            p.operands[o] = view(operands[o]);
            p.dense[o] = from == n.shape;
            std::int64_t stride = 1;
            for (std::size_t back = 0; back < from.size(); ++back) {
                const std::int64_t extent = from[from.size() - 1 - back];
                if (extent != 1) p.strides[o][n.shape.size() - 1 - back] = stride;
                stride *= extent;
            }
        }
        p.count = elements_of(n.shape);
        p.first = std::uint64_t(first_of(int(i)));
        p.out = out ? out : out_of(i);
        reference_.run_elements(stream_, meaning, p);
    }

    void run_rows(std::size_t i, std::string_view meaning) const {
        const GraphNode& n = graph_.nodes[i];
        const Shape& from = node(n.operands[0]).shape;
        RowArguments p{};
        p.x = view(n.operands[0]);
        p.weight_count = int(n.operands.size()) - 1;
        for (int w = 0; w < p.weight_count; ++w) p.weights[w] = view(n.operands[std::size_t(w) + 1]);
        p.epsilon = n.value;
        const RowsIn lie = rows_in(n.op, from);
        p.columns = lie.columns, p.pitch = lie.pitch, p.step = lie.step;
        p.rows = !keeps_row(n.op) ? elements_of(n.shape) : p.columns ? elements_of(n.shape) / p.columns : 0;
        p.out = out_of(i);
        reference_.run_rows(stream_, meaning, p);
    }

    const ExpressionReference& reference_;
    Stream stream_;
    const RowParts& parts_;
    const ExpressionGraph& graph_;
    const std::vector<Element> precisions_;
    std::int64_t first_row_;
    std::span<const void* const> inputs_;
    const Storage& storage_;
    const std::vector<DeviceBuffer>& slots_;
    const std::vector<DeviceBuffer>& made_;
};

/// visit(output, part) of every output and part that has it new. Why not, where memory is short.
template <class Visit>
std::string ExpressionReference::each_output(Stream stream, std::span<const JudgedRows> all, Visit&& visit) const {
    RowParts parts(graph_, part_elements_);
    const std::int64_t free_bytes = memory_info().free_bytes;
    std::optional<ExpressionGraph> graph = parts.graph(parts.rows_a_part());
    std::optional<Storage> storage(*graph);
    // Half as many rows as long as that helps.
    while (storage->sum() > free_bytes && parts.cut() && parts.rows_a_part() > 1) {
        parts.set_rows_a_part(parts.rows_a_part() / 2);
        graph = parts.graph(parts.rows_a_part());
        storage.emplace(*graph);
    }
    if (storage->sum() > free_bytes)
        return fmt::format("not compared: the fp64 reference takes {} B, {} B of GPU memory are free",
                           storage->sum(), free_bytes);
    std::vector<DeviceBuffer> slots;
    for (std::int64_t bytes : storage->bytes) slots.emplace_back(std::size_t(bytes));
    std::vector<DeviceBuffer> made;
    for (std::size_t i = 0; i < made_.size(); ++i)
        made.emplace_back(std::size_t(elements_of(graph->nodes[std::size_t(graph->inputs[i])].shape)) * sizeof(Bounded));
    std::int64_t of_graph = parts.rows_a_part();
    const auto run = [&](const JudgedRows& of, std::int64_t first, std::int64_t rows) {
        if (rows != of_graph) graph = parts.graph(of_graph = rows);  // fewer: the same nodes, each in its place
        const Part part(*this, stream, parts, *graph, first, of.inputs, *storage, slots, made);
        for (std::size_t i = 0; i < made_.size(); ++i)
            made_[i](stream, first, parts.cut() ? rows : graph->nodes[std::size_t(graph->inputs[i])].shape.front(),
                     static_cast<Bounded*>(made[i].data()));
        part.run();
        for (std::size_t o = 0; o < graph_.outputs.size(); ++o)
            if (part.is_new(graph_.outputs[o].node)) visit(o, part);
    };
    for (const JudgedRows& of : all) {
        assert(of.inputs.size() == graph_.inputs.size());
        const std::int64_t end = of.first + of.count;
        for (std::int64_t first = of.first; first < end; first += parts.rows_a_part()) run(of, first, std::min(parts.rows_a_part(), end - first));
    }
    synchronize(stream);
    return {};
}

JudgedRows ExpressionReference::all_rows(std::span<const void* const> inputs) const {
    return {0, RowParts(graph_, part_elements_).rows(), {inputs.begin(), inputs.end()}};
}

std::span<const VerifyCase> ExpressionReference::cases() const {
    static constexpr VerifyCase of_rows[] = {VerifyCase::random, VerifyCase::shifted, VerifyCase::special};
    static constexpr VerifyCase of_elements[] = {VerifyCase::random, VerifyCase::special};
    return has_row_operation(graph_) ? std::span<const VerifyCase>(of_rows) : of_elements;
}

int ExpressionReference::max_results() const { return max_judged; }

std::vector<CaseOutcome> ExpressionReference::judge(Stream stream, VerifyCase which, std::uint64_t,
                                                    std::span<const TensorPointers> results) const {
    const std::size_t inputs = graph_.inputs.size();
    std::vector<TensorPointers> outputs;
    for (const TensorPointers& tensors : results) outputs.push_back(tensors.subspan(inputs));
    const void* const* in = results[0].data();
    return judge(stream, {in, inputs}, outputs, undecided_limit(graph_, which));
}

std::vector<CaseOutcome> ExpressionReference::judge(Stream stream, std::span<const void* const> inputs,
                                                    std::span<const std::span<void* const>> results,
                                                    UndecidedLimit limit) const {
    const JudgedRows rows = all_rows(inputs);
    return judge(stream, std::span(&rows, 1), results, limit);
}

std::vector<CaseOutcome> ExpressionReference::judge(Stream stream, std::span<const JudgedRows> rows,
                                                    std::span<const std::span<void* const>> results,
                                                    UndecidedLimit limit) const {
    const std::size_t ctas = std::size_t(sms_) * ctas_per_sm, of_output = ctas * results.size();
    const DeviceBuffer records(std::max<std::size_t>(1, graph_.outputs.size() * of_output)
                               * sizeof(JudgeRecord));
    fill_bytes(records.address(), 0, records.bytes(), stream);
    const std::string missing = each_output(stream, rows, [&](std::size_t o, const Part& part) {
        const int node = graph_.outputs[o].node;
        JudgeArguments p{};
        p.expected = part.view(node);
        p.element = part.node(node).element;
        p.stored = stored_;
        p.count = elements_of(part.node(node).shape);
        p.first = part.first_of(node);
        if (p.count == 0) return;
        p.columns = part.node(node).shape.empty() ? 1 : part.node(node).shape.back();
        p.pitch = result_pitches_.empty() ? 0 : result_pitches_[o];
        const std::int64_t before = p.pitch == 0 ? p.first : p.first / p.columns * p.pitch;
        for (std::size_t first = 0; first < results.size(); first += max_judged) {
            p.results = int(std::min<std::size_t>(max_judged, results.size() - first));
            for (int r = 0; r < p.results; ++r)
                p.got[r] = static_cast<const char*>(results[first + std::size_t(r)][o])
                           + before * (is_fp8(stored_) ? bytes_of(stored_) : bytes_of(p.element));
            Launch all = grid(0, stream);
            all.grid_x = unsigned(ctas);
            const DevicePointer to =
                records.address() + DevicePointer((o * of_output + first * ctas) * sizeof(JudgeRecord));
            launch(judge_, all, p, to);
        }
    });
    std::vector<CaseOutcome> outcomes(results.size());
    if (!missing.empty()) {
        for (CaseOutcome& outcome : outcomes) outcome.failure = missing;
        return outcomes;
    }
    std::vector<JudgeRecord> seen(records.bytes() / sizeof(JudgeRecord));
    copy_to_host(seen.data(), records.address(), records.bytes());
    for (std::size_t r = 0; r < results.size(); ++r) {
        CaseOutcome& outcome = outcomes[r];
        outcome.right = true;
        for (std::size_t o = 0; o < graph_.outputs.size(); ++o) {
            const std::string& name = graph_.outputs[o].name;
            const Shape& shape = graph_.nodes[std::size_t(graph_.outputs[o].node)].shape;
            JudgeRecord all{};
            for (std::size_t c = 0; c < ctas; ++c) {
                const JudgeRecord& one = seen[o * of_output + r * ctas + c];
                const auto wrong = all.wrong + one.wrong, undecided = all.undecided + one.undecided;
                if (one.ratio > all.ratio || (one.ratio == all.ratio && one.element < all.element)) all = one;
                all.wrong = wrong, all.undecided = undecided;
            }
            const std::int64_t elements = elements_of(shape);
            outcome.checked += elements;
            outcome.wrong += std::int64_t(all.wrong);
            outcome.undecided += std::int64_t(all.undecided);
            if (all.ratio > outcome.ratio) {
                outcome.ratio = all.ratio;
                outcome.bound = all.bound;
            }
            std::string failure;
            if (all.wrong > 0)
                failure = fmt::format("{}: got {}, expected {} within {}; {} of {} elements wrong",
                                      place_in(name, shape, all.element), all.got, all.expected, all.bound,
                                      all.wrong, elements);
            else if (std::int64_t(all.undecided) > limit.of(elements))
                failure = fmt::format("{}: {} of {} elements undecided, at most {} may be", name,
                                      all.undecided, elements, limit.of(elements));
            if (failure.empty()) continue;
            outcome.right = false;
            if (outcome.failure.empty()) outcome.failure = failure;
        }
    }
    return outcomes;
}

std::vector<BoundedTensor> ExpressionReference::evaluate(Stream stream,
                                                         std::span<const void* const> inputs) const {
    std::vector<BoundedTensor> out;
    for (const GraphOutput& o : graph_.outputs)
        out.emplace_back(std::size_t(elements_of(graph_.nodes[std::size_t(o.node)].shape)));
    const JudgedRows rows = all_rows(inputs);
    const std::string missing = each_output(stream, std::span(&rows, 1), [&](std::size_t o, const Part& part) {
        const int node = graph_.outputs[o].node;
        const std::int64_t count = elements_of(part.node(node).shape);
        if (count == 0) return;
        const DeviceBuffer copy(std::size_t(count) * sizeof(Bounded));
        part.copy(node, static_cast<Bounded*>(copy.data()));
        synchronize(stream);
        copy_to_host(out[o].data() + part.first_of(node), copy.address(), copy.bytes());
    });
    if (!missing.empty()) throw Error(ExitCode::gpu_failed, missing);
    return out;
}

}  // namespace rooftile
