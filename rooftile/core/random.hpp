// Random numbers that are the same for the same seed with every compiler, library and processor: the engine is fixed by
// the standard, and what is made of its bits takes only additions, halvings, products and square roots, which IEEE 754
// rounds in one way. (std::uniform_* may differ between libraries, log and exp between processors.)
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>

namespace rooftile {

class Random {
  public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}

    std::uint64_t bits() { return engine_(); }
    /// One of 0 .. n - 1.
    std::size_t pick(std::size_t n) { return std::size_t(bits() % n); }
    /// True once in `n`.
    bool one_in(std::size_t n) { return pick(n) == 0; }
    bool coin() { return one_in(2); }
    template <class List>
    const auto& one_of(const List& list) {
        return list[pick(std::size(list))];
    }
    /// A whole number of [least, most], each as likely.
    std::int64_t whole(std::int64_t least, std::int64_t most) {
        return least + std::int64_t(pick(std::size_t(most - least) + 1));
    }
    double uniform(double low, double high) {
        return bisected(low, high, [](double a, double b) { return (a + b) / 2; });
    }
    /// Every factor is as likely as any other.
    double log_uniform(double low, double high) {
        return bisected(low, high, [](double a, double b) { return std::sqrt(a * b); });
    }

  private:
    /// Each bit says in which half the number lies.
    template <class Middle>
    double bisected(double low, double high, Middle middle) {
        constexpr int digits = 53;  // of a double
        std::uint64_t halves = bits();
        for (int i = 0; i < digits; ++i, halves >>= 1) (halves & 1 ? low : high) = middle(low, high);
        return low;
    }

    std::mt19937_64 engine_;
};

}  // namespace rooftile
