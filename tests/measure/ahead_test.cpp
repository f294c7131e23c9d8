// Items made ahead of their use, several at once.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

#include "rooftile/measure/bench.hpp"

namespace rooftile {
namespace {

struct Made {
    int number = 0;
    unsigned threads = 0;
};

std::function<std::optional<int>()> up_to(int count) {
    return [count, next = 0]() mutable { return next < count ? std::optional(next++) : std::nullopt; };
}

// Two cores are left to the launching thread and NVML's; of 16, five items have two each.
TEST(AheadThreads, LeaveTwoCores) {
    const auto of = [](unsigned cores) {
        const AheadThreads t = ahead_threads(cores);
        return std::pair(t.items, t.threads);
    };
    EXPECT_EQ(of(1), std::pair(1u, 1u));
    EXPECT_EQ(of(2), std::pair(1u, 1u));
    EXPECT_EQ(of(4), std::pair(1u, 2u));
    EXPECT_EQ(of(8), std::pair(3u, 2u));
    EXPECT_EQ(of(16), std::pair(5u, 2u));
    EXPECT_EQ(of(64), std::pair(5u, 12u));
}

TEST(Ahead, KeepsTheOrderWhoeverIsReadyFirst) {
    Ahead<int, Made> ahead(
        up_to(7),
        [](int number, unsigned threads) {
            std::this_thread::sleep_for(std::chrono::milliseconds(number % 2 ? 1 : 20));
            return Made{number, threads};
        },
        {3, 2});
    for (int i = 0; i < 7; ++i) {
        const auto item = ahead.next();
        ASSERT_TRUE(item);
        EXPECT_EQ(item->number, i);
        EXPECT_EQ(item->threads, i == 0 ? 0u : 2u);  // the first has the machine to itself
    }
    EXPECT_FALSE(ahead.next());
    EXPECT_FALSE(ahead.next());
}

// Nobody uses the second item before all three that may be ahead have begun: they run at once, and a fourth waits.
TEST(Ahead, MakesAsManyAtOnceAsItMay) {
    std::atomic<int> begun = 0;
    std::atomic<bool> go = false;
    Ahead<int, Made> ahead(
        up_to(9),
        [&](int number, unsigned threads) {
            if (number > 0) {
                ++begun;
                while (!go) std::this_thread::yield();
            }
            return Made{number, threads};
        },
        {3, 1});
    ahead.next();
    while (begun < 3) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(begun, 3);
    go = true;
    int rest = 0;
    while (ahead.next()) ++rest;
    EXPECT_EQ(rest, 8);
}

TEST(Ahead, AFaultComesAtItsPlace) {
    Ahead<int, Made> ahead(
        up_to(3),
        [](int number, unsigned threads) {
            if (number == 1) throw Error(ExitCode::compile_failed, "of the second");
            return Made{number, threads};
        },
        {2, 1});
    EXPECT_TRUE(ahead.next());
    EXPECT_THROW(ahead.next(), Error);
    Ahead<int, Made> none(up_to(0), [](int number, unsigned threads) { return Made{number, threads}; }, {2, 1});
    EXPECT_FALSE(none.next());
}

}  // namespace
}  // namespace rooftile
