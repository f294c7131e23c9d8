// What a refusal says of shared memory adds up: its own numbers, worked out again from the line.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>

#include "rooftile/core/random.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/machine/registry.hpp"

namespace rooftile {
namespace {

TEST(GemmRefusal, ItsBytesAddUp) {
    Random random(471060);
    const std::regex line(R"((\d+) stages: (\d+) x (\d+) = (\d+) B \+ (\d+) B .* > (\d+) B of shared memory.*; (\d+) fit)");
    int said = 0;
    for (int i = 0; i < 60; ++i) {
        static constexpr const char* ids[] = {"h100-sxm", "a100-80-sxm", "rtx4090"};
        const auto machine = std::make_shared<const Machine>(machine_by_id(random.one_of(ids)));
        const int tile_m = int(64 * random.whole(1, 4)), tile_n = int(32 * random.whole(1, 8)), tile_k = 64, least = int(random.whole(2, 8));
        std::map<int, std::int64_t> beside;  // what is not a stage's operands, by stages
        for (const int stages : {least, least + 3, least + 10}) {
            Given given(Given::Named::by_key);
            for (const char* key : {"m", "n", "k"}) given.add(key, "4096");
            given.add("tile", fmt::format("{}x{}x{}", tile_m, tile_n, tile_k)), given.add("stages", std::to_string(stages));
            const Operation& op = gemm_operation();
            const PlanSet set = op.derive(machine, op.problem(given), op.request(given, {}));
            std::smatch found;
            if (!set.refusal || !std::regex_search(set.refusal->message, found, line)) continue;
            ++said;
            const auto number = [&](std::size_t k) { return std::stoll(found[k]); };
            SCOPED_TRACE(set.refusal->message);
            EXPECT_EQ(number(1), stages);
            EXPECT_EQ(number(2), stages);
            EXPECT_EQ(number(3), (tile_m + tile_n) * tile_k * 2);
            EXPECT_EQ(number(4), number(2) * number(3));
            EXPECT_GT(number(4) + number(5), number(6)) << "it would fit";
            EXPECT_LT(number(7), stages);
            // What fits has room, and one stage more has none: barriers are a few bytes a stage.
            EXPECT_LE(number(7) * number(3), number(6));
            EXPECT_GT((number(7) + 1) * number(3) + number(5), number(6));
            beside[stages] = number(5);
        }
        // A stage has two barriers of 8 B where copies are TMA's, else none.
        for (const auto& [stages, bytes] : beside)
            EXPECT_EQ(bytes - beside.begin()->second, (machine->id == "h100-sxm" ? 16 : 0) * (stages - beside.begin()->first));
    }
    EXPECT_GE(said, 60);
}

}  // namespace
}  // namespace rooftile
