#include "rooftile/measure/product_verdict.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "kernels/measure/numbers.hpp"

namespace rooftile {
namespace {

std::string shown(unsigned bits, Type type) {
    switch (class_of_bits(bits, type)) {
        case NumberClass::nan:
            return fmt::format("NaN (0x{:04x})", bits);
        case NumberClass::infinite:
            return "+Inf";
        case NumberClass::negative_infinite:
            return "-Inf";
        case NumberClass::finite:
            break;
    }
    return fmt::format("{:.9g}", value_of_bits(bits, type));
}

/// What all CTAs saw of one result.
struct Seen {
    std::int64_t wrong = 0, wrong_tiles = 0;
    WorstElement element{};
    WorstTile tile{}, whole{};
};

Seen all_of(std::span<const VerifyRecord> records, const ErrorModel& model) {
    Seen seen;
    double errors = 0;
    ExpectedErrors expected{};
    for (const VerifyRecord& r : records) {
        seen.wrong += static_cast<std::int64_t>(r.wrong);
        seen.wrong_tiles += static_cast<std::int64_t>(r.wrong_tiles);
        if (r.worst.ratio > seen.element.ratio) seen.element = r.worst;
        if (r.worst_tile.ratio > seen.tile.ratio) seen.tile = r.worst_tile;
        errors += r.errors;
        add(expected, r.expected);
    }
    if (errors > 0) {
        const double allowed = allowed_errors(expected, model), count = expected.elements;
        seen.whole = {root(errors / allowed), root(errors / count), root(allowed / count), 0, 0};
    }
    return seen;
}

/// Of root mean squares: "0.0031 of the deviation of C where 0.0018 is allowed".
std::string too_much(const WorstTile& tile) {
    return fmt::format(
        "{:.3g} of the standard deviation of C where {:.3g} is allowed: each element is within its "
        "bound, but together they err more than fp32 sums rounded once do",
        tile.error, tile.allowed);
}

}  // namespace

CaseOutcome judge_product(std::span<const VerifyRecord> records, const JudgedProduct& p, VerifyCase which) {
    const Seen seen = all_of(records, p.model);
    CaseOutcome outcome;
    outcome.checked = p.batch * p.m * p.n;
    const auto place = [&p](std::int64_t row) { return p.batch == 1 ? std::string() : fmt::format("{}, ", row / p.m); };
    outcome.wrong = seen.wrong, outcome.ratio = seen.element.ratio, outcome.bound = seen.element.bound;
    outcome.wrong_tiles = seen.wrong_tiles, outcome.tile_ratio = seen.tile.ratio;
    outcome.whole_ratio = seen.whole.ratio;

    if (outcome.wrong > 0) {
        const WorstElement& worst = seen.element;
        const std::string bound = which == VerifyCase::exact ? "" : fmt::format(" +- {:.3g}", worst.bound);
        outcome.failure = fmt::format(
            "{} of {} elements of C are wrong; the worst, C[{}{}, {}], is {} where {:.9g}{} rounds to {}",
            outcome.wrong, outcome.checked, place(worst.row), worst.row % p.m, worst.column, shown(worst.got, p.type),
            worst.reference, bound, shown(worst.expected, p.type));
    } else if (outcome.wrong_tiles > 0) {
        const std::int64_t row = seen.tile.row, column = seen.tile.column;
        outcome.failure = fmt::format("{} tiles of C err too much; the worst, C[{}{}..{}, {}..{}], by {}",
                                      outcome.wrong_tiles, p.batch == 1 ? "" : "of one product: ", row, std::min(row + verify_tile, p.m) - 1,
                                      column, std::min(column + verify_tile, p.n) - 1, too_much(seen.tile));
    } else if (outcome.whole_ratio > 1) {
        outcome.failure = fmt::format("C errs too much: by {}", too_much(seen.whole));
    }
    outcome.right = outcome.failure.empty();
    return outcome;
}

}  // namespace rooftile
