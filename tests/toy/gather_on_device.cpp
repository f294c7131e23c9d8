#include <fmt/core.h>

#include "rooftile/runtime/cache.hpp"
#include "rooftile/runtime/compiled_kernel.hpp"
#include "rooftile/runtime/driver_table.hpp"
#include "rooftile/runtime/in_contexts.hpp"
#include "tests/toy/gather.hpp"

namespace rooftile {

std::span<const EmbeddedFile> toy_kernels();  // tests/toy/*, of the build

namespace {

Source source_of(const MatrixConfig& c) {
    static const std::vector<EmbeddedFile> headers = [] {
        std::vector<EmbeddedFile> files(embedded_kernels().begin(), embedded_kernels().end());
        files.insert(files.end(), toy_kernels().begin(), toy_kernels().end());
        return files;
    }();
    return {.name = "toy_gather",
            .text = "#include \"tests/toy/gather.cuh\"\n",
            .headers = headers,
            .name_expressions = {fmt::format("rooftile::toy_gather<rooftile::gather_config({}, {}, {})>", c.tile_m, c.tile_n, c.stages)}};
}

TensorMapRequest bf16_matrix(void* base, std::int64_t rows, std::int64_t columns, int box_columns, int box_rows, int swizzle_bytes) {
    TensorMapRequest r;
    r.base = reinterpret_cast<DevicePointer>(base), r.inner = columns, r.outer = rows, r.outer_stride_bytes = 2 * columns;
    r.box_inner = box_columns, r.box_outer = box_rows, r.swizzle_bytes = swizzle_bytes;
    return r;
}

class GatherKernel final : public Runnable {
  public:
    explicit GatherKernel(const Plan& plan) : plan_(plan.own.as<GatherPlan>()), source_(source_of(plan_.config)), compiled_(compile_cached(source_)) {}

    KernelCode code() const override {
        return {.name = source_.name_expressions.front(), .lowered_name = compiled_.compiled.lowered_names.front(), .arch = source_.arch, .source = {},
                .cubin = compiled_.compiled.cubin, .hash = compiled_.key.hash, .entry = compiled_.compiled.entries.front(),
                .from_cache = compiled_.from_cache};
    }
    std::string ptx() const override { return compile_to_ptx(source_); }
    std::size_t workspace_bytes() const override { return 0; }
    std::int64_t shared_bytes() const override { return plan_.config.shared_bytes(); }
    void load() const override { loaded(); }
    void launch(Stream stream, std::span<void* const> tensors, void*) const override {
        const MatrixConfig& c = plan_.config;
        GatherArguments arguments{};
        arguments.matrix.m = int(plan_.m), arguments.matrix.n = int(plan_.n), arguments.matrix.k = int(plan_.k);
        arguments.matrix.order = int(Order::row), arguments.matrix.group = 1;
        arguments.matrix.last_m = arguments.matrix.last_n = 1 << 30;  // tiles at the end stand partly outside
        arguments.rows = static_cast<const int*>(tensors[0]), arguments.a = static_cast<const float*>(tensors[1]);
        TensorMap b{}, result{};
        encode(b, bf16_matrix(tensors[2], plan_.n, plan_.k, c.tile_k, c.tile_n, c.swizzle_bytes));
        encode(result, bf16_matrix(tensors[3], plan_.m, plan_.n, c.epilogue_columns(), c.warp_rows(), c.epilogue_swizzle_bytes()));
        Launch launch;
        launch.grid_x = unsigned(Driver::instance().attribute(current_device(), CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
        launch.block_x = unsigned(c.threads()), launch.shared_bytes = unsigned(c.shared_bytes()), launch.stream = stream;
        rooftile::launch(loaded(), launch, b, result, arguments);
    }

  private:
    const Function& loaded() const {
        return contexts_.here(compiled_.compiled, "sm_90", [&](Function function, int) {
            function.allow_shared(plan_.config.shared_bytes());
            return function;
        });
    }
    GatherPlan plan_;
    Source source_;
    CachedCompile compiled_;
    InContexts<Function> contexts_;
};

}  // namespace

CompiledKernel compile_gather(const Plan& plan) { return {plan, std::make_shared<const GatherKernel>(plan)}; }

}  // namespace rooftile
