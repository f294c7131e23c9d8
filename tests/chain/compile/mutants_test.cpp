// Every chain kernel that is made wrong on purpose still is one: its text applies, compiles, and is other code.
#include "tests/chain/mutants.hpp"

#include <gtest/gtest.h>

#include "rooftile/chain/operation.hpp"
#include "tests/device/expect_other_code.hpp"

namespace rooftile {
namespace {

TEST(ChainMutants, EachCompilesToOtherCode) { expect_other_code(chain_operation(), chain_mutants::all()); }

}  // namespace
}  // namespace rooftile
