// What whoever runs a random test may choose, and how much of what could be tested `make test` takes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <random>
#include <utility>
#include <vector>

namespace rooftile {

/// The number that an environment variable holds; `otherwise` where it is not set.
inline std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// Whether a test takes all of what it otherwise draws a few of: make test-all sets ROOFTILE_TEST_ALL=1.
inline bool test_all() { return from_environment("ROOFTILE_TEST_ALL", 0) != 0; }

/// Of which cases are taken, not of what a test draws itself (ROOFTILE_TEST_SEED, by hand alone). tools/run-tests sets ROOFTILE_SAMPLE_SEED to the one that follows from the commit.
inline std::uint64_t test_seed() { return from_environment("ROOFTILE_SAMPLE_SEED", 1); }

/// How many are taken: `few`, `many` with ROOFTILE_TEST_ALL=1, any number with ROOFTILE_TEST_COUNT.
inline std::size_t test_count(std::size_t few, std::size_t many) {
    return from_environment("ROOFTILE_TEST_COUNT", test_all() ? many : few);
}

/// So many of `all`, drawn by test_seed(), in their order; it says which seed.
template <class T>
std::vector<T> drawn_few(std::vector<T> all, std::size_t few, std::size_t many = SIZE_MAX) {
    const std::size_t count = test_count(few, many);
    if (count >= all.size()) return all;
    std::vector<T> taken;
    std::mt19937_64 generator(test_seed());
    std::sample(std::make_move_iterator(all.begin()), std::make_move_iterator(all.end()), std::back_inserter(taken), count, generator);
    std::cout << count << " of " << all.size() << ", ROOFTILE_SAMPLE_SEED=" << test_seed() << '\n';
    return taken;
}

/// Of a loop over what is not in a list: whether this test takes the element `place`; one in `every`, which one follows from test_seed().
inline bool one_in(std::size_t every, std::size_t place) { return test_all() || (place + test_seed()) % every == 0; }

}  // namespace rooftile
