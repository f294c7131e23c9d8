// How long something is taking: from the first second on one line on stderr, rewritten, on a terminal only; gone at the end.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace rooftile::cli {

class Progress {
  public:
    /// "planning, 3 s"; of `total` things "planning 12 of 100, 3 s, about 22 s left". What ends after `limit_seconds` in any case has
    /// at most the rest of them left; 0: no limit.
    explicit Progress(std::string what, std::size_t total = 0, double limit_seconds = 0);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    /// One more of them is done; from any thread.
    void step() { ++done_; }
    /// So many are done.
    void set(std::size_t done) { done_ = done; }
    /// Takes the line away until the next second, so that another can be written.
    void clear();

  private:
    void show(int seconds);

    std::string what_;
    std::size_t total_;
    double limit_seconds_;
    std::atomic<std::size_t> done_{0};
    std::thread thread_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool ended_ = false;
    std::size_t columns_ = 0;  ///< that the line takes now
};

/// "12 s", "3 min 5 s".
std::string duration_text(double seconds);

/// What the line says.
std::string progress_text(const std::string& what, std::size_t done, std::size_t total, int seconds, double limit_seconds = 0);

}  // namespace rooftile::cli
