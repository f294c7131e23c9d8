#include "rooftile/weights/file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "rooftile/error.hpp"

namespace rooftile {
namespace {

struct Mapped {
    std::shared_ptr<const void> data;
    std::size_t bytes = 0;
};

Mapped map_file(const std::string& path) {
    const auto refuse = [&](std::string_view why) { throw RequestError(fmt::format("{} cannot be read: {}", path, why)); };
    // O_NONBLOCK: opening a FIFO must not wait for its writer.
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) refuse(std::strerror(errno));
    struct stat state {};
    const bool regular = fstat(file, &state) == 0 && S_ISREG(state.st_mode);
    const auto bytes = std::size_t(state.st_size);
    void* data = regular && bytes > 0 ? mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0) : nullptr;
    const int error = errno;
    close(file);
    if (!regular) refuse("it is no regular file");
    if (bytes == 0) refuse("it is empty");
    if (data == MAP_FAILED) refuse(std::strerror(error));
    return {{data, [bytes](const void* at) { munmap(const_cast<void*>(at), bytes); }}, bytes};
}

}  // namespace

WeightsFile::WeightsFile(const std::string& path) : path_(path) {
    const Mapped file = map_file(path);
    mapped_ = file.data;
    const std::span<const unsigned char> bytes(static_cast<const unsigned char*>(file.data.get()), file.bytes);
    const bool is_gguf = bytes.size() >= 4 && std::memcmp(bytes.data(), "GGUF", 4) == 0;
    tensors_ = is_gguf ? gguf_tensors(path, bytes) : safetensors_tensors(path, bytes);
}

const StoredTensor* WeightsFile::find(std::string_view name) const {
    const auto found = std::ranges::find(tensors_, name, &StoredTensor::name);
    return found == tensors_.end() ? nullptr : &*found;
}

}  // namespace rooftile
