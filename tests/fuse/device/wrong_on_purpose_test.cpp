// Fused kernels made wrong on purpose: each must be caught, by the case that its test names.
#include <gtest/gtest.h>

#include <set>

#include "rooftile/fuse/operation.hpp"
#include "tests/device/wrong_on_purpose.hpp"
#include "tests/fuse/mutants.hpp"

namespace rooftile {
namespace {

void caught(const Mutant& mutant, By by) { expect_caught(fuse_operation(), mutant, by); }

TEST_F(WrongOnPurpose, EveryFusedKernelIsRightAsItIs) {
    std::set<std::string> problems;
    for (const Mutant& mutant : fuse_mutants::all())
        if (problems.insert(mutant.problem).second) expect_right(fuse_operation(), mutant);
}

TEST_F(WrongOnPurpose, FuseOneRow) { caught(fuse_mutants::one_row_wrong(), By::random); }
TEST_F(WrongOnPurpose, FuseLastWarpSkipped) { caught(fuse_mutants::last_warp_skipped(), By::random); }
TEST_F(WrongOnPurpose, FuseLastCtaSkipped) { caught(fuse_mutants::last_cta_skipped(), By::random); }
TEST_F(WrongOnPurpose, FuseLastCtaOfTheGridSkipped) {
    caught(fuse_mutants::last_cta_of_the_grid_skipped(), By::random);
}
TEST_F(WrongOnPurpose, FuseNaiveVariance) { caught(fuse_mutants::naive_variance(), By::shifted); }
TEST_F(WrongOnPurpose, FuseMeanLeftNear) { caught(fuse_mutants::mean_left_near(), By::shifted); }
TEST_F(WrongOnPurpose, FuseLastPartSkipped) { caught(fuse_mutants::last_part_skipped(), By::random); }
TEST_F(WrongOnPurpose, FuseLastRowsSkipped) { caught(fuse_mutants::last_rows_skipped(), By::random); }
TEST_F(WrongOnPurpose, FuseSplitTakenTwice) { caught(fuse_mutants::split_taken_twice(), By::random); }
TEST_F(WrongOnPurpose, FuseShiftLeftOut) { caught(fuse_mutants::shift_left_out(), By::random); }
TEST_F(WrongOnPurpose, FuseMaskShifted) { caught(fuse_mutants::mask_shifted(), By::random); }
TEST_F(WrongOnPurpose, FuseElementUnwritten) { caught(fuse_mutants::element_unwritten(), By::random); }
TEST_F(WrongOnPurpose, FusePastTheOutput) { caught(fuse_mutants::past_the_output(), By::guards); }
TEST_F(WrongOnPurpose, FuseFarPastTheOutput) { caught(fuse_mutants::far_past_the_output(), By::guards); }
TEST_F(WrongOnPurpose, FuseInputChanged) { caught(fuse_mutants::input_changed(), By::guards); }
TEST_F(WrongOnPurpose, FuseNanToZero) { caught(fuse_mutants::nan_to_zero(), By::special); }
TEST_F(WrongOnPurpose, FuseNanUnwritten) { caught(fuse_mutants::nan_unwritten(), By::special); }
TEST_F(WrongOnPurpose, FuseTruncated) { caught(fuse_mutants::truncated(), By::random); }
TEST_F(WrongOnPurpose, FuseFromTheTenthLaunchOn) {
    caught(fuse_mutants::wrong_from_the_tenth_launch_on(), By::timed);
}
TEST_F(WrongOnPurpose, FuseStaleRow) { caught(fuse_mutants::stale_row(), By::random); }

}  // namespace
}  // namespace rooftile
