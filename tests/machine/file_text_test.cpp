#include "rooftile/machine/file_text.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rooftile/error.hpp"

namespace rooftile {
namespace {

std::string read_refusal(const std::filesystem::path& path) {
    try {
        read_whole_file(path);
    } catch (const RequestError& error) { return error.what(); }
    return "not refused";
}

TEST(FileText, AWholeFileMayBeLargeAndNotHuge) {
    const auto path =
        std::filesystem::temp_directory_path() / ("rooftile-file-text-" + std::to_string(getpid()));
    std::string text(machine_limits.bytes + 1, 'x');
    text += std::string("\0\r\n\xff", 4);
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(read_whole_file(path), text);
    EXPECT_THROW(read_small_file(path), RequestError);
    std::ofstream(path, std::ios::binary | std::ios::trunc).close();
    EXPECT_EQ(read_whole_file(path), "");
    std::filesystem::resize_file(path, max_whole_file + 1);  // of holes: takes no disk
    EXPECT_THAT(read_refusal(path), testing::HasSubstr("1073741825 bytes; at most 1073741824 are accepted"));
    std::filesystem::remove(path);
}

TEST(FileText, WhatIsNoFileIsNamed) {
    EXPECT_THAT(read_refusal("/nonexistent.jsonl"), testing::HasSubstr("/nonexistent.jsonl: no such file"));
    EXPECT_THAT(read_refusal("/"), testing::HasSubstr("directory"));
    EXPECT_THAT(read_refusal("/dev/null"), testing::HasSubstr("not a regular file"));
}

}  // namespace
}  // namespace rooftile
