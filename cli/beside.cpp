// `plan beside`: two independent plans at the same time, or one after the other.
#include <fmt/core.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "cli/target.hpp"
#include "cli/verb.hpp"
#include "rooftile/error.hpp"
#include "rooftile/physics/beside.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile::cli {
namespace {

/// Words of a quoted request; double quotes hold one together.
std::vector<std::string> words_of(std::string_view line) {
    std::vector<std::string> words;
    bool quoted = false, open = false;
    for (const char c : line) {
        if (c == '"') quoted = !quoted;
        if (c == '"' || (c == ' ' && !quoted)) {
            if (c == ' ') open = false;
            continue;
        }
        if (!open) words.emplace_back();
        open = true;
        words.back() += c;
    }
    if (quoted) throw RequestError("a double quote is opened and not closed");
    return words;
}

/// A request as `plan` takes it, without its verb.
struct Asked {
    const Operation* operation;
    Given given{};
};

/// Which of the two requests, as messages name it.
std::string named(std::size_t i, std::string_view line) { return fmt::format("the {} request, '{}'", i == 0 ? "first" : "second", line); }

/// What `make` gives; what it finds wrong is told of that request.
template <class Make>
auto of_request(std::size_t i, std::string_view line, Make make) {
    try {
        return make();
    } catch (const RequestError& error) {
        throw RequestError(named(i, line) + ": " + error.what());
    }
}

Asked asked_of(const std::string& line) {
    const std::vector<std::string> words = words_of(line);
    const Operation* operation = words.empty() ? nullptr : find_operation(words.front());
    if (!operation) {
        std::string names;
        for (const Operation* one : operations()) names += (names.empty() ? "" : ", ") + std::string(one->name());
        throw RequestError("it begins with one of " + names);
    }
    Asked asked{operation};
    for (std::size_t i = 1; i < words.size(); ++i) {
        const Field* found = nullptr;
        for (const Field& field : operation->fields())
            if (words[i].starts_with("--") ? flag_of(field.key) == words[i] : field.kind == FieldKind::positional) found = &field;
        if (!found) throw RequestError(fmt::format("{} takes no {}", operation->name(), words[i]));
        if (found->kind == FieldKind::on) asked.given.add(found->key, "");
        else if (found->kind == FieldKind::positional) asked.given.add(found->key, words[i]);
        else if (i + 1 == words.size()) throw RequestError(fmt::format("{} has no value", words[i]));
        else asked.given.add(found->key, words[++i]);
    }
    return asked;
}

Json part_of(const Plan& plan, const UnitShares& s, int sms) {
    const auto us = [](double seconds) { return seconds * 1e6; };
    return {{"op", plan.operation->name()}, {"problem", plan.operation->short_name(plan.problem)}, {"plan", plan.operation->label(plan)}, {"buildable", plan.buildable},
            {"time_us", us(s.seconds)},     {"sms", sms},          {"sm_us", us(s.of_sms)},
            {"l2_us", us(s.of_l2)},         {"dram_us", us(s.of_dram)}};
}

std::string text_of(const SideBySide& s, const Plan& first, const Plan& second, const Terminal& terminal) {
    Table table({{"", Table::Align::left}, {"plan", Table::Align::left}, {"alone"}, {"SM units"}, {"L2"}, {"DRAM"}, {"SMs"}});
    const Plan* plans[] = {&first, &second};
    for (std::size_t i = 0; i < 2; ++i) {
        const UnitShares& u = s.parts[i];
        table.row({{std::string(plans[i]->operation->name()) + " " + plans[i]->operation->short_name(plans[i]->problem)},
                   {plans[i]->operation->label(*plans[i]) + (plans[i]->buildable ? "" : " (not buildable)")},
                   {time_text(u.seconds * 1e6)},
                   {time_text(u.of_sms * 1e6)},
                   {time_text(u.of_l2 * 1e6)},
                   {time_text(u.of_dram * 1e6)},
                   {std::to_string(s.sms[i])}});
    }
    std::string out = table.text(terminal) + "\n";
    out += entry("in turn", time_text(s.in_turn * 1e6), terminal);
    out += entry("side by side", fmt::format("{}, bound by {}: {} times as fast; no split gains more than {} [M38]", time_text(s.together * 1e6), s.bound,
                                              number_text(s.gain(), 3), number_text(s.ceiling, 3)),
                 terminal);
    return out + entry("so", s.pays() ? "side by side, each on its own SMs" : "one after the other: " + s.against, terminal);
}

/// The document of two requests of which no plan side by side comes: what it has otherwise is null.
Json refusal_of(const Target& target, const DocumentContext& context, const std::string& why) {
    Json out = {{"schema", "rooftile/beside/1"}, {"context", context_json(context)}, {"machine", {{"id", target.machine->id}, {"name", target.machine->name}}}};
    for (const char* key : {"first", "second", "in_turn_us", "side_by_side_us", "clock_mhz", "bound", "gain", "ceiling", "against"}) out[key] = nullptr;
    out["advised"] = false;
    out["refusal"] = why;
    return out;
}

int beside(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    const Format format = checked_format(output);
    for (const char* which : {"first", "second"})
        if (!given.has(which)) throw RequestError(fmt::format("the {} request is missing: rooftile plan beside \"OP ...\" \"OP ...\"", which));
    const std::string lines[] = {given.text("first"), given.text("second")};
    struct Problems {
        Problem problem;
        Own request;
    };
    std::vector<Problems> asked;
    for (std::size_t i = 0; i < 2; ++i)
        asked.push_back(of_request(i, lines[i], [&] {
            const Asked one = asked_of(lines[i]);
            return Problems{problem_with_work(*one.operation, one.given), one.operation->request(one.given, {})};
        }));
    const Target target = target_of(given);
    const DocumentContext context = context_of(*target.machine, invocation.command);
    const auto refuse = [&](const std::string& why) {
        if (format != Format::text) write_result(document_text(refusal_of(target, context, why), format), output);
        say(why);
        return int(ExitCode::no_plan);
    };
    std::vector<Plan> plans;
    for (std::size_t i = 0; i < 2; ++i) {
        PlanSet set = of_request(i, lines[i], [&] { return derive_for(target, asked[i].problem, asked[i].request); });
        if (set.refusal) return refuse(named(i, lines[i]) + ": " + set.refusal->message);
        // The first that can be built; where none can, the first, and the text and the document say so.
        const auto built = std::find_if(set.plans.begin(), set.plans.end(), [](const Plan& plan) { return plan.buildable; });
        plans.push_back(built == set.plans.end() ? set.plans.front() : *built);
    }
    std::string why;
    const auto found = side_by_side(*target.machine, plans[0], plans[1], why);
    if (!found) return refuse(why);
    if (format == Format::text) {
        write_result(text_of(*found, plans[0], plans[1], terminal_for(output)), output);
        return int(ExitCode::done);
    }
    const Json document = {{"schema", "rooftile/beside/1"},
                           {"context", context_json(context)},
                           {"machine", {{"id", target.machine->id}, {"name", target.machine->name}}},
                           {"first", part_of(plans[0], found->parts[0], found->sms[0])},
                           {"second", part_of(plans[1], found->parts[1], found->sms[1])},
                           {"in_turn_us", found->in_turn * 1e6},
                           {"side_by_side_us", found->together * 1e6},
                           {"clock_mhz", found->clock_hz / 1e6},
                           {"bound", found->bound},
                           {"gain", found->gain()},
                           {"ceiling", found->ceiling},
                           {"advised", found->pays()},
                           {"against", found->pays() ? Json() : Json(found->against)},
                           {"refusal", nullptr}};
    write_result(document_text(document, format), output);
    return int(ExitCode::done);
}

}  // namespace

void add_beside(std::vector<Verb>& verbs) {
    Verb verb;
    verb.path = "plan beside";
    verb.meaning = "Two independent plans at the same time, each on some of the SMs, or one after the other";
    const Field own[] = {{"first", "REQUEST", "A quoted plan request: \"OP --flag value ...\"", "Plans", FieldKind::positional},
                         {"second", "REQUEST", "The other one", "Plans", FieldKind::positional}};
    verb.fields = joined_fields({own, target_fields()});
    verb.documents = Documents::json_only;
    verb.synopsis = "\"OP ...\" \"OP ...\"";
    const Operation &first = *operations().front(), &second = *operations().back();
    verb.examples = fmt::format("Examples:\n  rooftile plan beside \"{} {}\" \"{} {}\" --machine h200-sxm\n", first.name(), first.example(),
                                second.name(), second.example());
    verb.run = beside;
    verbs.push_back(std::move(verb));
}

}  // namespace rooftile::cli
