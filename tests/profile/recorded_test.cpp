// Recordings are read record by record; one that was cut, or lies, is read as far as it is whole.
#include "rooftile/profile/recorded.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "rooftile/error.hpp"
#include "rooftile/profile/document.hpp"
#include "tests/from_environment.hpp"
#include "tests/profile/recording_writer.hpp"

namespace rooftile {
namespace {

/// One record of each kind.
RecordingWriter small_recording() {
    RecordingWriter w;
    w.begin(100, 4711);
    w.device(3, "a GPU");
    w.range("outer", 110, 900);
    w.parameters(1, std::string("\1\0\0\0\2\0\0\0", 8), {{0, 4}, {4, 4}});
    w.launched_with(5, 1);
    w.call("cuLaunchKernel", 120, 130, 5, 42, 7);
    w.kernel({.start = 200,
              .end = 300,
              .correlation = 5,
              .name = "first",
              .device = 3,
              .stream = 9,
              .grid = {4, 5, 6},
              .block = {7, 8, 9},
              .cluster = {2, 1, 1},
              .registers = 10,
              .static_shared = 11,
              .dynamic_shared = 12,
              .local = 13});
    w.copy(310, 320, 4096, 1, 6, 3, 9);
    w.copy(330, 340, 64, 0, 7, 3, 9);
    w.node(77, 5);
    w.clone(78, 77);
    w.kernel({.start = 400, .end = 410, .correlation = 8, .name = "first", .device = 3, .graph = 2, .node = 78});
    w.dropped(21);
    w.dropped(21);
    w.notice("something to know");
    w.end(1000);
    return w;
}

TEST(Recorded, HasEveryKindOfRecord) {
    const Recorded r = small_recording().read();
    EXPECT_EQ(r.process, 4711u);
    EXPECT_EQ(r.begin, 100u);
    EXPECT_EQ(r.end, 1000u);
    EXPECT_EQ(r.dropped, 42u);
    EXPECT_FALSE(r.cut);
    EXPECT_THAT(r.notices, testing::ElementsAre("something to know"));
    ASSERT_EQ(r.devices.size(), 1u);
    const RecordedGpu& d = r.devices[0];
    EXPECT_EQ(d.index, 3u);
    EXPECT_EQ(d.name, "a GPU");
    EXPECT_THAT((std::vector{d.sms, d.compute_major, d.compute_minor, d.shared_per_sm, d.registers_per_sm, d.threads_per_sm, d.ctas_per_sm,
                             d.shared_reserved}),
                testing::ElementsAre(132, 9, 0, 233472, 65536, 2048, 32, 1024));
    ASSERT_EQ(r.work.size(), 4u);
    const DeviceWork& k = r.work[0];
    EXPECT_EQ(k.kind, DeviceWork::Kind::kernel);
    EXPECT_EQ(k.name, "first");
    EXPECT_EQ(k.start, 200u);
    EXPECT_EQ(k.end, 300u);
    EXPECT_EQ(k.device, 3u);
    EXPECT_EQ(k.stream, 9u);
    EXPECT_EQ(k.correlation, 5u);
    EXPECT_EQ(k.graph, 0u);
    EXPECT_THAT(k.grid, testing::ElementsAre(4, 5, 6));
    EXPECT_THAT(k.block, testing::ElementsAre(7, 8, 9));
    EXPECT_THAT(k.cluster, testing::ElementsAre(2, 1, 1));
    EXPECT_THAT((std::vector{k.registers, k.static_shared, k.dynamic_shared, k.local}), testing::ElementsAre(10u, 11u, 12u, 13u));
    ASSERT_NE(k.parameters, nullptr);
    ASSERT_EQ(k.parameters->places.size(), 2u);
    EXPECT_EQ(k.parameters->places[1].offset, 4u);
    EXPECT_EQ(k.parameters->word(4), 2);
    EXPECT_EQ(k.parameters->word(5), -1);
    EXPECT_EQ(k.parameters->word(SIZE_MAX), -1);
    EXPECT_EQ(r.work[1].kind, DeviceWork::Kind::copy);
    EXPECT_EQ(r.work[1].name, "HtoD");
    EXPECT_EQ(r.work[1].bytes, 4096u);
    EXPECT_EQ(r.work[2].kind, DeviceWork::Kind::set);
    EXPECT_EQ(r.work[2].name, "memset");
    EXPECT_EQ(r.work[3].graph, 2u);
    EXPECT_EQ(r.work[3].parameters, k.parameters) << "a graph's kernel has those of the launch that was captured";
    ASSERT_EQ(r.calls.size(), 1u);
    EXPECT_EQ(r.calls[0].name, "cuLaunchKernel");
    EXPECT_EQ(r.calls[0].thread, 42u);
    EXPECT_EQ(r.calls[0].result, 7u);
    EXPECT_TRUE(r.calls[0].captured) << "a node is of it";
    ASSERT_EQ(r.ranges.size(), 1u);
    EXPECT_EQ(r.ranges[0].name, "outer");
    EXPECT_EQ(r.ranges[0].end, 900u);
}

// Its bytes are on the heap alone, so that a sanitizer sees a read beyond them.
Recorded read_exactly(std::string_view bytes) {
    const auto copy = std::make_unique<char[]>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), copy.get());
    return read_recording({copy.get(), bytes.size()}, "cut.rec");
}

TEST(Recorded, IsReadHoweverItWasCut) {
    const std::string whole = small_recording().bytes();
    std::size_t before = 0, cuts = 0;
    for (std::size_t size = 0; size <= whole.size(); ++size) {
        SCOPED_TRACE(size);
        if (size < sizeof recording::magic) {
            EXPECT_THROW(read_exactly({whole.data(), size}), RequestError);
            continue;
        }
        const Recorded r = read_exactly({whole.data(), size});
        cuts += r.cut;
        EXPECT_GE(r.work.size(), before);
        before = r.work.size();
        EXPECT_NO_THROW(profile_of({}, ""));
    }
    EXPECT_EQ(before, 4u);
    // Only at the ends of its records it looks whole: 17 and their texts, and the magic alone.
    std::size_t ends = 1;
    for (std::size_t at = sizeof recording::magic; at < whole.size(); ++ends) {
        recording::Head head;
        std::memcpy(&head, whole.data() + at, sizeof head);
        at += head.size;
    }
    EXPECT_EQ(whole.size() + 1 - sizeof recording::magic - cuts, ends);
}

TEST(Recorded, KindsOfALaterVersionAreSkipped) {
    RecordingWriter w;
    w.begin(1);
    w.record(999, std::string(40, 'x'));
    w.record(0, "");
    w.notice("after it");
    const Recorded r = w.read();
    EXPECT_FALSE(r.cut);
    EXPECT_THAT(r.notices, testing::ElementsAre("after it"));
}

TEST(Recorded, LengthsThatLieCutIt) {
    const auto word = [](std::uint32_t value) { return std::string(reinterpret_cast<const char*>(&value), sizeof value); };
    constexpr std::uint32_t most = 0xffffffff;
    struct Case {
        std::uint16_t kind;
        std::string body;
    };
    const Case cases[] = {{1, word(1) + word(9) + "12345678"},                               // a text of 9 letters in 8
                          {1, word(1) + word(most)},                                         // of four billion
                          {7, word(1) + word(1) + word(1) + word(0) + std::string(8, 'x')},  // a place, and a byte too many
                          {7, word(1) + word(most) + word(most) + word(0) + std::string(8, 'x')},
                          {12, word(1) + word(0)},
                          {2, "too short"},
                          {3, ""},
                          {4, word(1)},
                          {5, ""},
                          {6, ""},
                          {8, ""},
                          {9, ""},
                          {10, ""},
                          {11, ""}};
    for (const Case& each : cases) {
        RecordingWriter w;
        w.notice("before it");
        w.record(each.kind, each.body);
        w.notice("after it");
        const Recorded r = read_exactly(w.bytes());
        EXPECT_TRUE(r.cut) << each.kind;
        EXPECT_THAT(r.notices, testing::ElementsAre("before it")) << each.kind;
    }
    // A head that says more than there is, or less than itself.
    for (const std::uint32_t size : {0u, 7u, 17u, most}) {
        RecordingWriter w;
        w.notice("before it");
        std::string bytes = w.bytes();
        bytes += std::string("\14\0\0\0", 4) + word(size) + word(0) + word(0);
        EXPECT_TRUE(read_exactly(bytes).cut) << size;
    }
}

TEST(Recorded, ParametersOfAGraphThroughCopiesOfCopies) {
    RecordingWriter w;
    w.parameters(1, "12345678");
    w.launched_with(5, 1);
    w.node(10, 5);
    for (std::uint64_t copy = 11; copy < 20; ++copy) w.clone(copy, copy - 1);
    w.clone(31, 30), w.clone(30, 31);  // in a circle
    w.kernel({.start = 1, .end = 2, .correlation = 90, .graph = 1, .node = 19});
    w.kernel({.start = 3, .end = 4, .correlation = 90, .graph = 1, .node = 31});
    w.kernel({.start = 5, .end = 6, .correlation = 90, .graph = 1, .node = 50});  // nobody saw it made
    w.kernel({.start = 7, .end = 8, .correlation = 5});
    w.launched_with(6, 2);  // of parameters that are not there
    w.kernel({.start = 9, .end = 10, .correlation = 6});
    const Recorded r = w.read();
    ASSERT_EQ(r.work.size(), 5u);
    ASSERT_NE(r.work[0].parameters, nullptr);
    EXPECT_EQ(r.work[0].parameters->bytes, "12345678");
    EXPECT_EQ(r.work[1].parameters, nullptr);
    EXPECT_EQ(r.work[2].parameters, nullptr);
    EXPECT_EQ(r.work[3].parameters, r.work[0].parameters);
    EXPECT_EQ(r.work[4].parameters, nullptr);
}

TEST(Recorded, RangesAreClosedInTheirOrderOrByTheEnd) {
    RecordingWriter w;
    w.begin(1);
    w.open_range("never closed", 10);
    w.range("inner", 20, 30);
    w.range("other", 20, 25, 2);
    w.kernel({.start = 40, .end = 50});
    const Recorded r = w.read();
    ASSERT_EQ(r.ranges.size(), 3u);
    EXPECT_EQ(r.ranges[0].name, "never closed");
    EXPECT_EQ(r.ranges[0].end, 50u);
    EXPECT_EQ(r.ranges[1].name, "inner") << "the longer one is outside";
    EXPECT_EQ(r.ranges[2].thread, 2u);
}

// CUPTI gives a record no times where it could not take them: it happened, and no time can be spent on it.
TEST(Recorded, WorkWithoutTimesIsLeftOutAndCounted) {
    RecordingWriter w;
    w.begin(100);
    w.kernel({.start = 0, .end = 0});
    w.kernel({.start = 300, .end = 200});
    w.copy(0, 0, 8, 1);
    w.call("cuLaunchKernel", 0, 0, 5);
    w.kernel({.start = 200, .end = 300});
    w.range("backwards", 500, 400);
    w.end(1000);
    std::vector<Recorded> all;
    all.push_back(w.read());
    EXPECT_EQ(all[0].work.size(), 1u);
    EXPECT_EQ(all[0].untimed, 4u);
    EXPECT_EQ(all[0].ranges.at(0).end, 500u);
    const Profile profile = profile_of(all, "");
    EXPECT_EQ(profile.devices.at(0).window, 100);
    EXPECT_THAT(profile.notices, testing::ElementsAre(testing::HasSubstr("4 records have no times")));
}

TEST(Recorded, AnotherFileIsRefusedByName) {
    try {
        read_recording("{}", "run.json");
        FAIL() << "it was read";
    } catch (const RequestError& error) { EXPECT_STREQ(error.what(), "run.json: no recording of this version of the profiler"); }
}

// Whatever a file holds, it is read, analysed and written without a fault.
TEST(Recorded, FlippedBytesHarmNothing) {
    std::mt19937_64 random(test_seed());
    const std::string whole = small_recording().bytes();
    for (std::size_t round = 0, rounds = test_count(40, 5000); round < rounds; ++round) {
        std::string bytes = whole;
        for (std::size_t flips = 1 + random() % 4; flips > 0; --flips)
            bytes[sizeof recording::magic + random() % (bytes.size() - sizeof recording::magic)] = char(random());
        std::vector<Recorded> all;
        all.push_back(read_exactly(bytes));
        const Profile profile = profile_of(all, "");
        const Json document = profile_document(context_of("test"), profile, explained(profile, nullptr));
        EXPECT_FALSE(profile_text(document, 10, {.width = 80}).empty());
        EXPECT_FALSE(json_text(timeline(all), -1).empty());
    }
}

}  // namespace
}  // namespace rooftile
