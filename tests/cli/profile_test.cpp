// `profile` runs a program on the fake driver with the collector in it; `report profile` reads what was kept.
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "rooftile/profile/recorded.hpp"
#include "rooftile/report/terminal.hpp"
#include "tests/cli/program.hpp"
#include "tests/folder.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

std::string read_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream out;
    out << file.rdbuf();
    return out.str();
}

class ProfileVerb : public testing::Test {
  protected:
    void SetUp() override {
        if (!fs::exists(fake_program)) GTEST_SKIP() << "skipped: no fake driver";
        environment_ = plain_environment();
        environment_["ROOFTILE_CUDA_PATH"] = ROOFTILE_FAKE_CUDA;
    }
    /// The fake program with its words, profiled with those flags.
    Outcome profile(const std::vector<std::string>& flags, const std::vector<std::string>& words, const Environment& more = {}) const {
        return profile_of(flags, with({fake_program}, words), more);
    }
    Outcome profile_of(const std::vector<std::string>& flags, const std::vector<std::string>& command, const Environment& more = {}) const {
        Environment environment = environment_;
        for (const auto& [name, value] : more) environment[name] = value;
        return run(with(with(with({"profile"}, flags), {"--"}), command), environment);
    }
    json document(const std::vector<std::string>& flags, const std::vector<std::string>& words, const Environment& more = {}) const {
        const Outcome got = profile(with({"--json"}, flags), words, more);
        EXPECT_EQ(got.code, 0) << got.err;
        EXPECT_EQ(got.err, "");
        json out = json::parse(got.out, nullptr, false);
        EXPECT_EQ(JsonSchema("profile-1.json").faults(out), "");
        return out;
    }
    std::string path(const char* name) const { return (folder_.path() / name).string(); }

    static constexpr const char* fake_program = ROOFTILE_FAKE_CUDA "/program";
    Folder folder_;
    Environment environment_;
};

TEST_F(ProfileVerb, SeesLaunchesGraphsCopiesAndRanges) {
    const json d = document({}, {"init", "push=outer", "push=inner", "launch=4", "pop", "graph=2", "copy", "pop", "sync", "launch=1"});
    ASSERT_EQ(d.at("devices").size(), 1u);
    EXPECT_EQ(d.at("devices")[0].at("name"), "NVIDIA H200");
    EXPECT_EQ(d.at("devices")[0].at("machine"), "h200-sxm");
    EXPECT_EQ(d.at("devices")[0].at("sms"), 132);
    ASSERT_EQ(d.at("kernels").size(), 1u);
    const json& kernel = d.at("kernels")[0];
    EXPECT_EQ(kernel.at("name"), "write_down");
    EXPECT_EQ(kernel.at("calls"), 11);
    EXPECT_EQ(kernel.at("in_graphs"), 6);
    EXPECT_EQ(kernel.at("launches")[0].at("grid"), (std::vector{66, 1, 1}));
    EXPECT_EQ(d.at("host").at("launches"), 5) << "what a graph captured was not launched";
    EXPECT_EQ(d.at("host").at("graph_launches"), 2);
    EXPECT_EQ(d.at("copies").size(), 3u);
    for (const json& copy : d.at("copies")) EXPECT_EQ(copy.at("bytes"), 64);
    std::map<std::string, int> ranges, calls;
    for (const json& range : d.at("ranges")) ranges[range.at("name")] = range.at("kernels");
    for (const json& call : d.at("calls")) calls[call.at("name")] = call.at("count");
    EXPECT_EQ(ranges, (std::map<std::string, int>{{"outer", 10}, {"inner", 4}}));
    EXPECT_EQ(calls["cuLaunchKernelEx"], 8);
    EXPECT_EQ(calls["cuGraphLaunch"], 2);
    EXPECT_EQ(calls["cuStreamSynchronize"], 1);
    EXPECT_GT(d.at("wall_us").get<double>(), 0);
    EXPECT_TRUE(d.at("notices").empty());
}

TEST_F(ProfileVerb, KeepsParametersOfLaunchesAndOfGraphs) {
    const std::string kept = path("made/now");
    ASSERT_EQ(profile({"--recordings", kept}, {"init", "launch=2", "graph=1"}).code, 0);
    int files = 0;
    for (const auto& entry : fs::directory_iterator(kept)) {
        ++files;
        const Recorded r = read_recording(read_file(entry.path()), entry.path().string());
        EXPECT_FALSE(r.cut);
        ASSERT_EQ(r.work.size(), 5u);
        for (const DeviceWork& work : r.work) {
            ASSERT_NE(work.parameters, nullptr);
            EXPECT_EQ(work.parameters->places.size(), 8u);
            EXPECT_EQ(work.parameters->word(16), 4711);
        }
        EXPECT_EQ(r.parameters.size(), 1u) << "what is alike is kept once";
    }
    EXPECT_EQ(files, 1);
    // Another run into the same folder is told of alone.
    const Outcome again = profile({"--recordings", kept, "--json"}, {"init", "launch=1"});
    EXPECT_EQ(json::parse(again.out).at("kernels")[0].at("calls"), 1);
}

TEST_F(ProfileVerb, LooksAtARangeAlone) {
    const std::vector<std::string> words = {"init",      "launch=1", "push=step", "launch=3", "pop",      "launch=2",
                                            "push=step", "launch=3", "pop",       "start",    "launch=5", "stop"};
    const json steps = document({"--range", "step"}, words), between = document({"--range", "cudaProfilerStart"}, words);
    EXPECT_EQ(steps.at("steps"), 2);
    EXPECT_EQ(steps.at("kernels")[0].at("calls"), 6);
    EXPECT_EQ(between.at("steps"), 1);
    EXPECT_EQ(between.at("kernels")[0].at("calls"), 5);
    const Outcome refused = profile({"--range", "nothing"}, words);
    EXPECT_EQ(refused.code, 2);
    EXPECT_EQ(refused.err, "rooftile: no range is called nothing; there are cudaProfilerStart, step\n");
}

TEST_F(ProfileVerb, EachProcessHasItsOwnLines) {
    const Outcome got = profile_of({}, {"/bin/sh", "-c", std::string(fake_program) + " init launch=1; " + fake_program + " init launch=2"});
    EXPECT_EQ(got.code, 0) << got.err;
    EXPECT_THAT(got.out, testing::ContainsRegex("GPU 0: NVIDIA H200, process [0-9]+\n"));
    EXPECT_NE(got.out.find("GPU 0", got.out.find("GPU 0") + 1), std::string::npos) << got.out;
}

// However it ends: a report or one line, and its own exit code.
TEST_F(ProfileVerb, AProgramMayEndAsItLikes) {
    struct Case {
        std::vector<std::string> words;
        int code;
        std::string kernels, error;  ///< calls in the report, empty: there is none; the one line, empty: there is none
    };
    const std::string reported = "; what it did until then is reported", nothing = ": there is nothing to report",
                      last = "it ended without a last word";
    const Case cases[] = {
        {{"init", "launch=2"}, 0, "2", ""},
        {{"init", "launch=2", "exit=7"}, 7, "2", "ended with exit code 7" + reported},
        {{"init", "launch=2", "crash"}, 139, "2", "was ended by signal 11 (Segmentation fault)" + reported},
        {{"init", "launch=2", "abort"}, 134, "2", "was ended by signal 6 (Aborted)" + reported},
        {{"init", "launch=2", "fork=3"}, 0, "2", ""},
        {{"init", "launch=2", "sleep=900", "kill"}, 137, "2", "was ended by signal 9 (Killed)" + reported},
        {{"init", "launch=2", "sleep=900", "_exit=5"}, 5, "2", "ended with exit code 5" + reported},
        {{"init", "launch=2", "_exit=0"}, 6, "", "ended at once (a kill, _exit), before its work was recorded" + nothing},
        {{"init", "launch=2", "kill"},
         137,
         "",
         "was ended by signal 9 (Killed); it ended at once (a kill, _exit), before its work was recorded" + nothing},
        {{"init"}, 6, "", "launched nothing on a GPU" + nothing},
        {{}, 6, "", "did not start CUDA" + nothing},
        {{"exit=3"}, 3, "", "ended with exit code 3; it did not start CUDA" + nothing},
        {{"init", "exec=true"}, 6, "", "before its work was recorded" + nothing},
    };
    for (const Case& each : cases) {
        std::string all;
        for (const std::string& word : each.words) all += " " + word;
        SCOPED_TRACE(all);
        const Outcome got = profile({"--json"}, each.words);
        EXPECT_EQ(got.code, each.code);
        EXPECT_EQ(got.error_lines(), each.error.empty() ? 0 : 1) << got.err;
        EXPECT_THAT(got.err, HasSubstr(each.error));
        const json document = json::parse(got.out, nullptr, false);
        EXPECT_EQ(document.is_object(), !each.kernels.empty()) << got.out;
        if (!document.is_object()) continue;
        EXPECT_EQ(document.at("kernels")[0].at("calls").dump(), each.kernels);
        const bool cut_off = each.code > 128 || each.words.back().starts_with("_exit");
        EXPECT_EQ(document.at("notices").size(), cut_off ? 1u : 0u) << document.at("notices");
        if (cut_off) { EXPECT_THAT(document.at("notices")[0].get<std::string>(), HasSubstr(last)); }
    }
}

// Whatever another thread of the parent holds at that moment, a child ends.
TEST_F(ProfileVerb, ChildrenOfAProgramWithThreadsEnd) {
    const json d = document({}, {"init", "forks=200"});
    EXPECT_GT(d.at("kernels")[0].at("calls").get<int>(), 200);
    EXPECT_TRUE(d.at("notices").empty());
}

TEST_F(ProfileVerb, OutputsStayTheProgramsOwn) {
    const std::string report = path("report.txt");
    const Outcome got = profile({"-o", report}, {"print=hello", "init", "launch=1"});
    EXPECT_EQ(got.out, "hello\n");
    EXPECT_EQ(got.err, "");
    EXPECT_THAT(read_file(report), HasSubstr("write_down"));
}

TEST_F(ProfileVerb, WhatKeepsItFromRecordingIsOneLine) {
    struct Case {
        std::vector<std::string> arguments;
        Environment environment;
        int code;
        std::string error;
    };
    const std::string program = fake_program;
    const Case cases[] = {
        {{"profile", "--", "no-such-program"}, {}, 2, "rooftile: no-such-program did not start: No such file or directory\n"},
        {{"profile"}, {}, 2, "rooftile: profile needs a program after --: rooftile profile -- python3 train.py\n"},
        {{"profile", program, "init"}, {}, 2, "rooftile: profile needs a program after --: rooftile profile -- " + program + " init\n"},
        {{"profile", "--", program},
         {{"CUDA_INJECTION64_PATH", "/x.so"}},
         2,
         "rooftile: CUDA_INJECTION64_PATH is set to /x.so: another profiler is at work; unset it\n"},
        {{"profile", "--", program},
         {{"NVTX_INJECTION64_PATH", "/x.so"}},
         2,
         "rooftile: NVTX_INJECTION64_PATH is set to /x.so: another profiler is at work; unset it\n"},
        {{"profile", "--", program, "init", "launch=1"},
         {{"FAKE_Subscribe", "39"}},
         6,
         "rooftile: " + program + " was not recorded, cuptiSubscribe: CUPTI_ERROR_OF_TEST (39): there is nothing to report\n"},
        {{"profile", "--recordings", "/proc/nowhere", "--", program},
         {},
         2,
         "rooftile: recordings cannot be kept in /proc/nowhere: No such file or directory\n"},
        {{"profile", "--machine", "nothing", "--", program, "print=started"}, {}, 2, "nothing"},
        {{"profile", "--top", "0", "--", program, "print=started"}, {}, 2, "--top"},
        {{"profile", "--timeline", "/no/folder/t.json", "--", program, "print=started"}, {}, 2, "/no/folder"},
    };
    for (const Case& each : cases) {
        Environment environment = environment_;
        for (const auto& [name, value] : each.environment) environment[name] = value;
        const Outcome got = run(each.arguments, environment);
        EXPECT_EQ(got.code, each.code) << got.err;
        EXPECT_THAT(got.err, HasSubstr(each.error));
        EXPECT_EQ(got.error_lines(), 1) << got.err;
        EXPECT_EQ(got.out, "");
    }
}

/// An `ncu` of a folder: writes that text where it is told to, and runs the program.
void write_ncu(const fs::path& folder, const std::string& table) {
    fs::create_directories(folder);
    std::ofstream(folder / "table.csv") << table;
    std::ofstream(folder / "ncu") << "#!/bin/sh\n"
                                     "printf '%s\\n' \"$@\" > "
                                  << (folder / "arguments") << "\n"
                                  << "while [ \"$1\" != --log-file ]; do shift; done\n"
                                     "cp "
                                  << (folder / "table.csv") << " \"$2\"\nshift 2\nexec \"$@\"\n";
    fs::permissions(folder / "ncu", fs::perms::owner_all);
}

TEST_F(ProfileVerb, CountersComeFromASecondRun) {
    const json before = document({}, {"init", "launch=3"});
    const json& launch = before.at("kernels")[0].at("launches")[0];
    const auto extents = [](const json& three) {
        return "\"(" + three.at(0).dump() + ", " + three.at(1).dump() + ", " + three.at(2).dump() + ")\"";
    };
    const std::string table =
        "==PROF== Connected to process 31\n"
        "\"ID\",\"Process ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"dram__bytes_read.sum\",\"dram__bytes_write.sum\"\n"
        "\"\",\"\",\"\",\"\",\"\",\"byte\",\"byte\"\n\"0\",\"31\",\"write_down\","
        + extents(launch.at("block")) + "," + extents(launch.at("grid")) + ",\"1,000\",\"24\"\n";
    const fs::path folder = path("bin");
    write_ncu(folder, table);
    const Environment with_ncu = {{"PATH", folder.string() + ":" + environment_.at("PATH")}};
    const Outcome got = profile({"--counters", "--json"}, {"init", "launch=3"}, with_ncu);
    EXPECT_EQ(got.code, 0) << got.err;
    EXPECT_EQ(got.err, std::string("rooftile: runs ") + fake_program + " again under ncu, for counters of 1 kernel\n");
    const json d = json::parse(got.out, nullptr, false);
    EXPECT_EQ(JsonSchema("profile-1.json").faults(d), "");
    const json& counters = d.at("kernels")[0].at("launches")[0].at("counters");
    EXPECT_EQ(counters.at("dram_read_bytes"), 1000);
    EXPECT_EQ(counters.at("dram_written_bytes"), 24);
    EXPECT_TRUE(counters.at("l2_bytes").is_null());
    // The last of three launches, by the name that the linker has.
    EXPECT_THAT(read_file(folder / "arguments"), HasSubstr("--kernel-id\n::regex:^(write_down)$:2|3\n"));
    EXPECT_THAT(read_file(folder / "arguments"), HasSubstr("dram__bytes_read.sum,"));
    EXPECT_THAT(profile({"--counters"}, {"init", "launch=3"}, with_ncu).out, HasSubstr("1024 B"));
}

TEST_F(ProfileVerb, WithoutCountersTheProfileStands) {
    struct Case {
        std::string table;
        int code;
        std::string error;
    };
    const Case cases[] = {{"==ERROR== ERR_NVGPUCTRPERM - no permission\n", 7,
                           "hardware counters are not permitted here: ncu says ERR_NVGPUCTRPERM - no permission"},
                          {"==ERROR== Unknown option\n", 6, "nothing was counted: ncu says Unknown option"},
                          {"==PROF== no kernels\n", 6, "nothing was counted: no launch of the second run is like one of the first"},
                          {"", 6, "nothing was counted: ncu ended with exit code 0 and wrote nothing"}};
    for (const Case& each : cases) {
        write_ncu(path("bin"), each.table);
        const Outcome got =
            profile({"--counters", "--json"}, {"init", "launch=2"}, {{"PATH", path("bin") + ":" + environment_.at("PATH")}});
        EXPECT_EQ(got.code, each.code) << got.err;
        EXPECT_THAT(got.err, HasSubstr(each.error));
        EXPECT_EQ(got.error_lines(), 2) << got.err;
        EXPECT_EQ(json::parse(got.out, nullptr, false).at("kernels").size(), 1u);
    }
    // Asked for and not there: nothing is run.
    fs::create_directories(path("empty"));
    const Outcome none = profile({"--counters"}, {"print=started"}, {{"PATH", path("empty")}});
    EXPECT_EQ(none.code, 7);
    EXPECT_EQ(none.out, "");
    EXPECT_EQ(none.err,
              "rooftile: --counters runs the program once more under ncu, which is not in PATH; install Nsight Compute, or leave "
              "--counters out\n");
}

TEST_F(ProfileVerb, LostRecordsAreSaid) {
    const json d = document({}, {"init", "launch=2"}, {{"FAKE_RECORDS_DROPPED", "12"}});
    ASSERT_EQ(d.at("notices").size(), 1u);
    EXPECT_EQ(d.at("notices")[0], "12 records were lost: buffers were full");
}

TEST_F(ProfileVerb, WritesWhatIsAskedFor) {
    const Outcome got = profile({"--timeline", path("t.json"), "--flame", path("f.txt"), "--svg", path("p.svg"), "--html", path("p.html"),
                                 "--json", "-o", path("d.json")},
                                {"init", "push=step", "launch=2", "pop"});
    ASSERT_EQ(got.code, 0) << got.err;
    EXPECT_EQ(got.out, "");
    const json trace = json::parse(read_file(path("t.json")));
    int kernels = 0, ranges = 0;
    for (const json& event : trace.at("traceEvents"))
        kernels += event.value("cat", "") == "kernel", ranges += event.value("cat", "") == "range";
    EXPECT_EQ(kernels, 2);
    EXPECT_EQ(ranges, 1);
    EXPECT_THAT(read_file(path("f.txt")), testing::MatchesRegex("step;write_down [0-9]+\n"));
    EXPECT_THAT(read_file(path("p.svg")), HasSubstr("Device time by range and kernel"));
    EXPECT_THAT(read_file(path("p.html")), HasSubstr("write_down"));
    EXPECT_EQ(JsonSchema("profile-1.json").faults(json::parse(read_file(path("d.json")))), "");
    EXPECT_THAT(read_file(path("d.json")), Not(testing::EndsWith("\n\n")));
}

TEST_F(ProfileVerb, OperatorsOfAPythonProgramBecomeRanges) {
    const fs::path site = folder_.path() / "site", torch = site / "torch" / "autograd";
    fs::create_directories(torch);
    std::ofstream(site / "torch" / "__init__.py") << "from . import autograd\n";
    std::ofstream(torch / "__init__.py") << "from . import profiler\n";
    std::ofstream(torch / "profiler.py")
        << "class emit_nvtx:\n    def __init__(self, **given): self.given = given\n    def __enter__(self): open('" << path("ranges")
        << "', 'a').write(repr(self.given))\n";
    std::ofstream(site / "sitecustomize.py") << "import sys\nopen('" << path("own") << "', 'a').write('once ')\nsys.user_did_it = True\n";
    const std::string program =
        "import sys; assert sys.user_did_it; import torch; assert not any('rooftile-profile' in p for p in sys.path), sys.path; "
        "print(torch.__name__)";
    const Environment python_path = {{"PYTHONPATH", site.string()}};
    const Outcome got = profile_of({"--operators"}, {ROOFTILE_PYTHON, "-c", program}, python_path);
    EXPECT_EQ(got.code, 6) << "it launched nothing";
    EXPECT_EQ(got.out, "torch\n") << got.err;
    EXPECT_EQ(got.error_lines(), 1) << got.err;
    EXPECT_EQ(read_file(path("ranges")), "{'record_shapes': True}");
    EXPECT_EQ(read_file(path("own")), "once ");
    // Without it, and without torch, nothing is different.
    EXPECT_EQ(profile_of({}, {ROOFTILE_PYTHON, "-c", program}, python_path).out, "torch\n");
    EXPECT_EQ(read_file(path("ranges")), "{'record_shapes': True}");
    EXPECT_EQ(profile_of({"--operators"}, {ROOFTILE_PYTHON, "-c", "print('plain')"}).out, "plain\n");
    // A torch that has no such ranges is the program's to use.
    std::ofstream(torch / "profiler.py") << "\n";
    const Outcome other = profile_of({"--operators"}, {ROOFTILE_PYTHON, "-c", program}, python_path);
    EXPECT_EQ(other.out, "torch\n");
    EXPECT_THAT(other.err, HasSubstr("rooftile: no ranges of torch's operators: "));
}

TEST_F(ProfileVerb, ARecordingAndADocumentSayTheSame) {
    ASSERT_EQ(profile({"--recordings", path("kept"), "--json", "-o", path("d.json")}, {"init", "push=step", "launch=2", "pop"}).code, 0);
    const std::string recording = fs::directory_iterator(path("kept"))->path().string();
    const Outcome of_document = run({"report", "profile", path("d.json")}), of_recording = run({"report", "profile", recording});
    EXPECT_EQ(of_document.code, 0) << of_document.err;
    EXPECT_EQ(of_recording.code, 0) << of_recording.err;
    const auto without_title = [](const std::string& text) { return text.substr(text.find('\n')); };
    EXPECT_EQ(without_title(of_document.out), without_title(of_recording.out));
    EXPECT_EQ(run({"report", "profile", recording, "--range", "step", "--timeline", path("t.json"), "--html", path("p.html")}).code, 0);
    EXPECT_THAT(read_file(path("p.html")), HasSubstr("write_down"));
    EXPECT_EQ(run({"report", "page", path("d.json"), "-o", path("page.html")}).code, 0);
    EXPECT_EQ(run({"report", "pictures", path("d.json")}).out.find("device"), 0u);
}

// Of the recorded products of a library, which every build has.
class ReportProfile : public testing::Test {
  protected:
    static constexpr const char* products = ROOFTILE_TEST_DATA "/profile/products.rec";
    std::string path(const char* name) const { return (folder_.path() / name).string(); }
    Folder folder_;
};

TEST_F(ReportProfile, ComparesTwo) {
    ASSERT_EQ(run({"report", "profile", products, "--json", "-o", path("a.json")}).code, 0);
    const Outcome got = run({"report", "profile", path("a.json"), products, "--top", "3"});
    EXPECT_EQ(got.code, 0) << got.err;
    EXPECT_THAT(got.out, HasSubstr("+0.0 %"));
    EXPECT_THAT(got.out, Not(HasSubstr("new")));
    EXPECT_EQ(JsonSchema("profile-1.json").faults(json::parse(read_file(path("a.json")))), "");
}

TEST_F(ReportProfile, KeepsToTheTerminal) {
    for (const char* columns : {"80", "160"}) {
        Environment environment = without_gpu();
        environment["COLUMNS"] = columns;
        std::istringstream lines(run({"report", "profile", products, "--top", "40"}, environment).out);
        int count = 0;
        for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(columns_of(line), std::atoi(columns)) << line;
        EXPECT_GT(count, 60);
    }
}

TEST_F(ReportProfile, RefusesInOneLine) {
    std::ofstream(path("other.json")) << R"({"schema": "rooftile/plan/1"})";
    std::ofstream(path("hollow.json")) << R"({"schema": "rooftile/profile/1", "steps": 1})";
    std::ofstream(path("text")) << "not JSON";
    std::ofstream(path("old.rec")) << "roofrec0 and more";
    ASSERT_EQ(run({"report", "profile", products, "--json", "-o", path("good.json")}).code, 0);
    expect_refused({"report", "profile"}, {"report profile FILE [FILE]"});
    expect_refused({"report", "profile", path("none")}, {path("none")});
    for (const char* file : {"other.json", "text", "old.rec"})
        expect_refused({"report", "profile", path(file)}, {path(file), "no profile", "rooftile profile --json"});
    expect_refused({"report", "profile", path("hollow.json")}, {path("hollow.json"), "lacks what its schema promises"});
    expect_refused({"report", "profile", path("good.json"), path("hollow.json")}, {path("hollow.json"), "lacks what its schema promises"});
    expect_refused({"report", "profile", products, path("text")}, {path("text"), "no profile"});
    expect_refused({"report", "profile", products, products, "--json"}, {"compared as text", "--json"});
    expect_refused({"report", "profile", products, products, "--html", path("p.html")}, {"compared as text", "--html"});
    expect_refused({"report", "profile", products, "--range", "none"}, {"no range is called none; there are shape ", " more"});
    expect_refused({"report", "profile", path("good.json"), "--range", "none"}, {"--range needs a recording", "--recordings"});
    expect_refused({"report", "profile", path("good.json"), "--timeline", path("t.json")}, {"--timeline needs a recording"});
    expect_refused({"report", "profile", path("good.json"), "--machine", "h100-sxm"}, {"--machine needs a recording"});
    expect_refused({"report", "profile", products, "--top", "1001"}, {"--top", "1000"});
    expect_refused({"report", "profile", products, "--picture", "none", "--svg", path("p.svg")}, {"there are device, kernels, flame"});
}

TEST(ProfileHelp, ShowsHowItIsCalled) {
    const Outcome help = run({"profile", "--help"});
    EXPECT_EQ(help.code, 0);
    for (const char* part : {"rooftile profile -- python3 train.py", "--range NAME", "--operators", "--recordings DIR", "--timeline FILE",
                             "--flame FILE", "--html FILE"})
        EXPECT_THAT(help.out, HasSubstr(part));
}

}  // namespace
}  // namespace rooftile
