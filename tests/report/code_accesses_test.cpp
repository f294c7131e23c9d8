#include "rooftile/report/code_accesses.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace rooftile {
namespace {

using Widths = std::map<int, int>;

TEST(CodeAccesses, OfSassAreThoseOfTheEntryAlone) {
    // As nvdisasm prints it: a label each, and a line of dashes before the next section.
    const std::string text =
        "//--------------------- .text.other --------------------------\n.text.other:\n"
        "        /*0040*/                   LDG.E.64 R2, desc[UR4][R2.64] ;\n"
        "//--------------------- .text.mine --------------------------\n.text.mine:\n"
        "        /*0040*/              @!P0 LDG.E.128.CONSTANT R8, desc[UR4][R2.64] ;\n"
        "        /*0050*/                   LDG.E.U16 R4, desc[UR4][R2.64] ;\n"
        "        /*0060*/                   LDG.E R4, desc[UR4][R2.64+0x4] ;\n"
        "        /*0070*/                   STG.E.128 desc[UR4][R4.64], R8 ;\n"
        "        /*0080*/                   STG.E.U8 desc[UR4][R4.64], R8 ;\n"
        "        /*0090*/                   LDGSTS.E.128 [R1], desc[UR4][R2.64] ;\n"
        "//--------------------- .nv.shared --------------------------\n";
    const AccessWidths widths = sass_accesses(text, "mine");
    EXPECT_EQ(widths.loads, (Widths{{16, 1}, {2, 1}, {4, 1}}));
    EXPECT_EQ(widths.stores, (Widths{{16, 1}, {1, 1}}));
    EXPECT_EQ(sass_accesses(text, "other").loads, (Widths{{8, 1}}));
    EXPECT_TRUE(sass_accesses(text, "none").empty());
    const std::string cuobjdump =
        "\t\tFunction : mine\n\t.headerflags\n        /*0040*/  STG.E.64 [R4], R8 ;\n\t\tFunction : b\n "
        "STG.E [R4], R8 ;\n";
    EXPECT_EQ(sass_accesses(cuobjdump, "mine").stores, (Widths{{8, 1}}));
}

TEST(CodeAccesses, OfPtxKnowVectorsAndPairs) {
    const std::string text =
        ".visible .entry mine(\n\t.param .u64 mine_param_0\n)\n{\n"
        "\tld.param.u64 %rd1, [mine_param_0];\n"
        "\tld.global.nc.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];\n"
        "\t@%p1 ld.relaxed.cta.global.b16 %rs1, [%rd1];\n"
        "\tst.global.v2.b64 [%rd1], {%rd2, %rd3};\n"
        "\tst.shared.u32 [%r1], %r2;\n"
        "}\n.visible .entry other(\n)\n{\n\tst.global.u8 [%rd1], %rs1;\n}\n";
    const AccessWidths widths = ptx_accesses(text, "mine");
    EXPECT_EQ(widths.loads, (Widths{{16, 1}, {2, 1}}));
    EXPECT_EQ(widths.stores, (Widths{{16, 1}}));
    EXPECT_EQ(widths_text(widths.loads), "1 of 16 B, 1 of 2 B");
    EXPECT_EQ(widths_text({}), "none");
}

TEST(CodeAccesses, ParametersAreThoseOfTheEntry) {
    const std::string text =
        ".visible .entry mine(\n\t.param .u64 .ptr .align 1 mine_param_0,\n\t.param .u32 mine_param_1,\n"
        "\t.param .align 4 .b8 mine_param_2[12],\n\t.param .f64 mine_param_3\n)\n.maxntid 64\n{\n}\n"
        ".visible .entry mine_too(\n\t.param .f32 mine_too_param_0\n)\n{\n}\n.visible .entry bare()\n{\n}\n";
    EXPECT_EQ(entry_parameters(text, "mine"), (std::vector<int>{8, 4, 12, 8}));
    EXPECT_EQ(entry_parameters(text, "mine_too"), (std::vector<int>{4}));
    EXPECT_TRUE(entry_parameters(text, "bare").empty());
    EXPECT_TRUE(entry_parameters(text, "min").empty());
}

TEST(CodeAccesses, AnnotationsStandBehindTheirLines) {
    const std::string code =
        "\tmov.u32 %r1, %ctaid.x;\n\tst.global.v2.b64 [%rd1], {%rd2, %rd3};\n\tadd.u32 %r1, %r2, %r3;\n"
        "        /*0040*/                   LDG.E.64 R2, desc[UR4][R2.64] ;\n  /*0050*/ "
        "BAR.SYNC.DEFER_BLOCKING 0x0 ;\n";
    std::vector<std::string> lines;
    std::istringstream in(annotated_code(code));
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    ASSERT_EQ(lines.size(), 5u);
    EXPECT_TRUE(lines[0].starts_with("\tmov.u32 %r1, %ctaid.x;")
                && lines[0].ends_with("// blockIdx: place of the CTA in the grid"));
    EXPECT_TRUE(lines[1].ends_with("// global memory: store of 16 B a thread (4 of 32 bits, 8 of 16, 16 of 8)"));
    EXPECT_EQ(lines[2], "\tadd.u32 %r1, %r2, %r3;");
    EXPECT_TRUE(lines[3].ends_with("// global memory: load of 8 B a thread (2 of 32 bits, 4 of 16, 8 of 8)"));
    EXPECT_TRUE(lines[4].ends_with("// barrier of the CTA"));
}

TEST(CodeAccesses, AnnotationsNameUnitsAndPredicates) {
    const std::pair<const char*, const char*> lines[] = {
        {"\t@%p1 ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [%r1];", "shared memory: load of 16 B a thread (4 of 32 bits, 8 of 16, 16 of 8), only where %p1"},
        {"        /*00a0*/              @!P0 BRA `(.L_x_1) ;", "branch, only where not P0"},
        {"        /*00a0*/              @P2  IMAD R1, R2, R3, R4 ;", "only where P2"},
        {"\tcp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];",
         "TMA: copy of a box of a tensor, asked for by one thread"},
        {"\tcp.async.commit_group;", "cp.async: end of a group"},
        {"\tbar.warp.sync 0xffffffff;", "barrier of the warp"},
        {"        /*0100*/                   LDSM.16.M88.4 R4, [R2] ;", "ldmatrix: a warp loads 8 x 8 matrices from shared memory"},
        {"        /*0100*/                   LDS.128 R4, [R2] ;", "shared memory: load of 16 B a thread (4 of 32 bits, 8 of 16, 16 of 8)"},
        {"        /*0100*/                   STL [R1], R2 ;", "store of spilled or indexed registers of 4 B a thread (2 of 16 bits, 4 of 8)"}};
    for (const auto& [line, remark] : lines) {
        const std::string got = annotated_code(line);
        EXPECT_TRUE(got.starts_with(line)) << got;
        EXPECT_TRUE(got.ends_with(std::string("// ") + remark + "\n")) << got;
    }
    // What is a comment stays one, and says nothing of instructions that it names.
    EXPECT_EQ(annotated_code("// bar.sync\n"), "// bar.sync\n");
    EXPECT_EQ(annotated_code(ptx_legend()), ptx_legend());
    EXPECT_EQ(annotated_code(sass_legend()), sass_legend());
}

TEST(CodeAccesses, EntriesAreFoundInOrder) {
    EXPECT_EQ(ptx_entries(".version 8.0\n.visible .entry mine(\n)\n{\n}\n.entry mine_too ()\n{\n}\n"), (std::vector<std::string>{"mine", "mine_too"}));
    EXPECT_TRUE(ptx_entries(".visible .func f()\n").empty());
}

}  // namespace
}  // namespace rooftile
