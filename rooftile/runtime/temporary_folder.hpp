// A folder for files that a run needs.
#pragma once

#include <filesystem>
#include <string>

namespace rooftile {

/// A new folder of this user alone below the system's for temporary files, gone at the end.
class TemporaryFolder {
  public:
    /// `begin`: of its name. Throws Error(internal) where there can be none.
    explicit TemporaryFolder(const std::string& begin);
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

}  // namespace rooftile
