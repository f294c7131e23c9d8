// Files of tensors as models are published in, GGUF and safetensors: mapped into memory, where their tensors are read as they lie.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rooftile {

struct StoredTensor {
    std::string name;
    std::string type;                     ///< as its file calls it: "Q4_K", "F16", "I32"
    std::vector<std::int64_t> extents{};  ///< the last one is contiguous
    /// Empty where the type's size is not known here. As they lie: at any address.
    std::span<const unsigned char> bytes{};
};

class WeightsFile {
  public:
    /// Throws RequestError, one line, where there is no such file or it is neither, or ends too early.
    explicit WeightsFile(const std::string& path);

    const std::string& path() const { return path_; }
    std::span<const StoredTensor> tensors() const { return tensors_; }
    const StoredTensor* find(std::string_view name) const;

  private:
    std::string path_;
    std::shared_ptr<const void> mapped_;
    std::vector<StoredTensor> tensors_;
};

/// The tensors of a file's bytes, whose `path` is for messages.
std::vector<StoredTensor> gguf_tensors(const std::string& path, std::span<const unsigned char> file);
std::vector<StoredTensor> safetensors_tensors(const std::string& path, std::span<const unsigned char> file);

/// A number as a file has it, little-endian at any address.
template <class T>
T little_endian(std::span<const unsigned char> bytes, std::size_t at) {
    static_assert(sizeof(T) <= 8);
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) bits |= std::uint64_t{bytes[at + i]} << 8 * i;
    return static_cast<T>(bits);
}

}  // namespace rooftile
