// A new folder of one test, gone with it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace rooftile {

class Folder {
  public:
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "rooftile-test-XXXXXX").string();
        if (!mkdtemp(name.data())) throw std::runtime_error(name);
        path_ = name;
    }
    ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    Folder(const Folder&) = delete;
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

}  // namespace rooftile
