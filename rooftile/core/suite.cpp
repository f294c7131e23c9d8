#include "rooftile/core/suite.hpp"

#include <algorithm>

#include "rooftile/core/operation.hpp"
#include "rooftile/core/suite_reader.hpp"
#include "rooftile/machine/file_text.hpp"

namespace rooftile {

Suite Operation::suite(std::string_view text, std::string_view file_name) const {
    return SuiteReader(*this, file_name).read(text);
}

std::string name_of(const SuiteProblem& problem) {
    std::string name;
    for (const SuiteLayer& layer : problem.layers) name += (name.empty() ? "" : ", ") + layer.model + " " + layer.layer;
    return name + " " + problem.problem.operation->short_name(problem.problem);
}

Suite read_suite(const Operation& operation, const std::filesystem::path& path) {
    return operation.suite(read_small_file(path, suite_limits), path.string());
}

namespace {

std::string toml_text(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out + "\"";
}

std::string toml_value(const std::string& text) {
    const bool number = !text.empty() && text.size() < 16 && text.find_first_not_of("0123456789") == text.npos
                        && (text == "0" || text.front() != '0');
    return number ? text : toml_text(text);
}

}  // namespace

std::string suite_toml(const Suite& suite) {
    std::string out = "schema = \"rooftile/suite/1\"\nname = " + toml_text(suite.name)
                      + "\nop = " + toml_text(suite.operation->name()) + "\n";
    if (!suite.law.empty()) out += "law = " + toml_text(suite.law) + "\n";
    for (const SuiteProblem& p : suite.problems) {
        const Given given = suite.operation->given(p.problem);
        out += "\n[[problem]]\n";
        for (const Field& field : suite.operation->fields()) {
            if (!given.has(field.key)) continue;
            std::string value = field.kind == FieldKind::on ? "true" : "";
            for (const std::string& text : given.list(field.key))
                if (field.kind != FieldKind::on) value += (value.empty() ? "" : ", ") + toml_value(text);
            out += field.key + " = " + (field.kind == FieldKind::list ? "[" + value + "]" : value) + "\n";
        }
    }
    return out;
}

Suite filtered(Suite suite, std::string_view text) {
    std::erase_if(suite.problems, [&](const SuiteProblem& p) {
        return std::none_of(p.layers.begin(), p.layers.end(), [&](const SuiteLayer& layer) {
            return name_of(SuiteProblem{p.problem, {layer}, 0}).find(text) != std::string::npos;
        });
    });
    return suite;
}

}  // namespace rooftile
