#include "rooftile/runtime/cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <algorithm>
#include <filesystem>
#include <mutex>

#include <fmt/core.h>

#include "rooftile/runtime/trusted_file.hpp"

namespace rooftile {
namespace {

namespace fs = std::filesystem;

void warn_once(const std::string& what) {
    static std::once_flag once;
    std::call_once(once, [&] {
        fmt::print(stderr,
                   "rooftile: kernels are not cached: {}; set ROOFTILE_CACHE_DIR, or ROOFTILE_CACHE=off\n",
                   what);
    });
}

const char* variable(const char* name) {
    const char* value = std::getenv(name);
    return value && *value ? value : nullptr;
}

}  // namespace

CacheKey cache_key(const Source& source) { return cache_key(source, nvrtc()); }

CacheSettings cache_settings() {
    CacheSettings settings;
    settings.mode = CacheMode::read_write;
    if (const char* mode = variable("ROOFTILE_CACHE")) {
        std::string_view value = mode;
        if (value == "off") settings.mode = CacheMode::off;
        else if (value == "ro") settings.mode = CacheMode::read_only;
        else if (value != "rw")
            throw RequestError(fmt::format("ROOFTILE_CACHE is \"{}\"; rw, ro and off are accepted", value));
    }
    if (settings.mode == CacheMode::off) return settings;
    if (const char* folder = variable("ROOFTILE_CACHE_DIR")) settings.folder = folder;
    // A relative one is to be ignored: XDG Base Directory Specification 0.8.
    else if (const char* xdg = variable("XDG_CACHE_HOME"); xdg && *xdg == '/') settings.folder = std::string(xdg) + "/rooftile";
    else if (const char* home = variable("HOME")) settings.folder = std::string(home) + "/.cache/rooftile";
    else {
        settings.mode = CacheMode::off;
        settings.note = "neither ROOFTILE_CACHE_DIR, an absolute XDG_CACHE_HOME nor HOME is set";
    }
    return settings;
}

std::string KernelCache::path_of(const CacheKey& key) const {
    return settings_.folder + "/" + key.hash + ".cubin";
}

std::vector<CacheEntry> cache_entries(const CacheSettings& settings) {
    namespace fs = std::filesystem;
    std::vector<CacheEntry> entries;
    std::error_code error;
    for (const auto& file : fs::directory_iterator(settings.folder, error)) {
        const std::string hash = file.path().stem().string();
        const bool ours = file.path().extension() == ".cubin" && hash.size() == 32 && hash.find_first_not_of("0123456789abcdef") == hash.npos;
        if (ours && file.is_regular_file(error) && !file.is_symlink(error)) entries.push_back({file.path(), double(file.file_size(error)), file.last_write_time(error)});
    }
    std::ranges::sort(entries, [](const CacheEntry& x, const CacheEntry& y) { return x.used > y.used; });
    return entries;
}

std::string KernelCache::obstacle(bool to_write) const {
    const std::string& folder = settings_.folder;
    struct stat status {};
    if (stat(folder.c_str(), &status) != 0) {
        if (errno != ENOENT) return fmt::format("{}: {}", folder, std::strerror(errno));
        if (!to_write) return no_entry;
        std::error_code error;
        fs::create_directories(fs::path(folder).parent_path(), error);
        if ((mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) || stat(folder.c_str(), &status) != 0)
            return fmt::format("{} cannot be made: {}", folder, std::strerror(errno));
    }
    if (!S_ISDIR(status.st_mode)) return fmt::format("{} is not a folder", folder);
    if (std::string why = untrusted(status); !why.empty()) return fmt::format("{} is {}", folder, why);
    if (to_write && faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
        return fmt::format("{}: {}", folder, std::strerror(errno));
    return {};
}

CacheLookup KernelCache::find(const CacheKey& key) const {
    if (settings_.mode == CacheMode::off) return {std::nullopt, "the cache is off"};
    CacheLookup lookup;
    lookup.why_not = obstacle(false);
    if (lookup.why_not.empty())
        if (std::optional<std::string> bytes = read_trusted(path_of(key), lookup.why_not))
            lookup = decode_entry(key, *bytes);
    return lookup;
}

bool KernelCache::store(const CacheKey& key, const Compiled& compiled) const {
    if (settings_.mode == CacheMode::off && !settings_.note.empty()) warn_once(settings_.note);
    if (settings_.mode != CacheMode::read_write) return false;
    std::string failure = obstacle(true);
    // Whoever loses a race replaces an entry by its equal: both were compiled from the same key.
    if (failure.empty()) failure = publish(settings_.folder, path_of(key), encode_entry(key, compiled));
    if (!failure.empty()) warn_once(failure);
    return failure.empty();
}

CachedCompile compile_cached(const Source& source) {
    KernelCache cache(cache_settings());
    CachedCompile result;
    result.key = cache_key(source);
    if (CacheLookup lookup = cache.find(result.key); lookup.found && !unclean(*lookup.found)) {
        result.compiled = std::move(*lookup.found);
        result.from_cache = true;
        return result;
    }
    result.compiled = compile_source(source);
    check_clean(result.compiled, source.name);
    cache.store(result.key, result.compiled);
    return result;
}

CachedCompile compile_as(const CompileOptions& options, Source& source) {
    source.line_info = options.line_info;
    if (options.alter) options.alter(source);
    CachedCompile result;
    if (options.cache && !options.alter) {
        result = compile_cached(source);
    } else {
        result.key = cache_key(source);
        result.compiled = compile_source(source);
        if (!options.alter) check_clean(result.compiled, source.name);
    }
    if (options.told) options.told(source, result.compiled);
    return result;
}

}  // namespace rooftile
