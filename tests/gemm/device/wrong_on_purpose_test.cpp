// Matrix products made wrong on purpose: each must be caught, by the case that its test names.
#include <gtest/gtest.h>

#include <set>

#include "rooftile/gemm/operation.hpp"
#include "tests/device/wrong_on_purpose.hpp"
#include "tests/gemm/mutants.hpp"

namespace rooftile {
namespace {

void caught(const Mutant& mutant, By by) { expect_caught(gemm_operation(), mutant, by); }
/// At every K, with whole numbers off.
void caught_at_every_depth(Mutant (*mutant)(std::int64_t k)) {
    for (const std::int64_t k : gemm_mutants::depths) caught(mutant(k), By::random);
}

TEST_F(WrongOnPurpose, EveryGemmIsRightAsItIs) {
    std::set<std::string> problems;
    std::vector<Mutant> mutants = gemm_mutants::all();
    for (const std::int64_t k : gemm_mutants::depths) {
        mutants.push_back(gemm_mutants::block_dropped(k));
        mutants.push_back(gemm_mutants::ampere_block_dropped(k));
        mutants.push_back(gemm_mutants::block_of_bytes_dropped(k));
    }
    for (const Mutant& mutant : mutants)
        if (problems.insert(mutant.problem).second) expect_right(gemm_operation(), mutant);
}

TEST_F(WrongOnPurpose, GemmStageNotGivenBackToPeers) { expect_hangs(gemm_operation(), gemm_mutants::stage_not_given_back_to_peers()); }
TEST_F(WrongOnPurpose, GemmTurnNotPassedOn) { expect_hangs(gemm_operation(), gemm_mutants::turn_not_passed_on()); }
TEST_F(WrongOnPurpose, GemmTailOfKDropped) { caught(gemm_mutants::tail_of_k_dropped(), By::random); }
TEST_F(WrongOnPurpose, GemmBlockDropped) { caught_at_every_depth(gemm_mutants::block_dropped); }
TEST_F(WrongOnPurpose, GemmBlockOfBytesDropped) { caught_at_every_depth(gemm_mutants::block_of_bytes_dropped); }
TEST_F(WrongOnPurpose, GemmStepDropped) { caught_at_every_depth(gemm_mutants::step_dropped); }
TEST_F(WrongOnPurpose, GemmBlockDroppedFromTheTenthLaunchOn) {
    caught(gemm_mutants::block_dropped_from_the_tenth_launch_on(), By::timed);
}
TEST_F(WrongOnPurpose, GemmRowPastCFromTheTenthLaunchOn) {
    caught(gemm_mutants::row_past_c_from_the_tenth_launch_on(), By::timed);
}
TEST_F(WrongOnPurpose, GemmTilePastCFromTheTenthLaunchOn) {
    caught(gemm_mutants::tile_past_c_from_the_tenth_launch_on(), By::guards_of_sets);
}
TEST_F(WrongOnPurpose, GemmNothingWritten) { caught(gemm_mutants::nothing_written(), By::random); }
TEST_F(WrongOnPurpose, GemmBiasTwiceOnTheLastColumnTile) { caught(gemm_mutants::bias_twice_on_the_last_column_tile(), By::exact); }
TEST_F(WrongOnPurpose, GemmGateAndUpSwapped) { caught(gemm_mutants::gate_and_up_swapped(), By::exact); }
TEST_F(WrongOnPurpose, GemmGateAndUpSwappedInTheLastColumns) { caught(gemm_mutants::gate_and_up_swapped_in_the_last_columns(), By::exact); }
TEST_F(WrongOnPurpose, GemmUpsOfTheNextGates) { caught(gemm_mutants::ups_of_the_next_gates(), By::exact); }
TEST_F(WrongOnPurpose, GemmSecondResultOfTheFirst) { caught(gemm_mutants::second_result_of_the_first(), By::exact); }
TEST_F(WrongOnPurpose, GemmSecondResultMissing) { caught(gemm_mutants::second_result_missing(), By::exact); }
TEST_F(WrongOnPurpose, GemmRowsSwapped) { caught(gemm_mutants::rows_swapped(), By::random); }
TEST_F(WrongOnPurpose, GemmColumnsUnwritten) { caught(gemm_mutants::columns_unwritten(), By::random); }
TEST_F(WrongOnPurpose, GemmRowPastC) { caught(gemm_mutants::row_past_c(), By::guards); }
TEST_F(WrongOnPurpose, GemmColumnPastC) { caught(gemm_mutants::column_past_c(), By::guards); }
TEST_F(WrongOnPurpose, GemmTilePastC) { caught(gemm_mutants::tile_past_c(), By::guards); }
TEST_F(WrongOnPurpose, GemmOperandsInFp8) { caught_at_every_depth(gemm_mutants::operands_in_fp8); }
TEST_F(WrongOnPurpose, GemmSumsInBf16) { caught_at_every_depth(gemm_mutants::sums_in_bf16); }
TEST_F(WrongOnPurpose, GemmNanToZero) {
    caught(gemm_mutants::nan_to_zero(gemm_mutants::plain()), By::special);
}
TEST_F(WrongOnPurpose, GemmTruncated) { caught_at_every_depth(gemm_mutants::truncated); }
// Whole numbers beyond the output's significand are cut off too.
TEST_F(WrongOnPurpose, GemmTruncatedWholeNumbers) { caught(gemm_mutants::truncated(4096), By::exact); }
TEST_F(WrongOnPurpose, GemmStoredTwice) { caught(gemm_mutants::stored_twice(), By::random); }
TEST_F(WrongOnPurpose, GemmStaleRow) { caught(gemm_mutants::stale_row(), By::random); }
TEST_F(WrongOnPurpose, GemmPartOfKLost) { caught(gemm_mutants::part_of_k_lost(), By::random); }
TEST_F(WrongOnPurpose, GemmPieceOfKTwice) { caught(gemm_mutants::piece_of_k_twice(), By::random); }
TEST_F(WrongOnPurpose, GemmFewShiftedByOne) { caught(gemm_mutants::few_shifted_by_one(), By::random); }
TEST_F(WrongOnPurpose, GemmFewTailOfKTaken) { caught(gemm_mutants::few_tail_of_k_taken(), By::random); }
TEST_F(WrongOnPurpose, GemmFewHeadOfKTaken) { caught(gemm_mutants::few_head_of_k_taken(), By::random); }
TEST_F(WrongOnPurpose, GemmFewColumnsUnshifted) { caught(gemm_mutants::few_columns_unshifted(), By::random); }
TEST_F(WrongOnPurpose, GemmFewWarpLeftOut) { caught(gemm_mutants::few_warp_left_out(), By::random); }
TEST_F(WrongOnPurpose, GemmFewPieceTwice) { caught(gemm_mutants::few_piece_twice(), By::random); }
TEST_F(WrongOnPurpose, GemmFewTurnedNeighboursSwapped) { caught(gemm_mutants::few_turned_neighbours_swapped(), By::random); }
TEST_F(WrongOnPurpose, GemmFewTurnedBlockLate) { caught(gemm_mutants::few_turned_block_late(), By::random); }
TEST_F(WrongOnPurpose, GemmFewStageReadEarly) { caught(gemm_mutants::few_stage_read_early(), By::random); }
TEST_F(WrongOnPurpose, GemmScaleOfTheNeighbouringGroup) { caught(gemm_mutants::scale_of_the_neighbouring_group(), By::random); }
TEST_F(WrongOnPurpose, GemmZeroPointOffByOne) { caught(gemm_mutants::zero_point_off_by_one(), By::random); }
TEST_F(WrongOnPurpose, GemmZeroPointOfAnotherRow) { caught(gemm_mutants::zero_point_of_another_row(), By::random); }
TEST_F(WrongOnPurpose, GemmZeroPointsOfHalfAGroup) { caught(gemm_mutants::zero_points_of_half_a_group(), By::random); }
TEST_F(WrongOnPurpose, GemmExpressionOfAPart) { caught(gemm_mutants::expression_of_a_part(), By::random); }
TEST_F(WrongOnPurpose, GemmSignOfEightBitsLost) { caught(gemm_mutants::sign_of_eight_bits_lost(), By::random); }
TEST_F(WrongOnPurpose, GemmSignOfFloatsLost) { caught(gemm_mutants::sign_of_floats_lost(), By::random); }
TEST_F(WrongOnPurpose, GemmTableShiftedByOne) { caught(gemm_mutants::table_shifted_by_one(), By::random); }
TEST_F(WrongOnPurpose, GemmLastBitOfPowersLost) { caught(gemm_mutants::last_bit_of_powers_lost(), By::random); }
TEST_F(WrongOnPurpose, GemmManyTablePairsSwapped) { caught(gemm_mutants::many_table_pairs_swapped(), By::random); }
TEST_F(WrongOnPurpose, GemmManyWeightsOfTheNextGroup) { caught(gemm_mutants::many_weights_of_the_next_group(), By::random); }
TEST_F(WrongOnPurpose, GemmNibblesSwapped) { caught(gemm_mutants::nibbles_swapped(), By::random); }
TEST_F(WrongOnPurpose, GemmLastGroupShort) { caught(gemm_mutants::last_group_short(), By::random); }
TEST_F(WrongOnPurpose, GemmPackedPartLost) { caught(gemm_mutants::packed_part_lost(), By::random); }
TEST_F(WrongOnPurpose, GemmUnpackedByTheScaleOfTheNeighbouringGroup) { caught(gemm_mutants::unpacked_by_the_scale_of_the_neighbouring_group(), By::random); }
TEST_F(WrongOnPurpose, GemmUnpackedRowsExchanged) { caught(gemm_mutants::unpacked_rows_exchanged(), By::random); }
TEST_F(WrongOnPurpose, GemmUnpackedNeighboursNotExchanged) { caught(gemm_mutants::unpacked_neighbours_not_exchanged(), By::random); }
TEST_F(WrongOnPurpose, GemmUnpackedZeroPointsAdded) { caught(gemm_mutants::unpacked_zero_points_added(), By::random); }
TEST_F(WrongOnPurpose, GemmUnpackedLastBlockShort) { caught(gemm_mutants::unpacked_last_block_short(), By::random); }
TEST_F(WrongOnPurpose, GemmWidenedAsAnotherType) { caught(gemm_mutants::widened_as_another_type(), By::random); }
TEST_F(WrongOnPurpose, GemmWidenedNanAsANumber) { caught(gemm_mutants::widened_nan_as_a_number(), By::special); }
TEST_F(WrongOnPurpose, GemmManyScaleOfTheNeighbouringGroup) { caught(gemm_mutants::many_scale_of_the_neighbouring_group(), By::random); }
TEST_F(WrongOnPurpose, GemmManyZeroPointOffByOne) { caught(gemm_mutants::many_zero_point_off_by_one(), By::random); }
TEST_F(WrongOnPurpose, GemmManyZeroPointOfAnotherRow) { caught(gemm_mutants::many_zero_point_of_another_row(), By::random); }
TEST_F(WrongOnPurpose, GemmManyRowSumsShort) { caught(gemm_mutants::many_row_sums_short(), By::random); }
TEST_F(WrongOnPurpose, GemmManyNibblesSwapped) { caught(gemm_mutants::many_nibbles_swapped(), By::random); }
TEST_F(WrongOnPurpose, GemmManyLastGroupShort) { caught(gemm_mutants::many_last_group_short(), By::random); }
TEST_F(WrongOnPurpose, GemmManyGroupAddedToTheOneBefore) { caught(gemm_mutants::many_group_added_to_the_one_before(), By::random); }
TEST_F(WrongOnPurpose, GemmManyWarpgroupsExchanged) { caught(gemm_mutants::many_warpgroups_exchanged(), By::random); }
TEST_F(WrongOnPurpose, GemmManyPackedPartLost) { caught(gemm_mutants::many_packed_part_lost(), By::random); }
TEST_F(WrongOnPurpose, GemmArrivalsNotReset) { caught(gemm_mutants::arrivals_not_reset(), By::timed); }
TEST_F(WrongOnPurpose, GemmSecondWarpgroupShifted) {
    caught(gemm_mutants::second_warpgroup_shifted(), By::random);
}
TEST_F(WrongOnPurpose, GemmSlicesSwapped) { caught(gemm_mutants::slices_swapped(), By::random); }
TEST_F(WrongOnPurpose, GemmLastProductOfTheOneBefore) {
    caught(gemm_mutants::last_product_of_the_one_before(), By::random);
}
TEST_F(WrongOnPurpose, GemmRowPastAProduct) { caught(gemm_mutants::row_past_a_product(), By::guards); }
TEST_F(WrongOnPurpose, GemmGroupOffsetByOne) { caught(gemm_mutants::group_offset_by_one(), By::random); }
TEST_F(WrongOnPurpose, GemmMatrixOfTheNextGroup) { caught(gemm_mutants::matrix_of_the_next_group(), By::random); }
TEST_F(WrongOnPurpose, GemmLastRowOfAGroupLeft) { caught(gemm_mutants::last_row_of_a_group_left(), By::random); }
TEST_F(WrongOnPurpose, GemmLastRowOfATurnedGroupLeft) { caught(gemm_mutants::last_row_of_a_turned_group_left(), By::random); }
TEST_F(WrongOnPurpose, GemmTilesOfAGroupForgotten) { caught(gemm_mutants::tiles_of_a_group_forgotten(), By::random); }
TEST_F(WrongOnPurpose, GemmLastTileOfTallGroupsForgotten) { caught(gemm_mutants::last_tile_of_tall_groups_forgotten(), By::random); }
TEST_F(WrongOnPurpose, GemmSumsNotCleared) { caught(gemm_mutants::sums_not_cleared(), By::random); }
TEST_F(WrongOnPurpose, GemmBiasOfTheGroupBefore) { caught(gemm_mutants::bias_of_the_group_before(), By::random); }
TEST_F(WrongOnPurpose, GemmTileLeftOut) { caught(gemm_mutants::tile_left_out(), By::random); }
TEST_F(WrongOnPurpose, GemmCounterOfTilesLeft) { caught(gemm_mutants::counter_of_tiles_left(), By::timed); }
TEST_F(WrongOnPurpose, GemmToldOfTheTileBefore) { caught(gemm_mutants::told_of_the_tile_before(), By::random); }
TEST_F(WrongOnPurpose, GemmGroupSumsNotCleared) { caught(gemm_mutants::group_sums_not_cleared(), By::random); }
TEST_F(WrongOnPurpose, GemmLastPairsOfAGroupAsWholeSpans) { caught(gemm_mutants::last_pairs_of_a_group_as_whole_spans(), By::random); }
TEST_F(WrongOnPurpose, GemmTurnedRowsSwapped) { caught(gemm_mutants::turned_rows_swapped(), By::random); }
TEST_F(WrongOnPurpose, GemmTurnedRowPastC) { caught(gemm_mutants::turned_row_past_c(), By::guards); }

TEST_F(WrongOnPurpose, GemmScaleOfAnotherBlock) { caught(gemm_mutants::scale_of_another_block(), By::random); }
TEST_F(WrongOnPurpose, GemmScaleOfOtherColumns) { caught(gemm_mutants::scale_of_other_columns(), By::random); }
TEST_F(WrongOnPurpose, GemmScalesOfRowsSwapped) { caught(gemm_mutants::scales_of_rows_swapped(), By::random); }
TEST_F(WrongOnPurpose, GemmScalesOfRowsBeforeTheGroup) { caught(gemm_mutants::scales_of_rows_before_the_group(), By::random); }
TEST_F(WrongOnPurpose, GemmScalesOfAnotherGroup) { caught(gemm_mutants::scales_of_another_group(), By::random); }
TEST_F(WrongOnPurpose, GemmNeighboursBytesSwapped) { caught(gemm_mutants::neighbours_bytes_swapped(), By::random); }
TEST_F(WrongOnPurpose, GemmPromotedStaleSums) { caught(gemm_mutants::promoted_stale_sums(), By::random); }

TEST_F(WrongOnPurpose, GemmPackedLinesRunOn) { caught(gemm_mutants::packed_lines_run_on(), By::random); }
TEST_F(WrongOnPurpose, GemmPackedByWholeWords) { caught(gemm_mutants::packed_by_whole_words(), By::random); }

TEST_F(WrongOnPurpose, Sm80TailOfKDropped) { caught(gemm_mutants::ampere_tail_of_k_dropped(), By::random); }
TEST_F(WrongOnPurpose, Sm80BlockDropped) { caught_at_every_depth(gemm_mutants::ampere_block_dropped); }
TEST_F(WrongOnPurpose, Sm80ReadsPastA) { caught(gemm_mutants::ampere_reads_past_a(), By::random); }
TEST_F(WrongOnPurpose, Sm80ChangesA) { caught(gemm_mutants::ampere_changes_a(), By::guards); }
TEST_F(WrongOnPurpose, Sm80RowPastC) { caught(gemm_mutants::ampere_row_past_c(), By::guards); }
TEST_F(WrongOnPurpose, Sm80OperandsInFp8) { caught_at_every_depth(gemm_mutants::ampere_operands_in_fp8); }
TEST_F(WrongOnPurpose, Sm80SumsInBf16) { caught_at_every_depth(gemm_mutants::ampere_sums_in_bf16); }
TEST_F(WrongOnPurpose, Sm80NanToZero) {
    caught(gemm_mutants::nan_to_zero(gemm_mutants::ampere()), By::special);
}
TEST_F(WrongOnPurpose, Sm80StaleSums) { caught(gemm_mutants::ampere_stale_sums(), By::random); }

}  // namespace
}  // namespace rooftile
