// Every kernel that is made wrong on purpose still is one: its text applies, compiles, and is other code.
#include "tests/gemm/mutants.hpp"

#include <gtest/gtest.h>

#include "rooftile/gemm/operation.hpp"
#include "tests/device/expect_other_code.hpp"

namespace rooftile {
namespace {

TEST(GemmMutants, EachCompilesToOtherCode) { expect_other_code(gemm_operation(), gemm_mutants::all()); }

}  // namespace
}  // namespace rooftile
