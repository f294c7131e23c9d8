#include "rooftile/report/context.hpp"

#include <ctime>

#include "rooftile/machine/machine.hpp"

#ifndef ROOFTILE_VERSION
#error "the build defines ROOFTILE_VERSION"
#endif

namespace rooftile {

std::string_view version() { return ROOFTILE_VERSION; }

DocumentContext context_of(const std::string& command) {
    DocumentContext context;
    context.version = version();
    context.command = command;
    return context;
}

DocumentContext context_of(const Machine& machine, const std::string& command) {
    DocumentContext context = context_of(command);
    context.machine_id = machine.id;
    context.machine_name = machine.name;
    context.machine_hash = machine.hash();
    return context;
}

std::string shell_quoted(std::string_view word) {
    constexpr std::string_view safe =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    if (!word.empty() && word.find_first_not_of(safe) == std::string_view::npos) return std::string(word);
    std::string out = "'";
    for (char c : word) {
        if (c == '\'') out += "'\\''";
        else out += c;
    }
    return out + "'";
}

std::string utc_now() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

}  // namespace rooftile
