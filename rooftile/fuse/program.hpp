// A graph as one kernel sees it: rows of columns, values in fp32 at the level where they vary, reductions of
// a row in the passes that they divide the work into.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "rooftile/expression/graph.hpp"

namespace rooftile {

/// What a value depends on: nothing, the row, or the element.
enum class Level : std::uint8_t { uniform, row, element };

/// One part of how an input's row follows from the row of the loop: + row / divide % modulo * multiply.
/// modulo 0: no remainder is taken.
struct RowBand {
    std::int64_t divide = 1, modulo = 0, multiply = 1;
    friend bool operator==(const RowBand&, const RowBand&) = default;
};

/// Where a tensor's element lies, seen from row and column of the loop.
struct Access {
    bool along_row = true;         ///< false: one value a row
    std::vector<RowBand> bands{};  ///< sum of their terms is the tensor's row; empty: its only row
    /// The loop's own row and column.
    bool full() const { return along_row && plain_rows(); }
    bool plain_rows() const { return bands.size() == 1 && bands[0] == RowBand{}; }
    /// A row that all rows of the loop share.
    bool only_row() const { return along_row && bands.empty(); }
};

enum class ValueKind : std::uint8_t {
    load,  ///< of an input
    number,
    compute,  ///< one point-wise operation
    reduce,   ///< of a row, a column or everything; each is one accumulator of kernels/fuse/reduce.cuh
    part,     ///< a number that follows from a reduction
};

struct ProgramValue {
    ValueKind kind = ValueKind::number;
    Level level = Level::uniform;
    Op op = Op::number;               ///< of compute
    Element element = Element::fp32;  ///< of compute: a cast rounds to it; comparisons give boolean
    std::vector<int> operands{};      ///< indices of earlier values
    double value = 0;                 ///< of a number; epsilon of a part; p of dropout
    std::uint64_t seed = 0, offset = 0;
    int input = -1;            ///< of a load: place in ExpressionGraph::inputs
    Access access{};           ///< of a load; of dropout: where its element lies
    std::int64_t columns = 1;  ///< of dropout: of its own tensor
    Reduction reduction = Reduction::sum;
    RowPart part = RowPart::sum;
    std::int64_t count = 1;  ///< of a part: values that the reduction saw
    int pass = 0;            ///< reductions that must be complete before it
    int node = -1;           ///< of the graph; -1: of a row operation's inside
    std::string name{};      ///< a person's name for it
};

struct ProgramStore {
    int value = 0;
    int output = 0;  ///< place in ExpressionGraph::outputs
    Level level = Level::element;
};

enum class FuseForm : std::uint8_t {
    pointwise,  ///< no reduction
    row,        ///< reductions along the last axis
    whole,      ///< of everything to one number
    columns,    ///< along all axes but the last: a number a column; what follows has columns alone
};
std::string_view name_of(FuseForm form);

struct Program {
    FuseForm form = FuseForm::pointwise;
    std::int64_t rows = 1, columns = 1;
    std::vector<ProgramValue> values;
    std::vector<ProgramStore> stores;
    int passes = 1;  ///< over the row; reductions of pass p complete after it
    /// Every tensor is read and written at the loop's own place, or is one number: rows do not matter.
    bool flat = false;
};

/// Why a graph cannot be one kernel: one line.
struct NoProgram {
    std::string why;
};

/// Whether any result has a value for every element.
bool stores_elements(const Program& program);

/// Values of which value `i` is an operand, each as many times as it is.
std::vector<int> users_of(const Program& program, int i);

/// Where value `exp` is softmax's e^(x - greatest) of a 16-bit tensor's own x, and nothing but softmax takes parts of
/// the reduction that `greatest` is of: that part's index, else -1. Then the powers may be taken from any base that
/// all of the row share (PowerBase of kernels/fuse/reduce.cuh).
int shared_base_of(const Program& program, int exp);
/// Of a reduction: whether it gives the base of such powers.
bool gives_shared_base(const Program& program, int reduce);
/// Whether all that is asked of a sum is the mean: it is added up so that the mean may be subtracted from what it is of.
bool only_for_means(const Program& program, int reduce);

std::variant<Program, NoProgram> fuse_program(const ExpressionGraph& graph);

}  // namespace rooftile
