#include "rooftile/gemm/packing.hpp"

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/gemm/model.hpp"

namespace rooftile {
namespace {

template <class Of>
auto sum(const GemmProblem& p, PackedOperands packed, Of of) {
    decltype(of(PackedCopy{})) total{};
    if (packed.a) total += of(copy_of_a(p));
    if (packed.b) total += of(copy_of_b(p));
    return total;
}

/// Of loads of pixels, which L2 does not make one of neighbours' either.
LineCost image_lines(const GemmHardware& hw, const GemmProblem& p) {
    const double inside = p.image->share_inside(), outside = 1 - inside;
    const double own = inside * hw.image_inside + outside * hw.image_outside;
    return {own, own, inside * hw.image_inside + outside * hw.image_outside_multicast, hw.image_clustered};
}

}  // namespace

PackedCopy packed_copy(Type type, Major major, std::int64_t mn, std::int64_t k, std::int64_t matrices) {
    const int whole = PackedCopy::alignment / bytes_of(type);
    const bool along_k = major == Major::k || is_fp8(type);
    const std::int64_t width = along_k ? k : mn, lines = along_k ? mn : k;
    return {lines, width, ceil_div(width, whole) * whole, matrices, bytes_of(type)};
}

PackedCopy copy_of_a(const GemmProblem& p) { return packed_copy(p.a_type, p.a_major, p.m, p.k, p.a_matrices()); }
PackedCopy copy_of_b(const GemmProblem& p) { return packed_copy(p.b_type, p.b_major, p.n, p.k, p.b_matrices()); }

std::int64_t packed_bytes(const GemmProblem& p, PackedOperands packed) {
    return sum(p, packed, [](const PackedCopy& copy) { return copy.bytes(); });
}

double packing_traffic(const GemmProblem& p, PackedOperands packed) {
    double copied = sum(p, packed, [](const PackedCopy& copy) { return 2 * double(copy.read_bytes()); });
    if (packed.a && p.narrow) copied -= double(copy_of_a(p).read_bytes()) - p.as_asked().a_bytes();
    return packed.b && p.is_unpacked() ? copied - double(copy_of_b(p).read_bytes()) + double(p.unpacked.bytes(p.n, p.k)) : copied;
}

// As if all of it went through DRAM, also where L2 would hold the copies until the GEMM has read them.
double packing_seconds(const GemmHardware& hw, const GemmProblem& p, PackedOperands packed) {
    if (!packed.any()) return 0;
    return max_known(hw.launch_seconds, 0) + hw.dram_latency / hw.clock_hz
           + packing_traffic(p, packed) / hw.copy_bandwidth;
}

GemmHardware with_operands(GemmHardware hw, const GemmProblem& p, PackedOperands packed) {
    hw.packing_seconds = packing_seconds(hw, p, packed), hw.packing_bytes = packing_traffic(p, packed);
    const auto lines = [&](Major major, std::int64_t mn, std::int64_t leading, Type type, bool copied) -> LineCost {
        const bool one = (major == Major::k ? mn : p.k) == 1;
        const std::int64_t step = line_step(leading * bytes_of(type));
        if (copied || one || step == PackedCopy::alignment) return {};
        return hw.off_line[step <= 16 ? 0 : step == 32 ? 1 : 2];
    };
    hw.a_lines = lines(p.a_major, p.m, p.lda, p.a_type, packed.a);
    hw.b_lines = lines(p.b_major, p.n, p.ldb, p.b_type, packed.b);
    if (p.image && !p.gathered) (p.image_is_b() ? hw.b_lines : hw.a_lines) = image_lines(hw, p);
    return hw;
}

}  // namespace rooftile
