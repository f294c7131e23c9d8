// Values as they are typed: lists, ranges by doubling and in steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"

namespace rooftile {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ValueList, ListsRangesAndSteps) {
    constexpr std::int64_t most = 1 << 20;
    EXPECT_THAT(value_list("--batch", "512", most), ElementsAre(512));
    EXPECT_THAT(value_list("--batch", "8,2,2,4", most), ElementsAre(2, 4, 8));
    EXPECT_THAT(value_list("--batch", "16..100", most), ElementsAre(16, 32, 64, 100));
    EXPECT_THAT(value_list("--batch", "16..64", most), ElementsAre(16, 32, 64));
    EXPECT_THAT(value_list("--context", "2k..8k", most), ElementsAre(2048, 4096, 8192));
    EXPECT_THAT(value_list("--batch", "128..512..128", most), ElementsAre(128, 256, 384, 512));
    EXPECT_THAT(value_list("--batch", "1,64..128", most), ElementsAre(1, 64, 128));
    for (const char* wrong : {"", "0", "a", "8..4", "..8", "4..", "1..2..", "1..8..0", "1,,2", "-1", "1..1000000..1", "99999999"})
        EXPECT_THROW(value_list("--batch", wrong, most), RequestError) << wrong;
}

TEST(ValueList, RefusalsShowWhatIsPrintable) {
    try {
        value_list("--batch", "8..4", 100);
        ADD_FAILURE();
    } catch (const RequestError& error) {
        EXPECT_THAT(error.what(), HasSubstr("--batch 8..4: the range ends before it begins"));
    }
}

}  // namespace
}  // namespace rooftile
