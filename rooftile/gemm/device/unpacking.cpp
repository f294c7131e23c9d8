#include "rooftile/gemm/device/unpacking.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "kernels/gemm/unpack_weights_arguments.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/device/quantised_operands.hpp"

namespace rooftile {
namespace {

PackedCopy unpacked_copy(const GemmProblem& p, const GemmShape& s) { return packed_copy(p.b_type, Major::k, s.n, s.k, 1); }

}  // namespace

Launch packing_launch(Stream stream, long long ctas, unsigned matrices, int threads, bool programmatic) {
    if (ctas > max_gemm_size) throw RequestError(fmt::format("packing takes {} CTAs; at most {} are launched", ctas, max_gemm_size));
    constexpr unsigned max_grid_y = 65535;
    Launch launch;
    launch.block_x = unsigned(threads);
    launch.grid_x = unsigned(ctas);
    launch.grid_y = std::clamp(matrices, 1u, max_grid_y);
    launch.stream = stream;
    launch.programmatic_dependent = programmatic;
    return launch;
}

void add_unpacking(Source& source, const GemmProblem& p) {
    if (!p.is_unpacked()) return;
    source.text += "#include \"kernels/gemm/unpack_weights.cuh\"\n";
    source.name_expressions.push_back(unpack_name_expression(p.unpacked, p.a_type));
}

std::size_t unpacked_bytes(const GemmProblem& p, const GemmShape& s) { return p.is_unpacked() ? std::size_t(unpacked_copy(p, s).bytes()) : 0; }

void check_unpacking(const GemmProblem& p, GemmShape& s, const void*& b) {
    if (!p.is_unpacked()) return;
    check_pointer("B", b, QuantisedLayout::header_bytes);
    s.ldb = unpacked_copy(p, s).pitch;
    b = reinterpret_cast<const void*>(std::uintptr_t{PackedCopy::alignment});  // any address that passes for one in the workspace
}

GemmOperands unpack(const Function& unpack, Stream stream, const GemmProblem& p, const GemmOperands& given, char* to, bool programmatic) {
    GemmOperands unpacked = given;
    const GemmShape& s = given.shape;
    const QuantisedLayout& layout = p.unpacked;
    const std::int64_t pitch = unpacked_copy(p, s).pitch;
    Launch launch = packing_launch(stream, unpack_ctas(layout, s.n, s.k), 1, unpack_threads, programmatic);
    launch.shared_bytes = unsigned(layout.table_bytes());
    rooftile::launch(unpack, launch,
                     UnpackArguments{static_cast<const unsigned char*>(given.pointers.b), reinterpret_cast<unsigned short*>(to), int(s.n), int(s.k), pitch});
    unpacked.pointers.b = to;
    unpacked.shape.ldb = pitch;
    return unpacked;
}

}  // namespace rooftile
