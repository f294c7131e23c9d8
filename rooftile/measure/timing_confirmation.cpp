// Sustained and burst: the blocks after the rounds, of plan 1 and of the plan that the rounds found the fastest.
#include <chrono>
#include <deque>
#include <thread>

#include "rooftile/elapsed.hpp"
#include "rooftile/measure/timer.hpp"

namespace rooftile {

void Timer::confirm() {
    const auto start = std::chrono::steady_clock::now();
    const bool burst = options_.mode == Mode::burst;
    std::vector<std::vector<RoundTime>> plans;
    for (std::size_t w = 0; w < std::min(options_.confirmation.plans, works_.size()); ++w)
        plans.push_back(results_[w].rounds);
    const std::size_t first = 0;
    const auto other = ahead_of_first(plans, options_.confirmation.above);
    if (!other) return;
    std::optional<std::size_t> before;
    for (std::size_t round = 0; !confirmation_over(
             results_[first].confirmation, results_[*other].confirmation, seconds_since(start), options_.confirmation);
         ++round) {
        std::deque<Block> running;
        for (const std::size_t w : confirmation_order(first, *other, round, options_.seed)) {
            check_interrupted();
            if (burst) std::this_thread::sleep_for(std::chrono::duration<double>(options_.idle_seconds));
            Block& block = running.emplace_back();
            block.work = w;
            block.round = round;
            block.confirmation = true;
            // Behind a block of its own the load is the same already.
            const double lead = burst || before == w ? 0 : options_.settle_seconds;
            enqueue(block, burst ? options_.burst_seconds : options_.settled_block_seconds, lead);
            before = w;
            if (burst) collect(block), running.pop_front();
        }
        for (const Block& block : running) collect(block);
    }
}

}  // namespace rooftile
