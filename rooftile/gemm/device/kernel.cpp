#include "rooftile/gemm/device/kernel.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <tuple>

#include <fmt/core.h>

#include "kernels/pipeline/tile_order.cuh"
#include "rooftile/core/in_parallel.hpp"
#include "rooftile/elapsed.hpp"
#include "rooftile/runtime/cache.hpp"
#include "rooftile/runtime/driver_table.hpp"
#include "rooftile/runtime/in_contexts.hpp"
#include "rooftile/gemm/device/code.hpp"

namespace rooftile {

Launch launch_of(const CtaUse& use) {
    Launch launch;
    launch.block_x = unsigned(use.threads);
    launch.shared_bytes = unsigned(use.shared_bytes);
    launch.cluster_x = unsigned(use.cluster_ctas);
    return launch;
}

int resident_ctas(const Function& function, const CtaUse& use, int device) {
    const int fitting = function.ctas_per_sm(use.threads, use.shared_bytes);
    if (fitting == 0)
        throw Error(ExitCode::gpu_failed,
                    fmt::format("no CTA of {} threads and {} B shared memory fits on an SM of GPU {}",
                                use.threads, use.shared_bytes, device));
    const int sms = Driver::instance().attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    const int ctas = sms * std::min(fitting, use.ctas_per_sm);
    const int cluster = use.cluster_ctas;
    if (cluster == 1) return ctas;
    // GPCs differ in size: not every SM can be in a cluster.
    Launch launch = launch_of(use);
    launch.grid_x = unsigned(ctas / cluster * cluster);
    const int clusters = active_clusters(function, launch);
    if (clusters == 0)
        throw Error(ExitCode::gpu_failed,
                    fmt::format("no cluster of {} CTAs fits on GPU {}", cluster, device));
    return std::min(ctas / cluster, clusters) * cluster;
}

namespace {

/// A kernel in one context.
struct Loaded {
    Function function;
    Function pack{};  ///< where the code packs operands
    int resident_ctas = 0;  ///< on the whole device, in whole clusters
};

/// Code shared by all kernels of one key: compiled once, loaded once a context.
struct Program {
    CacheKey key;
    Compiled compiled;

    const Loaded& loaded(const GemmCode& code) const {
        return contexts.of_module(compiled, code.arch(), [&](const Module& module, int device) {
            Loaded made;
            made.function = module.function(compiled.lowered_names.front());
            if (code.packs()) made.pack = module.function(compiled.lowered_names.at(1));
            made.function.allow_shared(code.cta().shared_bytes);
            made.resident_ctas = resident_ctas(made.function, code.cta(), device);
            return made;
        });
    }

    /// The tile schedule of that order in device memory of the current context; made once, kept as long as the code.
    DevicePointer table(const GemmConfig& config, const ClusterTiles& tiles) {
        const std::uint64_t id = context_id(current_context());
        std::lock_guard lock(mutex);
        DeviceBuffer& buffer = tables[{id, config.order, config.group, config.reverse, tiles.rows, tiles.columns}];
        if (buffer.bytes() == 0) {
            const std::vector<std::uint32_t> tile_schedule = schedule_table(config.order, tiles, config.group, config.reverse);
            DeviceBuffer made(tile_schedule.size() * sizeof(tile_schedule[0]));
            copy_to_device(made.address(), tile_schedule.data(), made.bytes());
            synchronize(Stream(nullptr));  // a copy from pageable memory may return before it has arrived
            buffer = std::move(made);
        }
        return buffer.address();
    }

  private:
    InContexts<Loaded> contexts;
    std::mutex mutex;  // of the tables
    std::map<std::tuple<std::uint64_t, Order, int, bool, std::int64_t, std::int64_t>, DeviceBuffer> tables;
};

/// Whether the kernel reads its tile schedule from a table: it has no closed form, or runs backwards.
bool reads_table(const GemmConfig& config) { return config.reverse || ordered_by_table(config.order); }

/// The program of that key, if a kernel still holds one.
std::shared_ptr<Program> living_program(const std::string& hash, std::shared_ptr<Program> made) {
    static std::mutex mutex;
    static std::map<std::string, std::weak_ptr<Program>> programs;
    std::lock_guard lock(mutex);
    std::weak_ptr<Program>& entry = programs[hash];
    if (std::shared_ptr<Program> living = entry.lock()) return living;
    entry = made;
    return made;
}

std::shared_ptr<Program> make_program(Source& source, const CompileOptions& options, bool& from_cache) {
    const bool shared = options.cache && !options.alter && !options.told;
    source.line_info = options.line_info;
    if (shared) {
        if (auto living = living_program(cache_key(source).hash, nullptr)) {
            from_cache = true;
            return living;
        }
    }
    CachedCompile compiled = compile_as(options, source);
    from_cache = compiled.from_cache;
    auto program = std::make_shared<Program>();
    program->key = std::move(compiled.key);
    program->compiled = std::move(compiled.compiled);
    return shared ? living_program(program->key.hash, program) : program;
}

}  // namespace

struct Kernel::State {
    GemmPlan plan;
    std::unique_ptr<const GemmCode> code;
    Source source;
    std::shared_ptr<Program> program;
    bool from_cache = false;
    double seconds = 0;
};

const GemmPlan& Kernel::plan() const { return state_->plan; }
const std::string& Kernel::name_expression() const { return state_->source.name_expressions.front(); }
const std::string& Kernel::lowered_name() const { return state_->program->compiled.lowered_names.front(); }
const std::string& Kernel::arch() const { return state_->source.arch; }
const std::string& Kernel::cubin() const { return state_->program->compiled.cubin; }
const std::string& Kernel::log() const { return state_->program->compiled.log; }
const EntryInfo& Kernel::entry() const { return state_->program->compiled.entries.front(); }
const std::string& Kernel::hash() const { return state_->program->key.hash; }
bool Kernel::from_cache() const { return state_->from_cache; }
double Kernel::compile_seconds() const { return state_->seconds; }
std::string Kernel::ptx() const { return compile_to_ptx(state_->source); }

namespace {

/// A batch as the one product that its plan takes it for; else `shape` itself.
GemmShape as_planned(const GemmProblem& planned, const GemmShape& shape) {
    if (shape.batch <= 1 || planned.batch > 1 || planned.groups) return shape;
    GemmProblem p = planned;
    p.epilogue = {};
    p.m = shape.m, p.n = shape.n, p.k = shape.k, p.batch = shape.batch;
    p.lda = shape.lda, p.ldb = shape.ldb, p.ldc = shape.ldc;
    p.a_stride = shape.a_stride, p.b_stride = shape.b_stride, p.c_stride = shape.c_stride;
    return shape_of(as_one_product(p));
}

}  // namespace

void Kernel::load() const { load(shape_of(state_->plan.problem)); }

void Kernel::load(const GemmShape& given) const {
    const GemmShape shape = as_planned(state_->plan.problem, given);
    const Loaded& loaded = state_->program->loaded(*state_->code);
    state_->code->grid(shape, loaded.resident_ctas);  // refuses a shape of too many tiles
    if (reads_table(state_->plan.config)) state_->program->table(state_->plan.config, state_->code->tiles(shape));
}

Function Kernel::function() const { return state_->program->loaded(*state_->code).function; }

std::size_t Kernel::workspace_bytes() const { return workspace_bytes(shape_of(state_->plan.problem)); }
std::size_t Kernel::workspace_bytes(const GemmShape& shape) const { return state_->code->workspace_bytes(as_planned(state_->plan.problem, shape)); }

void Kernel::launch(Stream stream, const void* a, const void* b, void* c, void* workspace) const {
    launch(stream, a, b, c, shape_of(state_->plan.problem), workspace);
}

namespace {

/// Bytes from the first element to the last.
struct Span {
    std::uintptr_t begin, end;
    Span(const void* data, std::int64_t bytes)
        : begin(reinterpret_cast<std::uintptr_t>(data)), end(begin + std::uintptr_t(bytes)) {}
    bool overlaps(const Span& other) const { return begin < other.end && other.begin < end; }
};

/// What an epilogue reads may not lie where it stores: tiles overlap, and a later one would read what was stored.
void check_epilogue(const GemmProblem& p, const GemmShape& shape, const GemmPointers& pointers) {
    const Epilogue& e = *p.epilogue;
    const std::span<const void* const> operands = pointers.operands;
    const void* result = pointers.c;
    if (pointers.more_results.size() + 1 != e.results())
        throw RequestError(fmt::format("{} tensors are given for {} results", pointers.more_results.size() + 1, e.results()));
    if (operands.size() != e.operands.size())
        throw RequestError(fmt::format("{} tensors are given for an epilogue that reads {}", operands.size(), e.operands.size()));
    if (shape.m != p.m || shape.n != p.n || shape.batch != p.batch)
        throw RequestError(fmt::format("a kernel with an epilogue was planned for {} x {}; plan for {} x {}", p.m, p.n, shape.m, shape.n));
    constexpr int whole_bytes = 16;  // of TMA
    const int result_bytes = bytes_of(p.c_type);
    std::vector<Span> others;
    for (const void* other : pointers.more_results) {
        check_pointer(e.graph.outputs[others.size() + 1].name.c_str(), other, p.result_n() * result_bytes % whole_bytes == 0 ? whole_bytes : result_bytes);
        others.emplace_back(other, p.batch * p.m * p.result_n() * result_bytes);
    }
    const Span stored(result, ((p.batch - 1) * p.c_stride + (p.m - 1) * p.ldc + p.result_n()) * bytes_of(p.c_type));
    for (std::size_t i = 0; i < operands.size(); ++i) {
        const EpilogueOperand& o = e.operands[i];
        const int element = bytes_of(o.element);
        check_pointer(o.name.c_str(), operands[i], e.paired() && o.by_column ? 2 * element : element);
        if (Span(operands[i], o.elements(e.batch, p.m, p.result_n()) * element).overlaps(stored))
            throw RequestError(fmt::format("{} and {} overlap; an epilogue's result needs memory of its own", o.name, e.output()));
        for (std::size_t r = 0; r < others.size(); ++r)
            if (Span(operands[i], o.elements(p.batch, p.m, p.result_n()) * element).overlaps(others[r]))
                throw RequestError(fmt::format("{} and {} overlap; an epilogue's result needs memory of its own", o.name, e.graph.outputs[r + 1].name));
    }
    for (std::size_t r = 0; r < others.size(); ++r)
        if (others[r].overlaps(stored) || (r > 0 && others[r].overlaps(others[0])))
            throw RequestError(fmt::format("{} overlaps another result; each needs memory of its own", e.graph.outputs[r + 1].name));
}

}  // namespace

void Kernel::launch(Stream stream, std::span<void* const> tensors, void* workspace) const {
    const GemmProblem& p = state_->plan.problem;
    const std::size_t first = p.first_operand(), wanted = first + p.results() + (p.epilogue ? p.epilogue->operands.size() : 0);
    if (tensors.size() != wanted) throw RequestError(fmt::format("{} tensors are given; this product has {}", tensors.size(), wanted));
    const std::size_t read = p.epilogue ? p.epilogue->operands.size() : 0;
    const auto operands = tensors.subspan(first, read);  // as they lie: a launch allocates nothing
    GemmPointers pointers{tensors[0], tensors[1], tensors[wanted - p.results()], nullptr, operands};
    pointers.more_results = tensors.last(p.results() - 1);
    if (p.groups) pointers.offsets = static_cast<const int*>(tensors[2]);
    if (p.block_scales()) pointers.a_scales = tensors[p.first_scale()], pointers.b_scales = tensors[p.first_scale() + 1];
    launch(stream, pointers, shape_of(p), workspace);
}

void Kernel::launch(Stream stream, const void* a, const void* b, void* c, const GemmShape& shape, void* workspace) const {
    launch(stream, GemmPointers{a, b, c, nullptr}, shape, workspace);
}

void Kernel::launch(Stream stream, GemmPointers pointers, const GemmShape& given, void* workspace) const {
    const GemmCode& code = *state_->code;
    const GemmShape shape = as_planned(state_->plan.problem, given);
    if (state_->plan.problem.epilogue) check_epilogue(state_->plan.problem, shape, pointers);
    code.check(shape, pointers.a, pointers.b, pointers.c);
    const Loaded& loaded = state_->program->loaded(code);
    Launch launch = launch_of(code.cta());
    launch.grid_x = unsigned(code.grid(shape, loaded.resident_ctas));
    launch.stream = stream;
    if (reads_table(state_->plan.config))
        pointers.tiles = reinterpret_cast<const unsigned*>(state_->program->table(state_->plan.config, code.tiles(shape)));
    GemmOperands operands{shape, pointers};
    operands.pointers.workspace = workspace;
    if (code.packs()) operands = code.pack(loaded.pack, stream, operands, workspace);
    code.launch(loaded.function, launch, operands.shape, operands.pointers);
    keep_for_capture(stream, state_);
}

std::optional<Kernel> Kernel::with_rows(std::int64_t m) const {
    const GemmPlan& own = state_->plan;
    // Of a batch the distance of its members may follow from M.
    if (m < 1 || m > max_gemm_size || own.problem.a_major != Major::k || own.problem.batch != 1 || own.problem.groups || own.problem.image) return std::nullopt;
    auto state = std::make_shared<State>();
    state->plan.rank = own.rank;
    state->plan.buildable = true;
    state->plan.arch = own.arch;
    state->plan.problem = own.problem;
    state->plan.config = own.config;
    state->plan.resources = own.resources;
    GemmProblem& problem = state->plan.problem;
    problem.m = m;
    if (problem.epilogue) {
        const Epilogue& e = *problem.epilogue;
        if (std::ranges::any_of(e.operands, &EpilogueOperand::by_row)) return std::nullopt;
        problem.epilogue = product_epilogue(m, problem.n, problem.c_type, problem.alpha, problem.beta, e.expression, e.tensors, e.scales, 1, 0, e.pairs);
    }
    state->code = gemm_code(state->plan, Ablation::nothing);
    state->source = state->code->source();
    if (state->source.text != state_->source.text || state->source.name_expressions != state_->source.name_expressions) return std::nullopt;
    const GemmShape shape = shape_of(problem);
    const void* const anywhere = reinterpret_cast<const void*>(std::uintptr_t{1} << 20);  // as aligned as any kernel asks
    try {
        check(problem);
        state->code->check(shape, anywhere, anywhere, anywhere);
        state->code->grid(shape, 1);
    } catch (const RequestError&) { return std::nullopt; }
    state->program = state_->program;
    state->from_cache = true;
    return Kernel(std::move(state));
}

std::string code_key(const GemmPlan& plan) { return cache_key(gemm_code(plan, Ablation::nothing)->source()).hash; }

Kernel compile(const GemmPlan& plan, const CompileOptions& options) {
    return compile(plan, gemm_code(plan, options.ablated), options);
}

Kernel compile(const GemmPlan& plan, std::unique_ptr<const GemmCode> code, const CompileOptions& options) {
    auto start = std::chrono::steady_clock::now();
    auto state = std::make_shared<Kernel::State>();
    state->plan = plan;
    state->code = std::move(code);
    state->source = state->code->source();
    state->program = make_program(state->source, options, state->from_cache);
    state->seconds = seconds_since(start);
    return Kernel(std::move(state));
}

std::vector<KernelOutcome> compile_all(std::span<const GemmPlan> plans, const CompileOptions& options,
                                       unsigned threads) {
    std::vector<KernelOutcome> outcomes(plans.size(), Error(ExitCode::internal, "not compiled"));
    in_parallel(plans.size(), threads, [&](std::size_t i) {
        try {
            outcomes[i] = compile(plans[i], options);
        } catch (const Error& error) { outcomes[i] = error; } catch (const std::exception& error) {
            outcomes[i] = Error(ExitCode::internal, error.what());
        }
    });
    return outcomes;
}

}  // namespace rooftile
