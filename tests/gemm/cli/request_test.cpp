// Wrong requests: exit code 2, one clear line, nothing on stdout.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "rooftile/report/terminal.hpp"
#include "tests/cli/program.hpp"

namespace rooftile {
namespace {

TEST(Request, SizesOutsideWhatIsAccepted) {
    for (const char* m :
         {"0", "-1", "1180591620717411303424", "1e3", "abc", "2147483648", "0x10", "+5", " 5", "4.0"})
        expect_refused({"plan", "gemm", "--m", m, "--n", "64", "--k", "64"}, {"--m", m, "1 .. 2147483647"});
    expect_refused({"plan", "gemm", "--m", "", "--n", "64", "--k", "64"}, {"--m"});
    expect_refused({"plan", "gemm", "--shape", "4096x0x64"}, {"--shape 4096x0x64", "1 .. 2147483647"});
    expect_refused({"plan", "gemm", "--shape", "4096x64"}, {"--shape 4096x64", "MxNxK"});
    expect_refused({"plan", "gemm", "--shape", "4096x64x64x"}, {"MxNxK"});
    expect_refused({"plan", "gemm", "--n", "64"}, {"missing --m, --k", "--shape"});
    expect_refused({"plan", "gemm", "--shape", "64x64x64", "--m", "64"}, {"--shape", "exclude"});
    expect_refused({"plan", "gemm", "--m", "64", "--m", "65"}, {"--m is given more than once"});
    expect_refused({"plan", "gemm", "--m"}, {"--m needs a value"});
    expect_refused({"plan", "gemm", "--shape", "2147483647x2147483647x2147483647"}, {"2^63"});
}

Environment with_variable(const std::string& name, const std::string& value) {
    Environment environment = without_gpu();
    environment[name] = value;
    return environment;
}

// However one is used to write it.
TEST(Request, UsualSpellingsAreTaken) {
    const auto planned = [](std::vector<std::string> words) {
        words.insert(words.begin(), {"plan", "gemm"});
        words.push_back("--csv");
        const Outcome outcome = run(words, without_gpu());
        EXPECT_EQ(outcome.code, 0) << testing::PrintToString(words) << outcome.err;
        return outcome.out;
    };
    const std::string plain = planned({"--m", "4096", "--n", "14336", "--k", "4096", "--type", "bf16", "--machine", "h200-sxm"});
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"4096x14336x4096", "--machine", "h200-sxm"},
             {"4096X14336X4096", "--machine", "H200-SXM"},
             {"--shape", "4096,14336,4096", "--machine", "h200", "--type", "torch.bfloat16"},
             {"--m", "4k", "--n", "14_336", "--k", "4Ki", "--machine", "H200", "--type", "bfloat16"}})
        EXPECT_EQ(planned(words), plain) << testing::PrintToString(words);
    expect_refused({"plan", "gemm", "64x64x64", "--machine", "A100"}, {"a100-40-sxm", "a100-80-sxm"});
    for (const char* size : {"4q", "k", "_4", "4_", "4i", "9223372036854775807k"}) expect_refused({"plan", "gemm", "--m", size, "--n", "64", "--k", "64"}, {size});
    const auto variable = with_variable("ROOFTILE_MACHINE", "h200-sxm");
    EXPECT_EQ(run({"plan", "gemm", "4096x14336x4096", "--csv"}, variable).out, plain);
}

TEST(Request, HelpIsAVerbAndKeepsToTheWidth) {
    EXPECT_EQ(run({"help", "plan", "gemm"}).out, run({"plan", "gemm", "-h"}).out);
    EXPECT_EQ(run({"version"}).out, run({"--version"}).out);
    EXPECT_EQ(run({}).out, run({"-h"}).out);
    const std::string all = run({"-h"}).out;
    EXPECT_NE(all.find("Usage"), std::string::npos);
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{}, {"plan", "gemm"}, {"sweep", "gemm"}, {"measure", "gemm"}, {"plan", "fuse"}, {"machine", "probe"}, {"plan", "attention"}}) {
        auto asked = words;
        asked.push_back("-h");
        for (const int width : {80, 100}) {
            std::istringstream lines(run(asked, with_variable("COLUMNS", std::to_string(width))).out);
            for (std::string line; std::getline(lines, line);)
                if (line.find("rooftile ") == line.npos) { EXPECT_LE(columns_of(line), width) << line; }  // an example is copied whole
        }
    }
}

TEST(Request, UnknownNamesListWhatIsAccepted) {
    const std::vector<std::string> gemm = {"plan", "gemm", "--shape", "64x64x64"};
    auto with = [&](std::vector<std::string> more) {
        auto all = gemm;
        all.insert(all.end(), more.begin(), more.end());
        return all;
    };
    expect_refused(with({"--machine", "h1000"}), {"h1000", "h100-sxm", "a100-80-sxm", "v100-sxm2"});
    expect_refused(with({"--type", "fp7"}), {"--type fp7", "bf16", "fp16"});
    expect_refused(with({"--schedule", "fast"}), {"--schedule fast", "cooperative", "pingpong"});
    expect_refused(with({"--order", "spiral"}), {"--order spiral", "row", "hilbert"});
    for (const char* operands : {"d", "cc", "C", "none,c"})
        expect_refused(with({"--evict-first", operands}),
                       {std::string("--evict-first ") + operands, "none, or letters of a, b and c"});
    expect_refused(with({"--a-major", "n"}), {"--a-major n", "k, m"});
    expect_refused(with({"--b-major", "m"}), {"--b-major m", "k, n"});
    expect_refused(with({"--color", "blue"}), {"--color blue", "auto, always, never"});
    expect_refused(with({"--set", "sm.cout=3"}), {"sm.cout", "sm.count"});
    expect_refused(with({"--set", "sm.count"}), {"sm.count"});
    expect_refused(with({"--set", "dram.bandwidth=4"}), {"dram.bandwidth", "B/s"});
    expect_refused(with({"--machine", ""}), {"--machine"});
    expect_refused({"plam"}, {"plam", "plan", "measure", "doctor"});
    expect_refused({"plan", "gem"}, {"gem", "gemm"});
    expect_refused({"machine", "lst"}, {"lst", "list", "show", "probe"});
    expect_refused({"plan"}, {"rooftile plan gemm"});
}

TEST(Request, FlagsThatDoNotExistNameTheNearest) {
    expect_refused({"plan", "gemm", "--shape", "64x64x64", "--stage", "4"}, {"--stage", "--stages"});
    expect_refused({"plan", "gemm", "--shpae=64x64x64"}, {"--shpae", "--shape"});
    expect_refused({"plan", "gemm", "-m", "64"}, {"-m", "--m"});
    expect_refused({"--jsno"}, {"--jsno"});
    expect_refused({"plan", "gemm", "64x64x64", "12"}, {"unexpected argument 12"});
    expect_refused({"plan", "gemm", "64", "64", "64"}, {"unexpected argument 64"});
    expect_refused({"plan", "gemm", "--shape", "64x64x64", "--layout", "tn"}, {"--a-major", "--b-major"});
}

TEST(Request, FixedParametersOutsideAnyHardware) {
    for (const char* flag :
         {"--stages", "--consumer-warpgroups", "--group", "--split-k", "--ctas-per-sm", "--top"})
        for (const char* value : {"0", "-2", "many", "99999999999999999999"})
            expect_refused({"plan", "gemm", "--shape", "64x64x64", flag, value}, {flag, value, "1 .. "});
    expect_refused({"plan", "gemm", "--shape", "64x64x64", "--tile", "128x256"}, {"--tile 128x256", "MxNxK"});
    expect_refused({"plan", "gemm", "--shape", "64x64x64", "--cluster", "2x0"}, {"--cluster 2x0"});
    expect_refused({"plan", "gemm", "--shape", "64x64x64", "--lda", "63"}, {"lda = 63", "64"});
}

TEST(Request, WhatIsNotAvailableSaysSo) {
    expect_refused({"validate", "--ledger", "/nowhere/l.jsonl"}, {"/nowhere/l.jsonl"});
    expect_refused({"ledger", "gemm", "--seed", "7", "--plan-only"}, {"--draw N"});
    expect_refused({"ledger", "gemm", "--draw", "3"}, {"--out FILE", "--plan-only"});
    expect_refused({"machine", "probe", "--out", "/nowhere/mine.toml"},
                   {"--out /nowhere/mine.toml", "cannot write"});
    expect_refused({"machine", "probe", "--data", "/tmp"}, {"--data /tmp", "cannot write"});
    expect_refused({"machine", "compare", "one.json"}, {"compare A B"});
    expect_refused({"machine", "probe", "--only", "tma,dice"}, {"no probe \"dice\"", "tma, lines, energy"});
    expect_refused({"measure", "gemm", "--shape", "64x64x64", "--mode", "warm"},
                   {"--mode warm", "sustained"});
    expect_refused({"measure", "gemm", "--shape", "64x64x64", "--baseline", "mkl"},
                   {"--baseline mkl", "cublaslt"});
    expect_refused({"measure", "gemm", "--shape", "64x64x64", "--seed", "-1"}, {"--seed -1"});
    expect_refused({"doctor", "--require", "tpu"}, {"--require tpu", "gpu"});
}

TEST(Request, SuitesAndReports) {
    const std::string suite = ROOFTILE_SOURCE_DIR "/bench/suites/gemm.toml";
    expect_refused({"measure", "gemm", "--shape", "64x64x64", "--suite", suite},
                   {"--suite and --shape", "exclude"});
    expect_refused({"measure", "gemm", "--suite", suite, "--json"}, {"--suite", "--json"});
    expect_refused({"measure", "gemm", "--suite", suite, "--filter", "nothing like it"},
                   {"--filter nothing like it", "no problem"});
    expect_refused({"measure", "gemm", "--suite", suite, "--max-seconds", "soon"}, {"--max-seconds soon"});
    expect_refused({"measure", "gemm", "--suite", suite, "--rounds", "0"}, {"--rounds 0", "1 .. 1000"});
    expect_refused({"measure", "gemm", "--suite", "/nonexistent.toml"},
                   {"/nonexistent.toml", "no such file"});
    expect_refused({"measure", "gemm", "--suite", suite, "--out", suite}, {"gemm.toml:1", "suite's run"});
    expect_refused({"measure", "gemm", "--shape", "64x64x64", "--filter", "x"}, {"--filter", "--suite"});
    expect_refused({"report"}, {"report what?", "report suite"});
    expect_refused({"report", "suite"}, {"report suite FILE.jsonl"});
    expect_refused({"report", "suite", "/nonexistent.jsonl"}, {"/nonexistent.jsonl", "no such file"});
    expect_refused({"report", "suite", suite}, {"gemm.toml:1", "suite's run"});
}

TEST(Request, FormatsExcludeEachOther) {
    expect_refused({"plan", "gemm", "--shape", "64x64x64", "--json", "--csv"}, {"exclude each other"});
    expect_refused({"plan", "gemm", "--shape", "64x64x64", "--jsonl", "--json"}, {"exclude each other"});
    expect_refused({"build", "gemm", "--shape", "64x64x64", "--json", "--ptx"}, {"exclude each other"});
    expect_refused({"machine", "show", "h100-sxm", "--json", "--toml"}, {"exclude each other"});
}

class MachineFiles : public testing::Test {
  protected:
    void SetUp() override {
        folder = std::filesystem::temp_directory_path() / ("rooftile-request-" + std::to_string(getpid()));
        std::filesystem::create_directories(folder);
    }
    void TearDown() override { std::filesystem::remove_all(folder); }

    std::string file(const std::string& name, const std::string& text) const {
        std::ofstream(folder / name, std::ios::binary) << text;
        return (folder / name).string();
    }
    void refused(const std::string& path, const std::vector<std::string>& words) const {
        expect_refused({"plan", "gemm", "--shape", "64x64x64", "--machine", path, "--json"}, words);
        expect_refused({"machine", "show", path}, words);
    }
    std::filesystem::path folder;
};

TEST_F(MachineFiles, HostileFilesGetOneLine) {
    std::string deep_key = "a", deep_array = "a = ";
    for (int i = 0; i < 100000; ++i) deep_key += ".a";
    deep_array += std::string(100000, '[');
    std::string binary;
    for (int i = 0; i < 4096; ++i) binary += char(i * 37);
    refused(file("large.toml", std::string(1 << 20, '#')), {"large.toml"});
    refused(file("binary.toml", binary), {"binary.toml"});
    refused(file("deep-key.toml", deep_key + " = 1\n"), {"deep-key.toml"});
    refused(file("deep-array.toml", deep_array), {"deep-array.toml"});
    refused((folder / "missing.toml").string(), {"missing.toml"});
    refused(folder.string(), {folder.filename().string()});
    refused("/dev/zero", {"/dev/zero"});
    refused(file("empty.toml", ""), {"empty.toml"});
    refused(file("no-toml.toml", "this is no TOML\n"), {"no-toml.toml"});
    refused(file("escape.toml", "id = \"\x1b[31m\"\n"), {"escape.toml"});
}

TEST_F(MachineFiles, BadValuesNameFileKeyValueAndWhatIsAccepted) {
    const std::string head = "schema = \"rooftile/machine/1\"\nid = \"mine\"\nname = \"mine\"\n";
    refused(file("unit.toml", head + "dram.bandwidth = \"3 apples\"\n"),
            {"unit.toml", "dram.bandwidth", "apples", "B/s"});
    refused(file("range.toml", head + "sm.count = 0\n"), {"range.toml", "sm.count", "0"});
    refused(file("key.toml", head + "sm.cuont = 4\n"), {"key.toml", "sm.cuont", "sm.count"});
}

TEST(Request, MessagesHoldNoControlCharacters) {
    const Outcome outcome = run({"plan", "gemm", "--m", "\x1b[31m5", "--n", "6", "--k", "7"});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos);
    EXPECT_EQ(run({"pl\x1b[2Jan"}).err.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace rooftile
