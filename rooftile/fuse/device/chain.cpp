#include "rooftile/fuse/device/chain.hpp"

#include <algorithm>

#include "rooftile/core/in_parallel.hpp"

namespace rooftile {

std::vector<FuseOutcome> compile_all(const std::vector<FusePlan>& plans, unsigned threads) {
    std::vector<FuseOutcome> built(plans.size(), Error(ExitCode::internal, "not compiled"));
    in_parallel(plans.size(), threads, [&](std::size_t i) {
        try {
            built[i] = compile(plans[i]);
        } catch (const Error& error) { built[i] = error; }
    });
    return built;
}

FuseRunnable::FuseRunnable(FuseKernel kernel) : kernel_(std::move(kernel)) {
    kernel_.load();
    if (const std::size_t bytes = kernel_.workspace_bytes()) {
        workspace_ = std::make_shared<DeviceBuffer>(bytes);
        fill_bytes(workspace_->address(), 0, bytes, nullptr);
        synchronize(Stream(nullptr));  // launches go into streams that do not wait for this one
    }
}

std::vector<FusePlan> unfused_plans(const Machine& machine, const std::vector<UnfusedKernel>& chain) {
    std::vector<FusePlan> plans;
    for (const UnfusedKernel& k : chain) {
        auto outcome = derive(machine, k.problem, {.top = 1});
        auto* found = std::get_if<FusePlans>(&outcome);
        if (!found) throw RequestError(std::get<FuseInfeasible>(outcome).message);
        plans.push_back(std::move(found->plans.front()));
    }
    return plans;
}

UnfusedChain::UnfusedChain(const ExpressionGraph& problem, std::vector<UnfusedKernel> chain,
                           const std::vector<FuseOutcome>& kernels)
    : problem_(problem), chain_(std::move(chain)) {
    buffers_.resize(problem.nodes.size());
    for (std::size_t i = 0; i < chain_.size(); ++i) {
        if (const auto* error = std::get_if<Error>(&kernels[i])) throw *error;
        kernels_.emplace_back(std::get<FuseKernel>(kernels[i]));
        if (chain_[i].output >= 0) continue;  // goes nowhere but there
        const auto node = std::size_t(chain_[i].node);
        buffers_[node] = DeviceBuffer(std::max<std::size_t>(16, std::size_t(bytes_of(problem.nodes[node]))));
    }
}

void UnfusedChain::launch(Stream stream, std::span<const void* const> inputs,
                          std::span<void* const> outputs) const {
    const auto result_of = [&](int node) {
        const int output = first_output(problem_, node);
        return output < 0 ? buffers_[std::size_t(node)].data() : outputs[std::size_t(output)];
    };
    const auto tensor = [&](int node) -> const void* {
        for (std::size_t i = 0; i < problem_.inputs.size(); ++i)
            if (problem_.inputs[i] == node) return inputs[i];
        return result_of(node);
    };
    for (std::size_t i = 0; i < chain_.size(); ++i) {
        std::vector<const void*> operands;
        for (int node : chain_[i].operands) operands.push_back(tensor(node));
        const int copied_to = chain_[i].output;
        void* result = copied_to < 0 ? result_of(chain_[i].node) : outputs[std::size_t(copied_to)];
        kernels_[i].launch(stream, operands, std::span<void* const>(&result, 1));
    }
}

}  // namespace rooftile
