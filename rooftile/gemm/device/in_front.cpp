#include "rooftile/gemm/device/in_front.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "kernels/gemm/unpack_weights_arguments.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/device/quantised_operands.hpp"

namespace rooftile {
namespace {

PackedCopy widened_copy(const GemmProblem& p, const GemmShape& s) { return packed_copy(p.a_type, p.a_major, s.m, s.k, 1); }
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

void add_in_front(Source& source, const GemmProblem& p) {
    if (!has_in_front(p)) return;
    source.text += p.is_unpacked() ? "#include \"kernels/gemm/unpack_weights.cuh\"\n" : "#include \"kernels/gemm/widen_rows.cuh\"\n";
    source.name_expressions.push_back(p.is_unpacked() ? unpack_name_expression(p.unpacked, p.a_type, p.narrow ? p.narrow->type : p.a_type)
                                                      : fmt::format("rooftile::widen_rows<rooftile::Type::{}, rooftile::Type::{}>",
                                                                    name_of(p.narrow->type), name_of(p.a_type)));
}

std::size_t in_front_bytes(const GemmProblem& p, const GemmShape& s) {
    return std::size_t((p.narrow ? widened_copy(p, s).bytes() : 0) + (p.is_unpacked() ? unpacked_copy(p, s).bytes() : 0));
}

void check_in_front(const GemmProblem& p, GemmShape& s, const void*& a, const void*& b) {
    const void* const aligned = reinterpret_cast<const void*>(std::uintptr_t{PackedCopy::alignment});  // passes for an address in the workspace
    if (p.narrow) {
        check_leading("lda", s.lda, widened_copy(p, s).width, 1);
        s.lda = widened_copy(p, s).pitch, a = aligned;
    }
    if (p.is_unpacked()) {
        check_pointer("B", b, QuantisedLayout::header_bytes);
        s.ldb = unpacked_copy(p, s).pitch, b = aligned;
    }
}

GemmOperands launch_in_front(const Function& function, Stream stream, const GemmProblem& p, const GemmOperands& given, char* to, bool programmatic) {
    GemmOperands made = given;
    const GemmShape& s = given.shape;
    UnpackArguments arguments{};
    if (p.narrow) {
        const PackedCopy copy = widened_copy(p, s);
        arguments.rows = {static_cast<const unsigned char*>(given.pointers.a), reinterpret_cast<unsigned short*>(to), copy.lines, s.lda, copy.pitch,
                          unsigned(copy.width)};
        made.pointers.a = to, made.shape.lda = copy.pitch;
        to += copy.bytes();
    }
    const long long row_ctas = p.narrow ? arguments.rows.ctas() : 0;
    if (!p.is_unpacked()) {
        launch(function, packing_launch(stream, row_ctas, 1, widen_threads, programmatic), arguments.rows);
        return made;
    }
    const QuantisedLayout& layout = p.unpacked;
    const long long weight_ctas = unpack_ctas(layout, s.n, s.k);
    arguments.weights = static_cast<const unsigned char*>(given.pointers.b), arguments.to = reinterpret_cast<unsigned short*>(to);
    arguments.n = int(s.n), arguments.k = int(s.k), arguments.pitch = unpacked_copy(p, s).pitch;
    arguments.weight_ctas = unsigned(weight_ctas);
    Launch unpacking = packing_launch(stream, weight_ctas + row_ctas, 1, unpack_threads, programmatic);
    unpacking.shared_bytes = unsigned(layout.table_bytes());
    launch(function, unpacking, arguments);
    made.pointers.b = to, made.shape.ldb = arguments.pitch;
    return made;
}

}  // namespace rooftile
