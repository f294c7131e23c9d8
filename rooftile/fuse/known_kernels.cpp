#include "rooftile/fuse/known_kernels.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/fuse/launch_model.hpp"
#include "rooftile/fuse/operation.hpp"

namespace rooftile {
namespace {

/// Instructions of a lane where each element's place is worked out, fitted to 9 of PyTorch's kernels on one H200 (docs/facts.md 369): of a
/// thread, of each axis by a multiplication that stands for the division, or by a division, and of each tensor.
constexpr double converting_slots = 46,  // of each tensor whose type is looked up for each element
    thread_slots = 50, axis_slots = 20, divided_axis_slots = 35, tensor_slots = 8;

/// What a framework calls it, and what it is in the language; x, z and w are read in this order.
struct KnownExpression {
    std::string_view role, operation;
    std::size_t inputs;
    std::string_view expression;
};
constexpr KnownExpression expressions[] = {{"elementwise", "abs", 1, "abs(x)"},
                                           {"elementwise", "add", 2, "x + z"},
                                           {"elementwise", "div", 2, "x / z"},
                                           {"elementwise", "erf", 1, "erf(x)"},
                                           {"elementwise", "exp", 1, "exp(x)"},
                                           {"elementwise", "gelu", 1, "gelu(x)"},
                                           {"elementwise", "log", 1, "log(x)"},
                                           {"elementwise", "maximum", 2, "maximum(x, z)"},
                                           {"elementwise", "minimum", 2, "minimum(x, z)"},
                                           {"elementwise", "mul", 2, "x * z"},
                                           {"elementwise", "neg", 1, "-x"},
                                           {"elementwise", "relu", 1, "relu(x)"},
                                           {"elementwise", "rsqrt", 1, "rsqrt(x)"},
                                           {"elementwise", "sigmoid", 1, "sigmoid(x)"},
                                           {"elementwise", "silu", 1, "silu(x)"},
                                           {"elementwise", "softplus", 1, "softplus(x)"},
                                           {"elementwise", "sqrt", 1, "sqrt(x)"},
                                           {"elementwise", "tanh", 1, "tanh(x)"},
                                           {"elementwise", "where", 3, "where(x, z, w)"},
                                           {"reduce", "softmax", 1, "softmax(x)"},
                                           {"reduce", "log softmax", 1, "log_softmax(x)"},
                                           {"reduce", "RMS norm", 1, "rmsnorm(x)"},
                                           {"reduce", "RMS norm", 2, "rmsnorm(x, z)"},
                                           {"reduce", "layer norm", 1, "layernorm(x)"},
                                           {"reduce", "layer norm", 2, "layernorm(x, z)"},
                                           {"reduce", "layer norm", 3, "layernorm(x, z, w)"},
                                           {"reduce", "sum", 1, "sum(x)"},
                                           {"reduce", "mean", 1, "mean(x)"},
                                           {"reduce", "max", 1, "max(x)"}};

/// The types that expressions have; a comparison's flags are written "bool".
bool is_element(std::string_view type) { return type == "bf16" || type == "fp16" || type == "fp32" || type == "bool"; }

std::string shape_text(const std::vector<std::int64_t>& extents) {
    std::string out;
    for (const std::int64_t extent : extents) out += (out.empty() ? "[" : ",") + std::to_string(extent);
    return out + "]";
}

/// Empty: the language has no such operator, or no such tensors.
std::optional<Problem> expression_of(const KernelName& name, const PassSizes& s) {
    if (!s.alike || s.read.empty()) return std::nullopt;
    const auto* known = std::ranges::find_if(expressions, [&](const KnownExpression& e) {
        return e.role == name.role && e.operation == name.operation && e.inputs == s.read.size();
    });
    std::string value;
    if (known != std::end(expressions)) value = known->expression;
    else if (name.role == "copy" && s.read.size() == 1 && s.read[0].type != s.written[0].type) value = "x";
    else return std::nullopt;
    // x + x: of more operands it would not be told which two are one.
    if (s.again && s.read.size() != 2) return std::nullopt;
    if (s.again) std::ranges::replace(value, 'z', 'x');
    Given given(Given::Named::by_key);
    constexpr std::string_view names[] = {"x", "z", "w"};
    std::string promoted;
    for (std::size_t i = 0; i < (s.again ? 1 : s.read.size()); ++i) {
        const PassSizes::Tensor& tensor = s.read[i];
        if (!is_element(tensor.type)) return std::nullopt;
        if (tensor.type != "bool") promoted = promoted.empty() || promoted == tensor.type ? tensor.type : "fp32";
        // What rows share has one axis.
        const bool shared_row = s.row_threads > 0 && i > 0;
        given.add("tensor", fmt::format("{}:{}{}", names[i], tensor.type,
                                        shared_row ? shape_text({tensor.extents.back()}) : shape_text(tensor.extents)));
    }
    const std::string& result = s.written[0].type;
    if (!is_element(result) || result == "bool") return std::nullopt;
    given.add("expression", fmt::format("y = {}", result == promoted ? value : fmt::format("{}({})", result, value)));
    return fuse_operation().problem(given);
}

/// Of an element: all calls of the expression.
OpCost operator_cost(const ExpressionGraph& graph, double elements) {
    OpCost sum{};
    for (const UnfusedOp& op : unfused_ops(graph, unknown_number)) sum += op.cost;
    return (1 / elements) * sum;
}

/// Bytes at the rate of a copy, instructions, and the ends that overlap with nothing: the first CTAs' loads, and the last stores.
/// `operators`: of an element, where the expression is known. A launch of less than a wave keeps too little in flight for anything to queue.
double seconds_of_bytes(const FuseHardware& hw, const PassSizes& s, const LaunchedKernel& launch, const OpCost& operators) {
    FuseWork work;
    work.dram_read_bytes = double(s.read_bytes()), work.dram_written_bytes = double(s.written_bytes());
    const double tensors = double(s.read.size() + s.written.size());
    double each = tensors * access_cost / s.vector_width;
    if (s.divided_axes > 0)
        each = thread_slots / s.thread_elements + s.divided_axes * (s.plain_division ? divided_axis_slots : axis_slots)
               + tensors * tensor_slots;
    else if (s.types_at_run_time) each = tensors * converting_slots;
    work.cost = operators;
    work.cost.issue += each;
    work.cost = double(s.elements()) * work.cost;
    const double waves = double(launch.ctas) / (hw.sms * std::max(1, launch.ctas_per_sm));
    const double ends = max_known(hw.dram_latency, 0) + std::min(1.0, waves) * max_known(hw.loaded_latency, 0);
    return fuse_time(hw, work).seconds + ends / hw.clock_hz;
}

/// Rows whose launch is known: the model of our own launches.
double seconds_of_rows(const FuseHardware& hw, const ExpressionGraph& graph, const Program& program, const PassSizes& s,
                       const LaunchedKernel& launch) {
    FuseLaunch l;
    l.vector_width = s.vector_width;
    l.vectors_per_thread = std::max(1.0, whole_up(double(s.thread_elements) / s.vector_width));
    l.threads = launch.threads, l.threads_per_row = s.row_threads;
    l.ctas_per_sm = std::max(1, launch.ctas_per_sm);
    return fuse_flow(hw, program, program_work(graph, program, s.vector_width), fused_bytes(graph), l).time.seconds;
}

class KnownPasses final : public KnownKernels {
  public:
    std::optional<Answer> answer(const Machine& machine, const KernelName& name, const LaunchedKernel& launch) const override {
        const auto* sizes = std::get_if<PassSizes>(&launch.sizes);
        if (!sizes) return std::nullopt;
        Answer out{expression_of(name, *sizes), {}, ""};
        if (!out.problem)
            out.why_not = !sizes->alike ? "its tensors are not dense in one order, as expressions take them" : "no expression is known for it";
        if (sizes->scattered) {
            out.why_not = "neighbours are not side by side in one of its tensors: how many bytes that moves is not modelled";
            return out;
        }
        std::vector<std::string> unknown;
        FuseHardware hw = fuse_hardware(machine, unknown);
        hw.launch_seconds = 0;
        double seconds = unknown_number;
        std::optional<Program> program;
        if (out.problem)
            if (auto made = fuse_program(out.problem->own.as<ExpressionGraph>()); auto* known = std::get_if<Program>(&made))
                program = std::move(*known);
        if (name.role != "reduce") {
            // Only what our own launch would compute beside its loads and stores is the kernel's, too.
            OpCost operators{};
            if (program) operators = operator_cost(out.problem->own.as<ExpressionGraph>(), double(sizes->elements()));
            seconds = seconds_of_bytes(hw, *sizes, launch, operators);
        } else if (program && program->form == FuseForm::row && sizes->row_threads > 0)
            seconds = seconds_of_rows(hw, out.problem->own.as<ExpressionGraph>(), *program, *sizes, launch);
        if (!std::isnan(seconds)) out.seconds = seconds;
        else if (out.why_not.empty() || out.problem)
            out.why_not = fmt::format("{} is unknown", unknown.empty() ? "what it computes" : unknown.front());
        return out;
    }
};

}  // namespace

const KnownKernels& known_passes() {
    static const KnownPasses known;
    return known;
}

}  // namespace rooftile
