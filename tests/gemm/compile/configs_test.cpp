// What the planner calls feasible compiles: no message of ptxas about serialised wgmma or ignored setmaxnreg,
// no spill, no stack frame, no more registers than planned.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/device/sm90_launch.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/gemm/sm90_family.hpp"
#include "tests/from_environment.hpp"
#include "tests/gemm/compile/compiled.hpp"

namespace rooftile {
namespace {

std::vector<Machine> hopper_machines() {
    std::vector<Machine> machines;
    for (const std::string& id : machine_ids())
        if (Machine m = machine_by_id(id); m.arch == "sm_90") machines.push_back(std::move(m));
    return machines;
}

// Every configuration that passes the constraints on some machine, each once, with all stages that fit.
struct Configs {
    std::vector<Sm90GemmConfig> whole, split, swapped, pieces;  // K whole, in parts; A and B swapped; K in pieces
    std::unordered_set<std::string> names{};

    void append_feasible(const Machine& machine, const GemmProblem& problem) {
        std::vector<std::string> unknown;
        const GemmHardware hw = gemm_hardware(machine, "wgmma", problem.a_type, unknown);
        const Sm90GemmFamily family(hw, problem);
        struct Collect final : GemmVisitor {
            Configs& configs;
            const GemmProblem& problem;
            Collect(Configs& c, const GemmProblem& p) : configs(c), problem(p) {}
            void reject(const Constraint&, const GemmCandidate&, std::int64_t) override {}
            void accept(const GemmCandidate& candidate) override {
                Sm90GemmConfig config = kernel_config(problem, candidate);
                config.stages = candidate.stages_max(max_stages);
                if (config.stages < candidate.stages_min) return;
                config.producer_registers = candidate.producer_registers, config.consumer_registers = candidate.consumer_registers;
                configs.insert(config);
            }
        } collect(*this, problem);
        for (const bool swap_ab : {false, true}) {  // asked for: no rule leaves a way out
            GemmRequest request;
            request.swap_ab = swap_ab;
            family.enumerate(hw, problem, request, collect);
        }
    }
    void insert(const Sm90GemmConfig& config) {
        if (names.insert(sm90_name_expression(config)).second)
            (config.in_pieces ? pieces : config.swap_ab ? swapped : config.split_k > 1 ? split : whole).push_back(config);
    }
};

const Configs& feasible_everywhere() {
    static const Configs all = [] {
        Configs configs;
        for (const Machine& machine : hopper_machines())
            for (Type type : {Type::bf16, Type::fp16})
                for (Major a : {Major::k, Major::mn})
                    for (Major b : {Major::k, Major::mn})
                        for (std::int64_t odd : {0, 3}) {  // with 3 C cannot go by TMA
                            if (b == Major::mn && odd != 0) continue;
                            const std::int64_t few = 512;  // tiles of any size leave SMs idle: K is split
                            configs.append_feasible(machine,
                                                    gemm_problem(4096, 4096 + odd, 4096, type, a, b));
                            configs.append_feasible(machine, gemm_problem(few, few + odd, 8192, type, a, b));
                        }
        return configs;
    }();
    return all;
}

TEST(GemmConfigs, EveryHopperMachineIsThere) {
    EXPECT_GE(hopper_machines().size(), 5u);  // h100-sxm h100-pcie h800-sxm h200-sxm h20
}

void expect_compiles_as_planned(const std::vector<Sm90GemmConfig>& configs) {
    std::vector<Source> sources;
    for (const Sm90GemmConfig& config : configs) sources.push_back(gemm_source(config));
    const std::vector<CompileOutcome> outcomes = compile_all(sources);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        SCOPED_TRACE(sm90_name_expression(configs[i]));
        const int threads = configs[i].threads() * configs[i].ctas_per_sm;
        expect_clean(outcomes[i], std::min(255, 65536 / threads / 8 * 8));
    }
}

TEST(GemmConfigs, FeasibleMeansItCompilesAsPlanned) {
    const std::vector<Sm90GemmConfig>& everywhere = feasible_everywhere().whole;
    ASSERT_GT(everywhere.size(), 1000u);
    const std::vector<Sm90GemmConfig> configs = drawn_few(everywhere, 16, 64);
    expect_compiles_as_planned(configs);
}

TEST(GemmConfigs, FeasibleWithPartsOfKMeansItCompilesAsPlanned) {
    const std::vector<Sm90GemmConfig>& everywhere = feasible_everywhere().split;
    for (int split_k : searched_splits)
        EXPECT_TRUE(split_k == 1
                    || std::any_of(everywhere.begin(), everywhere.end(),
                                   [&](const auto& c) { return c.split_k == split_k; }))
            << split_k;
    const std::vector<Sm90GemmConfig> configs = drawn_few(everywhere, 8, 32);
    expect_compiles_as_planned(configs);
}

TEST(GemmConfigs, FeasibleInPiecesMeansItCompilesAsPlanned) {
    const std::vector<Sm90GemmConfig>& everywhere = feasible_everywhere().pieces;
    const auto some = [&](const auto& is) { return std::any_of(everywhere.begin(), everywhere.end(), is); };
    EXPECT_TRUE(some([](const auto& c) { return c.split_k == 1; }));
    EXPECT_TRUE(some([](const auto& c) { return c.split_k > 1 && c.peers() > 1 && c.swap_ab; }));
    EXPECT_TRUE(some([](const auto& c) { return !c.tma_store; }));
    const std::vector<Sm90GemmConfig> configs = drawn_few(everywhere, 16, 64);
    expect_compiles_as_planned(configs);
}

TEST(GemmConfigs, FeasibleWithAAndBSwappedMeansItCompilesAsPlanned) {
    const std::vector<Sm90GemmConfig>& everywhere = feasible_everywhere().swapped;
    const auto some = [&](const auto& is) { return std::any_of(everywhere.begin(), everywhere.end(), is); };
    EXPECT_TRUE(some([](const auto& c) { return c.schedule == Schedule::pingpong; }));
    EXPECT_TRUE(some([](const auto& c) { return c.split_k > 1 && c.peers() > 1; }));
    EXPECT_TRUE(some([](const auto& c) { return c.overlapped_epilogue; }));
    EXPECT_TRUE(some([](const auto& c) { return !c.tma_store; }));
    EXPECT_TRUE(some([](const auto& c) { return c.tile_m % 16 == 8; }));
    const std::vector<Sm90GemmConfig> configs = drawn_few(everywhere, 16, 64);
    expect_compiles_as_planned(configs);
}

// Whole and multicast loads, stores at once and overlapped: hints stand where they are asked for and nowhere
// else.
TEST(GemmConfigs, CacheHintsStandOnlyWhereTheyAreAskedFor) {
    GemmRequest request;
    request.tile_m = 128, request.tile_n = 256, request.split_k = 1, request.top = 1;
    request.swap_ab = false;
    std::size_t place = 0;
    for (int cluster_m : {1, 2})
        for (bool overlapped : {false, true})
            for (int operands = 0; operands < 4; ++operands) {
                if (!one_in(4, place++)) continue;
                SCOPED_TRACE(testing::Message() << cluster_m << overlapped << operands);
                request.cluster_m = cluster_m, request.cluster_n = 1;
                request.schedule = Schedule::cooperative;
                request.overlapped_epilogue = overlapped;
                request.evict_first.reset();
                const bool load = operands & 1, store = operands & 2;
                if (operands) request.evict_first = EvictFirst{false, load, store};
                const auto outcome =
                    derive(machine_by_id("h100-sxm"), gemm_problem(4096, 4096, 4096), request);
                ASSERT_TRUE(std::holds_alternative<Plans>(outcome));
                const Sm90GemmConfig config = kernel_config(std::get<Plans>(outcome).plans.front());
                const Source source = gemm_source(config);
                const std::string ptx = compile_to_ptx(source);
                const int loads = mentions(ptx, "complete_tx::bytes");
                const int stores = mentions(ptx, "global.shared::cta.bulk_group");
                ASSERT_GT(loads, 0u);
                ASSERT_GT(stores, 0u);
                EXPECT_EQ(mentions(ptx, "cache_hint"), (load ? loads : 0) + (store ? stores : 0));
                EXPECT_EQ(mentions(ptx, "bulk_group.L2::cache_hint"), store ? stores : 0);
                if (load == store) {
                    EXPECT_FALSE(unclean(compile_source(source)));
                }
            }
}

// Where registers are scarcest for what the producer holds: a sample of all rarely meets one of these.
TEST(GemmConfigs, ProducersOfFewRegistersThatMulticastCompileAsPlanned) {
    std::vector<Sm90GemmConfig> tight;
    for (const auto* configs :
         {&feasible_everywhere().whole, &feasible_everywhere().split, &feasible_everywhere().swapped})
        std::copy_if(configs->begin(), configs->end(), std::back_inserter(tight), [](const auto& c) {
            return c.producer_registers > 0 && c.producer_registers < 40 && c.peers() > 1;
        });
    ASSERT_FALSE(tight.empty());
    std::vector<Sm90GemmConfig> configs = drawn_few(std::move(tight), 8, 32);
    for (std::size_t i = 0; i < configs.size(); i += 2)  // a policy is one more word to hold
        configs[i].load_policy = configs[i].store_policy = true;
    expect_compiles_as_planned(configs);
}

}  // namespace
}  // namespace rooftile
