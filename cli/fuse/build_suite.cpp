// `build suite`: the kernels of a suite of fused expressions as files, and a document that tells another program how they
// are launched.
#include <fmt/core.h>

#include <cctype>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/measure_flags.hpp"
#include "cli/target.hpp"
#include "cli/verb.hpp"
#include "rooftile/error.hpp"
#include "rooftile/fuse/device/accesses.hpp"
#include "rooftile/fuse/device/chain.hpp"
#include "rooftile/fuse/fields.hpp"
#include "rooftile/fuse/operation.hpp"
#include "rooftile/measure/device_operation.hpp"
#include "rooftile/measure/stream_kernels.hpp"
#include "rooftile/runtime/kernel_json.hpp"

namespace rooftile::cli {
namespace {

/// One problem's place among all plans that are compiled together: the fused one, then the chain's.
struct Place {
    std::size_t first = 0;
    std::vector<UnfusedKernel> chain;
};

/// The name of a tensor of a chain: an input's or output's own, "#5" of an intermediate.
std::string tensor_name(const ExpressionGraph& problem, int node) {
    const GraphNode& n = problem.nodes[std::size_t(node)];
    if (n.op == Op::input) return n.name;
    const int output = first_output(problem, node);
    return output < 0 ? fmt::format("#{}", node) : problem.outputs[std::size_t(output)].name;
}

class SuiteBuild {
  public:
    SuiteBuild(const Given& given, const Invocation& invocation)
        : given_(given),
          suite_(filtered(read_suite(fuse_operation(), given.text("file")), given.text("filter"))),
          target_(target_of(given)),
          context_(context_of(*target_.machine, invocation.command)) {
        if (suite_.problems.empty())
            throw RequestError(fmt::format("--filter {} names no problem of {}", given.text("filter"), given.text("file")));
        std::error_code error;
        std::filesystem::create_directories(given.text("into"), error);
        if (error) throw RequestError(fmt::format("--into {}: {}", given.text("into"), error.message()));
    }

    Json document() {
        derive_all();
        const std::vector<CompiledOutcome> kernels = compile_all(plans_);
        for (const CompiledOutcome& kernel : kernels)
            if (const auto* error = std::get_if<Error>(&kernel)) throw *error;
        Json problems = Json::array();
        for (std::size_t i = 0; i < suite_.problems.size(); ++i)
            problems.push_back(problem_of(suite_.problems[i], places_[i], kernels));
        return {{"schema", "rooftile/builds/1"},
                {"context", context_json(context_)},
                {"machine", machine_json(context_)},
                {"suite", suite_.name},
                {"roofs", roofs()},
                {"problems", std::move(problems)}};
    }

  private:
    void derive_all() {
        const Own request = fuse_operation().request(given_, {.top = 1});
        for (const SuiteProblem& p : suite_.problems) {
            const PlanSet set = fuse_operation().derive(target_.machine, p.problem, request);
            if (set.refusal) throw Error(ExitCode::no_plan, set.refusal->message);
            if (!set.plans.front().buildable) throw RequestError("plan 1 cannot be built: " + set.plans.front().why_not);
            places_.push_back({plans_.size(), unfused_kernels(p.problem.own.as<ExpressionGraph>())});
            plans_.push_back(set.plans.front());
            for (FusePlan& alone : unfused_plans(*target_.machine, places_.back().chain))
                plans_.push_back(any_plan(std::move(alone)));
        }
    }

    /// A file name of this run's own: no folder, no two alike.
    std::string new_name(std::string name) {
        for (char& c : name)
            if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') c = '-';
        if (const int before = names_[name]++) name += fmt::format("-again{}", before);
        return name;
    }

    Json problem_of(const SuiteProblem& p, const Place& place, const std::vector<CompiledOutcome>& kernels) {
        const SuiteLayer& layer = p.layers.front();
        const auto& graph = p.problem.own.as<ExpressionGraph>();
        const std::string name = new_name(layer.model + "-" + layer.layer);
        const auto built = [&](std::size_t index, const std::string& file) {
            const CompiledKernel& kernel = std::get<CompiledKernel>(kernels[index]);
            write(file, kernel.code().cubin);
            Json out = {{"cubin", file}};
            out.update(kernel_json(kernel));
            out["kernel_hash"] = kernel.code().hash;
            out["launch"] = to_json(launch_record(kernel.plan().own.as<FusePlan>(), kernel.code().entry.name));
            out["predicted_time_us"] = json_number(kernel.plan().time_us);
            return out;
        };
        Json operators = Json::array();
        for (std::size_t i = 0; i < place.chain.size(); ++i) {
            const UnfusedKernel& alone = place.chain[i];
            Json one = built(place.first + 1 + i, fmt::format("{}-{}.cubin", name, i + 1));
            one["expression"] = alone.problem.text;
            one["operands"] = Json::object();  // of the chain, by the kernel's own names
            for (std::size_t o = 0; o < alone.operands.size(); ++o) {
                const int node = alone.problem.inputs[o];
                one["operands"][alone.problem.nodes[std::size_t(node)].name] =
                    tensor_name(graph, alone.operands[o]);
            }
            const GraphNode& n = graph.nodes[std::size_t(alone.node)];
            one["result"] = {{"name", alone.output < 0 ? tensor_name(graph, alone.node)
                                                       : graph.outputs[std::size_t(alone.output)].name},
                             {"type", rooftile::name_of(n.element)},
                             {"shape", n.shape}};
            operators.push_back(std::move(one));
        }
        return {{"group", layer.model},
                {"name", layer.model + " " + layer.layer},
                {"problem", problem_json(p.problem)},
                {"fused", built(place.first, name + ".cubin")},
                {"operators", std::move(operators)}};
    }

    /// The measure station's copy and read kernels of pieces, from, to and counts of 16 bytes as in
    /// kernels/measure/stream.cuh: which is the fastest depends on the size.
    Json roofs() const {
        const Source source = stream_sources(target_.machine->arch).front();
        const CachedCompile compiled = compile_cached(source);
        write("stream.cubin", compiled.compiled.cubin);
        Json out = {{"cubin", "stream.cubin"}, {"copy", Json::array()}, {"read", Json::array()}};
        std::size_t next = 0;
        for (const PieceKernel& k : piece_kernels())
            out[k.copies ? "copy" : "read"].push_back({{"kernel", compiled.compiled.lowered_names[next++]},
                                                       {"accesses", k.accesses},
                                                       {"cached", k.cached},
                                                       {"last", k.last}});
        return out;
    }

    void write(const std::string& file, const std::string& bytes) const {
        write_result(bytes, {.file = (std::filesystem::path(given_.text("into")) / file).string(), .flag = "--into"});
    }

    const Given& given_;
    Suite suite_;
    Target target_;
    DocumentContext context_;
    std::vector<Plan> plans_;
    std::vector<Place> places_;
    std::map<std::string, int> names_;  ///< of files, how often each was wanted
};

int build_suite(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    if (!given.has("file") || !given.has("into"))
        throw RequestError("build suite needs a suite's file and --into FOLDER");
    write_result(json_text(SuiteBuild(given, invocation).document()), output);
    return int(ExitCode::done);
}

std::vector<Field> suite_fields() {
    const char* group = "Options";
    const Field own[] = {
        {"file", "FILE", "A suite of fused expressions", group, FieldKind::positional},
        {"into", "FOLDER", "Where the machine code goes", group},
        {"filter", "TEXT", "Only problems whose \"group ROWSxCOLUMNS type\" holds TEXT", group}};
    std::vector<Field> fields = joined_fields({own, fuse_operation().fields(), target_fields()});
    std::erase_if(fields, [](const Field& field) { return field.group.starts_with("Problem"); });
    return fields;
}

}  // namespace

void add_build_suite(std::vector<Verb>& verbs);
void add_build_suite(std::vector<Verb>& verbs) {
    verbs.push_back(
        {.path = "build suite",
         .meaning = "Plan 1 of all fused expressions of a file, and their operators one by one, as files",
         .fields = suite_fields(),
         .documents = Documents::json_only,
         .examples = "Example:\n  rooftile build suite bench/suites/memory.toml --into kernels --machine h200-sxm\n",
         .synopsis = "FILE --into FOLDER",
         .run = build_suite});
}

}  // namespace rooftile::cli
