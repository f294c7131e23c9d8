// A kernel's text with every header that it includes, as one that nvcc compiles by itself; and without what the one configuration in it
// does not need.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/emit/tokens.hpp"
#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile::emit {

/// A template argument of a class type, by its value: it becomes a constant of the file.
struct Configuration {
    std::string type;                                          ///< as the file names it
    std::string name;                                          ///< of the constant: "config"
    std::vector<std::pair<std::string, std::string>> members;  ///< what is not as the type has it, as text
    std::string text() const;                                  ///< "rooftile::Config{.tile = 128}"
};

/// The answer to a condition in a scope, where it is known: 0 or 1.
using Decide = std::function<std::optional<bool>(const std::string& scope, const std::string& condition)>;

class Program {
  public:
    /// Reads `source` and its headers, and behind them others of its headers: check_text() has what is in those alone.
    explicit Program(const Source& source, const std::vector<std::string>& check_headers = {});

    /// Kernels as a launch names them, their configurations by name.
    const std::vector<std::string>& kernels() const { return kernels_; }
    const std::vector<Configuration>& configurations() const { return configurations_; }

    /// Conditions of `if` and `if constexpr` that name no more than configurations and constants may decide.
    struct Condition {
        std::string scope, text;
    };
    std::vector<Condition> conditions() const;
    /// Takes away branches that are not taken, and assertions, which have held.
    void take_branches(const Decide& decide);
    /// Takes away what no kernel, and none of `words`, needs by name; a word with "()" behind it is called.
    void take_unused(std::set<std::string> words);
    /// Kernels that are templates become functions of the arguments that they are launched with: nvcc's host code takes no template
    /// argument of a class type. Throws RequestError where one is launched with two kinds of arguments.
    void instantiate_kernels();
    /// Declares the configurations, each behind its type.
    void place_configurations();
    /// Says where functions run: NVRTC was told that they all run on the device.
    void say_where_functions_run();
    /// A kernel of another architecture is empty: a file may be compiled for several.
    void guard_kernels(std::string_view arch);
    /// Names that a template calls a configuration by: "C".
    const std::map<std::string, std::string>& parameters() const { return parameters_; }

    /// Of a struct: its members as they are declared; and whether there is one of that name, by alias too.
    const Item* find_type(std::string_view name) const;
    /// The head of a function template or function of that name, the first with a body.
    const Item* find_function(std::string_view name) const;

    /// Of the system's headers.
    std::string includes() const;
    std::string text() const;
    std::string check_text() const;

  private:
    struct File {
        Tokens story;  ///< its first comment
        std::vector<Item> items;
    };
    void add_file(std::string_view text, std::span<const EmbeddedFile> headers, std::set<std::string>& seen);
    void read_kernels(const std::vector<std::string>& expressions);
    void find_parameters();
    /// A function template of that name, which the text then lacks.
    std::optional<Item> take_function(const std::string& name);

    std::vector<std::string> includes_;  ///< of the system, once
    std::vector<File> files_, check_files_;
    std::string text_of_files(const std::vector<File>& files) const;
    template <class Visit>
    void each_file(Visit visit) {
        for (File& file : files_) visit(file);
        for (File& file : check_files_) visit(file);
    }
    std::vector<std::string> kernels_;
    std::vector<Configuration> configurations_;
    std::map<std::string, std::string> parameters_;
};

}  // namespace rooftile::emit
