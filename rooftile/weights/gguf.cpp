// GGUF as its specification has it (ggml's docs/gguf.md): a header, keys with values, what tensors there are, then the tensors.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "rooftile/error.hpp"
#include "rooftile/machine/units_text.hpp"
#include "rooftile/weights/file.hpp"

namespace rooftile {
namespace {

using FileBytes = std::span<const unsigned char>;

/// Reads one value after the other; throws where the file ends before.
class Reader {
  public:
    Reader(const std::string& path, FileBytes file) : path_(path), file_(file) {}
    template <class T>
    T number() {
        need(sizeof(T));
        const T value = little_endian<T>(file_, at_);
        at_ += sizeof(T);
        return value;
    }
    std::string text() {
        const auto length = number<std::uint64_t>();
        need(length);
        const auto* begin = reinterpret_cast<const char*>(file_.data() + at_);
        at_ += length;
        return {begin, length};
    }
    void skip(std::uint64_t count, std::uint64_t bytes_each) {
        if (bytes_each > 0 && count > file_.size() / bytes_each) ends();
        need(count * bytes_each);
        at_ += count * bytes_each;
    }
    std::uint64_t at() const { return at_; }
    [[noreturn]] void ends() const {
        throw RequestError(fmt::format("{} ends after {} B amid its header: is it a whole GGUF file?", path_, file_.size()));
    }

  private:
    void need(std::uint64_t bytes) const {
        if (bytes > file_.size() - at_) ends();
    }
    const std::string& path_;
    FileBytes file_;
    std::uint64_t at_ = 0;
};

enum ValueType : std::uint32_t { uint32_value = 4, text_value = 8, array_value = 9 };
/// Of values by their type; 0: as long as it says itself.
constexpr std::uint64_t value_bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

/// What `array` elements of that type take; an array of arrays is an element of them.
void skip_values(Reader& in, std::uint32_t type, std::uint64_t count, int depth = 0) {
    constexpr int deepest = 8;
    if (type >= std::size(value_bytes) || depth > deepest) in.ends();
    if (value_bytes[type] > 0) return in.skip(count, value_bytes[type]);
    for (std::uint64_t i = 0; i < count; ++i) {
        if (type == text_value) in.text();
        else {
            const auto of = in.number<std::uint32_t>();
            skip_values(in, of, in.number<std::uint64_t>(), depth + 1);
        }
    }
}

/// As ggml numbers and names them. Of the sizes those that somebody converts.
struct BlockType {
    std::uint32_t number;
    const char* name;
    std::int64_t elements = 0, bytes = 0;
};
constexpr BlockType block_types[] = {{0, "F32", 1, 4},
                                     {1, "F16", 1, 2},
                                     {2, "Q4_0", 32, 18},
                                     {3, "Q4_1"},
                                     {6, "Q5_0"},
                                     {7, "Q5_1"},
                                     {8, "Q8_0", 32, 34},
                                     {9, "Q8_1"},
                                     {10, "Q2_K"},
                                     {11, "Q3_K"},
                                     {12, "Q4_K", 256, 144},
                                     {13, "Q5_K"},
                                     {14, "Q6_K"},
                                     {15, "Q8_K"},
                                     {16, "IQ2_XXS"},
                                     {17, "IQ2_XS"},
                                     {18, "IQ3_XXS"},
                                     {19, "IQ1_S"},
                                     {20, "IQ4_NL"},
                                     {21, "IQ3_S"},
                                     {22, "IQ2_S"},
                                     {23, "IQ4_XS"},
                                     {24, "I8"},
                                     {25, "I16"},
                                     {26, "I32"},
                                     {27, "I64"},
                                     {28, "F64"},
                                     {29, "IQ1_M"},
                                     {30, "BF16", 1, 2},
                                     {34, "TQ1_0"},
                                     {35, "TQ2_0"},
                                     {39, "MXFP4", 32, 17}};

}  // namespace

std::vector<StoredTensor> gguf_tensors(const std::string& path, FileBytes file) {
    Reader in(path, file);
    in.number<std::uint32_t>();  // "GGUF"
    if (const auto version = in.number<std::uint32_t>(); version != 2 && version != 3)
        throw RequestError(fmt::format("{} is GGUF of version {}; accepted are 2 and 3, little-endian", path, version));
    const auto tensor_count = in.number<std::uint64_t>(), value_count = in.number<std::uint64_t>();
    std::uint64_t alignment = 32;
    for (std::uint64_t i = 0; i < value_count; ++i) {
        const std::string key = in.text();
        const auto type = in.number<std::uint32_t>();
        if (key == "general.alignment" && type == uint32_value) alignment = in.number<std::uint32_t>();
        else skip_values(in, type, 1);
    }
    if (alignment == 0 || alignment % 8 != 0)
        throw RequestError(fmt::format("{}: general.alignment is {}; accepted are multiples of 8", path, alignment));
    struct Place {
        StoredTensor tensor;
        const BlockType* type;
        std::int64_t elements;
        std::uint64_t offset;
    };
    std::vector<Place> places;
    for (std::uint64_t i = 0; i < tensor_count; ++i) {
        Place place{};
        place.tensor.name = in.text();
        const auto axes = in.number<std::uint32_t>();
        constexpr std::int64_t most_elements = std::int64_t{1} << 48;
        constexpr std::uint32_t most_axes = 4;  // ggml's own
        if (axes > most_axes) throw RequestError(fmt::format("{}: {} has {} axes; is the file whole?", path, printable(place.tensor.name), axes));
        place.elements = 1;
        for (std::uint32_t axis = 0; axis < axes; ++axis) {
            const auto extent = in.number<std::int64_t>();
            if (extent < 1 || extent > most_elements / place.elements)
                throw RequestError(
                    fmt::format("{}: {} has an extent of {}; is the file whole?", path, printable(place.tensor.name), extent));
            place.elements *= extent;
            place.tensor.extents.insert(place.tensor.extents.begin(), extent);  // the file has the contiguous one first
        }
        const auto number = in.number<std::uint32_t>();
        place.offset = in.number<std::uint64_t>();
        const auto* type = std::ranges::find(block_types, number, &BlockType::number);
        place.type = type == std::end(block_types) ? nullptr : type;
        place.tensor.type = place.type ? place.type->name : fmt::format("of ggml's type {}", number);
        places.push_back(std::move(place));
    }
    const std::uint64_t data = (in.at() + alignment - 1) / alignment * alignment;
    std::vector<StoredTensor> out;
    for (Place& place : places) {
        if (place.type && place.type->elements > 0 && place.elements % place.type->elements == 0) {
            const auto bytes = std::uint64_t(place.elements / place.type->elements * place.type->bytes);
            if (data > file.size() || place.offset > file.size() - data || bytes > file.size() - data - place.offset)
                throw RequestError(fmt::format("{} has {} B and {} ends beyond them: is the file whole?", path, file.size(),
                                               printable(place.tensor.name)));
            place.tensor.bytes = file.subspan(std::size_t(data + place.offset), std::size_t(bytes));
        }
        out.push_back(std::move(place.tensor));
    }
    return out;
}

}  // namespace rooftile
