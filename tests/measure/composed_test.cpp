// Plans of parts as one runnable: every part is given the tensors that its wires name, and a place in the workspace of its own.
#include "rooftile/measure/composed.hpp"

#include <gmock/gmock.h>

#include <map>

#include "rooftile/core/operation.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/runtime/kernel_codes.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;

/// What a part was launched with.
struct Launched {
    std::vector<void*> tensors;
    void* workspace = nullptr;
};

class Recorder final : public Runnable {
  public:
    Recorder(std::string name, std::size_t workspace, std::vector<Launched>& log) : name_(std::move(name)), workspace_(workspace), log_(log) {}
    KernelCode code() const override {
        KernelCode code;
        code.name = name_;
        return code;
    }
    std::string ptx() const override { return name_ + ";"; }
    std::size_t workspace_bytes() const override { return workspace_; }
    std::int64_t shared_bytes() const override { return std::int64_t(workspace_) + 7; }
    void load() const override {}
    void launch(Stream, std::span<void* const> tensors, void* workspace) const override { log_.push_back({{tensors.begin(), tensors.end()}, workspace}); }

  private:
    std::string name_;
    std::size_t workspace_;
    std::vector<Launched>& log_;
};

/// `texts`: fields and their values; of a field that is present or not, "" where it is present.
Plan planned(const char* operation, const std::vector<std::pair<const char*, const char*>>& texts) {
    Given given(Given::Named::by_key);
    for (const auto& [key, text] : texts) given.add(key, text);
    const auto machine = std::make_shared<const Machine>(machine_by_id("h100-sxm"));
    PlanSet set = derive_part(operation, machine, given);
    return set.plans.at(0);
}

void* address(std::uintptr_t value) { return reinterpret_cast<void*>(value); }

/// Launches `plan` on tensors at 0x1000, 0x2000, ... and a workspace at 0x100000, its parts with these workspaces.
std::vector<Launched> launched(const Plan& plan, std::vector<std::size_t> workspaces, std::size_t tensors) {
    std::vector<Launched> log;
    std::vector<CompiledKernel> parts;
    for (std::size_t i = 0; i < plan.parts.size(); ++i)
        parts.emplace_back(plan.parts[i], std::make_shared<const Recorder>("part" + std::to_string(i), workspaces.at(i), log));
    std::vector<void*> pointers;
    for (std::size_t i = 0; i < tensors; ++i) pointers.push_back(address(0x1000 * (i + 1)));
    composed(plan, parts)->launch(Stream(nullptr), pointers, address(0x100000));
    return log;
}

TEST(Composed, AChainsProductsMeetInTheWorkspace) {
    for (const bool residual : {false, true}) {
        std::vector<std::pair<const char*, const char*>> texts{{"m", "1000"}, {"d", "512"}, {"ff", "2048"}, {"form", "two_kernels"}};
        if (residual) texts.emplace_back("residual", "");
        const Plan plan = planned("chain", texts);
        const auto log = launched(plan, {300, 128}, 4);
        ASSERT_EQ(log.size(), 2u);
        EXPECT_EQ(log[0].tensors, (std::vector<void*>{address(0x1000), address(0x2000), address(0x100000)}));
        std::vector<void*> second{address(0x100000), address(0x3000)};
        if (residual) second.push_back(address(0x1000));
        second.push_back(address(0x4000));
        EXPECT_EQ(log[1].tensors, second);
        // H is 1000 x 2048 of 2 B = 4096000 B, whole 256s; 300 B of the first part take 512.
        EXPECT_EQ(log[0].workspace, address(0x100000 + 4096000));
        EXPECT_EQ(log[1].workspace, address(0x100000 + 4096000 + 512));
    }
}

TEST(Composed, GatesAndUpsAreTwoTensorsOfOneBetween) {
    const Plan plan = planned("gemm", {{"m", "512"}, {"n", "1024"}, {"k", "2048"}, {"epilogue", "d = silu(gate) * up + x"}, {"pairs", "split"}, {"tensor", "x:bf16[M,N/2]"}, {"epilogue_apart", "on"}});
    ASSERT_EQ(plan.parts.size(), 2u);
    const auto log = launched(plan, {0, 64}, 4);
    ASSERT_EQ(log.size(), 2u);
    EXPECT_EQ(log[0].tensors, (std::vector<void*>{address(0x1000), address(0x2000), address(0x100000)}));
    EXPECT_EQ(log[0].workspace, nullptr);
    const std::size_t gates = std::size_t{512} * 512 * 4;
    EXPECT_EQ(log[1].tensors, (std::vector<void*>{address(0x100000), address(0x100000 + gates), address(0x3000), address(0x4000)}));
    EXPECT_EQ(log[1].workspace, address(0x100000 + 2 * gates));
}

// Where groups end is the product's to know, not the epilogue's.
TEST(Composed, ATensorOfTheProductAloneStaysWithIt) {
    const Plan plan = planned("gemm", {{"groups", "100,200,300"}, {"n", "1024"}, {"k", "2048"}, {"epilogue", "d = acc + x"}, {"tensor", "x:bf16[M,N]"}, {"epilogue_apart", "on"}});
    ASSERT_EQ(plan.parts.size(), 2u);
    const auto log = launched(plan, {0, 0}, 5);
    ASSERT_EQ(log.size(), 2u);
    EXPECT_EQ(log[0].tensors, (std::vector<void*>{address(0x1000), address(0x2000), address(0x3000), address(0x100000)}));
    EXPECT_EQ(log[1].tensors, (std::vector<void*>{address(0x100000), address(0x4000), address(0x5000)}));
}

TEST(Composed, TellsOfAllItsParts) {
    const Plan plan = planned("chain", {{"m", "256"}, {"d", "512"}, {"ff", "512"}, {"form", "two_kernels"}});
    std::vector<Launched> log;
    std::vector<CompiledKernel> parts;
    for (std::size_t i = 0; i < 2; ++i) parts.emplace_back(plan.parts[i], std::make_shared<const Recorder>("part" + std::to_string(i), 16 * i, log));
    const auto runnable = composed(plan, parts);
    EXPECT_EQ(runnable->code().name, "part0, then part1");
    EXPECT_EQ(runnable->ptx(), "part0;part1;");
    EXPECT_EQ(runnable->shared_bytes(), 23);
    EXPECT_EQ(runnable->workspace_bytes(), 256u * 512 * 2 + 256) << "16 B, up to where an allocation begins";
    EXPECT_EQ(codes_of(CompiledKernel(plan, runnable)).size(), 2u);
}

TEST(Composed, WhatIsMissingIsNamed) {
    Plan plan = planned("chain", {{"m", "256"}, {"d", "512"}, {"ff", "512"}, {"form", "two_kernels"}});
    std::vector<Launched> log;
    const auto made = [&] {
        std::vector<CompiledKernel> parts;
        for (const Plan& part : plan.parts) parts.emplace_back(part, std::make_shared<const Recorder>("part", 0, log));
        return composed(plan, parts);
    };
    const auto why = [&](std::vector<void*> tensors, void* workspace) {
        try {
            made()->launch(Stream(nullptr), tensors, workspace);
        } catch (const RequestError& error) { return std::string(error.what()); }
        return std::string();
    };
    void* const some = address(0x1000);
    EXPECT_THAT(why({some, some, some}, some), HasSubstr("3 tensors are given; there are 4"));
    EXPECT_THAT(why({some, nullptr, some, some}, some), HasSubstr("the pointer to W1 is null"));
    EXPECT_THAT(why({some, some, some, some}, nullptr), HasSubstr("the workspace is null"));
    EXPECT_TRUE(log.empty());
    plan.wires[1][0].tensor = "G";
    EXPECT_THROW(made(), RequestError);
}

}  // namespace
}  // namespace rooftile
