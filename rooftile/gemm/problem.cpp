#include "rooftile/gemm/problem.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/packing.hpp"

namespace rooftile {
namespace {

constexpr std::int64_t scale_block = 128;

void check_extent(const char* name, std::int64_t value) {
    if (value < 1 || value > max_gemm_extent)
        throw RequestError(fmt::format("{} = {}: must be 1 .. {}", name, value, max_gemm_extent));
}

void check_leading(const char* name, std::int64_t value, std::int64_t least, const char* extent) {
    if (value < least)
        throw RequestError(fmt::format("{} = {}: must be at least {} ({})", name, value, least, extent));
    if (value > max_gemm_extent)
        throw RequestError(fmt::format("{} = {}: must be at most {}", name, value, max_gemm_extent));
}

void check_offset(const char* name, std::int64_t value) {
    constexpr std::int64_t most = 63;  // from there on the next line begins
    if (value < 0 || value > most) throw RequestError(fmt::format("{} = {}: must be 0 .. {}", name, value, most));
}

void check_types(const GemmProblem& p) {
    const auto refuse = [&](const char* works) {
        throw RequestError(fmt::format("types {} x {} -> {}: {}", name_of(p.a_type), name_of(p.b_type), name_of(p.c_type), works));
    };
    const Type a = p.is_quantised() ? p.b_type : p.a_type;
    if (is_fp8(a) != is_fp8(p.b_type) || (!is_fp8(a) && a != p.b_type))
        refuse("no instruction multiplies the two; a and b are both bf16, both fp16, or fp8_e4m3 and fp8_e5m2 in any pair");
    if (a == Type::fp32) refuse("products of fp32 are not supported yet; bf16, fp16 or fp8 for a and b");
    if (is_fp8(p.c_type) && !is_fp8(a)) refuse(a == Type::fp16 ? "results of 8 bits are of operands of 8 bits; fp16 or fp32" : "results of 8 bits are of operands of 8 bits; bf16 or fp32");
    if (!is_fp8(a) && p.c_type != a && p.c_type != Type::fp32)
        refuse("of 16-bit operands the result is of their type or fp32");
}

/// Of packed weights: what no layout of them can say.
void check_quantised(const GemmProblem& p) {
    const QuantisedLayout& q = p.quantised;
    const auto refuse = [&](std::string why) { throw RequestError(fmt::format("types {} x {}: {}", name_of(p.a_type), p.b_name(), why)); };
    if (p.a_type == Type::fp32) refuse("packed weights meet activations of bf16, fp16 or fp8");
    if (is_fp8(p.a_type) && p.c_type != Type::bf16 && p.c_type != Type::fp16)
        refuse(fmt::format("of activations of 8 bits the result is bf16 or fp16 so far, not {}", name_of(p.c_type)));
    if (!is_fp8(p.a_type) && p.c_type != p.a_type) refuse(fmt::format("the result is of the activations' type so far, not {}", name_of(p.c_type)));
    if (p.b_type != p.c_type) refuse(fmt::format("weights are multiplied as the result's type, not as {}", name_of(p.b_type)));
    if (q.power_scales() && q.group != QuantisedLayout::power_group)
        refuse(fmt::format("a scale for {} of K: {} has one for each {}", q.group == 0 ? "all" : std::to_string(q.group), p.b_name(), QuantisedLayout::power_group));
    if (q.power_scales() && q.scale != Type::bf16) refuse(fmt::format("scales of {}: those of {} are e8m0, powers of two", name_of(q.scale), p.b_name()));
    if (q.group != 0 && q.group != 32 && q.group != 64 && q.group != 128)
        refuse(fmt::format("a scale for {} of K: accepted are 32, 64, 128 and a row", q.group));
    if (q.scale != Type::bf16 && q.scale != Type::fp16) refuse(fmt::format("scales of {}: accepted are bf16 and fp16", name_of(q.scale)));
    if (!q.is_whole() && q.zeros != ZeroType::none) refuse("zero points are of weights that are whole numbers; leave quant_zero off");
    if (q.bits() == 8 && q.zeros == ZeroType::integer)
        refuse("weights of 8 bits have no whole zero points; leave quant_zero off, or take float");
    if (p.batch > 1) refuse("batches of packed weights are not supported yet; launch the products one by one");
    if (p.groups && p.n % QuantisedLayout::block_rows != 0)
        refuse(fmt::format("n = {} of groups: the columns of each are whole blocks of {}; pad them", p.n, QuantisedLayout::block_rows));
    if (p.groups && p.n > max_gemm_extent / p.groups->count())
        refuse(fmt::format("n = {} of {} groups: kernels count fewer than 2^31 columns of all of them; multiply fewer groups at once", p.n, p.groups->count()));
    if (p.groups && p.b_stride != p.n * p.k) refuse("packed weights of groups are one after the other; leave stride_b off");
    if (p.b_major != Major::k || p.ldb != p.k || p.b_offset != 0)
        refuse("packed weights have one layout, from 128 B on; leave b_major, ldb and b_offset off");
}

void check_promotion(const GemmProblem& p) {
    if (!p.promoted()) return;
    const std::string_view what = p.block_scales() ? "scales block" : "accumulation promoted";
    if (!is_fp8(p.b_type))
        throw RequestError(fmt::format("{}: it is of operands of 8 bits; of {} sums are fp32 as they are", what, name_of(p.b_type)));
    if (p.block_scales() && p.batch > 1)
        throw RequestError("scales block in a batch: not supported yet; scales tensor or row work");
}

struct Lines {
    const char *stride_name, *leading_name;
    std::int64_t lines, width, leading, stride;
};

Lines lines_of(const GemmProblem& p, char operand) {
    if (operand == 'a')
        return {"stride_a", "lda", p.a_major == Major::k ? p.m : p.k, p.a_major == Major::k ? p.k : p.m, p.lda, p.a_stride};
    if (operand == 'b')
        return {"stride_b", "ldb", p.b_major == Major::k ? p.n : p.k, p.b_major == Major::k ? p.k : p.n, p.ldb, p.b_stride};
    return {"stride_d", "ldc", p.m, p.result_n(), p.ldc, p.c_stride};
}

/// Matrices lie apart: one behind the other, or side by side within the lines.
void check_stride(const GemmProblem& p, char operand) {
    const Lines l = lines_of(p, operand);
    if (l.stride == 0 && operand != 'c') return;
    const std::int64_t matrices = p.groups ? p.groups->count() : p.batch;
    const bool behind = l.stride >= (l.lines - 1) * l.leading + l.width;
    const bool beside = l.stride >= l.width && l.stride <= (l.leading - l.width) / std::max<std::int64_t>(1, matrices - 1);
    if (!behind && !beside)
        throw RequestError(fmt::format("{} = {}: matrices of {} lines, {} = {}, would overlap; from {} on they are separate{}",
                                       l.stride_name, l.stride, l.lines, l.leading_name, l.leading,
                                       (l.lines - 1) * l.leading + l.width, operand == 'c' || p.groups ? "" : ", and 0 shares one"));
    // Elements are counted in 64 bits, bytes too.
    if (double(l.stride) * double(matrices) >= 2305843009213693952.0)
        throw RequestError(fmt::format("{} = {}: {} matrices must be within 2^61 elements", l.stride_name, l.stride, matrices));
}

void check_groups(const GemmProblem& p) {
    const GemmGroups& groups = *p.groups;
    if (p.batch != 1) throw RequestError("batch and groups exclude each other; of a batch every product has as many rows");
    if (groups.count() > max_gemm_groups)
        throw RequestError(fmt::format("{} groups; at most {} are taken", groups.count(), max_gemm_groups));
    if (groups.total() != p.m) throw RequestError(fmt::format("the groups have {} rows in all, but m = {}", groups.total(), p.m));
    if (p.a_stride != 0 || p.c_stride != 0) throw RequestError("stride_a and stride_d are of a batch; of groups A and C are one matrix each");
    if (p.b_stride == 0) throw RequestError("stride_b = 0: each group has a B of its own; one for all is a product without groups");
    check_stride(p, 'b');
}

void check_batch(const GemmProblem& p) {
    if (p.groups) return check_groups(p);
    if (p.batch == 1) {
        if (p.a_stride != 0 || p.b_stride != 0 || p.c_stride != 0)
            throw RequestError("stride_a, stride_b and stride_d are of a batch; one product has none");
        return;
    }
    for (char operand : {'a', 'b', 'c'}) check_stride(p, operand);
}

}  // namespace

namespace {

/// Elements from row to row of all products: their rows behind each other, or side by side; 0 where they lie otherwise.
struct EvenRows {
    std::int64_t behind = 0, beside = 0;
};
EvenRows even_rows(const GemmProblem& p, std::int64_t leading, std::int64_t stride) {
    return {p.m == 1 ? stride : stride == p.m * leading ? leading : 0, leading == p.batch * stride ? stride : 0};
}

/// The epilogue of one product with the rows of all; none where an operand tells rows or products apart.
SharedEpilogue epilogue_of_all(const GemmProblem& p, std::int64_t rows) {
    const Epilogue& e = *p.epilogue;
    for (const EpilogueOperand& o : e.operands)
        if (o.by_row || o.by_product) return {};
    return product_epilogue(rows, p.n, p.c_type, p.alpha, p.beta, e.expression, e.tensors, e.scales, 1, 0, e.pairs);
}

}  // namespace

GemmProblem as_one_product(const GemmProblem& p) {
    const std::int64_t rows = p.batch * p.m;
    if (p.batch == 1 || p.b_stride != 0 || p.a_stride == 0 || p.c_stride == 0 || rows > max_gemm_extent || p.results() > 1) return p;
    // Along M's contiguous A rows lie side by side, and those of products behind each other where they go on there.
    const EvenRows a = p.a_major == Major::k ? even_rows(p, p.lda, p.a_stride) : EvenRows{p.a_stride == p.m && p.lda >= rows ? p.lda : 0, 0};
    const EvenRows c = even_rows(p, p.ldc, p.c_stride);
    const bool behind = a.behind > 0 && c.behind > 0, beside = a.beside > 0 && c.beside > 0;
    if (!behind && !beside) return p;
    GemmProblem all = p;
    all.batch = 1, all.m = rows;
    all.a_stride = all.b_stride = all.c_stride = 0;
    all.lda = behind ? a.behind : a.beside, all.ldc = behind ? c.behind : c.beside;
    if (p.epilogue && !(all.epilogue = epilogue_of_all(p, rows))) return p;
    return all;
}

GemmProblem as_batch(const GemmProblem& p) {
    GemmProblem out = p;
    out.groups = {};
    out.epilogue = {};
    out.batch = p.groups->with_rows();
    out.m = ceil_div(p.m, out.batch);
    if (out.batch == 1) out.b_stride = 0;
    else out.a_stride = dense_stride(out, 'a'), out.c_stride = dense_stride(out, 'c');
    return out;
}

ScaleLayout a_scale_layout(std::int64_t m, std::int64_t k) { return {(k + scale_block - 1) / scale_block, m}; }
ScaleLayout b_scale_layout(std::int64_t n, std::int64_t k, std::int64_t groups) {
    return {(n + scale_block - 1) / scale_block, (k + scale_block - 1) / scale_block, groups};
}

std::int64_t dense_stride(const GemmProblem& p, char operand) {
    const Lines l = lines_of(p, operand);
    return l.lines * l.leading;
}

std::string_view name_of(Type type) {
    switch (type) {
        case Type::bf16:
            return "bf16";
        case Type::fp16:
            return "fp16";
        case Type::fp32:
            return "fp32";
        case Type::fp8_e4m3:
            return "fp8_e4m3";
        case Type::fp8_e5m2:
            return "fp8_e5m2";
    }
    return "?";
}

std::span<const std::string_view> weight_names() {
    static constexpr std::string_view names[] = {"int4", "uint4", "int8", "fp8_e4m3", "fp8_e5m2", "mxfp4", "nf4"};
    return names;
}
std::string_view name_of(WeightType weights) { return weights == WeightType::none ? "none" : weight_names()[std::size_t(weights) - 1]; }

std::string_view scale_name(const QuantisedLayout& layout) { return layout.power_scales() ? "e8m0" : name_of(layout.scale); }

std::string_view name_of(ZeroType zeros) { return zeros == ZeroType::integer ? "int" : zeros == ZeroType::real ? "float" : "none"; }

std::string_view GemmProblem::b_name() const { return is_quantised() ? name_of(quantised.weights) : name_of(b_type); }

GemmProblem GemmProblem::dequantised() const {
    GemmProblem out = *this;
    out.quantised = {};
    return out;
}

GemmProblem GemmProblem::behind_unpacking() const {
    GemmProblem out = *this;
    if (!is_quantised()) return out;
    out.unpacked = std::exchange(out.quantised, {});
    out.ldb = copy_of_b(out).pitch;
    return out;
}

GemmProblem GemmProblem::behind_widening() const {
    GemmProblem out = *this;
    if (!is_quantised() || !is_fp8(a_type)) return out;
    out.narrow = {a_type, lda, a_offset};
    out.a_type = b_type;
    out.lda = copy_of_a(out).pitch;
    out.a_offset = 0;
    return out;
}

GemmProblem GemmProblem::as_asked() const {
    GemmProblem out = *this;
    if (is_unpacked()) out.quantised = std::exchange(out.unpacked, {}), out.ldb = k;
    if (narrow) out.a_type = narrow->type, out.lda = narrow->lda, out.a_offset = narrow->a_offset, out.narrow.reset();
    return out;
}

std::string_view name_of(Accumulation accumulation) { return accumulation == Accumulation::fast ? "fast" : "promoted"; }

std::string_view rate_name_of(Type type) { return is_fp8(type) ? "fp8" : name_of(type); }

std::string_view a_major_name(Major major) { return major == Major::k ? "k" : "m"; }
std::string_view b_major_name(Major major) { return major == Major::k ? "k" : "n"; }

double GemmProblem::beside_bytes() const {
    const double scales = block_scales() ? 4 * (double(a_scales().lines) * double(m) + double(b_matrices_read()) * double(b_scales().lines * b_scales().width)) : 0;
    return scales + (epilogue ? epilogue->bytes : 0);
}

Bytes GemmProblem::compulsory_bytes() const { return Bytes(a_bytes() + b_bytes() + c_bytes() + beside_bytes()); }

GemmProblem gemm_problem(std::int64_t m, std::int64_t n, std::int64_t k, Type type, Major a_major,
                         Major b_major) {
    GemmProblem p;
    p.m = m;
    p.n = n;
    p.k = k;
    p.a_type = p.b_type = p.c_type = type;
    p.a_major = a_major;
    p.b_major = b_major;
    p.lda = a_major == Major::k ? k : m;
    p.ldb = b_major == Major::k ? k : n;
    p.ldc = n;
    check(p);
    return p;
}

void check(const GemmProblem& p) {
    check_extent("m", p.m);
    check_extent("n", p.n);
    check_extent("k", p.k);
    // Below 2^63 every count of the model fits an integer: 2 M N K bounds them all.
    check_extent("batch", p.batch);
    if (p.flops().value >= 9223372036854775808.0)
        throw RequestError(fmt::format("m x n x k{} = {} x {} x {}{}: 2 m n k{} must be below 2^63", p.batch > 1 ? " x batch" : "",
                                       p.m, p.n, p.k, p.batch > 1 ? fmt::format(" x {}", p.batch) : "", p.batch > 1 ? " batch" : ""));
    check_leading("lda", p.lda, p.a_major == Major::k ? p.k : p.m, p.a_major == Major::k ? "k" : "m");
    check_leading("ldb", p.ldb, p.b_major == Major::k ? p.k : p.n, p.b_major == Major::k ? "k" : "n");
    check_leading("ldc", p.ldc, p.result_n(), p.result_n() == p.n ? "n" : "n / 2");
    check_offset("a_offset", p.a_offset);
    check_offset("b_offset", p.b_offset);
    check_offset("c_offset", p.c_offset);
    if (p.is_quantised()) check_quantised(p);
    check_types(p);
    if (p.accumulate_type != Type::fp32)
        throw RequestError(fmt::format("accumulate {}: not supported yet; fp32", name_of(p.accumulate_type)));
    check_batch(p);
    check_promotion(p);
    if ((p.alpha != 1 || p.beta != 0) && !p.epilogue)
        throw RequestError(
            fmt::format("alpha = {}, beta = {}: without an epilogue they are 1 and 0", p.alpha, p.beta));
    // A copy of the problem with other sizes keeps no epilogue of the old ones.
    const std::int64_t products = p.groups ? p.groups->count() : p.batch;
    if (p.epilogue && (p.epilogue->batch != products || p.epilogue->of_groups != bool(p.groups)))
        throw RequestError(fmt::format("the epilogue was made for {} {}, not for {} {}", p.epilogue->batch, p.epilogue->of_groups ? "groups" : "products",
                                       products, p.groups ? "groups" : "products"));
    if (p.epilogue && p.epilogue->graph.nodes[std::size_t(p.epilogue->graph.inputs[0])].shape != Shape{p.m, p.result_n()})
        throw RequestError(fmt::format("the epilogue was made for another shape than {} x {}", p.m, p.n));
}

}  // namespace rooftile
