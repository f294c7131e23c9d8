// docs/layer.md: every command of it runs, and what it prints, its pictures and the numbers of its answers are those of the page.
// ROOFTILE_REGENERATE=1 rewrites them.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "rooftile/report/number.hpp"
#include "tests/cli/program.hpp"
#include "tests/folder.hpp"
#include "tests/layer/models.hpp"

namespace rooftile {
namespace {

const std::filesystem::path docs = std::filesystem::path(ROOFTILE_SOURCE_DIR) / "docs";

std::string text_of(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream out;
    out << file.rdbuf();
    return out.str();
}

/// Words of a command line, where double quotes hold blanks together.
std::vector<std::string> words_of(const std::string& line) {
    std::vector<std::string> out;
    std::string word;
    bool quoted = false, any = false;
    for (const char c : line) {
        if (c == '"') quoted = !quoted, any = true;
        else if (c == ' ' && !quoted) {
            if (any || !word.empty()) out.push_back(word);
            word.clear(), any = false;
        } else word += c;
    }
    if (any || !word.empty()) out.push_back(word);
    return out;
}

class LayerPage : public testing::Test {
  protected:
    void SetUp() override {
        if (!std::filesystem::exists(docs)) GTEST_SKIP() << "skipped: no sources here";
        for (const char* operation : {"gemm", "fuse", "attention"})
            if (run({"plan", operation, "--help"}).code != 0) GTEST_SKIP() << "skipped: this build has no operation " << operation;
        before_ = std::filesystem::current_path();
        std::filesystem::current_path(folder_.path());
        std::ofstream("llama-3-8b.json") << public_config("Meta-Llama-3-8B");
        std::ofstream("llama-3.2-1b.json") << public_config("Llama-3.2-1B");
    }
    void TearDown() override {
        if (!before_.empty()) std::filesystem::current_path(before_);
    }

    static std::string output_of(const std::vector<std::string>& arguments) {
        Environment environment = without_gpu();
        environment["COLUMNS"] = "120";
        const Outcome got = run(arguments, environment);
        EXPECT_EQ(got.code, 0) << arguments.back() << "\n" << got.err;
        return got.out;
    }
    static Json cells(const std::string& model, std::vector<std::string> more) {
        std::vector<std::string> arguments = {"plan", "layer", "--config", model + ".json", "--machine", "h200-sxm", "--json"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return Json::parse(output_of(arguments));
    }
    static Json cell(const std::string& model, std::vector<std::string> more) { return cells(model, std::move(more)).at("cells").at(0); }
    static Json step(int batch, int context) {
        return cell("llama-3-8b", {"--batch", std::to_string(batch), "--context", std::to_string(context)});
    }

    static double number(const Json& cell, const char* pointer) { return cell.at(Json::json_pointer(pointer)).get<double>(); }
    static std::string time(const Json& cell, const char* pointer) { return fmt::format("{:.3g} us", number(cell, pointer)); }
    static std::string share(double value) { return fmt::format("{:.0f} %", 100 * value); }

    static std::string cache() {
        std::string rows, chinese;
        for (const int batch : {1, 16, 64}) {
            const Json c = step(batch, 8192);
            const std::string bytes = share(number(c, "/cache_share")), time = share(number(c, "/attention_share"));
            rows += fmt::format("- Batch {}, context 8192: the cache has {} of the bytes, attention {} of the kernels' time.\n", batch,
                                bytes, time);
            chinese += fmt::format("{}批量 {} 时缓存占字节的 {}，注意力占内核时间的 {}", chinese.empty() ? "" : "；", batch, bytes, time);
        }
        const Json small = step(1, 8192);
        return rows
               + fmt::format(
                   "- So a single sequence of 8192 tokens is bound by the weights ({} of {} MB), many are bound by the cache.\n",
                   fmt::format("{:.0f}", number(small, "/bytes/weights") / 1e6),
                   fmt::format("{:.0f}", (number(small, "/bytes/weights") + number(small, "/bytes/cache")) / 1e6))
               + fmt::format("- 中文：上下文 8192，{}。单个序列受权重限制，批量大时受缓存限制。\n", chinese);
    }

    static std::string gaps() {
        const Json one = step(1, 8192), many = step(64, 8192);
        const Json small = cell("llama-3.2-1b", {"--batch", "1", "--context", "8192"});
        const auto of = [](const Json& c, const char* way) {
            const double gap = number(c, fmt::format("/gaps_us/{}", way).c_str());
            return share(gap / (number(c, "/kernels_us") + gap));
        };
        const auto most = [](const Json& c) { return fmt::format("{:.2f}", number(c, "/time_us") / number(c, "/least_us")); };
        return fmt::format(
                   "- The {} launches of a layer leave {} in a stream, {} in a graph and {} with programmatic launches in a graph.\n",
                   one.at("kernels").size(), time(one, "/gaps_us/stream"), time(one, "/gaps_us/graph"), time(one, "/gaps_us/pdl"))
               + fmt::format(
                   "- Of Llama-3-8B's layer that is {} in a stream and {} in a graph at batch 1 and context 8192, {} and {} at batch "
                   "64.\n",
                   of(one, "stream"), of(one, "graph"), of(many, "stream"), of(many, "graph"))
               + fmt::format("- Of Llama-3.2-1B's layer, which takes {}, it is {} and {} at batch 1.\n", time(small, "/time_us"),
                             of(small, "stream"), of(small, "graph"))
               + fmt::format(
                   "- One kernel for the whole layer could be {} times as fast as a graph of eight at most for 8B at batch 1, {} times "
                   "for 1B "
                   "and {} times for 8B at batch 64: by the least possible time, with no gap and no ramp left.\n",
                   most(one), most(small), most(many))
               + fmt::format(
                   "- 中文：一层 {} 次启动的间隙：流中 {}，图中 {}，图加程序化启动 {}；批量 1 时占 8B 模型一层时间的 {} 与 "
                   "{}（流、图），占 1B 的 {} "
                   "与 {}。整层合成一个内核，批量 1 时 8B 最多快到 {} 倍，1B 最多 {} 倍。\n",
                   one.at("kernels").size(), time(one, "/gaps_us/stream"), time(one, "/gaps_us/graph"), time(one, "/gaps_us/pdl"),
                   of(one, "stream"), of(one, "graph"), of(small, "stream"), of(small, "graph"), most(one), most(small));
    }

    static std::string room() {
        const Json large = cells("llama-3-8b", {}).at("room"), small = cells("llama-3.2-1b", {}).at("room");
        const auto kib = [](const Json& room) { return fmt::format("{:g} KiB", number(room, "/bytes_per_token") / 1024); };
        std::string out = "| tensor | written by | last read by | KiB a token |\n|---|---|---|---|\n";
        for (const Json& t : large.at("tensors"))
            out += fmt::format("| `{}` | {} | {} | {:g} |\n", t.at("name").get<std::string>(), t.at("written_by").get<std::string>(),
                               t.at("last_read_by").get<std::string>(), number(t, "/bytes_per_token") / 1024);
        const double bytes = number(large, "/room_bytes") / 1024 / 1024;
        return out
               + fmt::format(
                   "\n- Llama-3-8B needs {} a token at most at once; the {:.1f} MiB of shared memory of all SMs hold {} tokens.\n",
                   kib(large), bytes, large.at("tokens").dump())
               + fmt::format("- Llama-3.2-1B needs {}: {} tokens. Rings for weights take their part of that room.\n", kib(small),
                             small.at("tokens").dump())
               + fmt::format(
                   "- 中文：Llama-3-8B 每个词元同时最多需要 {}，全部 SM 的共享内存可容纳 {} 个词元；Llama-3.2-1B 为 {}，{} 个词元。\n",
                   kib(large), large.at("tokens").dump(), kib(small), small.at("tokens").dump());
    }

    /// Times over one number of the machine, as a share of the first.
    static std::vector<double> over(std::vector<std::string> step, const std::string& numbers) {
        step.insert(step.end(), {"--hardware", numbers});
        std::vector<double> out;
        const Json document = cells("llama-3-8b", std::move(step));
        for (const Json& cell : document.at("cells")) out.push_back(number(cell, "/time_us"));
        return out;
    }

    static std::string modified() {
        const std::vector<std::string> decode = {"--batch", "16", "--context", "8192"},
                                       prefill = {"--batch", "1", "--context", "4096", "--prefill", "1"};
        const auto bandwidth = over(decode, "dram.bandwidth=2.4..9.6 TB/s"), sms = over(decode, "sm.count=66..264"),
                   more_sms = over(prefill, "sm.count=66..264"), special = over(prefill, "rate.mufu=8,16,32 op/clk/SM"),
                   l2 = over(decode, "l2.size=15..240 MiB"), more_l2 = over(prefill, "l2.size=15..240 MiB");
        const auto ratio = [](double a, double b) { return fmt::format("{:.2f}", a / b); };
        return fmt::format(
                   "- Memory of half the bandwidth makes decoding at batch 16 and context 8192 take {} times as long; twice the "
                   "bandwidth "
                   "makes it {} times as fast, since L2 and latency then limit more of it.\n",
                   ratio(bandwidth[0], bandwidth[1]), ratio(bandwidth[1], bandwidth[2]))
               + fmt::format(
                   "- Half of the SMs take {} times as long for it, twice as many {} times; for a prefill of 4096 tokens {} and {} "
                   "times.\n",
                   ratio(sms[0], sms[1]), ratio(sms[2], sms[1]), ratio(more_sms[0], more_sms[1]), ratio(more_sms[2], more_sms[1]))
               + fmt::format("- Half the rate of exponentials costs that prefill {} of its time, twice the rate gains {}.\n",
                             fmt::format("{:.1f} %", 100 * (special[0] / special[1] - 1)),
                             fmt::format("{:.1f} %", 100 * (1 - special[2] / special[1])))
               + fmt::format("- L2 of 15 to 240 MiB changes decoding by {}, the prefill by {}.\n",
                             fmt::format("{:.1f} %", 100 * (l2.front() / l2.back() - 1)),
                             fmt::format("{:.1f} %", 100 * (more_l2.front() / more_l2.back() - 1)))
               + fmt::format(
                   "- 中文：解码（批量 16，上下文 8192）显存带宽减半则慢到 {} 倍，加倍则快到 {} 倍；SM 减半慢到 {} 倍，加倍为 {} "
                   "倍。预填充 4096 "
                   "个词元：SM 减半慢到 {} 倍，加倍为 {} 倍；指数单元减半多用 {:.1f} % 的时间；L2 从 15 到 240 MiB 变化 {:.1f} %。\n",
                   ratio(bandwidth[0], bandwidth[1]), ratio(bandwidth[1], bandwidth[2]), ratio(sms[0], sms[1]), ratio(sms[2], sms[1]),
                   ratio(more_sms[0], more_sms[1]), ratio(more_sms[2], more_sms[1]), 100 * (special[0] / special[1] - 1),
                   100 * (more_l2.front() / more_l2.back() - 1));
    }

    static std::string link() {
        std::string out, chinese;
        const Json one = cell("llama-3-8b", {"--batch", "1", "--context", "2048"});
        for (const char* gpus : {"2", "4", "8"}) {
            const Json c = cell("llama-3-8b", {"--batch", "1", "--context", "2048", "--tp", gpus});
            double exchanged = 0;
            for (const Json& k : c.at("kernels"))
                if (k.at("bound") == "link") exchanged += number(k, "/time_us");
            const std::string faster = fmt::format("{:.2f}", number(one, "/time_us") / number(c, "/time_us")),
                              part = share(exchanged / number(c, "/time_us"));
            out += fmt::format("- {} GPUs: {}, {} times as fast as one; the two all-reduces take {} of it.\n", gpus, time(c, "/time_us"),
                               faster, part);
            chinese += fmt::format("{}{} 个 GPU 快到 {} 倍，两次全归约占 {}", chinese.empty() ? "" : "；", gpus, faster, part);
        }
        return out + fmt::format("- 中文：批量 1、上下文 2048：{}。\n", chinese);
    }

    Folder folder_;
    std::filesystem::path before_;
};

TEST_F(LayerPage, IsWhatTheProgramSays) {
    const char* flag = std::getenv("ROOFTILE_REGENERATE");
    const bool regenerate = flag && *flag == '1';
    const std::map<std::string, std::function<std::string()>> answers = {
        {"cache", cache}, {"gaps", gaps}, {"room", room}, {"modified", modified}, {"link", link}};
    const std::string page = text_of(docs / "layer.md");
    std::istringstream lines(page);
    std::string made;
    int commands = 0, answered = 0, pictures = 0;
    for (std::string line; std::getline(lines, line);) {
        made += line + "\n";
        if (line.starts_with("$ rooftile ")) {
            const std::vector<std::string> words = words_of(line.substr(2));
            made += output_of({words.begin() + 1, words.end()});
            while (std::getline(lines, line) && line != "```") {}
            made += "```\n";
            ++commands;
            const auto svg = std::ranges::find(words, "--svg");
            if (svg == words.end()) continue;
            const std::filesystem::path drawn = folder_.path() / *(svg + 1), kept = docs / "images" / *(svg + 1);
            if (regenerate) std::filesystem::copy_file(drawn, kept, std::filesystem::copy_options::overwrite_existing);
            EXPECT_EQ(text_of(drawn), text_of(kept)) << kept;
            ++pictures;
        } else if (line.starts_with("<!-- answers: ")) {
            const std::string name = line.substr(14, line.find(' ', 14) - 14);
            ASSERT_TRUE(answers.contains(name)) << name;
            made += answers.at(name)();
            while (std::getline(lines, line) && line != "<!-- end -->") {}
            made += "<!-- end -->\n";
            ++answered;
        }
    }
    EXPECT_GE(commands, 8);
    EXPECT_EQ(answered, int(answers.size()));
    EXPECT_EQ(pictures, 3);
    if (regenerate) std::ofstream(docs / "layer.md", std::ios::binary) << made;
    else EXPECT_EQ(made, page) << "docs/layer.md differs; ROOFTILE_REGENERATE=1 rewrites it";
}

}  // namespace
}  // namespace rooftile
