// `--sample` and `--orders` of `plan gemm` and `measure gemm`: which plans stand beside the best one.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "cli/gemm_arguments.hpp"
#include "rooftile/gemm/search.hpp"

namespace rooftile::cli {

/// The flags as written; empty: not given.
struct VariantFlags {
    std::string sample, orders;
};
void add_variant_flags(CLI::App& verb, VariantFlags& flags);

struct Variants {
    int sample = 0;  ///< plans, the best included; 0: not asked for
    std::vector<OrderChoice> orders;
};
/// Checked, also against what `gemm` fixes. Throws RequestError.
Variants variants_of(const VariantFlags& flags, const GemmFlags& gemm);

/// The plans asked for: the best `request.top`, a sample, or the best in several orders; with the target's
/// note among the outcome's notes. `seed` is of the sample.
std::variant<Plans, Infeasible> derive_variants(const Target& target, const GemmProblem& problem,
                                                const GemmRequest& request, const Variants& variants,
                                                std::uint64_t seed);

}  // namespace rooftile::cli
