#include "rooftile/report/counters.hpp"

#include <fmt/core.h>

#include <cmath>

#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

using V = CounterValues;

constexpr CounterField fields[] = {
    {"tensor_active_share", "share", &V::tensor_active_share, "tensor pipes active"},
    {"tensor_instructions", "", &V::tensor_instructions, "tensor instructions of warps"},
    {"sm_active_share", "share", &V::sm_active_share, "SMs with work"},
    {"sm_cycles", "cycles", &V::sm_cycles, "SM cycles"},
    {"sm_clock_mhz", "MHz", &V::sm_clock_mhz, "SM clock while counting"},
    {"time_us", "us", &V::time_us, "time while counting"},
    {"shared_wavefront_share", "share", &V::shared_wavefront_share, "shared memory's data stage busy"},
    {"shared_wavefronts", "", &V::shared_wavefronts, "shared-memory wavefronts"},
    {"shared_bank_conflicts", "", &V::shared_bank_conflicts, "shared-memory bank conflicts"},
    {"data_bank_read_share", "share", &V::data_bank_read_share, "L1 and shared banks reading"},
    {"data_bank_write_share", "share", &V::data_bank_write_share, "L1 and shared banks writing"},
    {"sm_read_bytes", "B", &V::sm_read_bytes, "arrived in SMs"},
    {"l2_read_bytes", "B", &V::l2_read_bytes, "read from L2"},
    {"l2_write_bytes", "B", &V::l2_write_bytes, "written to L2"},
    {"l2_hit_rate", "share", &V::l2_hit_rate, "reads that hit in L2"},
    {"l2_fabric_bytes", "B", &V::l2_fabric_bytes, "between the halves of L2"},
    {"dram_read_bytes", "B", &V::dram_read_bytes, "read from DRAM"},
    {"dram_write_bytes", "B", &V::dram_write_bytes, "written to DRAM"},
};

std::string value_text(double value, std::string_view unit) {
    if (unit == "share") return percent_text(value);
    if (unit == "us") return time_text(value);
    if (unit == "MHz") return number_text(value) + " MHz";
    if (unit == "B") return scaled_text(value, unit);
    return number_text(std::round(value));
}

/// "predicted 553.6 MB"; empty where nothing was predicted for that pair of counters.
std::string beside(const std::optional<double>& x, const std::optional<double>& y,
                   const std::optional<std::int64_t>& predicted, const char* what) {
    if (!x || !y || !predicted) return {};
    return fmt::format("  {} {} in all, predicted {}\n", what, scaled_text(*x + *y, "B"),
                       scaled_text(static_cast<double>(*predicted), "B"));
}

}  // namespace

std::span<const CounterField> counter_fields() { return fields; }

std::string counters_text(const CounterValues& counters, const PredictedTraffic& prediction,
                          const Terminal& terminal, const CountedBaseline& baseline) {
    const std::optional<CounterValues>& baseline_values = baseline.values;
    std::string out;
    std::vector<Table::Column> columns = {{"counted, of one launch", Table::Align::left},
                                          {baseline_values ? "plan" : ""}};
    if (baseline_values) columns.push_back({baseline.name});
    Table table(columns);
    const CounterValues theirs = baseline_values.value_or(CounterValues());
    const auto text_of = [](const std::optional<double>& value, const char* unit) {
        return value ? value_text(*value, unit) : std::string("?");
    };
    for (const CounterField& field : fields) {
        if (!(counters.*field.value) && !(theirs.*field.value)) continue;
        std::vector<Table::Cell> cells = {{field.meaning}, {text_of(counters.*field.value, field.unit)}};
        if (baseline_values) cells.push_back({text_of(theirs.*field.value, field.unit)});
        table.row(cells);
    }
    out += table.text(terminal);
    out += beside(counters.l2_read_bytes, counters.l2_write_bytes, prediction.l2_bytes, "L2");
    out += beside(counters.dram_read_bytes, counters.dram_write_bytes, prediction.dram_bytes, "DRAM");
    const std::string how = fmt::format(
        "mean of {} launches on {}, run {} times; shares of pipes and banks are of the cycles in "
        "which an SM had work",
        counters.launches, displayable(counters.chip, terminal.utf8), counters.passes);
    return out + "  " + wrapped(how, terminal.prose() - 2, 2) + "\n";
}

}  // namespace rooftile
