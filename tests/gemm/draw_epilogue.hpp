// Random epilogues of a product, and sizes, majors and types to go with them.
#pragma once

#include <fmt/core.h>

#include <string>
#include <vector>

#include "rooftile/core/random.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/problem.hpp"

namespace rooftile {

/// The shape of one that differs from product to product of a batch.
inline std::string of_each_product(std::string_view shape) {
    if (shape == "[1]") return "[B,1,1]";
    return shape == "[N]" ? "[B,1,N]" : "[B," + std::string(shape.substr(1));
}

/// A few operators on the sum and on operands; in a batch without dropout, and half of the operands are its products' own.
struct DrawnEpilogue {
    std::string text;
    std::vector<std::string> tensors;
    double alpha = 1, beta = 0;
    Pairs pairs = Pairs::none;
};

/// The same of pairs: a SwiGLU or GeGLU where the sum stood.
inline DrawnEpilogue of_pairs(Random& random, DrawnEpilogue e) {
    const std::string pair = random.coin() ? "(silu(gate) * up)" : "(gelu(gate) * up)";
    e.pairs = random.coin() ? Pairs::split : Pairs::interleaved, e.beta = 0;
    if (e.text.empty()) e.text = "d = acc";
    for (std::size_t at = 0; (at = e.text.find("acc", at)) != std::string::npos; at += pair.size()) e.text.replace(at, 3, pair);
    std::erase_if(e.tensors, [](const std::string& t) { return t.starts_with("c:"); });
    for (std::string& t : e.tensors)
        if (const std::size_t n = t.find('N'); n != t.npos) t.insert(n + 1, "/2");
    return e;
}

inline DrawnEpilogue drawn_epilogue(Random& random, bool batched = false) {
    struct Tensor {
        const char *name, *shape;
    };
    static constexpr Tensor tensors[] = {{"bias", "[N]"}, {"res", "[M,N]"}, {"rows", "[M,1]"}, {"scale", "[1]"}, {"mask", "[M,N]"}};
    static const char* const functions[] = {"gelu", "relu", "silu", "gelu_tanh", "tanh", "sigmoid", "abs", "softplus"};
    static const char* const types[] = {"bf16", "fp16", "fp32"};
    DrawnEpilogue out;
    std::string value = "acc";
    bool used[std::size(tensors)] = {};
    const std::size_t steps = 1 + random.pick(4);
    for (std::size_t i = 0; i < steps; ++i) {
        const std::size_t t = random.pick(std::size(tensors) - 1);
        switch (random.pick(5)) {
            case 0: value = fmt::format("{}({})", functions[random.pick(std::size(functions))], value); break;
            case 1: value = fmt::format("({} + {})", value, tensors[t].name), used[t] = true; break;
            case 2: value = fmt::format("({} * {})", value, tensors[t].name), used[t] = true; break;
            case 3: value = fmt::format("where(mask, {}, 0.25)", value), used[4] = true; break;
            default: value = random.coin() && !batched ? fmt::format("dropout({}, 0.25, seed={})", value, i + 1)
                                           : fmt::format("fp16({} * 0.125)", value); break;
        }
    }
    out.text = "d = " + value;
    if (random.coin()) out.alpha = 0.5;
    if (random.pick(3) == 0) out.beta = -1.5, out.tensors.push_back("c:bf16[M,N]");
    if (random.pick(6) == 0 && out.alpha != 1) {
        out.text.clear();
        return out;
    }
    for (std::size_t t = 0; t < std::size(tensors); ++t)
        if (used[t])
            out.tensors.push_back(fmt::format("{}:{}{}", tensors[t].name, t == 4 ? "bool" : types[random.pick(3)],
                                              batched && random.coin() ? of_each_product(tensors[t].shape) : tensors[t].shape));
    return random.pick(4) == 0 ? of_pairs(random, std::move(out)) : out;
}

/// No more than `most` rows and columns. Every other one's C leaves by TMA.
inline GemmProblem drawn_product(Random& random, Type type, std::int64_t most) {
    const auto size = [&](std::int64_t limit) { return 1 + std::int64_t(random.pick(std::size_t(limit))); };
    const Major a = random.coin() ? Major::k : Major::mn, b = random.coin() ? Major::k : Major::mn;
    std::int64_t m = size(random.pick(4) == 0 ? 130 : most), n = size(random.pick(4) == 0 ? 130 : most), k = size(700);
    if (random.coin()) n = (n + 7) / 8 * 8;
    GemmProblem p = gemm_problem(m, n, k, type, a, b);
    if (random.pick(4) == 0) p.ldc += 8 * std::int64_t(1 + random.pick(4));
    if (random.pick(4) == 0) p.c_offset = std::int64_t(random.pick(8));
    return p;
}

/// False: the text says nothing ("d = acc"), or the epilogue is refused; draw another.
inline bool give_epilogue(GemmProblem& p, const DrawnEpilogue& e) {
    try {
        p.alpha = e.alpha, p.beta = e.beta;
        if (e.pairs != Pairs::none) {  // what the kernel takes
            const std::int64_t room = p.ldc - p.n;
            p.n = (p.n + 15) / 16 * 16, p.b_major = Major::k, p.ldb = p.k, p.ldc = p.n / 2 + room;
            if (p.b_stride != 0) p.b_stride = dense_stride(p, 'b');
        }
        p.epilogue = product_epilogue(p.m, p.n, p.c_type, e.alpha, e.beta, e.text, e.tensors, Scales::none, p.batch, 0, e.pairs);
    } catch (const RequestError&) { return false; }
    return bool(p.epilogue);
}

}  // namespace rooftile
