// The problem that an operation's own help shows, for tests that run over every operation.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/core/operation.hpp"

namespace rooftile {

/// Words of a command line; double quotes hold one together.
inline std::vector<std::string> words_of(std::string_view line) {
    std::vector<std::string> words(1);
    bool quoted = false;
    for (const char c : line) {
        if (c == '"') quoted = !quoted;
        else if (c == ' ' && !quoted) words.emplace_back();
        else words.back() += c;
    }
    return words;
}

/// What a command line asks of an operation.
inline Given given_of(const Operation& operation, std::string_view line) {
    Given given;
    const auto words = words_of(line);
    for (std::size_t i = 0; i < words.size(); ++i) {
        const auto field =
            std::find_if(operation.fields().begin(), operation.fields().end(), [&](const Field& f) {
                return words[i].starts_with("--") ? flag_of(f.key) == words[i]
                                                  : f.kind == FieldKind::positional;
            });
        EXPECT_NE(field, operation.fields().end()) << words[i];
        if (field == operation.fields().end()) continue;
        if (field->kind == FieldKind::on) given.add(field->key, "");
        else given.add(field->key, field->kind == FieldKind::positional ? words[i] : words.at(++i));
    }
    return given;
}

/// What the operation's own example gives.
inline Given example_of(const Operation& operation) { return given_of(operation, operation.example()); }

/// Names a test by its operation.
inline std::string name_of_operation(const testing::TestParamInfo<const Operation*>& info) {
    return std::string(info.param->name());
}

}  // namespace rooftile
