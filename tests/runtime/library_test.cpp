#include "rooftile/runtime/library.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace rooftile {
namespace {

namespace fs = std::filesystem;

struct LibraryTest : testing::Test {
    fs::path folder;
    void SetUp() override {
        std::string name = testing::TempDir() + "rooftile-library-XXXXXX";
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        folder = name;
        old_ = getenv("ROOFTILE_CUDA_PATH") ? getenv("ROOFTILE_CUDA_PATH") : "";
        setenv("ROOFTILE_CUDA_PATH", folder.c_str(), 1);
    }
    void TearDown() override {
        if (old_.empty()) unsetenv("ROOFTILE_CUDA_PATH");
        else setenv("ROOFTILE_CUDA_PATH", old_.c_str(), 1);
        fs::remove_all(folder);
    }

  private:
    std::string old_;
};

TEST_F(LibraryTest, NotFoundIsAValueThatSaysWhereItLooked) {
    Library library = open_library("librooftile-has-no-such.so.7");
    EXPECT_FALSE(library);
    EXPECT_EQ(library.symbol("anything"), nullptr);
    ASSERT_FALSE(library.tried.empty());
    EXPECT_EQ(library.tried.front(), folder.string());
    EXPECT_EQ(library.tried.back(), "the loader's path");
    EXPECT_NE(library.not_found().find("librooftile-has-no-such.so.7 was not found"), std::string::npos);
    EXPECT_NE(library.not_found().find("ROOFTILE_CUDA_PATH"), std::string::npos);
}

TEST_F(LibraryTest, ABrokenFileIsNamedWithTheLoadersAnswerAndTheSearchGoesOn) {
    fs::create_directories(folder / "lib");
    std::ofstream(folder / "lib" / "libm.so.6") << "not a library";
    Library library = open_library("libm.so.6");
    ASSERT_TRUE(library);  // the loader's own
    EXPECT_NE(library.symbol("cos"), nullptr);
    ASSERT_FALSE(library.tried.empty());
    EXPECT_NE(library.tried.front().find((folder / "lib").string() + " ("), std::string::npos)
        << library.tried.front();
}

TEST_F(LibraryTest, TheNamedFolderGoesFirstInEveryLayout) {
    for (const char* layout : {"lib64", "lib", "nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"})
        fs::create_directories(folder / layout);
    std::vector<std::string> folders = library_folders();
    ASSERT_GE(folders.size(), 5u);
    EXPECT_EQ(folders[0], (folder / "lib64").string());
    EXPECT_EQ(folders[1], (folder / "lib").string());
    EXPECT_EQ(folders[2], folder.string());
    EXPECT_EQ(folders[3], (folder / "nvidia/cu13/lib").string());
    EXPECT_EQ(folders[4], (folder / "nvidia/cuda_nvrtc/lib").string());
}

}  // namespace
}  // namespace rooftile
