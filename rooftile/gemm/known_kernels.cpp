#include "rooftile/gemm/known_kernels.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/core/warp.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/packing.hpp"
#include "rooftile/gemm/time.hpp"

namespace rooftile {
namespace {

constexpr int wgmma_rows = 64, warpgroup_threads = 128, tma_bytes = 16;
constexpr int least_copy_bytes = 4, widest_copy_bytes = 16;  // of cp.async
/// Of an SM, for a warp's copy of 4 or 8 bytes a lane: fitted to 20 of CUTLASS's kernels on one H200 (docs/facts.md 370).
constexpr double narrow_copy_cycles = 8;
constexpr int usual_band = 8;  // rows of clusters that are taken together; the name says along which side, not how many

std::optional<Type> type_of(const std::string& name) {
    for (const Type type : {Type::bf16, Type::fp16, Type::fp8_e4m3, Type::fp8_e5m2})
        if (name == name_of(type)) return type;
    return std::nullopt;
}

/// cuBLAS is column-major: what it calls A, row-major readers call B.
bool column_major(const KernelName& name) { return name.library == "cuBLAS"; }

/// Of an epilogue as names have it: "gelu + bias".
std::string expression_of(const std::string& epilogue) {
    std::string out = epilogue.find("bias") != epilogue.npos ? "acc + bias" : "acc";
    for (const char* activation : {"relu", "gelu"})
        if (epilogue.find(activation) != epilogue.npos) out = fmt::format("{}({})", activation, out);
    return out;
}

/// How the kernel's tile lies on a row-major C.
struct LaidTile {
    int m, n, k, stages, cluster_m, cluster_n;
};
std::optional<LaidTile> laid_tile(const KernelName& name) {
    if (!name.tile_m || !name.tile_n || !name.tile_k || !name.stages) return std::nullopt;
    LaidTile t{*name.tile_m, *name.tile_n, *name.tile_k, *name.stages, name.cluster_m.value_or(1), name.cluster_n.value_or(1)};
    if (name.family == "nvjet") std::swap(t.m, t.n), std::swap(t.cluster_m, t.cluster_n);
    return t;
}

/// The same product with rows and columns of C in each other's place.
GemmProblem transposed(const GemmProblem& p) {
    GemmProblem out = p;
    std::swap(out.m, out.n), std::swap(out.a_type, out.b_type), std::swap(out.a_major, out.b_major), std::swap(out.lda, out.ldb);
    std::swap(out.a_stride, out.b_stride);
    out.ldc = out.n;
    return out;
}

class KnownGemmKernels final : public KnownKernels {
  public:
    std::optional<Answer> answer(const Machine& machine, const KernelName& name, const LaunchedKernel& launch) const override {
        const auto* sizes = std::get_if<ProductSizes>(&launch.sizes);
        if (!sizes) return std::nullopt;
        const std::optional<Problem> problem = problem_of(name, *sizes);
        if (!problem) return Answer{{}, {}, "products of these types are not planned"};
        if (name.family == "rooftile") return of_ours(machine, *problem, name);
        return seconds_of(machine, *problem, name, launch, *sizes);
    }

  private:
    static std::optional<Problem> problem_of(const KernelName& name, const ProductSizes& s) {
        const bool swapped = column_major(name);
        const auto a = type_of(swapped ? name.types.b : name.types.a), b = type_of(swapped ? name.types.a : name.types.b);
        if (name.role != "gemm" || !a || !b || s.m <= 0 || s.n <= 0 || s.k <= 0) return std::nullopt;
        const auto c = type_of(name.types.c);
        const bool wide = name.types.c == "fp32" && !name.split_k.value_or(false);
        const Type result = wide ? Type::fp32 : c.value_or(bytes_of(*a) == 1 ? Type::bf16 : *a);
        Given given(Given::Named::by_key);
        given.add("m", std::to_string(s.m)), given.add("n", std::to_string(s.n)), given.add("k", std::to_string(s.k));
        if (s.batch > 1) given.add("batch", std::to_string(s.batch));
        given.add("types", fmt::format("{},{},{}", name_of(*a), name_of(*b), name_of(result)));
        if (name.layout.size() >= 2) {
            // A letter says whether the library transposes that operand in its own view.
            const auto transposed = [&](std::size_t operand) { return std::toupper(name.layout[operand]) == 'T'; };
            const bool ours = name.family == "rooftile";  // whose names are of row-major matrices
            if (ours ? transposed(0) : swapped ? transposed(1) : !transposed(0)) given.add("a_major", "m");
            if (ours ? !transposed(1) : swapped ? !transposed(0) : transposed(1)) given.add("b_major", "n");
        }
        if (const std::string text = expression_of(name.epilogue); text != "acc") {
            given.add("epilogue", "d = " + text);
            if (text.find("bias") != text.npos)
                given.add("tensor", fmt::format("bias:{}[N]", name_of(bytes_of(*a) == 1 ? Type::bf16 : *a)));
        }
        return gemm_operation().problem(given);
    }

    /// Our own kernel: the plan that its name has.
    static Answer of_ours(const Machine& machine, const Problem& problem, const KernelName& name) {
        Given fixed(Given::Named::by_key);
        const auto fix = [&](const char* key, const std::optional<int>& value) {
            if (value) fixed.add(key, std::to_string(*value));
        };
        fix("tile_m", name.tile_m), fix("tile_n", name.tile_n), fix("tile_k", name.tile_k), fix("stages", name.stages);
        fix("cluster_m", name.cluster_m), fix("cluster_n", name.cluster_n), fix("consumer_warpgroups", name.consumer_warpgroups);
        if (!name.schedule.empty()) fixed.add("schedule", name.schedule);
        PlanDefaults defaults;
        defaults.top = 1;
        const PlanSet plans =
            gemm_operation().derive(std::make_shared<const Machine>(machine), problem, gemm_operation().request(fixed, defaults));
        if (plans.plans.empty()) return {problem, {}, plans.refusal ? plans.refusal->message : "the plan in its name is no longer planned"};
        const auto gap = machine.find("launch.gap_stream");
        constexpr double us = 1e-6;
        if (!plans.plans.front().time_us) return {problem, {}, "a number of the machine is unknown"};
        return {problem, *plans.plans.front().time_us * us - (gap ? gap->value : 0), ""};
    }

    static Answer seconds_of(const Machine& machine, const Problem& problem, const KernelName& name, const LaunchedKernel& launch,
                             const ProductSizes& sizes) {
        const std::optional<LaidTile> tile = laid_tile(name);
        if (!tile)
            return {problem, {}, name.tile_m ? "its name does not say k and the stages of its ring" : "its name does not say the tile"};
        if (name.family == "nvjet" && machine.has("wgmma")) return of_nvjet(machine, problem, *tile, name, launch, sizes);
        if ((name.family == "cutlass2" || (name.family == "xmma" && name.arch == "sm_80")) && machine.has("mma_sync"))
            return of_warps(machine, problem, *tile, name, launch);
        return {problem, {}, fmt::format("kernels of {} are not modelled", name.family)};
    }

    static Answer of_nvjet(const Machine& machine, const Problem& problem, const LaidTile& tile, const KernelName& name,
                           const LaunchedKernel& launch, const ProductSizes& sizes) {
        GemmProblem p = problem.own.as<GemmProblem>();
        LaidTile t = tile;
        // The result's letter says on which side of C the matrix unit's 64 rows lie.
        if (name.layout.size() < 3 || std::toupper(name.layout[2]) == 'T')
            p = transposed(p), std::swap(t.m, t.n), std::swap(t.cluster_m, t.cluster_n);
        std::vector<std::string> unknown;
        GemmHardware hw = with_operands(gemm_hardware(machine, "wgmma", p.a_type, unknown), p, {});
        // A profiler's time begins with the kernel; what a launch saves by beginning early, another kernel waits for inside.
        hw.launch_seconds = known_or(hw.programmatic_saving, 0);
        GemmCandidate c{};
        c.tile_m = t.m, c.tile_n = t.n, c.tile_k = t.k, c.stages = t.stages, c.cluster_m = t.cluster_m, c.cluster_n = t.cluster_n;
        c.order = Order::grouped, c.group = usual_band, c.ctas_per_sm = 1;
        c.consumer_warpgroups = name.consumer_warpgroups.value_or(2);
        const bool pingpong = name.schedule.starts_with("pingpong"), halves = t.m % (wgmma_rows * 2) != 0;
        c.schedule = pingpong ? Schedule::pingpong : Schedule::cooperative;
        c.turn_overlapped = c.epilogue_overlapped = pingpong;
        c.warp_m = wgmma_rows, c.warp_n = !pingpong && halves ? t.n / c.consumer_warpgroups : t.n;
        c.threads = launch.threads > 0 ? launch.threads : warpgroup_threads * (1 + c.consumer_warpgroups);
        c.accumulators = t.m * t.n / warpgroup_threads / (pingpong ? 1 : c.consumer_warpgroups);
        c.registers = c.accumulators;
        c.stage_bytes = (t.m * bytes_of(p.a_type) + t.n * bytes_of(p.b_type)) * t.k;
        c.store_depth = 2, c.store_boxes = std::max(1, t.n * bytes_of(p.c_type) / 128);
        const double pieces = sizes.tiles > 0 ? double(sizes.tiles) / cluster_grid(p, c).count() : 1;
        c.grid_split_k = std::max(1, int(std::lround(pieces)));
        if (c.grid_split_k > 1 && !name.split_k.value_or(false)) c.grid_split_k = 1;
        c.set_work(hw, p);
        c.take_order({Order::grouped, usual_band}, hw, p);
        const Waves w = waves(hw, c, p);
        const double dram = ScheduleTraffic(hw, c, p).dram(Order::grouped, usual_band);
        GemmTimer timer(hw, c, p, c.step, w, t.stages);
        timer.leave_out_exchange();  // parts of K are added by a kernel of its own
        const GemmTime time = under_power(PowerLimit(hw), timer, gemm_energy(hw, c, p, dram).sum(), dram);
        return answer_of(problem, time, unknown);
    }

    /// Kernels whose warps multiply what they read of shared memory by mma.sync: those of Ampere's days, which libraries take where rows
    /// are not multiples of 16 bytes.
    static Answer of_warps(const Machine& machine, const Problem& problem, LaidTile t, const KernelName& name,
                           const LaunchedKernel& launch) {
        if (name.instruction != "m16n8k16" && name.family == "cutlass2")
            return {
                problem, {}, fmt::format("no rate of {} is known", name.instruction.empty() ? "its matrix instruction" : name.instruction)};
        const auto& p = problem.own.as<GemmProblem>();
        if (name.alignment_bytes && *name.alignment_bytes < least_copy_bytes)
            return {problem, {}, "it copies its operands element by element, through registers; that is not modelled"};
        const auto ctas_of = [&](int m, int n) { return double(ceil_div(p.m, m)) * double(ceil_div(p.n, n)) * double(p.batch); };
        double pieces = double(launch.ctas) / ctas_of(t.m, t.n);
        if (pieces != std::floor(pieces)) {  // the library may count C's sides the other way round, and lay rows of tiles beside each other
            if (const double turned = double(launch.ctas) / ctas_of(t.n, t.m); turned == std::floor(turned))
                std::swap(t.m, t.n), pieces = turned;
        }
        std::vector<std::string> unknown;
        GemmHardware hw = with_operands(gemm_hardware(machine, "mma_sync", p.a_type, unknown), p, {});
        hw.launch_seconds = 0;
        GemmCandidate c{};
        c.tile_m = t.m, c.tile_n = t.n, c.tile_k = t.k, c.stages = t.stages, c.cluster_m = c.cluster_n = 1;
        c.order = Order::grouped, c.group = usual_band, c.ctas_per_sm = std::max(1, launch.ctas_per_sm);
        c.threads = launch.threads;
        c.consumer_warpgroups = std::max(1, launch.threads / warpgroup_threads);
        // Each column of warps reads A once, each row of them B: as few bytes as their number allows.
        const int warps = std::max(1, launch.threads / warp_threads);
        int least = t.m * warps + t.n * warps + 1;
        for (int rows = 1; rows <= warps; ++rows)
            if (const int read = t.m * (warps / rows) + t.n * rows; warps % rows == 0 && read < least)
                least = read, c.warp_m = t.m / rows, c.warp_n = t.n / (warps / rows);
        if (c.warp_m <= 0 || c.warp_n <= 0)
            return {problem, {}, fmt::format("{} threads do not share a tile of {} x {}", launch.threads, t.m, t.n)};
        c.accumulators = c.registers = t.m * t.n / std::max(1, launch.threads);
        c.stage_bytes = (t.m * bytes_of(p.a_type) + t.n * bytes_of(p.b_type)) * t.k;
        c.grid_split_k = std::max(1, int(pieces));
        c.set_work(hw, p);
        c.take_order({Order::grouped, usual_band}, hw, p);
        const Waves w = waves(hw, c, p);
        const double dram = ScheduleTraffic(hw, c, p).dram(Order::grouped, usual_band);
        // Copies of less than 16 bytes a lane pass one by one.
        StepCycles step = c.step;
        if (name.alignment_bytes && *name.alignment_bytes < widest_copy_bytes)
            step.shared = max_known(step.shared, double(c.stage_bytes) / (*name.alignment_bytes * warp_threads) * narrow_copy_cycles);
        GemmTimer timer(hw, c, p, step, w, t.stages);
        timer.leave_out_exchange();
        return answer_of(problem, under_power(PowerLimit(hw), timer, gemm_energy(hw, c, p, dram).sum(), dram), unknown);
    }

    static Answer answer_of(const Problem& problem, const GemmTime& time, const std::vector<std::string>& unknown) {
        if (std::isnan(time.seconds))
            return {problem, {}, fmt::format("{} is unknown", unknown.empty() ? "a number of the machine" : unknown.front())};
        return {problem, time.seconds, ""};
    }
};

}  // namespace

const KnownKernels& known_gemm_kernels() {
    static const KnownGemmKernels known;
    return known;
}

}  // namespace rooftile
