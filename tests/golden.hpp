// Texts kept in tests/golden/. ROOFTILE_REGENERATE=1 rewrites them: look at the difference before committing.
#pragma once

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace rooftile {

inline void expect_golden(const std::string& name, const std::string& text) {
    const std::string path = std::string(ROOFTILE_SOURCE_DIR) + "/tests/golden/" + name;
    if (const char* regenerate = std::getenv("ROOFTILE_REGENERATE"); regenerate && *regenerate == '1') {
        std::ofstream(path, std::ios::binary) << text;
        return;
    }
    std::ifstream file(path, std::ios::binary);
    if (!file) GTEST_SKIP() << "skipped: the sources are not here: " << path;
    std::ostringstream golden;
    golden << file.rdbuf();
    EXPECT_EQ(text, golden.str()) << name << " differs; ROOFTILE_REGENERATE=1 rewrites it";
}

}  // namespace rooftile
