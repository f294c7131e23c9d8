// The text of an epilogue's class, which sm90_gemm_epilogue and those of other kernels take as parameter and argument, and its bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rooftile/gemm/epilogue.hpp"

namespace rooftile {

inline constexpr const char* epilogue_class = "rooftile::epilogue::Epilogue";

/// Headers and the class; `staged`: its staged_operand() comes by TMA. The same expression on other sizes has the same text. `space`: the
/// namespace that the class stands in.
std::string epilogue_text(const GemmEpilogue& epilogue, bool staged, std::string_view space = "epilogue");
/// The same for `kernel`, as "sm80_gemm", which stages nothing.
std::string epilogue_text_of(std::string_view kernel, const GemmEpilogue& epilogue);

/// The argument: a pointer an operand, then a DropoutKey each.
std::vector<std::uint64_t> epilogue_words(const GemmEpilogue& epilogue, std::span<const void* const> operands);

}  // namespace rooftile
