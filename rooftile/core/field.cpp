#include "rooftile/core/field.hpp"

#include <algorithm>
#include <filesystem>

#include "rooftile/machine/file_text.hpp"

namespace rooftile {

std::string flag_of(std::string_view key) {
    std::string flag = "--" + std::string(key);
    std::replace(flag.begin(), flag.end(), '_', '-');
    return flag;
}

const std::string& Given::text(std::string_view key) const {
    static const std::string none;
    const auto found = texts_.find(key);
    return found == texts_.end() ? none : found->second.front();
}

const std::vector<std::string>& Given::list(std::string_view key) const {
    static const std::vector<std::string> none;
    const auto found = texts_.find(key);
    return found == texts_.end() ? none : found->second;
}

std::string Given::name(std::string_view key) const {
    return named_ == Named::by_flag ? flag_of(key) : std::string(key);
}

std::optional<std::string> Given::named_file(std::string_view key) const {
    std::error_code unknown;  // a name that is too long is none of a file either
    if (named_ != Named::by_flag || !std::filesystem::exists(text(key), unknown)) return std::nullopt;
    std::string content = read_small_file(text(key), suite_limits);
    std::replace_if(content.begin(), content.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
    return content;
}

std::string Given::text() const {
    std::string out;
    for (const auto& [key, texts] : texts_)
        for (const std::string& text : texts) out += key + "=" + text + "\n";
    return out;
}

}  // namespace rooftile
