#include "rooftile/machine/machine.hpp"

#include <array>
#include <cassert>
#include <charconv>

#include <fmt/core.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "rooftile/machine/keys.hpp"

namespace rooftile {
namespace {

// Every plan hashes its machine: what formats by a format string takes as long as a search.
template <class... Number>
void append_number(std::string& text, Number... number) {
    std::array<char, 32> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number...).ptr;
    text += ' ';
    text.append(digits.data(), end);
}

}  // namespace

const Fact* Machine::find(std::string_view key) const {
    const auto it = facts.find(key);
    assert((it != facts.end() || match_key(key).key) && "not one of machine_keys()");
    return it == facts.end() ? nullptr : &it->second;
}

std::optional<double> Machine::count(std::string_view key) const {
    const Fact* fact = find(key);
    if (!fact || fact->dimension != Dimension{}) return std::nullopt;
    return fact->value;
}

bool Machine::has(std::string_view feature) const {
    assert(find_feature(feature) && "not one of machine_features()");
    const auto it = features.find(feature);
    return it != features.end() && it->second;
}

bool Machine::lacks(std::string_view feature) const {
    assert(find_feature(feature) && "not one of machine_features()");
    const auto it = features.find(feature);
    return it != features.end() && !it->second;
}

std::string Machine::hash() const {
    // Fifteen digits: "3350 GB/s" and "3.35 TB/s" are the same number to a plan, though their doubles may
    // differ in the last bit. Sources and spellings do not change a plan.
    std::string plain = "arch " + arch + '\n';
    for (const auto& [key, fact] : facts) {
        const Dimension d = fact.dimension;
        plain += key;
        append_number(plain, fact.value, std::chars_format::general, 15);
        for (int power : {d.byte, d.flop, d.cycle, d.second, d.joule}) append_number(plain, power);
        plain += fact.per == Per::sm ? " sm\n" : " gpu\n";
    }
    for (const auto& [feature, present] : features)
        plain.append(feature).append(present ? " true\n" : " false\n");
    const XXH128_hash_t hash = XXH3_128bits(plain.data(), plain.size());
    return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace rooftile
