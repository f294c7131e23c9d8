#include "cli/gemm_variants.hpp"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/planning.hpp"
#include "cli/values.hpp"
#include "rooftile/machine/units_text.hpp"
#include "rooftile/gemm/variants.hpp"
#include "rooftile/gemm/simulate_orders.hpp"

namespace rooftile::cli {
namespace {

constexpr int most_sampled = 64, most_group = 65536;
constexpr std::string_view orders[] = {"row", "column", "grouped", "serpentine", "morton", "hilbert"};

/// "grouped:4", "hilbert".
OrderChoice order_of(const std::string& text) {
    const std::size_t colon = text.find(':');
    const Order order = Order(one_of("--orders", text.substr(0, colon), orders));
    if (has_groups(order) != (colon != text.npos))
        throw RequestError(
            fmt::format("--orders {}: accepted is {}", printable(text),
                        has_groups(order) ? fmt::format("{}:N, N the rows of tiles in a band", name_of(order))
                                          : std::string(name_of(order))));
    if (colon == text.npos) return {order, 1};
    return {order, int(whole_number("--orders", text.substr(colon + 1), 1, most_group))};
}

std::vector<OrderChoice> orders_of(const std::string& text) {
    std::vector<OrderChoice> list;
    if (text == "all") {
        for (const WalkOrder& order : all_orders()) list.push_back({order.order, order.group});
        return list;
    }
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        list.push_back(order_of(text.substr(begin, end - begin)));
        begin = end + 1;
    }
    return list;
}

}  // namespace

void add_variant_flags(CLI::App& verb, VariantFlags& flags) {
    const char* group = "Other plans beside the best";
    const auto add = [&](const char* name, std::string& value, const char* type_name, const char* meaning) {
        verb.add_option(name, value, meaning)->type_name(type_name)->check(refuse_empty)->group(group);
    };
    add("--sample", flags.sample, "N",
        "The best plan and N - 1 drawn from all that pass the walls, up to twice its predicted time");
    add("--orders", flags.orders, "all|LIST",
        "The best plan in its order of tiles and in these: row,column,grouped:8,serpentine:4,morton,hilbert");
}

Variants variants_of(const VariantFlags& flags, const GemmFlags& gemm) {
    Variants variants;
    if (flags.sample.empty() && flags.orders.empty()) return variants;
    if (!flags.sample.empty() && !flags.orders.empty())
        throw RequestError("--sample and --orders exclude each other");
    const char* flag = flags.sample.empty() ? "--orders" : "--sample";
    if (!gemm.top.empty()) throw RequestError(fmt::format("{} and --top exclude each other", flag));
    if (!flags.sample.empty()) variants.sample = int(whole_number("--sample", flags.sample, 2, most_sampled));
    if (flags.orders.empty()) return variants;
    if (!gemm.order.empty() || !gemm.group.empty())
        throw RequestError("--orders and --order or --group exclude each other");
    variants.orders = orders_of(flags.orders);
    return variants;
}

std::variant<Plans, Infeasible> derive_variants(const Target& target, const GemmProblem& problem,
                                                const GemmRequest& request, const Variants& variants,
                                                std::uint64_t seed) {
    if (variants.sample == 0 && variants.orders.empty()) return derive_for(target, problem, request);
    auto outcome = variants.sample > 0
                       ? derive_sample(target.machine, problem, request, variants.sample, seed)
                       : derive_in_orders(target.machine, problem, request, variants.orders);
    if (!target.note.empty())
        std::visit([&](auto& found) { found.notes.insert(found.notes.begin(), target.note); }, outcome);
    return outcome;
}

}  // namespace rooftile::cli
