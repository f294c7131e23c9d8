// cache: what is kept of compiled kernels, and taking it away.
#include <fmt/core.h>

#include <filesystem>
#include <vector>

#include "cli/output.hpp"
#include "cli/verb.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/report/terminal.hpp"
#include "rooftile/runtime/cache.hpp"

namespace rooftile::cli {
namespace {

double bytes_of(const std::vector<CacheEntry>& files) {
    double sum = 0;
    for (const CacheEntry& file : files) sum += file.bytes;
    return sum;
}

CacheSettings settings_in_use() {
    CacheSettings settings = cache_settings();
    if (settings.folder.empty()) throw RequestError(settings.note.empty() ? "no kernels are kept: ROOFTILE_CACHE is off" : "no kernels are kept: " + settings.note);
    return settings;
}

int info(const Given&, const OutputFlags& output, const Invocation&) {
    const CacheSettings settings = settings_in_use();
    const std::vector<CacheEntry> files = cache_entries(settings);
    write_result(entries_text({{"folder", settings.folder, settings.mode == CacheMode::read_only ? "read only: ROOFTILE_CACHE" : ""},
                               {"kernels", std::to_string(files.size()), ""},
                               {"size", scaled_text(bytes_of(files), "B"), ""}},
                              2, terminal_for(output)),
                 output);
    return int(ExitCode::done);
}

int take_away(const std::vector<CacheEntry>& files, std::size_t kept, const OutputFlags& output) {
    double bytes = 0;
    for (std::size_t i = kept; i < files.size(); ++i) {
        std::error_code error;
        if (!std::filesystem::remove(files[i].path, error) && error) throw Error(ExitCode::internal, fmt::format("{} cannot be removed: {}", files[i].path.string(), error.message()));
        bytes += files[i].bytes;
    }
    write_result(fmt::format("removed {} kernels, {}; kept {}\n", files.size() - kept, scaled_text(bytes, "B"), kept), output);
    return int(ExitCode::done);
}

int prune(const Given& given, const OutputFlags& output, const Invocation&) {
    const auto most = double(whole_number(given.name("most"), given.text("most"), 0, std::int64_t{1} << 50));
    const std::vector<CacheEntry> files = cache_entries(settings_in_use());
    std::size_t kept = 0;
    for (double bytes = 0; kept < files.size() && bytes + files[kept].bytes <= most; ++kept) bytes += files[kept].bytes;
    return take_away(files, kept, output);
}

}  // namespace

void add_cache(std::vector<Verb>& verbs) {
    verbs.push_back({.path = "cache info", .meaning = "Where compiled kernels are kept, how many and how large", .fields = {}, .examples = "", .synopsis = "", .run = info});
    verbs.push_back({.path = "cache prune",
                     .meaning = "Keep those that were used last, up to a size",
                     .fields = {{"most", "BYTES", "So many bytes at most, as 512M", "Options"}},
                     .examples = "Example:\n  rooftile cache prune --most 512M\n",
                     .synopsis = "--most BYTES",
                     .run = [](const Given& given, const OutputFlags& output, const Invocation& invocation) {
                         if (!given.has("most")) throw RequestError("cache prune: say how much to keep, as --most 512M; cache clear keeps nothing");
                         return prune(given, output, invocation);
                     }});
    verbs.push_back({.path = "cache clear", .meaning = "Remove all of them", .fields = {}, .examples = "", .synopsis = "",
                     .run = [](const Given&, const OutputFlags& output, const Invocation&) { return take_away(cache_entries(settings_in_use()), 0, output); }});
}

}  // namespace rooftile::cli
