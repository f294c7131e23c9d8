// Sizes of 0 on a command line: refused in one line that says so.
#include <regex>

#include "rooftile/core/operation.hpp"
#include "tests/cli/program.hpp"
#include "tests/core/example.hpp"

namespace rooftile {
namespace {

class NothingToDo : public testing::TestWithParam<const Operation*> {
  protected:
    /// A request on a command line.
    std::vector<std::string> words_of_request(const char* verb, const Given& given) const {
        std::vector<std::string> words = {verb, std::string(GetParam()->name())};
        for (const Field& field : GetParam()->fields())
            for (const std::string& text : given.list(field.key)) {
                if (field.kind != FieldKind::positional) words.push_back(flag_of(field.key));
                if (field.kind != FieldKind::on) words.push_back(text);
            }
        words.insert(words.end(), {"--machine", "h100-sxm"});
        return words;
    }
    void refused(const Given& given) const {
        for (const char* verb : {"plan", "build"}) {
            const std::vector<std::string> words = words_of_request(verb, given);
            const Outcome outcome = run(words);
            EXPECT_EQ(outcome.code, 2) << given.text();
            EXPECT_EQ(outcome.error_lines(), 1) << outcome.err;
            EXPECT_NE(outcome.err.find("nothing to do"), std::string::npos) << outcome.err;
        }
    }
};

INSTANTIATE_TEST_SUITE_P(Operations, NothingToDo, testing::ValuesIn(operations().begin(), operations().end()), name_of_operation);

// A size is what with_work() replaces, or what leaves a tensor without elements.
TEST_P(NothingToDo, IsRefusedInOneLine) {
    int sizes = 0;
    for (const Field& field : GetParam()->fields()) {
        Given given = example_of(*GetParam());
        if (field.kind != FieldKind::value || !field.group.starts_with("Problem")) continue;
        try {  // of what the example says in another way nothing more can be said
            given.replace(field.key, "1");
            GetParam()->problem(given);
        } catch (const std::exception&) {
            if (!example_of(*GetParam()).has(field.key)) continue;
        }
        given.replace(field.key, "0");
        bool is_size = GetParam()->with_work(given, 1).text() != given.text();
        try {
            const Problem problem = GetParam()->problem(given);
            for (const TensorInfo& t : GetParam()->tensors(problem))
                for (const Extent& extent : t.extents) is_size |= extent.most == 0;
        } catch (const std::exception&) {}
        if (!is_size) continue;
        ++sizes;
        refused(given);
    }
    // Tensors that are declared, "x:bf16[8192,4096]": all without elements.
    Given empty;
    bool declared = false;
    const Given example = example_of(*GetParam());
    for (const Field& field : GetParam()->fields())
        for (const std::string& text : example.list(field.key)) {
            const bool tensor = field.key == "tensor";
            declared |= tensor;
            empty.add(field.key, tensor ? std::regex_replace(text, std::regex("([[,])[0-9]+"), "$010") : text);
        }
    if (declared) refused(empty), ++sizes;
    EXPECT_GE(sizes, 1);
}

TEST(NothingToDoOnes, AreRefusedInListsToo) {
    const auto nothing = [](std::vector<std::string> words) {
        if (!find_operation(words[1])) return;  // it may be taken out
        words.insert(words.end(), {"--machine", "h100-sxm"});
        expect_refused(words, {"nothing to do"});
    };
    for (const char* shape : {"0x64x64", "64x0x64", "64x64x0", "0x0x0"}) nothing({"plan", "gemm", "--shape", shape});
    for (const char* groups : {"0", "0,0", "17x0"}) nothing({"plan", "gemm", "--groups", groups, "--n", "64", "--k", "64"});
    for (const char* lengths : {"0", "0,0,0"}) nothing({"plan", "attention", "--lengths", lengths, "--heads", "2", "--dim", "64"});
    nothing({"plan", "fuse", "y = x + 1", "--tensor", "x:bf16[0]"});
    nothing({"plan", "fuse", "y = sum(x)", "--tensor", "x:bf16[64,0]"});
    nothing({"measure", "gemm", "--shape", "0x64x64"});
    nothing({"sweep", "gemm", "--m", "0,64", "--n", "64", "--k", "64", "--plan-only"});
}

}  // namespace
}  // namespace rooftile
