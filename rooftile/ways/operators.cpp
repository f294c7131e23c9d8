#include "rooftile/ways/operators.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "rooftile/core/suite_reader.hpp"
#include "rooftile/embedded.hpp"
#include "rooftile/error.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {
namespace {

std::string text_of(const toml::node& node) {
    if (const auto text = node.value<std::string>()) return *text;
    return number_text(node);
}

WayOperator operator_of(const EmbeddedFile& file) {
    const toml::table table = parsed_toml(file.text, file.path);
    WayOperator out;
    out.name = table["name"].value_or(std::string());
    out.meaning = table["meaning"].value_or(std::string());
    out.shape = table["shape"].value_or(std::string());
    out.order = table["order"].value_or(0);
    out.folder = file.path.substr(0, file.path.rfind('/') + 1);
    if (const toml::array* sizes = table["sizes"].as_array())
        for (const toml::node& size : *sizes)
            if (const toml::array* pair = size.as_array())
                out.sizes.emplace_back(text_of(*pair->get(0)), pair->get(1)->value_or(std::int64_t{0}));
    if (const toml::array* parts = table["parts"].as_array())
        for (const toml::node& node : *parts) {
            WayPart part;
            for (const auto& [key, value] : *node.as_table()) {
                const std::string name(key.str());
                if (name == "operation") part.operation = text_of(value);
                else if (const toml::array* list = value.as_array())
                    for (const toml::node& each : *list) part.request.emplace_back(name, text_of(each));
                else part.request.emplace_back(name, text_of(value));
            }
            out.parts.push_back(std::move(part));
        }
    return out;
}

std::vector<WayOperator> read_all() {
    std::vector<WayOperator> out;
    for (const EmbeddedFile& file : embedded_exports())
        if (file.path.find("/ways/") != file.path.npos && file.path.ends_with(".toml")) out.push_back(operator_of(file));
    std::ranges::sort(out, {}, &WayOperator::order);
    return out;
}

}  // namespace

const std::vector<WayOperator>& way_operators() {
    static const std::vector<WayOperator> all = read_all();
    return all;
}

const WayOperator& way_operator(const std::string& name) {
    std::vector<std::string> names;
    for (const WayOperator& each : way_operators()) {
        if (each.name == name) return each;
        names.push_back(each.name);
    }
    throw RequestError(fmt::format("there is no operator {} to measure in several ways; there are {}", name, joined(names)));
}

std::string with_sizes(const std::string& text, const WaySizes& sizes, const std::string& type) {
    std::string out = text;
    const auto replace = [&](const std::string& name, const std::string& value) {
        const std::string sign = "{" + name + "}";
        for (std::size_t at = out.find(sign); at != out.npos; at = out.find(sign, at + value.size())) out.replace(at, sign.size(), value);
    };
    for (const auto& [name, value] : sizes) replace(name, std::to_string(value));
    replace("type", type);
    return out;
}

}  // namespace rooftile
