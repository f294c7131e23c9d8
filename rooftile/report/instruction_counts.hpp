// Instructions that a thread goes through, read off machine code.
#pragma once

#include <optional>
#include <string_view>

namespace rooftile {

/// Of one thread from the first instruction to its end.
struct InstructionCounts {
    int instructions = 0;
    int special = 0;  ///< of the special function unit: exponentials, reciprocals, roots, wide conversions not among them
};

/// Of a kernel without loops, from a cubin of sm_70 or later. A branch forward over a call is taken: that is how rare cases of a division
/// are left out. Nothing where the cubin has no such kernel, or it has a loop.
std::optional<InstructionCounts> straight_counts(std::string_view cubin, std::string_view lowered_name);

/// The machine code of a kernel: section .text.<name> of a 64-bit ELF file. Empty where there is none.
std::string_view machine_code(std::string_view cubin, std::string_view lowered_name);

}  // namespace rooftile
