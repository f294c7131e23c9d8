#include "rooftile/core/derivation.hpp"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

namespace rooftile {
namespace {

TEST(Steps, AreWrittenOnceAndOnlyWhereRead) {
    std::atomic<int> written = 0;
    const Steps steps(Steps::Writer([&] {
        ++written;
        return std::vector<Step>{{"T", "F / rate", {}, 2, "cycles", ""}, {"L", "", {}, {}, "cycles", ""}};
    }));
    const Steps copy = steps;
    EXPECT_EQ(written, 0);
    std::vector<std::thread> readers;
    for (int i = 0; i < 4; ++i) readers.emplace_back([&] { EXPECT_EQ(copy.size(), 2u); });
    for (std::thread& reader : readers) reader.join();
    EXPECT_EQ(steps[0].quantity, "T");
    EXPECT_EQ(&steps.all(), &copy.all());
    EXPECT_EQ(written, 1);
}

TEST(Steps, MayBeGivenOrMissing) {
    EXPECT_TRUE(Steps().all().empty());
    Steps steps = {{"T", "", {}, 2, "cycles", ""}};
    std::vector<Step> changed = steps;
    changed[0].unit = "s";
    EXPECT_EQ(steps[0].unit, "cycles");
    steps = changed;
    EXPECT_EQ(steps.begin()->unit, "s");
}

}  // namespace
}  // namespace rooftile
