#include "rooftile/gemm/measurement.hpp"

#include "rooftile/gemm/measured_record.hpp"
#include "rooftile/gemm/operation.hpp"

namespace rooftile {

Measurement gemm_row(GemmPlan plan, Mode mode) {
    Measurement row;
    row.plan = any_plan(std::move(plan));
    row.mode = mode;
    return row;
}

void set_measured(Measurement& row, GemmMeasured measured) {
    row.more = measured_record(measured);
    row.own = Own::of(std::move(measured));
}

const GemmMeasured* gemm_measured(const Measurement& row) {
    return row.own ? &row.own.as<GemmMeasured>() : nullptr;
}

}  // namespace rooftile
