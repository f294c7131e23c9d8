#include "rooftile/chain/device/kernel.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "kernels/ptx/tensor_map.hpp"
#include "rooftile/elapsed.hpp"
#include "rooftile/measure/composed.hpp"
#include "rooftile/measure/device_operation.hpp"
#include "rooftile/runtime/cache.hpp"
#include "rooftile/runtime/driver_table.hpp"
#include "rooftile/runtime/in_contexts.hpp"
#include "rooftile/tiled/device/two_products.hpp"

namespace rooftile {
namespace {

constexpr int access_bytes = 16;  // of TMA, and of stores of Y
constexpr std::size_t counter_bytes = 16;

const ChainPlan& typed(const Plan& plan) { return plan.own.as<ChainPlan>(); }

void check_tensors(std::span<void* const> tensors, void* workspace) {
    constexpr const char* names[] = {"X", "W1", "W2", "Y"};
    if (tensors.size() != std::size(names)) throw RequestError(fmt::format("{} tensors are given; a chain has 4", tensors.size()));
    const auto check = [](std::string_view name, const void* pointer) {
        if (!pointer) throw RequestError(fmt::format("the pointer to {} is null", name));
        if (reinterpret_cast<std::uintptr_t>(pointer) % access_bytes != 0)
            throw RequestError(fmt::format("{} at {} is not aligned to {} B", name, pointer, access_bytes));
    };
    for (std::size_t i = 0; i < std::size(names); ++i) check(names[i], tensors[i]);
    check("the workspace", workspace);
}

/// Both products in one kernel of their operation's.
class OneKernelOfTwo final : public Runnable {
  public:
    OneKernelOfTwo(const Plan& plan, std::shared_ptr<const Runnable> kernel) : p_(typed(plan).problem), kernel_(std::move(kernel)) {}

    KernelCode code() const override { return kernel_->code(); }
    std::string ptx() const override { return kernel_->ptx(); }
    std::size_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
    std::int64_t shared_bytes() const override { return kernel_->shared_bytes(); }
    void load() const override { kernel_->load(); }

    void launch(Stream stream, std::span<void* const> tensors, void* workspace) const override {
        check_tensors(tensors, workspace);
        // Rows of Y are stored while others' of X are still to be read.
        const auto begin = [&](std::size_t i) { return reinterpret_cast<std::uintptr_t>(tensors[i]); };
        if (begin(0) < begin(3) + std::uintptr_t(p_.y_bytes()) && begin(3) < begin(0) + std::uintptr_t(p_.x_bytes()))
            throw RequestError("X and Y overlap; form persistent needs memory of its own for Y");
        void* const plain[] = {tensors[0], tensors[1], tensors[2], tensors[3]};
        void* const with_x[] = {tensors[0], tensors[1], tensors[2], tensors[0], tensors[3]};
        if (p_.residual) kernel_->launch(stream, with_x, workspace);
        else kernel_->launch(stream, plain, workspace);
    }

  private:
    ChainProblem p_;
    std::shared_ptr<const Runnable> kernel_;
};

/// A kernel in one context.
struct Loaded {
    Function function;
    int sms = 0;
};

TensorMapRequest request_of(Type type, const void* base, std::int64_t rows, std::int64_t columns, int box_rows) {
    TensorMapRequest request;
    request.type = type;
    request.base = reinterpret_cast<DevicePointer>(base);
    request.inner = columns;
    request.outer = rows;
    request.outer_stride_bytes = columns * Sm90ChainConfig::element_bytes;
    request.box_inner = Sm90ChainConfig::box_elements;
    request.box_outer = box_rows;
    request.swizzle_bytes = Sm90ChainConfig::swizzle_bytes;
    return request;
}

class OnChip final : public Runnable {
  public:
    OnChip(const Plan& plan, Source source, CachedCompile compiled, double seconds)
        : plan_(typed(plan)), config_(kernel_config(plan_)), source_(std::move(source)), compiled_(std::move(compiled)), seconds_(seconds) {}

    KernelCode code() const override { return code_of(source_, compiled_, seconds_); }
    std::string ptx() const override { return compile_to_ptx(source_); }
    std::size_t workspace_bytes() const override { return counter_bytes; }
    std::int64_t shared_bytes() const override { return config_.shared_bytes(); }
    void load() const override { loaded(); }

    void launch(Stream stream, std::span<void* const> tensors, void* workspace) const override {
        check_tensors(tensors, workspace);
        const ChainProblem& p = plan_.problem;
        ChainArguments arguments{};
        arguments.m = int(p.m), arguments.d = int(p.d), arguments.ff = int(p.ff);
        arguments.x = tensors[0];
        arguments.y = tensors[3];
        arguments.counter = static_cast<unsigned*>(workspace);
        TensorMap x{}, w1{}, w2{};
        encode(x, request_of(p.type, tensors[0], p.m, p.d, config_.tile_m));
        TensorMapRequest first = request_of(p.type, tensors[1], p.ff, p.d, config_.tile_ff);
        first.matrices[0] = config_.hidden_products();  // gates and ups end apart, so that neither's last block has the other's rows
        first.matrix_stride_bytes[0] = p.ff * p.d * Sm90ChainConfig::element_bytes;
        encode(w1, first);
        encode(w2, request_of(p.type, tensors[2], p.d, p.ff, config_.d));
        const Loaded& here = loaded();
        Launch launch;
        launch.grid_x = unsigned(std::min<std::int64_t>((p.m + config_.tile_m - 1) / config_.tile_m, here.sms));
        launch.block_x = unsigned(config_.threads());
        launch.shared_bytes = unsigned(config_.shared_bytes());
        launch.programmatic_dependent = true;
        launch.stream = stream;
        rooftile::launch(here.function, launch, x, w1, w2, arguments);
    }

  private:
    const Loaded& loaded() const {
        return contexts_.here(compiled_.compiled, plan_.arch, [&](Function function, int device) {
            function.allow_shared(config_.shared_bytes());
            return Loaded{std::move(function), Driver::instance().attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)};
        });
    }

    ChainPlan plan_;
    Sm90ChainConfig config_;
    Source source_;
    CachedCompile compiled_;
    double seconds_;
    InContexts<Loaded> contexts_;
};

bool is_on_chip(const Plan& plan) { return typed(plan).config.form == ChainForm::on_chip; }
bool is_one_kernel(const Plan& plan) { return typed(plan).config.form == ChainForm::persistent; }

Source on_chip_source(const Plan& plan) {
    const ChainPlan& own = typed(plan);
    const Sm90ChainConfig c = kernel_config(own);
    return source_of_header("sm90_chain", "kernels/chain/sm90_chain.cuh", {
        fmt::format("rooftile::sm90_chain<rooftile::Sm90ChainConfig{{.tile_m={}, .tile_ff={}, .d={}, .stages={}, .x_stages={}, .resident={}, .turns={}, "
                    ".producer_registers={}, .consumer_registers={}, .type=rooftile::Type::{}, .act=rooftile::ChainFunction::{}, .residual={}}}>",
                    c.tile_m, c.tile_ff, c.d, c.stages, c.x_stages, c.resident, c.turns, c.producer_registers, c.consumer_registers, chain_type_name(c.type),
                    name_of(own.problem.act), c.residual)}, own.arch);
}

}  // namespace

Sm90ChainConfig kernel_config(const ChainPlan& plan) {
    Sm90ChainConfig config = kernel_config(plan.problem, plan.config.tile);
    if (plan.producer_registers) config.producer_registers = int(*plan.producer_registers);
    if (plan.consumer_registers) config.consumer_registers = int(*plan.consumer_registers);
    return config;
}

Source chain_source(const Plan& plan) {
    if (!plan.buildable) throw RequestError("not buildable: " + plan.why_not);
    if (is_one_kernel(plan)) return two_products_of(plan.parts.front()).source(plan.parts[0], plan.parts[1]);
    return is_on_chip(plan) ? on_chip_source(plan) : on_device(*plan.parts.front().operation).source(plan.parts.front());
}

std::shared_ptr<const Runnable> compiled_chain(const Plan& plan, const CompileOptions& options) {
    if (!plan.buildable) throw RequestError("not buildable: " + plan.why_not);
    if (is_one_kernel(plan))
        return std::make_shared<const OneKernelOfTwo>(
            plan, two_products_of(plan.parts.front()).compile(plan.parts[0], plan.parts[1], chunks_of(typed(plan).config), options));
    if (!is_on_chip(plan)) return compiled_parts(plan, options);
    const auto start = std::chrono::steady_clock::now();
    Source source = on_chip_source(plan);
    source.line_info = options.line_info;
    CachedCompile compiled = compile_as(options, source);
    return std::make_shared<const OnChip>(plan, std::move(source), std::move(compiled), seconds_since(start));
}

std::string chain_code_key(const Plan& plan) {
    if (is_on_chip(plan) || is_one_kernel(plan)) return cache_key(chain_source(plan)).hash;
    std::string key;
    for (const Plan& part : plan.parts) key += on_device(*part.operation).code_key(part);
    return key;
}

}  // namespace rooftile
