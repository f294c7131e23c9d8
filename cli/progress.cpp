#include "cli/progress.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

namespace rooftile::cli {

std::string duration_text(double seconds) {
    const long whole = std::lround(seconds);
    return whole < 60 ? fmt::format("{} s", whole) : fmt::format("{} min {} s", whole / 60, whole % 60);
}

std::string progress_text(const std::string& what, std::size_t done, std::size_t total, int seconds, double limit_seconds) {
    if (total == 0) return fmt::format("{}, {}", what, duration_text(seconds));
    std::string out = fmt::format("{} {} of {}, {}", what, done, total, duration_text(seconds));
    if (done >= total) return out;
    const double rest = limit_seconds > 0 ? std::max(0.0, limit_seconds - seconds) : INFINITY;
    const double left = done > 0 ? double(seconds) * double(total - done) / double(done) : INFINITY;
    if (left < rest) out += fmt::format(", about {} left", duration_text(left));
    else if (rest < INFINITY) out += fmt::format(", at most {} left", duration_text(rest));
    return out;
}

Progress::Progress(std::string what, std::size_t total, double limit_seconds)
    : what_(std::move(what)), total_(total), limit_seconds_(limit_seconds) {
    if (!isatty(STDERR_FILENO)) return;
    thread_ = std::thread([this] {
        std::unique_lock lock(mutex_);
        for (int seconds = 1; !changed_.wait_for(lock, std::chrono::seconds(1), [this] { return ended_; });
             ++seconds)
            show(seconds);
    });
}

Progress::~Progress() {
    if (!thread_.joinable()) return;
    {
        const std::lock_guard lock(mutex_);
        ended_ = true;
    }
    changed_.notify_one();
    thread_.join();
    clear();
}

void Progress::show(int seconds) {
    const std::string text = progress_text(what_, done_, total_, seconds, limit_seconds_);
    fmt::print(stderr, "\r{:{}}", text, columns_);
    std::fflush(stderr);
    columns_ = text.size();
}

void Progress::clear() {
    const std::lock_guard lock(mutex_);
    if (columns_ > 0) fmt::print(stderr, "\r{:{}}\r", "", columns_), std::fflush(stderr);
    columns_ = 0;
}

}  // namespace rooftile::cli
