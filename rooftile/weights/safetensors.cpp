// safetensors as its specification has it: the length of a JSON text, the text, then the tensors one behind the other.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "rooftile/error.hpp"
#include "rooftile/machine/units_text.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/weights/file.hpp"

namespace rooftile {

std::vector<StoredTensor> safetensors_tensors(const std::string& path, std::span<const unsigned char> file) {
    const auto refuse = [&](std::string_view why) { throw RequestError(fmt::format("{} is neither GGUF nor safetensors: {}", path, why)); };
    constexpr std::size_t length_bytes = 8;
    if (file.size() < length_bytes) refuse(fmt::format("it has {} B", file.size()));
    const auto length = little_endian<std::uint64_t>(file, 0);
    if (length > file.size() - length_bytes)
        refuse(fmt::format("its first number says {} B of header, and it has {} B", length, file.size()));
    const auto data = file.subspan(length_bytes + std::size_t(length));
    const auto* text = reinterpret_cast<const char*>(file.data() + length_bytes);
    const Json header = Json::parse(text, text + length, nullptr, false);
    if (!header.is_object()) refuse("its header is no JSON object");
    std::vector<StoredTensor> out;
    for (const auto& [name, entry] : header.items()) {
        if (name == "__metadata__") continue;
        StoredTensor tensor;
        tensor.name = name;
        try {
            tensor.type = entry.at("dtype").get<std::string>();
            tensor.extents = entry.at("shape").get<std::vector<std::int64_t>>();
            const auto [begin, end] = entry.at("data_offsets").get<std::pair<std::uint64_t, std::uint64_t>>();
            if (begin > end || end > data.size())
                throw RequestError(fmt::format("{}: {} ends {} B behind the header, and the file {} B: is it whole?", path, printable(name),
                                               end, data.size()));
            tensor.bytes = data.subspan(std::size_t(begin), std::size_t(end - begin));
        } catch (const Json::exception&) { refuse(fmt::format("its header has no dtype, shape and data_offsets of {}", printable(name))); }
        out.push_back(std::move(tensor));
    }
    return out;
}

}  // namespace rooftile
