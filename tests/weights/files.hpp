// Small GGUF and safetensors files, written as their specifications have them.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace rooftile {

class FileText {
  public:
    template <class T>
    FileText& number(T value) {
        for (std::size_t i = 0; i < sizeof value; ++i) data_ += static_cast<char>(static_cast<std::uint64_t>(value) >> 8 * i & 255);
        return *this;
    }
    FileText& raw(const std::string& text) { return data_ += text, *this; }
    /// A text as GGUF has it.
    FileText& text(const std::string& text) { return number(std::uint64_t{text.size()}).raw(text); }
    FileText& up_to_multiple(std::size_t of) {
        while (data_.size() % of != 0) data_ += '\0';
        return *this;
    }
    const std::string& data() const { return data_; }

  private:
    std::string data_;
};

struct FileTensor {
    std::string name;
    std::uint32_t type;                  ///< of ggml
    std::vector<std::uint64_t> extents;  ///< the contiguous one first
    std::string data;
};

/// With keys of several types before the tensors, one of them the alignment.
inline std::string gguf_text(const std::vector<FileTensor>& tensors, std::uint32_t alignment = 64) {
    FileText out;
    out.raw("GGUF").number(std::uint32_t{3}).number(std::uint64_t{tensors.size()}).number(std::uint64_t{4});
    out.text("general.architecture").number(std::uint32_t{8}).text("llama");
    out.text("tokens").number(std::uint32_t{9}).number(std::uint32_t{8}).number(std::uint64_t{2}).text("a").text("bc");
    out.text("general.alignment").number(std::uint32_t{4}).number(alignment);
    out.text("ratios").number(std::uint32_t{9}).number(std::uint32_t{6}).number(std::uint64_t{3}).raw(std::string(12, '\1'));
    FileText data;
    for (const FileTensor& tensor : tensors) {
        out.text(tensor.name).number(std::uint32_t(tensor.extents.size()));
        for (const std::uint64_t extent : tensor.extents) out.number(extent);
        out.number(tensor.type).number(std::uint64_t{data.data().size()});
        data.raw(tensor.data).up_to_multiple(alignment);
    }
    return out.up_to_multiple(alignment).raw(data.data()).data();
}

struct SafeTensor {
    std::string name, type, shape;  ///< shape: "[2, 3]"
    std::string data;
};

inline std::string safetensors_text(const std::vector<SafeTensor>& tensors) {
    std::string header = "{\"__metadata__\": {\"format\": \"pt\"}", data;
    for (const SafeTensor& tensor : tensors) {
        header += ", \"" + tensor.name + "\": {\"dtype\": \"" + tensor.type + "\", \"shape\": " + tensor.shape + ", \"data_offsets\": ["
                  + std::to_string(data.size()) + ", " + std::to_string(data.size() + tensor.data.size()) + "]}";
        data += tensor.data;
    }
    header += "}";
    return FileText().number(std::uint64_t{header.size()}).raw(header).raw(data).data();
}

inline void write_bytes(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

}  // namespace rooftile
