// Physical quantities whose unit is part of the type.
//
// `Bytes / Cycles` is a rate, `Rate * Cycles` is bytes again, and adding a rate to a clock does not
// compile. A quantity holds one double: integer counts are exact up to 2^53, which is more bytes
// than any GPU has.
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>

namespace rooftile {

/// Exponents of the five base units. Counts (SMs, warps, registers) have dimension zero.
struct Dimension {
    int byte = 0;
    int flop = 0;
    int cycle = 0;
    int second = 0;
    int joule = 0;

    friend constexpr bool operator==(const Dimension&, const Dimension&) = default;
    friend constexpr Dimension operator+(Dimension x, Dimension y) {
        return {x.byte + y.byte, x.flop + y.flop, x.cycle + y.cycle, x.second + y.second, x.joule + y.joule};
    }
    friend constexpr Dimension operator-(Dimension x, Dimension y) {
        return {x.byte - y.byte, x.flop - y.flop, x.cycle - y.cycle, x.second - y.second, x.joule - y.joule};
    }
};

/// A number in base units (bytes, FLOP, cycles, seconds, joules) of dimension `D`.
template <Dimension D>
struct Quantity {
    double value = 0;

    static constexpr Dimension dimension = D;

    constexpr Quantity() = default;
    constexpr explicit Quantity(double v) : value(v) {}

    constexpr Quantity& operator+=(Quantity o) {
        value += o.value;
        return *this;
    }
    constexpr Quantity& operator-=(Quantity o) {
        value -= o.value;
        return *this;
    }
    friend constexpr Quantity operator+(Quantity x, Quantity y) { return Quantity(x.value + y.value); }
    friend constexpr Quantity operator-(Quantity x, Quantity y) { return Quantity(x.value - y.value); }
    friend constexpr Quantity operator*(Quantity x, double s) { return Quantity(x.value * s); }
    friend constexpr Quantity operator*(double s, Quantity x) { return Quantity(x.value * s); }
    friend constexpr Quantity operator/(Quantity x, double s) { return Quantity(x.value / s); }
    friend constexpr auto operator<=>(Quantity, Quantity) = default;
};

template <Dimension X, Dimension Y>
constexpr auto operator*(Quantity<X> x, Quantity<Y> y) {
    if constexpr (X + Y == Dimension{}) return x.value * y.value;
    else return Quantity<X + Y>(x.value * y.value);
}

template <Dimension X, Dimension Y>
constexpr auto operator/(Quantity<X> x, Quantity<Y> y) {
    if constexpr (X == Y) return x.value / y.value;
    else return Quantity<X - Y>(x.value / y.value);
}

using Bytes = Quantity<Dimension{.byte = 1}>;
using Flops = Quantity<Dimension{.flop = 1}>;
using Cycles = Quantity<Dimension{.cycle = 1}>;
using Seconds = Quantity<Dimension{.second = 1}>;
using Joules = Quantity<Dimension{.joule = 1}>;
using Watts = Quantity<Dimension{.second = -1, .joule = 1}>;
using Clock = Quantity<Dimension{.cycle = 1, .second = -1}>;
using Bandwidth = Quantity<Dimension{.byte = 1, .second = -1}>;
using BytesPerCycle = Quantity<Dimension{.byte = 1, .cycle = -1}>;
using FlopRate = Quantity<Dimension{.flop = 1, .second = -1}>;
using FlopsPerCycle = Quantity<Dimension{.flop = 1, .cycle = -1}>;
using JoulesPerFlop = Quantity<Dimension{.flop = -1, .joule = 1}>;
using JoulesPerByte = Quantity<Dimension{.byte = -1, .joule = 1}>;
using Ratio = Quantity<Dimension{}>;
using Intensity = Quantity<Dimension{.byte = -1, .flop = 1}>;

/// Least integer not below x / y, for positive integers.
constexpr std::int64_t ceil_div(std::int64_t x, std::int64_t y) { return (x + y - 1) / y; }

}  // namespace rooftile
