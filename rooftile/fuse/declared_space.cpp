#include "rooftile/fuse/declared_space.hpp"

#include <algorithm>
#include <array>

#include "rooftile/core/warp.hpp"
#include "rooftile/fuse/row_vectors.hpp"
#include "rooftile/fuse/staging.hpp"

namespace rooftile {
namespace {

constexpr int most_plans = 4096;  // more than the search has

constexpr std::array declared_threads{64, 128, 256, 512, 1024};  // of a point-wise CTA
constexpr std::int64_t most_vectors = 128;                       // of a row, that a thread goes over
constexpr int most_elements = 128;                               // of a row in a thread's registers
constexpr int largest_cluster = 8;

bool declared(const FusePlan& plan) {
    const FuseConfig& c = plan.config;
    if (c.form != FuseForm::row) return true;
    const std::int64_t team = std::int64_t(c.threads_per_row) * c.cluster;
    if (max_row_vectors(plan.program, c.vector_width) > most_vectors * team) return false;
    if (reduces_across_grid(c)) return c.vectors_per_thread != 2;
    if (c.cluster > largest_cluster) return false;
    if (c.row_storage == RowStorage::pipelined) return c.vectors_per_thread != 4 && c.cluster != 2;
    if (c.row_storage == RowStorage::registers && c.vectors_per_thread * c.vector_width > most_elements) return false;
    // Rows of a warp or less: CTAs of one and of four warps.
    return c.threads_per_row > warp_threads || c.threads == warp_threads || c.threads == 4 * warp_threads;
}

}  // namespace

std::string_view fuse_space_rule() {
    return "Every launch that the search knows with its rules off, in the widest vectors and in those that rows are whole numbers of; rows "
           "in registers and point-wise in half the widest, too, point-wise also in a quarter; of rows those in which a thread goes over at "
           "most 128 vectors of its row and holds at most 128 elements in registers, of rows that share a warp or less CTAs of one and of "
           "four warps, without clusters of 16, without pairs and four vectors in rings, and without two vectors across the grid; point-wise CTAs of 64 to 1024 threads. The "
           "planner's choice for each of these are stages and resident CTAs; the plans that it keeps are members.";
}

std::span<const std::string_view> fuse_space_keys() {
    static constexpr std::string_view keys[] = {
        "form",    "row_storage", "vector_width",      "vectors_per_thread", "threads", "threads_per_row", "rows_per_cta",
        "cluster", "ctas_per_sm", "reduction_threads", "early_weights",      "reduce_scope", "row_splits"};
    return keys;
}

std::vector<FusePlan> fuse_space(const Machine& machine, const ExpressionGraph& problem) {
    std::vector<FusePlan> members;
    const auto add = [&](FuseRequest request) {
        request.exhaustive = true, request.top = most_plans;
        auto found = derive(machine, problem, request);
        auto* plans = std::get_if<FusePlans>(&found);
        if (!plans) return 0;
        int widest = 0;
        for (FusePlan& plan : plans->plans) {
            widest = std::max(widest, plan.config.vector_width);
            if (plan.buildable && declared(plan)) members.push_back(std::move(plan));
        }
        return widest;
    };
    const int widest = add({});
    if (members.empty()) return members;
    if (members.front().config.form == FuseForm::row) {
        if (widest > 1) add({.vector_width = widest / 2, .row_storage = RowStorage::registers});
        return members;
    }
    for (int width = widest; width >= 1 && width * 4 >= widest; width /= 2)
        for (const int threads : declared_threads) add({.vector_width = width, .threads = threads});
    return members;
}

Given fuse_given_of_config(const Record& config) {
    Given given(Given::Named::by_key);
    const auto number = [&](const char* key) { return find_as<std::int64_t>(config, key).value_or(0); };
    const auto text = [&](const char* key) { return find_as<std::string>(config, key).value_or(""); };
    const auto on = [&](const char* key) { return find_as<bool>(config, key).value_or(false) ? "on" : "off"; };
    given.add("exhaustive", "");
    given.add("row_storage", text("row_storage"));
    given.add("reduce_scope", text("reduce_scope"));
    for (const char* key : {"vector_width", "vectors_per_thread", "threads", "cluster", "stages", "reduction_threads"})
        given.add(key, std::to_string(number(key)));
    if (number("row_splits") > 0) given.add("row_splits", std::to_string(number("row_splits")));
    for (const char* key : {"persistent", "early_weights"}) given.add(key, on(key));
    if (number("threads_per_row") > 0)
        for (const char* key : {"threads_per_row", "rows_per_cta"}) given.add(key, std::to_string(number(key)));
    // Elsewhere it follows from registers and shared memory, and fixing it tells the search that no more can be resident.
    if (text("row_storage") == name_of(RowStorage::pipelined)) given.add("ctas_per_sm", std::to_string(number("ctas_per_sm")));
    return given;
}

}  // namespace rooftile
