// The text of an epilogue's class, which sm90_gemm_epilogue and those of other kernels take as parameter and argument, and its bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rooftile/gemm/epilogue.hpp"
#include "rooftile/runtime/nvrtc.hpp"
#include "rooftile/runtime/driver.hpp"

namespace rooftile {

inline constexpr const char* epilogue_class = "rooftile::epilogue::Epilogue";

/// Headers and the class; `staged`: its staged_operand() comes by TMA. The same expression on other sizes has the same text. `space`: the
/// namespace that the class stands in.
std::string epilogue_text(const GemmEpilogue& epilogue, bool staged, std::string_view space = "epilogue");
/// The source's kernel becomes `kernel`, which takes the class as its second parameter.
void name_with_epilogue(Source& source, std::string_view kernel);
/// Of a kernel that stages nothing, whose name is the source's: the text of the class stands before it, and it is the one with an epilogue. Null: as
/// it is.
void add_epilogue(Source& source, const SharedEpilogue& epilogue);

/// The argument: a pointer an operand, then a DropoutKey each.
std::vector<std::uint64_t> epilogue_words(const GemmEpilogue& epilogue, std::span<const void* const> operands);

/// With the epilogue as the argument behind `arguments`, where there is one.
template <class... Arguments>
void launch_with_epilogue(const Function& function, const Launch& launch, const SharedEpilogue& epilogue,
                          std::span<const void* const> operands, Arguments&... arguments) {
    std::vector<std::uint64_t> words;
    if (epilogue) words = epilogue_words(*epilogue, operands);
    void* all[] = {&arguments..., words.data()};  // the last is not read of a kernel that has no such parameter
    launch_raw(function, launch, all);
}

}  // namespace rooftile
