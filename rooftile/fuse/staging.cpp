#include "rooftile/fuse/staging.hpp"

#include <algorithm>
#include <set>

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/core/warp.hpp"
#include "rooftile/fuse/row_vectors.hpp"

namespace rooftile {
namespace {

bool at_own_place(const ProgramValue& v) {
    return v.kind == ValueKind::load && v.level == Level::element && v.access.full();
}

}  // namespace

bool shares_masks(const ProgramValue& v) {
    return v.kind == ValueKind::compute && v.op == Op::dropout && v.level == Level::element && v.access.full();
}

std::vector<bool> epilogue_operands(const Program& program) {
    std::vector<bool> reduced(program.values.size(), false), epilogue(program.values.size(), false);
    // Operands come before what uses them: one pass backwards reaches everything.
    for (size_t i = program.values.size(); i-- > 0;) {
        const ProgramValue& v = program.values[i];
        if (v.kind == ValueKind::reduce || (v.kind == ValueKind::compute && reduced[i]))
            for (int operand : v.operands) reduced[size_t(operand)] = true;
    }
    for (size_t i = 0; i < program.values.size(); ++i) {
        const ProgramValue& v = program.values[i];
        epilogue[i] = v.kind == ValueKind::load && v.level == Level::element && !reduced[i];
    }
    return epilogue;
}

bool has_epilogue_rows(const Program& program) {
    const std::vector<bool> epilogue = epilogue_operands(program);
    for (size_t i = 0; i < program.values.size(); ++i)
        if (epilogue[i] && at_own_place(program.values[i])) return true;
    return false;
}

double slot_bytes(const Program& program) {
    const std::vector<bool> epilogue = epilogue_operands(program);
    double bytes = 0;
    for (size_t i = 0; i < program.values.size(); ++i)
        if (at_own_place(program.values[i]) && !epilogue[i]) bytes += bytes_of(program.values[i].element);
    return bytes;
}

StagedRows staged_rows(const Program& program, const FuseConfig& c) {
    StagedRows rows;
    const std::int64_t chunk_vectors = std::int64_t(c.vectors_per_thread) * c.threads_per_row;
    const bool parts = c.row_storage == RowStorage::pipelined || grid_resident_rows(c);
    if (!parts || (grid_resident_rows(c) && !holds_iterations(program, c))) return rows;
    rows.vectors = c.stages * chunk_vectors;
    const std::vector<bool> epilogue = epilogue_operands(program);
    for (size_t i = 0; i < program.values.size(); ++i) {
        const ProgramValue& v = program.values[i];
        if (!at_own_place(v) || epilogue[i]) continue;
        const std::int64_t bytes = rows.vectors * c.vector_width * bytes_of(v.element);
        rows.tensors.push_back({int(i), rows.bytes, bytes});
        rows.bytes += bytes;
    }
    for (size_t i = 0; i < program.values.size(); ++i) {
        const ProgramValue& v = program.values[i];
        if (!kept_in_ring(v, c)) continue;
        constexpr std::int64_t aligned = 16;
        const std::int64_t bytes =
            ceil_div(ring_part(program, c) * c.vector_width * bytes_of(v.element), aligned) * aligned;
        rows.kept.push_back({int(i), rows.bytes, bytes});
        rows.bytes += bytes;
        rows.kept_bytes += bytes;
    }
    return rows;
}

bool touches_parts_of_lines(const Program& program, const FuseConfig& c) {
    constexpr int line_bytes = 128;
    int element = line_bytes;
    for (const ProgramValue& v : program.values)
        if (at_own_place(v)) element = std::min(element, bytes_of(v.element));
    return c.threads_per_row < warp_threads && c.vectors_per_thread > 1
           && c.threads_per_row * c.vector_width * element < line_bytes;
}

FuseConfig config_by_element(FuseConfig c, const Program& program) {
    if (c.row_storage != RowStorage::shared) return c;
    c.row_storage = RowStorage::registers;
    c.vector_width = 1;
    c.vectors_per_thread = int(ceil_div(program.columns, std::int64_t(c.threads_per_row)));
    return c;
}

std::int64_t gathered_vectors(const Program& program, const FuseConfig& c) {
    constexpr std::int64_t max_vectors = 512;  // 8 KiB of 16 bytes each
    if (c.row_storage != RowStorage::shared) return 0;
    const std::int64_t rows = warp_threads / c.threads_per_row * c.rows_per_thread;
    const std::int64_t before = rows_off_vectors(program, c.vector_width) ? c.vector_width - 1 : 0;
    const std::int64_t vectors = ceil_div(rows * program.columns + before, c.vector_width);
    return vectors <= max_vectors ? vectors : 0;
}

std::int64_t gathered_bytes(const ExpressionGraph& graph, const Program& program, const FuseConfig& c) {
    std::int64_t bytes = 0;
    for (const ProgramStore& s : program.stores)
        if (s.level == Level::element)
            bytes += bytes_of(graph.nodes[size_t(graph.outputs[size_t(s.output)].node)].element);
    for (const ProgramValue& v : program.values) {
        if (at_own_place(v)) bytes += bytes_of(v.element);
        bytes += shares_masks(v);
    }
    return bytes * c.vector_width * gathered_vectors(program, c) * (c.threads / warp_threads);
}

bool reduces_across_grid(const FuseConfig& c) { return c.grid_reduction && c.cluster > 1; }

bool grid_resident_rows(const FuseConfig& c) {
    return reduces_across_grid(c) && c.row_storage == RowStorage::reload;
}

std::int64_t iterations_of_row(const Program& program, const FuseConfig& c) {
    return ceil_div(max_row_vectors(program, c.vector_width),
                    std::int64_t(c.threads_per_row) * c.vectors_per_thread * c.cluster);
}

bool holds_iterations(const Program& program, const FuseConfig& c) {
    int passes = stores_elements(program);
    for (int pass = 0; pass < program.passes; ++pass)
        passes += std::ranges::any_of(program.values, [&](const ProgramValue& v) {
            return v.kind == ValueKind::reduce && v.pass == pass;
        });
    return grid_resident_rows(c) && passes > 1;
}

int unrolled_iterations(const FuseConfig& c) { return c.vectors_per_thread == 1 ? 4 : 2; }

int rows_gathered(const Program& program, const FuseConfig& c) {
    return grid_resident_rows(c) && c.ctas_per_sm > 1 && program.rows % c.ctas_per_sm == 0 ? c.ctas_per_sm
                                                                                           : 1;
}

std::string_view reduce_scope_of(const FuseConfig& c) {
    if (reduces_across_grid(c) || c.row_splits > 1) return "grid";
    return c.cluster > 1 ? "cluster" : "cta";
}

bool kept_in_ring(const ProgramValue& v, const FuseConfig& c) {
    return c.row_storage == RowStorage::pipelined && c.early_weights && v.kind == ValueKind::load
           && v.level == Level::element && v.access.only_row();
}

bool rows_by_bulk(const Program& program, int vector_width, int alignment) {
    constexpr int unit = 16;  // bytes: of addresses and sizes
    bool any = false;
    for (const ProgramValue& v : program.values) {
        if (!at_own_place(v)) continue;
        any = true;
        // Rows of whole units, or aligned vectors of them.
        if (program.columns * bytes_of(v.element) % unit != 0 && !vectors_by_bulk(v, vector_width))
            return false;
    }
    return any && alignment % unit == 0;
}

bool vectors_by_bulk(const ProgramValue& load, int vector_width) {
    constexpr int unit = 16;  // bytes
    return vector_width * bytes_of(load.element) % unit == 0;
}

bool slots_by_bulk(const Program& program, int vector_width) {
    const std::vector<bool> epilogue = epilogue_operands(program);
    for (size_t i = 0; i < program.values.size(); ++i) {
        const ProgramValue& v = program.values[i];
        if (at_own_place(v) && !epilogue[i] && !vectors_by_bulk(v, vector_width)) return false;
    }
    return true;
}

bool kept_by_bulk(const Program& program, const FuseConfig& c) {
    if (rows_off_vectors(program, c.vector_width)) return false;  // each row lies off them in its own way
    for (const ProgramValue& v : program.values)
        if (kept_in_ring(v, c) && !vectors_by_bulk(v, c.vector_width)) return false;
    return true;
}

std::int64_t ring_part(const Program& program, const FuseConfig& c) {
    return ceil_div(max_row_vectors(program, c.vector_width), c.cluster);
}
std::int64_t ring_chunks(const Program& program, const FuseConfig& c) {
    return ceil_div(ring_part(program, c), std::int64_t(c.vectors_per_thread) * c.threads_per_row);
}

std::vector<int> numbers_of_rows(const Program& program) {
    std::set<int> numbers;
    const auto offer = [&](int i) {
        const ProgramValue& v = program.values[size_t(i)];
        if (v.level == Level::row && v.pass > 0) numbers.insert(i);
    };
    for (const ProgramStore& s : program.stores)
        if (s.level == Level::element) offer(s.value);
    for (const ProgramValue& v : program.values)
        if (v.kind == ValueKind::compute && v.level == Level::element)
            for (int operand : v.operands) offer(operand);
    return {numbers.begin(), numbers.end()};
}

bool reduction_can_specialise(const Program& program, const FuseConfig& c) {
    // Each reducing thread takes as many vectors of a chunk.
    if (c.vectors_per_thread * c.threads_per_row % c.reduction_threads != 0) return false;
    const std::vector<bool> epilogue = epilogue_operands(program);
    for (size_t i = 0; i < program.values.size(); ++i) {
        const ProgramValue& v = program.values[i];
        if (v.kind == ValueKind::reduce && (v.pass > 0 || v.reduction == Reduction::argmax)) return false;
        // What is read for the reduction beside the slots has registers of its own, a chunk ahead.
        if (v.kind == ValueKind::load && v.level == Level::element && !epilogue[i] && !v.access.full()
            && !kept_in_ring(v, c))
            return false;
        // Numbers of the row go over as floats.
        if (v.level == Level::row && v.pass > 0 && v.element != Element::fp32) return false;
    }
    return !numbers_of_rows(program).empty();
}

bool in_whole_iterations(const Program& program, const FuseConfig& c) {
    return program.columns
               % (std::int64_t(c.vector_width) * c.vectors_per_thread * c.threads_per_row * c.cluster)
           == 0;
}

bool schedules_dynamically(const Program& program, const FuseConfig& c) {
    constexpr std::int64_t max_rows = 2147483647;
    return c.row_storage == RowStorage::pipelined && program.rows <= max_rows
           && ring_part(program, c) * (c.cluster - 1) < min_row_vectors(program, c.vector_width);
}

std::int64_t rows_known_ahead(const Program& program, const FuseConfig& c) {
    // Of rows off vectors the shorter ones may have a chunk less.
    const std::int64_t chunks = ring_chunks(program, c) - rows_off_vectors(program, c.vector_width);
    return c.stages / std::max<std::int64_t>(1, chunks) + 2;
}

}  // namespace rooftile
