#include "rooftile/gemm/device/cublaslt_loop.hpp"

#include <fmt/core.h>

namespace rooftile {

std::unique_ptr<CublasLtLoop> CublasLtLoop::open(const GemmProblem& p, std::string& missing, const CublasLt* before) {
    auto loop = std::make_unique<CublasLtLoop>();
    std::map<std::pair<std::int64_t, std::int64_t>, std::shared_ptr<const CublasLt>> opened;  // by rows and A's alignment
    const bool a_k = p.a_major == Major::k;
    std::int64_t row = 0;
    for (std::int64_t g = 0; g < p.groups->count(); ++g) {
        const std::int64_t rows = p.groups->rows()[std::size_t(g)];
        if (rows == 0) continue;
        GemmProblem one = p;
        one.groups = {};
        one.m = rows, one.b_stride = 0;
        // Of an A whose lines run along its rows a group begins within the line.
        constexpr std::int64_t line = 64;  // elements after which nothing changes
        if (!a_k) one.a_offset = (p.a_offset + row) % line;
        auto& product = opened[{rows, one.a_offset}];
        if (!product) product = CublasLt::open(one, missing, before);
        if (!product) {
            missing = fmt::format("group {} of {} rows: {}", g, rows, missing);
            return nullptr;
        }
        before = product.get();
        loop->groups_.push_back({product, row * (a_k ? p.lda : 1) * bytes_of(p.a_type), g * p.b_stride * bytes_of(p.b_type),
                                 row * p.ldc * bytes_of(p.c_type)});
        row += rows;
    }
    return loop;
}

void CublasLtLoop::launch(Stream stream, std::span<void* const> tensors) const {
    for (const Group& g : groups_) {
        const auto at = [](void* tensor, std::int64_t bytes) -> void* { return static_cast<char*>(tensor) + bytes; };
        void* const one[] = {at(tensors[0], g.a), at(tensors[1], g.b), at(tensors.back(), g.c)};
        g.product->launch(0, stream, one);
    }
}

}  // namespace rooftile
