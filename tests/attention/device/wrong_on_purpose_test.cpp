// Attention made wrong on purpose: each must be caught, by the case that its test names.
#include <gtest/gtest.h>

#include <set>

#include "rooftile/attention/operation.hpp"
#include "tests/attention/mutants.hpp"
#include "tests/device/wrong_on_purpose.hpp"

namespace rooftile {
namespace {

void caught(const Mutant& mutant, By by) { expect_caught(attention_operation(), mutant, by); }

TEST_F(WrongOnPurpose, EveryAttentionIsRightAsItIs) {
    std::set<std::string> problems;
    for (const Mutant& mutant : attention_mutants::all())
        if (problems.insert(mutant.problem).second) expect_right(attention_operation(), mutant);
}

TEST_F(WrongOnPurpose, AttentionFirstTurnWaitedFor) { expect_hangs(attention_operation(), attention_mutants::first_turn_waited_for()); }
TEST_F(WrongOnPurpose, AttentionOneKeyTooMany) { caught(attention_mutants::one_key_too_many(), By::random); }
TEST_F(WrongOnPurpose, AttentionOneKeyTooFew) { caught(attention_mutants::one_key_too_few(), By::exact); }
TEST_F(WrongOnPurpose, AttentionOneKeyTooFewOnRandom) { caught(attention_mutants::one_key_too_few(), By::random); }
TEST_F(WrongOnPurpose, AttentionLastBlockDropped) { caught(attention_mutants::last_block_dropped(), By::random); }
TEST_F(WrongOnPurpose, AttentionLastBlockDroppedOnExact) { caught(attention_mutants::last_block_dropped(), By::exact); }
TEST_F(WrongOnPurpose, AttentionRescaledOnceTooSeldom) { caught(attention_mutants::rescaled_once_too_seldom(), By::special); }
TEST_F(WrongOnPurpose, AttentionRescaledOnceTooSeldomOnExact) { caught(attention_mutants::rescaled_once_too_seldom(), By::exact); }
TEST_F(WrongOnPurpose, AttentionNeighboursKeys) { caught(attention_mutants::neighbours_keys(), By::exact); }
TEST_F(WrongOnPurpose, AttentionHeadsDealtRound) { caught(attention_mutants::heads_dealt_round(), By::random); }
TEST_F(WrongOnPurpose, AttentionSumFromBeforeTheLastBlock) {
    caught(attention_mutants::sum_from_before_the_last_block(), By::random);
}
TEST_F(WrongOnPurpose, AttentionMaximumOfOneThread) { caught(attention_mutants::maximum_of_one_thread(), By::random); }
TEST_F(WrongOnPurpose, AttentionRowPastTheLast) { caught(attention_mutants::row_past_the_last(), By::guards); }
TEST_F(WrongOnPurpose, AttentionHiddenNan) { caught(attention_mutants::hidden_nan(), By::special); }
TEST_F(WrongOnPurpose, AttentionLogOfBaseTwo) { caught(attention_mutants::log_of_base_two(), By::random); }
TEST_F(WrongOnPurpose, AttentionFirstKeyOfTheNextSequence) { caught(attention_mutants::first_key_of_the_next_sequence(), By::random); }
TEST_F(WrongOnPurpose, AttentionNanOfTheNextSequence) { caught(attention_mutants::nan_of_the_next_sequence(), By::special); }
TEST_F(WrongOnPurpose, AttentionRowsOfTheNextSequence) { caught(attention_mutants::rows_of_the_next_sequence(), By::random); }
TEST_F(WrongOnPurpose, AttentionPartLeftOut) { caught(attention_mutants::part_left_out(), By::random); }
TEST_F(WrongOnPurpose, AttentionPartCountedTwice) { caught(attention_mutants::part_counted_twice(), By::random); }
TEST_F(WrongOnPurpose, AttentionPartsFromTheWrongMaximum) { caught(attention_mutants::parts_from_the_wrong_maximum(), By::random); }
TEST_F(WrongOnPurpose, AttentionCachePageOfTheBlockBefore) { caught(attention_mutants::page_of_the_block_before(), By::random); }
TEST_F(WrongOnPurpose, AttentionCacheTailOfAPage) { caught(attention_mutants::tail_of_a_page(), By::exact); }
TEST_F(WrongOnPurpose, AttentionCacheHeadsOfAnotherGroup) { caught(attention_mutants::heads_of_another_group(), By::exact); }
TEST_F(WrongOnPurpose, AttentionCacheLengthOfAnotherSequence) { caught(attention_mutants::length_of_another_sequence(), By::exact); }
TEST_F(WrongOnPurpose, AttentionPartPieceTwice) { caught(attention_mutants::piece_twice(), By::random); }
TEST_F(WrongOnPurpose, AttentionPartPieceInTheFirstOnesPlace) { caught(attention_mutants::piece_in_the_first_ones_place(), By::random); }
TEST_F(WrongOnPurpose, AttentionPartOfAnotherRow) { caught(attention_mutants::part_of_another_row(), By::exact); }
TEST_F(WrongOnPurpose, AttentionPlaceOfTheOtherRow) { caught(attention_mutants::place_of_the_other_row(), By::random); }
TEST_F(WrongOnPurpose, AttentionSlopeOfAnotherHead) { caught(attention_mutants::slope_of_another_head(), By::random); }
TEST_F(WrongOnPurpose, AttentionLatentValuesOfTheOtherColumns) { caught(attention_mutants::latent_values_of_the_other_columns(), By::exact); }
TEST_F(WrongOnPurpose, AttentionLatentRotaryPartLeftOut) { caught(attention_mutants::latent_rotary_part_left_out(), By::random); }
TEST_F(WrongOnPurpose, AttentionLatentMaximaOfOneWarpgroup) { caught(attention_mutants::latent_maxima_of_one_warpgroup(), By::random); }
TEST_F(WrongOnPurpose, AttentionLatentSumOfOneWarpgroup) { caught(attention_mutants::latent_sum_of_one_warpgroup(), By::random); }
TEST_F(WrongOnPurpose, AttentionLatentKeysBehindTheLength) { caught(attention_mutants::latent_keys_behind_the_length(), By::random); }
TEST_F(WrongOnPurpose, AttentionLatentTail) { caught(attention_mutants::latent_tail(), By::random); }
TEST_F(WrongOnPurpose, AttentionLatentColumnsAddedUpTwice) { caught(attention_mutants::latent_columns_added_up_twice(), By::random); }
TEST_F(WrongOnPurpose, AttentionLatentPartsOfTheFirstTile) { caught(attention_mutants::latent_parts_of_the_first_tile(), By::random); }
TEST_F(WrongOnPurpose, AttentionCounterLeft) { caught(attention_mutants::counter_left(), By::timed); }

}  // namespace
}  // namespace rooftile
