#include "cli/fuse/verbs.hpp"
#include "cli/target.hpp"
#include "rooftile/fuse/fields.hpp"
#include "cli/fuse/build_suite.hpp"

#include <fmt/core.h>

#include <cctype>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/fuse/kernel_json.hpp"
#include "rooftile/error.hpp"
#include "rooftile/fuse/device/chain.hpp"
#include "rooftile/measure/stream_kernels.hpp"
#include "rooftile/fuse/suite.hpp"
#include "rooftile/fuse/json.hpp"

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
          suite_(filtered(read_fuse_suite(given.text("suite")), given.text("filter"))),
          target_(target_of(given)),
          context_(context_of(*target_.machine, invocation.command)) {
        if (suite_.problems.empty())
            throw RequestError(fmt::format("--filter {} names no problem of {}", given.text("filter"), given.text("suite")));
        std::error_code error;
        std::filesystem::create_directories(given.text("into"), error);
        if (error) throw RequestError(fmt::format("--into {}: {}", given.text("into"), error.message()));
    }

    Json document() {
        derive_all();
        const std::vector<FuseOutcome> kernels = compile_all(plans_, 0);
        for (const FuseOutcome& kernel : kernels)
            if (const auto* error = std::get_if<Error>(&kernel)) throw *error;
        Json problems = Json::array();
        for (std::size_t i = 0; i < suite_.problems.size(); ++i)
            problems.push_back(problem_of(suite_.problems[i], places_[i], kernels));
        return {{"schema", "rooftile/builds/1"},
                {"context", context_json(context_)},
                {"machine", {{"id", context_.machine_id}, {"name", context_.machine_name}}},
                {"suite", suite_.name},
                {"roofs", roofs()},
                {"problems", std::move(problems)}};
    }

  private:
    void derive_all() {
        const FuseRequest request = fuse_request(given_, 1);
        for (const FuseSuiteProblem& p : suite_.problems) {
            const auto outcome = derive(*target_.machine, p.problem, request);
            if (const auto* none = std::get_if<FuseInfeasible>(&outcome))
                throw Error(ExitCode::no_plan, none->message);
            const FusePlan& plan = std::get<FusePlans>(outcome).plans.front();
            if (!plan.buildable) throw RequestError("plan 1 cannot be built: " + plan.why_not);
            places_.push_back({plans_.size(), unfused_kernels(p.problem)});
            plans_.push_back(plan);
            for (FusePlan& alone : unfused_plans(*target_.machine, places_.back().chain))
                plans_.push_back(std::move(alone));
        }
    }

    /// A file name of this run's own: no folder, no two alike.
    std::string new_name(std::string name) {
        for (char& c : name)
            if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') c = '-';
        if (const int before = names_[name]++) name += fmt::format("-again{}", before);
        return name;
    }

    Json problem_of(const FuseSuiteProblem& p, const Place& place, const std::vector<FuseOutcome>& kernels) {
        const SuiteLayer& layer = p.layers.front();
        const std::string name = new_name(layer.model + "-" + layer.layer);
        const auto built = [&](std::size_t index, const std::string& file) {
            const FuseKernel& kernel = std::get<FuseKernel>(kernels[index]);
            write(file, kernel.cubin());
            Json out = {{"cubin", file}};
            out.update(kernel_json(kernel));
            out["predicted_time_us"] = json_number(kernel.plan().prediction.time_us);
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
                    tensor_name(p.problem, alone.operands[o]);
            }
            const GraphNode& n = p.problem.nodes[std::size_t(alone.node)];
            one["result"] = {{"name", alone.output < 0 ? tensor_name(p.problem, alone.node)
                                                       : p.problem.outputs[std::size_t(alone.output)].name},
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
    FuseSuite suite_;
    Target target_;
    DocumentContext context_;
    std::vector<FusePlan> plans_;
    std::vector<Place> places_;
    std::map<std::string, int> names_;  ///< of files, how often each was wanted
};

}  // namespace

int build_fuse_suite(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    if (!given.has("into")) throw RequestError("--suite needs --into FOLDER");
    refuse_problem(given, fuse_operation());
    write_result(json_text(SuiteBuild(given, invocation).document()), output);
    return int(ExitCode::done);
}

}  // namespace rooftile::cli
