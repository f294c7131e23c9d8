// Files of the cache's folder: read where nobody but the user can have written them, and written whole or not at all.
#pragma once

#include <optional>
#include <string>

struct stat;

namespace rooftile {

/// Why what `status` describes may have been written by someone else; empty where it may not.
std::string untrusted(const struct stat& status);

/// Why nothing is read where there is nothing.
inline constexpr const char* no_entry = "no entry";

/// The file's bytes, or why it is not read: no_entry, "writable by others", ...
std::optional<std::string> read_trusted(const std::string& path, std::string& why_not);

/// Makes `bytes` the content of `path`, a file in `folder`, in one step: readers see the old file, or the new one whole.
/// Returns what failed, empty where nothing did.
std::string publish(const std::string& folder, const std::string& path, const std::string& bytes);

/// Held by one thread of one process at a time, as long as it lives. A file system without locks gives none, and no error: what is
/// published is whole without it too, and one of two changes at once may then be lost.
class FileLock {
  public:
    explicit FileLock(const std::string& path);
    ~FileLock();
    FileLock(const FileLock&) = delete;
    FileLock& operator=(const FileLock&) = delete;

  private:
    int fd_;
};

}  // namespace rooftile
