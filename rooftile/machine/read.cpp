#include "rooftile/machine/read.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/machine/keys.hpp"
#include "rooftile/machine/numbers.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/units_text.hpp"

namespace rooftile {
namespace {

constexpr std::string_view machine_schema = "rooftile/machine/1", arch_schema = "rooftile/arch/1",
                           calibration_schema = "rooftile/calibration/1";

// What a number's table holds in a machine file, and in a calibration.
constexpr std::string_view number_parts[] = {"value", "unit", "source", "calibration"},
                           calibrated_parts[] = {"value", "unit", "data", "command", "error", "fit"},
                           fit_parts[] = {"data", "command", "error"};

std::string value_text(const toml::node& node) {
    if (const auto* text = node.as_string()) return '"' + printable(text->get(), 60) + '"';
    if (const auto* number = node.as_integer()) return std::to_string(number->get());
    if (const auto* number = node.as_floating_point()) return shortest_text(number->get());
    if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
    if (node.is_table()) return "{...}";
    if (node.is_array()) return "[...]";
    return "a date or time";
}

bool is_plain(std::string_view text, std::string_view also) {
    for (char c : text) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && also.find(c) == also.npos) return false;
    }
    return !text.empty();
}

// Reads one parsed file into a machine. Every refusal names file, line, key, value and what is accepted.
class Reader {
  public:
    Reader(std::string_view file, Machine& machine) : file_(file), machine_(machine) {}

    void read_machine_table(const toml::table& root) {
        check_schema(root, machine_schema);
        machine_.id = text_of(root, "id", "-._");
        machine_.name = text_of(root, "name");
        if (root.contains("calibration"))
            refuse(*root.get("calibration"), "calibration", "is allowed in architecture files only");
        if (root.contains("arch")) read_arch(root);
        else machine_.facts = inherited_machine("", machine_.id).facts;
        if (root.contains("device_names")) read_device_names(root);
        read_table(root, {});
    }

    /// Returns the machine whose calibration stands in for a missing one; empty where there is none.
    std::string read_arch_table(const toml::table& root) {
        check_schema(root, arch_schema);
        machine_.arch = text_of(root, "id", "_");
        text_of(root, "name");
        for (const char* key : {"arch", "device_names"})
            if (root.contains(key)) refuse(*root.get(key), key, "is allowed in machine files only");
        read_table(root, {});
        return root.contains("calibration") ? text_of(root, "calibration", "-._") : std::string();
    }

    /// Takes what belongs to kernels on every architecture; where the calibration is of the machine's architecture, what
    /// holds for all its GPUs; and with `own` what holds for the machine alone.
    void read_calibration_table(const toml::table& root, bool own) {
        check_schema(root, calibration_schema);
        const std::string arch = text_of(root, "arch", "_");
        calibration_ = text_of(root, "id", "-._");
        const bool related = arch == machine_.arch;
        if (!related) elsewhere_ = fmt::format("{}'s, not measured here: ", arch);
        if (const toml::node* fits = root.get("fits")) read_fits(*fits);
        for (const auto& [key, node] : root) {
            const bool part = key == "kernels" || key == "architecture" || key == "machine";
            if (!part && key != "schema" && key != "id" && key != "arch" && key != "fits")
                refuse(node, key.str(),
                       "unknown key; accepted: schema, id, arch, fits, kernels, architecture, machine");
            const bool taken = key == "kernels" || (related && (key == "architecture" || own));
            if (!part || !taken) continue;
            if (!node.is_table()) refuse(node, key.str(), "accepted: a table of numbers");
            read_table(*node.as_table(), {});
        }
    }

  private:
    [[noreturn]] void refuse(const toml::node& node, std::string_view key, std::string_view problem) const {
        throw RequestError(fmt::format("{}:{}: {} = {}: {}", printable(file_, 200), node.source().begin.line,
                                       printable(key), value_text(node), problem));
    }

    void check_schema(const toml::table& root, std::string_view expected) const {
        const toml::node* node = root.get("schema");
        if (!node)
            throw RequestError(fmt::format("{}: no schema; a machine file begins with schema = \"{}\"",
                                           printable(file_, 200), expected));
        const auto* text = node->as_string();
        if (!text || text->get() != expected)
            refuse(*node, "schema", fmt::format("accepted: \"{}\"", expected));
    }

    // A required text; `also` are the characters accepted beside letters and digits, all where it is empty.
    std::string text_of(const toml::table& root, std::string_view key, std::string_view also = {}) const {
        const toml::node* node = root.get(key);
        if (!node)
            throw RequestError(
                fmt::format("{}: no {}; accepted: {} = \"...\"", printable(file_, 200), key, key));
        const auto* text = node->as_string();
        if (!text || text->get().empty() || printable(text->get(), 100) != text->get())
            refuse(*node, key, "accepted: a text of 1 to 100 bytes without control characters");
        if (!also.empty() && !is_plain(text->get(), also))
            refuse(*node, key, fmt::format("accepted: letters, digits and {}", also));
        return text->get();
    }

    void read_arch(const toml::table& root) {
        const std::string arch = text_of(root, "arch", "_");
        const std::string_view text = arch_text(arch);
        if (text.empty()) {
            std::string list;
            for (const auto& id : arch_ids()) list += (list.empty() ? "" : " ") + id;
            refuse(*root.get("arch"), "arch", "accepted: " + list);
        }
        const Machine inherited = inherited_machine(arch, machine_.id);
        machine_.arch = inherited.arch;
        machine_.facts = inherited.facts;
        machine_.features = inherited.features;
    }

    void read_device_names(const toml::table& root) {
        const toml::node& node = *root.get("device_names");
        const auto* names = node.as_array();
        if (!names || names->size() > 32)
            refuse(node, "device_names", "accepted: an array of up to 32 texts");
        for (const auto& element : *names) {
            const auto* name = element.as_string();
            if (!name || name->get().empty() || printable(name->get(), 100) != name->get())
                refuse(element, "device_names", "accepted: texts of 1 to 100 bytes");
            machine_.device_names.push_back(name->get());
        }
    }

    void read_table(const toml::table& table, const std::string& prefix) {
        for (const auto& [toml_key, node] : table) {
            const std::string_view part = toml_key.str();
            const std::string path = prefix.empty() ? std::string(part) : prefix + '.' + std::string(part);
            if (!is_plain(part, "-_")) refuse(node, path, "unknown key; keys are letters, digits, - and _");
            if (prefix.empty() && calibration_.empty() && is_heading(part)) continue;
            if (prefix.empty() && calibration_.empty() && part == "features") {
                read_features(node);
                continue;
            }
            const KeyMatch match = match_key(path);
            if (match.key) read_fact(node, path, *match.key);
            else if (!match.group) refuse_unknown(node, path);
            else if (const auto* group = node.as_table()) read_table(*group, path);
            else refuse(node, path, "this is the beginning of keys; accepted: a table");
        }
    }

    // Names the whole key where its first parts are already unknown: "l3.size", not "l3".
    [[noreturn]] void refuse_unknown(const toml::node& node, std::string path) const {
        const toml::node* last = &node;
        for (auto* table = node.as_table(); table && !table->empty() && !table->contains("value");
             table = last->as_table()) {
            path.append(".").append(table->begin()->first.str());
            last = &table->begin()->second;
        }
        refuse(*last, path, match_key(path).problem);
    }

    static bool is_heading(std::string_view key) {
        return key == "schema" || key == "id" || key == "name" || key == "arch" || key == "device_names"
               || key == "calibration";
    }

    void read_features(const toml::node& node) {
        const auto* table = node.as_table();
        if (!table) refuse(node, "features", "accepted: a table of true and false");
        for (const auto& [name, value] : *table) {
            const std::string path = "features." + std::string(name.str());
            if (!find_feature(name.str())) refuse(value, path, unknown_feature(name.str()));
            const auto* text = value.as_string();
            if (text && text->get() == "unknown") machine_.features.erase(std::string(name.str()));
            else if (const auto* truth = value.as_boolean())
                machine_.features[std::string(name.str())] = truth->get();
            else refuse(value, path, "accepted: true, false or \"unknown\"");
        }
    }

    static std::string unknown_feature(std::string_view name) {
        std::vector<std::string> names;
        for (const auto& feature : machine_features()) names.emplace_back(feature.name);
        const std::string nearest = nearest_name(name, names);
        std::string problem = "unknown feature";
        if (!nearest.empty()) problem += fmt::format("; did you mean \"{}\"?", nearest);
        return problem;
    }

    void read_fact(const toml::node& node, const std::string& path, const Key& key) {
        std::string source(file_), calibration = calibration_;
        std::string text;
        if (const auto* table = node.as_table())
            text = read_value_table(*table, path, key, source, calibration);
        else if (!calibration_.empty())
            refuse(node, path, fmt::format("accepted: {{{}}}", fmt::join(calibrated_parts, ", ")));
        else text = number_text(node, path, key, true);
        if (text == "unknown") {
            machine_.facts.erase(path);
            return;
        }
        const auto number = parse_number(text);
        if (auto* problem = std::get_if<TextProblem>(&number)) refuse_number(node, path, text, *problem, key);
        auto fact = make_fact(key, std::get<NumberText>(number), source);
        if (auto* problem = std::get_if<TextProblem>(&fact))
            throw RequestError(
                fmt::format("{} = \"{}\": {}", place(node, path), printable(text), problem->message));
        std::get<Fact>(fact).calibration = std::move(calibration);
        machine_.facts.insert_or_assign(path, std::move(std::get<Fact>(fact)));
    }

    std::string place(const toml::node& node, std::string_view path) const {
        return fmt::format("{}:{}: {}", printable(file_, 200), node.source().begin.line, printable(path));
    }

    [[noreturn]] void refuse_number(const toml::node& node, std::string_view path, std::string_view text,
                                    const TextProblem& problem, const Key& key) const {
        throw RequestError(fmt::format("{} = \"{}\": {}; accepted: {}", place(node, path), printable(text),
                                       problem.message, accepted(key)));
    }

    // The number of a node as text. A bare integer is accepted for counts; `make_fact` refuses it elsewhere.
    std::string number_text(const toml::node& node, std::string_view path, const Key& key, bool bare) const {
        if (const auto* text = node.as_string()) return text->get();
        if (const auto* integer = node.as_integer()) {
            if (integer->flags() != toml::value_flags::none) refuse(node, path, "accepted: a decimal number");
            return std::to_string(integer->get());
        }
        if (const auto* real = node.as_floating_point(); real && !bare) return shortest_text(real->get());
        refuse(node, path,
               "wrong type; accepted: " + accepted(key) + ", as \"NUMBER UNIT\" or {value, unit, source}");
    }

    std::string read_value_table(const toml::table& table, const std::string& path, const Key& key,
                                 std::string& source, std::string& calibration) const {
        const std::span<const std::string_view> parts =
            calibration_.empty() ? std::span<const std::string_view>(number_parts) : calibrated_parts;
        for (const auto& [name, node] : table)
            if (std::find(parts.begin(), parts.end(), name.str()) == parts.end())
                refuse(node, path + '.' + std::string(name.str()),
                       fmt::format("unknown key; accepted: {}", fmt::join(parts, ", ")));
        const toml::node* value = table.get("value");
        if (!value) refuse(table, path, fmt::format("no value; accepted: {{{}}}", fmt::join(parts, ", ")));
        std::string text = number_text(*value, path + ".value", key, false);
        if (calibration_.empty()) {
            source = note_of(table, path, "source", source);
            calibration = note_of(table, path, "calibration", "");
        } else {
            // A fitted number is worth what it was fitted to: nothing of this may be left out.
            const toml::table* fit = fit_of(table, path);
            for (std::string_view part : fit_parts)
                if (!table.contains(part) && !(fit && fit->contains(part)))
                    refuse(table, path, fmt::format("no {}", part));
            source = elsewhere_ + note_of(table.contains("data") ? table : *fit, path, "data", "");
            note_of(table, path, "command", "");
            note_of(table, path, "error", "");
        }
        if (const toml::node* node = table.get("unit")) {
            const auto* unit = node->as_string();
            if (!unit) refuse(*node, path + ".unit", "accepted: " + accepted(key));
            if (value->is_string())
                refuse(*node, path + ".unit", "the value is a text and holds its own unit");
            if (!unit->get().empty()) text += ' ' + unit->get();
        }
        return text;
    }

    // What numbers say together that were fitted together.
    void read_fits(const toml::node& node) {
        fits_ = node.as_table();
        if (!fits_) refuse(node, "fits", "accepted: a table of tables");
        for (const auto& [name, fit] : *fits_) {
            const std::string path = "fits." + std::string(name.str());
            const auto* table = fit.as_table();
            if (!table) refuse(fit, path, fmt::format("accepted: {{{}}}", fmt::join(fit_parts, ", ")));
            for (const auto& [part, text] : *table)
                if (std::find(std::begin(fit_parts), std::end(fit_parts), part.str()) == std::end(fit_parts))
                    refuse(text, path, fmt::format("unknown key; accepted: {}", fmt::join(fit_parts, ", ")));
            for (std::string_view part : fit_parts) note_of(*table, path, part, "");
        }
    }

    // The fit that a number names; null where it names none.
    const toml::table* fit_of(const toml::table& number, const std::string& path) const {
        const toml::node* named = number.get("fit");
        if (!named) return nullptr;
        const auto* name = named->as_string();
        const toml::node* fit = name && fits_ ? fits_->get(name->get()) : nullptr;
        if (!fit) refuse(*named, path + ".fit", "accepted: one of this file's [fits]");
        return fit->as_table();
    }

    // The text of `part` of a number's table; `otherwise` where it has none.
    std::string note_of(const toml::table& table, const std::string& path, std::string_view part,
                        std::string otherwise) const {
        const toml::node* node = table.get(part);
        if (!node) return otherwise;
        const auto* given = node->as_string();
        if (!given || given->get().empty() || given->get().size() > max_source_bytes)
            refuse(*node, fmt::format("{}.{}", path, part),
                   fmt::format("accepted: a text of 1 to {} bytes", max_source_bytes));
        return printable(given->get(), max_source_bytes);
    }

    std::string_view file_;
    Machine& machine_;
    std::string
        calibration_;        // the machine whose calibration this file is; empty: it is another kind of file
    std::string elsewhere_;  // begins its sources where it is of another architecture
    const toml::table* fits_ = nullptr;
};

void read_calibration(std::string_view id, bool own, Machine& machine) {
    const std::string_view text = calibration_text(id);
    if (text.empty()) return;
    const std::string name = fmt::format("machines/calibration/{}.toml", id);
    Reader(name, machine).read_calibration_table(toml::parse(text, name), own);
}

}  // namespace

Machine read_machine(const std::filesystem::path& path) {
    return parse_machine(read_small_file(path), path.string());
}

Machine inherited_machine(std::string_view arch, std::string_view id) {
    Machine machine;
    const std::string_view text = arch_text(arch);
    if (text.empty()) return machine;
    const bool any = arch.empty();
    const std::string name = any ? "machines/common/nvidia.toml" : fmt::format("machines/arch/{}.toml", arch);
    const std::string nearest = Reader(name, machine).read_arch_table(toml::parse(text, name));
    if (any) machine.arch.clear();
    if (nearest != id) read_calibration(nearest, false, machine);
    if (!any) read_calibration(id, true, machine);
    return machine;
}

Machine parse_machine(std::string_view text, std::string_view file_name) {
    check_text(text, file_name);
    Machine machine;
    try {
        Reader(file_name, machine).read_machine_table(toml::parse(text, file_name));
    } catch (const toml::parse_error& error) {
        const auto at = error.source().begin;
        throw RequestError(fmt::format("{}:{}:{}: not valid TOML: {}", printable(file_name, 200), at.line,
                                       at.column, printable(error.description(), 200)));
    }
    take_what_follows(machine);
    return machine;
}

}  // namespace rooftile
