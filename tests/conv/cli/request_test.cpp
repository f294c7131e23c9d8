// Requests for convolutions from outside: what is refused, and documents that follow their schema.
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

TEST(ConvRequests, AreRefusedWhereTheyAreWrong) {
    expect_refused({"plan", "conv"}, {"missing --channels"});
    expect_refused({"plan", "conv", "--channels", "64", "--width", "8", "--filters", "8", "--kernel-size", "3x3"}, {"--kernel-size"});
    expect_refused({"plan", "conv", "--channels", "64", "--width", "8", "--filters", "8", "--kernel-size", "3", "--layout", "nchw"}, {"--layout", "channels-last"});
}

}  // namespace
}  // namespace rooftile
