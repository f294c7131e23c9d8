#include "rooftile/emit/tokens.hpp"

#include <gtest/gtest.h>

#include "rooftile/embedded.hpp"
#include "rooftile/emit/program.hpp"
#include "rooftile/runtime/recorded_launch.hpp"

namespace rooftile::emit {
namespace {

TEST(EmitTokens, EveryKernelHeaderInPiecesIsItselfAgain) {
    for (const EmbeddedFile& header : embedded_kernels()) {
        SCOPED_TRACE(header.path);
        const Tokens tokens = tokens_of(header.text);
        EXPECT_EQ(text_of(tokens), header.text);
        EXPECT_EQ(text_of(items_of(tokens)), header.text);
    }
}

TEST(EmitTokens, DeclarationsHaveTheNamesThatTheyDeclare) {
    const auto names = [](std::string_view text) {
        const auto items = items_of(tokens_of(text));
        return items.empty() ? std::vector<std::string>() : items.front().names;
    };
    EXPECT_EQ(names("int a, b = 2, c[3];"), (std::vector<std::string>{"a", "b", "c"}));
    EXPECT_EQ(names("template <class T, int n = 3> __device__ inline T f(T x) { return x; }"), std::vector<std::string>{"f"});
    EXPECT_EQ(names("struct alignas(64) Map { int x; };"), std::vector<std::string>{"Map"});
    EXPECT_EQ(names("using A = B<C>;"), std::vector<std::string>{"A"});
    EXPECT_EQ(names("__global__ void __launch_bounds__(256, 2) k(int n) {}"), std::vector<std::string>{"k"});
    EXPECT_EQ(names("#define F(x) x\n"), std::vector<std::string>{"F"});
    EXPECT_EQ(names("MAKE_LOAD(load_once, \"ld\")\n"), (std::vector<std::string>{"load_once"}));
    EXPECT_TRUE(names("using namespace other;").empty());
}

Source source_of(std::string text, std::string kernel) {
    Source source;
    source.text = std::move(text);
    source.headers = {};
    source.name_expressions = {std::move(kernel)};
    return source;
}

constexpr std::string_view text = R"(// A kernel of a test.
#pragma once
#include <cstdint>
namespace rooftile {
struct Config {
    int tile;
    bool wide = false;
    constexpr int rows() const { return wide ? 2 * tile : tile; }
    constexpr int never() const { return 1; }
};
// Nobody calls it.
__device__ inline int unused() { return 3; }
__device__ inline int half(int x) { return x / 2; }
template <Config C>
__global__ void kernel(int* to) {
    static_assert(C.tile > 0, "a tile");
    constexpr bool wide = C.wide;
    if constexpr (wide) {
        to[0] = unused();
    } else {
        to[0] = half(C.rows());
    }
    if (C.tile > 4 && wide) to[1] = 1;
}
}  // namespace rooftile
)";

/// What the compiler says of this text with the configuration below.
std::optional<bool> decide(const std::string&, const std::string& condition) {
    if (condition == "(C.wide)" || condition == "C.wide" || condition == "wide" || condition == "C.tile > 4 && (C.wide)") return false;
    return std::nullopt;
}

TEST(EmitProgram, LeavesWhatOneConfigurationNeeds) {
    Program program(source_of(std::string(text), "rooftile::kernel<rooftile::Config{.tile=8}>"));
    ASSERT_EQ(program.configurations().size(), 1u);
    EXPECT_EQ(program.configurations()[0].text(), "rooftile::Config{.tile = 8}");
    EXPECT_EQ(program.parameters().at("C"), "config");
    program.take_branches(decide);
    program.instantiate_kernels();
    program.take_unused({});
    program.place_configurations();
    const std::string out = program.text();
    EXPECT_EQ(program.kernels().front(), "rooftile::kernel");
    EXPECT_EQ(out.find("unused"), std::string::npos) << out;
    EXPECT_EQ(out.find("Nobody"), std::string::npos) << out;
    EXPECT_EQ(out.find("never"), std::string::npos) << out;
    EXPECT_EQ(out.find("if "), std::string::npos) << out;
    EXPECT_EQ(out.find("static_assert"), std::string::npos) << out;
    EXPECT_EQ(out.find("wide"), std::string::npos) << out;
    EXPECT_NE(out.find("    to[0] = half(config.rows());\n"), std::string::npos) << out;
    EXPECT_NE(out.find("constexpr Config config{\n    .tile = 8,\n};"), std::string::npos) << out;
    EXPECT_NE(out.find("constexpr int rows() const { return tile; }"), std::string::npos) << out;
    program.say_where_functions_run();
    EXPECT_NE(program.text().find("__host__ __device__ constexpr int rows()"), std::string::npos);
    program.guard_kernels("sm_90a");
    EXPECT_NE(program.text().find("#ifdef __CUDA_ARCH_FEAT_SM90_ALL"), std::string::npos);
}

TEST(EmitProgram, LeavesWhatIsNotDecided) {
    Program program(source_of(std::string(text), "rooftile::kernel<rooftile::Config{.tile=8}>"));
    program.take_branches([](const std::string&, const std::string&) { return std::optional<bool>(); });
    program.instantiate_kernels();
    program.take_unused({});
    EXPECT_NE(program.text().find("if constexpr (wide)"), std::string::npos);
    EXPECT_NE(program.text().find("int unused()"), std::string::npos);
}

TEST(RecordedLaunch, WritesDownWhatTheDriverIsAskedFor) {
    RecordedDevice device{.arch = "sm_90", .sms = 132, .shared_per_sm_bytes = 233472, .shared_per_cta_bytes = 232448};
    const auto parameters = [](std::string_view) { return std::vector<int>{4}; };
    const Recording recording = record_launches(device, parameters, [&] {
        EXPECT_TRUE(recording_launches());
        EXPECT_NE(current_context(), nullptr);
        EXPECT_EQ(Driver::instance().device(0).sm_count, 132);
        const Module module{std::span<const char>("cubin", 5)};
        const Function function = module.function("kernel");
        function.allow_shared(1000);
        Launch of;
        of.grid_x = 7, of.block_x = 64, of.shared_bytes = 1000;
        int n = 42;
        void* arguments[] = {&n, nullptr};
        launch_raw(function, of, arguments);
        DeviceBuffer table(8);
    });
    EXPECT_FALSE(recording_launches());
    ASSERT_EQ(recording.launches.size(), 1u);
    EXPECT_EQ(recording.launches[0].lowered_name, "kernel");
    EXPECT_EQ(recording.launches[0].launch.grid_x, 7u);
    EXPECT_EQ(recording.launches[0].arguments, std::vector<std::string>{std::string("\x2a\0\0\0", 4)});
    EXPECT_EQ(recording.launches[0].attributes.at(8), 1000);
    EXPECT_EQ(recorded_tensor(recorded_address(3) + 17), 3);
    EXPECT_EQ(recorded_tensor(0), -1);
}

}  // namespace
}  // namespace rooftile::emit
