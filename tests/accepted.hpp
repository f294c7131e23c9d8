// What the elements of a result may be, worked out once for all launches that are held against it.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/measure/numbers.hpp"
#include "rooftile/expression/evaluate.hpp"

namespace rooftile {

class Accepted {
  public:
    Accepted(BoundedTensor expected, Element element) : expected_(std::move(expected)), element_(element) {
        ranges_.reserve(expected_.size());
        for (const Bounded& e : expected_) ranges_.push_back(range_of(e, element));
        if (element == Element::bf16 || element == Element::fp16)
            for (unsigned bits = 0; bits < 65536; ++bits)
                values_.push_back(value_of_bits(bits, type_of(element)));
    }

    std::size_t size() const { return expected_.size(); }
    const Bounded& expected(std::size_t i) const { return expected_[i]; }

    /// Element `i` of a result at `bytes`.
    double value(const char* bytes, std::size_t i) const {
        switch (element_) {
            case Element::fp32:
                return read<float>(bytes, i);
            case Element::boolean:
                return read<std::uint8_t>(bytes, i);
            case Element::int64:
                return double(read<std::int64_t>(bytes, i));
            default:
                return values_[read<std::uint16_t>(bytes, i)];
        }
    }

    /// The first elements of a result at `bytes` that agrees() says are wrong, `most` of them.
    std::vector<std::size_t> wrong(const char* bytes, std::size_t most) const {
        std::vector<std::size_t> found;
        for (std::size_t i = 0; i < expected_.size() && found.size() < most; ++i) {
            const double got = value(bytes, i);
            if (got >= ranges_[i].least && got <= ranges_[i].greatest) continue;
            if (!agrees(got, expected_[i], element_)) found.push_back(i);
        }
        return found;
    }

  private:
    /// In which everything is right; what lies outside is asked for one by one.
    struct Range {
        double least, greatest;
    };

    static Range range_of(const Bounded& e, Element element) {
        constexpr double infinity = std::numeric_limits<double>::infinity();
        if (std::isinf(e.error)) return {-infinity, infinity};
        if (std::isnan(e.value) || std::isnan(e.error)) return {infinity, -infinity};
        if (std::isinf(e.value) || !is_floating(element)) return {e.value, e.value};
        constexpr double inside = 1 - 1e-12;  // of rounding here
        const double reach = (e.error + rounding_of(e, element)) * inside;
        const double most = std::numeric_limits<double>::max();
        return {std::max(-most, e.value - reach), std::min(most, e.value + reach)};
    }

    template <class T>
    static T read(const char* bytes, std::size_t i) {
        T t;
        std::memcpy(&t, bytes + i * sizeof(T), sizeof(T));
        return t;
    }

    BoundedTensor expected_;
    Element element_;
    std::vector<Range> ranges_;
    std::vector<double> values_;  ///< of every 16 bits
};

}  // namespace rooftile
