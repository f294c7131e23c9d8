// Chains' plans: what is refused, which form wins where, what their times must keep to.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <regex>

#include "rooftile/chain/derive.hpp"
#include "rooftile/chain/fields.hpp"
#include "rooftile/chain/model.hpp"
#include "rooftile/chain/operation.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "tests/core/example.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;

std::string refusal_of(std::string_view line) {
    try {
        chain_problem(given_of(chain_operation(), line));
    } catch (const RequestError& error) { return error.what(); }
    return "none";
}

PlanSet plans_of(std::string_view line, const char* machine = "h200-sxm", std::string_view set = "") {
    Machine m = machine_by_id(machine);
    if (!set.empty()) set_number(m, set);
    const Given given = given_of(chain_operation(), line);
    return chain_operation().derive(std::make_shared<const Machine>(m), chain_operation().problem(given), chain_operation().request(given, {}));
}

std::map<ChainForm, const Plan*> by_form(const PlanSet& set) {
    std::map<ChainForm, const Plan*> out;
    for (const Plan& plan : set.plans) out[plan.own.as<ChainPlan>().config.form] = &plan;
    return out;
}

TEST(ChainFields, WhatCannotBeIsRefusedByName) {
    EXPECT_THAT(refusal_of("--d 64 --ff 256"), HasSubstr("missing --m"));
    EXPECT_THAT(refusal_of("--m 64 --ff 256"), HasSubstr("missing --d"));
    EXPECT_THAT(refusal_of("--m 64 --d 64"), HasSubstr("missing --ff"));
    EXPECT_THAT(refusal_of("--m 0 --d 64 --ff 256"), HasSubstr("--m"));
    EXPECT_THAT(refusal_of("--m 64 --d 60 --ff 256"), HasSubstr("d is 60"));
    EXPECT_THAT(refusal_of("--m 64 --d 64 --ff 250"), HasSubstr("ff is 250"));
    EXPECT_THAT(refusal_of("--m 64 --d 64 --ff 256 --act tanh"), HasSubstr("gelu, silu, relu"));
    EXPECT_THAT(refusal_of("--m 64 --d 64 --ff 256 --type fp32"), HasSubstr("bf16"));
    EXPECT_THAT(refusal_of("--m 1073741824 --d 1073741824 --ff 8"), HasSubstr("2^44"));
    EXPECT_THROW(plans_of("--m 64 --d 64 --ff 256 --form sideways"), RequestError);
}

TEST(ChainPlan, SwigluWithoutAnEpilogueOfPairsIsPlannedAndSaysWhoHasIt) {
    for (const char* machine : {"a100-80-sxm", "rtx4090", "b200"}) {
        const PlanSet set = plans_of("--m 4096 --d 1024 --ff 4096 --act swiglu", machine);
        const auto forms = by_form(set);
        for (const ChainForm form : {ChainForm::two_kernels, ChainForm::carry_over})
            EXPECT_THAT(forms.at(form)->why_not, HasSubstr("the first product: pairs split: sm90_gemm's so far")) << machine;
    }
}

// Where only the first plan is wanted, what is left out is never it; of wide chains, whose products bind, the persistent form is.
TEST(ChainPlan, TheFirstIsTheSameWhereOnlyItIsWanted) {
    std::size_t place = 0, left_out = 0;
    for (const char* machine : {"h200-sxm", "a40", "b200"})
        for (const char* line : {"--m 65536 --d 1024 --ff 4096", "--m 8192 --d 512 --ff 1024 --act relu", "--m 100000 --d 64 --ff 256", "--m 1000 --d 192 --ff 512 --act swiglu"})
            for (const char* set : {"", "dram.bandwidth=100 GB/s"}) {
                if (!one_in(4, place++)) continue;
                Machine m = machine_by_id(machine);
                if (*set) set_number(m, set);
                const Given given = given_of(chain_operation(), line);
                const Problem problem = chain_operation().problem(given);
                ChainRequest request;
                const PlanSet all = derive_chain(std::make_shared<const Machine>(m), problem, request);
                request.first_only = true;
                const PlanSet first = derive_chain(std::make_shared<const Machine>(m), problem, request);
                ASSERT_FALSE(first.plans.empty());
                EXPECT_EQ(chain_operation().label(first.plans.front()), chain_operation().label(all.plans.front())) << line << ' ' << machine << ' ' << set;
                left_out += first.plans.size() < all.plans.size();
            }
    EXPECT_GT(left_out, test_all() ? 6u : 0u);
}

// 65536 x 1024 x 4096: W1 and W2 are 8.4 MB each, H 537 MB. On an H200 products bind whatever moves; where DRAM is 50 times as slow
// the form that leaves H in L2 wins, and by as much as its bytes are fewer.
TEST(ChainPlan, ASlowDramLeavesTwoKernels) {
    constexpr const char* line = "--m 65536 --d 1024 --ff 4096";
    const PlanSet fast = plans_of(line);
    const auto forms = by_form(fast);
    ASSERT_TRUE(forms.contains(ChainForm::two_kernels) && forms.contains(ChainForm::persistent));
    EXPECT_FALSE(forms.contains(ChainForm::on_chip)) << "1024 columns of Y do not fit into registers";
    EXPECT_LT(*forms.at(ChainForm::two_kernels)->time_us, 1.01 * *forms.at(ChainForm::persistent)->time_us);
    const PlanSet slow = plans_of(line, "h200-sxm", "dram.bandwidth=100 GB/s");
    EXPECT_EQ(slow.plans.front().own.as<ChainPlan>().config.form, ChainForm::persistent);
    EXPECT_LT(2 * *slow.plans.front().time_us, *by_form(slow).at(ChainForm::two_kernels)->time_us);
}

// 6 MiB: weights of 512 x 2048 (2 MB each) stay beside a few rows of H, those of 1024 x 4096 (8.4 MB each) do not, so that small chunks read
// them again and again. But chunks that stay are less than a wave of tiles: CTAs wait for each other, and what is saved is bytes alone.
TEST(ChainPlan, OnASmallL2ChunksSaveBytesAndNoTime) {
    const auto prediction = [](const PlanSet& set, ChainForm form) { return by_form(set).at(form)->own.as<ChainPlan>().prediction; };
    const auto low = [](std::string line) { return plans_of(line + " --form persistent --chunk-rows 128 --room-chunks 2", "a40"); };
    const std::string narrow = "--m 65536 --d 512 --ff 2048", wide = "--m 65536 --d 1024 --ff 4096";
    const PlanSet narrow_two = plans_of(narrow, "a40"), wide_two = plans_of(wide, "a40");
    EXPECT_LT(4 * *prediction(low(narrow), ChainForm::persistent).dram_bytes, *prediction(narrow_two, ChainForm::two_kernels).dram_bytes);
    EXPECT_GT(*prediction(low(wide), ChainForm::persistent).dram_bytes, *prediction(wide_two, ChainForm::two_kernels).dram_bytes);
    EXPECT_GT(*prediction(low(narrow), ChainForm::persistent).time_us, *prediction(narrow_two, ChainForm::two_kernels).time_us);
}

// Many low chunks in room keep CTAs busy and half of H in L2: where DRAM binds they are 1.4 times as fast as two launches.
TEST(ChainPlan, OnASmallL2AndASlowDramManyLowChunksAreFirst) {
    const PlanSet set = plans_of("--m 65536 --d 512 --ff 2048", "a40", "dram.bandwidth=200 GB/s");
    const ChainPlan& first = set.plans.front().own.as<ChainPlan>();
    EXPECT_EQ(first.config.form, ChainForm::persistent);
    EXPECT_GT(first.config.room_chunks, 3);
    EXPECT_LT(1.4 * *set.plans.front().time_us, *by_form(set).at(ChainForm::two_kernels)->time_us);
}

// What a document says of a plan makes it again, whichever its form.
TEST(ChainPlan, ARecordedConfigurationIsMadeAgain) {
    Random random(490002);
    std::map<ChainForm, int> made;
    for (int i = 0; i < 3; ++i) {
        const std::string problem = fmt::format("--m {} --d {} --ff {}", 64 * random.whole(100, 1024), 64 * random.whole(1, 8), 64 * random.whole(2, 32));
        const auto machine = std::make_shared<const Machine>(machine_by_id("h200-sxm"));
        const Given given = given_of(chain_operation(), problem + fmt::format(" --room-chunks {}", random.whole(2, 24)));
        for (const Given& asked : {given, given_of(chain_operation(), problem)})
            for (const Plan& plan : chain_operation().derive(machine, chain_operation().problem(asked), chain_operation().request(asked, {})).plans) {
                const Record config = chain_operation().config_record(plan);
                const Given again = chain_operation().given_of_config(config);
                const PlanSet same = chain_operation().derive(machine, plan.problem, chain_operation().request(again, {}));
                ASSERT_FALSE(same.plans.empty()) << problem << ": " << again.text();
                const Record made_again = chain_operation().config_record(same.plans.front());
                EXPECT_TRUE(made_again == config) << problem << ": " << again.text() << "became " << chain_operation().given_of_config(made_again).text();
                ++made[plan.own.as<ChainPlan>().config.form];
            }
    }
    EXPECT_EQ(made.size(), chain_forms);
}

// Who fixes chunks or their room gets no persistent plan that is faster than what is searched, but where half the bytes are worth some time.
TEST(ChainPlan, NoChunksAreFasterThanThoseOfTheSearch) {
    Random random(47);
    int compared = 0, asked = 0;
    for (int i = 0; i < 20; ++i) {
        const std::int64_t d = 64 * random.whole(2, 24), ff = 64 * random.whole(2 * d / 64, 5 * d / 64);
        const std::string line = "--m " + std::to_string(std::int64_t(random.log_uniform(4096, 262144))) + " --d " + std::to_string(d) + " --ff " + std::to_string(ff) + " --form persistent";
        constexpr const char *machines[] = {"a40", "h200-sxm", "h100-sxm", "rtx4090", "a100-80-sxm"}, *rates[] = {"100", "200", "400", "800"};
        const char* machine = random.one_of(machines);
        const std::string set = std::string("dram.bandwidth=") + random.one_of(rates) + " GB/s";
        std::vector<std::string> others;
        for (int k = 0; k < 3; ++k)
            others.push_back(fmt::format(" --chunk-rows {} --room-chunks {}", std::int64_t(random.log_uniform(64, 16384)), random.whole(2, 48)));
        if (!one_in(4, std::size_t(i))) continue;
        ++asked;
        const PlanSet searched = plans_of(line, machine, set);
        if (searched.plans.empty() || !searched.plans.front().time_us) continue;
        const double time = *searched.plans.front().time_us, bytes = double(*searched.plans.front().own.as<ChainPlan>().prediction.dram_bytes);
        for (const std::string& fixed : others) {
            const PlanSet other = plans_of(line + fixed, machine, set);
            if (other.plans.empty()) continue;
            ++compared;
            const double other_time = *other.plans.front().time_us, other_bytes = double(*other.plans.front().own.as<ChainPlan>().prediction.dram_bytes);
            if (2 * bytes < other_bytes) EXPECT_LT(time, 1.05 * 1.01 * other_time) << line << fixed << ' ' << machine << ' ' << set;
            else EXPECT_LT(time, 1.01 * other_time) << line << fixed << ' ' << machine << ' ' << set;
        }
    }
    EXPECT_GT(compared, test_all() ? 40 : asked);
}

// `--flips`: planned at both values that a line has, the one gives the first form and the other the form that the line says.
TEST(ChainPlan, FlipsAreWhereThePlansFlip) {
    Random random(48);
    std::map<std::string, int> thresholds;  // of each number that is changed
    for (int i = 0; i < 4; ++i) {
        std::map<std::string, std::string> extents;
        extents["m"] = std::to_string(std::int64_t(random.log_uniform(1024, 16384)));
        const std::int64_t d = 64 * random.whole(1, 12);
        extents["d"] = std::to_string(d), extents["ff"] = std::to_string(64 * random.whole(2 * d / 64, 5 * d / 64));
        constexpr const char* machines[] = {"a40", "h200-sxm", "h100-sxm"};
        const char* machine = random.one_of(machines);
        const auto planned = [&](const std::string& key, const std::string& value, const char* more) {
            std::map<std::string, std::string> all = extents;
            const bool number = key.find('.') != key.npos;
            if (!number && !key.empty()) all[key] = value;
            return plans_of(fmt::format("--m {} --d {} --ff {}{}", all["m"], all["d"], all["ff"], more), machine, number ? key + "=" + value : "");
        };
        const auto form = [](const PlanSet& set) { return std::string(name_of(set.plans.front().own.as<ChainPlan>().config.form)); };
        const std::regex threshold(R"(from (\S+(?: \S+)?) (?:up|down) (\w+) \((\S+(?: \S+)?): (\w+)\))");
        const PlanSet set = planned("", "", " --flips");
        for (const std::string& note : set.notes) {
            if (!note.starts_with("flips, ")) continue;
            const std::string key = note.substr(7, note.find(':') - 7);
            for (auto at = std::sregex_iterator(note.begin(), note.end(), threshold); at != std::sregex_iterator(); ++at) {
                SCOPED_TRACE(fmt::format("{}x{}x{} {} {}", extents["m"], extents["d"], extents["ff"], machine, note));
                EXPECT_EQ((*at)[4], form(set));
                EXPECT_EQ(form(planned(key, (*at)[1], "")), (*at)[2]);
                EXPECT_EQ(form(planned(key, (*at)[3], "")), (*at)[4]);
                ++thresholds[key];
            }
        }
    }
    int all = 0;
    for (const char* key : {"m", "d", "ff", "l2.size", "dram.bandwidth"}) {
        EXPECT_GT(thresholds[key], 0) << key;
        all += thresholds[key];
    }
    EXPECT_GT(all, 6);
}

TEST(ChainPlan, MatchedOrdersMoveNoMore) {
    for (const char* line : {"--m 65536 --d 256 --ff 1024", "--m 4096 --d 512 --ff 2048 --residual", "--m 20000 --d 640 --ff 1920 --act silu"}) {
        const PlanSet set = plans_of(line);
        const auto forms = by_form(set);
        const auto moved = [&](ChainForm form) { return *forms.at(form)->own.as<ChainPlan>().prediction.dram_bytes; };
        EXPECT_LE(moved(ChainForm::carry_over), moved(ChainForm::two_kernels)) << line;
    }
}

// d = 128: Y 64, a block of H 32 and in pairs 16, 32 beside: 144 of 160 with three warpgroups. d = 320 exceeds an instruction.
TEST(ChainModel, RegistersByHand) {
    std::vector<std::string> unknown;
    const ChainHardware hw = chain_hardware(machine_by_id("h200-sxm"), Type::bf16, unknown);
    ChainProblem p{.m = 4096, .d = 128, .ff = 512};
    EXPECT_EQ(registers_needed(p, {192, 64, 2}), 64 + 32 + 16 + 32);
    EXPECT_FALSE(wall_of(hw, p, {192, 64, 2}));
    ASSERT_TRUE(wall_of(hw, p, {192, 128, 2}));
    EXPECT_EQ(wall_of(hw, p, {192, 128, 2})->reason, Reason::registers);
    p.d = 320;
    EXPECT_EQ(wall_of(hw, p, {128, 64, 1})->reason, Reason::instruction);
    // X 128 x 256 x 2 = 65536 B, W1 and W2 32768 B each a stage: 2 stages fit into 227 KiB, 3 do not.
    p.d = 256;
    EXPECT_EQ(kernel_config(p, {128, 64, 2}).shared_bytes(), 65536 + 2 * 65536 + 2 * 5 * 8 + 8);
    EXPECT_FALSE(wall_of(hw, p, {128, 64, 2}));
    EXPECT_EQ(wall_of(hw, p, {128, 64, 3})->reason, Reason::shared);
}

// 4096 FLOP a cycle: 2 x 128 x 64 x (128 + 128) / 4096 = 1024, stretched by 1.17; gelu: 128 x 64 / 16 = 512 special functions and 128 x 64 x 11 / 128
// = 704 other instructions, which products hardly go on beside.
TEST(ChainModel, UnitsByHand) {
    std::vector<std::string> unknown;
    const ChainHardware hw = chain_hardware(machine_by_id("h200-sxm"), Type::bf16, unknown);
    const ChainBlock b = chain_block(hw, {.m = 4096, .d = 128, .ff = 512}, {128, 64, 2});
    EXPECT_NEAR(b.tensor, 1024 * 1.17, 0.01);
    EXPECT_EQ(b.special, 512);
    EXPECT_EQ(b.issue, 704);
    EXPECT_NEAR(b.together, std::sqrt(1024 * 1.17 * 1024 * 1.17 + 512 * 512) + 704, 0.01);
    EXPECT_GE(b.all, b.together);
    const ChainBlock swiglu = chain_block(hw, {.m = 4096, .d = 128, .ff = 512, .act = ChainAct::swiglu}, {128, 64, 2});
    EXPECT_NEAR(swiglu.tensor, 1536 * 1.17, 0.01);
    // 4096 x 512 elements x 11 instructions on 132 SMs of 128 lanes.
    EXPECT_NEAR(function_seconds(hw, {.m = 4096, .d = 128, .ff = 512}) * hw.top_hz, 4096.0 * 512 * 11 / (132 * 128), 1);
    Machine unknown_rates = machine_by_id("h200-sxm");
    set_number(unknown_rates, "rate.mufu=unknown");
    EXPECT_EQ(chain_block(chain_hardware(unknown_rates, Type::bf16, unknown), {.m = 4096, .d = 128, .ff = 512}, {128, 64, 2}).special, 0);
}

TEST(ChainPlan, SwigluIsPlannedAndSaysWhereItIsNotBuilt) {
    for (const char* machine : {"h200-sxm", "a40"})
        for (const Plan& plan : plans_of("--m 8192 --d 1024 --ff 2048 --act swiglu", machine).plans) {
            EXPECT_EQ(plan.buildable, plan.why_not.empty());
            EXPECT_TRUE(plan.time_us);
        }
}

// A chain plan takes 10 s on one core at most, whatever its extents; where only a part is followed its notes say so.
TEST(ChainPlan, OfTheLargestProblemsInSeconds) {
    const auto part_is_said = [](const char* line, const char* machine) {
        const std::clock_t start = std::clock();  // of this process: others may have the core
        const PlanSet set = plans_of(line, machine);
        EXPECT_FALSE(set.plans.empty()) << line;
        EXPECT_LT(double(std::clock() - start) / CLOCKS_PER_SEC, 10) << line << ' ' << machine;
        return std::ranges::any_of(set.notes, [](const std::string& note) { return note.find("L2 is followed for") != note.npos; });
    };
    EXPECT_TRUE(part_is_said("--m 1048576 --d 1024 --ff 4096 --residual", "a40"));
    for (const char* machine : {"h100-sxm", "a40"})
        for (const char* line : drawn_few<const char*>({"--m 1073741824 --d 512 --ff 2048", "--m 1073741824 --d 64 --ff 16384", "--m 1073741824 --d 64 --ff 256", "--m 8192 --d 64 --ff 268435456", "--m 8192 --d 268435456 --ff 64",
                                 "--m 1048576 --d 16384 --ff 16384 --act swiglu"}, 1))
            EXPECT_TRUE(part_is_said(line, machine)) << line << ' ' << machine;
    EXPECT_FALSE(part_is_said("--m 65536 --d 512 --ff 2048", "h100-sxm"));
}

}  // namespace
}  // namespace rooftile
