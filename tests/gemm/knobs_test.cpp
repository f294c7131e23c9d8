// The table of knobs: what it says once holds everywhere.
#include "rooftile/gemm/knobs.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "kernels/matrix/matrix_config.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/fields.hpp"
#include "rooftile/gemm/json.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/records.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/report/json.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;

std::set<std::string> names() {
    std::set<std::string> out;
    GemmKnobs::each([&](const auto& knob) { EXPECT_TRUE(out.emplace(knob.name).second) << knob.name; });
    return out;
}

GemmConfig sample() {
    const auto outcome = derive(machine_by_id("h100-sxm"), gemm_problem(4096, 4096, 4096));
    return std::get<Plans>(outcome).plans.front().config;
}

std::string read(const char* path) {
    std::ifstream file(std::string(ROOFTILE_SOURCE_DIR "/") + path);
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST(GemmKnobs, SchemaAndCommandLineHaveThemAll) {
    const Json config = Json::parse(read("docs/schema/gemm-1.json")).at("$defs").at("config").at("properties");
    std::set<std::string> documented;
    for (const auto& [key, value] : config.items()) documented.insert(key);
    std::set<std::string> wanted = names();
    wanted.insert("kernel");
    EXPECT_EQ(documented, wanted);
    const std::string page = read("docs/command-line.md");
    for (const Field& field : knob_fields<GemmKnobs>("")) EXPECT_THAT(page, HasSubstr(flag_of(field.key)));
}

TEST(GemmKnobs, AConfigurationIsReadBackFromItsRecord) {
    GemmConfig config = sample();
    const auto same = [](const GemmConfig& c) { return config_of(config_record(c)) == c; };
    EXPECT_TRUE(same(config));
    config.reverse = config.pack_b = config.dynamic_scheduler = true;
    config.order = Order::hilbert;
    config.evict_first = {.a = true, .c = true};
    config.schedule = Schedule::pingpong;
    EXPECT_TRUE(same(config));
    config.epilogue_tile_n = 0;  // where none leaves by TMA
    EXPECT_TRUE(same(config));
}

// The request that a plan makes, written as texts and read again, gives that plan.
TEST(GemmKnobs, ARequestIsReadBackFromItsTexts) {
    for (const char* id : {"h100-sxm", "a100-80-sxm", "b200"}) {
        const Machine machine = machine_by_id(id);
        for (const auto& problem : {gemm_problem(4096, 4096, 4096), gemm_problem(77, 1336, 5000), gemm_problem(16, 12288, 4096)}) {
            const auto outcome = derive(machine, problem);
            const GemmConfig config = std::get<Plans>(outcome).plans.front().config;
            const GemmRequest fixed = fixed_to(config);
            GemmRequest again;
            read_knobs<GemmKnobs>(given_of<GemmKnobs>(fixed), again);
            GemmKnobs::each([&](const auto& knob) { EXPECT_EQ(again.*knob.fixed, fixed.*knob.fixed) << knob.name; });
            const auto planned = derive(machine, problem, fixed);
            ASSERT_TRUE(std::holds_alternative<Plans>(planned)) << id << ": " << std::get<Infeasible>(planned).message;
            EXPECT_EQ(std::get<Plans>(planned).plans.front().config, config) << id;
        }
    }
}

TEST(GemmKnobs, NonsenseOfARecordIsRefusedByName) {
    const auto why = [](const char* key, Value value) {
        Record record = config_record(sample());
        for (auto& [name, own] : record)
            if (name == key) own = std::move(value);
        try {
            config_of(record);
        } catch (const RequestError& error) { return std::string(error.what()); }
        return std::string();
    };
    EXPECT_EQ(why("tile_m", 128), "");
    EXPECT_EQ(why("epilogue_tile_n", 0), "");
    EXPECT_THAT(why("tile_m", 0), HasSubstr("config.tile_m is 0, accepted: 1 .. 1024"));
    EXPECT_THAT(why("stages", -3), HasSubstr("config.stages is -3"));
    EXPECT_THAT(why("cluster_m", std::int64_t{5'000'000'000}), HasSubstr("config.cluster_m is 5000000000"));
    EXPECT_THAT(why("evict_first", "bx"), HasSubstr("config.evict_first is \"bx\""));
    EXPECT_THAT(why("order", "spiral"), HasSubstr("config.order is \"spiral\""));
    EXPECT_THAT(why("swap_ab", "on"), HasSubstr("config.swap_ab is \"on\""));
    EXPECT_THAT(why("kernel", "sm70_gemm"), HasSubstr("config.kernel is \"sm70_gemm\""));
}

// What is of sm90_gemm alone, every other kernel refuses, whatever it is.
TEST(GemmKnobs, OtherKernelsRefuseWhatIsHoppers) {
    const Machine machine = machine_by_id("a100-80-sxm");
    GemmKnobs::each([&]<class T>(const GemmKnob<T>& knob) {
        if (knob.owner != KnobOwner::hoppers && knob.owner != KnobOwner::dependents) return;
        GemmRequest request;
        if constexpr (std::is_same_v<T, int>) request.*knob.fixed = 8;
        else if constexpr (std::is_same_v<T, bool>) request.*knob.fixed = true;
        else request.*knob.fixed = T{true};
        const auto outcome = derive(machine, gemm_problem(4096, 4096, 4096), request);
        ASSERT_TRUE(std::holds_alternative<Infeasible>(outcome)) << knob.name;
        EXPECT_THAT(std::get<Infeasible>(outcome).message, HasSubstr(std::string(knob.name) + " = "));
    });
}

struct Anything {
    template <class T>
    operator T() const;
};
template <class... Args>
constexpr int members_of_config() {
    if constexpr (requires { MatrixConfig{Args{}..., Anything{}}; }) return members_of_config<Args..., Anything>();
    else return int(sizeof...(Args));
}

// An instantiation is written from each(): but for the planner's own two it has every member.
TEST(MatrixConfig, EveryMemberIsWritten) {
    int visited = 0;
    std::set<std::string> seen;
    MatrixConfig::each([&](const char* name, auto) { ++visited, seen.insert(name); });
    EXPECT_EQ(seen.size(), std::size_t(visited));
    EXPECT_EQ(visited + 2, members_of_config());
}

}  // namespace
}  // namespace rooftile
