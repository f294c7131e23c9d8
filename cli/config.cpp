#include "cli/config.hpp"

#include <cstdlib>
#include <filesystem>

#include <fmt/core.h>
#include <toml++/toml.h>

#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"

namespace rooftile::cli {
namespace {

std::string variable(const char* name) {
    const char* text = std::getenv(name);
    return text ? text : "";
}

}  // namespace

std::string config_path() {
    if (const char* named = std::getenv("ROOFTILE_CONFIG")) return named;
    const std::string settings = variable("XDG_CONFIG_HOME"), home = variable("HOME");
    if (settings.starts_with('/')) return settings + "/rooftile/rooftile.toml";  // a relative one is to be ignored
    return home.empty() ? std::string() : home + "/.config/rooftile/rooftile.toml";
}

std::map<std::string, std::string> configured() {
    const std::string path = config_path();
    std::error_code error;
    if (path.empty() || (!std::getenv("ROOFTILE_CONFIG") && !std::filesystem::exists(path, error))) return {};
    std::map<std::string, std::string> texts;
    try {
        const toml::table table = toml::parse(read_whole_file(path), path);
        for (const auto& [key, node] : table) {
            std::string name(key.str());
            for (char& c : name)
                if (c == '-') c = '_';
            if (const auto text = node.value_exact<std::string>()) texts[name] = *text;
            else if (const auto number = node.value_exact<std::int64_t>()) texts[name] = std::to_string(*number);
            else if (node.value_exact<bool>() == true) texts[name] = "";
            else throw RequestError(fmt::format("{}: {} is no text, no whole number and not true", path, name));
        }
    } catch (const toml::parse_error& bad) {
        throw RequestError(fmt::format("{}:{}: {}", path, bad.source().begin.line, bad.description()));
    }
    return texts;
}

}  // namespace rooftile::cli
