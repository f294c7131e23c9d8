// From verbs as data to CLI11 and back. The only source that includes it.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "cli/config.hpp"
#include "cli/output.hpp"
#include "cli/verb.hpp"
#include "rooftile/core/operation.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/keys.hpp"
#include "rooftile/report/context.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile::cli {
namespace {

/// The words that verbs begin with, where several share one.
struct Word {
    const char *name, *meaning;
};
constexpr Word words[] = {
    {"plan", "Derive a kernel's parameters from the hardware's numbers, and predict its time (no GPU)"},
    {"build", "Compile exactly the planned kernel (no GPU)"},
    {"measure", "Run the planned kernel, verify it, and time it next to the vendor's library"},
    {"tune", "Time a problem's few most unlike plans once, and keep the winner for later runs"},
    {"emit", "Write the planned kernel as one .cu file to take away (no GPU)"},
    {"export", "Write the plan for another library or compiler: Triton, CUTLASS, vLLM (no GPU)"},
    {"sweep", "Plan or measure many problems: drawn by a law, from ranges, or combined from lists"},
    {"simulate", "Simulate a plan's L2 traffic (no GPU)"},
    {"machine", "List, show and measure GPU descriptions"},
    {"report", "Summarise recorded runs"},
    {"cache", "Compiled kernels that are kept: how many, and taking them away"},
    {"ledger", "Time the whole declared space of some problems"},
};

/// Help that keeps to the terminal's width: names on the left, what they mean wrapped on the right.
class Help final : public CLI::Formatter {
  public:
    std::string make_option(const CLI::Option* option, bool positional) const override {
        return row(make_option_name(option, positional) + make_option_opts(option), make_option_desc(option));
    }
    std::string make_subcommand(const CLI::App* verb) const override { return row(verb->get_name(), verb->get_description()); }
    std::string make_footer(const CLI::App* app) const override {
        const std::string footer = app->get_footer();
        return footer.empty() ? "" : "\n" + footer;
    }
    std::string make_description(const CLI::App* app) const override { return wrapped(CLI::Formatter::make_description(app), width(), 0); }
    /// "Usage: rooftile machine show [OPTIONS]"; what is asked for is among the options.
    std::string make_usage(const CLI::App* app, std::string name) const override {
        return wrapped(CLI::Formatter::make_usage(app, std::move(name)), width(), 4);
    }

  private:
    static int width() { return std::max(40, terminal_for({}).prose()); }
    static std::string row(std::string name, const std::string& meaning) {
        constexpr int narrow = 26, wide = 34;
        const int column = width() < 100 ? narrow : wide;
        std::string out = "  " + name;
        if (columns_of(out) + 2 > column) out += "\n" + std::string(std::size_t(column), ' ');
        else out += std::string(std::size_t(column - columns_of(out)), ' ');
        return out + wrapped(meaning, width() - column, column) + "\n";
    }
};

std::string refuse_empty(const std::string& text) { return text.empty() ? "needs a value, not ''" : ""; }

std::string suggestion(std::string_view name, const std::vector<std::string>& names) {
    const std::string near = nearest_name(name, names);
    return near.empty() ? "" : fmt::format(" (did you mean {}?)", near);
}

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

/// "machine show": the verb as one types it.
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

constexpr std::string_view is_on = "true";  ///< what CLI11 writes for a flag that is given without a value

/// What CLI11 writes a field's texts to.
struct Slot {
    Field field;
    std::string text;
    std::vector<std::string> texts;
    bool on = false;
};

void add_field(CLI::App& app, Slot& slot) {
    const Field& f = slot.field;
    const std::string flag = (f.letter ? fmt::format("-{},", f.letter) : "") + flag_of(f.key);
    CLI::Option* option = nullptr;
    switch (f.kind) {
        case FieldKind::on:
            if (f.form.empty()) app.add_flag(flag, slot.on, f.meaning)->group(f.group);
            else option = app.add_flag(flag, slot.text, f.meaning)->group(f.group)->check([form = f.form](const std::string& text) {
                return text == is_on || text == form ? std::string() : fmt::format("{} is neither nothing nor \"{}\"", text, form);
            });
            return;
        case FieldKind::positional:
            if (f.form.ends_with("...")) {  // as many as one likes
                option = app.add_option(f.key, slot.texts, f.meaning)->type_name(f.form);
                break;
            }
            option = app.add_option(f.key, slot.text, f.meaning)->type_name(f.form);
            break;
        case FieldKind::list:
            option = app.add_option(flag, slot.texts, f.meaning)->type_name(f.form)->take_all()->expected(1);
            break;
        case FieldKind::value:
        case FieldKind::text:
            option = app.add_option(f.unnamed ? f.key + "," + flag : flag, slot.text, f.meaning)->type_name(f.form);
            break;
    }
    option->check(refuse_empty)->group(f.group);
}

Given given_of(const std::vector<Slot>& slots) {
    Given given;
    for (const Slot& slot : slots) {
        if (slot.on || !slot.text.empty()) given.add(slot.field.key, slot.field.kind == FieldKind::on && slot.text == is_on ? "" : slot.text);
        for (const std::string& text : slot.texts) given.add(slot.field.key, text);
    }
    return given;
}

/// What the user's file says of this verb's flags and the command line does not. A machine is named once.
void add_configured(const std::map<std::string, std::string>& configured, Given& given, const std::vector<Slot>& slots) {
    for (const auto& [key, text] : configured)
        for (const Slot& slot : slots)
            if (slot.field.key == key && slot.field.kind != FieldKind::positional && !(key == "machine" && given.has("numbers"))) given.add_default(key, text);
}

/// "plan what? rooftile plan OPERATION ARGUMENTS, or ...".
std::string question(const std::string& word, const std::vector<Verb>& verbs) {
    std::string out;
    for (const Verb& verb : verbs)
        if (verb.path.starts_with(word + " "))
            out += fmt::format("{}rooftile {}{}{}", out.empty() ? "" : ", or ", verb.path,
                               verb.synopsis.empty() ? "" : " ", verb.synopsis);
    return fmt::format("{} what? {}", word, out);
}

class Parser {
  public:
    Parser(const std::vector<Verb>& verbs, const Invocation& invocation)
        : app_("rooftile: GPU kernel parameters derived from the hardware's numbers, with reasons", "rooftile"),
          verbs_(verbs),
          invocation_(invocation) {
        app_.require_subcommand(0, 1);
        app_.set_version_flag("-V,--version", "rooftile " + std::string(version()));
        app_.formatter(std::make_shared<Help>());
        std::string examples = "Examples:\n";
        for (const Operation* operation : operations())
            examples += fmt::format("  rooftile plan {} {} --explain\n", operation->name(), operation->example());
        app_.footer(examples + "  rooftile machine show h100-sxm\n  rooftile doctor\n");
        for (const Verb& verb : verbs) add(verb);
        for (const auto& [key, text] : configured_)
            if (!flags_.contains(key))
                throw RequestError(fmt::format("{}: {} is no flag of any verb{}", config_path(), key, suggestion(key, {flags_.begin(), flags_.end()})));
        collect_leftovers(app_);
    }

    int run(int argc, char** argv) {
        try {
            app_.parse(argc, argv);
        } catch (const CLI::CallForHelp& help) {
            write_result(app_.help(), {});
            return int(ExitCode::done);
        } catch (const CLI::CallForVersion& version_line) {
            write_result(one_line(version_line.what()) + "\n", {});
            return int(ExitCode::done);
        } catch (const CLI::ParseError& error) { throw RequestError(message_of(error)); }
        refuse_leftovers(app_);
        if (!run_) {
            write_result(app_.help(), {});
            return int(ExitCode::done);
        }
        return run_();
    }

  private:
    /// The app of the word that `verb` begins with, made where it is new.
    CLI::App& parent_of(const std::string& word) {
        if (const auto known = parents_.find(word); known != parents_.end()) return *known->second;
        const auto found = std::find_if(std::begin(words), std::end(words), [&](const Word& w) { return w.name == word; });
        CLI::App* made = parents_[word] = app_.add_subcommand(word, found == std::end(words) ? "" : found->meaning);
        made->footer("");  // the overview's examples are not its own
        made->callback([this, made, word] {
            if (!made->get_subcommands().empty()) return;
            run_ = [this, word]() -> int { throw RequestError(question(word, verbs_)); };
        });
        return *made;
    }

    void add(const Verb& verb) {
        const std::size_t space = verb.path.find(' ');
        CLI::App& parent = space == verb.path.npos ? app_ : parent_of(verb.path.substr(0, space));
        CLI::App& app = *parent.add_subcommand(verb.path.substr(space == verb.path.npos ? 0 : space + 1), verb.meaning);
        auto slots = std::make_shared<std::vector<Slot>>();
        const std::vector<Field> output = output_fields(verb.documents);
        for (const Field& field : joined_fields({verb.fields, output})) slots->push_back({field, {}, {}, false}), flags_.insert(field.key);
        for (Slot& slot : *slots) add_field(app, slot);
        app.footer(verb.examples);
        app.callback([this, slots, &verb] {
            run_ = [this, slots, &verb] {
                Given given = given_of(*slots);
                add_configured(configured_, given, *slots);
                return verb.run(given, output_flags(given), invocation_);
            };
        });
    }

    CLI::App app_;
    std::map<std::string, CLI::App*> parents_;  ///< of verbs, by their first word
    std::set<std::string> flags_;               ///< keys of all of them
    const std::map<std::string, std::string> configured_ = configured();
    const std::vector<Verb>& verbs_;
    const Invocation& invocation_;
    std::function<int()> run_;  ///< what parsing found to do
};

}  // namespace

std::vector<Field> joined_fields(std::initializer_list<std::span<const Field>> lists) {
    std::vector<Field> out;
    for (const auto list : lists) out.insert(out.end(), list.begin(), list.end());
    return out;
}

int run_command_line(int argc, char** argv, const std::vector<Verb>& verbs) {
    Invocation invocation;
    invocation.start = std::chrono::steady_clock::now();
    for (int i = 0; i < argc; ++i) invocation.command += i == 0 ? "rooftile" : " " + shell_quoted(argv[i]);
    // A program's own arguments are nothing to this one's parser.
    if (argc > 1 && std::ranges::any_of(verbs, [&](const Verb& verb) { return verb.takes_program && verb.path == argv[1]; }))
        for (int i = 2; i < argc && invocation.program.empty(); ++i)
            if (std::string_view(argv[i]) == "--") invocation.program.assign(argv + i + 1, argv + argc), argc = i;
    // "rooftile help machine show" is "rooftile machine show -h".
    std::vector<char*> words(argv, argv + argc);
    static char help[] = "-h", version_flag[] = "--version";
    if (argc > 1 && std::string_view(argv[1]) == "help") words.erase(words.begin() + 1), words.push_back(help);
    else if (argc == 2 && std::string_view(argv[1]) == "version") words[1] = version_flag;
    return Parser(verbs, invocation).run(int(words.size()), words.data());
}

}  // namespace rooftile::cli
