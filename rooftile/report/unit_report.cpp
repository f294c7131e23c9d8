#include "rooftile/report/unit_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "rooftile/machine/query.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/units.hpp"

namespace rooftile {
namespace {

constexpr double judged_from_us = 5;  ///< below, a launch is all there is

std::string size_text(std::int64_t bytes) {
    if (bytes >= 1 << 30) return fmt::format("{} GiB", bytes >> 30);
    if (bytes >= 1 << 20) return fmt::format("{} MiB", bytes >> 20);
    return fmt::format("{} KiB", bytes >> 10);
}

std::optional<double> number(const Machine& machine, const char* key, double clock_hz) {
    const auto rate = bandwidth(machine, key, Clock{clock_hz});
    return rate ? std::optional(rate->value) : std::nullopt;
}

/// Bytes a second to and from device memory where a share of them is written: between a read alone and a copy.
std::optional<double> dram_rate(const Machine& machine, double clock_hz, double written_share) {
    const auto read = number(machine, machine.find("dram.sustained_read") ? "dram.sustained_read" : "dram.bandwidth", clock_hz);
    const auto copy = number(machine, machine.find("dram.sustained_copy") ? "dram.sustained_copy" : "dram.bandwidth", clock_hz);
    if (!read || !copy) return std::nullopt;
    return *read + (*copy - *read) * std::min(1.0, 2 * written_share);
}

std::optional<double> seconds_of(const Machine& machine, const char* key, double clock_hz) {
    const auto cycles = latency_cycles(machine, key, Clock{clock_hz});
    return cycles ? std::optional(cycles->value / clock_hz) : std::nullopt;
}

Json model_json(const UnitPrediction& p) {
    return {{"launch_us", json_number(p.launch)},
            {"store_us", json_number(p.store)},
            {"latency_us", json_number(p.latency)},
            {"bytes_us", json_number(p.bytes)},
            {"issue_us", json_number(p.issue)},
            {"special_us", json_number(p.special)},
            {"ctas", p.ctas},
            {"in_flight", p.in_flight}};
}

std::string place_of(bool from_dram) { return from_dram ? "dram" : "l2"; }

/// The rows of a place: sizes down, kernels across, each cell by `cell`.
template <class Cell>
std::string grid_text(const Json& d, const std::string& place, const Terminal& terminal, Cell cell) {
    std::vector<Table::Column> columns{{"x"}};
    for (const Json& kernel : d.at("kernels")) columns.push_back({text_at(kernel, "name")});
    const std::size_t kernels = d.at("kernels").size();
    std::map<std::int64_t, std::vector<Table::Cell>> rows;
    for (std::size_t k = 0; k < kernels; ++k)
        for (const Json& point : d.at("points"))
            if (text_at(point, "place") == place && point.at("kernel") == d.at("kernels")[k].at("id")) {
                const auto bytes = point.at("x_bytes").get<std::int64_t>();
                auto& row = rows[bytes];
                row.resize(kernels + 1);
                row[0] = {size_text(bytes)}, row[k + 1] = cell(point);
            }
    Table table(std::move(columns));
    for (auto& [bytes, cells] : rows) table.row(std::move(cells));
    return rows.empty() ? "" : table.text(terminal);
}

std::string counters_text(const Json& d, const Terminal& terminal) {
    // Reasons that matter somewhere.
    std::vector<std::string> reasons;
    for (const Json& point : d.at("points"))
        if (point.at("stall_shares").is_object())
            for (const auto& [reason, share] : point.at("stall_shares").items())
                if (share.is_number() && share.get<double>() >= 0.05 && std::ranges::find(reasons, reason) == reasons.end())
                    reasons.push_back(reason);
    std::vector<Table::Column> columns{{"kernel", Table::Align::left}, {"x"}, {"from", Table::Align::left}, {"issue"}, {"special"}};
    for (std::string reason : reasons) {
        std::ranges::replace(reason, '_', ' ');
        columns.push_back({reason});
    }
    Table table(std::move(columns));
    int rows = 0;
    for (const Json& kernel : d.at("kernels"))
        for (const Json& point : d.at("points")) {
            if (point.at("kernel") != kernel.at("id") || !point.at("counters").is_object()) continue;
            const auto percent = [&](const char* key) {
                const auto value = number_at(point.at("counters"), key);
                return value ? percent_text(*value / 100) : std::string("?");
            };
            std::vector<Table::Cell> cells{{text_at(kernel, "name")},
                                           {size_text(point.at("x_bytes").get<std::int64_t>())},
                                           {text_at(point, "place")},
                                           {percent("issue_active_percent")},
                                           {percent("special_percent")}};
            for (const std::string& reason : reasons) {
                const auto share = number_at(point.at("stall_shares"), reason.c_str());
                cells.push_back({share ? percent_text(*share) : "?"});
            }
            table.row(std::move(cells)), ++rows;
        }
    return rows == 0
               ? ""
               : "\n" + terminal.paint("What warps wait for, as a share of all their cycles", Tone::strong) + "\n" + table.text(terminal);
}

}  // namespace

const std::vector<UnitWords>& unit_words() {
    static const std::vector<UnitWords> words = {
        {UnitKind::product, "product", "product", "z = x y", 2, 1},
        {UnitKind::silu_divide, "silu_divide", "SiLU /", "z = x / (1 + e^-x), by a division that rounds", 1, 1},
        {UnitKind::silu_fast_divide, "silu_fast_divide", "SiLU fast /", "the same by __fdividef", 1, 1},
        {UnitKind::silu_reciprocal, "silu_reciprocal", "SiLU 1/", "the same by a reciprocal that rounds, and a product", 1, 1},
        {UnitKind::silu_no_division, "silu_no_division", "no division", "z = x (1 + e^-x): SiLU but for its division", 1, 1},
        {UnitKind::rms_norm, "rms_norm", "RMSNorm", "z = x w / sqrt(mean of x^2 + epsilon), rows of 4096", 1, 1},
        {UnitKind::gemv, "gemv", "GEMV", "z = x v, rows of 4096", 1, 0},
    };
    return words;
}

const std::vector<UnitCounter>& unit_counters() {
    static const std::vector<UnitCounter> counters = {
        {"issue_active_percent", "smsp__issue_active.avg.pct_of_peak_sustained_active"},
        {"special_percent", "smsp__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active"},
        {"instructions", "smsp__inst_executed.sum"},
        {"special_instructions", "smsp__inst_executed_pipe_xu.sum"},
        {"selected", "smsp__average_warps_issue_stalled_selected_per_issue_active.ratio"},
        {"long_scoreboard", "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio"},
        {"short_scoreboard", "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio"},
        {"wait", "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio"},
        {"math_pipe_throttle", "smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio"},
        {"mio_throttle", "smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio"},
        {"lg_throttle", "smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio"},
        {"dispatch_stall", "smsp__average_warps_issue_stalled_dispatch_stall_per_issue_active.ratio"},
        {"not_selected", "smsp__average_warps_issue_stalled_not_selected_per_issue_active.ratio"},
        {"barrier", "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio"},
        {"no_instruction", "smsp__average_warps_issue_stalled_no_instruction_per_issue_active.ratio"},
        {"branch_resolving", "smsp__average_warps_issue_stalled_branch_resolving_per_issue_active.ratio"},
        {"drain", "smsp__average_warps_issue_stalled_drain_per_issue_active.ratio"},
        {"imc_miss", "smsp__average_warps_issue_stalled_imc_miss_per_issue_active.ratio"},
    };
    return counters;
}

TakenTurns take_turns(int customers, double apart, std::span<const double> services) {
    std::vector<double> waiting(services.size());
    TakenTurns out;
    for (int n = 1; n <= customers; ++n) {
        out.round = apart;
        for (std::size_t i = 0; i < services.size(); ++i) out.round += services[i] * (1 + waiting[i]);
        out.rate = n / out.round;
        for (std::size_t i = 0; i < services.size(); ++i) waiting[i] = out.rate * services[i] * (1 + waiting[i]);
    }
    return out;
}

std::optional<double> UnitPrediction::total() const {
    if (!launch || !store || !latency || !bytes || !issue || !special) return std::nullopt;
    const double services[] = {*bytes / ctas, *issue / ctas, *special / ctas};
    const TakenTurns turns = take_turns(in_flight, *latency, services);
    // The first of them come together; each one more comes when another leaves.
    return *launch + *store + turns.round + std::max(0.0, ctas - in_flight) / turns.rate;
}

namespace {

/// CTAs of an SM at a time, by threads and registers.
std::optional<int> ctas_at_once(const Machine& machine, int threads, int registers) {
    const auto warps = machine.count("sm.max_warps"), ctas = machine.count("sm.max_ctas"), all = machine.count("sm.registers"),
               unit = machine.count("sm.register_allocation_unit");
    if (!warps || !ctas || !all || !unit) return std::nullopt;
    const double own_warps = threads / 32.0, own_registers = std::ceil(registers * 32 / *unit) * *unit * own_warps;
    return std::max(1, int(std::min({*ctas, std::floor(*warps / own_warps), std::floor(*all / std::max(1.0, own_registers))})));
}

}  // namespace

UnitPrediction predicted_unit(const Machine& machine, const UnitCode& code, Type type, std::int64_t x_bytes, bool from_dram) {
    const UnitWords& words = unit_words()[std::size_t(code.kind)];
    UnitPrediction p;
    if (const auto gap = machine.number<Seconds>("launch.gap_graph")) p.launch = gap->value * 1e6;
    const auto clock = machine.number<Clock>("clock.boost");
    const auto sms = machine.count("sm.count"), partitions = machine.count("sm.partitions");
    const int threads = unit_cta_threads(code.kind, type);
    const auto resident = ctas_at_once(machine, threads, code.registers);
    if (!clock || !sms || !resident) return p;
    const double hz = clock->value, ctas = std::ceil(double(x_bytes) / double(unit_cta_bytes(code.kind, type)));
    const double working = std::min(*sms, ctas);
    p.ctas = ctas / working;
    p.in_flight = std::min(*resident, int(std::ceil(p.ctas)));
    const auto l2_latency = seconds_of(machine, "l2.latency", hz);
    if (l2_latency) p.store = *l2_latency * 1e6;
    const auto load = from_dram ? seconds_of(machine, "dram.latency", hz) : l2_latency, result = seconds_of(machine, "shared.latency", hz);
    // What the scoreboards guard beside loads takes about as long as a load from shared memory, which is one of them.
    if (load && result)
        p.latency = std::max(0.0, cycles_alone(code.counts.timings, *load * hz, *result * hz) - code.counts.instructions) / hz * 1e6;
    // A thread of a CTA each, whatever it takes.
    const double warps = ctas * threads / 32, lanes = 32;
    if (partitions) p.issue = warps * code.counts.instructions / (*partitions * working * hz) * 1e6;
    using PerCycle = Quantity<Dimension{.cycle = -1}>;
    if (const auto special = machine.number<PerCycle>("rate.mufu", Per::sm))
        p.special = warps * lanes * code.counts.special / (special->value * working * hz) * 1e6;
    const double moved = double(x_bytes) * (words.read + words.written);
    const auto rate =
        from_dram ? dram_rate(machine, hz, words.written / (words.read + words.written)) : number(machine, "l2.bandwidth", hz);
    // Few SMs have no more than their own way to L2.
    const auto port = bytes_per_cycle_per_sm(machine, "l2.port", *clock);
    if (rate) p.bytes = moved / std::min(*rate, port ? working * port->value * hz : *rate) * 1e6;
    if (p.bytes && p.issue && p.special && p.latency) {
        const double most = std::max({*p.bytes, *p.issue, *p.special});
        const double round = *p.latency + (*p.bytes + *p.issue + *p.special) / p.ctas;
        p.bound = round > p.in_flight * most / p.ctas ? "latency"
                  : most == *p.bytes                  ? place_of(from_dram)
                  : most == *p.issue                  ? "issue"
                                                      : "special";
    }
    return p;
}

Json unit_document(const DocumentContext& context, const Machine& machine, const UnitRun& run) {
    Json kernels = Json::array(), points = Json::array();
    for (const UnitCode& code : run.code) {
        const UnitWords& words = unit_words()[std::size_t(code.kind)];
        kernels.push_back({{"id", words.id},
                           {"name", words.name},
                           {"meaning", words.meaning},
                           {"threads", unit_cta_threads(code.kind, run.type)},
                           {"cta_bytes", unit_cta_bytes(code.kind, run.type)},
                           {"registers", code.registers},
                           {"instructions", code.counts.instructions},
                           {"special_functions", code.counts.special}});
    }
    for (const UnitPoint& point : run.points) {
        const UnitWords& words = unit_words()[std::size_t(point.kind)];
        const auto code = std::ranges::find(run.code, point.kind, &UnitCode::kind);
        const UnitPrediction p = predicted_unit(machine, *code, run.type, point.x_bytes, point.from_dram);
        Json counters = nullptr, stalls = nullptr;
        if (!point.counters.empty()) {
            counters = Json::object(), stalls = Json::object();
            double all = 0;
            for (std::size_t i = first_stall_counter; i < unit_counters().size(); ++i)
                if (const auto found = point.counters.find(unit_counters()[i].key); found != point.counters.end()) all += found->second;
            for (std::size_t i = 0; i < unit_counters().size(); ++i) {
                const char* key = unit_counters()[i].key;
                const auto found = point.counters.find(key);
                const std::optional<double> value = found == point.counters.end() ? std::nullopt : std::optional(found->second);
                counters[key] = json_number(value);
                if (i >= first_stall_counter) stalls[key] = json_number(value && all > 0 ? std::optional(*value / all) : std::nullopt);
            }
        }
        const double moved = double(point.x_bytes) * (words.read + words.written);
        // What is wrong was not timed.
        const auto timed = [](double value) { return value > 0 ? json_number(value) : Json(nullptr); };
        points.push_back({{"kernel", words.id},
                          {"x_bytes", point.x_bytes},
                          {"place", place_of(point.from_dram)},
                          {"moved_bytes", json_number(moved)},
                          {"sets", point.sets},
                          {"launches", point.launches},
                          {"time_us", timed(point.time_us)},
                          {"low_us", timed(point.low_us)},
                          {"high_us", timed(point.high_us)},
                          {"gbps", timed(point.time_us > 0 ? moved / point.time_us * 1e-3 : 0)},
                          {"predicted_us", json_number(p.total())},
                          {"bound", text_or_null(p.bound)},
                          {"model", model_json(p)},
                          {"worst", json_number(point.worst)},
                          {"right", point.right},
                          {"counters", counters},
                          {"stall_shares", stalls}});
    }
    Json out = {{"schema", "rooftile/units/1"},
                {"context", context_json(context)},
                {"machine", {{"id", machine.id}, {"name", machine.name}}},
                {"type", run.type == Type::fp32 ? "fp32" : "bf16"},
                {"chip", text_or_null(run.chip)},
                {"kernels", std::move(kernels)},
                {"points", std::move(points)}};
    out["judged_from_us"] = judged_from_us;
    const auto error = unit_error(out, judged_from_us);
    out["mean_error"] = error ? json_number(error->mean) : Json(nullptr);
    out["mean_bias"] = error ? json_number(error->bias) : Json(nullptr);
    out["notes"] = run.notes;
    return out;
}

std::optional<PredictionError> unit_error(const Json& document, double least_us) {
    std::vector<double> errors;
    for (const Json& point : document.at("points")) {
        const auto time = number_at(point, "time_us"), predicted = number_at(point, "predicted_us");
        if (!time || !predicted || *time < least_us) continue;
        errors.push_back(*predicted / *time - 1);
    }
    return prediction_error(errors);
}

std::string unit_text(const Json& d, const Terminal& terminal) {
    const Json& context = d.at("context");
    std::string out =
        terminal.paint(
            fmt::format("Short kernels, {}, on {}", text_at(d, "type"),
                        displayable(context.contains("gpu") ? text_at(context, "gpu") : text_at(d.at("machine"), "id"), terminal.utf8)),
            Tone::strong)
        + "\n";
    Table code({{"kernel", Table::Align::left}, {"computes", Table::Align::left}, {"instructions"}, {"special"}, {"registers"}});
    for (const Json& kernel : d.at("kernels"))
        code.row({{text_at(kernel, "name")},
                  {text_at(kernel, "meaning")},
                  {kernel.at("instructions").dump()},
                  {kernel.at("special_functions").dump()},
                  {kernel.at("registers").dump()}});
    out += code.text(terminal) + "  "
           + wrapped(
               "instructions: of a thread, which takes 16 bytes of x (GEMV: its share of a row), counted in the machine code; special: "
               "those of the "
               "special function unit among them.",
               terminal.prose() - 2, 2)
           + "\n";
    const auto time = [](const Json& point) {
        if (!point.at("right").get<bool>()) return Table::Cell{"wrong", Tone::bad};
        return Table::Cell{number_text(number_at(point, "time_us").value_or(0), 3)};
    };
    const auto error = [](const Json& point) {
        const auto predicted = number_at(point, "predicted_us"), measured = number_at(point, "time_us");
        return Table::Cell{predicted && measured ? fmt::format("{:+.0f} % {}", 100 * (*predicted / *measured - 1), text_at(point, "bound"))
                                                 : "?"};
    };
    for (const char* place : {"dram", "l2"}) {
        const std::string times = grid_text(d, place, terminal, time);
        if (times.empty()) continue;
        const std::string where = place == std::string("dram") ? "from DRAM" : "in L2";
        out += "\n" + terminal.paint("us a launch, operands " + where, Tone::strong) + "\n" + times;
        out += "\n" + terminal.paint("prediction off by, and what it says binds, operands " + where, Tone::strong) + "\n"
               + grid_text(d, place, terminal, error);
    }
    if (const auto error = unit_error(d, d.at("judged_from_us").get<double>()))
        out += fmt::format("\n  from {} us on the prediction is off by {}\n", number_text(d.at("judged_from_us").get<double>()),
                           prediction_error_text(*error));
    out += counters_text(d, terminal);
    for (const Json& note : d.at("notes"))
        out += "note  " + wrapped(displayable(note.get<std::string>(), terminal.utf8), terminal.prose() - 6, 6) + "\n";
    return out;
}

}  // namespace rooftile
