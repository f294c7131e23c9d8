#include "rooftile/gemm/device/cublaslt_loop.hpp"

#include <fmt/core.h>

namespace rooftile {

std::unique_ptr<CublasLtLoop> CublasLtLoop::open(const GemmProblem& p, std::string& missing, const CublasLt* before) {
    if (p.block_scales()) {
        missing = "scales of blocks are of all groups together: a product by itself would begin within a line of them";
        return nullptr;
    }
    if (p.pairs() != Pairs::none) {
        missing = "cublasLtMatmul stores a result as wide as B, not one for each pair of its columns";
        return nullptr;
    }
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
        if (p.epilogue) one.epilogue = epilogue_of_group(*p.epilogue, rows, p.n, p.c_type, p.alpha, p.beta);
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
        Group group{product, {row * (a_k ? p.lda : 1) * bytes_of(p.a_type), g * p.b_stride * bytes_of(p.b_type)}};
        if (p.epilogue)
            for (const EpilogueOperand& o : p.epilogue->operands)
                group.begins.push_back((o.by_product ? g : o.by_row ? row : 0) * (o.by_column ? p.n : 1) * bytes_of(o.element));
        group.begins.push_back(row * p.ldc * bytes_of(p.c_type));
        loop->groups_.push_back(std::move(group));
        row += rows;
    }
    return loop;
}

void CublasLtLoop::launch(Stream stream, std::span<void* const> tensors) const {
    std::vector<void*> one;
    for (const Group& g : groups_) {
        one.clear();
        for (std::size_t i = 0; i < g.begins.size(); ++i)  // all tensors but the offsets, which stand third
            one.push_back(static_cast<char*>(tensors[i < 2 ? i : i + 1]) + g.begins[i]);
        g.product->launch(0, stream, one);
    }
}

}  // namespace rooftile
