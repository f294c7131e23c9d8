// From a request to a StepRequest.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/expression/expression.hpp"
#include "rooftile/expression/tree.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/measure/source_module.hpp"
#include "rooftile/step/step.hpp"

namespace rooftile {
namespace {

/// Types of tensors beyond those of expressions.
constexpr std::pair<std::string_view, int> more_types[] = {{"int8", 1},   {"uint8", 1}, {"int16", 2},  {"uint16", 2}, {"int32", 4},
                                                           {"uint32", 4}, {"int64", 8}, {"uint64", 8}, {"fp64", 8}};

StepTensor step_tensor(const TensorDeclaration& declared) {
    return {declared.name, std::string(name_of(declared.element)), bytes_of(declared.element), declared.element, declared.shape, {}};
}

StepTensor step_tensor(const std::string& text) {
    const std::size_t colon = text.find(':'), bracket = std::min(text.find('[', colon), text.size());
    for (const auto& [name, bytes] : more_types)
        if (colon != text.npos && text.substr(colon + 1, bracket - colon - 1) == name) {
            StepTensor out = step_tensor(tensor_declaration(text.substr(0, colon + 1) + "fp32" + text.substr(bracket)));
            out.type = name, out.bytes = bytes, out.element.reset();
            return out;
        }
    return step_tensor(tensor_declaration(text));
}

/// "3", "3,1", "3,1,0" of a grid or block.
std::int64_t place(const Given& given, std::string_view key, unsigned x, unsigned y, unsigned z) {
    std::string text = given.text(key);
    std::ranges::replace(text, ',', 'x');
    const auto parts = whole_numbers(given.name(key), text,
                                     std::ranges::count(text, 'x') == 0   ? "X"
                                     : std::ranges::count(text, 'x') == 1 ? "XxY"
                                                                          : "XxYxZ",
                                     0, max_grid_extents[0]);
    const unsigned extents[] = {x, y, z};
    std::int64_t index = 0, step = 1;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (parts[i] >= extents[i]) throw RequestError(fmt::format("{} {}: there are {}x{}x{}", given.name(key), given.text(key), x, y, z));
        index += parts[i] * step, step *= extents[i];
    }
    return index;
}

void read_watches(const Given& given, StepRequest& request) {
    for (const std::string& text : given.list("watch")) {
        const std::size_t colon = text.find(':');
        constexpr std::int64_t most_lines = 1'000'000;
        if (colon == text.npos || colon + 1 == text.size())
            throw RequestError(fmt::format("--watch {}: accepted: LINE:EXPRESSION, as 12:sum", text));
        request.watches.push_back({int(whole_number("--watch", text.substr(0, colon), 1, most_lines)), text.substr(colon + 1)});
    }
}

void read_fills(const Given& given, StepRequest& request) {
    for (const std::string& text : given.list("fill")) {
        const std::size_t equals = std::min(text.find('='), text.size());
        const auto tensor = std::ranges::find(request.tensors, text.substr(0, equals), &StepTensor::name);
        if (equals == text.size() || tensor == request.tensors.end())
            throw RequestError(fmt::format("--fill {}: accepted: a tensor's name, =, and normal, index, below:N or a number", text));
        tensor->fill = text.substr(equals + 1);
    }
}

/// Names that the statements of the reference give: outputs, where no later one reads them.
void read_reference(const Given& given, StepRequest& request) {
    const std::string& text = given.text("reference");
    std::vector<std::string> written;
    for (const Statement& s : parse_expression(text).statements) written.emplace_back(s.name);
    std::vector<TensorDeclaration> read;
    for (const std::string& tensor : given.list("tensor"))
        if (const StepTensor t = step_tensor(tensor); std::ranges::find(written, t.name) == written.end()) {
            if (!t.element) throw RequestError(fmt::format("--tensor {}: a reference reads bool, int64, fp16, bf16 and fp32", tensor));
            read.push_back({t.name, *t.element, t.shape});
        }
    request.reference = expression_graph(text, read);
    for (const GraphOutput& o : request.reference->outputs) {
        const GraphNode& node = request.reference->nodes[std::size_t(o.node)];
        const auto tensor = std::ranges::find(request.tensors, o.name, &StepTensor::name);
        if (tensor == request.tensors.end()) request.tensors.push_back(step_tensor(TensorDeclaration{o.name, node.element, node.shape}));
        else if (tensor->element != node.element || tensor->shape != node.shape)
            throw RequestError(fmt::format("--tensor {0}: the reference makes it {1}{2}, not {3}{4}", o.name, name_of(node.element),
                                           text_of(node.shape), tensor->type, text_of(tensor->shape)));
    }
}

}  // namespace

std::span<const Field> step_fields() {
    static const std::vector<Field> fields = [] {
        std::vector<Field> out;
        for (const Field& field : source_fields())
            if (field.key != "other" && field.key != "cluster") out.push_back(field);
        for (Field& field : out) {
            if (field.key == "reference") field.meaning = "What the results must be, compared where all CTAs ran: \"y = gelu(x)\"";
            if (field.key == "tensor") field.meaning += ". Types: bool, (u)int8 ... 64, fp16, bf16, fp32, fp64";
            if (field.key == "timeout") field.meaning = "What runs longer is an endless loop; default 10";
        }
        const char* group = "Stepping";
        out.push_back(
            {"cta", "X,Y,Z", "Step this CTA alone; default: all, the first and the last before the others", group, FieldKind::text});
        out.push_back({"thread", "X,Y,Z", "The thread whose values --watch prints; default 0", group, FieldKind::text});
        out.push_back(
            {"watch", "LINE:EXPRESSION", "Print it each time the statement that ends in LINE has run; repeatable", group, FieldKind::list});
        out.push_back(
            {"fill", "NAME=HOW",
             "A tensor's values: normal, index, below:N or a number; default: normal, integers 0, outputs of a reference NaN; repeatable",
             group, FieldKind::list});
        out.push_back({"seed", "N", "Seed of the random values; default 0", group});
        return out;
    }();
    return fields;
}

StepRequest step_request(const Given& given) {
    StepRequest request;
    request.source = source_code_request(given);
    request.whole = read_whole_file(request.source.path);
    request.source.launch = source_launch(given);
    if (given.has("timeout")) request.source.timeout_seconds = source_seconds(given.name("timeout"), given.text("timeout"));
    for (const std::string& text : given.list("tensor")) {
        request.tensors.push_back(step_tensor(text));
        for (std::size_t i = 0; i + 1 < request.tensors.size(); ++i)
            if (request.tensors[i].name == request.tensors.back().name)
                throw RequestError(fmt::format("--tensor {} is given twice", request.tensors[i].name));
    }
    if (given.has("reference")) read_reference(given, request);
    constexpr std::size_t most_tensors = 64, most_bytes = std::size_t{16} << 30;
    double bytes = 0;
    for (std::size_t i = 0; i < request.tensors.size(); ++i) {
        const StepTensor& t = request.tensors[i];
        bytes += double(elements_of(t.shape)) * t.bytes;
        request.source.parameters.push_back({.name = t.name, .tensor = int(i)});
    }
    if (request.tensors.size() > most_tensors || bytes > double(most_bytes))
        throw RequestError(fmt::format("{} tensors of {} B together: at most {} of {} B can be stepped; smaller ones show the same faults",
                                       request.tensors.size(), bytes, most_tensors, most_bytes));
    for (const std::string& text : given.list("arg")) request.source.parameters.push_back(source_number(given.name("arg"), text));
    const Launch& launch = request.source.launch;
    if (given.has("cta")) request.cta = place(given, "cta", launch.grid_x, launch.grid_y, launch.grid_z);
    if (given.has("thread")) request.thread = int(place(given, "thread", launch.block_x, launch.block_y, launch.block_z));
    if (given.has("seed")) request.seed = seed_number(given.name("seed"), given.text("seed"));
    read_watches(given, request);
    read_fills(given, request);
    return request;
}

}  // namespace rooftile
