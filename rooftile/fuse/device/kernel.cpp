#include "rooftile/fuse/device/kernel.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "kernels/measure/philox.hpp"
#include "rooftile/elapsed.hpp"
#include "rooftile/fuse/column_tiles.hpp"
#include "rooftile/fuse/device/source.hpp"
#include "rooftile/fuse/row_vectors.hpp"
#include "rooftile/fuse/staging.hpp"
#include "rooftile/runtime/cache.hpp"
#include "rooftile/runtime/driver_table.hpp"
#include "rooftile/runtime/in_contexts.hpp"

namespace rooftile {
namespace {

constexpr std::size_t workspace_header = 16, workspace_part = 16;  // bytes; kernels/fuse/whole.cuh

/// A kernel in one context.
struct Loaded {
    Function function;
    int grid = 0;
};

/// Clusters beyond the size that every GPU of the architecture runs.
void allow_any_cluster(const Function& function) {
    check(driver_table().cuFuncSetAttribute(function.get(),
                                            CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
          "cuFuncSetAttribute(non-portable cluster size)");
}

/// Divides L1 as the CTAs that fit need it: each takes shared memory even where the kernel declares little.
void leave_shared_memory(const Function& function, const FusePlan& plan, const EntryInfo& entry, int device) {
    const Driver& driver = Driver::instance();
    const int dynamic = int(fuse_launch(plan, 1).shared_bytes);
    const int reserved = driver.attribute(device, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    const int all = driver.attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    const int fitting = std::max(1, function.ctas_per_sm(plan.config.threads, dynamic));
    const std::int64_t wanted = std::int64_t(fitting) * (dynamic + entry.static_shared_bytes + reserved);
    const int percent =
        int(std::min<std::int64_t>(100, ceil_div(100 * wanted, std::int64_t(std::max(1, all)))));
    check(driver_table().cuFuncSetAttribute(function.get(),
                                            CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, percent),
          "cuFuncSetAttribute(shared memory carve-out)");
}

int grid_here(const Function& function, const FusePlan& plan, int device) {
    const FuseConfig& c = plan.config;
    const int fitting = function.ctas_per_sm(c.threads, int(fuse_launch(plan, 1).shared_bytes));
    if (fitting == 0)
        throw Error(ExitCode::gpu_failed,
                    fmt::format("no CTA of {} threads fits on an SM of GPU {}", c.threads, device));
    const int sms = Driver::instance().attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    std::int64_t resident = std::int64_t(sms) * std::min(fitting, c.ctas_per_sm);
    if (c.cluster > 1 && !reduces_across_grid(c)) {
        const Launch launch = fuse_launch(plan, resident / c.cluster * c.cluster);
        resident =
            std::min<std::int64_t>(resident, std::int64_t(active_clusters(function, launch)) * c.cluster);
        if (resident == 0)
            throw Error(ExitCode::gpu_failed,
                        fmt::format("no cluster of {} CTAs fits on GPU {}", c.cluster, device));
    }
    const std::int64_t grid = fuse_grid(plan, resident);
    if (grid_resident_rows(c) && grid > resident)  // they would wait for one another for good
        throw Error(ExitCode::gpu_failed,
                    fmt::format("grid-resident rows are {} CTAs, but {} fit on the GPU", grid, resident));
    return int(grid);
}

/// One CTA an SM less than planned; false where there is but one, or where all must be resident.
bool leave_more_registers(FuseConfig& config) {
    if (config.ctas_per_sm <= 1 || grid_resident_rows(config)) return false;
    --config.ctas_per_sm;
    return true;
}

std::uint64_t checked(std::string_view name, const void* pointer, int alignment, std::int64_t elements) {
    if (!pointer && elements > 0) throw RequestError(fmt::format("the pointer to {} is null", name));
    if (reinterpret_cast<std::uintptr_t>(pointer) % std::uintptr_t(alignment) != 0)
        throw RequestError(fmt::format("{} at {} is not aligned to {} B: plan with a smaller alignment", name,
                                       pointer, alignment));
    return reinterpret_cast<std::uint64_t>(pointer);
}

}  // namespace

struct FuseKernel::State {
    FusePlan plan;
    Source source;
    CachedCompile compiled;
    double seconds = 0;
    bool dependent = false;  ///< launched while the kernel ahead ends

    const Loaded& loaded() const {
        return contexts.here(compiled.compiled, plan.arch, [&](Function function, int device) {
            if (const unsigned bytes = fuse_launch(plan, 1).shared_bytes; bytes > 0)
                function.allow_shared(int(bytes));
            if (fuse_launch(plan, 1).cluster_x > 1) allow_any_cluster(function);
            leave_shared_memory(function, plan, compiled.compiled.entries.front(), device);
            const int grid = grid_here(function, plan, device);
            return Loaded{std::move(function), grid};
        });
    }

  private:
    InContexts<Loaded> contexts;
};

const FusePlan& FuseKernel::plan() const { return state_->plan; }
const std::string& FuseKernel::name() const { return state_->source.name; }
const std::string& FuseKernel::text() const { return state_->source.text; }
const std::string& FuseKernel::cubin() const { return state_->compiled.compiled.cubin; }
const std::string& FuseKernel::arch() const { return state_->source.arch; }
const EntryInfo& FuseKernel::entry() const { return state_->compiled.compiled.entries.front(); }
const std::string& FuseKernel::hash() const { return state_->compiled.key.hash; }
bool FuseKernel::from_cache() const { return state_->compiled.from_cache; }
double FuseKernel::compile_seconds() const { return state_->seconds; }
std::string FuseKernel::ptx() const { return compile_to_ptx(state_->source); }
void FuseKernel::load() const { state_->loaded(); }
Function FuseKernel::function() const { return state_->loaded().function; }
int FuseKernel::grid() const { return state_->loaded().grid; }

std::size_t FuseKernel::workspace_bytes() const {
    const FusePlan& plan = state_->plan;
    if (needs_workspace(plan)) return fuse_workspace_bytes(plan, grid());
    return takes_workspace(plan) ? fuse_workspace_bytes(plan, 0) : 0;
}

void FuseKernel::launch(Stream stream, std::span<const void* const> inputs, std::span<void* const> outputs,
                        void* workspace) const {
    const FusePlan& plan = state_->plan;
    std::vector<std::uint64_t> tensors = fuse_tensors(plan, inputs, outputs);
    fuse::FuseSizes sizes = fuse_sizes(plan);
    sizes.workspace = workspace;
    if (!workspace && needs_workspace(plan))
        throw RequestError(fmt::format("{} needs a workspace of {} zeroed bytes", name(), workspace_bytes()));
    const Loaded& loaded = state_->loaded();
    const bool columns = plan.program.form == FuseForm::columns;
    if (plan.program.form != FuseForm::whole && (columns ? 1 : plan.program.rows) * plan.program.columns == 0
        && std::all_of(plan.program.stores.begin(), plan.program.stores.end(),
                       [](const ProgramStore& s) { return s.level == Level::element; }))
        return;  // empty tensors: nothing to write
    Launch launch = fuse_launch(plan, loaded.grid);
    launch.stream = stream;
    launch.programmatic_dependent = state_->dependent;
    void* arguments[] = {tensors.data(), &sizes};
    launch_raw(loaded.function, launch, arguments);
    keep_for_capture(stream, state_);
}

std::uint64_t dropout_threshold(double p) { return std::uint64_t(std::llround(p * 4294967296.0)); }

std::vector<std::uint64_t> fuse_tensors(const FusePlan& plan, std::span<const void* const> inputs,
                                        std::span<void* const> outputs) {
    const ExpressionGraph& g = plan.problem;
    if (inputs.size() != g.inputs.size() || outputs.size() != g.outputs.size())
        throw RequestError(fmt::format("{} inputs and {} outputs given where the expression has {} and {}",
                                       inputs.size(), outputs.size(), g.inputs.size(), g.outputs.size()));
    constexpr int access_bytes = 16;
    const auto alignment = [&](const GraphNode& n) {
        const bool several = elements_of(n.shape) > 1;
        const bool bulk = plan.config.row_storage == RowStorage::pipelined;
        if (bulk && several) return access_bytes;
        return several ? vector_alignment(plan.program, plan.config.vector_width, n.element)
                       : bytes_of(n.element);
    };
    std::vector<std::uint64_t> words;
    // The kernel's fields stand in the order of the program's loads.
    for (const ProgramValue& v : plan.program.values) {
        if (v.kind != ValueKind::load) continue;
        const GraphNode& n = g.nodes[std::size_t(g.inputs[std::size_t(v.input)])];
        words.push_back(checked(n.name, inputs[std::size_t(v.input)], alignment(n), elements_of(n.shape)));
    }
    for (const ProgramStore& s : plan.program.stores) {
        const GraphOutput& o = g.outputs[std::size_t(s.output)];
        const GraphNode& n = g.nodes[std::size_t(o.node)];
        words.push_back(checked(o.name, outputs[std::size_t(s.output)], alignment(n), elements_of(n.shape)));
    }
    for (const ProgramValue& v : plan.program.values)
        if (v.kind == ValueKind::compute && v.op == Op::dropout) {
            const auto keys = dropout_keys(v.seed);
            for (int i = 0; i < 2 * dropout_rounds; i += 2)
                words.push_back(keys.word[i] | std::uint64_t(keys.word[i + 1]) << 32);
            words.push_back(v.offset);
            words.push_back(std::min<std::uint64_t>(dropout_threshold(v.value), 0xffffffffu)
                            | std::uint64_t(dropout_fold) << 32);
        }
    return words;
}

fuse::FuseSizes fuse_sizes(const FusePlan& plan) {
    const Program& p = plan.program;
    const int vector_width = plan.config.vector_width;
    fuse::FuseSizes sizes;
    sizes.rows = p.rows;
    sizes.columns = p.columns;
    const std::int64_t row_vectors = max_row_vectors(p, vector_width);
    sizes.vectors = p.form == FuseForm::row || p.flat ? row_vectors : vectors_of_all(p, vector_width);
    constexpr std::int64_t most = 2147483647;
    if (!p.flat && p.form != FuseForm::row) {
        const std::int64_t row =
            rows_off_vectors(p, vector_width) ? p.columns : row_vectors;  // elements or vectors
        sizes.row_vectors = rooftile::divider(unsigned(std::clamp<std::int64_t>(row, 1, most)));
    }
    return sizes;
}

bool needs_workspace(const FusePlan& plan) {
    return plan.program.form == FuseForm::whole || plan.config.row_splits > 1 || reduces_across_grid(plan.config);
}

bool takes_workspace(const FusePlan& plan) {
    return needs_workspace(plan) || schedules_dynamically(plan.program, plan.config);
}

std::size_t fuse_workspace_bytes(const FusePlan& plan, std::int64_t grid) {
    if (plan.program.form == FuseForm::columns)
        return std::size_t(column_counter_bytes(plan.program, plan.config) + column_partial_bytes(plan.program, plan.config));
    constexpr std::size_t word = 8, iterations = 2,
                          words = fuse::reduction_words;  // kernels/fuse/grid_reduction.cuh
    const std::size_t cta = reduces_across_grid(plan.config)
                                ? iterations * words * word
                                : std::size_t(whole_reductions(plan.program)) * workspace_part;
    return workspace_header + std::size_t(grid) * cta;
}

Launch fuse_launch(const FusePlan& plan, std::int64_t grid) {
    Launch launch;
    launch.grid_x = unsigned(grid);
    launch.block_x = unsigned(plan.config.threads);
    launch.shared_bytes = unsigned(staged_rows(plan.program, plan.config).bytes);
    launch.cooperative = reduces_across_grid(plan.config);
    launch.cluster_x = launch.cooperative ? 1 : unsigned(plan.config.cluster);
    if (plan.program.form == FuseForm::columns) {
        launch.grid_y = unsigned(plan.config.row_splits);
        launch.grid_x = unsigned(grid / plan.config.row_splits);
    }
    return launch;
}

std::int64_t fuse_grid(const FusePlan& plan, std::int64_t resident) {
    constexpr std::int64_t max_ctas = 2147483647;
    const FuseConfig& c = plan.config;
    const Program& p = plan.program;
    if (p.form == FuseForm::columns) return column_tiles(p, c).tiles * c.row_splits;
    std::int64_t pieces = 1;
    if (p.form == FuseForm::row) pieces = ceil_div(p.rows, std::max(1, c.rows_per_cta())) * c.cluster;
    else pieces = ceil_div(vectors_of_all(p, c.vector_width), std::int64_t(c.threads) * c.vectors_per_thread);
    pieces = std::max<std::int64_t>(pieces, c.cluster);
    if (reduces_across_grid(c) && c.persistent && resident < c.cluster)
        throw Error(ExitCode::gpu_failed,
                    fmt::format("{} CTAs share a row, but {} fit on the GPU at once", c.cluster, resident));
    const std::int64_t most =
        c.persistent ? resident / c.cluster * c.cluster : max_ctas / c.cluster * c.cluster;
    return std::min(pieces, most);
}

FuseKernel compile(const FusePlan& plan, const CompileOptions& options) {
    const auto start = std::chrono::steady_clock::now();
    auto state = std::make_shared<FuseKernel::State>();
    state->plan = plan;
    state->dependent = options.dependent && may_be_dependent(plan);
    while (true) {
        state->source = state->dependent ? dependent_source(state->plan) : fuse_source(state->plan);
        try {
            state->compiled = compile_as(options, state->source);
            break;
        } catch (const SpillError&) {
            // Where the plan counted on too few registers for its CTAs, fewer of them leave more.
            if (!leave_more_registers(state->plan.config)) throw;
            state->plan.resources.ctas_per_sm = state->plan.config.ctas_per_sm;
        }
    }
    state->seconds = seconds_since(start);
    return FuseKernel(std::move(state));
}

}  // namespace rooftile
