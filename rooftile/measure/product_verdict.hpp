// What the records of a product's verification say of one result, whichever operation multiplied.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/measure/arguments.hpp"
#include "rooftile/measure/verify_case.hpp"

namespace rooftile {

/// C [batch][m][n] of a type, each element a sum whose error the model bounds.
struct JudgedProduct {
    std::int64_t m, n, batch;
    Type type;
    ErrorModel model;
};
/// `records`: of every CTA of MeasureKernels::verify(), of that result.
CaseOutcome judge_product(std::span<const VerifyRecord> records, const JudgedProduct& product, VerifyCase which);

}  // namespace rooftile
