#include "rooftile/core/in_parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace rooftile {

void in_parallel(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work) {
    if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
    std::atomic<std::size_t> next{0};
    std::vector<std::exception_ptr> thrown(count);
    const auto run = [&] {
        for (std::size_t i = next++; i < count; i = next++) try {
                work(i);
            } catch (...) { thrown[i] = std::current_exception(); }
    };
    {
        std::vector<std::jthread> helpers;
        for (std::size_t i = 1; i < std::min<std::size_t>(threads, count); ++i) helpers.emplace_back(run);
        run();
    }
    for (const std::exception_ptr& each : thrown)
        if (each) std::rethrow_exception(each);
}

}  // namespace rooftile
