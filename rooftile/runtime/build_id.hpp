// Which build of a library is open: its version number alone does not tell.
#pragma once

#include <string>

#include "rooftile/runtime/library.hpp"

namespace rooftile {

/// The GNU build id of an open library in hex; where it has none, a hash of its file's size and first MiB.
std::string build_id(const Library& library);

}  // namespace rooftile
