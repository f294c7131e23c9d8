// How the program behaves whatever it computes: exit codes, streams, colour, formats, help.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

const std::vector<std::string> small_plan = {"plan",        "gemm",      "--shape",
                                             "512x512x512", "--machine", "h100-sxm"};

std::vector<std::string> lines_of(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

TEST(Program, PlansWithoutAGpuAndWithoutMessages) {
    const Outcome outcome = run(small_plan);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_NE(outcome.out.find("gemm 512 × 512 × 512"), std::string::npos);
}

TEST(Program, WithoutMachineAndGpuItSaysWhatItPlansFor) {
    const Outcome outcome = run({"plan", "gemm", "--shape", "512x512x512"});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.error_lines(), 1);
    EXPECT_NE(outcome.err.find("h100-sxm"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.out.find("h100-sxm"), std::string::npos);
}

TEST(Program, TheFallbackIsANoteOfTheDocument) {
    const Outcome json = run({"plan", "gemm", "--shape", "512x512x512", "--json"});
    EXPECT_EQ(json.err, "");
    EXPECT_NE(nlohmann::json::parse(json.out).at("notes").dump().find("h100-sxm"), std::string::npos);
    for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--json"}}) {
        const Outcome nothing = run(with({"plan", "gemm", "--shape", "65x64x7", "--pack-a", "off"}, more));
        EXPECT_EQ(nothing.code, 10);
        EXPECT_EQ(nothing.error_lines(), 1) << nothing.err;
        if (!more.empty()) {
            const auto notes = nlohmann::json::parse(nothing.out).at("notes");
            EXPECT_NE(notes.dump().find("no usable GPU"), std::string::npos) << notes;
        }
    }
}

TEST(Program, EveryDocumentSaysWhatMadeIt) {
    for (const auto& words : std::vector<std::vector<std::string>>{
             {"doctor"}, {"machine", "list"}, {"machine", "show", "h100-sxm"}, small_plan}) {
        const auto context = nlohmann::json::parse(run(with(words, {"--json"})).out).at("context");
        for (const char* key : {"version", "machine_hash", "kernel_hash", "command"})
            EXPECT_TRUE(context.contains(key)) << words[0] << " " << key;
        const bool one_machine = words.size() > 2;
        EXPECT_EQ(context.at("machine_hash").is_null(), !one_machine) << words[0];
        EXPECT_EQ(context.at("command").get<std::string>().rfind("rooftile " + words[0], 0), 0u);
    }
}

TEST(Program, WhereAGpuIsNeededAndThereIsNone) {
    for (const auto& words : std::vector<std::vector<std::string>>{
             {"measure", "gemm", "--shape", "512x512x512"},
             {"measure", "gemm", "--shape", "512x512x512", "--json"},
             {"measure", "gemm", "--shape", "512x512x512", "--counters"},
             {"measure", "gemm", "--shape", "512x512x512", "--machine", "h100-sxm"},
             {"machine", "show"}}) {
        const Outcome outcome = run(words);
        EXPECT_EQ(outcome.code, 4) << words[0] << outcome.err;
        EXPECT_EQ(outcome.out, "");
        EXPECT_EQ(outcome.error_lines(), 1) << outcome.err;
        // What one can do here instead.
        EXPECT_NE(outcome.err.find(words[0] == "measure" ? "`rooftile build gemm ...` works here" : "`rooftile machine list`"), std::string::npos) << outcome.err;
    }
    EXPECT_EQ(run({"doctor", "--require", "gpu"}).code, 4);
    EXPECT_EQ(run({"doctor"}).code, 0);
}

TEST(Program, DoctorNamesStatusAndFix) {
    const auto document = nlohmann::json::parse(run({"doctor", "--json"}).out);
    EXPECT_EQ(document.at("schema"), "rooftile/doctor/1");
    EXPECT_EQ(document.at("gpu_usable"), false);
    ASSERT_FALSE(document.at("findings").empty());
    for (const auto& finding : document.at("findings")) {
        const std::string status = finding.at("status");
        EXPECT_TRUE(status == "OK" || status == "WARN" || status == "FAIL") << status;
        EXPECT_TRUE(status == "OK" || finding.at("fix") != "") << finding;
    }
}

TEST(Program, JsonFollowsItsSchema) {
    const JsonSchema schema("plan-1.json");
    for (const auto& more :
         std::vector<std::vector<std::string>>{{},
                                               {"--machine", "a100-80-sxm"},
                                               {"--machine", "v100-sxm2", "--type", "fp16"},
                                               {"--machine", "b200"}}) {
        const Outcome outcome = run(with({"plan", "gemm", "--shape", "4096x4096x4096", "--json"}, more));
        ASSERT_EQ(outcome.code, 0) << outcome.err;
        const auto document = nlohmann::json::parse(outcome.out);
        EXPECT_EQ(schema.faults(document), "");
        EXPECT_EQ(document.at("context").at("command").get<std::string>().rfind("rooftile plan gemm", 0), 0u);
    }
}

TEST(Program, JsonLinesAreAContextAndRows) {
    const auto lines = lines_of(run(with(small_plan, {"--jsonl", "--top", "3"})).out);
    ASSERT_EQ(lines.size(), 4u);
    EXPECT_EQ(nlohmann::json::parse(lines[0]).at("schema"), "rooftile/plan/1");
    for (int i : {1, 2, 3}) {
        const auto row = nlohmann::json::parse(lines[std::size_t(i)]);
        EXPECT_EQ(row.at("rank"), i);
        EXPECT_EQ(row.at("problem").at("m"), 512);
        EXPECT_EQ(row.at("machine").at("id"), "h100-sxm");
    }
}

TEST(Program, CsvIsOneLineAPlan) {
    const auto lines = lines_of(run(with(small_plan, {"--csv", "--top", "2"})).out);
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_NE(lines[0].find("time_us"), std::string::npos);
    EXPECT_EQ(lines[1].rfind("h100-sxm,gemm,512,512,512,", 0), 0u);
}

TEST(Program, NothingFitsKeepsTheLoopGoing) {
    const std::vector<std::string> odd = {"plan",    "gemm",     "--shape",  "512x512x7",
                                          "--pack-b", "off", "--machine", "h100-sxm"};
    const Outcome text = run(odd);
    EXPECT_EQ(text.code, 10);
    EXPECT_EQ(text.out, "");
    EXPECT_EQ(text.error_lines(), 1) << text.err;
    const Outcome json = run(with(odd, {"--json"}));
    EXPECT_EQ(json.code, 10);
    EXPECT_EQ(json.error_lines(), 1) << json.err;
    const auto document = nlohmann::json::parse(json.out);
    EXPECT_EQ(JsonSchema("plan-1.json").faults(document), "");
    EXPECT_TRUE(document.at("plans").empty());
    EXPECT_EQ(document.at("infeasible").at("reason"), "alignment");
    EXPECT_EQ(lines_of(run(with(odd, {"--jsonl"})).out).size(), 1u);
}

TEST(Program, ColourOnlyWhereAsked) {
    const auto escape = [](const Outcome& outcome) { return outcome.out.find('\x1b') != std::string::npos; };
    EXPECT_FALSE(escape(run(small_plan)));  // a pipe is no terminal
    EXPECT_TRUE(escape(run(with(small_plan, {"--color", "always"}))));
    Environment env = without_gpu();
    env["CLICOLOR_FORCE"] = "1";
    EXPECT_TRUE(escape(run(small_plan, env)));
    EXPECT_FALSE(escape(run(with(small_plan, {"--color", "never"}), env)));
    env["NO_COLOR"] = "1";
    EXPECT_FALSE(escape(run(small_plan, env)));
    EXPECT_TRUE(escape(run(with(small_plan, {"--color", "always"}), env)));
    EXPECT_FALSE(escape(run(with(small_plan, {"--json", "--color", "always"}))));
}

TEST(Program, WidthAndCharacterSetOfTheTerminal) {
    Environment env = without_gpu();
    env["COLUMNS"] = "70";
    env["LC_ALL"] = "C";
    const Outcome outcome = run(with(small_plan, {"--explain"}), env);
    for (const auto& line : lines_of(outcome.out)) EXPECT_LE(line.size(), 70u) << line;
    for (char c : outcome.out) EXPECT_LT(static_cast<unsigned char>(c), 0x80);
}

TEST(Program, TheLocaleChangesNoNumber) {
    const Outcome plain = run(with(small_plan, {"--explain"}));
    Environment env = without_gpu();
    env["LC_ALL"] = "de_DE.UTF-8";
    EXPECT_EQ(run(with(small_plan, {"--explain"}), env).out, plain.out);
    EXPECT_EQ(run(with(small_plan, {"--set", "dram.bandwidth=3.5 TB/s"}), env).code, 0);
    expect_refused(with(small_plan, {"--set", "dram.bandwidth=3,5 TB/s"}), {"dram.bandwidth", "3,5"});
}

TEST(Program, AReaderThatGoesAwayIsNoFault) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    close(ends[0]);
    const std::string path = "/proc/self/fd/" + std::to_string(ends[1]);
    // The child opens the pipe's writing end, which nobody reads.
    const Outcome outcome = run(with(small_plan, {"--explain"}), without_gpu(), path);
    close(ends[1]);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
}

// The document is larger than a pipe: the program waits for its reader until Ctrl-C comes.
TEST(Program, AnInterruptEndsItWith130) {
    int out[2];
    ASSERT_EQ(pipe(out), 0);
    std::vector<std::string> argv = with({program()}, with(small_plan, {"--json", "--top", "64"}));
    auto pointers = detail::pointers(argv);
    const pid_t child = fork();
    if (child == 0) {
        dup2(out[1], 1);
        close(2);
        execv(pointers[0], pointers.data());
        _exit(127);
    }
    close(out[1]);
    char first;
    ASSERT_EQ(read(out[0], &first, 1), 1);  // it is writing
    kill(child, SIGINT);
    int status = 0;
    waitpid(child, &status, 0);
    close(out[0]);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 130);
}

TEST(Program, AFullDiskIsAFault) {
    const Outcome outcome = run(small_plan, without_gpu(), "/dev/full");
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.error_lines(), 1) << outcome.err;
}

TEST(Program, ResultsGoToAFile) {
    const auto path =
        std::filesystem::temp_directory_path() / ("rooftile-out-" + std::to_string(getpid()) + ".json");
    const Outcome outcome = run(with(small_plan, {"--json", "-o", path.string()}));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    std::ifstream file(path);
    EXPECT_EQ(nlohmann::json::parse(file).at("schema"), "rooftile/plan/1");
    std::filesystem::remove(path);
    expect_refused(with(small_plan, {"--json", "--out", "/nonexistent/x.json"}),
                   {"--out /nonexistent/x.json: cannot write"});
    EXPECT_EQ(run(with(small_plan, {"--out", "/dev/null"})).code, 0);
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(Program, EveryVerbExplainsItself) {
    for (const auto& verb : std::vector<std::vector<std::string>>{{},
                                                                  {"machine"},
                                                                  {"machine", "list"},
                                                                  {"machine", "show"},
                                                                  {"plan"},
                                                                  {"plan", "gemm"},
                                                                  {"build", "gemm"},
                                                                  {"measure", "gemm"},
                                                                  {"doctor"},
                                                                  {"simulate"},
                                                                  {"simulate", "gemm"},
                                                                  {"sweep"},
                                                                  {"sweep", "gemm"}}) {
        for (const char* help : {"-h", "--help"}) {
            const Outcome outcome = run(with(verb, {help}));
            EXPECT_EQ(outcome.code, 0) << outcome.err;
            EXPECT_EQ(outcome.err, "");
            EXPECT_NE(outcome.out.find("Usage: rooftile"), std::string::npos) << outcome.out;
        }
    }
    for (const auto& verb : std::vector<std::vector<std::string>>{{},
                                                                  {"machine", "list"},
                                                                  {"machine", "show"},
                                                                  {"plan", "gemm"},
                                                                  {"build", "gemm"},
                                                                  {"simulate", "gemm"},
                                                                  {"measure", "gemm"},
                                                                  {"doctor"}})
        EXPECT_NE(run(with(verb, {"-h"})).out.find("Example"), std::string::npos)
            << (verb.empty() ? "" : verb[0]);
    EXPECT_EQ(run({"--version"}).out.rfind("rooftile ", 0), 0u);
}

TEST(Program, MachinesAreListedAndShown) {
    const Outcome list = run({"machine", "list"});
    for (const char* id : {"v100-sxm2", "a100-40-sxm", "a100-80-sxm", "a40", "rtx4090", "l40s", "h100-sxm",
                           "h100-pcie", "h800-sxm", "h200-sxm", "h20", "b200"})
        EXPECT_NE(list.out.find(id), std::string::npos) << id;
    const auto shown =
        nlohmann::json::parse(run({"machine", "show", "h100-sxm", "--set", "sm.count=7", "--json"}).out);
    EXPECT_EQ(shown.at("schema"), "rooftile/machine/1");
    bool found = false;
    for (const auto& fact : shown.at("facts"))
        if (fact.at("key") == "sm.count") {
            found = true;
            EXPECT_EQ(fact.at("value"), 7);
            EXPECT_EQ(fact.at("source"), "--set");
        }
    EXPECT_TRUE(found);
}

TEST(Program, AMachineFileRoundTrips) {
    const auto path =
        std::filesystem::temp_directory_path() / ("rooftile-machine-" + std::to_string(getpid()) + ".toml");
    ASSERT_EQ(run({"machine", "show", "h100-sxm", "--toml", "-o", path.string()}).code, 0);
    const auto hash = [](const Outcome& outcome) {
        return nlohmann::json::parse(outcome.out).at("context").at("machine_hash").get<std::string>();
    };
    EXPECT_EQ(hash(run({"machine", "show", path.string(), "--json"})),
              hash(run({"machine", "show", "h100-sxm", "--json"})));
    std::filesystem::remove(path);
}

}  // namespace
}  // namespace rooftile
