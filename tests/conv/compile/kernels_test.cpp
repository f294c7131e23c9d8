// Convolutions' kernels without a GPU: drawn ones, of every count of axes, with an epilogue, swapped and in parts, without spills.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "rooftile/conv/device/packed_image.hpp"
#include "rooftile/conv/fields.hpp"
#include "rooftile/conv/operation.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/emit/emit.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/measure/device_operation.hpp"
#include "rooftile/runtime/child.hpp"
#include "tests/compile/nvcc.hpp"
#include "tests/core/example.hpp"
#include "tests/folder.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

void expect_built(const std::string& line, const std::string& fixed, const char* machine = "h200-sxm") {
    SCOPED_TRACE(line + " " + fixed);
    const Given given = given_of(conv_operation(), fixed.empty() ? line : line + " " + fixed);
    const PlanSet set = conv_operation().derive(std::make_shared<const Machine>(machine_by_id(machine)), conv_operation().problem(given),
                                                conv_operation().request(given, {.top = 1, .buildable_only = true}));
    ASSERT_FALSE(set.plans.empty()) << set.refusal->message;
    EXPECT_NO_THROW(compile(set.plans.front()));
}

TEST(ConvKernels, NeitherSpillNorSerialise) {
    const std::string image = "--batch 8 --channels 64 --height 30 --width 30 --kernel-size 3 --padding 1 --filters ";
    const std::string epilogue = " --epilogue \"y = relu(acc + bias) + r\" --tensor bias:bf16[N] --tensor r:bf16[M,N]";
    const std::string cases[][2] = {
        {image + "64", ""},
        {image + "256", "--swap-ab on"},
        {image + "256", "--split-k 2"},
        {image + "256", "--cluster 2x1"},
        {image + "512 --type fp16", "--cluster 1x2"},
        {image + "128 --epilogue \"y = relu(acc + bias) + r\" --tensor bias:bf16[N] --tensor r:bf16[M,N]", ""},
        {image + "255", ""},
        {image + "128 --layout nchw", ""},
        {"--batch 8 --channels 3 --height 224 --width 224 --filters 64 --kernel-size 7 --stride 2 --padding 3 --layout nchw", ""},
        {"--batch 3 --channels 16 --width 500 --kernel-size 5 --filters 64", ""},
        {"--channels 128 --depth 9 --height 30 --width 30 --kernel-size 3 --padding 1 --filters 128", ""},
        {"--channels 128 --depth 9 --height 30 --width 30 --kernel-size 3 --padding 1 --filters 128", "--cluster 1x2"},
        {"--batch 8 --channels 96 --height 56 --width 56 --filters 96 --kernel-size 7 --padding 3 --groups 96", ""},
        {"--batch 8 --channels 128 --height 28 --width 28 --filters 128 --kernel-size 3 --padding 1 --groups 32 --type fp16", ""},
        {"--batch 8 --channels 3 --height 224 --width 224 --filters 64 --kernel-size 7 --stride 2 --padding 3", ""},
        {"--batch 32 --channels 3 --height 224 --width 224 --filters 96 --kernel-size 4 --stride 4", ""},
        {"--batch 32 --channels 3 --height 227 --width 227 --filters 96 --kernel-size 11 --stride 4", ""},
        {"--batch 8 --channels 12 --height 128 --width 128 --filters 48 --kernel-size 5 --padding 2 --type fp16", ""},
        {"--batch 8 --channels 15 --width 99 --filters 10 --kernel-size 4 --padding 3 --groups 5", ""},
        {"--batch 8 --channels 96 --height 56 --width 56 --filters 96 --kernel-size 7 --padding 3 --groups 96" + epilogue, ""},
        {"--batch 8 --channels 128 --height 28 --width 28 --filters 128 --kernel-size 3 --padding 1 --groups 32" + epilogue, ""},
        {"--batch 8 --channels 3 --height 224 --width 224 --filters 64 --kernel-size 7 --stride 2 --padding 3" + epilogue, ""},
        {"--batch 8 --channels 15 --width 99 --filters 9 --kernel-size 4 --padding 3 --groups 3 --epilogue \"y = gelu(acc * s + bias)\" --tensor s:fp32[1] --tensor bias:fp32[N]", ""},
    };
    for (const auto& [line, fixed] : cases) expect_built(line, fixed);
}

/// One of the plans of a drawn gradient, of any axes and sizes.
std::string drawn_gradient(Random& random, bool data) {
    const std::int64_t axes = random.whole(1, 3), taps = random.one_of(std::array<std::int64_t, 3>{1, 3, 5});
    return fmt::format("--batch {} --channels {} --filters {} --width {}{}{} --kernel-size {} --padding {}{} --type {} --gradient {}", random.whole(1, 64), data ? 8 * random.whole(1, 64) : 64 * random.whole(1, 8),
                       8 * random.whole(1, 64), random.whole(8, 60), axes > 1 ? fmt::format(" --height {}", random.whole(8, 60)) : "", axes > 2 ? fmt::format(" --depth {}", random.whole(8, 12)) : "", taps, taps / 2,
                       data ? "" : fmt::format(" --stride {} --dilation {}", random.whole(1, 2), random.whole(1, 2)), random.coin() ? "bf16" : "fp16", data ? "data" : "weights");
}

// Some of the plans of drawn gradients, and each way of their products that the search may not rank first.
TEST(ConvKernels, GradientsNeitherSpillNorSerialise) {
    const std::string image = "--batch 8 --height 30 --width 30 --kernel-size 3 --padding 1 --channels 256 --filters 256 --gradient ";
    for (const char* gradient : {"weights", "data"})
        for (const char* fixed : {"", "--swap-ab on", "--swap-ab off", "--split-k 4", "--cluster 2x1", "--cluster 1x2", "--cluster 2x1 --split-k 2", "--cluster 1x2 --split-k 4 --swap-ab on",
                                  "--schedule pingpong", "--cluster 1x2 --evict-first a", "--tile 128x256x64", "--tile 256x128x64"})
            expect_built(image + gradient, fixed);
    for (const char* gradient : {"weights", "data"})
        for (const char* fixed : {"", "--split-k 2", "--cluster 2x1", "--cluster 1x2"})
            expect_built(fmt::format("--batch 2 --depth 9 --height 30 --width 30 --kernel-size 3 --padding 1 --channels 128 --filters 128 --gradient {}", gradient), fixed);
    for (const char* gradient : {"weights", "data"})  // tiles that are few
        for (const char* fixed : {"--grid-split-k 4", "--cluster 2x1 --grid-split-k 2"})
            expect_built(fmt::format("--batch 4 --height 14 --width 14 --kernel-size 3 --padding 1 --channels 128 --filters 128 --gradient {}", gradient), fixed);
    Random random(test_seed());
    for (std::size_t i = 0; i < test_count(8, 100); ++i) {
        const std::string line = drawn_gradient(random, i % 2 == 0);
        SCOPED_TRACE(line + fmt::format(", ROOFTILE_SAMPLE_SEED={}", test_seed()));
        const Given given = given_of(conv_operation(), line);
        const PlanSet set = conv_operation().derive(std::make_shared<const Machine>(machine_by_id("h200-sxm")), conv_operation().problem(given), conv_operation().request(given, {.top = 16}));
        ASSERT_FALSE(set.plans.empty()) << set.refusal->message;
        EXPECT_NO_THROW(compile(set.plans[std::size_t(random.whole(0, std::int64_t(set.plans.size()) - 1))]));
    }
}

// Gathered piece by piece, as planned for machines of each architecture that does so: drawn problems, every third with an epilogue.
TEST(ConvKernels, GatheredOnesDoNotSpill) {
    Random random(test_seed());
    const char* machines[] = {"a100-80-sxm", "h200-sxm", "l40s", "a40"};
    for (std::size_t i = 0; i < test_count(8, 60); ++i) {
        const bool deep = random.one_in(4);
        expect_built(fmt::format("--batch {} --channels {} --filters {} --height {} --width {}{} --kernel-size {} --stride {} --padding {} --type {}{}", random.whole(1, 32),
                                 8 * random.whole(1, random.coin() ? 6 : 24), random.coin() ? 16 << random.whole(0, 4) : random.whole(1, 200), random.whole(14, 112), random.whole(14, 112),
                                 deep ? " --depth 9" : "", random.whole(1, 7), random.whole(1, 2), random.whole(0, 3), random.coin() ? "bf16" : "fp16",
                                 random.one_in(3) ? " --epilogue \"y = relu(acc + bias) + r\" --tensor bias:bf16[N] --tensor r:bf16[M,N]" : ""),
                     "--kernel sm80_gemm", machines[i % 4]);
    }
}

/// Depthwise ones, groups of any size, stems, and groups by powers of two; filters up to 7 x 7, strides and dilation up to 3, every third with an epilogue.
std::string drawn_direct(Random& random) {
    std::int64_t groups = 1, channels, filters;
    switch (random.whole(0, 3)) {
        case 0: groups = channels = random.coin() ? 8 * random.whole(1, 24) : random.whole(2, 200), filters = groups * (random.one_in(3) ? 2 : 1); break;
        case 1: groups = random.whole(2, 60), channels = groups * random.whole(1, 16), filters = groups * random.whole(1, 16); break;
        case 2: channels = random.whole(1, 7), filters = random.coin() ? 8 * random.whole(1, 16) : random.whole(1, 100); break;
        default: groups = 1 << random.whole(1, 5), channels = groups << random.whole(0, 4), filters = groups << random.whole(0, 4);
    }
    const auto pair = [&](const char* flag, std::int64_t least, std::int64_t most) {
        const std::int64_t first = random.whole(least, most), second = random.coin() ? first : random.whole(least, most);
        return fmt::format(" {} {}x{}", flag, first, second);
    };
    std::string line = fmt::format("--batch {} --channels {} --filters {} --groups {} --height {} --width {}", random.whole(1, 32), channels, filters, groups, random.whole(20, 200),
                                   random.whole(20, 200));
    line += pair("--kernel-size", 1, 7) + pair("--stride", 1, 3) + pair("--padding", 0, 3) + pair("--dilation", 1, random.one_in(3) ? 3 : 1);
    if (random.coin()) line += " --type fp16";
    return random.one_in(3) ? line + " --epilogue \"y = relu(acc + bias) + r\" --tensor bias:bf16[N] --tensor r:bf16[M,N]" : line;
}

// Every vector, strip and rows that a drawn problem may have, two of them of each problem; all of more problems with ROOFTILE_TEST_ALL=1.
TEST(ConvKernels, DrawnDirectOnesDoNotSpill) {
    Random random(test_seed());
    const auto machine = std::make_shared<const Machine>(machine_by_id("h200-sxm"));
    std::size_t compiled = 0;
    for (std::size_t i = 0; i < test_count(16, 100); ++i) {
        const std::string line = drawn_direct(random);
        SCOPED_TRACE(line + fmt::format(", ROOFTILE_SAMPLE_SEED={}", test_seed()));
        const Given given = given_of(conv_operation(), line);
        const PlanSet set = conv_operation().derive(machine, conv_operation().problem(given), conv_operation().request(given, {.top = 48}));
        if (set.plans.empty()) {  // large groups of large filters
            EXPECT_EQ(set.refusal->reason, Reason::registers) << set.refusal->message;
            continue;
        }
        for (std::size_t plan = test_all() ? 0 : std::size_t(random.whole(0, 7)); plan < set.plans.size(); plan += test_all() ? 1 : set.plans.size() / 2 + 1, ++compiled)
            EXPECT_NO_THROW(compile(set.plans[plan])) << conv_operation().label(set.plans[plan]);
    }
    EXPECT_GT(compiled, 16u);
}

// What is drawn of stems, with and without an epilogue, each form of a warp's part.
TEST(ConvKernels, StemsDoNotSpill) {
    Random random(test_seed());
    for (int warp_tiles : {1, 2, 4})
        for (int warp_filters : {32, 64}) {
            const std::int64_t channels = random.whole(1, 15), most = 96 / channels < 11 ? 3 : 7;
            if (channels % 8 == 0) continue;
            expect_built(fmt::format("--batch 32 --channels {} --height 224 --width {} --filters {} --kernel-size {}x{} --stride {} --padding {} --type {}{}", channels, random.whole(200, 224), random.whole(1, 200),
                                     random.whole(1, most), random.whole(1, most), random.whole(1, 4), random.whole(0, 3), random.coin() ? "bf16" : "fp16",
                                     random.coin() ? " --epilogue \"y = relu(acc + bias) + r\" --tensor bias:bf16[N] --tensor r:bf16[M,N]" : ""),
                         fmt::format("--warp-tile {}x{} --warps 4", warp_tiles, warp_filters));
        }
}

// What is drawn of depthwise ones: those that are planned first, some of the rest, and all with ROOFTILE_TEST_ALL=1. A kernel is compiled in 0.8 s.
TEST(ConvKernels, DepthwiseOnesDoNotSpill) {
    Random random(test_seed());
    const auto machine = std::make_shared<const Machine>(machine_by_id("h200-sxm"));
    for (std::size_t i = 0; i < test_count(8, 100); ++i) {
        const std::int64_t channels = 8 * random.whole(1, 40), side = random.coin() ? 7 * random.whole(1, 8) : random.whole(1, 200);
        const std::string line = fmt::format("--batch {} --channels {} --filters {} --groups {} --height {} --width {} --kernel-size {}x{} --padding 4 --type {}{}", random.whole(1, 40), channels, channels, channels,
                                             random.coin() ? side : random.whole(1, 200), side, random.whole(1, 9), random.whole(1, 9), random.coin() ? "bf16" : "fp16",
                                             random.one_in(3) ? " --epilogue \"y = relu(acc + bias) + r\" --tensor bias:bf16[N] --tensor r:bf16[M,N]" : "");
        SCOPED_TRACE(line + fmt::format(", ROOFTILE_SAMPLE_SEED={}", test_seed()));
        ConvProblem p = conv_problem(given_of(conv_operation(), line));
        Rejected rejected;
        const std::vector<DirectPlan> found = depthwise_plans(*machine, p, {}, rejected);
        for (std::size_t plan = 0; plan < found.size(); plan += test_all() ? found.size() / 8 + 1 : std::size_t(random.whole(1, std::int64_t(found.size())))) {
            const DepthwiseConvConfig& c = found[plan].as<DepthwiseConvConfig>();
            expect_built(line, fmt::format("--planes {}x{}x{}x{}x{}x{}", c.images, c.groups, c.rows, c.blocks, c.channels, c.warps));
        }
    }
}

// An epilogue takes no more registers beside the plain kernel's than are counted for it.
TEST(ConvKernels, EpiloguesOfDirectOnesTakeTheRegistersOfTheirPlans) {
    const std::string epilogue = " --epilogue \"y = relu(acc + bias) + r\" --tensor bias:bf16[N] --tensor r:bf16[M,N]";
    for (const std::string& image : {std::string("--batch 32 --channels 96 --height 56 --width 56 --filters 96 --kernel-size 7 --padding 3 --groups 96"),
                                     std::string("--batch 32 --channels 144 --height 56 --width 56 --filters 144 --kernel-size 3 --padding 1 --groups 144"),
                                     std::string("--batch 32 --channels 128 --height 28 --width 28 --filters 128 --kernel-size 3 --padding 1 --groups 32"),
                                     std::string("--batch 32 --channels 3 --height 224 --width 224 --filters 64 --kernel-size 7 --stride 2 --padding 3")})
        for (const int vector : {2, 4}) {
            const auto first = [&](const std::string& line) {
                const Given given = given_of(conv_operation(), fmt::format("{} --vector {} --strip 2 --rows 1", line, vector));
                return conv_operation().derive(std::make_shared<const Machine>(machine_by_id("h200-sxm")), conv_operation().problem(given),
                                               conv_operation().request(given, {.top = 1})).plans.at(0);
            };
            const Plan plain = first(image), finished = first(image + epilogue);
            const std::vector<Step>& steps = finished.derivation;
            const auto counted = std::ranges::find(std::ranges::find(steps, "registers", &Step::quantity)->inputs, "the epilogue's", &Input::name);
            EXPECT_LE(compile(finished).code().entry.registers, compile(plain).code().entry.registers + *counted->value) << conv_operation().label(plain) << " of " << image;
        }
}

// And what verification reads of an image with its channels outermost.
TEST(ConvKernels, ImagesArePackedWithoutSpills) {
    for (const char* arch : {"sm_80", "sm_90"})
        for (const Source& source : {channels_last_source(arch), transpose_source(arch)}) {
            const Compiled compiled = compile_source(source);
            EXPECT_EQ(unclean(compiled), std::nullopt) << compiled.log;
            EXPECT_LE(compiled.entries.at(0).registers, 48) << source.name << ": five CTAs an SM have 40 KiB on their way";
        }
}

// Not the one that NVRTC takes: its configuration is a variable there.
TEST(ConvKernels, DirectOnesAreWrittenOutForNvcc) {
    if (nvcc().empty()) GTEST_SKIP() << "skipped: no nvcc";
    for (const char* line : {"--batch 32 --channels 64 --height 7 --width 7 --filters 64 --kernel-size 3 --padding 1 --groups 64",
                             "--batch 32 --channels 64 --height 14 --width 14 --filters 64 --kernel-size 5 --padding 2 --groups 64 --planes 4x2x7x2x16x4",
                             "--batch 32 --channels 3 --height 224 --width 224 --filters 64 --kernel-size 3 --padding 1 --warps 4"}) {
        const Given given = given_of(conv_operation(), line);
        const auto machine = std::make_shared<const Machine>(machine_by_id("h100-sxm"));
        const PlanSet set = conv_operation().derive(machine, conv_operation().problem(given), conv_operation().request(given, {.top = 1}));
        const EmittedFile file = emit_file(*machine, set, set.plans.front());
        const Folder folder;
        const std::string source = (folder.path() / file.name).string();
        std::ofstream(source) << file.text;
        const ChildOutcome made = run_child({nvcc(), "-std=c++20", "-arch=" + file.arch, "-c", source, "-o", (folder.path() / "x.o").string()});
        EXPECT_EQ(made.code, 0) << made.out << made.err;
        EXPECT_EQ(file.text.find("Check:"), std::string::npos) << "its program checks no result";
    }
}

}  // namespace
}  // namespace rooftile
