#include "rooftile/layer/device/run.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/core/in_parallel.hpp"
#include "rooftile/core/operation.hpp"
#include "rooftile/error.hpp"
#include "rooftile/measure/bench.hpp"
#include "rooftile/measure/device_operation.hpp"

namespace rooftile {
namespace {

constexpr std::string_view choices = "choices", offsets = "offsets";

/// Of names that a part reads and writes, in its operation's order.
template <class Visit>
void for_each_tensor(const LayerPart& part, const Visit& visit) {
    for (const PartTensor& tensor : part.reads) visit(tensor, false);
    for (const PartTensor& tensor : part.writes) visit(tensor, true);
}

/// Of a part that an operation plans, in its order.
std::vector<TensorInfo> infos_of(const RunnablePart& part) {
    return part.kernel ? part.kernel->plan().operation->tensors(part.kernel->plan().problem) : std::vector<TensorInfo>();
}

RunnablePart made(const std::shared_ptr<const Machine>& machine, const ModelConfig& model, const LayerStep& step, const LayerPart& part) {
    RunnablePart out{.part = part, .kernel = {}, .small = {}, .label = {}, .notes = {}};
    if (!part.why_not.empty()) throw RequestError(fmt::format("{}: {}", part.name, part.why_not));
    if (part.operation.empty()) {
        out.small = small_kernel(part, model, step, machine->arch);
        if (!out.small)
            throw RequestError(fmt::format("{}: no kernel runs this part of a layer yet; `rooftile plan layer` takes it", part.name));
        out.label = out.small->label();
        return out;
    }
    const Operation* operation = find_operation(part.operation);
    if (!operation) throw RequestError(fmt::format("{}: this build has no operation {}", part.name, part.operation));
    PlanDefaults defaults;
    defaults.buildable_only = true;
    const auto plans_of = [&](const Given& request) {
        return operation->derive(machine, problem_with_work(*operation, request), operation->request(request, defaults));
    };
    PlanSet plans;
    // Weights are there before the layer begins: a product may ask for them while the kernel in front still runs. Some products cannot.
    if (part.operation == "gemm" && !part.request.has("groups")) {
        Given early = part.request;
        early.add_default("early_weights", "on");
        plans = plans_of(early);
    }
    if (plans.plans.empty()) plans = plans_of(part.request);
    if (plans.plans.empty())
        throw RequestError(fmt::format("{}: {}", part.name, plans.refusal ? plans.refusal->message : "nothing is planned for it"));
    CompileOptions options;
    options.dependent = true;
    out.kernel = compile_first(plans, out.notes, [&](const Plan& plan) { return compile(plan, options); });
    const Plan& plan = out.kernel->plan();
    out.label = operation->label(plan);
    return out;
}

}  // namespace

std::vector<RunnablePart> compile_layer(const std::shared_ptr<const Machine>& machine, const ModelConfig& model, const LayerStep& step,
                                        const std::vector<LayerPart>& parts, unsigned threads) {
    std::vector<RunnablePart> out(parts.size());
    in_parallel(parts.size(), threads, [&](std::size_t i) { out[i] = made(machine, model, step, parts[i]); });
    return out;
}

LayerRun::LayerRun(std::vector<RunnablePart> kernels, const ModelConfig& model, const LayerKind& kind, const LayerStep& step,
                   std::int64_t sets, std::uint64_t seed)
    : kernels_(std::move(kernels)),
      model_(model),
      step_(step),
      reference_(model, kind, step, Driver::instance().device(current_device()).arch()) {
    for (const RunnablePart& kernel : kernels_) add_tensors(kernel);
    std::int64_t shared_bytes = 0;
    std::uint64_t stream = 1;
    for (auto& [name, tensor] : tensors_) {
        (tensor.kind == TensorKind::activations ? shared_bytes : set_bytes_) += std::int64_t(tensor.bytes);
        tensor.fill.seed = seed, tensor.fill.stream = stream++;
    }
    // Half of what is free is left to the reference, whose numbers have eight bytes.
    const std::int64_t free = share_of_free(0.5) - shared_bytes;
    const std::int64_t l2_bytes = Driver::instance().device(current_device()).l2_bytes;
    sets_ = sets > 0 ? sets : rotated_sets(set_bytes_, l2_bytes, l2_factor, free);
    if (sets_ < 1 || sets_ * set_bytes_ > free)
        throw Error(ExitCode::gpu_failed,
                    fmt::format("{} layers of {} B of weights and caches, and {} B that pass between kernels, are more than half of the "
                                "free GPU memory; take a smaller batch or context, or free some",
                                std::max<std::int64_t>(sets_, 1), set_bytes_, shared_bytes));
    for (auto& [name, tensor] : tensors_)
        for (std::int64_t set = 0; set < (tensor.kind == TensorKind::activations ? 1 : sets_); ++set)
            tensor.sets.emplace_back(tensor.bytes);
    make_turns();
    lengths_ = DeviceBuffer(std::size_t(step.sequences()) * sizeof(int));
    set_lengths(int(step.context));

    for (const RunnablePart& kernel : kernels_) {
        Launched& to = launched_.emplace_back();
        const std::vector<TensorInfo> infos = infos_of(kernel);
        for (std::int64_t set = 0; set < sets_; ++set) {
            std::vector<void*>& pointers = to.pointers.emplace_back();
            for_each_tensor(kernel.part, [&](const PartTensor& tensor, bool) {
                // Where experts' rows begin is a tensor of the product and a part of what routing writes.
                if (pointers.size() < infos.size() && infos[pointers.size()].name == offsets)
                    pointers.push_back(choices_at(this->tensor(choices, set), model, step).offsets);
                pointers.push_back(static_cast<char*>(this->tensor(tensor.name, set)) + std::int64_t(tensor.offset_bytes));
            });
        }
        if (kernel.small) {
            kernel.small->load();
            continue;
        }
        kernel.kernel->load();
        to.workspace = DeviceBuffer(std::max<std::size_t>(kernel.kernel->workspace_bytes(), 1));
        fill_bytes(to.workspace.address(), 0, to.workspace.bytes(), nullptr);
    }
    synchronize(Stream(nullptr));  // launches go into streams that do not wait for this one
    fill();
}

/// What parts call by the same name is the same memory, as large as the largest of them says.
void LayerRun::add_tensors(const RunnablePart& kernel) {
    const std::vector<TensorInfo> infos = infos_of(kernel);
    std::size_t at = 0;
    for_each_tensor(kernel.part, [&](const PartTensor& tensor, bool written) {
        Tensor& to = tensors_[tensor.name];
        to.kind = tensor.kind;
        to.written |= written;
        std::size_t bytes = std::size_t(tensor.bytes);
        if (tensor.name == choices) bytes = choices_bytes(model_, step_);
        if (kernel.kernel) {
            if (at < infos.size() && infos[at].name == offsets) ++at;
            if (at >= infos.size())
                throw RequestError(fmt::format("{} names more tensors than the {} of its operation", kernel.part.name, infos.size()));
            bytes = std::size_t(spanned_elements(infos[at]) * infos[at].element_bits / 8);
            ++at;
        }
        to.bytes = std::max(to.bytes, bytes + std::size_t(tensor.offset_bytes));
        if (tensor.kind != TensorKind::weights) return;
        const auto ends = [&](std::string_view what) { return tensor.name.ends_with(what); };
        if (ends("bias")) return void(to.fill.deviation = 0.25);
        if (tensor.name.find("norm") != tensor.name.npos) return void(to.fill = {.mean = 1, .deviation = 0.25});
        // Sums of k products of numbers about 1 are about 1 again.
        const double k = std::stod(kernel.part.request.text("k"));
        to.fill.deviation = 1 / std::sqrt(k);
        // A mean over many keys is small: what it adds to the residual must not be lost there.
        const double keys = double(step_.prefill > 0 ? step_.context / 2 : step_.context);
        if (tensor.name == "o.weight") to.fill.deviation *= std::max(1.0, std::sqrt(keys / std::exp(1.0)));
    });
}

void LayerRun::make_turns() {
    const std::vector<double> frequencies = rotary_frequencies(model_, step_.context);
    const double amplitude = model_.rope_scaling.amplitude;
    std::vector<float> turns;
    for (std::int64_t position = 0; position < step_.context; ++position)
        for (const double frequency : frequencies) {
            const double angle = double(position) * frequency;
            turns.push_back(float(amplitude * std::cos(angle))),
                turns.push_back(float(amplitude * std::sin(angle)));
        }
    turns_ = DeviceBuffer(turns.size() * sizeof(float));
    copy_to_device(turns_.address(), turns.data(), turns.size() * sizeof(float));
}

void LayerRun::set_lengths(int keys) const {
    const std::vector<int> lengths(lengths_.bytes() / sizeof(int), keys);
    copy_to_device(lengths_.address(), lengths.data(), lengths_.bytes());
}

void* LayerRun::tensor(std::string_view name, std::int64_t set) const {
    const auto found = tensors_.find(std::string(name));
    if (found == tensors_.end()) throw RequestError(fmt::format("this layer has no tensor {}", name));
    const std::vector<DeviceBuffer>& sets = found->second.sets;
    return sets.at(sets.size() == 1 ? 0 : std::size_t(set)).data();
}

LayerFill LayerRun::fill_of(std::string_view name, std::int64_t set) const {
    LayerFill fill = tensors_.at(std::string(name)).fill;
    fill.stream += std::uint64_t(set) * tensors_.size();
    return fill;
}

void LayerRun::fill() const {
    constexpr std::int64_t element_bytes = 2;
    const StreamOwner stream;
    for (const auto& [name, tensor] : tensors_)
        for (std::size_t set = 0; set < tensor.sets.size(); ++set) {
            // What kernels write is no number before they do: a row that one leaves out is seen.
            if (tensor.kind == TensorKind::activations && tensor.written)
                fill_bytes(tensor.sets[set].address(), 0xff, tensor.bytes, stream);
            else
                reference_.fill(stream, tensor.sets[set].data(), std::int64_t(tensor.bytes) / element_bytes,
                                fill_of(name, std::int64_t(set)));
        }
    stream.synchronize();
}

void LayerRun::launch(std::size_t i, Stream stream, std::int64_t set) const {
    const RunnablePart& kernel = kernels_[i];
    const Launched& with = launched_[i];
    const std::vector<void*>& tensors = with.pointers[std::size_t(set)];
    if (kernel.kernel) return kernel.kernel->launch(stream, tensors, with.workspace.data());
    kernel.small->launch(stream, tensors, {static_cast<const float*>(turns_.data()), static_cast<const int*>(lengths_.data())});
}

void LayerRun::launch(Stream stream, std::int64_t set) const {
    for (std::size_t i = 0; i < kernels_.size(); ++i) launch(i, stream, set);
}

std::vector<LayerError> LayerRun::verify() const {
    fill();
    const StreamOwner stream;
    begin_capture(stream);
    for (std::int64_t set = 0; set < sets_; ++set) launch(stream, set);
    const Graph graph = end_capture(stream);
    graph.launch(stream);
    stream.synchronize();
    const std::int64_t last = sets_ - 1;
    return reference_.judge(
        stream, [&](std::string_view name) { return tensor(name, last); }, [&](std::string_view name) { return fill_of(name, last); });
}

std::vector<unsigned char> LayerRun::result() const {
    const Tensor& last = tensors_.at("x_out");
    std::vector<unsigned char> bits(last.bytes);
    copy_to_host(bits.data(), last.sets.front().address(), last.bytes);
    return bits;
}

}  // namespace rooftile
