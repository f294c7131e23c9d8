// Files compiled into the library, so that one program needs no data folder beside it.
#pragma once

#include <span>
#include <string_view>

namespace rooftile {

/// `path` is relative to the repository's root: "machines/h100-sxm.toml", "kernels/ptx/wgmma.cuh".
struct EmbeddedFile {
    std::string_view path;
    std::string_view text;
};

std::span<const EmbeddedFile> embedded_machines();  ///< machines/**/*.toml, in rooftile_model
std::span<const EmbeddedFile> embedded_exports();   ///< rooftile/**/*.{py,cu,toml}, templates of others' texts and what a profiled Python runs, in rooftile_model
std::span<const EmbeddedFile> embedded_kernels();   ///< kernels/**/*.{hpp,cuh}, in rooftile
std::span<const EmbeddedFile> embedded_step();      ///< rooftile/step/text/*, in rooftile

/// The library that records what a profiled program does, one file, in rooftile.
std::span<const EmbeddedFile> embedded_collector();

/// Of the library's and the kernels' sources and of the machine files, 32 hex digits: the same whatever compiled them. In
/// rooftile.
std::string_view program_hash();

}  // namespace rooftile
