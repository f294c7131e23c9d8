// What tests say of kernels that were compiled: the code is as the configuration counts, and how often a text has something.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile {

/// One kernel without spills, of at most so many registers a thread, and without shared memory beside what its configuration counts.
inline void expect_clean(const CompileOutcome& outcome, int most_registers) {
    if (const Error* error = std::get_if<Error>(&outcome)) {
        ADD_FAILURE() << error->what() << '\n' << error->detail();
        return;
    }
    const Compiled& compiled = std::get<Compiled>(outcome);
    EXPECT_EQ(unclean(compiled).value_or(""), "") << compiled.log;
    ASSERT_EQ(compiled.entries.size(), 1u);
    EXPECT_LE(compiled.entries[0].registers, most_registers);
    EXPECT_EQ(compiled.entries[0].static_shared_bytes, 0);
}

inline int mentions(const std::string& text, const std::string& what) {
    int count = 0;
    for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
    return count;
}

}  // namespace rooftile
