// A GEMM computed on the CPU in fp64 and put where a kernel would put it: the right answer for the checks
// of the checker, and the place where mutants change it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/measure/numbers.hpp"
#include "rooftile/gemm/device/operands.hpp"
#include "rooftile/gemm/device/verify.hpp"
#include "rooftile/runtime/driver.hpp"

namespace rooftile {

/// A row-major result, before rounding, with the root of its sums of (a b)^2.
struct HostResult {
    std::int64_t m = 0, n = 0;
    std::vector<double> value, sigma;
    double& at(std::int64_t i, std::int64_t j) { return value[static_cast<std::size_t>(i * n + j)]; }
    double sigma_at(std::int64_t i, std::int64_t j) const {
        return sigma[static_cast<std::size_t>(i * n + j)];
    }
};

/// 16-bit words of one operand, copied from the device.
struct HostOperand {
    std::vector<std::uint16_t> words;
    explicit HostOperand(const GemmProblem& p, Operand operand, const void* device)
        : words(static_cast<std::size_t>(span_of(operand_view(p, operand, 0)))) {
        copy_to_host(words.data(), reinterpret_cast<DevicePointer>(device), words.size() * 2);
    }
};

/// Sums over the first `k_used` of K (all by default).
inline HostResult host_gemm(const GemmProblem& p, const HostOperand& a, const HostOperand& b,
                            std::int64_t k_used = INT64_MAX) {
    HostResult c{p.m, p.n, std::vector<double>(static_cast<std::size_t>(p.m * p.n)), {}};
    c.sigma = c.value;
    const std::int64_t k_end = std::min(k_used, p.k);
    std::vector<double> row_a(static_cast<std::size_t>(k_end)), all_b(static_cast<std::size_t>(k_end * p.n));
    for (std::int64_t k = 0; k < k_end; ++k) {
        for (std::int64_t j = 0; j < p.n; ++j) {
            const auto at = static_cast<std::size_t>(offset_of(p, Operand::b, k, j));
            all_b[static_cast<std::size_t>(k * p.n + j)] = value_of_bits(b.words[at], p.b_type);
        }
    }
    for (std::int64_t i = 0; i < p.m; ++i) {
        for (std::int64_t k = 0; k < k_end; ++k) {
            const double x =
                value_of_bits(a.words[static_cast<std::size_t>(offset_of(p, Operand::a, i, k))], p.a_type);
            for (std::int64_t j = 0; j < p.n; ++j) {
                const double y = all_b[static_cast<std::size_t>(k * p.n + j)];
                c.value[static_cast<std::size_t>(i * p.n + j)] += x * y;
                c.sigma[static_cast<std::size_t>(i * p.n + j)] += x * y * x * y;
            }
        }
    }
    for (double& s : c.sigma) s = std::sqrt(s);
    return c;
}

/// Writes rows of C, rounded to nearest even, and nothing between them.
inline void put_result(const GemmProblem& p, const HostResult& c, void* device) {
    std::vector<std::uint16_t> row(static_cast<std::size_t>(p.n));
    for (std::int64_t i = 0; i < p.m; ++i) {
        for (std::int64_t j = 0; j < p.n; ++j) {
            row[static_cast<std::size_t>(j)] = static_cast<std::uint16_t>(
                round_to_bits(c.value[static_cast<std::size_t>(i * p.n + j)], p.c_type));
        }
        copy_to_device(reinterpret_cast<DevicePointer>(device) + static_cast<DevicePointer>(2 * i * p.ldc),
                       row.data(), row.size() * 2);
    }
}

/// The right result, changed by `mutate` before it is rounded.
inline GemmLaunch host_launch(const GemmProblem& p, std::function<void(HostResult&)> mutate = {},
                              std::int64_t k_used = INT64_MAX) {
    return [=](Stream stream, const void* a, const void* b, void* c) {
        synchronize(stream);
        HostResult result =
            host_gemm(p, HostOperand(p, Operand::a, a), HostOperand(p, Operand::b, b), k_used);
        if (mutate) mutate(result);
        put_result(p, result, c);
    };
}

}  // namespace rooftile
