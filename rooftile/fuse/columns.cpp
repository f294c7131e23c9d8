#include "rooftile/fuse/columns.hpp"

#include "rooftile/report/csv.hpp"

namespace rooftile {
namespace {

constexpr CsvColumn both[] = {
    {"machine", "/machine/id"},
    {"op", "/problem/op"},
    {"expression", "/problem/expression"},
    {"tensors", "/problem/tensors"},
    {"outputs", "/problem/outputs"},
    {"kernel", "/config/kernel"},
    {"row_storage", "/config/row_storage"},
    {"vector_width", "/config/vector_width"},
    {"vectors_per_thread", "/config/vectors_per_thread"},
    {"threads", "/config/threads"},
    {"threads_per_row", "/config/threads_per_row"},
    {"reduction_threads", "/config/reduction_threads"},
    {"rows_per_cta", "/config/rows_per_cta"},
    {"cluster", "/config/cluster"},
    {"stages", "/config/stages"},
    {"ctas_per_sm", "/config/ctas_per_sm"},
    {"persistent", "/config/persistent"},
    {"early_weights", "/config/early_weights"},
    {"reduce_scope", "/config/reduce_scope"},
    {"grid", "/config/grid"},
    {"rank", "/rank"},
};

constexpr auto plan = joined(both, {
    {"buildable", "/buildable"},
    {"why_not", "/why_not"},
    {"registers", "/resources/registers"},
    {"shared_bytes", "/resources/shared_bytes"},
    {"bytes_in_flight", "/resources/bytes_in_flight"},
    {"bytes_in_flight_needed", "/resources/bytes_in_flight_needed"},
    {"time_us", "/prediction/time_us"},
    {"gbytes_per_s", "/prediction/gbytes_per_s"},
    {"bound", "/prediction/bound"},
    {"moved_bytes", "/prediction/moved_bytes"},
    {"dram_bytes", "/prediction/dram_bytes"},
    {"issue_share", "/prediction/issue_share"},
    {"waves", "/prediction/waves"},
    {"speedup", "/prediction/speedup"},
    {"unknown", "/unknown"},
});

constexpr auto measurement = joined(both, {
    {"mode", "/mode"},
    {"time_us", "/time_us"},
    {"time_us_low", "/time_us_low"},
    {"time_us_high", "/time_us_high"},
    {"samples", "/samples"},
    {"gbytes_per_s", "/gbytes_per_s"},
    {"roof", "/roof"},
    {"roof_fraction", "/roof_fraction"},
    {"issue_roof_us", "/issue_roof_us"},
    {"predicted_time_us", "/predicted_time_us"},
    {"predicted_bound", "/predicted_bound"},
    {"registers", "/registers"},
    {"compile_seconds", "/compile_seconds"},
    {"verified_random", "/verified/random"},
    {"max_error_of_bound", "/verified/max_error"},
    {"error_bound", "/verified/bound"},
    {"sm_clock_mhz", "/sm_clock_mhz"},
    {"power_w", "/power_w"},
    {"copy_us", "/baselines/copy_us"},
    {"copy_form", "/baselines/copy_form"},
    {"memcpy_us", "/baselines/memcpy_us"},
    {"read_us", "/baselines/read_us"},
    {"read_form", "/baselines/read_form"},
    {"unfused_us", "/baselines/unfused_us"},
    {"baseline_missing", "/baselines/missing"},
    {"invalid", "/invalid"},
});

}  // namespace

std::span<const CsvColumn> fuse_plan_columns() { return plan; }
std::span<const CsvColumn> fuse_measurement_columns() { return measurement; }

}  // namespace rooftile
