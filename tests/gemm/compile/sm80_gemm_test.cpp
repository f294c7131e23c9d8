// What sm80_gemm's configuration says about itself holds in the code that is made of it, on every architecture
// with cp.async and mma.sync: no spills, no more registers than it counts, the instructions it is about.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <random>

#include <fmt/core.h>

#include "kernels/gemm/sm80_gemm_arguments.hpp"
#include "rooftile/runtime/nvrtc.hpp"
#include "tests/from_environment.hpp"
#include "tests/gemm/compile/compiled.hpp"

namespace rooftile {
namespace {

constexpr const char* archs[] = {"sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"};
/// Registers of an SM, the same on all of them, and the most that a thread can have.
constexpr int sm_registers = 65536, max_registers = 255;

std::string literal(const Sm80GemmConfig& c) {
    return fmt::format(
        "rooftile::Sm80GemmConfig{{.tile_m={}, .tile_n={}, .tile_k={}, .stages={}, .warps_m={}, .warps_n={}, "
        ".ctas_per_sm={}, .type=rooftile::Type::{}, .a_major=rooftile::Major::{}, "
        ".b_major=rooftile::Major::{}, .a_copy_bytes={}, .b_copy_bytes={}, .partial_copies={}, "
        ".vector_store={}, .persistent={}, .image_axes={}}}",
        c.tile_m, c.tile_n, c.tile_k, c.stages, c.warps_m, c.warps_n, c.ctas_per_sm,
        c.type == Type::bf16 ? "bf16" : "fp16", c.a_major == Major::k ? "k" : "mn",
        c.b_major == Major::k ? "k" : "mn", c.a_copy_bytes, c.b_copy_bytes, c.partial_copies, c.vector_store,
        c.persistent, c.image_axes);
}

Source source_of(const Sm80GemmConfig& config, const char* arch) {
    const char* name = config.image_axes > 0 ? "sm80_image_gemm" : "sm80_gemm";
    return {.name = name,
            .text = fmt::format("#include \"kernels/gemm/{}.cuh\"\n", name),
            .name_expressions = {fmt::format("rooftile::{}<{}>", name, literal(config))},
            .arch = nvrtc_arch(arch)};
}

/// Warps are dealt to four partitions, which have a quarter of the registers each (docs/facts.md 387).
int launch_registers(const Sm80GemmConfig& c) {
    const int warps = (c.warps() * c.ctas_per_sm + 3) / 4 * 4;
    return std::min(max_registers, sm_registers / (32 * warps) / 8 * 8);
}

/// CTAs an SM that the registers it counts leave room for.
int ctas_by_registers(Sm80GemmConfig c) {
    for (c.ctas_per_sm = 8; c.ctas_per_sm > 0; --c.ctas_per_sm)
        if (c.registers() <= launch_registers(c)) return c.ctas_per_sm;
    return 0;
}

constexpr Sm80GemmConfig plain(int tile_m, int tile_n, int tile_k, int stages, int warps_m, int warps_n) {
    return {.tile_m = tile_m,
            .tile_n = tile_n,
            .tile_k = tile_k,
            .stages = stages,
            .warps_m = warps_m,
            .warps_n = warps_n,
            .ctas_per_sm = 1,
            .type = Type::bf16,
            .a_major = Major::k,
            .b_major = Major::k};
}
constexpr Sm80GemmConfig tiles[] = {
    plain(64, 64, 32, 5, 2, 2),   plain(64, 64, 64, 3, 2, 2),   plain(128, 64, 32, 4, 2, 2),
    plain(64, 128, 64, 3, 2, 2),  plain(128, 128, 32, 4, 2, 2), plain(128, 128, 64, 3, 2, 2),
    plain(128, 128, 32, 5, 2, 4), plain(128, 128, 64, 2, 4, 2), plain(256, 128, 32, 3, 4, 2),
    plain(128, 256, 64, 3, 2, 4), plain(256, 64, 32, 4, 4, 1),  plain(128, 96, 32, 4, 4, 1),
    plain(192, 128, 32, 4, 4, 2), plain(16, 128, 64, 4, 1, 4),  plain(32, 64, 128, 2, 1, 2),
    plain(64, 32, 64, 4, 4, 1)};

/// The widths of A's and B's copies; a sample meets the first more often.
constexpr int copies[][2] = {{16, 16}, {16, 16}, {16, 16}, {8, 8}, {4, 4}, {2, 2}, {16, 2}, {4, 16}};

struct Sm80Case {
    Sm80GemmConfig config;
    const char* arch;
};

std::vector<Sm80Case> all_cases() {
    std::vector<Sm80Case> cases;
    for (Sm80GemmConfig c : tiles)
        for (int bits = 0; bits < 64; ++bits)
            for (const auto& [a, b] : copies)
                for (const char* arch : archs) {
                    c.type = bits & 1 ? Type::fp16 : Type::bf16;
                    c.a_major = bits & 2 ? Major::mn : Major::k;
                    c.b_major = bits & 4 ? Major::mn : Major::k;
                    c.partial_copies = bits & 8;
                    c.vector_store = bits & 16;
                    c.persistent = bits & 32;
                    c.a_copy_bytes = a, c.b_copy_bytes = b;
                    c.ctas_per_sm = ctas_by_registers(c);
                    if (c.ctas_per_sm > 0 && c.copies_evenly()) cases.push_back({c, arch});
                }
    return cases;
}

/// Of those that gather A from an image of two or three axes.
std::vector<Sm80Case> all_image_cases() {
    std::vector<Sm80Case> cases;
    for (Sm80Case each : all_cases()) {
        Sm80GemmConfig& c = each.config;
        if (c.a_major != Major::k || c.b_major != Major::k || c.narrow_copies() || c.partial_copies) continue;
        for (c.image_axes = 2; c.image_axes <= 3; ++c.image_axes)
            if (c.ctas_per_sm = ctas_by_registers(c); c.ctas_per_sm > 0) cases.push_back(each);
    }
    return cases;
}

void expect_counted(const std::vector<Sm80Case>& cases) {
    std::vector<Source> sources;
    for (const Sm80Case& c : cases) sources.push_back(source_of(c.config, c.arch));
    const std::vector<CompileOutcome> outcomes = compile_all(sources);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        SCOPED_TRACE(fmt::format("{} {}", cases[i].arch, literal(cases[i].config)));
        expect_clean(outcomes[i], launch_registers(cases[i].config));
    }
}

TEST(Sm80Gemm, CompilesWithTheRegistersItCounts) {
    const std::vector<Sm80Case> everywhere = all_cases();
    ASSERT_GT(everywhere.size(), 10000u);
    expect_counted(drawn_few(everywhere, 8, 36));
}

TEST(Sm80Gemm, ImagesCompileWithTheRegistersTheyCount) {
    const std::vector<Sm80Case> everywhere = all_image_cases();
    ASSERT_GT(everywhere.size(), 1000u);
    expect_counted(drawn_few(everywhere, 8, 36));
}

// Of a 128x64x64 tile on 2 x 2 warps: 8 + 4 copies a thread, in the loop and before it, whose bounds are bits of words that a tile's beginning makes.
TEST(Sm80Gemm, GathersAnImagePieceByPiece) {
    Sm80GemmConfig config = plain(128, 64, 64, 3, 2, 2);
    const std::string matrix = compile_to_ptx(source_of(config, "sm_80"));
    config.image_axes = 2;
    const std::string ptx = compile_to_ptx(source_of(config, "sm_80"));
    EXPECT_EQ(mentions(ptx, "cp.async.cg.shared.global.L2::128B"), 2 * 12);
    EXPECT_EQ(mentions(ptx, "div."), mentions(matrix, "div."));  // none but the tile scheduler's
}

// Of a 128x128x32 tile on 2 x 2 warps: two k-steps of 4 x 8 mma and 4 + 4 ldmatrix a block, the first fragments once
// more before the loop; 4 + 4 copies a thread, in the loop and before it.
TEST(Sm80Gemm, MultipliesAndCopiesAsItSays) {
    Sm80GemmConfig config = plain(128, 128, 32, 4, 2, 2);
    for (Major a : {Major::k, Major::mn})
        for (Major b : {Major::k, Major::mn}) {
            config.a_major = a, config.b_major = b;
            const std::string ptx = compile_to_ptx(source_of(config, "sm_80"));
            EXPECT_EQ(mentions(ptx, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"), 2 * 32);
            EXPECT_EQ(mentions(ptx, "ldmatrix.sync.aligned.m8n8.x4"), 3 * 8);
            EXPECT_EQ(mentions(ptx, "ldmatrix.sync.aligned.m8n8.x4.trans"),
                      3 * 4 * ((a == Major::mn) + (b == Major::mn)));
            EXPECT_EQ(mentions(ptx, "cp.async.cg.shared.global.L2::128B"), 2 * 8);
            EXPECT_EQ(mentions(ptx, "st.global.v4"), 128 / 8);
        }
}

TEST(Sm80Gemm, NarrowOperandsAreCopiedNarrowly) {
    Sm80GemmConfig config = plain(64, 64, 32, 3, 2, 2);
    config.a_copy_bytes = 4, config.b_copy_bytes = 2;
    config.vector_store = false;
    const std::string ptx = compile_to_ptx(source_of(config, "sm_80"));
    EXPECT_EQ(mentions(ptx, "cp.async.cg"), 0);
    EXPECT_GT(mentions(ptx, "cp.async.ca.shared.global [%r"), 0);
    EXPECT_GT(mentions(ptx, "st.shared.u16"), 0);
    EXPECT_EQ(mentions(ptx, "st.global.v4"), 0);
}

// The banks that ldmatrix's eight rows lie in, by the kernel's own arithmetic.
TEST(Sm80Gemm, EightRowsOfAChunkLieInDifferentBanks) {
    std::string text = R"(
#include "kernels/gemm/sm80_gemm.cuh"
template <rooftile::Sm80GemmConfig C, bool is_a>
constexpr bool free_of_conflicts() {
    using Tile = rooftile::Sm80Operand<C, is_a>;
    for (int first = 0; first < Tile::rows; first += 8)
        for (int chunk = 0; chunk < Tile::chunks; ++chunk) {
            unsigned groups = 0;
            for (int row = first; row < first + 8; ++row) groups |= 1u << Tile::place(row, chunk) / 16 % 8;
            if (groups != 0xff) return false;
        }
    return true;
}
/// Each chunk of the tile has a place of its own.
template <rooftile::Sm80GemmConfig C, bool is_a>
constexpr bool one_to_one() {
    using Tile = rooftile::Sm80Operand<C, is_a>;
    bool taken[Tile::rows * Tile::chunks] = {};
    for (int row = 0; row < Tile::rows; ++row)
        for (int chunk = 0; chunk < Tile::chunks; ++chunk) {
            bool& place = taken[Tile::place(row, chunk) / 16];
            if (place) return false;
            place = true;
        }
    return true;
}
)";
    for (Sm80GemmConfig config : tiles)
        for (Major major : {Major::k, Major::mn}) {
            config.a_major = config.b_major = major;
            for (const char* property : {"free_of_conflicts", "one_to_one"})
                for (const char* is_a : {"true", "false"})
                    text += fmt::format("static_assert({}<{}, {}>());\n", property, literal(config), is_a);
        }
    EXPECT_NO_THROW(compile_source({.name = "banks", .text = text, .name_expressions = {}, .arch = "sm_80"}));
}

static_assert(sm80_copy_bytes(0x7f0000000000, 4096) == 16);
static_assert(sm80_copy_bytes(0x7f0000000008, 4096) == 8);
static_assert(sm80_copy_bytes(0x7f0000000000, 4094) == 4);  // rows of 8188 B
static_assert(sm80_copy_bytes(0x7f0000000000, 4095) == 2);
static_assert(!sm80_partial_copies(4096, 16) && sm80_partial_copies(4095, 16) && !sm80_partial_copies(7, 2));
static_assert(sm80_vector_store(0x7f0000000000, 4096, 4088)
              && !sm80_vector_store(0x7f0000000000, 4096, 4095));
static_assert(sm80_tiles(plain(128, 128, 32, 4, 2, 2), 257, 128) == 3);
static_assert(sm80_grid(plain(128, 128, 32, 4, 2, 2), 4096, 4096, 1, 264) == 1024);

}  // namespace
}  // namespace rooftile
