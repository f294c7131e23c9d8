// The reading of ptxas' log, on logs as NVRTC 13.0 gives them. nvrtc_test.cpp makes real ones.
#include <gtest/gtest.h>

#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile {
namespace {

constexpr const char* two_entries = R"(ptxas info    : 64 bytes gmem
ptxas info    : Compiling entry function '_Z1tILi3EEvPi' for 'sm_90a'
ptxas info    : Function properties for _Z1tILi3EEvPi
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers, 384 bytes cmem[0]
ptxas info    : Compile time = 1.181 ms
ptxas info    : Compiling entry function '_Z1kPii' for 'sm_90a'
ptxas info    : Function properties for _Z1kPii
ptxas         .     256 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 168 registers, used 16 barriers, 256 bytes cumulative stack size, 40 bytes smem
)";

TEST(PtxasLog, EveryEntryWithItsNumbers) {
    auto entries = parse_entries(two_entries);
    ASSERT_EQ(entries.size(), 2u);
    EXPECT_EQ(entries[0].name, "_Z1tILi3EEvPi");
    EXPECT_EQ(entries[0].registers, 8);
    EXPECT_EQ(entries[0].constant_bytes, 384);
    EXPECT_EQ(entries[0].stack_bytes, 0);
    EXPECT_EQ(entries[1].name, "_Z1kPii");
    EXPECT_EQ(entries[1].registers, 168);
    EXPECT_EQ(entries[1].barriers, 16);
    EXPECT_EQ(entries[1].static_shared_bytes, 40);
    EXPECT_EQ(entries[1].stack_bytes, 256);
    EXPECT_EQ(entries[1].spill_store_bytes, 12);
    EXPECT_EQ(entries[1].spill_load_bytes, 16);
}

TEST(PtxasLog, NothingFromNothing) {
    EXPECT_TRUE(parse_entries("").empty());
    EXPECT_TRUE(parse_entries("Used 12 registers\n0 bytes stack frame").empty());
}

Compiled with_log(const std::string& log) {
    Compiled compiled;
    compiled.log = log;
    compiled.entries = {EntryInfo{.name = "k", .registers = 168}};
    return compiled;
}

TEST(PtxasLog, CleanIsClean) {
    EXPECT_FALSE(unclean(with_log("ptxas info    : Used 168 registers")));
    // Codes of other families, and numbers that only resemble one.
    EXPECT_FALSE(unclean(with_log("info (C7010) something\n0xC75FF C750 C75101")));
    EXPECT_NO_THROW(check_clean(with_log(""), "k"));
}

TEST(PtxasLog, MessagesOfTheRefusedFamiliesAreReasons) {
    for (const char* code : {"C7500", "C7508", "C7511", "C7599", "C7600", "C7604"}) {
        auto reason = unclean(with_log("first line\nptxas info : (" + std::string(code)
                                       + ") Potential Performance Loss: wgmma serialized\n"));
        ASSERT_TRUE(reason) << code;
        EXPECT_NE(reason->find(code), std::string::npos);
    }
}

TEST(PtxasLog, SpillsFramesAndLocalMemoryAreReasonsOfTheirOwn) {
    Compiled spill = with_log(""), frame = with_log(""), local = with_log("");
    spill.entries[0].spill_load_bytes = 4;
    frame.entries[0].stack_bytes = 8;
    local.entries[0].local_bytes = 16;
    EXPECT_NE(unclean(spill)->find("registers spill: 0 B stored, 4 B loaded"), std::string::npos);
    EXPECT_NE(unclean(frame)->find("stack frame of 8 B"), std::string::npos);
    EXPECT_NE(unclean(local)->find("local memory of 16 B"), std::string::npos);
    try {
        check_clean(spill, "sm90_gemm");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::compile_failed);
        EXPECT_NE(std::string(error.what()).find("sm90_gemm"), std::string::npos);
    }
}

}  // namespace
}  // namespace rooftile
