#include "rooftile/report/ledger.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "rooftile/error.hpp"
#include "rooftile/machine/units_text.hpp"

namespace rooftile {
namespace {

constexpr std::string_view schema = "rooftile/ledger/1";

/// Times to a thousandth: no clock of a GPU has more.
Json rounded(std::optional<double> us) {
    if (!us) return nullptr;
    return json_number(std::round(*us * 1000) / 1000);
}

Json again_json(const LedgerAgain& again) {
    return Json::array({again.member, rounded(again.us), rounded(again.settled_us)});
}

std::optional<double> number_or_none(const Json& value) {
    return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

LedgerAgain again_of(const Json& json, std::size_t members) {
    LedgerAgain again{json.at(0).get<std::size_t>(), json.at(1).get<double>(), number_or_none(json.at(2))};
    if (again.member >= members) throw RequestError("a member that is not there");
    return again;
}

class Reader {
  public:
    explicit Reader(Ledger& ledger) : ledger_(ledger) {}

    void head(const Json& line) {
        if (text_at(line, "schema") != schema)
            throw RequestError(fmt::format("accepted: the context line of {}", schema));
        const Json& context = line.at("context");
        ledger_.version = text_at(context, "version"), ledger_.command = text_at(context, "command");
        ledger_.machine_hash = text_at(context, "machine_hash"),
        ledger_.program_hash = text_at(context, "program_hash");
        ledger_.gpu = text_at(context, "gpu"), ledger_.driver = text_at(context, "driver");
        ledger_.date = text_at(context, "date");
        ledger_.seed = context.at("seed").get<std::uint64_t>();
        ledger_.machine_id = text_at(line.at("machine"), "id"),
        ledger_.machine_name = text_at(line.at("machine"), "name");
        ledger_.law = text_at(line, "law");
        const std::string operation = text_at(line, "operation");
        ledger_.operation = find_operation(operation);
        if (!ledger_.operation)
            throw RequestError(fmt::format("this program has no operation {}", printable(operation)));
        keys_ = line.at("keys").get<std::vector<std::string>>();
    }

    void entry(const Json& line) {
        for (const Json& values : line.at("configurations")) {
            Json object = Json::object();
            for (std::size_t k = 0; k < keys_.size(); ++k) object[keys_[k]] = values.at(k);
            configs_.push_back(record_of(object));
        }
        LedgerEntry entry;
        const Operation& operation = *ledger_.operation;
        entry.problem = operation.problem(operation.given_of_record(record_of(line.at("problem"))));
        const Json &first = line.at("first_us"), &predicted = line.at("predicted_us");
        std::size_t number = 0;
        for (const Json& place : line.at("members")) {
            LedgerMember& member = entry.members.emplace_back();
            member.config = configs_.at(place.get<std::size_t>());
            member.first_us = number_or_none(first.at(number));
            member.predicted_us = number_or_none(predicted.at(number));
            if (member.first_us) member.right = true;
            ++number;
        }
        const std::size_t members = entry.members.size();
        entry.kept = std::min(line.at("kept").get<std::size_t>(), members);
        for (const auto& [name, member] : line.at("picks").items())
            entry.picks.push_back({name, member.get<std::size_t>()});
        for (const Json& failed : line.at("failed")) entry.members.at(failed.at(0)).failed = failed.at(1);
        for (const Json& wrong : line.at("wrong")) {
            entry.members.at(wrong.at(0)).failed = wrong.at(1);
            entry.members.at(wrong.at(0)).right = false;
        }
        for (const Json& i : line.at("not_compared")) entry.members.at(i.get<std::size_t>()).right.reset();
        for (const Json& again : line.at("again")) entry.again.push_back(again_of(again, members));
        if (const Json& duplicate = line.at("duplicate"); !duplicate.is_null())
            entry.duplicate = again_of(duplicate, members);
        entry.duplicate_first_us = number_or_none(line.at("duplicate_first_us"));
        entry.notes = line.at("notes").get<std::vector<std::string>>();
        entry.seconds = line.at("seconds").get<double>();
        for (const LedgerPick& pick : entry.picks)
            if (pick.member >= members) throw RequestError("a pick that is no member");
        ledger_.entries.push_back(std::move(entry));
    }

  private:
    Ledger& ledger_;
    std::vector<std::string> keys_;
    std::vector<Record> configs_;
};

}  // namespace

Ledger read_ledger(std::string_view text, std::string_view file_name) {
    Ledger ledger;
    ledger.file = file_name;
    Reader reader(ledger);
    int number = 1;
    std::size_t begin = 0;
    for (; begin < text.size(); ++number) {
        const std::size_t end = text.find('\n', begin);
        if (end == text.npos) break;
        try {
            const Json line = Json::parse(text.substr(begin, end - begin));
            if (number == 1) reader.head(line);
            else reader.entry(line);
        } catch (const std::exception& error) {
            throw RequestError(fmt::format("{}:{}: no line of a ledger: {}", printable(file_name, 200),
                                           number, printable(error.what(), 200)));
        }
        begin = end + 1;
    }
    if (number == 1)
        throw RequestError(fmt::format("{}: no line of a ledger in it", printable(file_name, 200)));
    ledger.text = text.substr(0, begin);
    return ledger;
}

LedgerLines::LedgerLines(const Ledger& ledger) : operation_(*ledger.operation) {
    for (const LedgerEntry& entry : ledger.entries) {
        Json added = Json::array();
        for (const LedgerMember& member : entry.members) place_of(member.config, added);
    }
}

Json LedgerLines::head(const DocumentContext& context, std::string_view program_hash, std::string_view law,
                       const Record& configuration) const {
    Json line = {{"schema", schema}, {"context", context_json(context)}, {"machine", machine_json(context)}};
    line["context"]["program_hash"] = program_hash;
    line["operation"] = operation_.name();
    line["law"] = text_or_null(law);
    line["space"] = operation_.space_rule();
    line["keys"] = Json::array();
    for (const auto& [key, value] : configuration) line["keys"].push_back(key);
    return line;
}

std::size_t LedgerLines::place_of(const Record& config, Json& added) {
    Json values = Json::array();
    for (const auto& [key, value] : config) values.push_back(to_json(value));
    std::string text = json_text(values, -1);
    const auto found = places_.find(text);
    if (found != places_.end()) return found->second;
    added.push_back(std::move(values));
    return places_.emplace(std::move(text), places_.size()).first->second;
}

Json LedgerLines::line(const LedgerEntry& entry) {
    Json line;
    line["problem"] = problem_json(entry.problem);
    line["configurations"] = Json::array();
    for (const char* key : {"members", "first_us", "predicted_us"}) line[key] = Json::array();
    line["kept"] = entry.kept;
    line["picks"] = Json::object();
    for (const char* key : {"failed", "wrong", "not_compared", "again"}) line[key] = Json::array();
    for (std::size_t i = 0; i < entry.members.size(); ++i) {
        const LedgerMember& member = entry.members[i];
        line["members"].push_back(place_of(member.config, line["configurations"]));
        line["first_us"].push_back(rounded(member.first_us));
        line["predicted_us"].push_back(rounded(member.predicted_us));
        if (member.right == false) line["wrong"].push_back({i, member.failed});
        else if (!member.failed.empty()) line["failed"].push_back({i, member.failed});
        else if (!member.right) line["not_compared"].push_back(i);
    }
    for (const LedgerPick& pick : entry.picks) line["picks"][pick.name] = pick.member;
    for (const LedgerAgain& again : entry.again) line["again"].push_back(again_json(again));
    line["duplicate"] = entry.duplicate ? again_json(*entry.duplicate) : Json();
    line["duplicate_first_us"] = rounded(entry.duplicate_first_us);
    line["notes"] = entry.notes;
    line["seconds"] = json_number(std::round(entry.seconds * 1000) / 1000);
    return line;
}

}  // namespace rooftile
