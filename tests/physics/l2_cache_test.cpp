// The cache of blocks, by hand and beside one that is too simple to be wrong.
#include "rooftile/physics/l2_cache.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "rooftile/core/random.hpp"

namespace rooftile {
namespace {

// Room for 10 B. Blocks of 4 B: 0 and 1 stay, 2 drives out 0, which was used longest ago; 0 comes again and drives out 1.
TEST(L2Cache, ByHand) {
    L2Cache cache(10);
    ASSERT_EQ(cache.add_tensor(3), 0);
    EXPECT_FALSE(cache.read(0, 4));
    EXPECT_FALSE(cache.read(1, 4));
    EXPECT_TRUE(cache.read(0, 4));
    EXPECT_TRUE(cache.read(1, 4));
    EXPECT_FALSE(cache.read(2, 4));
    EXPECT_FALSE(cache.read(0, 4));
    EXPECT_TRUE(cache.read(2, 4));
    EXPECT_EQ(cache.traffic(0).asked, 28);
    EXPECT_EQ(cache.traffic(0).read, 16);
    EXPECT_EQ(cache.traffic(0).written, 0);
}

// What is written is written back once it has to go, or at the end; written twice before that, once.
TEST(L2Cache, WritesBackWhatIsDirtyOnce) {
    L2Cache cache(8);
    cache.add_tensor(2);
    const std::int64_t other = cache.add_tensor(2);
    cache.write(0, 4);
    cache.write(0, 4);
    EXPECT_TRUE(cache.read(0, 4));
    cache.read(other, 4);
    EXPECT_EQ(cache.traffic(0).written, 0);
    cache.read(other + 1, 4);
    EXPECT_EQ(cache.traffic(0).written, 4);
    EXPECT_FALSE(cache.read(0, 4)) << "it was driven out";
    cache.write(1, 4);
    cache.write_back();
    cache.write_back();
    EXPECT_EQ(cache.traffic(0).written, 8);
    EXPECT_TRUE(cache.read(1, 4)) << "what is written back stays";
    EXPECT_EQ(cache.traffic(1).read, 8);
}

TEST(L2Cache, KeepsNothingThatIsLargerThanItself) {
    L2Cache cache(3);
    cache.add_tensor(1);
    cache.write(0, 4);
    EXPECT_EQ(cache.held_bytes(), 0);
    EXPECT_EQ(cache.traffic(0).written, 4);
    EXPECT_FALSE(cache.read(0, 4));
}

/// A list, searched from the front.
struct PlainLru {
    struct Entry {
        std::int64_t block, bytes;
        bool dirty;
    };
    std::int64_t capacity, read = 0, written = 0;
    std::vector<Entry> list{};
    bool touch(std::int64_t block, std::int64_t bytes, bool dirty) {
        const auto found = std::find_if(list.begin(), list.end(), [&](const Entry& e) { return e.block == block; });
        const bool hit = found != list.end();
        if (hit) dirty |= found->dirty, list.erase(found);
        list.insert(list.begin(), {block, bytes, dirty});
        std::int64_t held = 0;
        for (const Entry& e : list) held += e.bytes;
        while (held > capacity) {
            held -= list.back().bytes;
            written += list.back().dirty ? list.back().bytes : 0;
            list.pop_back();
        }
        return hit;
    }
    void discard(std::int64_t block) {
        std::erase_if(list, [&](const Entry& e) { return e.block == block; });
    }
    void write_back(std::int64_t first, std::int64_t end) {
        for (Entry& e : list)
            if (e.block >= first && e.block < end) written += e.dirty ? e.bytes : 0, e.dirty = false;
    }
    std::int64_t held() const {
        std::int64_t sum = 0;
        for (const Entry& e : list) sum += e.bytes;
        return sum;
    }
    std::int64_t dirty() const {
        std::int64_t sum = 0;
        for (const Entry& e : list) sum += e.dirty ? e.bytes : 0;
        return sum;
    }
};

TEST(L2Cache, IsAsAListSearchedFromTheFront) {
    Random random(7);
    for (int round = 0; round < 300; ++round) {
        const std::int64_t blocks = random.whole(1, 40);
        std::vector<std::int64_t> bytes;
        for (std::int64_t i = 0; i < blocks; ++i) bytes.push_back(random.whole(1, 9));
        PlainLru plain{random.whole(0, 120)};
        L2Cache cache(plain.capacity);
        const std::int64_t of_first = random.whole(0, blocks);  // two tensors side by side
        cache.add_tensor(of_first);
        EXPECT_EQ(cache.add_tensor(blocks - of_first), of_first);
        const auto sum = [&](std::int64_t CacheTraffic::* of) { return cache.traffic(0).*of + cache.traffic(1).*of; };
        for (int i = 0; i < 300; ++i) {
            // What is in L2 or not, thrown away; what is dirty of a tensor or of both, written.
            if (random.one_in(10)) {
                const std::int64_t block = random.whole(0, blocks - 1);
                cache.discard(block), plain.discard(block);
            }
            if (random.one_in(30)) {
                const bool first = random.coin();
                cache.write_back(first ? 0 : 1), plain.write_back(first ? 0 : of_first, first ? of_first : blocks);
            }
            if (random.one_in(60)) cache.write_back(), plain.write_back(0, blocks);
            ASSERT_EQ(cache.held_bytes(), plain.held());
            ASSERT_EQ(sum(&CacheTraffic::dirty), plain.dirty());
            const std::int64_t block = random.whole(0, blocks - 1), size = bytes[std::size_t(block)];
            const bool writes = random.one_in(3), hit = plain.touch(block, size, writes);
            if (writes) cache.write(block, size);
            else ASSERT_EQ(cache.read(block, size), hit);
            if (!writes && !hit) plain.read += size;
        }
        EXPECT_EQ(sum(&CacheTraffic::read), plain.read);
        EXPECT_EQ(sum(&CacheTraffic::written), plain.written);
    }
}

// Two partitions of 8: a block of 4 takes 2 of them when written, 3 when one cluster has read it and 4 when many have.
TEST(L2Cache, PartitionsKeepCopiesOfWhatIsRead) {
    L2Cache cache(8, 2);
    cache.add_tensor(8);
    cache.write(0, 4), cache.write(1, 4), cache.write(2, 4);
    EXPECT_EQ(cache.held_bytes(), 6);
    EXPECT_TRUE(cache.read(0, 4, Readers::one));
    EXPECT_EQ(cache.held_bytes(), 7);
    EXPECT_TRUE(cache.read(0, 4, Readers::many));
    EXPECT_EQ(cache.held_bytes(), 8);
    cache.write(3, 4);  // drives out block 1
    EXPECT_EQ(cache.traffic(0).written, 4);
    EXPECT_EQ(cache.traffic(0).dirty, 12);
    EXPECT_FALSE(cache.read(1, 4));
}

TEST(L2Cache, WhatIsDiscardedIsNotWrittenBack) {
    L2Cache cache(8);
    cache.add_tensor(2);
    cache.write(0, 4);
    cache.discard(0), cache.discard(1);
    EXPECT_EQ(cache.held_bytes(), 0);
    cache.write_back();
    EXPECT_EQ(cache.traffic(0).written, 0);
    EXPECT_FALSE(cache.read(0, 4));
}

}  // namespace
}  // namespace rooftile
