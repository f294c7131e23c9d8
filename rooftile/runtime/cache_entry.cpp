// Keys and entry files of cache.hpp as bytes.
//
//   8 B magic | u32 version | u32 header size | u64 cubin size | header (JSON) | cubin | 16 B XXH3-128
//
// Integers are little-endian; the checksum covers everything before it.
#include <cstring>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "rooftile/runtime/cache.hpp"

namespace rooftile {
namespace {

using nlohmann::json;

constexpr std::string_view schema = "rooftile/cubin/1";
constexpr char magic[8] = {'R', 'O', 'O', 'F', 'C', 'U', 'B', '\n'};
constexpr std::uint32_t entry_version = 1;

struct Prefix {
    char magic[8];
    std::uint32_t version, header_size;
    std::uint64_t cubin_size;
};
static_assert(sizeof(Prefix) == 24);
constexpr std::size_t checksum_size = 16;

XXH128_canonical_t checksum(std::string_view bytes) {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
    return canonical;
}

std::string hex(std::string_view bytes) {
    std::string text;
    for (unsigned char byte : checksum(bytes).digest) text += fmt::format("{:02x}", byte);
    return text;
}

/// Each field with its length before it, so that no two lists of fields give the same bytes.
void append(std::string& bytes, std::string_view field) {
    std::uint64_t size = field.size();
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
    bytes.append(field);
}

json json_of(const EntryInfo& entry) {
    return {{"name", entry.name},
            {"registers", entry.registers},
            {"stack_bytes", entry.stack_bytes},
            {"spill_store_bytes", entry.spill_store_bytes},
            {"spill_load_bytes", entry.spill_load_bytes},
            {"local_bytes", entry.local_bytes},
            {"static_shared_bytes", entry.static_shared_bytes},
            {"constant_bytes", entry.constant_bytes},
            {"barriers", entry.barriers}};
}

EntryInfo entry_of(const json& value) {
    EntryInfo entry;
    value.at("name").get_to(entry.name);
    value.at("registers").get_to(entry.registers);
    value.at("stack_bytes").get_to(entry.stack_bytes);
    value.at("spill_store_bytes").get_to(entry.spill_store_bytes);
    value.at("spill_load_bytes").get_to(entry.spill_load_bytes);
    value.at("local_bytes").get_to(entry.local_bytes);
    value.at("static_shared_bytes").get_to(entry.static_shared_bytes);
    value.at("constant_bytes").get_to(entry.constant_bytes);
    value.at("barriers").get_to(entry.barriers);
    return entry;
}

CacheLookup refused(std::string why) { return {std::nullopt, std::move(why)}; }

}  // namespace

CacheKey cache_key(const Source& source, const NvrtcInfo& compiler) {
    std::vector<std::string> options = compile_options(source);
    std::string bytes;
    append(bytes, schema);
    append(bytes, compiler.version);
    append(bytes, compiler.build);
    append(bytes, source.arch);
    append(bytes, source.name);
    append(bytes, source.text);
    append(bytes, std::to_string(options.size()));
    for (const std::string& option : options) append(bytes, option);
    append(bytes, std::to_string(source.name_expressions.size()));
    for (const std::string& expression : source.name_expressions) append(bytes, expression);
    json headers = json::array();
    for (const EmbeddedFile& header : source.headers) {
        append(bytes, header.path);
        append(bytes, header.text);
        headers.push_back({{"path", header.path}, {"xxh3_128", hex(header.text)}});
    }
    json material = {{"schema", schema},
                     {"nvrtc", {{"version", compiler.version}, {"build", compiler.build}}},
                     {"arch", source.arch},
                     {"name", source.name},
                     {"source", source.text},
                     {"options", options},
                     {"name_expressions", source.name_expressions},
                     {"headers", headers}};
    return {hex(bytes), material.dump(-1, ' ', false, json::error_handler_t::replace)};
}

std::string encode_entry(const CacheKey& key, const Compiled& compiled) {
    json entries = json::array();
    for (const EntryInfo& entry : compiled.entries) entries.push_back(json_of(entry));
    json header = {{"hash", key.hash},
                   {"key", key.material},
                   {"lowered_names", compiled.lowered_names},
                   {"entries", entries},
                   {"log", compiled.log}};
    std::string text = header.dump(-1, ' ', false, json::error_handler_t::replace);
    Prefix prefix{};
    std::memcpy(prefix.magic, magic, sizeof magic);
    prefix.version = entry_version;
    prefix.header_size = std::uint32_t(text.size());
    prefix.cubin_size = compiled.cubin.size();
    std::string bytes(reinterpret_cast<const char*>(&prefix), sizeof prefix);
    bytes += text;
    bytes += compiled.cubin;
    XXH128_canonical_t sum = checksum(bytes);
    bytes.append(reinterpret_cast<const char*>(sum.digest), checksum_size);
    return bytes;
}

CacheLookup decode_entry(const CacheKey& key, const std::string& bytes) {
    if (bytes.size() < sizeof(Prefix) + checksum_size) return refused("too short");
    Prefix prefix;
    std::memcpy(&prefix, bytes.data(), sizeof prefix);
    if (std::memcmp(prefix.magic, magic, sizeof magic) != 0) return refused("not a cache entry");
    if (prefix.version != entry_version) return refused(fmt::format("entry version {}", prefix.version));
    std::uint64_t body = bytes.size() - sizeof prefix - checksum_size;
    if (prefix.header_size > body || prefix.cubin_size != body - prefix.header_size)
        return refused("sizes do not add up");
    std::string_view content(bytes.data(), bytes.size() - checksum_size);
    XXH128_canonical_t sum = checksum(content);
    if (std::memcmp(sum.digest, bytes.data() + content.size(), checksum_size) != 0)
        return refused("checksum differs");

    content.remove_prefix(sizeof prefix);
    json header = json::parse(content.substr(0, prefix.header_size), nullptr, false);
    try {
        if (header.at("hash") != key.hash || header.at("key") != key.material)
            return refused("entry of another key");
        Compiled compiled;
        header.at("lowered_names").get_to(compiled.lowered_names);
        for (const json& entry : header.at("entries")) compiled.entries.push_back(entry_of(entry));
        header.at("log").get_to(compiled.log);
        compiled.cubin = content.substr(prefix.header_size);
        if (compiled.cubin.empty()) return refused("empty cubin");
        return {std::move(compiled), {}};
    } catch (const json::exception& error) { return refused(error.what()); }
}

}  // namespace rooftile
