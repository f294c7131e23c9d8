// A file that tells whether anybody opened it.
#pragma once

#include <sys/inotify.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace rooftile {

class WatchedFile {
  public:
    static constexpr const char* content = "secret words that no report has";

    WatchedFile() : path_(std::filesystem::temp_directory_path() / ("rooftile-watched-" + std::to_string(getpid()))) {
        std::ofstream(path_) << content << "\n";
        watch_ = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        EXPECT_GE(inotify_add_watch(watch_, path_.c_str(), IN_OPEN), 0);
    }
    ~WatchedFile() {
        close(watch_);
        std::filesystem::remove(path_);
    }
    WatchedFile(const WatchedFile&) = delete;

    std::string path() const { return path_.string(); }
    /// Whether it was, since the last call.
    bool opened() {
        char events[4096];
        bool any = false;
        while (read(watch_, events, sizeof events) > 0) any = true;
        return any;
    }

  private:
    std::filesystem::path path_;
    int watch_ = -1;
};

}  // namespace rooftile
