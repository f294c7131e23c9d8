#include "rooftile/report/suite_rows.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <nlohmann/json.hpp>

#include "rooftile/error.hpp"
#include "rooftile/measure/measurement.hpp"
#include "rooftile/machine/units_text.hpp"
#include "rooftile/report/json.hpp"

namespace rooftile {
namespace {

int count_at(const Json& object, const char* key) {
    const Json& value = object.at(key);
    if (value.is_null()) return 0;
    constexpr double most = 1e6;
    const double count = value.get<double>();
    if (!(count >= 0 && count <= most && count == std::floor(count)))
        throw RequestError(fmt::format("{} is {:g}; it must be a whole number from 0 on", key, count));
    return static_cast<int>(count);
}

SuiteRow row_of(const Json& line) {
    SuiteRow row;
    row.line = line.dump();
    row.problem = line.at("problem").dump();
    row.op = line.at("problem").at("op").get<std::string>();
    for (const Json& l : line.at("layers")) row.layers.push_back({l.at("model"), l.at("layer")});
    row.rank = count_at(line, "rank"), row.plans = count_at(line, "plans");
    row.mode = line.at("mode").get<std::string>();
    row.time_us = positive_at(line, "time_us");
    row.predicted_us = positive_at(line, "predicted_time_us");
    row.rank1_ratio = positive_at(line, "rank1_ratio");
    if (const auto confirmation = line.find("confirmation");
        confirmation != line.end() && confirmation->is_object())
        row.confirmation = row.rank1_ratio.has_value();
    row.sm_clock_mhz = positive_at(line, "sm_clock_mhz");
    if (const auto variants = line.find("variants"); variants != line.end() && variants->is_object())
        for (const auto& [key, v] : variants->items())
            row.variants.push_back({key, text_at(v, "name"), positive_at(v, "time_us"), positive_at(v, "predicted_time_us"),
                                    positive_at(v, "ratio")});
    row.invalid = text_at(line, "invalid");
    std::string failure;
    bool any_true = false, any_false = false;
    if (const auto verified = line.find("verified"); verified != line.end() && verified->is_object()) {
        failure = text_at(*verified, "failure");
        for (const char* which : {"exact", "random", "shifted", "special", "timed", "guards"}) {
            any_true |= verified->contains(which) && verified->at(which) == true;
            any_false |= verified->contains(which) && verified->at(which) == false;
        }
    }
    row.unbuilt = row.plans > 0 && failure == never_built;
    // What was not compared is no pass; where nothing ran there is nothing to compare.
    row.wrong = !row.unbuilt && (any_false || (!any_true && !failure.empty()));
    if (row.time_us && (row.wrong || !any_true))
        throw RequestError("it has a time, and no result that was found right (`verified`)");
    const bool sampled = number_at(line, "samples").value_or(0) > 0;  // and above a roof
    row.ran = row.invalid.empty() || row.invalid == not_timed || sampled || row.wrong || row.unbuilt || row.plans == 0;
    return row;
}

void read_context(const Json& line, SuiteRecord& record) {
    if (text_at(line, "schema") != "rooftile/measurement/1")
        throw RequestError("accepted: the context line of rooftile/measurement/1");
    const Json& c = line.at("context");
    record.suite = text_at(line, "suite"), record.law = text_at(line, "law");
    record.version = text_at(c, "version");
    record.program_hash = text_at(c, "program_hash");
    record.machine_hash = text_at(c, "machine_hash");
    record.gpu = text_at(c, "gpu"), record.driver = text_at(c, "driver"), record.date = text_at(c, "date");
    record.command = text_at(c, "command");
    if (c.contains("seed")) record.seed = c.at("seed").get<std::uint64_t>();
    record.machine_id = text_at(line.at("machine"), "id");
    record.machine_name = text_at(line.at("machine"), "name");
}

}  // namespace

std::size_t SuiteShape::wanted() const {
    return rows.empty() ? 1 : static_cast<std::size_t>(std::max(1, rows.front().plans));
}

bool SuiteShape::complete() const {
    return rows.size() == wanted();
}

const SuiteRow* SuiteShape::rank1() const {
    for (const SuiteRow& row : rows) {
        if (row.rank <= 1) return &row;
    }
    return nullptr;
}

const SuiteRow* SuiteShape::confirmation() const {
    const auto found =
        std::find_if(rows.begin(), rows.end(), [](const SuiteRow& row) { return row.confirmation; });
    return found == rows.end() ? nullptr : &*found;
}

bool SuiteShape::by_medians() const {
    return !confirmation() && std::any_of(rows.begin(), rows.end(), [](const SuiteRow& row) {
        return row.rank > 1 && row.time_us && !row.rank1_ratio;
    });
}

double SuiteShape::best_of_own() const {
    if (const SuiteRow* fastest = confirmation()) return std::max(1.0, *fastest->rank1_ratio);
    double best = 1;
    for (const SuiteRow& row : rows) {
        if (row.rank <= 1 || !row.time_us) continue;
        best = std::max(best, row.rank1_ratio.value_or(*rank1()->time_us / *row.time_us));
    }
    return best;
}

std::vector<SuiteShape> SuiteRecord::take_shapes() {
    lines.clear();
    return std::exchange(shapes, {});
}

std::string problem_key(const Problem& problem) { return problem_json(problem).dump(); }

std::vector<std::string> not_measured(const Suite& suite, const std::vector<SuiteShape>& shapes) {
    std::set<std::string> present;
    for (const SuiteShape& shape : shapes) present.insert(shape.first().problem);
    std::vector<std::string> out;
    for (const SuiteProblem& p : suite.problems)
        if (present.count(problem_key(p.problem)) == 0) out.push_back(name_of({p.problem, {p.layers.front()}, 0}));
    return out;
}

SuiteRecord read_suite_record(std::string_view text, std::string_view file_name) {
    SuiteRecord record;
    std::map<std::string, std::size_t> places;  // of a problem in shapes and lines_of
    std::vector<std::string> lines_of;
    int number = 1;
    for (std::size_t begin = 0; begin < text.size(); ++number) {
        const std::size_t end = text.find('\n', begin);
        if (end == text.npos) break;  // the run was killed while writing it
        const std::string_view line = text.substr(begin, end + 1 - begin);
        begin = end + 1;
        try {
            const Json json = parsed_line(line);
            if (number == 1) {
                read_context(json, record);
                record.lines.emplace_back(line);
                continue;
            }
            SuiteRow row = row_of(json);
            const auto [place, is_new] = places.try_emplace(row.problem, record.shapes.size());
            if (is_new) record.shapes.emplace_back(), lines_of.emplace_back();
            lines_of[place->second] += line;
            SuiteShape& shape = record.shapes[place->second];
            shape.rows.push_back(std::move(row));
            if (shape.rows.size() > shape.wanted())
                throw RequestError(fmt::format("{} rows of one problem, which has {}", shape.rows.size(), shape.wanted()));
        } catch (const std::exception& error) {
            throw RequestError(fmt::format("{}:{}: no line of a suite's run: {}", printable(file_name, 200),
                                           number, printable(error.what(), 200)));
        }
    }
    if (record.lines.empty())
        throw RequestError(
            fmt::format("{}: no context line: nothing of a suite's run", printable(file_name, 200)));
    std::vector<SuiteShape> complete;
    for (std::size_t i = 0; i < record.shapes.size(); ++i) {
        if (!record.shapes[i].complete()) continue;
        record.lines.push_back(lines_of[i]);
        complete.push_back(std::move(record.shapes[i]));
    }
    record.shapes = std::move(complete);
    return record;
}

}  // namespace rooftile
