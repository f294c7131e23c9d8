// The quick verdict on results: the same as agrees(), for every number of 16 bits around every kind of bound.
#include "tests/accepted.hpp"

#include <gtest/gtest.h>

#include <random>

namespace rooftile {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

template <class T>
std::vector<char> bytes_of_all(const std::vector<T>& numbers) {
    std::vector<char> bytes(numbers.size() * sizeof(T));
    std::memcpy(bytes.data(), numbers.data(), bytes.size());
    return bytes;
}

TEST(Accepted, EveryNumberOfSixteenBitsAsAgrees) {
    std::vector<std::uint16_t> all(65536);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::uint16_t(i);
    const std::vector<char> bytes = bytes_of_all(all);
    for (const Element element : {Element::bf16, Element::fp16})
        for (const double value : {0.0, -0.0, 1.0, -1.5, 3e-6, 1e-40, 0.3333, 65504.0, 70000.0, -3.3e38,
                                   inf, -inf, std::nan("")})
            for (const double error : {0.0, 1e-9, 0.004, 1.0, 1e5, inf, std::nan("")}) {
                const Accepted accepted(BoundedTensor(all.size(), {value, error}), element);
                const auto wrong = accepted.wrong(bytes.data(), all.size());
                std::size_t next = 0;
                for (std::size_t i = 0; i < all.size(); ++i) {
                    const bool refused = next < wrong.size() && wrong[next] == i;
                    next += refused;
                    const double got = value_of_bits(unsigned(i), type_of(element));
                    ASSERT_EQ(refused, !agrees(got, {value, error}, element))
                        << got << " for " << value << " +- " << error;
                }
            }
}

TEST(Accepted, OtherTypes) {
    std::mt19937_64 random(3);
    std::normal_distribution<double> normal;
    BoundedTensor expected;
    std::vector<float> got;
    for (int i = 0; i < 100000; ++i) {
        const double value = normal(random), error = 1e-7 * std::fabs(normal(random));
        expected.push_back({value, error});
        got.push_back(float(value + 1.5 * error * normal(random)));
    }
    got[7] = std::numeric_limits<float>::quiet_NaN();
    got[8] = std::numeric_limits<float>::infinity();
    const Accepted accepted(expected, Element::fp32);
    const auto wrong = accepted.wrong(bytes_of_all(got).data(), got.size());
    std::size_t next = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        const bool refused = next < wrong.size() && wrong[next] == i;
        next += refused;
        ASSERT_EQ(refused, !agrees(got[i], expected[i], Element::fp32));
    }
    EXPECT_GT(wrong.size(), 2u);
    EXPECT_LT(wrong.size(), got.size() / 2);
    EXPECT_EQ(accepted.wrong(bytes_of_all(got).data(), 1).size(), 1u);

    const std::vector<char> flags = {1, 0, 1};
    EXPECT_EQ(Accepted({{1, 0}, {1, 0}, {0, inf}}, Element::boolean).wrong(flags.data(), 9),
              std::vector<std::size_t>{1});
    const std::vector<std::int64_t> places = {5, 5};
    EXPECT_EQ(Accepted({{5, 0}, {4, 0}}, Element::int64).wrong(bytes_of_all(places).data(), 9),
              std::vector<std::size_t>{1});
}

}  // namespace
}  // namespace rooftile
