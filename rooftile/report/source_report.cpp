#include "rooftile/report/source_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rooftile/core/operation.hpp"
#include "rooftile/report/counters.hpp"
#include "rooftile/report/measurement.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

constexpr std::string_view unknown = "-";

std::string name_of_row(const SourceReport& report, std::size_t row) {
    if (row == 0) return fmt::format("{} ({})", report.codes[row].entry, report.file);
    const Plan& plan = report.rows[row].plan;
    return "derived: " + plan.operation->label(plan);
}

bool is_valid(const Measurement& m) { return why_no_result(m).empty() && m.time_us.has_value(); }

std::string dram_text(const Measurement& m) {
    if (!m.counters || !m.counters->dram_read_bytes || !m.counters->dram_write_bytes)
        return std::string(unknown);
    return scaled_text(*m.counters->dram_read_bytes + *m.counters->dram_write_bytes, "B");
}

Table::Cell verdict_of(const Measurement& m) {
    const Verification& v = m.verified;
    if (v.ok()) return {fmt::format("yes, {} of its bound", percent_text(v.max_error)), Tone::good};
    return {v.wrong() ? "NO" : m.built ? "not checked" : "not built", Tone::bad};
}

/// The faster of the copies that were timed beside.
std::optional<double> copy_us(const Measurement& m) {
    std::optional<double> least;
    for (const Baseline& b : m.baselines)
        if (!b.same_work && b.time_us && (b.key == "copy" || b.key == "memcpy"))
            least = std::min(least.value_or(*b.time_us), *b.time_us);
    return least;
}

/// Every kernel of one table, whoever wrote it.
class KernelTable {
  public:
    KernelTable(const SourceReport& report, const Terminal& terminal)
        : report_(report),
          terminal_(terminal),
          table_({{"kernel", Table::Align::left},
                  {"time"},
                  {"interval", Table::Align::left, 6},
                  {"GB/s"},
                  {"of copy"},
                  {"launches", Table::Align::right, 5},
                  {"DRAM", Table::Align::right, 3},
                  {"registers", Table::Align::right, 2},
                  {"spills", Table::Align::right, 4},
                  {"right", Table::Align::left, 1}}) {
        for (const Measurement& m : report.rows)
            if (is_valid(m)) bytes_ = m.gbytes_per_s.value_or(0) * *m.time_us, copy_us_ = copy_us(m);
    }

    std::string text() {
        for (std::size_t i = 0; i < report_.rows.size(); ++i) add_row(i);
        for (const Measurement& m : report_.rows) {
            if (!is_valid(m)) continue;
            for (const Baseline& b : m.baselines) add_baseline(b);
            break;  // all rows have the same
        }
        return table_.text(terminal_);
    }

  private:
    std::string rate(double us) const { return bytes_ > 0 ? number_text(bytes_ / us) : std::string(unknown); }
    std::string of_copy(double us) const {
        return copy_us_ ? percent_text(*copy_us_ / us) : std::string(unknown);
    }

    void add_row(std::size_t i) {
        const Measurement& m = report_.rows[i];
        const CodeFacts& code = report_.codes[i];
        const bool valid = is_valid(m);
        const auto or_none = [&](const std::string& text) { return valid ? text : std::string(unknown); };
        table_.row({{name_of_row(report_, i), i == 0 ? Tone::strong : Tone::plain},
                    {valid ? time_text(*m.time_us) : std::string(unknown), Tone::strong},
                    {valid && m.time_us_low
                         ? fmt::format("{} to {}", time_text(*m.time_us_low), time_text(*m.time_us_high))
                         : ""},
                    {or_none(valid ? rate(*m.time_us) : "")},
                    {or_none(valid ? of_copy(*m.time_us) : "")},
                    {"1"},
                    {dram_text(m)},
                    {std::to_string(code.registers)},
                    {fmt::format("{} B", code.spill_store_bytes + code.spill_load_bytes)},
                    verdict_of(m)});
    }

    void add_baseline(const Baseline& b) {
        if (!b.time_us) return;
        const auto counted = report_.launches.find(b.key);
        const std::string launches = !b.same_work                       ? "1"
                                     : counted != report_.launches.end() ? std::to_string(counted->second)
                                                                         : "";
        table_.row({{b.name},
                    {time_text(*b.time_us)},
                    {b.form},
                    {rate(*b.time_us)},
                    {of_copy(*b.time_us)},
                    {launches},
                    {""},
                    {""},
                    {""},
                    {""}});
    }

    const SourceReport& report_;
    const Terminal& terminal_;
    Table table_;
    double bytes_ = 0;  ///< GB/s times us: what the problem must move, as rows rate it
    std::optional<double> copy_us_;
};

std::string code_text(const SourceReport& report, std::size_t row, const Terminal& terminal) {
    const CodeFacts& code = report.codes[row];
    std::vector<Entry> entries;
    if (!code.launch.empty()) entries.push_back({"launch", code.launch, ""});
    if (code.elements_per_thread)
        entries.push_back({"elements",
                           fmt::format("{} of the outputs a thread", number_text(*code.elements_per_thread)),
                           ""});
    const std::string_view of =
        code.from_sass ? "instructions of the machine code" : "of the PTX: no disassembler was found";
    entries.push_back({"global loads", widths_text(code.accesses.loads), std::string(of)});
    entries.push_back({"global stores", widths_text(code.accesses.stores), ""});
    if (code.stack_bytes > 0)
        entries.push_back({"stack", fmt::format("{} B a thread", code.stack_bytes), ""});
    if (code.shared_bytes > 0)
        entries.push_back({"shared memory", fmt::format("{} B a CTA", code.shared_bytes), ""});
    return "\n" + terminal.paint(name_of_row(report, row), Tone::strong) + "\n"
           + entries_text(entries, 2, terminal);
}

Record widths_record(const std::map<int, int>& widths) {
    Record out;
    for (const auto& [bytes, instructions] : widths)
        out.emplace_back(fmt::format("of_{}_bytes", bytes), std::int64_t{instructions});
    return out;
}

Record code_record(const SourceReport& report, std::size_t row) {
    const CodeFacts& code = report.codes[row];
    return {{"file", row == 0 ? Value(report.file) : Value()},
            {"entry", code.entry},
            {"launch", code.launch.empty() ? Value() : Value(code.launch)},
            {"spill_store_bytes", std::int64_t{code.spill_store_bytes}},
            {"spill_load_bytes", std::int64_t{code.spill_load_bytes}},
            {"stack_bytes", std::int64_t{code.stack_bytes}},
            {"shared_bytes", code.shared_bytes},
            {"elements_per_thread", Value(code.elements_per_thread)},
            {"accesses_of", code.from_sass ? "sass" : "ptx"},
            {"global_loads", widths_record(code.accesses.loads)},
            {"global_stores", widths_record(code.accesses.stores)}};
}

}  // namespace

std::string source_text(const DocumentContext& context, const SourceReport& report,
                        const Terminal& terminal) {
    const Plan& first = report.rows.front().plan;
    std::string out = first.operation->heading(
        first.problem, context.machine_id, context.gpu ? context.gpu->gpu : context.machine_name, terminal);
    out +=
        fmt::format("  {}, {} samples\n\n", name_of(report.rows.front().mode), report.rows.front().samples);
    out += KernelTable(report, terminal).text();
    if (report.rows.size() > 1 && is_valid(report.rows[1]) && report.rows[1].rank1_ratio)
        out += fmt::format("  {} takes {} times as long as the derived kernel, in the same rounds\n",
                           report.codes.front().entry, number_text(*report.rows[1].rank1_ratio));
    for (std::size_t i = 0; i < report.rows.size(); ++i) {
        const Measurement& m = report.rows[i];
        out += code_text(report, i, terminal);
        out += "\n" + verification_text(m, terminal);
        const std::string invalid = why_no_result(m);
        if (!invalid.empty() && !m.verified.wrong())  // else its failure says it
            out += "  no result  " + wrapped(displayable(invalid, terminal.utf8), terminal.prose() - 13, 13)
                   + "\n";
        if (m.counters) out += "\n" + counters_text(*m.counters, {}, terminal);
    }
    return out;
}

Json source_document(const DocumentContext& context, const SourceReport& report,
                     const std::vector<Timing>& timings) {
    std::vector<Measurement> rows = report.rows;
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].more.emplace_back("source", code_record(report, i));
    return measurement_document(context, rows, timings, report.notes);
}

}  // namespace rooftile
