#include "rooftile/machine/read.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include <gmock/gmock.h>

#include "rooftile/embedded.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/units_text.hpp"
#include "tests/machine/machine_text.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;

Machine parsed(std::string_view body) { return parse_machine(with_head(body), "x.toml"); }

TEST(ReadMachine, EveryFormOfANumber) {
    const Machine m = parsed(R"(
sm.count = 132
sm.max_warps = "64 warps"
sm.max_ctas = {value = 32, source = "header"}
dram.bandwidth = "3.35 TB/s"
[l2]
size = {value = "50 MiB"}
bandwidth = {value = 35, unit = "B/clk/SM", source = "measured"}
[rate.wgmma.bf16]
fp32 = "4096 FLOP/clk/SM"
)");
    EXPECT_EQ(m.id, "x");
    EXPECT_EQ(m.name, "X");
    EXPECT_EQ(m.arch, "");
    EXPECT_EQ(m.count("sm.count"), 132);
    EXPECT_EQ(m.count("sm.max_warps"), 64);
    EXPECT_EQ(m.find("sm.max_ctas")->source, "header");
    EXPECT_EQ(m.find("sm.count")->source, "x.toml");
    EXPECT_EQ(m.number<Bandwidth>("dram.bandwidth"), Bandwidth(3.35e12));
    EXPECT_EQ(m.find("dram.bandwidth")->text, "3.35 TB/s");
    EXPECT_EQ(m.number<BytesPerCycle>("l2.bandwidth", Per::sm), BytesPerCycle(35));
    EXPECT_EQ(m.number<BytesPerCycle>("l2.bandwidth", Per::gpu), std::nullopt);
    EXPECT_EQ(m.find("l2.bandwidth")->text, "35 B/clk/SM");
    EXPECT_EQ(m.number<Bytes>("l2.size"), Bytes(52428800));
    EXPECT_EQ(m.number<FlopsPerCycle>("rate.wgmma.bf16.fp32", Per::sm), FlopsPerCycle(4096));
    EXPECT_EQ(m.find("dram.latency"), nullptr);
}

TEST(ReadMachine, WithoutArchitectureFeaturesAreUnknown) {
    const Machine m = parsed("");
    EXPECT_FALSE(m.has("wgmma"));
    EXPECT_FALSE(m.lacks("wgmma"));
}

TEST(ReadMachine, ArchitectureFirstThenTheMachinesOwn) {
    const Machine m = parsed(R"(
arch = "sm_90"
shared.per_sm = "100 KiB"
sm.named_barriers = "unknown"
[features]
tma = false
cluster = "unknown"
)");
    EXPECT_EQ(m.arch, "sm_90");
    EXPECT_EQ(m.number<Bytes>("shared.per_cta"), Bytes(232448));     // from the architecture
    EXPECT_EQ(m.number<Bytes>("shared.per_sm"), Bytes(100 * 1024));  // overridden
    EXPECT_EQ(m.find("sm.named_barriers"), nullptr);                 // taken back
    EXPECT_TRUE(m.has("wgmma"));
    EXPECT_TRUE(m.lacks("tma"));
    EXPECT_FALSE(m.has("cluster") || m.lacks("cluster"));
}

TEST(ReadMachine, RefusalsNameFileLineKeyValueAndWhatIsAccepted) {
    EXPECT_EQ(
        body_refusal("dram.bandwidth = \"3.35 XB/s\""),
        "x.toml:4: dram.bandwidth = \"3.35 XB/s\": unknown unit \"XB\" in \"XB/s\"; accepted: B/s, B/clk or "
        "B/clk/SM; 1000000 to 1e+18 B/s");
    EXPECT_EQ(body_refusal("sm.count = 0"),
              "x.toml:4: sm.count = \"0\": out of range; accepted: 1 to 4096 SMs");
    EXPECT_EQ(body_refusal("l2.siez = \"1 MiB\""),
              "x.toml:4: l2.siez = \"1 MiB\": unknown key; did you mean \"l2.size\"?");
    EXPECT_EQ(
        body_refusal("\n\nsm.registers = true"),
        "x.toml:6: sm.registers = true: wrong type; accepted: a whole number, 1 to 16777216 registers, as "
        "\"NUMBER UNIT\" or {value, unit, source}");
}

TEST(ReadMachine, UnknownKeys) {
    EXPECT_THAT(body_refusal("l3.size = \"1 MiB\""),
                HasSubstr("l3.size = \"1 MiB\": unknown key; did you mean \"l2.size\"?"));
    EXPECT_THAT(body_refusal("rat.wgmma.bf16.fp32 = \"1 FLOP/clk/SM\""),
                HasSubstr("did you mean \"rate.wgmma.bf16.fp32\""));
    EXPECT_THAT(
        body_refusal("rate.wgma.bf16.fp32 = \"1 FLOP/clk/SM\""),
        HasSubstr("no instruction family \"wgma\"; accepted: wgmma, mma_sync, tcgen05, fma, generic"));
    EXPECT_THAT(body_refusal("rate.wgmma.bf61.fp32 = \"1 FLOP/clk/SM\""),
                HasSubstr("no input type \"bf61\""));
    EXPECT_THAT(body_refusal("rate.wgmma.bf16.bf16 = \"1 FLOP/clk/SM\""),
                HasSubstr("no accumulator type \"bf16\""));
    EXPECT_THAT(body_refusal("clock.sustained.int4 = \"1 GHz\""), HasSubstr("no input type \"int4\""));
    EXPECT_THAT(body_refusal("colour = \"red\""), HasSubstr("colour = \"red\": unknown key"));
    EXPECT_THAT(body_refusal("archs = \"sm_90\""), HasSubstr("unknown key"));
    EXPECT_THAT(body_refusal("[features]\nwgma = true"), HasSubstr("did you mean \"wgmma\""));
    EXPECT_THAT(body_refusal("\"l2.size\" = \"1 MiB\""),
                HasSubstr("unknown key"));                                 // a quoted dot is no path
    EXPECT_THAT(body_refusal("l2.size.value = 3"), HasSubstr("no unit"));  // a table, written dotted
    EXPECT_THAT(body_refusal("l2.size = {value = 1, unit = \"MiB\", sorce = \"s\"}"),
                HasSubstr("accepted: value, unit, source"));
}

TEST(ReadMachine, WrongTypes) {
    EXPECT_THAT(body_refusal("l2 = 5"), HasSubstr("beginning of keys"));
    EXPECT_THAT(body_refusal("l2.size = 5"), HasSubstr("no unit"));
    EXPECT_THAT(body_refusal("l2.size = 5.5"), HasSubstr("wrong type"));
    EXPECT_THAT(body_refusal("sm.count = 5.5"), HasSubstr("wrong type"));
    EXPECT_THAT(body_refusal("sm.count = 0x10"), HasSubstr("decimal"));
    EXPECT_THAT(body_refusal("sm.count = -1"), HasSubstr("negative"));
    EXPECT_THAT(body_refusal("sm.count = \"132 warps\""), HasSubstr("not this key's unit"));
    EXPECT_THAT(body_refusal("sm.count = {value = 1.5}"), HasSubstr("not a whole number of SMs"));
    EXPECT_THAT(body_refusal("l2.size = \"1.5 B\""), HasSubstr("not a whole number of B"));
    EXPECT_THAT(body_refusal("l2.size = \"1 MB/s\""), HasSubstr("not this key's unit"));
    EXPECT_THAT(body_refusal("shared.bandwidth = \"128 B/clk\""), HasSubstr("accepted: B/clk/SM"));
    EXPECT_THAT(body_refusal("l2.size = [1]"), HasSubstr("wrong type"));
    EXPECT_THAT(body_refusal("l2.size = 2020-01-01"), HasSubstr("wrong type"));
    EXPECT_THAT(body_refusal("dram.bandwidth = {value = nan, unit = \"B/s\"}"),
                HasSubstr("not a decimal number"));
    EXPECT_THAT(body_refusal("dram.bandwidth = {value = inf, unit = \"B/s\"}"),
                HasSubstr("not a decimal number"));
    EXPECT_THAT(body_refusal("dram.bandwidth = {unit = \"B/s\"}"), HasSubstr("no value"));
    EXPECT_THAT(body_refusal("dram.bandwidth = {value = 1, unit = 2}"), HasSubstr("dram.bandwidth.unit = 2"));
    EXPECT_THAT(body_refusal("dram.bandwidth = {value = \"1 B/s\", unit = \"B/s\"}"),
                HasSubstr("holds its own unit"));
    EXPECT_THAT(body_refusal("l2.size = {value = 1, unit = \"MiB\", source = 3}"),
                HasSubstr("l2.size.source = 3"));
    EXPECT_THAT(body_refusal("[features]\nwgmma = 1"), HasSubstr("accepted: true, false"));
    EXPECT_THAT(body_refusal("features = 1"), HasSubstr("a table of true and false"));
    EXPECT_THAT(body_refusal("device_names = \"x\""), HasSubstr("an array"));
    EXPECT_THAT(body_refusal("device_names = [1]"), HasSubstr("texts"));
    EXPECT_THAT(body_refusal("arch = \"sm_91\""),
                HasSubstr("accepted: sm_100 sm_70 sm_80 sm_86 sm_89 sm_90"));
    EXPECT_THAT(body_refusal("arch = \"../../etc/passwd\""), HasSubstr("letters, digits and _"));
}

TEST(ReadMachine, EveryRangeHolds) {
    // The unit listed first has the key's own range; just outside it is refused, its ends are accepted.
    for (const Key& key : machine_keys()) {
        std::string name(key.name);
        for (std::string_view part : {"wgmma", "bf16", "fp32"})
            if (const auto star = name.find('*'); star != name.npos)
                name.replace(star, 1, name.starts_with("rate") || name.starts_with("peak") ? part : "bf16");
        const std::string unit(units_listed(key.units)[0]);
        auto line = [&](double value) {
            return with_head(name + " = \"" + shortest_text(value) + " " + unit + "\"");
        };
        EXPECT_NO_THROW(parse_machine(line(key.least), "x.toml")) << line(key.least);
        EXPECT_NO_THROW(parse_machine(line(key.most), "x.toml")) << line(key.most);
        EXPECT_THAT(refusal([&] { parse_machine(line(key.most * 2), "x.toml"); }), HasSubstr("out of range"));
        if (key.least > 0) {
            EXPECT_THAT(refusal([&] { parse_machine(line(0), "x.toml"); }), HasSubstr("out of range"));
        }
    }
}

TEST(ReadMachine, Heads) {
    auto says = [](std::string_view text) { return refusal([&] { parse_machine(text, "x.toml"); }); };
    EXPECT_THAT(says(""), HasSubstr("no schema; a machine file begins with schema = \"rooftile/machine/1\""));
    EXPECT_THAT(says("schema = \"rooftile/machine/2\""), HasSubstr("accepted: \"rooftile/machine/1\""));
    EXPECT_THAT(says("schema = \"rooftile/arch/1\"\nid = \"sm_1\"\nname = \"n\""),
                HasSubstr("rooftile/machine/1"));
    EXPECT_THAT(says("schema = \"rooftile/machine/1\""), HasSubstr("no id"));
    EXPECT_THAT(says("schema = \"rooftile/machine/1\"\nid = \"x\""), HasSubstr("no name"));
    EXPECT_THAT(says("schema = \"rooftile/machine/1\"\nid = \"a b\"\nname = \"n\""),
                HasSubstr("letters, digits"));
    EXPECT_THAT(says("schema = \"rooftile/machine/1\"\nid = \"\"\nname = \"n\""),
                HasSubstr("1 to 100 bytes"));
}

TEST(ReadMachine, TomlsOwnErrorsAreOneLineWithAPlace) {
    EXPECT_THAT(body_refusal("l2.size = "), HasSubstr("x.toml:4:"));
    EXPECT_THAT(body_refusal("l2.size = \"1 MiB\"\nl2.size = \"2 MiB\""),
                HasSubstr("x.toml:5:"));  // duplicate
    EXPECT_THAT(body_refusal("[l2]\n[l2]"), HasSubstr("not valid TOML"));
    EXPECT_THAT(body_refusal("= 3"), HasSubstr("not valid TOML"));
    EXPECT_THAT(body_refusal("l2.size = {value = 1,\nunit = \"B\"}"), HasSubstr("not valid TOML"));
}

TEST(ReadMachine, WhatTheParserNeverSees) {
    auto says = [](std::string_view text) { return refusal([&] { parse_machine(text, "x.toml"); }); };
    EXPECT_THAT(says(std::string(1 << 20, 'a')),
                HasSubstr("1048576 bytes; at most 65536 are accepted"));
    EXPECT_THAT(says(std::string(1025, '#')), HasSubstr("x.toml:1: a line of 1025 bytes; at most 1024"));
    EXPECT_NO_THROW(parsed(std::string(1024, '#')));
    EXPECT_THAT(says(std::string("a = 1\nb\0c", 9)), HasSubstr("x.toml:2: byte 0x00 at column 2"));
    EXPECT_THAT(says("\x7f"
                     "ELF"),
                HasSubstr("byte 0x7f"));
    EXPECT_THAT(says("a = \"\xff\""), HasSubstr("byte 0xff at column 6"));
    EXPECT_THAT(says("a = \"\xc0\x80\""), HasSubstr("byte 0xc0"));
    EXPECT_THAT(says("a = \"\x1b[31m\""), HasSubstr("byte 0x1b"));
    EXPECT_THAT(says("a = 1\r\rb"), HasSubstr("byte 0x0d"));
    EXPECT_NO_THROW(
        parse_machine("schema = \"rooftile/machine/1\"\r\nid = \"x\"\r\nname = \"X\"\r\n", "x.toml"));
    EXPECT_THAT(says("a = \"\"\"\nb\"\"\""), HasSubstr("multi-line strings"));
    EXPECT_THAT(says("a = '''b'''"), HasSubstr("multi-line strings"));
}

TEST(ReadMachine, DepthIsBounded) {
    auto says = [](std::string_view text) { return refusal([&] { parse_machine(text, "x.toml"); }); };
    std::string key = "a";
    for (int i = 1; i < 100'000; ++i) key += ".a";  // 200 kB: refused for its size
    EXPECT_THAT(says(key + " = 1"), HasSubstr("bytes; at most 65536 are accepted"));
    EXPECT_THAT(says(key.substr(0, 60001) + " = 1"), HasSubstr("a line of 60005 bytes"));
    EXPECT_THAT(says(key.substr(0, 1001) + " = 1"), HasSubstr("a key of more than 32 parts"));
    EXPECT_THAT(says(std::string(1000, '[')), HasSubstr("more than 8 nested brackets"));
    std::string lines;
    for (int i = 0; i < 20'000; ++i) lines += "[\n";
    EXPECT_THAT(says("a = " + lines), HasSubstr("x.toml:9: more than 8 nested brackets"));
    // Dots and brackets inside strings and comments do not count.
    EXPECT_NO_THROW(parsed("sm.count = {value = 1, source = \"" + key.substr(0, 301)
                           + "[[[[[[[[[[ \\\" ]\"} # [[[[[[[[[[[."));
}

class ReadMachineFile : public testing::Test {
  protected:
    void SetUp() override {
        folder_ = std::filesystem::temp_directory_path() / ("rooftile-read-test-" + std::to_string(getpid()));
        std::filesystem::create_directories(folder_);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    std::filesystem::path file(std::string_view name, std::string_view text) {
        std::ofstream(folder_ / name, std::ios::binary) << text;
        return folder_ / name;
    }
    static std::string says(const std::filesystem::path& path) {
        return refusal([&] { read_machine(path); });
    }
    std::filesystem::path folder_;
};

TEST_F(ReadMachineFile, GoodAndBadFiles) {
    EXPECT_EQ(read_machine(file("good.toml", with_head("sm.count = 2"))).count("sm.count"), 2);
    EXPECT_THAT(says(folder_ / "missing.toml"), HasSubstr("missing.toml: no such file"));
    EXPECT_THAT(says(folder_), HasSubstr("this is a directory"));
    EXPECT_THAT(says(file("large.toml", std::string(1'000'000, 'x'))), HasSubstr("1000000 bytes"));
    EXPECT_THAT(says(file("binary.toml", std::string("\x7f"
                                                     "ELF\0\0",
                                                     6))),
                HasSubstr("binary.toml:1: byte 0x7f"));
    EXPECT_THAT(says(file("empty.toml", "")), HasSubstr("no schema"));
    std::string deep = "a";
    for (int i = 1; i < 100'000; ++i) deep += ".a";
    EXPECT_THAT(says(file("deep.toml", deep + " = 1")), HasSubstr("200003 bytes"));
    EXPECT_THAT(says("/dev/zero"), HasSubstr("not a regular file"));
    ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
    EXPECT_THAT(says(folder_ / "pipe"), HasSubstr("not a regular file"));  // and does not wait for a writer
    EXPECT_THAT(says(folder_ / "a\nb.toml"), HasSubstr("a?b.toml: no such file"));
    EXPECT_THAT(says(folder_ / std::string(5000, 'x')), HasSubstr("xxx"));
}

TEST(ReadMachine, DamagedFilesAreRefusedOrRead) {
    // Bytes of shipped files changed, dropped and doubled: never anything but a machine or one line.
    std::mt19937 random(1);
    int read = 0, refused = 0;
    for (int round = 0; round < 2000; ++round) {
        const auto files = embedded_machines();
        std::string text(files[random() % files.size()].text);
        for (int change = 0; change < 2; ++change) {
            const std::size_t at = random() % text.size();
            switch (random() % 3) {
                case 0:
                    text[at] = static_cast<char>(random() % 256);
                    break;
                case 1:
                    text.erase(at, 1 + random() % 40);
                    break;
                case 2:
                    text.insert(at, text.substr(random() % text.size(), random() % 60));
                    break;
            }
        }
        try {
            (void)parse_machine(text, "x.toml");
            ++read;
        } catch (const RequestError& error) {
            ++refused;
            EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos) << error.what();
        }
    }
    EXPECT_GT(refused, 100);
    EXPECT_GT(read, 10);
}

TEST(ReadMachine, CalibrationsComeWithIdAndArchitecture) {
    const auto read = [](const char* id, const std::string& rest) {
        return parse_machine(
            "schema = \"rooftile/machine/1\"\nname = \"X\"\nid = \"" + std::string(id) + "\"\n" + rest,
            "x.toml");
    };
    const std::string hopper = "arch = \"sm_90\"\n";
    EXPECT_EQ(read("h200-sxm", hopper).find("sm.skew")->calibration, "h200-sxm");
    EXPECT_EQ(read("h200-sxm", "").find("sm.skew"), nullptr);
    EXPECT_EQ(read("h200-sxm", "arch = \"sm_80\"\n").find("sm.skew"), nullptr);
    EXPECT_EQ(read("mine", hopper).find("wgmma.turn")->calibration, "h200-sxm");
    // What belongs to kernels comes to every architecture, and says where it was measured.
    EXPECT_EQ(read("mine", "").find("stream.ring.chunk"), nullptr);
    const Machine ampere = read("mine", "arch = \"sm_80\"\n"), other_hopper = read("mine", hopper);
    const Fact *far = ampere.find("stream.ring.chunk"), *near = other_hopper.find("stream.ring.chunk");
    ASSERT_TRUE(far && near);
    EXPECT_EQ(far->value, near->value);
    EXPECT_EQ(far->calibration, "h200-sxm");
    EXPECT_EQ(far->source, "sm_90's, not measured here: " + near->source);
    // The file's own number goes first, and is none that was fitted.
    const Machine own = read("mine", hopper + "wgmma.turn = \"700 clk\"\n");
    EXPECT_EQ(own.find("wgmma.turn")->value, 700);
    EXPECT_EQ(own.find("wgmma.turn")->calibration, "");
    EXPECT_EQ(read("mine", hopper + "wgmma.turn = \"unknown\"\n").find("wgmma.turn"), nullptr);
    EXPECT_THAT(body_refusal("calibration = \"h200-sxm\""), HasSubstr("is allowed in architecture files only"));
    // As `machine show --toml` writes it.
    const Machine h200 = machine_by_id("h200-sxm"), again = parse_machine(to_toml(h200), "again.toml");
    EXPECT_EQ(again.hash(), h200.hash());
    EXPECT_EQ(again.find("sm.skew")->calibration, "h200-sxm");
}

TEST(ToToml, RoundTrip) {
    Machine m = parsed(R"(
arch = "sm_90"
device_names = ["NVIDIA \"X\"", "back\\slash"]
sm.count = 132
dram.bandwidth = {value = 3.35e3, unit = "GB/s", source = "a \"quoted\" \\ source"}
rate.mufu = "16 op/clk/SM"
sm.named_barriers = "unknown"
features.tma = "unknown"
features.wgmma = false
)");
    const std::string text = to_toml(m);
    const Machine again = parse_machine(text, "again.toml");
    EXPECT_EQ(again.hash(), m.hash());
    EXPECT_EQ(again.id, m.id);
    EXPECT_EQ(again.name, m.name);
    EXPECT_EQ(again.device_names, m.device_names);
    EXPECT_EQ(again.features, m.features);
    ASSERT_EQ(again.facts.size(), m.facts.size());
    for (const auto& [key, fact] : m.facts) {
        const Fact& other = again.facts.at(key);
        EXPECT_EQ(other.value, fact.value) << key;
        EXPECT_EQ(other.source, fact.source) << key;
    }
    EXPECT_EQ(to_toml(again), text);
}

}  // namespace
}  // namespace rooftile
