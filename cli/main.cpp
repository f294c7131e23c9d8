// The command line: parse, run one verb, turn every outcome into an exit code.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/values.hpp"
#include "cli/verbs.hpp"
#include "rooftile/error.hpp"
#include "rooftile/report/context.hpp"

namespace rooftile::cli {
namespace {

std::vector<std::string> names_of(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
        names.push_back(verb->get_name());
    return names;
}

std::vector<std::string> flags_of(const CLI::App& app) {
    std::vector<std::string> flags;
    for (const CLI::Option* option : app.get_options())
        for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    return flags;
}

/// "plan gemm": the verb as one types it.
std::string path_of(const CLI::App& app) {
    if (!app.get_parent()) return "rooftile";
    const CLI::App& parent = *app.get_parent();
    return parent.get_parent() ? path_of(parent) + " " + app.get_name() : app.get_name();
}

std::string help_of(const CLI::App& app) {
    return app.get_parent() ? "rooftile " + path_of(app) + " -h" : "rooftile -h";
}

/// Throws RequestError on the first argument that `app` or the verb chosen below it did not take. A verb
/// that is not available takes everything: that it is not available is the answer.
void refuse_leftovers(const CLI::App& app) {
    const auto chosen = app.get_subcommands();
    const auto left = app.remaining();
    if (!left.empty() && !app.get_prefix_command()) {
        const std::string& word = left.front();
        const auto verbs = names_of(app);
        if (word.size() > 1 && word.front() == '-') {
            const std::string flag = word.substr(0, word.find('='));
            throw RequestError(fmt::format("{} has no flag {}{}; {} lists them", path_of(app), flag,
                                           suggestion(flag, flags_of(app)), help_of(app)));
        }
        if (!verbs.empty() && chosen.empty())
            throw RequestError(fmt::format("{} has no verb {}{}; there are {}", path_of(app), word,
                                           suggestion(word, verbs), joined(verbs)));
        throw RequestError(fmt::format("{}: unexpected argument {}", path_of(app), word));
    }
    for (const CLI::App* verb : chosen) refuse_leftovers(*verb);
}

/// Leftovers are collected everywhere, so that each can be answered with what is near it.
void collect_leftovers(CLI::App& app) {
    if (!app.get_prefix_command()) app.allow_extras();
    for (CLI::App* verb : app.get_subcommands([](CLI::App*) { return true; })) collect_leftovers(*verb);
}

std::string one_line(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
}

/// CLI11's message in one line, and in our words where a flag got too many values or none.
std::string message_of(const CLI::ParseError& error) {
    const std::string text = one_line(error.what());
    const std::string flag = text.substr(0, text.find(':'));
    if (text.find("At Most 1 required but received") != std::string::npos)
        return flag + " is given more than once; give it once";
    if (text.find("required") != std::string::npos && text.find("missing") != std::string::npos)
        return flag + " needs a value after it";
    return text;
}

void describe(CLI::App& app) {
    app.require_subcommand(0, 1);
    app.set_version_flag("--version", "rooftile " + std::string(version()));
    app.get_formatter()->column_width(34);
    app.footer(
        "Examples:\n"
        "  rooftile plan gemm --m 4096 --n 14336 --k 4096 --explain\n"
        "  rooftile machine show h100-sxm\n"
        "  rooftile measure gemm --m 8192 --n 8192 --k 8192\n"
        "  rooftile doctor\n");
}

int run(int argc, char** argv) {
    CLI::App app("rooftile: GPU kernel parameters derived from the hardware's numbers, with reasons",
                 "rooftile");
    Invocation invocation;
    invocation.start = std::chrono::steady_clock::now();
    for (int i = 0; i < argc; ++i) invocation.command += i == 0 ? "rooftile" : " " + shell_quoted(argv[i]);
    describe(app);
    add_machine(app, invocation);
    add_plan(app, invocation);
    add_simulate(app, invocation);
    add_build(app, invocation);
    add_measure(app, invocation);
    add_report(app, invocation);
    add_doctor(app, invocation);
    add_later(app, invocation);
    collect_leftovers(app);
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp& help) {
        write_result(app.help(), {});
        return int(ExitCode::done);
    } catch (const CLI::CallForVersion& version_line) {
        write_result(one_line(version_line.what()) + "\n", {});
        return int(ExitCode::done);
    } catch (const CLI::ParseError& error) { throw RequestError(message_of(error)); }
    refuse_leftovers(app);
    if (!invocation.run) throw RequestError("no verb given; rooftile -h explains: " + joined(names_of(app)));
    return invocation.run();
}

int guarded(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const Error& error) {
        say(error.what());
        if (error.code() != ExitCode::bad_request && !error.detail().empty())
            fmt::print(stderr, "{}\n", error.detail());
        return int(error.code());
    } catch (const std::bad_alloc&) {
        say("internal error: out of memory");
    } catch (const std::exception& error) {
        say(fmt::format("internal error: {}; please report it with the command line", error.what()));
    }
    return int(ExitCode::internal);
}

}  // namespace
}  // namespace rooftile::cli

int main(int argc, char** argv) {
    rooftile::cli::handle_signals();
    return rooftile::cli::guarded(argc, argv);
}
