// Convolutions made wrong on purpose: each must be caught, by the case that its test names.
#include <gtest/gtest.h>

#include <set>

#include "rooftile/conv/operation.hpp"
#include "tests/conv/mutants.hpp"
#include "tests/device/wrong_on_purpose.hpp"

namespace rooftile {
namespace {

void caught(const Mutant& mutant, By by) { expect_caught(conv_operation(), mutant, by); }

TEST_F(WrongOnPurpose, EveryConvolutionIsRightAsItIs) {
    std::set<std::string> problems;
    for (const Mutant& mutant : conv_mutants::all())
        if (problems.insert(mutant.problem).second) expect_right(conv_operation(), mutant);
}

TEST_F(WrongOnPurpose, ConvTapsNotReversed) { caught(conv_mutants::taps_not_reversed(), By::exact); }
TEST_F(WrongOnPurpose, ConvReversedTapsMovedByOne) { caught(conv_mutants::reversed_taps_moved_by_one(), By::exact); }
TEST_F(WrongOnPurpose, ConvBoxOfTheFirstTap) { caught(conv_mutants::box_of_the_first_tap(), By::exact); }
TEST_F(WrongOnPurpose, ConvColumnsOfTheNextBox) { caught(conv_mutants::columns_of_the_next_box(), By::exact); }
TEST_F(WrongOnPurpose, ConvRowsOfPlacesRunOn) { caught(conv_mutants::rows_of_places_run_on(), By::exact); }
TEST_F(WrongOnPurpose, ConvBlockBeyondTheEndRead) { caught(conv_mutants::block_beyond_the_end_read(), By::special); }
TEST_F(WrongOnPurpose, ConvTapsOfRowsForColumns) { caught(conv_mutants::taps_of_rows_for_columns(), By::exact); }
TEST_F(WrongOnPurpose, ConvPaddingOneLess) { caught(conv_mutants::padding_one_less(), By::exact); }
TEST_F(WrongOnPurpose, ConvStrideLeftOut) { caught(conv_mutants::stride_left_out(), By::exact); }
TEST_F(WrongOnPurpose, ConvImageBefore) { caught(conv_mutants::image_before(), By::exact); }
TEST_F(WrongOnPurpose, ConvFiltersOfTheTapBefore) { caught(conv_mutants::filters_of_the_tap_before(), By::exact); }
TEST_F(WrongOnPurpose, ConvChannelsAgain) { caught(conv_mutants::channels_again(), By::exact); }
TEST_F(WrongOnPurpose, ConvWeightsOfTheNeighbour) { caught(conv_mutants::weights_of_the_neighbour(), By::exact); }
TEST_F(WrongOnPurpose, ConvRowWraps) { caught(conv_mutants::row_wraps(), By::exact); }
TEST_F(WrongOnPurpose, ConvResidualOfTheRowBefore) { caught(conv_mutants::residual_of_the_row_before(), By::exact); }
TEST_F(WrongOnPurpose, ConvGroupBefore) { caught(conv_mutants::group_before(), By::exact); }
TEST_F(WrongOnPurpose, ConvPlacePastTheLast) { caught(conv_mutants::place_past_the_last(), By::exact); }
TEST_F(WrongOnPurpose, ConvRowMovedByOne) { caught(conv_mutants::row_moved_by_one(), By::exact); }
TEST_F(WrongOnPurpose, ConvRowsEndLeftOut) { caught(conv_mutants::rows_end_left_out(), By::exact); }
TEST_F(WrongOnPurpose, ConvPixelsSwapped) { caught(conv_mutants::pixels_swapped(), By::exact); }
TEST_F(WrongOnPurpose, ConvLastChannelLeftOut) { caught(conv_mutants::last_channel_left_out(), By::exact); }
TEST_F(WrongOnPurpose, ConvWindowsEndLeftOut) { caught(conv_mutants::windows_end_left_out(), By::special); }
TEST_F(WrongOnPurpose, ConvRowsOfPaddingRead) { caught(conv_mutants::rows_of_padding_read(), By::exact); }
TEST_F(WrongOnPurpose, ConvNextRowOfTaps) { caught(conv_mutants::next_row_of_taps(), By::exact); }
TEST_F(WrongOnPurpose, ConvHalvesOfOneWord) { caught(conv_mutants::halves_of_one_word(), By::exact); }
TEST_F(WrongOnPurpose, ConvPieceOfTheFirstStep) { caught(conv_mutants::piece_of_the_first_step(), By::exact); }
TEST_F(WrongOnPurpose, ConvTapWithoutDilation) { caught(conv_mutants::tap_without_dilation(), By::exact); }
TEST_F(WrongOnPurpose, ConvBitsOfOneAxis) { caught(conv_mutants::bits_of_one_axis(), By::exact); }
TEST_F(WrongOnPurpose, ConvImageGatheredBefore) { caught(conv_mutants::image_gathered_before(), By::exact); }
TEST_F(WrongOnPurpose, ConvRowOfThePeer) { caught(conv_mutants::row_of_the_peer(), By::exact); }
TEST_F(WrongOnPurpose, ConvPixelPastTheRow) { caught(conv_mutants::pixel_past_the_row(), By::exact); }
TEST_F(WrongOnPurpose, ConvTapsMovedByOne) { caught(conv_mutants::taps_moved_by_one(), By::exact); }
TEST_F(WrongOnPurpose, ConvBandOfTheNeighbour) { caught(conv_mutants::band_of_the_neighbour(), By::exact); }
TEST_F(WrongOnPurpose, ConvBandOfTheRowBefore) { caught(conv_mutants::band_of_the_row_before(), By::exact); }
TEST_F(WrongOnPurpose, ConvPaddingNotZero) { caught(conv_mutants::padding_not_zero(), By::exact); }
TEST_F(WrongOnPurpose, ConvZerosOfBandsMet) { caught(conv_mutants::zeros_of_bands_met(), By::special); }
TEST_F(WrongOnPurpose, ConvWindowsOfTheTileBefore) { caught(conv_mutants::windows_of_the_tile_before(), By::special); }
TEST_F(WrongOnPurpose, ConvImageOfTheGroupBefore) { caught(conv_mutants::image_of_the_group_before(), By::exact); }

}  // namespace
}  // namespace rooftile
