#include "rooftile/report/csv.hpp"

#include <nlohmann/json.hpp>
#include <span>

namespace rooftile {
namespace {

struct Column {
    std::string_view title;
    std::string_view path;  ///< JSON pointer in a row of row_lines()
};

constexpr Column problem_columns[] = {
    {"machine", "/machine/id"},
    {"op", "/problem/op"},
    {"m", "/problem/m"},
    {"n", "/problem/n"},
    {"k", "/problem/k"},
    {"a_major", "/problem/a_major"},
    {"b_major", "/problem/b_major"},
    {"a_type", "/problem/types/a"},
    {"b_type", "/problem/types/b"},
    {"c_type", "/problem/types/c"},
    {"accumulate_type", "/problem/types/accumulate"},
    {"lda", "/problem/lda"},
    {"ldb", "/problem/ldb"},
    {"ldc", "/problem/ldc"},
};

constexpr Column config_columns[] = {
    {"kernel", "/config/kernel"},
    {"tile_m", "/config/tile_m"},
    {"tile_n", "/config/tile_n"},
    {"tile_k", "/config/tile_k"},
    {"stages", "/config/stages"},
    {"consumer_warpgroups", "/config/consumer_warpgroups"},
    {"schedule", "/config/schedule"},
    {"cluster_m", "/config/cluster_m"},
    {"cluster_n", "/config/cluster_n"},
    {"order", "/config/order"},
    {"group", "/config/group"},
    {"split_k", "/config/split_k"},
    {"ctas_per_sm", "/config/ctas_per_sm"},
};

constexpr Column plan_columns[] = {
    {"rank", "/rank"},
    {"buildable", "/buildable"},
    {"why_not", "/why_not"},
    {"threads", "/resources/threads"},
    {"accumulator_registers", "/resources/accumulator_registers"},
    {"setmaxnreg_producer", "/resources/setmaxnreg/producer"},
    {"setmaxnreg_consumer", "/resources/setmaxnreg/consumer"},
    {"stage_bytes", "/resources/stage_bytes"},
    {"stages_max", "/resources/stages_max"},
    {"shared_bytes", "/resources/shared_bytes"},
    {"resident_ctas_per_sm", "/resources/ctas_per_sm"},
    {"time_us", "/prediction/time_us"},
    {"tflops", "/prediction/tflops"},
    {"bound", "/prediction/bound"},
    {"arithmetic_intensity_flop_per_byte", "/prediction/arithmetic_intensity"},
    {"tile_compute_cycles", "/prediction/tile_compute_cycles"},
    {"stages_min", "/prediction/stages_min"},
    {"stages_for_full_rate", "/prediction/stages_for_full_rate"},
    {"waves", "/prediction/waves"},
    {"wave_efficiency", "/prediction/wave_efficiency"},
    {"moved_bytes", "/prediction/moved_bytes"},
    {"dram_bytes", "/prediction/dram_bytes"},
    {"l2_bytes", "/prediction/l2_bytes"},
    {"dram_lower_bound_bytes", "/prediction/dram_lower_bound_bytes"},
    {"l2_lower_bound_bytes", "/prediction/l2_lower_bound_bytes"},
    {"shared_traffic_bytes", "/prediction/shared_traffic_bytes"},
    {"shared_lower_bound_bytes", "/prediction/shared_lower_bound_bytes"},
    {"dram_over_bound", "/prediction/dram_over_bound"},
    {"l2_over_bound", "/prediction/l2_over_bound"},
    {"shared_over_bound", "/prediction/shared_over_bound"},
    {"unknown", "/unknown"},
};

constexpr Column timing_columns[] = {
    {"rank", "/rank"},
    {"mode", "/mode"},
    {"time_us", "/time_us"},
    {"time_us_low", "/time_us_low"},
    {"time_us_high", "/time_us_high"},
    {"samples", "/samples"},
};

constexpr Column measurement_columns[] = {
    {"tflops", "/tflops"},
    {"gbytes_per_s", "/gbytes_per_s"},
    {"roof_fraction", "/roof_fraction"},
    {"predicted_time_us", "/predicted_time_us"},
    {"predicted_bound", "/predicted_bound"},
    {"verified_exact", "/verified/exact"},
    {"verified_random", "/verified/random"},
    {"verified_special", "/verified/special"},
    {"max_error_of_bound", "/verified/max_error"},
    {"error_bound", "/verified/bound"},
    {"sm_clock_mhz", "/sm_clock_mhz"},
    {"power_w", "/power_w"},
    {"cublaslt_top1_us", "/baselines/cublaslt_top1_us"},
    {"cublaslt_best_us", "/baselines/cublaslt_best_us"},
    {"copy_us", "/baselines/copy_us"},
    {"cublaslt_ratio", "/baselines/cublaslt_ratio"},
    {"cublaslt_ratio_low", "/baselines/cublaslt_ratio_low"},
    {"cublaslt_ratio_high", "/baselines/cublaslt_ratio_high"},
    {"baseline_missing", "/baselines/missing"},
    {"invalid", "/invalid"},
    {"counted_chip", "/counters/chip"},
    {"counted_launches", "/counters/launches"},
    {"counted_passes", "/counters/passes"},
    {"counted_tensor_active_share", "/counters/tensor_active_share"},
    {"counted_tensor_instructions", "/counters/tensor_instructions"},
    {"counted_sm_active_share", "/counters/sm_active_share"},
    {"counted_sm_cycles", "/counters/sm_cycles"},
    {"counted_sm_clock_mhz", "/counters/sm_clock_mhz"},
    {"counted_time_us", "/counters/time_us"},
    {"counted_shared_wavefront_share", "/counters/shared_wavefront_share"},
    {"counted_shared_wavefronts", "/counters/shared_wavefronts"},
    {"counted_shared_bank_conflicts", "/counters/shared_bank_conflicts"},
    {"counted_data_bank_read_share", "/counters/data_bank_read_share"},
    {"counted_data_bank_write_share", "/counters/data_bank_write_share"},
    {"counted_sm_read_bytes", "/counters/sm_read_bytes"},
    {"counted_l2_read_bytes", "/counters/l2_read_bytes"},
    {"counted_l2_write_bytes", "/counters/l2_write_bytes"},
    {"counted_l2_hit_rate", "/counters/l2_hit_rate"},
    {"counted_l2_fabric_bytes", "/counters/l2_fabric_bytes"},
    {"counted_dram_read_bytes", "/counters/dram_read_bytes"},
    {"counted_dram_write_bytes", "/counters/dram_write_bytes"},
};

constexpr Column fuse_problem_columns[] = {
    {"machine", "/machine/id"},      {"op", "/problem/op"},           {"expression", "/problem/expression"},
    {"tensors", "/problem/tensors"}, {"outputs", "/problem/outputs"},
};

constexpr Column fuse_config_columns[] = {
    {"kernel", "/config/kernel"},
    {"home", "/config/home"},
    {"width", "/config/width"},
    {"items", "/config/items"},
    {"threads", "/config/threads"},
    {"threads_per_row", "/config/threads_per_row"},
    {"reducing_threads", "/config/reducing_threads"},
    {"rows_per_cta", "/config/rows_per_cta"},
    {"cluster", "/config/cluster"},
    {"stages", "/config/stages"},
    {"ctas_per_sm", "/config/ctas_per_sm"},
    {"persistent", "/config/persistent"},
    {"early_weights", "/config/early_weights"},
    {"meeting", "/config/meeting"},
    {"grid", "/config/grid"},
};

constexpr Column fuse_plan_columns[] = {
    {"rank", "/rank"},
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
};

constexpr Column fuse_measurement_columns[] = {
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
};

/// "x:bf16[16384,4096]"
std::string declaration_of(const Json& tensor) {
    std::string shape;
    for (const Json& extent : tensor.at("shape")) shape += (shape.empty() ? "" : ",") + extent.dump();
    return tensor.at("name").get<std::string>() + ":" + tensor.at("type").get<std::string>() + "[" + shape
           + "]";
}

std::string cell_of(const Json& value) {
    if (value.is_null()) return {};
    if (value.is_string()) return csv_cell(value.get_ref<const std::string&>());
    if (!value.is_array()) return value.dump();
    std::string joined;
    for (const Json& element : value)
        joined += (joined.empty() ? "" : " ")
                  + (element.is_object() ? declaration_of(element) : element.get<std::string>());
    return csv_cell(joined);
}

void add_line(std::string& out, std::span<const std::span<const Column>> groups, auto&& cell) {
    bool first = true;
    for (auto group : groups)
        for (const Column& column : group) {
            if (!first) out += ',';
            first = false;
            out += cell(column);
        }
    out += "\r\n";
}

}  // namespace

std::string csv_cell(std::string_view text) {
    std::string cell;
    if (!text.empty() && std::string_view("=+-@\t\r\n").find(text.front()) != std::string_view::npos)
        cell = "'";
    cell += text;
    if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
    std::string quoted = "\"";
    for (char c : cell) {
        if (c == '"') quoted += '"';
        quoted += c;
    }
    return quoted + '"';
}

std::string csv_text(const Json& document) {
    using Columns = std::span<const Column>;
    const std::vector<Json> rows = row_lines(document);
    const Json& first = document.contains("problem") || rows.empty() ? document : rows.front();
    const Json::json_pointer op{"/problem/op"};
    const bool fused = first.contains(op) && first.at(op) == "fuse", measured = document.contains("rows");
    const Columns groups[] = {
        fused ? Columns(fuse_problem_columns) : Columns(problem_columns),
        fused ? Columns(fuse_config_columns) : Columns(config_columns),
        measured ? Columns(timing_columns) : Columns(),
        fused ? (measured ? Columns(fuse_measurement_columns) : Columns(fuse_plan_columns))
              : (measured ? Columns(measurement_columns) : Columns(plan_columns))};
    std::string out;
    add_line(out, groups, [](const Column& column) { return std::string(column.title); });
    for (const Json& row : rows)
        add_line(out, groups, [&](const Column& column) {
            const Json::json_pointer path{std::string(column.path)};
            return row.contains(path) ? cell_of(row.at(path)) : std::string();
        });
    return out;
}

}  // namespace rooftile
