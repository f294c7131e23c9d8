// What the kernels of the expressions' reference take and return; host and device see the same bytes.
#pragma once

#include "kernels/expression/bounded.hpp"
#include "kernels/expression/meaning.hpp"

namespace rooftile {

/// How a tensor's values are held.
enum class Held : unsigned char {
    number,   ///< one for all, in the view itself
    element,  ///< in memory, exact
    bounded,  ///< in memory, with errors
};

struct BoundedView {
    const void* data = nullptr;
    double number = 0;
    Held held = Held::number;
    Element element = Element::fp32;  ///< of Held::element
};

constexpr int reference_threads = 256;  ///< of a CTA of any of them
constexpr int max_axes = 8;
constexpr int max_operands = 3;

struct ElementArguments {
    ElementCall call;  ///< but for operands and index
    BoundedView operands[max_operands];
    int operand_count;
    int axes;
    long long extents[max_axes];                ///< of the result
    long long strides[max_operands][max_axes];  ///< 0 where an operand is the same along an axis
    bool dense[max_operands];                   ///< an operand's elements lie as the result's do
    long long count;
    unsigned long long first;  ///< the first element's index in the whole tensor
    Bounded* out;
};

/// Rows, each gone over by `threads` threads of each of `ctas` CTAs; `ctas` is 1 unless `threads` are a whole CTA's.
struct RowArguments {
    BoundedView x;
    BoundedView weights[2];
    int weight_count;
    double epsilon;
    long long rows, columns;
    long long pitch, step;  ///< elements of x from one row's first to the next one's; from one of a row to the next
    Bounded* out;
    int threads, ctas;
    unsigned* arrived;  ///< of each row side by side, zeroed: how often CTAs came to a meeting
    char* parts;        ///< of each row side by side: 2 x ctas x row_part_bytes
};
constexpr int row_part_bytes = 32;

constexpr int max_judged = 8;  ///< results that one evaluation judges

struct JudgeArguments {
    BoundedView expected;
    Element element;
    Type stored = Type::fp32;  ///< of 8 bits: what `element`, which is then fp32, is rounded to where results are stored
    int results;
    const void* got[max_judged];
    long long count;
    long long first;  ///< the first element's index in the whole tensor
    long long columns, pitch;  ///< results' rows, and elements from one to the next; 0: they lie densely
};

/// What one CTA saw of one result: counts, and its worst element. In an array, all CTAs of the first result, then all of
/// the second.
struct JudgeRecord {
    unsigned long long wrong, undecided;
    double ratio;  ///< as BoundedVerdict's
    double got, expected, bound;
    long long element;  ///< of the worst; where `ratio` is 0 there is none
};

struct ElementFillArguments {
    void* data;
    Element element;
    long long count;
    unsigned long long seed, stream;  ///< stream: which input, so that equal seeds differ
};

/// Of a tensor that is filled: lanes are its rows, or its columns, or it is one.
struct LaneShiftArguments {
    ElementFillArguments filled;
    long long columns;  ///< of a row
    bool of_columns;    ///< lanes are columns
    double most;        ///< mean of a lane, at least 1
};

}  // namespace rooftile
