// One description of a value that a request may give. Flags and their help, the keys of suite files and what an error
// calls a value are made from it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rooftile {

enum class FieldKind : unsigned char {
    value,       ///< one text, given once; a sweep takes lists and ranges of it
    list,        ///< given as often as one likes
    positional,  ///< one text, without its name on a command line
    on,          ///< present or not; one with a form may also be given as --key=form
    text,        ///< as value, and commas and dots are its own
};

struct Field {
    std::string key;      ///< "tile": in documents and suite files; its flag is "--tile"
    std::string form;     ///< of its text, for help: "MxNxK"
    std::string meaning;  ///< one line
    std::string group;    ///< heading in help; empty: not shown
    FieldKind kind = FieldKind::value;
    char letter = 0;  ///< of a short flag; 0: none
    bool unnamed = false;  ///< of a value: a command line may also give it without its flag
};

/// "--consumer-warpgroups" of "consumer_warpgroups".
std::string flag_of(std::string_view key);

/// What a request gives: texts under the keys of fields. Nothing under a key: not given.
class Given {
  public:
    /// How errors call a value: by its flag on a command line, by its key in a file.
    enum class Named : unsigned char { by_flag, by_key };

    explicit Given(Named named = Named::by_flag) : named_(named) {}

    void add(std::string_view key, std::string text) { texts_[std::string(key)].push_back(std::move(text)); }
    /// The one text under `key`, in the place of what is there.
    void replace(std::string_view key, std::string text) { texts_[std::string(key)] = {std::move(text)}; }
    /// Gives it where nobody did.
    void add_default(std::string_view key, std::string_view text) {
        if (!has(key)) add(key, std::string(text));
    }
    bool has(std::string_view key) const { return texts_.find(key) != texts_.end(); }
    /// The text under `key`; empty where it is not given.
    const std::string& text(std::string_view key) const;
    const std::vector<std::string>& list(std::string_view key) const;
    std::string name(std::string_view key) const;
    /// What the file has whose name is the text under `key`, blanks for its line ends. Nothing where there is no such file, and of what a
    /// document gives, whoever wrote it: only the command line's user says what is opened. Throws RequestError, one line, where it
    /// is no regular file or too long for a list.
    std::optional<std::string> named_file(std::string_view key) const;
    /// All of it in one line: the same for the same request.
    std::string text() const;

  private:
    Named named_;
    std::map<std::string, std::vector<std::string>, std::less<>> texts_;
};

}  // namespace rooftile
