#include "rooftile/runtime/cache.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "rooftile/runtime/library.hpp"

namespace rooftile {
namespace {

namespace fs = std::filesystem;

constexpr EmbeddedFile headers[] = {{"kernels/one.hpp", "int one;"}, {"kernels/two.hpp", "int two;"}};
const NvrtcInfo compiler = {"13.0", "/anywhere/libnvrtc.so.13", "65be0db342ad51a0"};

Source source() {
    Source made;
    made.name = "k";
    made.text = "__global__ void k() {}";
    made.headers = headers;
    made.name_expressions = {"k"};
    return made;
}

Compiled compiled(std::size_t size = 5000) {
    Compiled made;
    for (std::size_t i = 0; i < size; ++i) made.cubin += char(i * 37 >> 3);
    made.lowered_names = {"_Z1kv"};
    made.entries = {EntryInfo{.name = "_Z1kv", .registers = 168, .barriers = 9}};
    made.log = "ptxas info : Used 168 registers\n";
    return made;
}

std::string bytes_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void overwrite(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

struct CacheTest : testing::Test {
    fs::path base, folder;
    CacheKey key = cache_key(source(), compiler);
    void SetUp() override {
        std::string name = testing::TempDir() + "rooftile-cache-XXXXXX";
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        base = name;
        folder = base / "a" / "rooftile";
    }
    void TearDown() override {
        std::error_code ignored;
        fs::permissions(folder, fs::perms::owner_all, ignored);
        fs::remove_all(base, ignored);
    }
    KernelCache cache(CacheMode mode = CacheMode::read_write) const {
        return KernelCache({mode, folder.string(), ""});
    }
    fs::path entry() const { return cache().path_of(key); }
};

TEST_F(CacheTest, WhatGoesInComesOut) {
    EXPECT_EQ(cache().find(key).why_not, "no entry");
    ASSERT_TRUE(cache().store(key, compiled()));
    CacheLookup lookup = cache().find(key);
    ASSERT_TRUE(lookup.found) << lookup.why_not;
    EXPECT_EQ(lookup.found->cubin, compiled().cubin);
    EXPECT_EQ(lookup.found->log, compiled().log);
    EXPECT_EQ(lookup.found->lowered_names, compiled().lowered_names);
    EXPECT_EQ(lookup.found->entries.at(0).registers, 168);
    EXPECT_EQ(lookup.found->entries.at(0).barriers, 9);
}

TEST_F(CacheTest, OnlyTheUserMayEnterOrRead) {
    ASSERT_TRUE(cache().store(key, compiled()));
    struct stat status {};
    ASSERT_EQ(stat(folder.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u);
    ASSERT_EQ(stat(entry().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    // Nothing made aside is left over.
    EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
}

TEST_F(CacheTest, EveryPartOfTheKeyCounts) {
    std::set<std::string> hashes = {key.hash};
    auto differs = [&](const Source& other, const NvrtcInfo& by = compiler) {
        EXPECT_TRUE(hashes.insert(cache_key(other, by).hash).second);
    };
    Source other = source();
    other.text += " ";
    differs(other);
    other = source();
    other.arch = "sm_90";
    differs(other);
    other = source();
    other.name_expressions = {"k", ""};
    differs(other);
    other = source();
    other.line_info = true;
    differs(other);
    other = source();
    other.max_registers = 128;
    differs(other);
    const EmbeddedFile changed[] = {{"kernels/one.hpp", "int one;"}, {"kernels/two.hpp", "int tow;"}};
    // The same bytes in all, with the border between path and text moved by one.
    const EmbeddedFile moved[] = {{"kernels/one.hppi", "nt one;"}, {"kernels/two.hpp", "int two;"}};
    other = source();
    other.headers = changed;
    differs(other);
    other.headers = moved;
    differs(other);
    differs(source(), {"13.1", compiler.path, compiler.build});
    differs(source(), {"13.0", compiler.path, "65be0db342ad51a1"});
    // Where the library lies says nothing about its code.
    EXPECT_EQ(cache_key(source(), {"13.0", "/elsewhere", compiler.build}).hash, key.hash);
    EXPECT_EQ(key.hash.size(), 32u);
}

TEST_F(CacheTest, CutAtAnyLengthItIsAMissAndIsReplaced) {
    const std::string whole = encode_entry(key, compiled(300));
    for (std::size_t length = 0; length < whole.size(); ++length)
        ASSERT_FALSE(decode_entry(key, whole.substr(0, length)).found) << length;
    EXPECT_FALSE(decode_entry(key, whole + "x").found);
    ASSERT_TRUE(decode_entry(key, whole).found);

    ASSERT_TRUE(cache().store(key, compiled()));
    const std::string full = bytes_of(entry());
    for (std::size_t length : {std::size_t(0), std::size_t(7), full.size() / 2, full.size() - 1}) {
        overwrite(entry(), full.substr(0, length));
        EXPECT_FALSE(cache().find(key).found) << length;
        EXPECT_TRUE(cache().store(key, compiled()));
        EXPECT_TRUE(cache().find(key).found) << length;
    }
}

TEST_F(CacheTest, AnyFlippedBitIsAMiss) {
    const std::string whole = encode_entry(key, compiled(300));
    for (std::size_t i = 0; i < whole.size(); ++i)
        for (int bit : {0, 7}) {
            std::string flipped = whole;
            flipped[i] = char(flipped[i] ^ (1 << bit));
            ASSERT_FALSE(decode_entry(key, flipped).found) << "byte " << i << " bit " << bit;
        }
}

TEST_F(CacheTest, AnEntryOfAnotherKeyIsAMiss) {
    Source other = source();
    other.text = "__global__ void k() { asm(\"\"); }";
    CacheKey wanted = cache_key(other, compiler);
    ASSERT_TRUE(cache().store(key, compiled()));
    fs::copy_file(entry(), cache().path_of(wanted));
    EXPECT_EQ(cache().find(wanted).why_not, "entry of another key");
}

TEST_F(CacheTest, WhatOthersCouldHaveWrittenIsNotRead) {
    ASSERT_TRUE(cache().store(key, compiled()));
    fs::permissions(entry(), fs::perms::others_write, fs::perm_options::add);
    EXPECT_EQ(cache().find(key).why_not, "writable by others");
    ASSERT_TRUE(cache().store(key, compiled()));  // replaced by a file of ours
    EXPECT_TRUE(cache().find(key).found);

    fs::permissions(folder, fs::perms::group_write, fs::perm_options::add);
    EXPECT_FALSE(cache().find(key).found);
    EXPECT_FALSE(cache().store(key, compiled()));
}

TEST_F(CacheTest, LinksFoldersAndPipesAreNotRead) {
    ASSERT_TRUE(cache().store(key, compiled()));
    fs::path elsewhere = base / "elsewhere";
    fs::rename(entry(), elsewhere);
    fs::create_symlink(elsewhere, entry());
    EXPECT_FALSE(cache().find(key).found);
    ASSERT_TRUE(cache().store(key, compiled(10)));  // in place of the link, not through it
    EXPECT_FALSE(fs::is_symlink(entry()));
    EXPECT_GT(fs::file_size(elsewhere), 5000u);

    fs::remove(entry());
    ASSERT_EQ(mkfifo(entry().c_str(), 0600), 0);
    EXPECT_EQ(cache().find(key).why_not, "not a regular file");  // and did not wait for a writer
    fs::remove(entry());
    fs::create_directory(entry());
    EXPECT_EQ(cache().find(key).why_not, "not a regular file");
    EXPECT_FALSE(cache().store(key, compiled()));
}

TEST_F(CacheTest, AFolderThatCannotBeWrittenOnlyCostsTheCache) {
    ASSERT_TRUE(cache().store(key, compiled()));
    Source other = source();
    other.text += "\n";
    if (geteuid() != 0) {
        fs::permissions(folder, fs::perms::owner_read | fs::perms::owner_exec);
        EXPECT_FALSE(cache().store(cache_key(other, compiler), compiled()));
        EXPECT_TRUE(cache().find(key).found);
    }
    // A file where a folder is needed stops root too.
    overwrite(base / "file", "");
    KernelCache blocked({CacheMode::read_write, (base / "file" / "rooftile").string(), ""});
    EXPECT_FALSE(blocked.store(key, compiled()));
    EXPECT_FALSE(blocked.find(key).found);
    EXPECT_FALSE(blocked.obstacle(true).empty());
}

TEST_F(CacheTest, ModesDoWhatTheySay) {
    EXPECT_FALSE(cache(CacheMode::read_only).store(key, compiled()));
    EXPECT_FALSE(fs::exists(folder));
    ASSERT_TRUE(cache().store(key, compiled()));
    EXPECT_TRUE(cache(CacheMode::read_only).find(key).found);
    EXPECT_FALSE(cache(CacheMode::off).find(key).found);
    EXPECT_FALSE(cache(CacheMode::off).store(key, compiled()));
}

/// Takes variables out of the environment and puts them back: other tests of this binary read them too.
class WithoutVariables {
  public:
    explicit WithoutVariables(std::vector<std::string> names) : names_(std::move(names)) {
        for (const std::string& name : names_) {
            const char* value = getenv(name.c_str());
            values_.push_back(value ? std::optional<std::string>(value) : std::nullopt);
            unsetenv(name.c_str());
        }
    }
    ~WithoutVariables() {
        for (std::size_t i = 0; i < names_.size(); ++i) {
            if (values_[i]) setenv(names_[i].c_str(), values_[i]->c_str(), 1);
            else unsetenv(names_[i].c_str());
        }
    }

  private:
    std::vector<std::string> names_;
    std::vector<std::optional<std::string>> values_;
};

TEST_F(CacheTest, TheEnvironmentChooses) {
    const WithoutVariables scope({"ROOFTILE_CACHE", "ROOFTILE_CACHE_DIR", "XDG_CACHE_HOME", "HOME"});
    EXPECT_EQ(cache_settings().mode, CacheMode::off);
    EXPECT_FALSE(cache_settings().note.empty());
    setenv("HOME", "/h", 1);
    EXPECT_EQ(cache_settings().folder, "/h/.cache/rooftile");
    setenv("XDG_CACHE_HOME", "x", 1);  // relative: ignored
    EXPECT_EQ(cache_settings().folder, "/h/.cache/rooftile");
    setenv("XDG_CACHE_HOME", "/x", 1);
    EXPECT_EQ(cache_settings().folder, "/x/rooftile");
    setenv("ROOFTILE_CACHE_DIR", "/d", 1);
    EXPECT_EQ(cache_settings().folder, "/d");
    EXPECT_EQ(cache_settings().mode, CacheMode::read_write);
    setenv("ROOFTILE_CACHE", "ro", 1);
    EXPECT_EQ(cache_settings().mode, CacheMode::read_only);
    setenv("ROOFTILE_CACHE", "off", 1);
    EXPECT_EQ(cache_settings().mode, CacheMode::off);
    EXPECT_TRUE(cache_settings().note.empty());
    setenv("ROOFTILE_CACHE", "maybe", 1);
    EXPECT_THROW(cache_settings(), RequestError);
}

// Neither is a stack of its own, for which a planned kernel is refused, minded.
TEST_F(CacheTest, AnAlteredSourceIsNeitherSoughtNorKept) {
    if (const Library library = open_library(nvrtc_soname); !library) GTEST_SKIP() << "skipped: " << library.not_found();
    const WithoutVariables scope({"ROOFTILE_CACHE", "ROOFTILE_CACHE_DIR"});
    setenv("ROOFTILE_CACHE_DIR", folder.c_str(), 1);
    const auto entries = [&] {
        return fs::exists(folder) ? std::distance(fs::directory_iterator(folder), fs::directory_iterator()) : 0;
    };
    constexpr const char* with_a_stack = "__global__ void k(int n, int* to) { volatile int stack[64]; stack[n] = 1; *to = stack[*to]; }";
    CompileOptions altering;
    altering.alter = [&](Source& source) { source.text = with_a_stack; };
    for (int i = 0; i < 2; ++i) {
        Source altered = source();
        const CachedCompile made = compile_as(altering, altered);
        EXPECT_EQ(altered.text, with_a_stack);
        EXPECT_FALSE(made.from_cache);
        EXPECT_GT(made.compiled.entries.front().stack_bytes, 0);
    }
    EXPECT_EQ(entries(), 0);
    Source plain = source();
    EXPECT_FALSE(compile_as({}, plain).from_cache);
    EXPECT_TRUE(compile_as({}, plain).from_cache);
    EXPECT_EQ(entries(), 1);
    // The very text that the cache has.
    altering.alter = [&](Source& source) { source.text = plain.text; };
    EXPECT_FALSE(compile_as(altering, plain).from_cache);
    plain.text = with_a_stack;
    EXPECT_THROW(compile_as({}, plain), Error);
}

// Readers see nothing or a whole entry while processes and threads write the same one.
TEST_F(CacheTest, RacingWritersNeverShowHalfAnEntry) {
    const Compiled large = compiled(200'000);
    std::vector<pid_t> children;
    for (int process = 0; process < 4; ++process) {
        pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            bool good = true;
            for (int i = 0; i < 25; ++i) {
                good &= cache().store(key, large);
                CacheLookup lookup = cache().find(key);
                good &= lookup.found && lookup.found->cubin == large.cubin;
            }
            _exit(good ? 0 : 1);
        }
        children.push_back(child);
    }
    int wrong = 0;
    std::vector<std::thread> threads;
    std::atomic<int> bad{0};
    for (int t = 0; t < 2; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 25; ++i) {
                if (!cache().store(key, large)) ++bad;
                CacheLookup lookup = cache().find(key);
                if (!lookup.found || lookup.found->cubin != large.cubin) ++bad;
            }
        });
    for (auto& thread : threads) thread.join();
    for (pid_t child : children) {
        int status = 0;
        waitpid(child, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) ++wrong;
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(bad.load(), 0);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace rooftile
