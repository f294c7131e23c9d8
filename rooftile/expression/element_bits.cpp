#include "rooftile/expression/element_bits.hpp"

#include <bit>
#include <cstring>
#include <random>

#include "kernels/expression/bounded.hpp"

namespace rooftile {

std::vector<char> elements_of_values(std::span<const double> values, Element element) {
    const size_t size = size_t(bytes_of(element));
    std::vector<char> out(values.size() * size);
    for (size_t i = 0; i < values.size(); ++i) {
        const double v = values[i];
        std::uint64_t bits = 0;
        if (element == Element::fp32) bits = std::bit_cast<std::uint32_t>(float(v));
        else if (is_floating(element)) bits = round_to_bits(v, type_of(element));
        else bits = std::uint64_t(std::int64_t(v));
        std::memcpy(out.data() + i * size, &bits, size);  // little-endian, as the GPU
    }
    return out;
}

std::vector<double> values_of_elements(const char* bytes, std::int64_t count, Element element) {
    const size_t size = size_t(bytes_of(element));
    std::vector<double> out(static_cast<size_t>(count));
    for (size_t i = 0; i < out.size(); ++i) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, bytes + i * size, size);
        if (element == Element::fp32) out[i] = std::bit_cast<float>(std::uint32_t(bits));
        else if (is_floating(element)) out[i] = value_of_bits(unsigned(bits), type_of(element));
        else out[i] = double(std::int64_t(bits));
    }
    return out;
}

std::vector<double> random_values(std::int64_t count, Element element, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    std::vector<double> out(static_cast<size_t>(count));
    for (double& v : out)
        v = element == Element::boolean ? double(random() & 1) : rounded_to(normal(random), element);
    return out;
}

}  // namespace rooftile
