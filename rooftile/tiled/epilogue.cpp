#include "rooftile/tiled/epilogue.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "rooftile/error.hpp"
#include "rooftile/expression/cost.hpp"
#include "rooftile/expression/registers.hpp"
#include "rooftile/expression/text.hpp"

namespace rooftile {
namespace {

constexpr std::string_view sum_name = "acc", bare_sum_name = "ab", beta_name = "c";
constexpr std::string_view pair_names[] = {"gate", "up"}, bare_pair_names[] = {"gate_ab", "up_ab"};

/// B and G count products and groups, first of three axes: what else they would stand for is a number by chance.
void check_letters(std::string_view text, bool groups) {
    const std::size_t open = text.find('[');
    if (open == text.npos) return;
    const std::string_view shape = text.substr(open);
    const std::size_t first = shape.find_first_not_of(" [");
    const bool three = std::count(shape.begin(), shape.end(), ',') == 2;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const bool of_batch = shape[i] == 'B' || shape[i] == 'b', of_groups = shape[i] == 'G' || shape[i] == 'g';
        if ((!of_batch && !of_groups) || (i == first && three && of_groups == groups)) continue;
        throw RequestError(fmt::format("the tensor {}: {} is the first of three axes {}", text, of_groups ? 'G' : 'B',
                                       of_groups ? "and counts the groups of --groups: [G,1,N], [G,1,1]"
                                                 : "and counts the products of --batch, of groups none: [B,M,N], [B,1,N], [B,M,1], [B,1,1]"));
    }
}

/// M and N of the extents as numbers, and N/2 where N is even.
std::string with_sizes(std::string_view text, std::int64_t batch, std::int64_t m, std::int64_t n) {
    const std::size_t open = text.find('[');
    std::string out(text.substr(0, open));
    if (open == text.npos) return out;
    for (std::size_t i = open; i < text.size(); ++i) {
        const char c = text[i];
        if (c == ' ') continue;
        const bool half = (c == 'N' || c == 'n') && text.substr(i + 1, 2) == "/2" && n % 2 == 0;
        if (half) out += std::to_string(n / 2), i += 2;
        else if (c == 'B' || c == 'b' || c == 'G' || c == 'g') out += std::to_string(batch);
        else if (c == 'M' || c == 'm') out += std::to_string(m);
        else if (c == 'N' || c == 'n') out += std::to_string(n);
        else out += c;
    }
    return out;
}

/// Axes of one element that stand before the others go; what is one number has none.
Shape plain_shape(Shape shape) {
    while (!shape.empty() && shape.front() == 1) shape.erase(shape.begin());
    return shape;
}

/// `n`: columns of the result.
EpilogueOperand operand_of(TensorDeclaration t, std::int64_t batch, bool groups, std::int64_t m, std::int64_t n, bool pairs) {
    const std::string_view width = pairs ? "N/2" : "N";
    const auto refuse = [&] {
        throw RequestError(fmt::format("the tensor {} is {}; the result is [{},{}], and an epilogue's tensor is [M,{}], [{}] "
                                       "(the same in every row), [M,1] (one a row) or [1]{}",
                                       t.name, text_of(t.shape), m, n, width, width,
                                       groups      ? fmt::format(", or one for each group: [G,1,{}], [G,1,1]", width)
                                       : batch > 1 ? fmt::format(", or one of them for each product: [B,M,{0}], [B,1,{0}], [B,M,1], [B,1,1]", width) : ""));
    };
    const bool three = t.shape.size() == 3, by_product = three && (batch > 1 || groups);  // of one product they are its own
    if (t.shape.size() > 3 || (three && t.shape.front() != batch)) refuse();
    if (three) t.shape.erase(t.shape.begin());
    const std::int64_t rows = t.shape.size() == 2 ? t.shape[0] : 1, columns = t.shape.empty() ? 1 : t.shape.back();
    if ((rows != 1 && rows != m) || (columns != 1 && columns != n) || (groups && by_product && rows != 1)) refuse();
    return {t.name, t.element, rows > 1, columns > 1, by_product};
}

void check_names(const std::vector<TensorDeclaration>& tensors, bool pairs) {
    for (const TensorDeclaration& t : tensors) {
        for (std::string_view taken : {sum_name, bare_sum_name, std::string_view("a"), std::string_view("b")})
            if (t.name == taken)
                throw RequestError(fmt::format("the tensor {} of an epilogue: the name is taken; a and b are the operands, acc is "
                                               "alpha * A B + beta * C; choose another",
                                               t.name));
        for (std::string_view taken : {pair_names[0], pair_names[1], bare_pair_names[0], bare_pair_names[1]})
            if (pairs && t.name == taken)
                throw RequestError(fmt::format("the tensor {} of an epilogue of pairs: gate and up are the columns of alpha * A B; choose "
                                               "another name",
                                               t.name));
    }
}

/// The type in which the result is stored, taken on by the node itself, so that it is rounded once.
void give_type(ExpressionGraph& graph, GraphOutput& out, Element element) {
    const GraphNode node = graph.nodes[std::size_t(out.node)];
    const auto reads = [&](const GraphNode& n) { return std::ranges::find(n.operands, out.node) != n.operands.end(); };
    const bool alone = std::ranges::none_of(graph.nodes, reads);
    if (node.op != Op::input && node.op != Op::cast && node.op != Op::number && alone) {
        graph.nodes[std::size_t(out.node)].element = element;
        return;
    }
    GraphNode cast{.op = Op::cast, .operands = {out.node}, .element = element, .shape = node.shape};
    graph.nodes.push_back(std::move(cast));
    out.node = int(graph.nodes.size()) - 1;
}

/// Of each result by itself: what several have in common is computed for each.
double issue_of(const ExpressionGraph& graph) {
    const std::vector<Element> precisions = precisions_of(graph);
    double issue = 0;
    for (const GraphOutput& out : graph.outputs) {
        std::vector<bool> needed(graph.nodes.size(), false);
        needed[std::size_t(out.node)] = true;
        for (std::size_t i = graph.nodes.size(); i-- > 0;) {
            if (!needed[i]) continue;
            const GraphNode& n = graph.nodes[i];
            for (int operand : n.operands) needed[std::size_t(operand)] = true;
            const double share = n.shape.size() == 2 && n.shape.back() > 1 ? 1 : 0;  // what is one a row costs next to nothing
            if (n.op == Op::input) issue += share * conversion_cost(n.element).issue;
            else if (n.op != Op::number) issue += cost_of(n, precisions[i]).issue;
        }
    }
    return issue;
}

void check_pairs(std::int64_t n, double beta, std::string_view expression, Scales scales, Pairs pairs) {
    const auto refuse = [&](const std::string& why) { throw RequestError(fmt::format("pairs {}: {}", name_of(pairs), why)); };
    if (expression.empty()) refuse("an epilogue says what becomes of gate and up: give --epilogue \"d = silu(gate) * up\"");
    if (n % 2 != 0) refuse(fmt::format("n = {}: columns of B come in pairs; give an even n", n));
    if (beta != 0) refuse("C has a number for each column of A B, the result for each pair; leave beta out, and name what is added as a tensor [M,N/2]");
    if (scales == Scales::row || scales == Scales::block)
        refuse(fmt::format("scales {} are of single columns, and not supported yet; scales tensor work", name_of(scales)));
}

constexpr std::size_t most_results = 3;  // as MatrixConfig has it

/// Of what is added to a result of that type.
std::string_view name_of_added(Type type) { return type == Type::fp16 ? "fp16" : type == Type::fp32 ? "fp32" : "bf16"; }

/// Of groups B has its own in each.
std::vector<std::string> scale_tensors(Scales scales, bool groups) {
    if (scales == Scales::none || scales == Scales::block) return {};
    if (groups && scales == Scales::tensor) return {"scale_a:fp32[1]", "scale_b:fp32[G,1,1]"};
    if (groups) return {"scale_a:fp32[M,1]", "scale_b:fp32[G,1,N]"};
    if (scales == Scales::tensor) return {"scale_a:fp32[1]", "scale_b:fp32[1]"};
    return {"scale_a:fp32[M,1]", "scale_b:fp32[N]"};
}

std::string sum_text(double alpha, double beta, Scales scales, std::string_view bare = bare_sum_name) {
    std::string product = alpha == 1 ? std::string(bare) : fmt::format("({}) * {}", alpha, bare);
    if (scales == Scales::tensor || scales == Scales::row) product += " * scale_a * scale_b";
    return beta == 0 ? product : fmt::format("{} + ({}) * {}", product, beta, beta_name);
}

}  // namespace

std::optional<std::size_t> Epilogue::staged_operand() const {
    if (results() > 1) return std::nullopt;  // its place is one result's
    constexpr std::int64_t whole = 8;  // elements in the 16 bytes at whose multiples TMA wants rows to begin
    if (graph.nodes[std::size_t(graph.inputs.front())].shape.back() % whole != 0) return std::nullopt;
    for (std::size_t i = 0; i < operands.size(); ++i)
        if (operands[i].by_row && operands[i].by_column && bytes_of(operands[i].element) == 2) return i;
    return std::nullopt;
}

std::int64_t Epilogue::element_bytes() const {
    std::int64_t all = 0;
    for (const EpilogueOperand& o : operands)
        if (o.by_row && o.by_column) all += bytes_of(o.element);
    return all;
}

bool Epilogue::paired() const { return graph.nodes[std::size_t(graph.inputs.front())].shape.back() % 2 == 0; }

namespace {

bool drops(const ExpressionGraph& graph) {
    return std::ranges::any_of(graph.nodes, [](const GraphNode& n) { return n.op == Op::dropout; });
}

}  // namespace

int Epilogue::pair_registers(bool turned, bool staged) const {
    int registers = 0;  // of two neighbours in one aligned word its 32-bit parts, else one for each element
    for (const EpilogueOperand& o : operands) {
        if (o.is_one() || (staged && &o == &operands[*staged_operand()])) continue;
        const bool differ = turned ? o.by_row : o.by_column;
        registers += !differ ? 1 : paired() && !turned ? std::max(1, 2 * bytes_of(o.element) / 4) : 2;
    }
    return registers;
}

int Epilogue::pairs_in_flight(bool turned, bool staged) const {
    constexpr int most = 16, most_registers = 16;  // 16 pairs are an epilogue tile of 64 columns
    int pairs = drops(graph) ? 2 : most;  // Philox's rounds hold a dozen registers a pair
    while (pairs > 1 && pairs * pair_registers(turned, staged) > most_registers) pairs /= 2;
    return pairs;
}

bool Epilogue::is_light() const {
    return !drops(graph) && functions_of(graph) == 0 && std::ranges::all_of(operands, [](const EpilogueOperand& o) { return o.is_one(); });
}

// Addresses, and the values of a chain of operators, fit what a plain kernel has for its conversions and addresses; steps of a
// function take more (a compile test holds both to it with ptxas).
int Epilogue::registers(bool turned, bool staged) const {
    constexpr int of_a_function = 8;
    const auto once = std::ranges::count_if(operands, [](const EpilogueOperand& o) { return o.is_one(); });
    const int values = (functions_of(graph) > 0 ? of_a_function : 0) + 2 * values_at_once(graph);  // of two neighbours
    const int loaded = pairs_in_flight(turned, staged) * pair_registers(turned, staged);
    constexpr int of_flags = 16;  // Philox's rounds, while operands are on their way
    // The address and the row's length of a matrix beside the first.
    const auto matrices = std::ranges::count_if(operands, [](const EpilogueOperand& o) { return o.by_row && o.by_column; });
    const int more_addresses = 4 * std::max(0, int(matrices) - 1);
    return values + int(once) + loaded + more_addresses + (drops(graph) && loaded > 0 ? of_flags : 0);
}

std::string_view name_of(Scales scales) {
    return scales == Scales::none ? "none" : scales == Scales::tensor ? "tensor" : scales == Scales::row ? "row" : "block";
}

std::string_view name_of(Pairs pairs) { return pairs == Pairs::none ? "none" : pairs == Pairs::split ? "split" : "interleaved"; }

std::string SharedEpilogue::text() const {
    if (!own_) return {};
    // The graph's own text has alpha and beta.
    std::string out = own_->graph.text + " | " + own_->expression;
    if (own_->scales == Scales::block) out += " | scales of blocks";
    if (own_->pairs != Pairs::none) out += fmt::format(" | pairs {}", name_of(own_->pairs));
    for (const std::string& tensor : own_->tensors) out += " | " + tensor;
    return out;
}

SharedEpilogue product_epilogue(std::int64_t m, std::int64_t n, Type result, double alpha, double beta,
                             std::string_view expression, const std::vector<std::string>& tensors, Scales scales, std::int64_t batch,
                             std::int64_t groups, Pairs pairs) {
    if (groups > 0) batch = groups;
    if (expression == "none") expression = {};
    if (pairs != Pairs::none) check_pairs(n, beta, expression, scales, pairs);
    if (!std::isfinite(float(alpha)) || !std::isfinite(float(beta)))
        throw RequestError(fmt::format("alpha = {}, beta = {}: must be finite in fp32", alpha, beta));
    if (alpha == 1 && beta == 0 && expression.empty() && scales == Scales::none) {
        if (!tensors.empty())
            throw RequestError(fmt::format("tensor {}: there is no epilogue that reads it; give --epilogue \"d = acc + ...\" "
                                           "or --beta",
                                           tensors.front()));
        return {};
    }
    Epilogue out;
    out.expression = expression;
    out.scales = scales, out.batch = batch, out.of_groups = groups > 0, out.pairs = pairs;
    const std::int64_t columns = out.columns_of(n);  // of the result
    std::vector<TensorDeclaration> declared;
    std::vector<std::string> all = scale_tensors(scales, groups > 0);
    all.insert(all.end(), tensors.begin(), tensors.end());
    for (std::size_t i = 0; i < all.size(); ++i) {
        check_letters(all[i], groups > 0);
        const std::string text = with_sizes(all[i], batch, m, n);
        if (i >= all.size() - tensors.size()) out.tensors.push_back(text);
        declared.push_back(tensor_declaration(text));
        out.operands.push_back(operand_of(declared.back(), batch, groups > 0, m, columns, pairs != Pairs::none));
        if (declared.back().shape.size() == 3) declared.back().shape.erase(declared.back().shape.begin());
        declared.back().shape = plain_shape(declared.back().shape);
    }
    check_names(declared, pairs != Pairs::none);
    const auto is_c = [](const TensorDeclaration& t) { return t.name == beta_name; };
    if (beta != 0 && std::ranges::none_of(declared, is_c))
        throw RequestError(fmt::format("beta = {}: there is no c to add; give --tensor \"c:{}[M,N]\"", beta,
                                       name_of_added(result)));
    const bool scaled = alpha != 1 || beta != 0 || scales != Scales::none;
    std::string text;
    if (pairs != Pairs::none) {
        for (int i : {1, 0}) {
            const std::string_view name = pair_names[i], bare = bare_pair_names[i];
            declared.insert(declared.begin(), {std::string(scaled ? bare : name), Element::fp32, {m, columns}});
            if (scaled) text += fmt::format("{} = {}; ", name, sum_text(alpha, beta, scales, bare));
        }
    } else {
        declared.insert(declared.begin(), {std::string(scaled ? bare_sum_name : sum_name), Element::fp32, {m, n}});
        const std::string prefix = !scaled              ? ""
                                   : expression.empty() ? "d = "
                                                        : fmt::format("{} = ", sum_name);
        text = scaled ? prefix + sum_text(alpha, beta, scales) : "";
        if (scaled && !expression.empty()) text += "; ";
    }
    const std::size_t before = text.size();
    text += expression;
    try {
        out.graph = expression_graph(text, declared);
    } catch (const ExpressionError& error) {
        // Columns are those of what was given.
        const bool inside = error.column() > int(before) && !expression.empty();
        throw ExpressionError("epilogue: " + error.what_alone(), inside ? error.column() - int(before) : 0,
                              inside ? expression : std::string_view());
    }
    for (const GraphNode& node : out.graph.nodes)
        if (is_row_operation(node.op) || reduces_columns(node.op) || reduces_all(node.op))
            throw RequestError(fmt::format("epilogue: {} takes whole rows, and a tile has a part of each; point-wise operators "
                                           "work here, a row's are a kernel after the product",
                                           name_of(node.op)));
    for (const GraphNode& node : out.graph.nodes)
        if (node.op == Op::dropout && batch > 1 && groups == 0)
            throw RequestError("epilogue: dropout in a batch: not supported yet; a kernel after the product does it");
        else if (node.op == Op::dropout && node.shape != Shape{m, columns})
            throw RequestError(fmt::format("epilogue: dropout of {}: of what has an element for each of [{},{}] it works",
                                           text_of(node.shape), m, columns));
    if (out.results() > most_results)
        throw RequestError(fmt::format("epilogue: {} results; up to {} are stored, the first of which is D", out.results(), most_results));
    if (groups > 0 && out.results() > 1)
        throw RequestError(fmt::format("epilogue: {} results of groups: not supported yet; one is stored", out.results()));
    for (const GraphOutput& result_of : out.graph.outputs) {
        const GraphNode& stored = out.graph.nodes[std::size_t(result_of.node)];
        if (stored.shape != Shape{m, columns} || !is_floating(stored.element))
            throw RequestError(fmt::format("epilogue: {} is {} {}; it must be a number for each of [{},{}]", result_of.name,
                                           name_of(stored.element), text_of(stored.shape), m, columns));
    }
    if (is_fp8(result) && (pairs != Pairs::none || out.results() > 1))
        throw RequestError(fmt::format("epilogue: {} of 8 bits: not supported yet; bf16, fp16 or fp32 work", pairs != Pairs::none ? "results of pairs" : "several results"));
    // Results of 8 bits are rounded from fp32 where they are stored.
    for (GraphOutput& result_of : out.graph.outputs)
        give_type(out.graph, result_of, result == Type::bf16 ? Element::bf16 : result == Type::fp16 ? Element::fp16 : Element::fp32);
    out.issue = issue_of(out.graph);
    for (const EpilogueOperand& o : out.operands) out.bytes += double(o.elements(batch, m, columns)) * bytes_of(o.element);
    return SharedEpilogue(std::move(out));
}

SharedEpilogue epilogue_of_group(const Epilogue& e, std::int64_t rows, std::int64_t n, Type result, double alpha, double beta) {
    std::vector<std::string> tensors;
    for (std::size_t i = e.operands.size() - e.tensors.size(); i < e.operands.size(); ++i) {  // behind the scales
        const EpilogueOperand& o = e.operands[i];
        tensors.push_back(fmt::format("{}:{}[{}{}]", o.name, name_of(o.element), o.by_row ? "M," : "", o.by_column ? "N" : "1"));
    }
    return product_epilogue(rows, n, result, alpha, beta, e.expression, tensors, e.scales);
}

TensorInfo epilogue_tensor(const EpilogueOperand& o, std::int64_t batch, std::int64_t m, std::int64_t n) {
    TensorInfo t{.name = o.name, .type = std::string(name_of(o.element)), .element_bits = 8 * bytes_of(o.element), .extents = {},
                 .strides = {}, .role = TensorRole::in, .offset = 0};
    if (o.by_row) t.extents = {Extent::of(m), Extent::of(o.by_column ? n : 1)}, t.strides = {o.by_column ? n : 1, 1};
    else if (o.by_product) t.extents = {Extent::of(1), Extent::of(o.by_column ? n : 1)}, t.strides = {o.by_column ? n : 1, 1};
    else t.extents = {Extent::of(o.by_column ? n : 1)}, t.strides = {1};
    if (o.by_product) {
        t.extents.insert(t.extents.begin(), Extent::of(batch));
        t.strides.insert(t.strides.begin(), o.elements_of_a_product(m, n));
    }
    return t;
}

std::string declared_operand(const TensorInfo& t, const EpilogueSizes& sizes) {
    const auto refuse = [&](std::string_view why) {
        const std::string whole = sizes.places.empty() ? "" : fmt::format("[{},{}], ", fmt::join(sizes.places, ","), sizes.columns());
        throw RequestError(fmt::format("{} is the tensor of an epilogue: {}; accepted are dense ones {}[M,{}], [{}], [M,1] or [1]{}, here M is {} "
                                       "and {} {}",
                                       t.name.empty() ? "one of them" : t.name, why, whole, sizes.width(), sizes.width(),
                                       sizes.groups > 0  ? fmt::format(", or one for each group: [G,1,{}], [G,1,1]", sizes.width())
                                       : sizes.batch > 0 ? fmt::format(", or one of them for each product: [B,M,{0}], [B,1,{0}], [B,M,1], [B,1,1]", sizes.width()) : "",
                                       sizes.m, sizes.width(), sizes.columns()));
    };
    if (t.name.empty()) refuse("it has no name");
    const std::size_t axes = t.extents.size(), most = sizes.matrices() > 0 ? 3 : 2;
    const bool by_places = !sizes.places.empty() && axes == sizes.places.size() + 1;
    if (!by_places && (axes < 1 || axes > most)) refuse(fmt::format("it has {} axes", axes));
    std::vector<std::int64_t> extents;
    for (const Extent& extent : t.extents) extents.push_back(extent.most);
    const std::span<const std::int64_t> before(extents.begin(), extents.end() - 1);
    const bool at_places = by_places && std::ranges::equal(before, sizes.places);
    const std::int64_t rows = at_places ? sizes.m : by_places ? (std::ranges::all_of(before, [](std::int64_t e) { return e == 1; }) ? 1 : 0) : axes >= 2 ? before.back() : 1;
    const std::int64_t columns = extents.back();
    if ((rows != 1 && rows != sizes.m) || (columns != 1 && columns != sizes.columns())) refuse(fmt::format("it is {}", fmt::join(extents, " x ")));
    if (!by_places && axes == 3 && extents[0] != sizes.matrices()) refuse(fmt::format("it has {} matrices", extents[0]));
    std::int64_t dense = 1;
    for (std::size_t axis = axes; axis-- > 0; dense *= extents[axis])
        if (extents[axis] > 1 && t.strides[axis] != dense) refuse("it is not dense");
    // Neighbours are read as one word.
    if (columns > 1 && t.offset % 2 != 0) refuse("it begins at an odd element");
    std::string text(columns == 1 ? "1" : sizes.width());
    if (rows != 1) text.insert(0, "M,");
    else if (axes >= 2 && !by_places) text.insert(0, "1,");
    if (!by_places && axes == 3) text.insert(0, "B,");
    return fmt::format("{}:{}[{}]", t.name, t.type, text);
}

}  // namespace rooftile
