// Texts kept in tests/golden/. ROOFTILE_REGENERATE=1 rewrites them: look at the difference before committing.
#pragma once

#include <cstdlib>
#include <filesystem>
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
    if (!std::filesystem::exists(ROOFTILE_SOURCE_DIR "/tests/golden"))
        GTEST_SKIP() << "skipped: no sources here";
    std::ifstream file(path, std::ios::binary);
    ASSERT_TRUE(file) << path << " is missing; ROOFTILE_REGENERATE=1 writes it";
    std::ostringstream golden;
    golden << file.rdbuf();
    EXPECT_EQ(text, golden.str()) << name << " differs; ROOFTILE_REGENERATE=1 rewrites it";
}

}  // namespace rooftile
