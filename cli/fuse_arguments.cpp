#include "cli/fuse_arguments.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/output.hpp"
#include "cli/values.hpp"
#include "rooftile/error.hpp"
#include "rooftile/expression/expression.hpp"
#include "rooftile/fuse/json.hpp"

namespace rooftile::cli {
namespace {

constexpr std::string_view homes[] = {"nowhere", "registers", "shared", "twice", "ring"};
constexpr std::string_view switches[] = {"off", "on"};

void add(CLI::App& verb, const char* group, const char* name, std::string& value, const char* type_name,
         const char* meaning) {
    verb.add_option(name, value, meaning)->type_name(type_name)->check(refuse_empty)->group(group);
}

std::optional<int> number_if(std::string_view flag, const std::string& text, int most, int least = 1) {
    if (text.empty()) return std::nullopt;
    return int(whole_number(flag, text, least, most));
}

}  // namespace

void add_fuse_flags(CLI::App& verb, FuseFlags& f, int default_top) {
    const char* problem = "Problem";
    verb.add_option("EXPRESSION", f.expression, "\"y = gelu(x + bias)\"; statements are parted by \";\"")
        ->group(problem);
    verb.add_option("--tensor", f.tensors,
                    "A tensor of the expression, as --tensor \"x:bf16[8192,8192]\"; repeatable")
        ->type_name("NAME:TYPE[SHAPE]")
        ->check(refuse_empty)
        ->take_all()
        ->expected(1)
        ->group(problem);
    add(verb, problem, "--alignment", f.alignment, "BYTES",
        "What every tensor's address is a multiple of; default 256");
    const char* machine = "Machine";
    add(verb, machine, "--machine", f.machine.machine, "ID|FILE",
        "One of `rooftile machine list`, or a machine file; default: the GPU here, else h100-sxm");
    verb.add_option("--set", f.machine.set,
                    "Replace one number, as in --set \"dram.bandwidth=4 TB/s\"; repeatable")
        ->type_name("KEY=VALUE")
        ->check(refuse_empty)
        ->take_all()
        ->expected(1)
        ->group(machine);
    const char* fixed = "Fixed parameters (the rest is searched)";
    add(verb, fixed, "--width", f.width, "N", "Elements of a vector");
    add(verb, fixed, "--items", f.items, "N", "Vectors of each full tensor that a thread has in flight");
    add(verb, fixed, "--threads", f.threads, "N", "Threads of a CTA");
    add(verb, fixed, "--threads-per-row", f.threads_per_row, "N", "Threads of a CTA that share a row");
    add(verb, fixed, "--cluster", f.cluster, "N", "CTAs that share a row");
    add(verb, fixed, "--stages", f.stages, "N",
        "Slots of the ring, or turns of rows at once that shared memory holds");
    add(verb, fixed, "--reducing", f.reducing, "N",
        "Threads of a ring's CTA that only reduce; 0: all do both");
    add(verb, fixed, "--home", f.home, "NAME",
        "Where a row waits between passes: registers, shared, ring or twice (read again)");
    add(verb, fixed, "--persistent", f.persistent, "on|off", "One wave of CTAs walks everything");
    add(verb, "Output", "--top", f.top, "N", default_top == 8 ? "Plans to keep; default 8" : "Plans to keep");
}

FuseProblem problem_of(const FuseFlags& f) {
    if (f.expression.empty())
        throw RequestError(
            "missing the expression: rooftile plan fuse \"y = gelu(x)\" --tensor \"x:bf16[8192,8192]\"");
    std::vector<TensorDeclaration> tensors;
    for (const std::string& text : f.tensors) tensors.push_back(tensor_declaration(text));
    return expression_graph(f.expression, tensors);
}

FuseRequest request_of(const FuseFlags& f, int default_top) {
    constexpr int most_small = 1024, most_plans = 256, most_width = 16;
    FuseRequest r;
    r.width = number_if("--width", f.width, most_width);
    r.items = number_if("--items", f.items, most_small);
    r.threads = number_if("--threads", f.threads, most_small);
    r.threads_per_row = number_if("--threads-per-row", f.threads_per_row, most_small);
    r.cluster = number_if("--cluster", f.cluster, most_small);
    r.stages = number_if("--stages", f.stages, most_small);
    r.reducing = number_if("--reducing", f.reducing, most_small, 0);
    if (!f.home.empty()) r.home = FuseHome(one_of("--home", f.home, homes));
    if (!f.persistent.empty()) r.persistent = one_of("--persistent", f.persistent, switches) == 1;
    r.alignment = number_if("--alignment", f.alignment, most_small).value_or(r.alignment);
    r.top = number_if("--top", f.top, most_plans).value_or(default_top);
    return r;
}

}  // namespace rooftile::cli
