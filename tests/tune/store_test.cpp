#include "rooftile/tune/store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "rooftile/machine/registry.hpp"
#include "rooftile/report/suite_rows.hpp"
#include "tests/core/example.hpp"
#include "tests/folder.hpp"

namespace rooftile {
namespace {

const TunePlace here = {.gpu = "NVIDIA H200", .power_limit_w = 700, .driver = "580.82.07", .program = "this"};

class TuneStoreTest : public testing::Test {
  protected:
    TuneStoreTest() {
        const Operation& operation = *operations().front();
        const Given given = example_of(operation);
        plans_ = operation.derive(std::make_shared<const Machine>(machine_by_id("h200-sxm")), operation.problem(given),
                                  operation.request(given, {.top = 4, .buildable_only = true}));
    }
    /// That plan `rank` is the choice, for that place.
    TunedChoice choice(int rank, const TunePlace& place = here) const {
        const Plan& plan = plans_.plans.at(std::size_t(rank) - 1);
        TunedChoice made{.place = place,
                         .date = "2026-11-29T10:00:00Z",
                         .name = "a problem",
                         .problem = problem_key(plans_.problem),
                         .first = first_config(plans_),
                         .config = config_text(plan),
                         .rank = rank,
                         .label = plan.operation->label(plan),
                         .time_us = 10,
                         .first_us = 10.5,
                         .ratio = {},
                         .candidates = {{1, "one", 10.5}, {rank, "other", 10}}};
        if (rank > 1) made.ratio = MedianInterval{1.05, 1.04, 1.06, 0.97, 6};
        return made;
    }
    TuneStore store(CacheMode mode = CacheMode::read_write) const { return TuneStore({mode, (folder_.path() / "cache").string(), ""}); }
    std::string text() const {
        std::ifstream file(store().path());
        return {std::istreambuf_iterator<char>(file), {}};
    }

    Folder folder_;
    PlanSet plans_;
};

TEST_F(TuneStoreTest, FindsWhatItKept) {
    EXPECT_FALSE(store().find(here, plans_));  // there is no folder yet
    for (const int rank : {1, 3}) {
        ASSERT_EQ(store().keep(choice(rank)), "");
        const auto found = store().find(here, plans_);
        ASSERT_TRUE(found);
        EXPECT_EQ(line_of(*found), line_of(choice(rank)));
        EXPECT_EQ(place_of(*found, plans_), std::size_t(rank) - 1);
        EXPECT_EQ(found->ratio.has_value(), rank > 1);
    }
    EXPECT_EQ(store().all("this").size(), 1u) << "the later one is in the place of the earlier one";
}

TEST_F(TuneStoreTest, AChoiceIsOfOneGpuLimitDriverAndProgram) {
    ASSERT_EQ(store().keep(choice(2)), "");
    TunePlace other = here;
    other.gpu = "NVIDIA H100 80GB HBM3";
    EXPECT_FALSE(store().find(other, plans_));
    other = here, other.power_limit_w = 500;
    EXPECT_FALSE(store().find(other, plans_));
    other.power_limit_w.reset();
    EXPECT_FALSE(store().find(other, plans_));
    other = here, other.driver = "581";
    EXPECT_FALSE(store().find(other, plans_));
    ASSERT_EQ(store().keep(choice(3, other)), "");  // both are kept
    EXPECT_EQ(store().find(here, plans_)->rank, 2);
    EXPECT_EQ(store().find(other, plans_)->rank, 3);
}

TEST_F(TuneStoreTest, AnotherProgramsChoicesAreIgnoredThenDropped) {
    TunePlace before = here;
    before.program = "before";
    ASSERT_EQ(store().keep(choice(2, before)), "");
    EXPECT_FALSE(store().find(here, plans_));
    EXPECT_TRUE(store().all("this").empty());
    ASSERT_EQ(store().keep(choice(1)), "");
    EXPECT_EQ(text(), line_of(choice(1)) + "\n");
}

TEST_F(TuneStoreTest, PlansThatBeginOtherwiseOrLackTheChoiceHaveNone) {
    ASSERT_EQ(store().keep(choice(3)), "");
    PlanSet other = plans_;
    other.plans.erase(other.plans.begin());  // as where the request fixes something
    EXPECT_FALSE(store().find(here, other));
    other = plans_;
    other.plans.resize(2);
    EXPECT_FALSE(store().find(here, other));
    other = plans_;
    other.plans.insert(other.plans.begin(), other.plans.back());
    other.plans.front().buildable = false;  // what cannot be built is no plan 1
    EXPECT_TRUE(store().find(here, other));
    EXPECT_EQ(place_of(choice(3), other), 3u);
    other.plans.clear();
    EXPECT_FALSE(store().find(here, other));
}

TEST_F(TuneStoreTest, ABrokenLineHurtsNobody) {
    ASSERT_EQ(store().keep(choice(3)), "");
    const std::string whole = line_of(choice(3));
    std::ofstream(store().path()) << "no JSON\n{}\n" << whole.substr(0, whole.size() / 2) << "\n[1, 2]\n" << std::string(3, '\0') << "\n"
                                  << "{\"gpu\":1,\"gpu\":2}\n" << whole << "\n" << whole.substr(0, 40);
    EXPECT_EQ(store().find(here, plans_)->rank, 3);
    ASSERT_EQ(store().keep(choice(2)), "");
    EXPECT_EQ(text(), line_of(choice(2)) + "\n");
    // Each key of a line missing, or of another kind.
    for (const std::string key : {"gpu", "driver", "program", "date", "name", "problem", "rank", "label", "config", "first_config", "time_us",
                                  "candidates"}) {
        std::string broken = whole;
        broken.replace(broken.find("\"" + key + "\""), key.size() + 2, "\"other\"");
        EXPECT_FALSE(choice_of_line(broken)) << key;
    }
}

TEST_F(TuneStoreTest, AFileOfOthersIsNotRead) {
    ASSERT_EQ(store().keep(choice(3)), "");
    ASSERT_EQ(chmod(store().path().c_str(), 0666), 0);
    EXPECT_FALSE(store().find(here, plans_));
    // Nor is it written over.
    EXPECT_THAT(store().keep(choice(2)), testing::HasSubstr("writable by others"));
    EXPECT_THROW(store().drop(), RequestError);
    EXPECT_THROW(store().all("this"), RequestError);
    ASSERT_EQ(chmod(store().path().c_str(), 0600), 0);
    EXPECT_EQ(store().find(here, plans_)->rank, 3);
}

TEST_F(TuneStoreTest, SaysWhyNothingIsKept) {
    EXPECT_NE(store(CacheMode::off).keep(choice(2)), "");
    EXPECT_NE(store(CacheMode::read_only).keep(choice(2)), "");
    EXPECT_FALSE(std::filesystem::exists(store().path()));
    ASSERT_EQ(store().keep(choice(2)), "");
    EXPECT_TRUE(store(CacheMode::read_only).find(here, plans_));
    EXPECT_FALSE(store(CacheMode::off).find(here, plans_));
    EXPECT_THROW(store(CacheMode::read_only).drop(), RequestError);
    EXPECT_EQ(store().drop(), 1u);
    EXPECT_EQ(store().drop(), 0u);
    EXPECT_TRUE(store().all("this").empty());
}

TEST_F(TuneStoreTest, ProcessesThatKeepAtOnceLoseNothing) {
    constexpr int processes = 4, choices = 10;
    std::vector<pid_t> children;
    for (int p = 0; p < processes; ++p) {
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child > 0) {
            children.push_back(child);
            continue;
        }
        bool kept = true;
        for (int i = 0; i < choices; ++i) {
            TunePlace place = here;
            place.gpu = std::to_string(p) + " " + std::to_string(i);
            kept &= store().keep(choice(2, place)).empty();
        }
        _exit(kept ? 0 : 1);
    }
    for (const pid_t child : children) {
        int status = 1;
        waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
    }
    EXPECT_EQ(store().all("this").size(), std::size_t(processes * choices));
}

}  // namespace
}  // namespace rooftile
