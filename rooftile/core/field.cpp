#include "rooftile/core/field.hpp"

#include <algorithm>

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

std::string Given::text() const {
    std::string out;
    for (const auto& [key, texts] : texts_)
        for (const std::string& text : texts) out += key + "=" + text + "\n";
    return out;
}

}  // namespace rooftile
