// What suite files are read with: the head and the [[problem]] rows that every operation has, and what an operation's
// own tables need. Every refusal is a RequestError, one line that names file, place and what is accepted.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <toml++/toml.h>

#include "rooftile/core/field.hpp"
#include "rooftile/core/suite.hpp"

namespace rooftile {

/// A number of a TOML file as it would be typed; empty where it is none, or not finite.
std::string number_text(const toml::node& node);

/// Throws RequestError: "FILE:LINE:COLUMN: not valid TOML: ...".
toml::table parsed_toml(std::string_view text, std::string_view file_name);

class SuiteReader {
  public:
    SuiteReader(const Operation& operation, std::string_view file) : operation_(operation), file_(file) {}
    virtual ~SuiteReader() = default;
    Suite read(std::string_view text);

  protected:
    /// Keys of the file that the operation reads beside `schema`, `name`, `op` and `problem`.
    virtual std::vector<std::string_view> own_keys() const { return {}; }
    virtual void read_own(const toml::table&) {}
    /// One of own_keys(): the array of tables that may stand in place of [[problem]]; empty: none.
    virtual std::string_view own_tables() const { return {}; }

    [[noreturn]] void refuse(const toml::node& node, std::string_view key, std::string_view problem) const;
    void check_keys(const toml::table& table, std::string_view prefix, std::span<const std::string_view> known) const;
    void check_keys(const toml::table& table, std::string_view prefix,
                    std::initializer_list<std::string_view> known) const {
        check_keys(table, prefix, std::span(known.begin(), known.size()));
    }
    /// Of the array of tables `key`, which holds one at least.
    void for_each_table(const toml::table& root, std::string_view key,
                        const std::function<void(const toml::table&)>& read) const;

    std::string text_of(const toml::table& table, std::string_view key) const;
    std::int64_t size_of(const toml::node& node, std::string_view key) const;
    std::vector<std::int64_t> sizes_of(const toml::node& node, std::string_view key) const;
    std::vector<std::int64_t> sizes_of(const toml::table& table, std::string_view key) const {
        return sizes_of(*table.get(key), key);
    }
    std::vector<std::string> texts_of(const toml::table& table, std::string_view key) const;

    /// Adds a problem, or a layer's name to one that is there. `make` may refuse it.
    void add(const toml::node& node, std::string_view key, SuiteLayer layer, int rounds,
             const std::function<Problem()>& make);
    /// Whether a problem has exactly that layer.
    bool has_layer(const SuiteLayer& layer) const;

  private:
    std::string read_head(const toml::table& root) const;
    void give(Given& given, const Field& field, const toml::node& node) const;
    void read_problem(const toml::table& table, std::size_t number);
    void check_text(const toml::node& node, std::string_view key, std::string_view accepted) const;

    const Operation& operation_;
    std::string_view file_;
    Suite suite_;
    std::map<std::string, std::size_t> places_;  ///< of a problem in suite_, by what gives it
};

}  // namespace rooftile
