// What the machine tests share: files written in memory, and the one line a refusal says.
#pragma once

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "rooftile/error.hpp"
#include "rooftile/machine/read.hpp"

namespace rooftile {

inline std::string with_head(std::string_view body) {
    return "schema = \"rooftile/machine/1\"\nid = \"x\"\nname = \"X\"\n" + std::string(body);
}

/// The message that `action` is refused with; a failure where it is not, or says more than one line.
template <class Action>
std::string refusal(Action&& action) {
    try {
        action();
    } catch (const RequestError& error) {
        const std::string message = error.what();
        EXPECT_EQ(message.find('\n'), message.npos) << message;
        EXPECT_LT(message.size(), 600u) << message;
        EXPECT_EQ(error.code(), ExitCode::bad_request);
        return message;
    }
    ADD_FAILURE() << "accepted";
    return {};
}

/// The same for a machine file with `body` below a good head; the body's first line is line 4.
inline std::string body_refusal(std::string_view body) {
    return refusal([&] { parse_machine(with_head(body), "x.toml"); });
}

}  // namespace rooftile
