#include "rooftile/c/request.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "rooftile/error.hpp"
#include "rooftile/machine/keys.hpp"
#include "rooftile/machine/units_text.hpp"
#include "rooftile/measure/plan_range.hpp"
#include "rooftile/report/json.hpp"

namespace rooftile::c {
namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 20;  // of a request
constexpr int shown = 60;                                 // characters of a wrong value

Json parsed(std::string_view text) {
    if (text.size() > most_bytes)
        throw RequestError(
            fmt::format("the request is {} B long; up to {} are accepted", text.size(), most_bytes));
    try {
        Json request = parsed_line(text);
        if (!request.is_object()) throw RequestError("the request is no JSON object");
        return request;
    } catch (const Json::exception&) {
        throw RequestError(fmt::format("the request is no JSON: {}", printable(text, shown)));
    }
}

std::vector<std::string> operation_names() {
    std::vector<std::string> names;
    for (const Operation* operation : operations()) names.emplace_back(operation->name());
    return names;
}

const Operation& operation_of(const Json& request) {
    const std::string name = text_at(request, "op");
    if (const Operation* operation = find_operation(name)) return *operation;
    const std::string accepted = fmt::format("{}", fmt::join(operation_names(), ", "));
    if (name.empty()) throw RequestError("op names the operation, as text; there are " + accepted);
    throw RequestError(
        fmt::format("there is no operation {}; there are {}", printable(name, shown), accepted));
}

/// The field of that key, or of a list that is called by its plural; null: there is none.
const Field* find_field(std::span<const Field> fields, std::string_view key) {
    for (const Field& field : fields)
        if (field.key == key || (field.kind == FieldKind::list && field.key + "s" == key)) return &field;
    return nullptr;
}

[[noreturn]] void refuse(const std::string& key, const Field& field, const Json& value) {
    const std::string accepted = field.kind == FieldKind::on ? "true or false"
                                 : field.kind == FieldKind::list
                                     ? fmt::format("a list of texts {}", field.form)
                                     : field.form;
    throw RequestError(
        fmt::format("{} is {}; accepted is {}", key, printable(value.dump(), shown), accepted));
}

/// One value as it would be typed.
std::string text_of_value(const std::string& key, const Field& field, const Json& value) {
    if (value.is_string()) {
        const auto text = value.get<std::string>();
        if (text.empty()) throw RequestError(key + " is empty; leave it out, or give " + field.form);
        return text;
    }
    if (value.is_boolean() && field.form == "on|off") return value.get<bool>() ? "on" : "off";
    // JSON's reader makes a whole number beyond 64 bits a floating one; its digits say that it is too large, not that it is none.
    constexpr double beyond_integers = 9.2e18;
    if (value.is_number_float() && std::abs(value.get<double>()) >= beyond_integers)
        return fmt::format("{:.0f}", value.get<double>());
    if (value.is_number()) return value.dump();
    refuse(key, field, value);
}

void add(Given& given, const std::string& key, const Field& field, const Json& value) {
    if (value.is_null()) return;
    if (field.kind == FieldKind::on) {
        if (!value.is_boolean()) refuse(key, field, value);
        if (value.get<bool>()) given.add(field.key, "");
    } else if (field.kind == FieldKind::list) {
        if (!value.is_array()) given.add(field.key, text_of_value(key, field, value));
        else
            for (const Json& element : value) given.add(field.key, text_of_value(key, field, element));
    } else if (value.is_array() && field.form.find_first_of("x,") != std::string::npos) {  // "MxNxK", "A,B,D"
        std::vector<std::string> parts;
        for (const Json& element : value) parts.push_back(text_of_value(key, field, element));
        const bool sizes = field.form.find('x') != std::string::npos && field.form.find('|') == std::string::npos;  // no "LIST|Bx[LO..HI]"
        given.add(field.key, fmt::format("{}", fmt::join(parts, sizes ? "x" : ",")));
    } else {
        given.add(field.key, text_of_value(key, field, value));
    }
}

}  // namespace

std::span<const Field> planning_fields() {
    static const Field fields[] = {
        {"machine", "ID|FILE", "A machine's id, or a machine file; default: the GPU here, else h100-sxm",
         "Machine"},
        {"numbers", "NAME=VALUE,...", "A machine of a few numbers: smem, regs, bw, peak, latency, and any key of a machine file", "Machine"},
        {"set", "KEY=VALUE", "Replaces one number of the machine, as in \"dram.bandwidth=4 TB/s\"", "Machine",
         FieldKind::list},
        {"buildable_only", "", "Leave out plans that no kernel exists for yet", "Output", FieldKind::on},
        {"seed", "N", "Seed of plans that are drawn; default 1", "Other plans than the best"},
        within_field(),
    };
    return fields;
}

Request read_request(std::string_view json) {
    const Json request = parsed(json);
    const Operation& operation = operation_of(request);
    Request out{.operation = &operation};
    std::vector<std::string> keys;
    for (const auto fields : {operation.fields(), planning_fields()})
        for (const Field& field : fields)
            if (!field.group.empty()) keys.push_back(field.key);
    for (const auto& [key, value] : request.items()) {
        if (key == "op") continue;
        const Field* field = find_field(operation.fields(), key);
        if (!field) field = find_field(planning_fields(), key);
        if (!field) {
            const std::string near = nearest_name(key, keys);
            throw RequestError(near.empty()
                                   ? fmt::format("{} has no field {}; there are {}", operation.name(),
                                                 printable(key, shown), fmt::join(keys, ", "))
                                   : fmt::format("{} has no field {} (did you mean {}?)", operation.name(),
                                                 printable(key, shown), near));
        }
        add(out.given, key, *field, value);
    }
    return out;
}

}  // namespace rooftile::c
