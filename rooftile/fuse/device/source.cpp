#include "rooftile/fuse/device/source.hpp"

#include <algorithm>
#include <cassert>
#include <cctype>
#include <cstdlib>

#include "rooftile/error.hpp"
#include "rooftile/fuse/cost.hpp"
#include "rooftile/fuse/device/source_writer.hpp"
#include "rooftile/fuse/row_vectors.hpp"
#include "rooftile/fuse/stacks.hpp"
#include "rooftile/fuse/staging.hpp"

namespace rooftile {
namespace {

std::string wrapped_comment(const std::string& text) {
    constexpr size_t columns = 100;
    std::string out = "//";
    size_t used = 2;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find(' ', at), text.size());
        if (used + 1 + end - at > columns && used > 2) {
            out += "\n//   ";
            used = 5;
        }
        out += " " + text.substr(at, end - at);
        used += 1 + end - at;
        at = end + 1;
    }
    return out + "\n";
}

}  // namespace

SourceWriter::SourceWriter(const FusePlan& p)
    : plan(p), program(p.program), config(p.config), values(p.problem, p.program) {
    index = counts_in_32_bits(program, config.vector_width) ? "unsigned" : "long long";
}

std::string SourceWriter::type_of_load(int i) const { return std::string(kernel_type(value(i).element)); }
std::string SourceWriter::type_of_store(int store) const {
    const GraphOutput& o = plan.problem.outputs[size_t(program.stores[size_t(store)].output)];
    return std::string(kernel_type(plan.problem.nodes[size_t(o.node)].element));
}

std::vector<int> SourceWriter::values_where(bool (*wanted)(const ProgramValue&)) const {
    std::vector<int> out;
    for (size_t i = 0; i < program.values.size(); ++i)
        if (wanted(program.values[i])) out.push_back(int(i));
    return out;
}

std::string SourceWriter::row_text(const Access& access, std::string_view row) const {
    if (access.bands.empty()) return "0";
    if (access.plain_rows()) return std::string(row);
    std::string out;
    for (const RowBand& band : access.bands) {
        std::string term(row);
        if (band.divide != 1) term += fmt::format(" / {}", band.divide);
        if (band.modulo != 0) term += fmt::format(" % {}", band.modulo);
        if (band.multiply != 1) term += fmt::format(" * {}", band.multiply);
        out += (out.empty() ? "" : " + ") + term;
    }
    return "(" + out + ")";
}

std::string_view SourceWriter::read_policy() const {
    return mostly_reads(plan.problem) ? "" : "<CachePolicy::evict_last>";
}

void SourceWriter::preamble(std::string_view story) {
    raw(wrapped_comment(plan.problem.text));
    const auto tensor = [&](const GraphNode& n, const std::string& name) {
        line(0, "//   {:<12} {}{}", name, name_of(n.element), text_of(n.shape));
    };
    for (int i : plan.problem.inputs)
        tensor(plan.problem.nodes[size_t(i)], plan.problem.nodes[size_t(i)].name);
    for (const GraphOutput& o : plan.problem.outputs)
        tensor(plan.problem.nodes[size_t(o.node)], o.name + " (out)");
    raw(wrapped_comment(std::string(story)));
    // No more than is used: what stands in a header costs the compiler time.
    const bool drops = !values_where([](const ProgramValue& v) { return v.op == Op::dropout; }).empty();
    std::vector<std::string_view> headers;
    if (drops) headers.push_back("expression/dropout.cuh");
    headers.push_back("expression/math.cuh");
    headers.push_back("fuse/arguments.hpp");
    if (program.form == FuseForm::columns) headers.push_back("fuse/columns.cuh");
    headers.push_back("fuse/pack.cuh");
    if (program.form != FuseForm::pointwise) headers.push_back("fuse/reduce.cuh");
    if (config.row_storage == RowStorage::pipelined) headers.push_back("fuse/ring.cuh");
    if ((rows_off_vectors(program, config.vector_width) && program.form != FuseForm::columns)
        || gathered_vectors(program, config) > 0)
        headers.push_back("fuse/row_span.cuh");
    if (grid_resident_rows(config)) headers.push_back("fuse/staged.cuh");
    if (grid_resident_rows(config)
        || (config.row_storage == RowStorage::pipelined && has_epilogue_rows(program)))
        headers.push_back("fuse/streamed.cuh");
    if (program.form == FuseForm::row) headers.push_back("fuse/team.cuh");
    if (program.form == FuseForm::whole) headers.push_back("fuse/whole.cuh");
    for (std::string_view header : headers) line(0, "#include \"kernels/{}\"", header);
    raw("\nnamespace rooftile::fuse {\n\n");
    line(0, "struct Tensors {{");
    for (int i : values_where([](const ProgramValue& v) { return v.kind == ValueKind::load; }))
        line(1, "const {}* {};", type_of_load(i), values.input(i));
    for (size_t i = 0; i < program.stores.size(); ++i)
        line(1, "{}* {};", type_of_store(int(i)), values.output(int(i)));
    for (int i : values_where([](const ProgramValue& v) { return v.op == Op::dropout; }))
        line(1, "DropoutKey {};", values.key(i));
    line(0, "}};\n");
}

void SourceWriter::kernel_head(const std::string& bounds) {
    line(0, "__global__ void __launch_bounds__({}) {}(const Tensors t, const FuseSizes size) {{", bounds,
         fuse_kernel_name(plan.problem));
}

void SourceWriter::closing() { raw("}\n\n}  // namespace rooftile::fuse\n"); }

void SourceWriter::keep_one(int depth, int dropout, std::string_view row) {
    line(depth, "bool {}[1];", values.keep(dropout));
    line(depth, "kept({}, {}, t.{});", values.keep(dropout), row_text(value(dropout).access, row),
         values.key(dropout));
}

void SourceWriter::uniform_values(int depth, std::set<int>& known, const std::vector<int>& wanted) {
    std::vector<int> targets;
    for (int i : values.needed(wanted, known)) {
        const ProgramValue& v = value(i);
        if (v.level != Level::uniform || v.pass > 0) continue;
        if (v.kind == ValueKind::load) {
            line(depth, "const {} {} = widened(*t.{});", values.is_bool(i) ? "bool" : "float", values.name(i),
                 values.input(i));
            known.insert(i);
        } else if (v.kind == ValueKind::compute) {
            if (v.op == Op::dropout) keep_one(depth, i, "0");
            targets.push_back(i);
        }
    }
    raw(values.statements(targets, known, std::string(size_t(depth) * 4, ' '), "[0]"));
}

std::string fuse_kernel_name(const ExpressionGraph& graph) {
    constexpr size_t max_words = 5;
    std::vector<std::string> words;
    for (const GraphNode& n : graph.nodes) {
        if (n.op == Op::input || n.op == Op::number) continue;
        const std::string word(identifier_of(n.op));
        if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
    }
    std::string name = "fuse";
    if (words.empty()) name += "_copy";
    for (size_t i = 0; i < std::min(words.size(), max_words); ++i) name += "_" + words[i];
    return name;
}

int whole_reductions(const Program& program) {
    return int(std::count_if(program.values.begin(), program.values.end(), [](const ProgramValue& v) {
        return v.kind == ValueKind::reduce && v.level == Level::uniform;
    }));
}

std::string fuse_text(const FusePlan& plan) {
    if (!plan.buildable) throw RequestError("this plan cannot be built: " + plan.why_not);
    if (plan.program.form == FuseForm::columns) return columns_text(plan);
    return plan.program.form == FuseForm::row ? rows_text(plan) : pointwise_text(plan);
}

Source fuse_source(const FusePlan& plan) {
    Source source;
    source.name = fuse_kernel_name(plan.problem);
    source.text = fuse_text(plan);
    source.name_expressions = {"rooftile::fuse::" + source.name};
    source.arch = nvrtc_arch(plan.arch);
    return source;
}

bool may_be_dependent(const FusePlan& plan) {
    constexpr int first_arch = 90;  // PTX ISA, "griddepcontrol"
    constexpr std::string_view prefix = "sm_";
    return plan.arch.starts_with(prefix) && std::atoi(plan.arch.c_str() + prefix.size()) >= first_arch && !reduces_across_grid(plan.config);
}

Source dependent_source(const FusePlan& plan) {
    Source source = fuse_source(plan);
    const std::string head = "const FuseSizes size) {\n";
    const std::size_t at = source.text.find(head);
    assert(at != source.text.npos);  // kernel_head() writes it
    source.text.insert(at + head.size(), "    ptx::launch_dependents();\n    ptx::wait_for_dependencies();\n");
    source.text.insert(0, "#include \"kernels/ptx/sync.cuh\"\n");
    return source;
}

}  // namespace rooftile
