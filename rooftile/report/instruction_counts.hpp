// Instructions that a thread goes through, read off machine code.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace rooftile {

/// When an instruction may issue, as the machine code says: after the results that it waits for, and some cycles after the one before.
struct InstructionTiming {
    int stall = 1;       ///< cycles until the next one of the warp
    unsigned waits = 0;  ///< a bit for each of six scoreboards
    int sets = -1;      ///< the scoreboard that its result clears; -1: none
    bool loads = false; ///< from global memory
};

/// Of one thread from the first instruction to its end.
struct InstructionCounts {
    int instructions = 0;
    /// Of the special function unit: exponentials, reciprocals, roots, checks of a division; wide conversions not among them.
    int special = 0;
    std::vector<InstructionTiming> timings{};  ///< one for each
};

/// Cycles of a warp that has an SM for itself: `load` until a load is there, `result` of any other instruction that a scoreboard guards.
double cycles_alone(const std::vector<InstructionTiming>& timings, double load, double result);

/// Of a kernel without loops, from a cubin of sm_70 or later. A branch forward over a call is taken: that is how rare cases of a division
/// are left out. Nothing where the cubin has no such kernel, or it has a loop.
std::optional<InstructionCounts> straight_counts(std::string_view cubin, std::string_view lowered_name);

/// The machine code of a kernel: section .text.<name> of a 64-bit ELF file. Empty where there is none.
std::string_view machine_code(std::string_view cubin, std::string_view lowered_name);

}  // namespace rooftile
