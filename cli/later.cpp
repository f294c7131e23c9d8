#include <CLI/CLI.hpp>

#include "cli/verbs.hpp"
#include "rooftile/error.hpp"

namespace rooftile::cli {

void not_available(const std::string& what) {
    throw RequestError(what + " is not available in this version");
}

void add_later(CLI::App& app, Invocation& invocation) {
    struct Later {
        const char* verb;
        const char* meaning;
    };
    static constexpr Later verbs[] = {
        {"sweep", "Plan or measure over ranges of a problem"},
        {"validate", "Compare predictions with measurements"},
    };
    for (const Later& later : verbs) {
        CLI::App* verb = app.add_subcommand(later.verb, std::string(later.meaning) + " (not available yet)");
        verb->prefix_command();  // whatever follows belongs to it
        verb->callback([&invocation, name = std::string(later.verb)] {
            invocation.run = [name]() -> int { not_available("rooftile " + name); };
        });
    }
}

}  // namespace rooftile::cli
