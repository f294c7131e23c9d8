// What docs/convolution.md says of an architecture for convolutions: every number of its table is what the plans give.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>

#include "rooftile/conv/operation.hpp"
#include "rooftile/conv/simulation.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "tests/core/example.hpp"

namespace rooftile {
namespace {

Record prediction_of(const std::string& layer, std::string_view set) {
    Machine machine = machine_by_id("h100-sxm");
    if (!set.empty()) set_number(machine, set);
    const Given given = given_of(conv_operation(), layer);
    const PlanSet plans = conv_operation().derive(std::make_shared<const Machine>(machine), conv_operation().problem(given), conv_operation().request(given, {.top = 1}));
    return conv_operation().prediction_record(plans.plans.at(0));
}

std::string row_of(const std::string& layer) {
    std::string out = fmt::format("| `{}` |", layer);
    const auto ratio = [](const Record& of, std::string_view part, std::string_view whole) {
        return double(find_as<std::int64_t>(of, part).value_or(0)) / double(find_as<std::int64_t>(of, whole).value_or(1));
    };
    for (const char* l2 : {"l2.size=1MiB", "l2.size=4MiB", "l2.size=16MiB", ""}) out += fmt::format(" {:.2f} |", ratio(prediction_of(layer, l2), "dram_bytes", "dram_lower_bound_bytes"));
    const Record as_is = prediction_of(layer, "");
    out += fmt::format(" {:.1f} |", ratio(as_is, "l2_bytes", "l2_lower_bound_bytes"));
    out += fmt::format(" {:.1f} |", ratio(as_is, "unrolled_bytes", "image_bytes"));
    return out + fmt::format(" {:.1f} |", ratio(as_is, "halo_bytes", "image_bytes"));
}

TEST(ConvPage, NumbersOfTheArchitectureTableAreThePlans) {
    std::ifstream page(std::string(ROOFTILE_SOURCE_DIR) + "/docs/convolution.md");
    int rows = 0;
    for (std::string line; std::getline(page, line);) {
        if (!line.starts_with("| `--batch")) continue;
        const std::string layer = line.substr(3, line.find('`', 3) - 3), expected = row_of(layer);
        if (std::getenv("ROOFTILE_REGENERATE")) std::cout << expected << '\n';
        EXPECT_EQ(line, expected);
        ++rows;
    }
    EXPECT_GE(rows, 6);
}

// Those of what is simulated, in the plan's order.
TEST(ConvPage, NumbersOfTheSimulatedTableAreTheSimulations) {
    std::ifstream page(std::string(ROOFTILE_SOURCE_DIR) + "/docs/convolution.md");
    const Operation& product = *image_products().operation;
    int rows = 0;
    for (std::string line; std::getline(page, line);) {
        if (!line.starts_with("| simulated `--batch")) continue;
        const std::size_t begin = line.find('`') + 1;
        const std::string layer = line.substr(begin, line.find('`', begin) - begin);
        std::string expected = fmt::format("| simulated `{}` |", layer);
        for (const char* l2 : {"l2.size=1MiB", "l2.size=16MiB"}) {
            Machine machine = machine_by_id("h100-sxm");
            set_number(machine, l2);
            const Given given = given_of(conv_operation(), layer);
            const PlanSet plans = conv_operation().derive(std::make_shared<const Machine>(machine), conv_operation().problem(given), conv_simulates().request(given));
            const SimulatedBytes moved =
                facet_of<Simulates>(product)->simulate(machine, plans.own.as<PlanSet>(), Given(Given::Named::by_key), {.orders = "plan"})->planned();
            expected += fmt::format(" {:.2f} |", double(moved.dram) / moved.dram_bound.value_or(1));
        }
        EXPECT_EQ(line, expected);
        ++rows;
    }
    EXPECT_EQ(rows, 6);
}

}  // namespace
}  // namespace rooftile
