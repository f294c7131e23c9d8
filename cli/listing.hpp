// Machine code as people read it.
#pragma once

#include <string>
#include <string_view>

namespace rooftile::cli {

/// What --sass prints of a cubin; empty, with a line on stderr, where no disassembler is found.
std::string sass_of(std::string_view cubin);

}  // namespace rooftile::cli
