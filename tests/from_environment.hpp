// What whoever runs a random test may choose.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace rooftile {

/// The number that an environment variable holds; `otherwise` where it is not set.
inline std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace rooftile
