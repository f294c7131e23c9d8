// Weights packed from outside: what is said of them, the file that is written, refusals.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/folder.hpp"
#include "tests/json_schema.hpp"
#include "tests/weights/files.hpp"

namespace rooftile {
namespace {

class PackVerb : public testing::Test {
  protected:
    PackVerb() {
        // 80 x 64 of Q4_0, all scales 0.75 (0x3a00 in fp16).
        std::string data;
        for (int block = 0; block < 80 * 2; ++block) data += std::string("\x00\x3a", 2) + std::string(16, static_cast<char>(block));
        write_bytes(file_, gguf_text({{"blk.0.up", 2, {64, 80}, data}, {"norm", 0, {4}, std::string(16, '\0')}}));
    }
    Folder folder_;
    const std::string file_ = (folder_.path() / "model.gguf").string(), out_ = (folder_.path() / "up.packed").string();
};

// 2 blocks of 64 x 128: 4096 B of weights and 4 x 64 scales of 2 B each, behind 128 B.
TEST_F(PackVerb, SaysWhatItDid) {
    const Outcome text = run({"pack", file_, "blk.0.up", "-o", out_});
    ASSERT_EQ(text.code, 0) << text.err;
    for (const char* part :
         {"blk.0.up: Q4_0, 80 x 64, groups of 32, scales of fp16\n", "before  2880 B, 4.5 bits a weight\n", "after   9344 B, 14.6 bits",
          "error   none", "--n 80 --k 64 --types bf16,int4,bf16 --quant-group 32 --quant-scale fp16 --quant-zero none\n"})
        EXPECT_NE(text.out.find(part), std::string::npos) << part << '\n' << text.out;
    EXPECT_EQ(std::filesystem::file_size(out_), 9344u);
    const Outcome got = run({"pack", file_, "blk.0.up", "-o", out_, "--json", "--quant-scale", "bf16"});
    ASSERT_EQ(got.code, 0) << got.err;
    const auto document = nlohmann::json::parse(got.out);
    EXPECT_EQ(JsonSchema("pack-1.json").faults(document), "");
    EXPECT_EQ(document.at("packed_bytes"), 9344);
    EXPECT_EQ(document.at("mean_square_error"), 0.0);  // 0.75 is a number of bf16 too
    EXPECT_GT(document.at("mean_square"), 0.0);
}

TEST_F(PackVerb, PlansWhatItSays) {
    const Outcome packed = run({"pack", file_, "blk.0.up", "-o", out_, "--json"});
    ASSERT_EQ(packed.code, 0) << packed.err;
    const auto request = nlohmann::json::parse(packed.out).at("request");
    std::vector<std::string> arguments = {"plan", request.at("op"), "--machine", "h200-sxm", "--json"};
    for (const auto& [key, text] : request.items()) {
        if (key == "op") continue;
        std::string flag = "--" + key;
        std::ranges::replace(flag, '_', '-');
        arguments.push_back(flag), arguments.push_back(text);
    }
    const Outcome plan = run(arguments);
    EXPECT_EQ(plan.code, 0) << plan.err;
}

// 9 MB take some time to write: the signal comes while a part of them is there, or at the end.
TEST_F(PackVerb, LeavesNothingWhereASignalEndsIt) {
    constexpr std::int64_t n = 2048, k = 4096;
    const std::string large = (folder_.path() / "large.gguf").string();
    write_bytes(large, gguf_text({{"w", 8, {k, n}, std::string(n * k / 32 * 34, '\0')}}));
    namespace fs = std::filesystem;
    const auto unfinished = [&] {
        std::vector<fs::path> names;
        for (const auto& entry : fs::directory_iterator(folder_.path()))
            if (entry.path().extension() == ".tmp") names.push_back(entry.path());
        return names;
    };
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        std::vector<std::string> words = {program(), "pack", large, "w", "-o", out_};
        auto pointers = detail::pointers(words);
        const pid_t child = fork();
        if (child == 0) {
            close(1), close(2);
            execv(pointers[0], pointers.data());
            _exit(127);
        }
        int status = 0;
        std::error_code gone;
        while (waitpid(child, &status, WNOHANG) == 0) {
            const auto names = unfinished();
            if (names.empty() || fs::file_size(names.front(), gone) == 0 || gone) continue;
            kill(child, signal);
            waitpid(child, &status, 0);
            break;
        }
        // It may come when the file is whole, and end the process all the same.
        const int ended = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), by_signal = signal == SIGINT ? 130 : -signal;
        EXPECT_TRUE(ended == by_signal || (ended == 0 && fs::exists(out_))) << signal << " ended with " << ended;
        EXPECT_TRUE(unfinished().empty()) << signal;
        fs::remove(out_);
    }
}

TEST_F(PackVerb, RefusesInOneLine) {
    const std::vector<std::string> wrong[] = {{"pack", file_, "norm", "-o", out_},
                                              {"pack", file_, "blk.0.down", "-o", out_},
                                              {"pack", file_ + ".none", "norm", "-o", out_},
                                              {"pack", file_, "-o", out_},
                                              {"pack", file_, "blk.0.up"},
                                              {"pack", file_, "blk.0.up", "-o", out_ + "/none/up"},
                                              {"pack", file_, "blk.0.up", "-o", out_, "--quant-scale", "fp32"}};
    for (const auto& arguments : wrong) {
        const Outcome got = run(arguments);
        EXPECT_EQ(got.code, 2) << got.out;
        EXPECT_EQ(std::ranges::count(got.err, '\n'), 1) << got.err;
    }
    EXPECT_FALSE(std::filesystem::exists(out_));
    std::filesystem::create_hard_link(file_, out_);
    const auto bytes = std::filesystem::file_size(file_);
    for (const std::string& same : {file_, out_}) {
        const Outcome got = run({"pack", file_, "blk.0.up", "-o", same});
        EXPECT_EQ(got.code, 2) << got.out;
        EXPECT_EQ(std::filesystem::file_size(file_), bytes);
    }
    std::filesystem::remove(out_);
}

}  // namespace
}  // namespace rooftile
