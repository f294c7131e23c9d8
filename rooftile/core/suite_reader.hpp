// What every kind of suite file is read with: one line that names file, place and what is accepted. For
// rooftile/problem's own sources.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <toml++/toml.h>

namespace rooftile {

/// Throws RequestError: "FILE:LINE:COLUMN: not valid TOML: ...".
toml::table parsed_toml(std::string_view text, std::string_view file_name);

/// Keys of one parsed file. Every refusal is a RequestError.
class SuiteReader {
  protected:
    explicit SuiteReader(std::string_view file) : file_(file) {}

    [[noreturn]] void refuse(const toml::node& node, std::string_view key, std::string_view problem) const;
    void check_keys(const toml::table& table, std::string_view prefix,
                    std::initializer_list<std::string_view> known) const;

    /// Checks the schema and that the suite is one of `op`; a file that names none is of the first operation. Returns its
    /// name.
    std::string read_head(const toml::table& root, std::string_view op) const;
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

  private:
    void check_text(const toml::node& node, std::string_view key, std::string_view accepted) const;
    std::string_view file_;
};

}  // namespace rooftile
