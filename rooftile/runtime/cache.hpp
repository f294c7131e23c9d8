// Compiled kernels on disk: one checksummed file an entry. Never needed for correctness: whatever is
// wrong with an entry, the folder or the disk, the answer is "not there" and the kernel is compiled.
//
// The checksum guards against damage, not malice: a cubin is code that runs with the user's rights, so
// entries and their folder must belong to the user (or root) and be writable by nobody else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "rooftile/runtime/compile_options.hpp"
#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile {

/// What decides the cubin, and nothing else: no path, time, environment or driver.
struct CacheKey {
    std::string hash;      ///< XXH3-128 over every byte of it, 32 hex digits; the entry's file name
    std::string material;  ///< JSON; texts of the kernel headers stand as hashes
};
/// Opens NVRTC for its version and build. Throws as nvrtc().
CacheKey cache_key(const Source& source);
/// The same for a given compiler; for tests.
CacheKey cache_key(const Source& source, const NvrtcInfo& compiler);

enum class CacheMode : std::uint8_t { read_write, read_only, off };

struct CacheSettings {
    CacheMode mode = CacheMode::off;
    std::string folder;
    std::string note;  ///< why it is off though nobody asked for that
};
/// ROOFTILE_CACHE (rw, ro, off); ROOFTILE_CACHE_DIR, else XDG_CACHE_HOME/rooftile, else ~/.cache/rooftile.
/// Throws RequestError on another value of ROOFTILE_CACHE.
CacheSettings cache_settings();

/// A file of the cache.
struct CacheEntry {
    std::filesystem::path path;
    double bytes = 0;
    std::filesystem::file_time_type used;  ///< written, or last found
};
/// All of the folder, what was used last first; other files there are left out.
std::vector<CacheEntry> cache_entries(const CacheSettings& settings);

/// An answer from the cache.
struct CacheLookup {
    std::optional<Compiled> found;  ///< `seconds` is 0
    std::string why_not;            ///< "no entry", "checksum differs", "writable by others", ...
};

/// Thread-safe, and safe between processes: entries appear whole or not at all.
class KernelCache {
  public:
    explicit KernelCache(CacheSettings settings) : settings_(std::move(settings)) {}
    const CacheSettings& settings() const { return settings_; }

    CacheLookup find(const CacheKey& key) const;
    /// True where the entry is now on disk. Replaces a bad entry. Never throws: the first failure of a
    /// process puts one warning on stderr.
    bool store(const CacheKey& key, const Compiled& compiled) const;
    std::string path_of(const CacheKey& key) const;
    /// What keeps the folder from being read (or, for `to_write`, written); empty where nothing does.
    std::string obstacle(bool to_write) const;

  private:
    CacheSettings settings_;
};

/// The bytes of an entry's file, and their reading: exposed for tests.
std::string encode_entry(const CacheKey& key, const Compiled& compiled);
CacheLookup decode_entry(const CacheKey& key, const std::string& bytes);

struct CachedCompile {
    Compiled compiled;
    CacheKey key;
    bool from_cache = false;
};
/// From the cache of cache_settings(), else compiled, checked clean and stored. Throws as compile_source
/// and check_clean.
CachedCompile compile_cached(const Source& source);
/// As `options` say, which change `source` where they alter it: through the cache, or past it.
CachedCompile compile_as(const CompileOptions& options, Source& source);

}  // namespace rooftile
