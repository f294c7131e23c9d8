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
    constexpr std::uint64_t most_header = 100'000'000;  // the format's own
    if (length > most_header) refuse(fmt::format("its header has {} B; accepted are at most {}", length, most_header));
    const auto data = file.subspan(length_bytes + std::size_t(length));
    const auto* text = reinterpret_cast<const char*>(file.data() + length_bytes);
    const Json header = Json::parse(text, text + length, nullptr, false);
    if (!header.is_object()) refuse("its header is no JSON object");
    std::vector<StoredTensor> out;
    for (const auto& [name, entry] : header.items()) {
        if (name == "__metadata__") continue;
        StoredTensor tensor;
        tensor.name = name;
        // Not rounded and not wrapped, which get() would do.
        const auto whole = [&, &of = name](const Json& number) {
            constexpr std::uint64_t most = std::uint64_t{1} << 48;
            if (!number.is_number_unsigned() || number.get<std::uint64_t>() > most)
                refuse(fmt::format("its header has {} where a size of {} belongs", printable(number.dump()), printable(of)));
            return number.get<std::uint64_t>();
        };
        try {
            tensor.type = entry.at("dtype").get<std::string>();
            for (const Json& extent : entry.at("shape")) tensor.extents.push_back(std::int64_t(whole(extent)));
            const Json& offsets = entry.at("data_offsets");
            const std::uint64_t begin = whole(offsets.at(0)), end = whole(offsets.at(1));
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
