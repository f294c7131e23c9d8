#include "rooftile/core/suite_reader.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "rooftile/core/operation.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/machine/units_text.hpp"

namespace rooftile {
namespace {

constexpr std::string_view suite_schema = "rooftile/suite/1";
constexpr std::int64_t largest_extent = 2147483647;
constexpr std::size_t max_text = 1000;  // the longest law, with both limits, has some 300 B
constexpr std::string_view text_wanted = "a text of 1 to 1000 bytes without control characters";
constexpr std::size_t max_problems = 10'000;

}  // namespace

toml::table parsed_toml(std::string_view text, std::string_view file_name) {
    check_text(text, file_name, suite_limits);
    try {
        return toml::parse(text, file_name);
    } catch (const toml::parse_error& error) {
        const auto at = error.source().begin;
        throw RequestError(fmt::format("{}:{}:{}: not valid TOML: {}", printable(file_name, 200), at.line,
                                       at.column, printable(error.description(), 200)));
    }
}

std::string number_text(const toml::node& node) {
    if (const auto* whole = node.as_integer()) return std::to_string(whole->get());
    const auto* real = node.as_floating_point();
    return real && std::isfinite(real->get()) ? fmt::format("{}", real->get()) : std::string();
}

void SuiteReader::refuse(const toml::node& node, std::string_view key, std::string_view problem) const {
    throw RequestError(fmt::format("{}:{}: {}: {}", printable(file_, 200), node.source().begin.line,
                                   printable(key), problem));
}

void SuiteReader::check_keys(const toml::table& table, std::string_view prefix,
                             std::span<const std::string_view> known) const {
    for (const auto& [key, node] : table) {
        if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
        std::string list;
        for (const std::string_view name : known) list += (list.empty() ? "" : ", ") + std::string(name);
        refuse(node, fmt::format("{}{}", prefix, key.str()), "unknown key; accepted: " + list);
    }
}

namespace {

/// "\"first\" (default), \"second\"".
std::string accepted_operations() {
    std::string out;
    for (const Operation* operation : operations())
        out += fmt::format("{}\"{}\"{}", out.empty() ? "" : ", ", operation->name(), out.empty() ? " (default)" : "");
    return out;
}

/// The fields of an operation that make a problem.
std::vector<const Field*> problem_fields(const Operation& operation) {
    std::vector<const Field*> out;
    for (const Field& field : operation.fields())
        if (field.group.starts_with("Problem")) out.push_back(&field);
    return out;
}

}  // namespace

std::string SuiteReader::read_head(const toml::table& root) const {
    if (text_of(root, "schema") != suite_schema)
        refuse(*root.get("schema"), "schema", fmt::format("accepted: \"{}\"", suite_schema));
    const std::string own = root.contains("op") ? text_of(root, "op") : std::string(operations().front()->name());
    if (own != operation_.name())
        refuse(root.contains("op") ? *root.get("op") : root, "op",
               find_operation(own) ? fmt::format("a suite of {0}: `measure {0} --suite` reads it", own)
                                   : "accepted: " + accepted_operations());
    return text_of(root, "name");
}

Suite SuiteReader::read(std::string_view text) {
    const toml::table root = parsed_toml(text, file_);
    suite_.operation = &operation_;
    suite_.name = read_head(root);
    if (root.contains("law")) suite_.law = text_of(root, "law");
    std::vector<std::string_view> known = {"schema", "name", "op", "law", "problem"};
    for (const std::string_view key : own_keys()) known.push_back(key);
    check_keys(root, "", known);
    read_own(root);
    std::size_t number = 0;
    if (root.contains("problem") || suite_.problems.empty())
        for_each_table(root, own_tables().empty() || root.contains("problem") ? "problem" : own_tables(),
                       [&](const toml::table& table) { read_problem(table, ++number); });
    return std::move(suite_);
}

/// The value of one field as a request gives it: a list's one by one, a switch where it is on.
void SuiteReader::give(Given& given, const Field& field, const toml::node& node) const {
    const std::string key = "problem." + field.key;
    const auto give_one = [&](const toml::node& value) {
        if (std::string number = number_text(value); !number.empty()) return given.add(field.key, std::move(number));
        const auto* text = value.as_string();
        if (!text || text->get().empty() || printable(text->get(), text->get().size()) != text->get())
            refuse(value, key, "accepted: a number, or a text without control characters");
        given.add(field.key, text->get());
    };
    if (field.kind == FieldKind::on) {
        const auto* flag = node.as_boolean();
        if (!flag) refuse(node, key, "accepted: true or false");
        if (flag->get()) given.add(field.key, "");
    } else if (const auto* list = node.as_array(); list && field.kind == FieldKind::list) {
        for (const toml::node& value : *list) give_one(value);
    } else {
        give_one(node);
    }
}

/// Its keys are the operation's fields, and `name` for a reader.
void SuiteReader::read_problem(const toml::table& table, std::size_t number) {
    const std::vector<const Field*> fields = problem_fields(operation_);
    std::vector<std::string_view> known = {"name"};
    for (const Field* field : fields) known.push_back(field->key);
    check_keys(table, "problem.", known);
    Given given(Given::Named::by_key);
    for (const Field* field : fields)
        if (const toml::node* node = table.get(field->key)) give(given, *field, *node);
    const std::string name = table.contains("name") ? text_of(table, "name") : std::to_string(number);
    add(table, "problem", {suite_.name, name}, 0, [&] { return problem_with_work(operation_, given); });
}

void SuiteReader::add(const toml::node& node, std::string_view key, SuiteLayer layer, int rounds,
                      const std::function<Problem()>& make) {
    Problem problem;
    try {
        problem = make();
    } catch (const RequestError& error) { refuse(node, key, error.what()); }
    const auto [place, is_new] = places_.try_emplace(operation_.given(problem).text(), suite_.problems.size());
    if (!is_new) {
        SuiteProblem& known = suite_.problems[place->second];
        known.rounds = std::max(known.rounds, rounds);
        if (std::find(known.layers.begin(), known.layers.end(), layer) == known.layers.end())
            known.layers.push_back(std::move(layer));
        return;
    }
    if (suite_.problems.size() == max_problems) refuse(node, key, fmt::format("more than {} problems", max_problems));
    suite_.problems.push_back({std::move(problem), {std::move(layer)}, rounds});
}

bool SuiteReader::has_layer(const SuiteLayer& layer) const {
    return std::any_of(suite_.problems.begin(), suite_.problems.end(), [&](const SuiteProblem& p) {
        return std::find(p.layers.begin(), p.layers.end(), layer) != p.layers.end();
    });
}

void SuiteReader::for_each_table(const toml::table& root, std::string_view key,
                                 const std::function<void(const toml::table&)>& read) const {
    const toml::node* tables = root.get(key);
    const auto* list = tables ? tables->as_array() : nullptr;
    if (!list || list->empty()) refuse(root, key, fmt::format("accepted: at least one [[{}]] table", key));
    for (const toml::node& node : *list) {
        const auto* table = node.as_table();
        if (!table) refuse(node, key, fmt::format("accepted: [[{}]] tables", key));
        read(*table);
    }
}

void SuiteReader::check_text(const toml::node& node, std::string_view key, std::string_view accepted) const {
    const auto* text = node.as_string();
    if (!text || text->get().empty() || printable(text->get(), max_text) != text->get())
        refuse(node, key, fmt::format("accepted: {}", accepted));
}

std::string SuiteReader::text_of(const toml::table& table, std::string_view key) const {
    const toml::node* node = table.get(key);
    if (!node) refuse(table, key, fmt::format("missing; accepted: {} = \"...\"", key));
    check_text(*node, key, text_wanted);
    return node->as_string()->get();
}

std::vector<std::string> SuiteReader::texts_of(const toml::table& table, std::string_view key) const {
    const toml::node* node = table.get(key);
    const auto* list = node ? node->as_array() : nullptr;
    if (!list || list->empty()) refuse(node ? *node : table, key, "accepted: an array of texts");
    std::vector<std::string> texts;
    for (const toml::node& one : *list) {
        check_text(one, key, text_wanted);
        texts.push_back(one.as_string()->get());
    }
    return texts;
}

std::int64_t SuiteReader::size_of(const toml::node& node, std::string_view key) const {
    const auto* number = node.as_integer();
    if (!number || number->get() < 1 || number->get() > largest_extent)
        refuse(node, key, fmt::format("accepted: whole numbers of 1 .. {}", largest_extent));
    return number->get();
}

std::vector<std::int64_t> SuiteReader::sizes_of(const toml::node& node, std::string_view key) const {
    const auto* list = node.as_array();
    if (!list || list->empty()) refuse(node, key, "accepted: an array of whole numbers");
    std::vector<std::int64_t> sizes;
    for (const toml::node& one : *list) sizes.push_back(size_of(one, key));
    return sizes;
}

}  // namespace rooftile
