// Chains made wrong on purpose: each must be caught, by the case that its test names.
#include <gtest/gtest.h>

#include <set>

#include "rooftile/chain/operation.hpp"
#include "tests/chain/mutants.hpp"
#include "tests/device/wrong_on_purpose.hpp"

namespace rooftile {
namespace {

void caught(const Mutant& mutant, By by) { expect_caught(chain_operation(), mutant, by); }

TEST_F(WrongOnPurpose, EveryChainIsRightAsItIs) {
    std::set<std::string> problems;
    for (const Mutant& mutant : chain_mutants::all())
        if (problems.insert(mutant.problem).second) expect_right(chain_operation(), mutant);
}

TEST_F(WrongOnPurpose, ChainFirstTurnKept) { expect_hangs(chain_operation(), chain_mutants::first_turn_kept()); }
TEST_F(WrongOnPurpose, ChainStoredRowsNotCounted) { expect_hangs(chain_operation(), chain_mutants::stored_rows_not_counted()); }
TEST_F(WrongOnPurpose, ChainLastBlockDropped) { caught(chain_mutants::last_block_dropped(), By::exact); }
TEST_F(WrongOnPurpose, ChainFirstBlockAdded) { caught(chain_mutants::first_block_added_to_the_tile_before(), By::exact); }
TEST_F(WrongOnPurpose, ChainNeighboursColumns) { caught(chain_mutants::neighbours_columns(), By::random); }
TEST_F(WrongOnPurpose, ChainResidualOfHalf) { caught(chain_mutants::residual_of_half(), By::exact); }
TEST_F(WrongOnPurpose, ChainSigmoidGelu) { caught(chain_mutants::sigmoid_gelu(), By::random); }
TEST_F(WrongOnPurpose, ChainGatesAndUps) { caught(chain_mutants::gates_and_ups_swapped(), By::random); }
TEST_F(WrongOnPurpose, ChainRowPastTheLast) { caught(chain_mutants::row_past_the_last(), By::guards); }
TEST_F(WrongOnPurpose, ChainCounterLeft) { caught(chain_mutants::counter_left(), By::timed); }
TEST_F(WrongOnPurpose, ChainRowsNotWaitedFor) { caught(chain_mutants::rows_not_waited_for(), By::exact); }
TEST_F(WrongOnPurpose, ChainPlaceTakenTooSoon) { caught(chain_mutants::place_taken_too_soon(), By::exact); }
TEST_F(WrongOnPurpose, ChainNextTileLeft) { caught(chain_mutants::next_tile_left(), By::timed); }
TEST_F(WrongOnPurpose, ChainChunkReadFromItsOwnRows) { caught(chain_mutants::chunk_read_from_its_own_rows(), By::exact); }
TEST_F(WrongOnPurpose, ChainCutNotRounded) { caught(chain_mutants::cut_not_rounded(), By::random); }

}  // namespace
}  // namespace rooftile
