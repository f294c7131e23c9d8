// completion, man: what shells and `man` want to know of verbs and flags, made from the verbs' own descriptions.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "cli/man.hpp"
#include "cli/output.hpp"
#include "cli/verb.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"

namespace rooftile::cli {
namespace {

/// What may follow the words typed so far: "machine" has "show", ..., "machine show" its flags.
using Following = std::map<std::string, std::vector<std::string>>;

Following following(const std::vector<Verb>& verbs) {
    Following out;
    const auto add = [&](const std::string& before, const std::string& word) {
        auto& words = out[before];
        if (std::ranges::find(words, word) == words.end()) words.push_back(word);
    };
    for (const Verb& verb : verbs) {
        const std::size_t space = verb.path.find(' ');
        add("", verb.path.substr(0, space));
        if (space != verb.path.npos) add(verb.path.substr(0, space), verb.path.substr(space + 1));
        const std::vector<Field> output = output_fields(verb.documents);
        for (const Field& field : joined_fields({verb.fields, output}))
            if (field.kind != FieldKind::positional) add(verb.path, flag_of(field.key));
        add(verb.path, "--help");
    }
    return out;
}

/// One `case` a path, for shells that are alike in it.
std::string cases(const Following& following, std::string_view assign) {
    std::string out;
    for (const auto& [path, words] : following) out += fmt::format("    \"{}\") {}\"{}\" ;;\n", path, assign, fmt::join(words, " "));
    return out;
}

std::string bash(const Following& following) {
    return "# bash: source <(rooftile completion bash)\n"
           "_rooftile() {\n"
           "  local word=${COMP_WORDS[COMP_CWORD]} path= words= i\n"
           "  for ((i = 1; i < COMP_CWORD && i < 3; ++i)); do\n"
           "    case ${COMP_WORDS[i]} in -*) break ;; *) path+=${path:+ }${COMP_WORDS[i]} ;; esac\n"
           "  done\n"
           "  while :; do\n"
           "    case $path in\n"
           + cases(following, "words=")
           + "    *\\ *) path=${path% *}; continue ;;\n"
             "    esac\n"
             "    break\n"
             "  done\n"
             "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
             "  [[ ${#COMPREPLY[@]} -gt 0 || $word == -* ]] || COMPREPLY=($(compgen -f -- \"$word\"))\n"
             "}\n"
             "complete -o filenames -F _rooftile rooftile\n";
}

std::string zsh(const Following& following) {
    return "#compdef rooftile\n"
           "# zsh: source <(rooftile completion zsh)\n"
           "_rooftile() {\n"
           "  local key=\"${words[2]}\" list=\n"
           "  (( CURRENT > 3 )) && [[ ${words[3]} != -* ]] && key+=\" ${words[3]}\"\n"
           "  (( CURRENT == 2 )) && key=\n"
           "  case $key in\n"
           + cases(following, "list=")
           + "  esac\n"
             "  compadd -- ${=list} || _files\n"
             "}\n"
             "compdef _rooftile rooftile\n";
}

std::string fish(const Following& following) {
    std::string out = "# fish: rooftile completion fish | source\n";
    for (const auto& [path, words] : following) {
        const std::string condition = path.empty() ? "__fish_use_subcommand" : fmt::format("string match -q -- 'rooftile {}*' (commandline -cp)", path);
        for (const std::string& word : words)
            out += word.starts_with("--") ? fmt::format("complete -c rooftile -n \"{}\" -l {}\n", condition, word.substr(2))
                                          : fmt::format("complete -c rooftile -f -n \"{}\" -a {}\n", condition, word);
    }
    return out;
}

}  // namespace

void add_completion(std::vector<Verb>& verbs, std::vector<Verb> (*all)()) {
    static constexpr std::string_view shells[] = {"bash", "zsh", "fish"};
    verbs.push_back({.path = "completion",
                     .meaning = "A script that completes verbs and flags, for bash, zsh or fish",
                     .fields = {{"shell", "SHELL", "bash, zsh or fish", "Options", FieldKind::positional}},
                     .documents = Documents::text_only,
                     .examples = "Examples:\n  source <(rooftile completion bash)\n  rooftile completion fish | source\n",
                     .synopsis = "bash",
                     .run = [all](const Given& given, const OutputFlags& output, const Invocation&) {
                         const std::size_t shell = one_of("completion", given.text("shell"), shells);
                         Following known = following(all());
                         known["completion"] = {std::begin(shells), std::end(shells)};
                         write_result(shell == 0 ? bash(known) : shell == 1 ? zsh(known) : fish(known), output);
                         return int(ExitCode::done);
                     }});
    verbs.push_back({.path = "man",
                     .meaning = "The manual page as roff, for man",
                     .fields = {},
                     .documents = Documents::text_only,
                     .examples = "Example:\n  rooftile man | man -l -\n",
                     .synopsis = {},
                     .run = [all](const Given&, const OutputFlags& output, const Invocation&) {
                         write_result(manual_page(all()), output);
                         return int(ExitCode::done);
                     }});
}

}  // namespace rooftile::cli
