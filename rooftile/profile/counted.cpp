#include "rooftile/profile/counted.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "rooftile/error.hpp"

namespace rooftile {
namespace {

constexpr double sector_bytes = 32, percent = 100;

// The SM's own way to L2: the plain counters hold what one half of L2 asks of the other, too.
constexpr const char *time_metric = "gpu__time_duration.sum", *dram_read = "dram__bytes_read.sum", *dram_written = "dram__bytes_write.sum",
                     *l2_read = "lts__t_sectors_srcunit_tex_op_read.sum", *l2_written = "lts__t_sectors_srcunit_tex_op_write.sum",
                     *tensor_pipe = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
                     *issue_slots = "sm__inst_issued.avg.pct_of_peak_sustained_active";

bool is_like(const KernelGroup& group, const DeviceWork& work) {
    return work.kind == DeviceWork::Kind::kernel && group.name == work.name && group.grid == work.grid && group.block == work.block;
}

bool fits_a_pattern(std::string_view name) {
    return std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '$' || c == '.'; });
}

/// The cells of a line of comma-separated values; a quote in a cell is written twice.
std::vector<std::string> cells_of(std::string_view line) {
    std::vector<std::string> out(1);
    bool quoted = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') out.back() += line[i++];
        else if (line[i] == '"') quoted = !quoted;
        else if (line[i] == ',' && !quoted) out.emplace_back();
        else if (line[i] != '\r') out.back() += line[i];
    }
    return out;
}

/// "1,056" and "12.5"; nothing for what is no number.
std::optional<double> value_of(std::string text) {
    std::erase(text, ',');
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// "(128, 1, 1)".
std::array<std::int32_t, 3> extents_of(std::string_view text) {
    std::array<std::int32_t, 3> out{};
    std::size_t at = 0;
    for (std::int32_t& extent : out) {
        at = text.find_first_of("0123456789", at);
        if (at == text.npos) break;
        const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), extent);
        if (error != std::errc()) break;
        at = std::size_t(end - text.data());
    }
    return out;
}

class CountedTable {
  public:
    explicit CountedTable(std::vector<std::string> titles) : titles_(std::move(titles)) {}
    bool has(std::string_view title) const { return std::ranges::find(titles_, title) != titles_.end(); }
    std::string cell(const std::vector<std::string>& row, std::string_view title) const {
        const auto at = std::size_t(std::ranges::find(titles_, title) - titles_.begin());
        return at < row.size() ? row[at] : "";
    }

  private:
    std::vector<std::string> titles_;
};

/// The first message that tells a fault, without its mark.
std::string fault_in(std::string_view text) {
    constexpr std::string_view mark = "==ERROR== ";
    const std::size_t at = text.find(mark);
    if (at == text.npos) return "";
    const std::string_view rest = text.substr(at + mark.size());
    return std::string(rest.substr(0, rest.find_first_of("\r\n")));
}

}  // namespace

std::vector<std::string> counted_metrics() { return {time_metric, dram_read, dram_written, l2_read, l2_written, tensor_pipe, issue_slots}; }

LaunchesToCount launches_to_count(const std::vector<Recorded>& recordings, const Profile& profile, std::size_t top) {
    LaunchesToCount out;
    std::set<std::string> names;
    std::set<std::size_t> places;
    for (std::size_t i = 0; i < std::min(top, profile.kernels.size()); ++i) {
        const KernelGroup& group = profile.kernels[i];
        if (!fits_a_pattern(group.name)) {
            out.skipped.push_back(group.name);
            continue;
        }
        for (const Recorded& recorded : recordings) {
            std::size_t place = 0, last = 0;
            for (const DeviceWork& work : recorded.work) {
                place += work.kind == DeviceWork::Kind::kernel && work.name == group.name;
                if (is_like(group, work)) last = place;
            }
            if (last > 0) names.insert(group.name), places.insert({last - 1, last});
        }
    }
    out.kernels.assign(names.begin(), names.end());
    out.places.assign(places.begin(), places.end());
    return out;
}

std::string kernel_filter(const LaunchesToCount& launches) {
    std::string names, places;
    for (const std::string& name : launches.kernels) {
        if (!names.empty()) names += '|';
        for (const char c : name) names += c == '.' || c == '$' ? std::string("\\") + c : std::string(1, c);
    }
    for (const std::size_t place : launches.places) places += (places.empty() ? "" : "|") + std::to_string(place);
    return fmt::format("::regex:^({})$:{}", names, places);
}

std::vector<CountedLaunch> read_counted(std::string_view text) {
    std::vector<CountedLaunch> out;
    std::map<std::string, std::size_t> place;  // of a launch by its number
    std::optional<CountedTable> table;
    for (std::size_t from = 0; from < text.size();) {
        const std::size_t to = std::min(text.find('\n', from), text.size());
        const std::string_view line = text.substr(from, to - from);
        from = to + 1;
        if (line.empty() || line.starts_with("==")) continue;
        std::vector<std::string> cells = cells_of(line);
        if (!table) {
            CountedTable titles(std::move(cells));
            if (titles.has("ID") && titles.has("Kernel Name") && titles.has("Grid Size") && titles.has("Block Size"))
                table = std::move(titles);
            continue;
        }
        const std::string number = table->cell(cells, "ID");
        if (number.empty()) continue;  // units
        const auto [at, is_new] = place.try_emplace(table->cell(cells, "Process ID") + " " + number, out.size());
        if (is_new)
            out.push_back({table->cell(cells, "Kernel Name"),
                           extents_of(table->cell(cells, "Grid Size")),
                           extents_of(table->cell(cells, "Block Size")),
                           {}});
        std::map<std::string, double>& values = out[at->second].values;
        if (table->has("Metric Name")) {
            if (const auto value = value_of(table->cell(cells, "Metric Value"))) values[table->cell(cells, "Metric Name")] = *value;
        } else
            for (const std::string& metric : counted_metrics())
                if (const auto value = value_of(table->cell(cells, metric))) values[metric] = *value;
    }
    const std::string fault = fault_in(text);
    if (fault.find("ERR_NVGPUCTRPERM") != fault.npos)
        throw Error(ExitCode::counters_denied,
                    fmt::format("hardware counters are not permitted here: ncu says {}; run as root, or let all users count "
                                "(NVreg_RestrictProfilingToAdminUsers=0); everything but --counters works without them",
                                fault));
    if (!fault.empty() && out.empty()) throw Error(ExitCode::gpu_failed, fmt::format("nothing was counted: ncu says {}", fault));
    return out;
}

void add_counters(Profile& profile, const std::vector<CountedLaunch>& launches) {
    for (KernelGroup& group : profile.kernels) {
        std::map<std::string, std::pair<double, int>> sums;
        std::size_t count = 0;
        for (const CountedLaunch& launch : launches) {
            if (launch.kernel != group.name || launch.grid != group.grid || launch.block != group.block) continue;
            ++count;
            for (const auto& [metric, value] : launch.values) sums[metric].first += value, ++sums[metric].second;
        }
        if (count == 0) continue;
        const auto mean = [&](const char* metric) -> std::optional<double> {
            const auto found = sums.find(metric);
            return found == sums.end() ? std::nullopt : std::optional(found->second.first / found->second.second);
        };
        const auto scaled = [](std::optional<double> value, double by) { return value ? std::optional(*value * by) : value; };
        KernelCounters& c = group.counters.emplace();
        c.launches = count;
        c.time = mean(time_metric), c.dram_read = mean(dram_read), c.dram_written = mean(dram_written);
        if (const auto read = mean(l2_read), written = mean(l2_written); read && written) c.l2 = (*read + *written) * sector_bytes;
        c.tensor_share = scaled(mean(tensor_pipe), 1 / percent), c.issue_share = scaled(mean(issue_slots), 1 / percent);
    }
}

}  // namespace rooftile
