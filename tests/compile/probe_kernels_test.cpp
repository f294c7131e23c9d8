// Every probe kernel compiles clean: a probe that spills measures its own spills.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "rooftile/probe/launch_sampler.hpp"

namespace rooftile {
namespace {

TEST(ProbeKernelsCompile, WithoutSpillsOrStack) {
    const std::vector<ProbeProgram> programs = probe_programs();
    // tma, fill, memory, ceilings, sm, cluster, dependent, wgmma_stream, mma_sync, 16 widths of wgmma
    ASSERT_EQ(programs.size(), 26u);
    std::vector<Source> sources;
    for (const ProbeProgram& program : programs) sources.push_back(probe_source(program, "sm_90"));
    const std::vector<CompileOutcome> outcomes = compile_all(sources);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        if (const auto* error = std::get_if<Error>(&outcomes[i])) {
            ADD_FAILURE() << sources[i].name << ": " << error->what() << "\n" << error->detail();
            continue;
        }
        const Compiled& compiled = std::get<Compiled>(outcomes[i]);
        EXPECT_EQ(unclean(compiled).value_or(""), "") << sources[i].name << "\n" << compiled.log;
        EXPECT_EQ(compiled.lowered_names.size(), programs[i].kernels.size());
    }
}

template <class T>
T read_at(std::string_view bytes, std::size_t at) {
    T value{};
    if (at + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

/// The machine code of `kernel`: section .text.<kernel> of a 64-bit ELF file.
std::string_view code_of(std::string_view cubin, const std::string& kernel) {
    const auto headers = read_at<std::uint64_t>(cubin, 0x28);
    const auto size = read_at<std::uint16_t>(cubin, 0x3a), count = read_at<std::uint16_t>(cubin, 0x3c);
    const auto field = [&](unsigned section, unsigned at) {
        return read_at<std::uint64_t>(cubin, headers + std::uint64_t{section} * size + at);
    };
    const std::uint64_t names = field(read_at<std::uint16_t>(cubin, 0x3e), 0x18);
    for (unsigned section = 0; section < count; ++section) {
        const char* name = cubin.data() + names + static_cast<std::uint32_t>(field(section, 0));
        if (name == ".text." + kernel) return cubin.substr(field(section, 0x18), field(section, 0x20));
    }
    return {};
}

/// The most instructions of `opcode` between a branch back and where it goes. sm_90: 16 bytes each, the
/// opcode in the lowest 12 bits; BRA's distance, in words of 4 bytes from the next instruction, has its low 8
/// bits from bit 16 and the rest, signed, from bit 34.
int max_in_a_loop(std::string_view code, unsigned opcode) {
    const auto opcode_at = [&](std::size_t at) { return read_at<std::uint64_t>(code, at) & 0xfff; };
    int most = 0;
    for (std::size_t at = 0; at + 16 <= code.size(); at += 16) {
        const auto word = read_at<std::uint64_t>(code, at);
        const std::int64_t words = (static_cast<std::int64_t>(word) >> 34) * 256 + (word >> 16 & 0xff);
        const std::int64_t to = static_cast<std::int64_t>(at) + 16 + 4 * words;
        if (opcode_at(at) != 0x947 || words >= -4 || to < 0) continue;  // a jump to itself ends a kernel
        int count = 0;
        for (auto i = static_cast<std::size_t>(to); i < at; i += 16) count += opcode_at(i) == opcode;
        most = std::max(most, count);
    }
    return most;
}

int times_in(std::string_view text, std::string_view what) {
    int count = 0;
    for (auto at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
    return count;
}

/// What a loop repeats is in it: the assembler takes loads of an unchanged address out, and merges them.
TEST(ProbeKernelsCompile, LoopsHoldWhatTheyCount) {
    struct Loop {
        const char *program, *kernel;
        unsigned opcode;
        int count;
        const char* ptx;  ///< stands as often in the program's PTX: the loop is not unrolled there either
    };
    constexpr unsigned lds = 0x984, ld = 0x980, ffma = 0x223, mufu = 0x308, hmma = 0x23c;
    constexpr Loop loops[] = {
        {"sm", "rooftile::shared_read", lds, 8, "ld.shared.v4.u32"},
        {"cluster", "rooftile::dsmem_read", ld, 4, "ld.shared::cluster.v4.f32"},
        {"mma_sync", "rooftile::mma_sync_stream<rooftile::Type::bf16, 8, 4, 8>", hmma, 4 * 8, nullptr},
        {"mma_sync", "rooftile::mma_sync_stream<rooftile::Type::fp16, 8, 4, 8>", hmma, 4 * 8, nullptr},
        {"mma_sync", "rooftile::mma_sync_stream<rooftile::Type::bf16, 16, 2, 4>", hmma, 2 * 4, nullptr},
        {"sm", "rooftile::fma_rate", ffma, alu_chains * fma_unroll, nullptr},
        {"sm", "rooftile::mufu_rate", mufu, alu_chains * mufu_unroll, "ex2.approx.ftz.f32"}};
    for (const ProbeProgram& program : probe_programs()) {
        if (program.name != "sm" && program.name != "cluster" && program.name != "mma_sync") continue;
        const Compiled compiled = compile_source(probe_source(program, "sm_90"));
        const std::string ptx = compile_to_ptx(probe_source(program, "sm_90"));
        for (const Loop& loop : loops) {
            if (program.name != loop.program) continue;
            if (loop.ptx) { EXPECT_EQ(times_in(ptx, loop.ptx), loop.count) << loop.kernel; }
            for (std::size_t k = 0; k < program.kernels.size(); ++k) {
                if (program.kernels[k] != loop.kernel) continue;
                const std::string_view code =
                    code_of({compiled.cubin.data(), compiled.cubin.size()}, compiled.lowered_names[k]);
                ASSERT_FALSE(code.empty()) << loop.kernel;
                EXPECT_EQ(max_in_a_loop(code, loop.opcode), loop.count) << loop.kernel;
            }
        }
    }
}

/// The instructions that a probe is about are there, as often as its figures count them.
TEST(ProbeKernelsCompile, KeepWhatTheyMeasure) {
    struct Mark {
        const char* program;
        const char* text;
        int least;
    };
    constexpr Mark marks[] = {{"tma", "cp.async.bulk.tensor.2d", 1},
                              {"tma", "cp.async.bulk.shared::cluster.global", 1},
                              {"wgmma_256", "wgmma.mma_async.sync.aligned.m64n256k16", 4},
                              {"sm", "ld.shared.v4.u32", 8},
                              {"sm", "ex2.approx.ftz.f32", 32},
                              {"sm", "fma.rn.f32", 512},
                              {"wgmma_stream", "wgmma.mma_async.sync.aligned.m64n256k16", 4},
                              {"mma_sync", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 32},
                              {"mma_sync", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 32},
                              {"cluster", "barrier.cluster.wait.acquire", 1},
                              {"dependent", "griddepcontrol.launch_dependents", 1},
                              {"dependent", "griddepcontrol.wait", 1},
                              {"memory", "ld.global.cg.v4", 5},
                              {"ceilings", "ld.global.cg.v4", 4 + 3 + 4 + 2 + 2 + 1 + 4 + 4},
                              {"ceilings", "st.global.v4", 1 + 2 + 2 + 4 + 3 + 4 + 4}};
    for (const Mark& mark : marks) {
        for (const ProbeProgram& program : probe_programs()) {
            if (program.name != mark.program) continue;
            const std::string ptx = compile_to_ptx(probe_source(program, "sm_90"));
            EXPECT_GE(times_in(ptx, mark.text), mark.least) << mark.program << ": " << mark.text;
        }
    }
}

}  // namespace
}  // namespace rooftile
