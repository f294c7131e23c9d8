#include "rooftile/runtime/trusted_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>

#include <fmt/core.h>

namespace rooftile {
namespace {

// A cubin of ours has some 30 kB; anything near this is no file of ours.
constexpr off_t max_trusted_bytes = 64 << 20;

/// A file descriptor that closes itself.
struct File {
    int fd;
    explicit File(int descriptor) : fd(descriptor) {}
    ~File() {
        if (fd >= 0) close(fd);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
};

bool write_all(int fd, const std::string& bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
        ssize_t put = write(fd, bytes.data() + done, bytes.size() - done);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        done += std::size_t(put);
    }
    return fsync(fd) == 0;
}

std::string temporary_name() {
    std::random_device random;
    return fmt::format(".new-{}-{:08x}{:08x}{:08x}{:08x}", getpid(), random(), random(), random(), random());
}

}  // namespace

std::string untrusted(const struct stat& status) {
    if (status.st_uid != geteuid() && status.st_uid != 0)
        return fmt::format("owned by uid {}", status.st_uid);
    if (status.st_mode & (S_IWGRP | S_IWOTH)) return "writable by others";
    return {};
}

std::optional<std::string> read_trusted(const std::string& path, std::string& why_not) {
    // O_NONBLOCK: opening a FIFO must not wait for its writer.
    File file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    if (file.fd < 0 || fstat(file.fd, &status) != 0) {
        why_not = errno == ENOENT ? no_entry : std::strerror(errno);
        return std::nullopt;
    }
    why_not = !S_ISREG(status.st_mode)             ? "not a regular file"
              : status.st_size > max_trusted_bytes ? "too large"
                                                   : untrusted(status);
    if (!why_not.empty()) return std::nullopt;
    std::string bytes(std::size_t(status.st_size), '\0');
    std::size_t have = 0;
    while (have < bytes.size()) {
        ssize_t got = read(file.fd, bytes.data() + have, bytes.size() - have);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            why_not = got == 0 ? "shorter than it was" : std::strerror(errno);
            return std::nullopt;
        }
        have += std::size_t(got);
    }
    return bytes;
}

std::string publish(const std::string& folder, const std::string& path, const std::string& bytes) {
    std::string aside = folder + "/" + temporary_name();
    File file(open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file.fd < 0) return fmt::format("{}: {}", aside, std::strerror(errno));
    if (write_all(file.fd, bytes) && rename(aside.c_str(), path.c_str()) == 0) return {};
    std::string why = fmt::format("{}: {}", path, std::strerror(errno));
    unlink(aside.c_str());
    return why;
}

FileLock::FileLock(const std::string& path) : fd_(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)) {
    while (fd_ >= 0 && flock(fd_, LOCK_EX) != 0 && errno == EINTR) {}
}

FileLock::~FileLock() {
    if (fd_ >= 0) close(fd_);
}

}  // namespace rooftile
