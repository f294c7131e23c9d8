// That mutants are compiled, and are not the kernel itself; needs no GPU.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rooftile/measure/device_operation.hpp"
#include "rooftile/runtime/kernel_codes.hpp"
#include "tests/device/mutant.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {

inline void expect_other_code(const Operation& operation, std::vector<Mutant> mutants) {
    std::map<std::string, CompiledKernel> kernels;  // without a mistake, by problem
    for (const Mutant& mutant : drawn_few(std::move(mutants), 8)) {
        SCOPED_TRACE(mutant.name + ": " + mutant.problem);
        const PlanSet set = planned(operation, mutant);
        ASSERT_EQ(set.plans.size(), 1u) << "no plan is as asked for";
        try {
            if (!kernels.contains(mutant.problem)) kernels.emplace(mutant.problem, compile(set.plans.front()));
            const CompiledKernel& right = kernels.at(mutant.problem);
            const CompiledKernel wrong = compile(set.plans.front(), {.alter = alteration(mutant)});
            // Of several kernels one has the mistake.
            const std::vector<KernelCode> wrongs = codes_of(wrong), rights = codes_of(right);
            bool differs = false;
            for (std::size_t i = 0; i < wrongs.size(); ++i) {
                differs |= wrongs[i].cubin != rights.at(i).cubin && wrongs[i].hash != rights[i].hash;
                EXPECT_FALSE(wrongs[i].from_cache);
            }
            EXPECT_TRUE(differs) << "the compiler sees no difference";
        } catch (const Error& error) {
            ADD_FAILURE() << error.what() << '\n' << error.detail();
        } catch (const std::exception& error) { ADD_FAILURE() << error.what(); }
    }
}

}  // namespace rooftile
