// The text of an epilogue's class, which kernels NAME_epilogue take as parameter and argument, and its bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rooftile/runtime/nvrtc.hpp"
#include "rooftile/runtime/driver.hpp"
#include "rooftile/tiled/epilogue.hpp"

namespace rooftile {

inline constexpr const char* epilogue_class = "rooftile::epilogue::Epilogue";

/// What of a kernel the class depends on.
struct EpilogueKernel {
    std::string_view header;             ///< of the kernel, included before the class
    bool prefetches = false;             ///< it asks L2 for a tile's operands beforehand: kernels of kernels/matrix
    bool staged = false;                 ///< staged_operand() comes by TMA
    std::string_view space = "epilogue"; ///< the namespace of the class
};

/// Headers and the class. The same expression on other sizes has the same text.
std::string epilogue_text(const Epilogue& epilogue, const EpilogueKernel& kernel);
/// The source's kernel becomes `kernel`, which takes the class as its second parameter.
void name_with_epilogue(Source& source, std::string_view kernel);
/// Of a kernel that stages nothing, in `header`, whose name is the source's: the text of the class stands before it, and it is the one with an
/// epilogue. Null: as it is.
void add_epilogue(Source& source, const SharedEpilogue& epilogue, std::string_view header);

/// The argument: a pointer an operand, then a DropoutKey each.
std::vector<std::uint64_t> epilogue_words(const Epilogue& epilogue, std::span<const void* const> operands);

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
