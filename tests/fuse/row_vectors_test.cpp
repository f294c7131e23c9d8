// How rows lie among vectors: counted row by row.
#include "rooftile/fuse/row_vectors.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "rooftile/fuse/launch_model.hpp"
#include "rooftile/fuse/staging.hpp"

namespace rooftile {
namespace {

Program rows_of(std::int64_t rows, std::int64_t columns) {
    Program p;
    p.form = FuseForm::row;
    p.rows = rows;
    p.columns = columns;
    return p;
}

// Row r has elements r * columns to (r + 1) * columns - 1; of vectors of w it touches those from the first one's to the last
// one's. Over w rows every place in a vector comes.
TEST(RowVectors, MostAndFewestAreThoseOfSomeRow) {
    for (std::int64_t columns = 1; columns < 70; ++columns)
        for (const int w : {1, 2, 4, 8})
            for (const std::int64_t rows : {1, 3, 8, 9}) {
                std::int64_t most = 0, fewest = columns + 1;
                for (std::int64_t r = 0; r < rows; ++r) {
                    const std::int64_t touched = ((r + 1) * columns - 1) / w - r * columns / w + 1;
                    most = std::max(most, touched);
                    fewest = std::min(fewest, touched);
                }
                const Program p = rows_of(rows, columns);
                EXPECT_EQ(rows_off_vectors(p, w), columns % w != 0);
                EXPECT_GE(max_row_vectors(p, w), most) << columns << " in " << w;
                EXPECT_LE(min_row_vectors(p, w), fewest) << columns << " in " << w;
                if (rows == 1 || rows >= w) {
                    EXPECT_EQ(max_row_vectors(p, w), most) << rows << " of " << columns << " in " << w;
                    EXPECT_EQ(min_row_vectors(p, w), fewest) << rows << " of " << columns << " in " << w;
                }
            }
}

TEST(RowVectors, AllRowsTogetherAreOne) {
    EXPECT_EQ(vectors_of_all(rows_of(3, 5), 8), 2);  // 15 elements
    EXPECT_EQ(vectors_of_all(rows_of(3, 16), 8), 6);
}

// Off vectors no part of one may lie in another page: all of it is aligned. Else an access is.
TEST(RowVectors, AddressesHoldWholeVectorsWhereRowsDoNot) {
    EXPECT_EQ(vector_alignment(rows_of(3, 5), 8, Element::fp32), 32);
    EXPECT_EQ(vector_alignment(rows_of(3, 5), 8, Element::bf16), 16);
    EXPECT_EQ(vector_alignment(rows_of(3, 8), 8, Element::fp32), 16);
    EXPECT_EQ(vector_alignment(rows_of(3, 8), 2, Element::bf16), 4);
}

// 8 teams of 4 lanes have 8 rows of 19: 152 elements, and 7 before them, are 20 vectors of 8; 32 threads with two rows each of 3
// have 192 and 7. Rows of whole vectors have nothing before them. Other rows lie nowhere together.
TEST(RowVectors, ShortRowsLieTogetherByWarps) {
    Program p = rows_of(1000, 19);
    FuseConfig c{.form = FuseForm::row,
                 .row_storage = RowStorage::shared,
                 .vector_width = 8,
                 .threads = 64,
                 .threads_per_row = 4};
    EXPECT_EQ(gathered_vectors(p, c), 20);
    EXPECT_EQ(config_by_element(c, p).vectors_per_thread, 5);
    EXPECT_EQ(config_by_element(c, p).vector_width, 1);
    p.columns = 32;
    EXPECT_EQ(gathered_vectors(p, c), 32);
    p.columns = 3;
    c.threads_per_row = 1, c.rows_per_thread = 2;
    EXPECT_EQ(gathered_vectors(p, c), 25);
    EXPECT_EQ(c.rows_per_cta(), 128);
    c.row_storage = RowStorage::registers;
    EXPECT_EQ(gathered_vectors(p, c), 0);
    EXPECT_EQ(config_by_element(c, p), c);
}

// Rows of 32 words lie in the same bank each, of 33 side by side; 16-bit elements two to a word, which both lanes get in a turn. Of 8
// lanes a row of 16 words has a quarter of the banks, as the row behind the next has.
TEST(RowVectors, BanksServeLanesInTurns) {
    EXPECT_EQ(bank_turns(33, 1, 4), 1);
    EXPECT_EQ(bank_turns(32, 1, 4), 32);
    EXPECT_EQ(bank_turns(64, 1, 2), 32);
    EXPECT_EQ(bank_turns(2, 1, 2), 1);
    EXPECT_EQ(bank_turns(1000, 32, 2), 1);
    EXPECT_EQ(bank_turns(16, 8, 4), 2);
}

}  // namespace
}  // namespace rooftile
