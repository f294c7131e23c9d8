// Every fused kernel that is made wrong on purpose still is one: its text applies, compiles, and is other code.
#include "tests/fuse/mutants.hpp"

#include <gtest/gtest.h>

#include "rooftile/fuse/operation.hpp"
#include "tests/device/expect_other_code.hpp"

namespace rooftile {
namespace {

TEST(FuseMutants, EachCompilesToOtherCode) { expect_other_code(fuse_operation(), fuse_mutants::all()); }

}  // namespace
}  // namespace rooftile
