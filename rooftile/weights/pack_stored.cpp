#include "rooftile/weights/pack_stored.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/core/in_parallel.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/units_text.hpp"

namespace rooftile {
namespace {

std::pair<const Operation*, const Packs*> packing_operation() {
    for (const Operation* operation : operations())
        if (const Packs* packs = facet_of<Packs>(*operation)) return {operation, packs};
    throw RequestError("this build has no operation that takes packed weights");
}

/// What `packing` refuses, with the name of the weights: a file has many.
auto of_these(const StoredWeights& weights, auto packing) {
    try {
        return packing();
    } catch (const RequestError& error) { throw RequestError(fmt::format("{}: {}", printable(weights.name), error.what())); }
}

}  // namespace

PackTask pack_task(const StoredWeights& weights, std::string_view scale) {
    const auto [operation, packs] = packing_operation();
    constexpr const char* scale_key = "quant_scale";
    PackTask task;
    task.operation = operation;
    task.fields = {{"m", "1"},
                   {"n", std::to_string(weights.n)},
                   {"k", std::to_string(weights.k)},
                   {"types", fmt::format("bf16,{},bf16", weights.weights)},
                   {"quant_group", weights.group == 0 ? "row" : std::to_string(weights.group)},
                   {scale_key, scale.empty() ? weights.scale : std::string(scale)},
                   {"quant_zero", weights.zero}};
    Given given(Given::Named::by_flag);
    for (const auto& [key, text] : task.fields) given.add(key, text);
    task.problem = of_these(weights, [&] { return operation->problem(given); });
    // One of its names was given; the request has the type's own.
    if (const auto name = find_as<std::string>(operation->problem_record(task.problem), scale_key))
        std::ranges::find(task.fields, scale_key, [](const auto& field) { return field.first; })->second = *name;
    task.bytes = packs->packed_bytes(task.problem);
    return task;
}

PackError pack_stored(const PackTask& task, const StoredWeights& weights, std::span<unsigned char> to) {
    const Packs& packs = *facet_of<Packs>(*task.operation);
    const std::int64_t together = packs.rows_together(), parts = (weights.n + together - 1) / together;
    std::vector<PackError> errors(static_cast<std::size_t>(parts));
    in_parallel(errors.size(), 0, [&](std::size_t part) {
        const std::int64_t first = std::int64_t(part) * together;
        const RowRange range{first, std::min(together, weights.n - first)};
        const PlainRows rows = weights.rows(range);
        of_these(weights, [&] { packs.pack_rows(task.problem, range, rows.arrays(), to); });
        std::vector<double> stored(std::size_t(weights.k)), packed(stored.size());
        for (std::int64_t row = 0; row < range.count; ++row) {
            rows.values(row, stored);
            packs.unpack_rows(task.problem, {first + row, 1}, to, packed);
            for (std::size_t i = 0; i < stored.size(); ++i) {
                errors[part].mean_square += std::pow(packed[i] - stored[i], 2);
                errors[part].mean_square_of_weights += stored[i] * stored[i];
            }
        }
    });
    PackError all;
    for (const PackError& error : errors) all.mean_square += error.mean_square, all.mean_square_of_weights += error.mean_square_of_weights;
    const double count = double(weights.n) * double(weights.k);
    all.mean_square /= count, all.mean_square_of_weights /= count;
    return all;
}

Json pack_json(const PackTask& task, const StoredWeights& weights) {
    Json request = {{"op", task.operation->name()}};
    for (const auto& [key, text] : task.fields) request[key] = text;
    const double count = double(weights.n) * double(weights.k);
    return {{"format", weights.format},
            {"n", weights.n},
            {"k", weights.k},
            {"groups", weights.group == 0 ? 1 : weights.k / weights.group},
            {"file_bytes", weights.file_bytes},
            {"packed_bytes", task.bytes},
            {"file_bits_a_weight", double(weights.file_bytes) * 8 / count},
            {"packed_bits_a_weight", double(task.bytes) * 8 / count},
            {"request", std::move(request)}};
}

}  // namespace rooftile
