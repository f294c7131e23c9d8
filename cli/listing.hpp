// Machine code as people read it.
#pragma once

#include <string>
#include <string_view>

namespace rooftile::cli {

/// What --ptx prints: the text with what its names mean before it and what instructions do beside them.
std::string ptx_listing(std::string_view ptx);
/// The same of --sass and a cubin; empty, with a line on stderr, where no disassembler is found.
std::string sass_listing(std::string_view cubin);

}  // namespace rooftile::cli
