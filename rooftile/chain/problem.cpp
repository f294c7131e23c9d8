#include "rooftile/chain/problem.hpp"

#include <fmt/core.h>

#include "rooftile/error.hpp"

namespace rooftile {
namespace {

TensorInfo matrix(const ChainProblem& p, std::string name, std::int64_t rows, std::int64_t columns, TensorRole role) {
    return {.name = std::move(name),
            .type = std::string(chain_type_name(p.type)),
            .element_bits = int(8 * ChainProblem::element_bytes),
            .extents = {Extent::of(rows), Extent::of(columns)},
            .strides = {columns, 1},
            .role = role};
}

}  // namespace

std::string_view name_of(ChainAct act) {
    constexpr std::string_view names[] = {"gelu", "silu", "relu", "swiglu"};
    return names[int(act)];
}

std::string_view chain_type_name(Type type) { return type == Type::bf16 ? "bf16" : "fp16"; }

void check(const ChainProblem& p) {
    const auto within = [](std::string_view name, std::int64_t value, std::int64_t step) {
        if (value < step || value > max_chain_extent || value % step != 0)
            throw RequestError(fmt::format("{} is {}; accepted: {} to {}{}", name, value, step, max_chain_extent,
                                           step > 1 ? fmt::format(" in steps of {}, as rows of 16 bytes are", step) : std::string()));
    };
    within("m", p.m, 1);
    within("d", p.d, chain_step);
    within("ff", p.ff, chain_step);
    constexpr double most_elements = double(std::int64_t{1} << 44);  // far beyond any GPU's memory, and safe to multiply
    for (const auto& [rows, columns] : {std::pair{p.m, p.d}, {p.m, p.first_width()}, {p.first_width(), p.d}})
        if (double(rows) * double(columns) > most_elements)
            throw RequestError(fmt::format("a matrix of {} x {} has more than 2^44 elements", rows, columns));
}

std::vector<TensorInfo> chain_tensors(const ChainProblem& p) {
    return {matrix(p, "X", p.m, p.d, TensorRole::in), matrix(p, "W1", p.first_width(), p.d, TensorRole::in),
            matrix(p, "W2", p.d, p.ff, TensorRole::in), matrix(p, "Y", p.m, p.d, TensorRole::out)};
}

}  // namespace rooftile
