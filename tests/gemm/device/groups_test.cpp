// Groups of rows on a GPU: drawn lists of them through configurations of every kind, every element verified; other counts than
// those planned for, replayed from a graph.
//
// ROOFTILE_FUZZ_SHAPES sets how many lists (60). ROOFTILE_FUZZ_SEED repeats a run, ROOFTILE_FUZZ_ONLY one list of it.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "rooftile/core/random.hpp"
#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/device/measure.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/machine/live.hpp"
#include "tests/device/device.hpp"
#include "tests/from_environment.hpp"
#include "tests/gemm/draw_epilogue.hpp"
#include "tests/gemm/device/gemm_verifier.hpp"

namespace rooftile {
namespace {

struct Group {
    int tile_m, tile_n;
    Schedule schedule = Schedule::cooperative;
    int cluster_m = 1, cluster_n = 1;
    Order order = Order::row;
    int group = 1;
    int split_k = 1;
    bool swap_ab = false;
    bool overlapped_epilogue = true;  ///< where registers allow it
};
// Each way out (upright, wide, turned; overlapped or not), both schedules, both clusters, parts of K, every order with a closed form.
constexpr Group configurations[] = {
    {128, 256},
    {128, 128, Schedule::cooperative, 1, 1, Order::column, 1, 1, false, false},
    {64, 256, Schedule::pingpong},
    {128, 176, Schedule::cooperative, 1, 1, Order::grouped, 3},
    {128, 256, Schedule::cooperative, 2, 1, Order::grouped, 2},
    {128, 128, Schedule::cooperative, 1, 2, Order::serpentine, 2},
    {64, 128, Schedule::pingpong, 1, 1, Order::column},
    {128, 128, Schedule::cooperative, 1, 1, Order::row, 1, 4},
    {64, 64},
    {8, 128, Schedule::cooperative, 1, 1, Order::column, 1, 1, true},
    {24, 64, Schedule::cooperative, 1, 1, Order::row, 1, 1, true},
    {64, 256, Schedule::cooperative, 1, 1, Order::grouped, 4, 1, true},
    {104, 128, Schedule::pingpong, 1, 1, Order::row, 1, 1, true},
    {48, 128, Schedule::cooperative, 1, 1, Order::column, 1, 2, true},
    {16, 128, Schedule::cooperative, 1, 2, Order::row, 1, 1, true},
    {72, 128, Schedule::cooperative, 2, 1, Order::serpentine, 2, 1, true},
};

GemmRequest request_of(const Group& f) {
    GemmRequest r;
    r.tile_m = f.tile_m, r.tile_n = f.tile_n;
    r.schedule = f.schedule;
    r.cluster_m = f.cluster_m, r.cluster_n = f.cluster_n;
    r.order = f.order;
    if (f.order == Order::grouped || f.order == Order::serpentine) r.group = f.group;
    r.split_k = f.split_k;
    r.swap_ab = f.swap_ab;
    if (!f.overlapped_epilogue) r.overlapped_epilogue = false;
    r.top = 1;
    r.buildable_only = true;
    return r;
}

/// Empty groups, groups of one row, of whole tiles and of anything; now and then all rows in one group.
std::vector<std::int64_t> drawn_rows(Random& random) {
    constexpr std::int64_t counts[] = {1, 2, 3, 5, 8, 31, 32, 33, 64, 128, 256};
    std::vector<std::int64_t> rows(std::size_t(random.one_of(counts)));
    const std::int64_t most = rows.size() > 60 ? 100 : 600;
    for (std::int64_t& r : rows)
        switch (random.pick(5)) {
            case 0: r = 0; break;
            case 1: r = 1; break;
            case 2: r = 64 * random.whole(0, most / 64); break;
            default: r = random.whole(0, most);
        }
    if (random.one_in(6)) {
        const std::int64_t all = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
        std::fill(rows.begin(), rows.end(), 0);
        rows[random.pick(rows.size())] = all;
    }
    if (std::all_of(rows.begin(), rows.end(), [](std::int64_t r) { return r == 0; })) rows.back() = 1;
    return rows;
}

/// Half of what is no number a row is a group's own. Scales where operands have 8 bits.
void give_epilogue_of_groups(Random& random, GemmProblem& p) {
    for (;;) {
        DrawnEpilogue e = drawn_epilogue(random);
        for (std::string& tensor : e.tensors)
            for (const auto& [shape, own] : {std::pair{"[N]", "[G,1,N]"}, {"[1]", "[G,1,1]"}})
                if (tensor.ends_with(shape) && random.coin()) tensor.replace(tensor.find('['), tensor.npos, own);
        constexpr Scales scales[] = {Scales::none, Scales::tensor, Scales::row, Scales::block, Scales::block};
        try {
            p.epilogue = product_epilogue(p.m, p.n, p.c_type, p.alpha = e.alpha, p.beta = e.beta, e.text, e.tensors,
                                       is_fp8(p.a_type) ? random.one_of(scales) : Scales::none, 1, p.groups->count(), e.pairs);
            if (p.epilogue) return;
        } catch (const RequestError&) {}  // says nothing, or what is no epilogue
    }
}

GemmProblem drawn_problem(Random& random) {
    const std::vector<std::int64_t> rows = drawn_rows(random);
    const bool many = rows.size() > 60, any = random.one_in(3);
    const auto extent = [&](std::int64_t most) { return any ? random.whole(1, most) : 8 * random.whole(1, most / 8); };
    const Major a = random.one_in(4) ? Major::mn : Major::k, b = random.coin() ? Major::mn : Major::k;
    GemmProblem p = gemm_problem(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}), extent(many ? 300 : 1200),
                                 extent(many ? 300 : 900), random.coin() ? Type::bf16 : Type::fp16, a, b);
    if (random.one_in(4)) {
        p.lda += 8 * random.whole(0, 4), p.ldb += 8 * random.whole(0, 4), p.ldc += any ? random.whole(0, 20) : 8 * random.whole(0, 4);
    }
    if (random.one_in(5)) p.c_type = Type::fp32;
    if (random.one_in(5)) {
        p.a_type = random.coin() ? Type::fp8_e4m3 : Type::fp8_e5m2, p.b_type = random.coin() ? Type::fp8_e4m3 : Type::fp8_e5m2;
        if (p.c_type != Type::fp32) p.c_type = random.coin() ? Type::bf16 : Type::fp16;
    } else if (p.a_major == Major::mn) {  // of 16 bits TMA wants groups that begin at 16 B of a line
        p.a_major = Major::k, p.lda = p.k + 8 * random.whole(0, 4);
    }
    p.groups = SharedGroups(rows);
    p.b_stride = dense_stride(p, 'b') + (random.one_in(4) ? 8 * random.whole(0, 9) : 0);
    if (random.one_in(3)) give_epilogue_of_groups(random, p);
    check(p);
    return p;
}

std::string shown_group(const GemmProblem& p, const Group& f) {
    return fmt::format("{}x{}x{} {} x {} -> {} a {} b {} lda {} ldb {} ldc {} stride_b {} groups {} tile {}x{} {} cluster {}x{} order {} split_k {} swap {} {}", p.m,
                       p.n, p.k, name_of(p.a_type), name_of(p.b_type), name_of(p.c_type), a_major_name(p.a_major), b_major_name(p.b_major), p.lda, p.ldb, p.ldc, p.b_stride,
                       p.groups.text(), f.tile_m, f.tile_n, name_of(f.schedule), f.cluster_m, f.cluster_n, name_of(f.order), f.split_k, f.swap_ab, p.epilogue.text());
}

class GemmGroupsTest : public DeviceTest {};

TEST_F(GemmGroupsTest, EveryElementIsRight) {
    const std::uint64_t seed = from_environment("ROOFTILE_FUZZ_SEED", fresh_seed());
    const int count = static_cast<int>(from_environment("ROOFTILE_FUZZ_SHAPES", 60));
    fmt::print("ROOFTILE_FUZZ_SEED={} ROOFTILE_FUZZ_SHAPES={}\n", seed, count);
    const Machine machine = live_machine().machine;
    const MeasureKernels measure_kernels(compile_measure_kernels("sm_90"));
    Random random(seed);
    std::vector<GemmPlan> plans;
    std::vector<Group> fixed;
    for (int i = 0; i < count; ++i) {
        // Every fifth as the planner has it.
        const bool free = i % 5 == 4;
        const Group& f = configurations[std::size_t(i) % std::size(configurations)];
        bool found = false;
        for (int attempt = 0; attempt < 200 && !found; ++attempt) {  // a cluster wants two tiles, an n-major B wide ones
            GemmRequest request = free ? GemmRequest{} : request_of(f);
            request.top = 1, request.buildable_only = true;
            if (!free) request.dynamic_scheduler = i / int(std::size(configurations)) % 2 == 0;
            const auto derived = derive(machine, drawn_problem(random), request);
            if (const auto* some = std::get_if<Plans>(&derived)) plans.push_back(some->plans.front()), fixed.push_back(f), found = true;
        }
        EXPECT_TRUE(found) << f.tile_m << 'x' << f.tile_n;
    }
    const std::size_t only = from_environment("ROOFTILE_FUZZ_ONLY", plans.size());
    const std::size_t first = only < plans.size() ? only : 0, end = only < plans.size() ? only + 1 : plans.size();
    const std::vector<KernelOutcome> compiled = compile_all(std::span(plans).subspan(first, end - first));
    double worst = 0;
    int failures = 0;
    for (std::size_t i = first; i < end && failures < 10; ++i) {
        SCOPED_TRACE(fmt::format("list {}: {}", i, shown_group(plans[i].problem, fixed[i])));
        const KernelOutcome& outcome = compiled[i - first];
        if (const auto* error = std::get_if<Error>(&outcome)) {
            ADD_FAILURE() << shown_group(plans[i].problem, fixed[i]) << ": " << error->what();
            ++failures;
            continue;
        }
        const auto& kernel = std::get<Kernel>(outcome);
        const std::size_t bytes = kernel.workspace_bytes();
        const DeviceBuffer workspace(std::max<std::size_t>(bytes, 1));
        fill_bytes(workspace.address(), plans[i].config.dynamic_scheduler ? 0 : 0xff, workspace.bytes(), nullptr);
        const TensorLaunch launch = [&](Stream stream, TensorPointers tensors) {
            kernel.launch(stream, tensors, bytes > 0 ? workspace.data() : nullptr);
        };
        GemmVerifier verifier(measure_kernels, plans[i].problem);
        Verification v;
        try {
            v = i % 2 == 0 ? verifier.check_everything(seed + i, launch) : verifier.check_values(seed + i, launch);
        } catch (const Error& error) {  // a broken context: nothing runs any more
            FAIL() << "ROOFTILE_FUZZ_SEED=" << seed << ' ' << kernel.name_expression() << ": " << error.what();
        }
        worst = std::max(worst, v.max_error);
        if (v.failure.empty()) continue;
        ++failures;
        ADD_FAILURE() << "ROOFTILE_FUZZ_SEED=" << seed << " list " << i << ": " << shown_group(plans[i].problem, fixed[i]) << "\n  "
                      << kernel.name_expression() << "\n  " << v.failure;
    }
    fmt::print("{} lists of groups, largest error {:.3f} of its bound\n", plans.size(), worst);
}

// A graph is captured once; what it computes follows the offsets that stand in memory when it runs.
TEST_F(GemmGroupsTest, ACapturedLaunchTakesOtherCounts) {
    const Machine machine = live_machine().machine;
    const MeasureKernels measure_kernels(compile_measure_kernels("sm_90"));
    for (const auto& [swap, dynamic] : {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
        const auto problem = [](std::string_view groups) {
            GemmProblem p = gemm_problem(1200, 384, 256);
            p.groups = gemm_groups(groups, 0, "groups");
            p.b_stride = dense_stride(p, 'b');
            return p;
        };
        GemmRequest request;
        request.swap_ab = swap;
        request.buildable_only = true;
        request.dynamic_scheduler = dynamic;
        if (dynamic) request.tile_m = swap ? 16 : 64, request.tile_n = 64, request.ctas_per_sm = 1;  // more tiles than CTAs
        const auto derived = derive(machine, problem("6x200"), request);
        const Kernel kernel = compile(std::get<Plans>(derived).plans.at(0));
        kernel.load();
        ASSERT_EQ(kernel.workspace_bytes() > 0, dynamic);
        const DeviceBuffer workspace(128);
        fill_bytes(workspace.address(), 0, workspace.bytes(), nullptr);
        for (const char* counts : {"6x200", "0,1,1000,0,199,0", "1200,5x0", "5x0,1200", "5x1,1195"}) {
            StreamOwner capturing;
            Graph graph;
            const TensorLaunch launch = [&](Stream stream, TensorPointers tensors) {
                begin_capture(capturing);
                kernel.launch(capturing, tensors, workspace.data());
                graph = end_capture(capturing);
                graph.launch(stream);
            };
            const Verification v = GemmVerifier(measure_kernels, problem(counts)).check_everything(7, launch);
            EXPECT_TRUE(v.ok()) << counts << ": " << v.failure;
        }
    }
}

// Offsets that leave rows out, or that no list has: what is not a group's stays as it was, and nothing beyond C is touched.
TEST_F(GemmGroupsTest, RowsOutsideOfGroupsStay) {
    const Machine machine = live_machine().machine;
    GemmProblem p = gemm_problem(600, 256, 128);
    p.groups = SharedGroups(std::vector<std::int64_t>(3, 200));
    p.b_stride = dense_stride(p, 'b');
    const DeviceBuffer workspace(128);
    fill_bytes(workspace.address(), 0, workspace.bytes(), nullptr);
    for (const bool dynamic : {false, true}) {
        GemmRequest request;
        request.buildable_only = true;
        request.dynamic_scheduler = dynamic;
        const Kernel kernel = compile(std::get<Plans>(derive(machine, p, request)).plans.at(0));
        const DeviceBuffer a(600 * 128 * 2), b(3 * 128 * 256 * 2), offsets(16), c(600 * 256 * 2);
        struct Case {
            std::int32_t offsets[4];
            int first, end;  ///< rows that are written
        };
        for (const Case& of : {Case{{10, 20, 20, 40}, 10, 40}, Case{{0, 50, 100, 599}, 0, 599}, Case{{-5, 7, 7, 7}, 0, 7},
                               Case{{590, 595, 700, 2000000000}, 590, 600}, Case{{0, 0, 0, 0}, 0, 0}}) {
            fill_bytes(a.address(), 0, a.bytes(), nullptr);
            fill_bytes(b.address(), 0, b.bytes(), nullptr);
            fill_bytes(c.address(), 0xff, c.bytes(), nullptr);
            copy_to_device(offsets.address(), of.offsets, sizeof of.offsets);
            synchronize();
            void* tensors[] = {a.data(), b.data(), offsets.data(), c.data()};
            kernel.launch(Stream(nullptr), tensors, workspace.data());
            synchronize();
            std::vector<std::uint16_t> got(600 * 256);
            copy_to_host(got.data(), c.address(), c.bytes());
            for (int i = 0; i < 600; ++i)
                for (int j = 0; j < 256; ++j)
                    ASSERT_EQ(got[std::size_t(i * 256 + j)], i >= of.first && i < of.end ? 0 : 0xffff)
                        << "row " << i << " column " << j << " of offsets " << of.offsets[0] << " .. " << of.offsets[3];
        }
    }
}

}  // namespace
}  // namespace rooftile
