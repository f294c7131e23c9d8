// Counters of a second run: which launches are asked for, what tables of Nsight Compute say, and whose they are.
#include "rooftile/profile/counted.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rooftile/error.hpp"
#include "rooftile/picture/page.hpp"
#include "tests/profile/made_profiles.hpp"

namespace rooftile {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Of three kernels: "a" four times in two grids, "b" once, and one whose name no pattern takes.
std::vector<Recorded> launches() {
    RecordingWriter w;
    w.device();
    std::uint64_t at = 100;
    const auto one = [&](const char* name, int grid, std::uint64_t ns) {
        w.launched(at, at + 1, {.start = at, .end = at + ns, .name = name, .grid = {grid, 1, 1}, .block = {128, 1, 1}});
        at += 10000;
    };
    one("_Z1av", 1, 10), one("_Z1av", 9, 500), one("_Z1bv.x", 4, 100), one("_Z1av", 9, 700), one("_Z1av", 1, 10), one("c<int>(int)", 4, 50);
    return recorded(w);
}

// The groups by time: "a" in 9 CTAs (1200 ns; its last launch is the third of "a"), "b" (the first of its name), "c", and
// "a" in one CTA (the fourth).
TEST(Counted, TheLastLaunchOfEachOfTheTopGroups) {
    const std::vector<Recorded> all = launches();
    const Profile profile = profile_of(all, "");
    const LaunchesToCount two = launches_to_count(all, profile, 2);
    EXPECT_THAT(two.kernels, ElementsAre("_Z1av", "_Z1bv.x"));
    EXPECT_THAT(two.places, ElementsAre(0, 1, 2, 3));
    EXPECT_TRUE(two.skipped.empty());
    EXPECT_EQ(kernel_filter(two), "::regex:^(_Z1av|_Z1bv\\.x)$:0|1|2|3");
    const LaunchesToCount more = launches_to_count(all, profile, 10);
    EXPECT_THAT(more.places, ElementsAre(0, 1, 2, 3, 4));
    EXPECT_THAT(more.skipped, ElementsAre("c<int>(int)"));
}

constexpr const char* wide =
    "==PROF== Connected to process 31 (/usr/bin/program)\n"
    "==PROF== Disconnected from process 31\n"
    "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\",\"Block Size\",\"Grid "
    "Size\",\"Device\",\"CC\","
    "\"dram__bytes_read.sum\",\"dram__bytes_write.sum\",\"gpu__time_duration.sum\",\"lts__t_sectors_srcunit_tex_op_read.sum\","
    "\"lts__t_sectors_srcunit_tex_op_write.sum\",\"sm__inst_issued.avg.pct_of_peak_sustained_active\","
    "\"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active\"\n"
    "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"byte\",\"byte\",\"nsecond\",\"sector\",\"sector\",\"%\",\"%\"\n"
    "\"0\",\"31\",\"program\",\"127.0.0.1\",\"_Z1av\",\"1\",\"7\",\"(128, 1, 1)\",\"(9, 1, "
    "1)\",\"0\",\"9.0\",\"58,720,256\",\"1,000\",\"700\",\"100\",\"28\",\"12.5\",\"50\"\n"
    "\"1\",\"31\",\"program\",\"127.0.0.1\",\"_Z1bv.x\",\"1\",\"7\",\"(128, 1, 1)\",\"(4, 1, "
    "1)\",\"0\",\"9.0\",\"64\",\"n/a\",\"100\",\"2\",\"2\",\"1\",\"0\"\n";

TEST(Counted, ATableWithARowALaunch) {
    const std::vector<CountedLaunch> counted = read_counted(wide);
    ASSERT_EQ(counted.size(), 2u);
    EXPECT_EQ(counted[0].kernel, "_Z1av");
    EXPECT_THAT(counted[0].grid, ElementsAre(9, 1, 1));
    EXPECT_THAT(counted[0].block, ElementsAre(128, 1, 1));
    EXPECT_EQ(counted[0].values.at("dram__bytes_read.sum"), 58720256);
    EXPECT_EQ(counted[1].values.count("dram__bytes_write.sum"), 0u);
}

TEST(Counted, ATableWithARowAValue) {
    const std::vector<CountedLaunch> counted = read_counted(
        "\"ID\",\"Process ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric "
        "Value\"\r\n"
        "\"0\",\"31\",\"say \"\"hi\"\", twice\",\"(32, 2, 1)\",\"(7, 1, 1)\",\"Command line profiler "
        "metrics\",\"dram__bytes_read.sum\",\"byte\",\"1,024\"\r\n"
        "\"0\",\"31\",\"say \"\"hi\"\", twice\",\"(32, 2, 1)\",\"(7, 1, 1)\",\"Command line profiler "
        "metrics\",\"gpu__time_duration.sum\",\"nsecond\",\"12\"\r\n"
        "\"0\",\"32\",\"other\",\"(32, 2, 1)\",\"(7, 1, 1)\",\"Command line profiler "
        "metrics\",\"dram__bytes_read.sum\",\"byte\",\"3\"\r\n");
    ASSERT_EQ(counted.size(), 2u);  // the first launches of two processes
    EXPECT_EQ(counted[0].kernel, "say \"hi\", twice");
    EXPECT_EQ(counted[0].values.at("dram__bytes_read.sum"), 1024);
    EXPECT_EQ(counted[0].values.at("gpu__time_duration.sum"), 12);
    EXPECT_EQ(counted[1].values.size(), 1u);
}

TEST(Counted, WhoseTheyAre) {
    const std::vector<Recorded> all = launches();
    Profile profile = profile_of(all, "");
    add_counters(profile, read_counted(wide));
    const KernelGroup& a = profile.kernels.at(0);
    ASSERT_TRUE(a.counters);
    EXPECT_EQ(a.counters->dram_read, 58720256);
    EXPECT_EQ(a.counters->dram_written, 1000);
    EXPECT_EQ(a.counters->l2, 128 * 32);
    EXPECT_EQ(a.counters->tensor_share, 0.5);
    EXPECT_EQ(a.counters->issue_share, 0.125);
    const KernelGroup& b = profile.kernels.at(1);
    ASSERT_TRUE(b.counters);
    EXPECT_FALSE(b.counters->dram_written);
    // "a" in another grid is another launch.
    for (std::size_t i = 2; i < profile.kernels.size(); ++i) EXPECT_FALSE(profile.kernels[i].counters) << profile.kernels[i].name;

    const Json d = profile_document(context_of("rooftile profile"), profile, explained(profile, nullptr));
    EXPECT_EQ(d.at("kernels")[0].at("launches")[0].at("counters").at("dram_read_bytes"), 58720256);
    EXPECT_TRUE(d.at("kernels")[1].at("launches")[0].at("counters").at("dram_written_bytes").is_null());
    const std::string page = page_html({{"run.json", d}}, "");
    EXPECT_THAT(page, HasSubstr("<th class=\"n\">dram_read_bytes</th>"));
    EXPECT_THAT(page_html({{"run.json", document_of(all)}}, ""), testing::Not(HasSubstr("dram_read_bytes")));
    const std::string text = profile_text(d, 10, {.width = 120});
    EXPECT_THAT(text, HasSubstr("Counters\n"));
    EXPECT_THAT(text, HasSubstr("58.72 MB"));
    EXPECT_THAT(text, HasSubstr("50.0 %"));
    EXPECT_THAT(profile_text(document_of(all), 10, {.width = 120}), testing::Not(HasSubstr("Counters")));
}

TEST(Counted, MessagesInPlaceOfATable) {
    EXPECT_TRUE(read_counted("").empty());
    EXPECT_TRUE(read_counted("==WARNING== No kernels were profiled.\n").empty());
    try {
        read_counted("==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission.\n");
        ADD_FAILURE();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::counters_denied);
        EXPECT_THAT(error.what(), HasSubstr("not permitted here: ncu says ERR_NVGPUCTRPERM - The user does not have permission.; "));
    }
    try {
        read_counted("==ERROR== Failed to prepare kernel for profiling\n");
        ADD_FAILURE();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::gpu_failed);
        EXPECT_STREQ(error.what(), "nothing was counted: ncu says Failed to prepare kernel for profiling");
    }
    // What came before the fault is kept.
    EXPECT_EQ(read_counted(std::string(wide) + "==ERROR== Failed to profile \"c\"\n").size(), 2u);
    // Any line that is cut, and none of it a fault.
    for (std::size_t end = 0; end < std::string(wide).size(); end += 7) read_counted(std::string(wide).substr(0, end));
}

}  // namespace
}  // namespace rooftile
