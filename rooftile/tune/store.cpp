#include "rooftile/tune/store.hpp"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "rooftile/core/operation.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/embedded.hpp"
#include "rooftile/measure/nvml.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/suite_rows.hpp"
#include "rooftile/runtime/driver.hpp"
#include "rooftile/runtime/trusted_file.hpp"
#include "rooftile/tune/tuned_document.hpp"

namespace rooftile {

TunePlace tune_place(int device) {
    const DeviceInfo info = Driver::instance().device(device);
    TunePlace place{.gpu = info.name, .power_limit_w = {}, .driver = {}, .program = std::string(program_hash())};
    if (const auto nvml = Nvml::open(info.pci_bus_id)) place.driver = nvml->driver_version(), place.power_limit_w = nvml->power_limit_w();
    if (place.driver.empty()) place.driver = std::to_string(Driver::instance().version());
    return place;
}

std::string config_text(const Plan& plan) { return to_json(plan.operation->config_record(plan)).dump(); }

std::string first_config(const PlanSet& plans) {
    const auto first = std::ranges::find_if(plans.plans, &Plan::buildable);
    return first == plans.plans.end() ? std::string() : config_text(*first);
}

std::optional<std::size_t> place_of(const TunedChoice& choice, const PlanSet& plans) {
    if (first_config(plans) != choice.first) return std::nullopt;
    for (std::size_t i = 0; i < plans.plans.size(); ++i)
        if (plans.plans[i].buildable && config_text(plans.plans[i]) == choice.config) return i;
    return std::nullopt;
}

std::string line_of(const TunedChoice& choice) {
    std::string line = json_text(choice_json(choice), -1);
    line.pop_back();  // its end
    return line;
}

std::optional<TunedChoice> choice_of_line(std::string_view line) {
    try {
        const Json row = parsed_line(line);
        TunedChoice choice;
        choice.place = {row.at("gpu"), number_at(row, "power_limit_w"), row.at("driver"), row.at("program")};
        choice.date = row.at("date"), choice.name = row.at("name"), choice.label = row.at("label");
        choice.problem = row.at("problem").dump(), choice.first = row.at("first_config").dump(), choice.config = row.at("config").dump();
        choice.rank = row.at("rank"), choice.time_us = row.at("time_us"), choice.first_us = number_at(row, "first_us");
        if (const Json& ratio = row.at("ratio"); !ratio.is_null())
            choice.ratio = MedianInterval{ratio.at("median"), ratio.at("low"), ratio.at("high"), ratio.at("coverage"), ratio.at("samples")};
        for (const Json& timed : row.at("candidates"))
            choice.candidates.push_back({timed.at("rank"), timed.at("label"), timed.at("time_us")});
        return choice;
    } catch (const nlohmann::json::exception&) {
        return std::nullopt;  // cut off, or another program's
    } catch (const RequestError&) {
        return std::nullopt;
    }
}

std::vector<TunedChoice> TuneStore::read(std::string& why_not) const {
    why_not.clear();
    std::vector<TunedChoice> choices;
    if (cache_.settings().mode == CacheMode::off) return choices;
    std::string text;
    if (why_not = cache_.obstacle(false); why_not.empty())
        if (auto trusted = read_trusted(path(), why_not)) text = *std::move(trusted);
    if (why_not == no_entry) why_not.clear();
    if (!why_not.empty()) why_not = fmt::format("{} cannot be read: {}; mend that, or remove it", path(), why_not);
    for (const std::string_view line : split(text, '\n'))
        if (auto choice = choice_of_line(line)) choices.push_back(std::move(*choice));
    return choices;
}

std::string TuneStore::write(const std::vector<TunedChoice>& choices) const {
    std::string text;
    for (const TunedChoice& choice : choices) text += line_of(choice) + "\n";
    return publish(cache_.settings().folder, path(), text);
}

std::vector<TunedChoice> TuneStore::all(std::string_view program) const {
    std::string why_not;
    std::vector<TunedChoice> choices = read(why_not);
    if (!why_not.empty()) throw RequestError(why_not);
    std::erase_if(choices, [&](const TunedChoice& choice) { return choice.place.program != program; });
    return choices;
}

std::optional<TunedChoice> TuneStore::find(const TunePlace& place, const PlanSet& plans) const {
    const std::string problem = problem_key(plans.problem);
    std::string unread;  // a choice is never needed
    for (TunedChoice& choice : read(unread))
        if (choice.place == place && choice.problem == problem && place_of(choice, plans)) return std::move(choice);
    return std::nullopt;
}

std::string TuneStore::obstacle() const {
    const CacheSettings& settings = cache_.settings();
    if (settings.mode == CacheMode::off) return settings.note.empty() ? "ROOFTILE_CACHE is off; set it to rw" : settings.note;
    if (settings.mode == CacheMode::read_only) return "ROOFTILE_CACHE is ro; set it to rw";
    return cache_.obstacle(true);
}

std::string TuneStore::keep(const TunedChoice& choice) const {
    if (std::string why = obstacle(); !why.empty()) return why;
    const FileLock lock(path() + ".lock");
    std::string why_not;
    std::vector<TunedChoice> choices = read(why_not);
    if (!why_not.empty()) return why_not;  // what is there is not written over
    std::erase_if(choices, [&](const TunedChoice& old) {
        return old.place.program != choice.place.program || (old.place == choice.place && old.problem == choice.problem && old.first == choice.first);
    });
    choices.push_back(choice);
    return write(choices);
}

std::size_t TuneStore::drop() const {
    if (const std::string why = obstacle(); !why.empty()) throw RequestError("no choice is dropped: " + why);
    const FileLock lock(path() + ".lock");
    std::string why_not;
    const std::size_t count = read(why_not).size();
    if (!why_not.empty()) throw RequestError("no choice is dropped: " + why_not);
    if (const std::string why = write({}); !why.empty()) throw Error(ExitCode::internal, why);
    return count;
}

}  // namespace rooftile
