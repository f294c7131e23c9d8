// Every attention kernel that is made wrong on purpose still is one: its text applies, compiles, and is other code.
#include "tests/attention/mutants.hpp"

#include <gtest/gtest.h>

#include "rooftile/attention/operation.hpp"
#include "tests/device/expect_other_code.hpp"

namespace rooftile {
namespace {

TEST(AttentionMutants, EachCompilesToOtherCode) { expect_other_code(attention_operation(), attention_mutants::all()); }

}  // namespace
}  // namespace rooftile
