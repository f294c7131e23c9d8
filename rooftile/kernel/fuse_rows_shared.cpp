// Rows that wait in shared memory: one bulk copy of all that a CTA works on, or a ring of chunks.
#include "rooftile/kernel/fuse_rows.hpp"
#include "rooftile/plan/fuse_staging.hpp"

namespace rooftile {

void RowsText::tensors_in_shared() {
    const StagedRows rows = staged_rows(p_, c_);
    w_.line(1, "extern __shared__ __align__(128) unsigned char staged[];  // {} B", rows.bytes);
    for (const StagedRows::Tensor& tensor : rows.tensors)
        w_.line(1, "auto* const {}_staged = reinterpret_cast<Pack<{}, width>*>(staged + {});  // {} vectors",
                w_.values.base(tensor.load), w_.type_of_load(tensor.load), tensor.offset, rows.vectors);
    for (const StagedRows::Tensor& tensor : rows.kept)
        w_.line(1,
                "auto* const {}_kept = reinterpret_cast<Pack<{}, width>*>(staged + {});  // {} vectors that "
                "rows share",
                w_.values.base(tensor.load), w_.type_of_load(tensor.load), tensor.offset, ring_part(p_, c_));
}

/// Room for the CTA's rows in shared memory, and the copies that fill it.
void RowsText::stage() {
    tensors_in_shared();
    const StagedRows rows = staged_rows(p_, c_);
    w_.line(1, "__shared__ unsigned long long arrived;");
    w_.line(1, "const unsigned barrier = ptx::shared_address(&arrived);");
    w_.line(1, "if (threadIdx.x == 0) {{");
    if (c_.cluster > 1) {
        w_.line(2, "const unsigned count = team.rows_here(size.rows) * team.part_size(part, vectors);");
        w_.line(2, "const long long from = blockIdx.x / {} * static_cast<long long>(vectors) + begin;",
                c_.cluster);
    } else {
        w_.line(2, "const unsigned count = team.rows_here(size.rows) * vectors;");
        w_.line(2, "const long long from = static_cast<long long>(blockIdx.x) * RowTeam::rows * vectors;");
    }
    w_.line(2, "expect(barrier, count * {});  // B of a vector of all tensors", rows.vector_bytes());
    for (const StagedRows::Tensor& tensor : rows.tensors)
        w_.line(2, "fetch({}_staged, t.{}, from, count, barrier);", w_.values.base(tensor.load),
                w_.values.input(tensor.load));
    w_.line(1, "}}");
    w_.line(1, "__syncthreads();");
    w_.line(1, "");
}

/// Where a thread's vector lies among the staged ones.
std::string RowsText::staged_place() const {
    if (c_.cluster > 1) return "at - begin";
    if (c_.rows_per_cta() > 1) return fmt::format("threadIdx.x / {} * vectors + at", c_.threads_per_row);
    return "at";
}

/// The ring, who fills it, and where this CTA's part of a row lies.
void RowsText::open_ring() {
    w_.line(1, "constexpr unsigned chunk = step * items;  // vectors of a tensor in a slot");
    w_.line(1, "constexpr unsigned part = {};  // vectors of a row that a CTA works on", ring_part(p_, c_));
    w_.line(1, "const unsigned begin = team.part_begin(part), end = begin + team.part_size(part, vectors);");
    tensors_in_shared();
    w_.line(1, "using Slots = Ring<{}, step / 32>;", c_.stages);
    w_.line(1, "__shared__ Slots::Barriers barriers;");
    if (!staged_rows(p_, c_).kept.empty()) {
        w_.line(1, "__shared__ unsigned long long kept_arrived;");
        w_.line(1, "const unsigned kept_barrier = ptx::shared_address(&kept_arrived);");
    }
    w_.line(1, "if (threadIdx.x == 0) {{");
    w_.line(2, "Slots::init(barriers);");
    w_.line(2, "team.init();");
    if (!staged_rows(p_, c_).kept.empty()) w_.line(2, "ptx::mbarrier_init(kept_barrier, 1);");
    w_.line(2, "ptx::fence_mbarrier_init();");
    w_.line(1, "}}");
    const bool far = meets_in_memory(c_);
    w_.line(1, "{}();", c_.cluster > 1 && !far ? "ptx::cluster_sync" : "__syncthreads");
    if (far) w_.line(1, "team.meet_in(size.workspace);");
    w_.line(1, "Slots slots(barriers);");
    w_.line(1, "");
    produce();
}

/// The last warp's first thread asks for chunk after chunk, row after row, wherever a slot is free.
void RowsText::produce() {
    const StagedRows rows = staged_rows(p_, c_);
    w_.line(1, "// The producer warp runs ahead of the rest by as many chunks as there are slots.");
    w_.line(1, "if (threadIdx.x >= step) {{");
    w_.line(2, "if (threadIdx.x > step) return;");
    w_.line(2, "for (long long row = blockIdx.x / {0}; row < size.rows; row += gridDim.x / {0}){1}",
            c_.cluster, rows.kept.empty() && to_l2().empty() ? "" : " {");
    w_.line(3, "for (unsigned from = begin; from < end; from += chunk, slots.next()) {{");
    w_.line(4, "const unsigned count = min(end - from, chunk);");
    w_.line(4, "const unsigned barrier = slots.vacant();");
    w_.line(4, "ptx::mbarrier_arrive_expect(barrier, count * {});  // B of a vector of all tensors",
            rows.vector_bytes());
    for (const StagedRows::Tensor& tensor : rows.tensors)
        w_.line(4, "fetch({}_staged + slots.slot() * chunk, t.{}, row * vectors + from, count, barrier);",
                w_.values.base(tensor.load), w_.values.input(tensor.load));
    w_.line(3, "}}");
    fetch_kept();
    w_.line(2, "return;");
    w_.line(1, "}}");
    w_.line(1, "");
}

/// What all rows share and nothing keeps: the first last walk would wait for DRAM chunk by chunk.
std::vector<int> RowsText::to_l2() const {
    constexpr int unit = 16;  // bytes
    std::vector<int> out;
    for (int i : loads_) {
        const ProgramValue& v = w_.value(i);
        const bool row = !v.access.full() && v.access.along_row && v.access.bands.empty();
        if (row && !kept(i) && c_.width * bytes_of(v.element) % unit == 0) out.push_back(i);
    }
    return out;
}

/// What all rows share comes once, behind the chunks of the first row: no reduction waits for it.
void RowsText::fetch_kept() {
    const StagedRows rows = staged_rows(p_, c_);
    const std::vector<int> late = to_l2();
    if (late.empty() && rows.kept.empty()) return;
    w_.line(3, "if (row >= gridDim.x / {}) continue;  // that all rows share", c_.cluster);
    for (int i : late)
        w_.line(3, "bring_to_l2<width>(t.{}, begin, end - begin, blockIdx.x / {}, gridDim.x / {});",
                w_.values.input(i), c_.cluster, c_.cluster);
    std::int64_t vector_bytes = 0;
    for (const StagedRows::Tensor& tensor : rows.kept)
        vector_bytes += c_.width * bytes_of(w_.value(tensor.load).element);
    if (!rows.kept.empty())
        w_.line(3, "ptx::mbarrier_arrive_expect(kept_barrier, (end - begin) * {});", vector_bytes);
    for (const StagedRows::Tensor& tensor : rows.kept)
        w_.line(3, "fetch({}_kept, t.{}, begin, end - begin, kept_barrier);", w_.values.base(tensor.load),
                w_.values.input(tensor.load));
    w_.line(2, "}}");
}

/// Over the row's chunks: the first walk waits for each, the last one gives its slot back.
void RowsText::walk_ring(const std::vector<int>& loads, const Body& body_text) {
    const bool last = walked_ == walks_;
    const std::string cursor = last ? "slots" : "here";
    std::vector<int> from_slots, from_kept, from_memory;
    for (int i : loads)
        (w_.value(i).access.full() ? from_slots : kept(i) ? from_kept : from_memory).push_back(i);
    if (!last) line(0, "{}here = slots;", walked_ == 1 ? "Slots " : "");
    if (!from_kept.empty()) line(0, "ptx::mbarrier_wait(kept_barrier, 0);");
    const auto load_ahead = [&](int depth, const char* from) {
        line(depth, "const unsigned first = {} + threadIdx.x;", from);
        vectors_head(depth);
        for (int i : from_memory) load_vector(body() + depth + 1, i, "at", "next");
        line(depth, "}}");
    };
    if (!from_memory.empty()) {    // one chunk ahead
        for (int i : from_memory)  // every walk uses the same registers
            if (ahead_.insert(i).second)
                line(0, "Pack<{}, width> {}_next[items];", w_.type_of_load(i), w_.values.base(i));
        line(0, "if (begin < end) {{");
        load_ahead(1, "begin");
        line(0, "}}");
    }
    line(0, "for (unsigned from = begin; from < end; from += chunk, {}.next()) {{", cursor);
    line(1, "const unsigned first = from + threadIdx.x;");
    for (int i : loads)
        if (!kept(i)) declare_pack(body() + 1, i);
    if (!from_memory.empty()) {
        w_.unroll();
        line(1, "for (int i = 0; i < items; ++i) {{");
        for (int i : from_memory) line(2, "{0}_pack[i] = {0}_next[i];", w_.values.base(i));
        line(1, "}}");
        line(1, "if (from + chunk < end) {{");
        load_ahead(2, "from + chunk");
        line(1, "}}");
    }
    if (walked_ == 1) line(1, "{}.arrived();", cursor);
    if (!from_slots.empty()) {
        vectors_head(1);
        for (int i : from_slots)
            line(2, "{0}_pack[i] = waiting({0}_staged + {1}.slot() * chunk + (at - from));",
                 w_.values.base(i), cursor);
        line(1, "}}");
    }
    if (last) line(1, "slots.release();");
    vectors_head(1);
    for (int i : from_kept)
        line(2, "const Pack<{}, width> {}_pack = waiting({}_kept + (at - begin));", w_.type_of_load(i),
             w_.values.base(i), w_.values.base(i));
    body_text(body() + 2, loads);
    line(1, "}}");
    line(0, "}}");
}

}  // namespace rooftile
