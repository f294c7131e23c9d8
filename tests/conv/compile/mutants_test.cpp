// Every convolution that is made wrong on purpose still is one: its text applies, compiles, and is other code.
#include "tests/conv/mutants.hpp"

#include <gtest/gtest.h>

#include "rooftile/conv/operation.hpp"
#include "tests/device/expect_other_code.hpp"

namespace rooftile {
namespace {

TEST(ConvMutants, EachCompilesToOtherCode) { expect_other_code(conv_operation(), conv_mutants::all()); }

}  // namespace
}  // namespace rooftile
