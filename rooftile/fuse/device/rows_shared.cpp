// Rows that wait in shared memory: iterations of those that are resident in the grid, or a ring of chunks.
#include <algorithm>

#include "rooftile/fuse/device/rows.hpp"
#include "rooftile/fuse/staging.hpp"

namespace rooftile {
namespace {

// Where the chunk at `from` lies among the vectors of a row that are this CTA's.
constexpr const char* kept_place = "(from - begin) / (stride / chunk)";

}  // namespace

void RowsText::tensors_in_shared() {
    const StagedRows rows = staged_rows(p_, c_);
    w_.line(1, "extern __shared__ __align__(128) unsigned char staged[];  // {} B", rows.bytes);
    for (const StagedRows::Tensor& tensor : rows.tensors)
        w_.line(
            1,
            "auto* const {}_staged = reinterpret_cast<Pack<{}, vector_width>*>(staged + {});  // {} vectors",
            w_.values.base(tensor.load), w_.type_of_load(tensor.load), tensor.offset, rows.vectors);
    for (const StagedRows::Tensor& tensor : rows.kept)
        w_.line(1,
                "auto* const {}_kept = reinterpret_cast<Pack<{}, vector_width>*>(staged + {});  // {} "
                "vectors that "
                "rows share",
                w_.values.base(tensor.load), w_.type_of_load(tensor.load), tensor.offset, ring_part(p_, c_));
}

/// Whether the CTAs of a row take its chunks in turn, so that all they ask for at once lies together: DRAM serves that
/// sooner than a place in each CTA's own part (docs/facts.md 86). Rows that are no whole chunks of all are parted evenly.
bool RowsText::interleaves_chunks() const { return ring() && c_.cluster > 1 && whole(); }

/// The ring, who fills it, and where this CTA's part of a row lies.
void RowsText::open_ring() {
    w_.line(1, "constexpr unsigned chunk = step * vectors_per_thread;  // vectors of a tensor in a slot");
    w_.line(1, "constexpr unsigned part = {};  // vectors of a row that a CTA works on", ring_part(p_, c_));
    if (interleaves_chunks()) {
        w_.line(1, "constexpr unsigned stride = chunk * {};  // the CTAs of a row take its chunks in turn",
                c_.cluster);
        w_.line(1, "const unsigned mine = part, begin = team.part_begin(chunk), end = vectors;");
    } else if (off()) {
        w_.line(1, "constexpr unsigned stride = chunk;  // from chunk to chunk");
        w_.line(1, "const unsigned begin = team.part_begin(part);  // of each row's vectors");
    } else {
        w_.line(1, "constexpr unsigned stride = chunk;  // from chunk to chunk");
        w_.line(1, "const unsigned mine = team.part_size(part, vectors);");
        w_.line(1, "const unsigned begin = team.part_begin(part), end = begin + mine;");
    }
    tensors_in_shared();
    w_.line(1, "using Slots = ChunkRing<{}, step / 32>;", c_.stages);
    w_.line(1, "__shared__ Slots::Barriers barriers;");
    if (dynamic()) {
        w_.line(1, "using Rows = DynamicTileScheduler<{}, {}>;", c_.cluster, rows_known_ahead(p_, c_));
        w_.line(1, "__shared__ Rows::Places schedule;");
    }
    if (specialised()) {
        w_.line(1, "using OfRow = Handover<{}, step / 32>;", numbers_of_rows(p_).size());
        w_.line(1, "__shared__ OfRow::Places places;");
    }
    if (!staged_rows(p_, c_).kept.empty()) {
        w_.line(1, "__shared__ unsigned long long kept_arrived;");
        w_.line(1, "const unsigned kept_barrier = ptx::shared_address(&kept_arrived);");
    }
    w_.line(1, "if (threadIdx.x == 0) {{");
    w_.line(2, "Slots::init(barriers);");
    w_.line(2, "team.init();");
    if (dynamic()) w_.line(2, "Rows::init(schedule);");
    if (specialised()) w_.line(2, "OfRow::init(places);");
    if (!staged_rows(p_, c_).kept.empty()) w_.line(2, "ptx::mbarrier_init(kept_barrier, 1);");
    w_.line(2, "ptx::fence_mbarrier_init();");
    w_.line(1, "}}");
    w_.line(1, "{}();", c_.cluster > 1 ? "ptx::cluster_sync" : "__syncthreads");
    w_.line(1, "Slots slots(barriers, size.columns < 0);  // never: the compiler does not know");
    w_.line(1, "");
    produce();
}

/// The last warp's first thread asks for chunk after chunk, row after row, wherever a slot is free.
void RowsText::produce() {
    const StagedRows rows = staged_rows(p_, c_);
    w_.line(1, "// The producer warp runs ahead of the rest by as many chunks as there are slots.");
    w_.line(1, "const int warp = ptx::warp_uniform(threadIdx.x / 32);");
    w_.line(1, "if (warp == {} / 32) {{", specialised() ? "(reduction_threads + step)" : "step");
    w_.line(2, "if (threadIdx.x % 32 > 0) return;");
    if (dynamic()) {
        w_.line(
            2,
            "Rows rows(schedule, static_cast<unsigned*>(size.workspace), static_cast<unsigned>(size.rows));");
        w_.line(2, "for (; rows.more(); rows.advance()) {{");
        w_.line(3, "const long long row = rows.index();");
        w_.line(3, "rows.ask();");
    } else {
        w_.line(2, "for (long long row = blockIdx.x / {0}; row < size.rows; row += gridDim.x / {0}) {{",
                c_.cluster);
    }
    if (off()) {
        w_.line(3, "const RowSpan<vector_width> span(row, size.columns);");
        w_.line(3, "const unsigned end = begin + team.part_size(part, span.vectors);");
    }
    w_.line(3, "for (unsigned from = begin; from < end; from += stride, slots.next()) {{");
    w_.line(4, "const unsigned count = min(end - from, chunk);");
    w_.line(4, "const unsigned barrier = slots.vacant();");
    if (dynamic()) w_.line(4, "slots.mark(rows.index());");
    w_.line(4, "ptx::mbarrier_arrive_expect(barrier, count * {});  // B of a vector of all tensors",
            rows.vector_bytes());
    for (const StagedRows::Tensor& tensor : rows.tensors)
        w_.line(4, "fetch{}({}_staged + slots.slot() * chunk, t.{}, {} + from, count, barrier);",
                w_.read_policy(), w_.values.base(tensor.load), w_.values.input(tensor.load),
                off() ? "span.start" : "row * vectors");
    w_.line(3, "}}");
    fetch_kept();
    w_.line(2, "}}");
    if (dynamic()) w_.line(2, "slots.end();");
    w_.line(2, "return;");
    w_.line(1, "}}");
    w_.line(1, "");
}

/// What all rows share and nothing keeps: the first last pass would wait for DRAM chunk by chunk.
std::vector<int> RowsText::to_l2() const {
    std::vector<int> out;
    for (int i : loads_) {
        if (w_.value(i).access.only_row() && !kept(i) && by_bulk(i)) out.push_back(i);
    }
    return out;
}

/// Of a ring: rows that only the last pass reads, and that L2 is asked for before it.
std::vector<int> RowsText::epilogue_rows() const {
    std::vector<int> out;
    if (!ring() || ring_chunks(p_, c_) == 1)
        return out;  // spread_epilogue_rows() leaves out each part's first chunk
    for (int i : loads_)
        if (epilogue_[size_t(i)] && w_.value(i).access.full() && by_bulk(i)) out.push_back(i);
    return out;
}

/// The first pass reads nothing from DRAM and stores nothing. Every other chunk of what only the last one
/// reads is asked for meanwhile, else memory would rest where all SMs keep step. Threads of a warp-specialised reduction ask so, too:
/// by the producer, ahead of them, layernorm + residual + dropout + gelu of 8192x16384 took 233 us for 223.
void RowsText::spread_epilogue_rows(int depth) {
    const std::vector<int> mine = epilogue_rows();
    if (mine.empty()) return;
    line(depth, "if (threadIdx.x == 0 && (from - begin) / stride % 2 == 1) {{");
    for (int i : mine)
        line(depth + 1, "bring_to_l2<vector_width>(t.{}, start + from, min(end - from, chunk), 0, 1);",
             w_.values.input(i));
    line(depth, "}}");
}

/// What all rows share comes once, behind the chunks of the first row: no reduction waits for it.
void RowsText::fetch_kept() {
    const StagedRows rows = staged_rows(p_, c_);
    const std::vector<int> epilogue = to_l2();
    if (epilogue.empty() && rows.kept.empty()) return;
    w_.line(3, "if (row >= gridDim.x / {}) continue;  // that all rows share", c_.cluster);
    for (int i : epilogue)
        w_.line(3, "bring_to_l2<vector_width>(t.{}, 0, {}, blockIdx.x, gridDim.x);", w_.values.input(i),
                off() ? "size.columns / vector_width" : "vectors");
    std::int64_t vector_bytes = 0;
    for (const StagedRows::Tensor& tensor : rows.kept)
        vector_bytes += c_.vector_width * bytes_of(w_.value(tensor.load).element);
    if (!rows.kept.empty()) {
        w_.line(3, "ptx::mbarrier_arrive_expect(kept_barrier, mine * {});", vector_bytes);
        w_.line(3, "for (unsigned from = begin; from < end; from += stride) {{");
        for (const StagedRows::Tensor& tensor : rows.kept)
            w_.line(4, "fetch({}_kept + {}, t.{}, from, min(end - from, chunk), kept_barrier);",
                    w_.values.base(tensor.load), kept_place, w_.values.input(tensor.load));
        w_.line(3, "}}");
    }
}

/// The first warps reduce row after row as chunks arrive, ahead of the others, which store: so no SM rests while a
/// row's values are reduced, and both kinds of instructions share the issue slots.
void RowsText::reduce_in_own_warps(std::set<int> known) {
    stride_ = {"threadIdx.x", "reduction_threads", "iterations"};
    nested_ = 1;
    w_.line(1, "OfRow handover(places);");
    w_.line(1, "if (warp < reduction_threads / 32) {{");
    w_.line(
        2,
        "constexpr int iterations = chunk / reduction_threads;  // vectors of a chunk that a thread reduces");
    rows_head();
    row_start(known);
    reductions(known);
    std::string names;
    for (int i : numbers_of_rows(p_)) names += (names.empty() ? "" : ", ") + w_.values.name(i);
    line(0, "if (threadIdx.x == 0) handover.give({{{}}});", names);
    line(-1, "}}");
    line(-1, "return;");
    w_.line(1, "}}");
    w_.line(1, "");
    w_.line(1, "const unsigned lane = threadIdx.x - reduction_threads;  // of those that store");
    stride_ = {"lane", "step", "vectors_per_thread"};
    nested_ = 0;
}

void RowsText::take_handed(std::set<int>& known) {
    const std::vector<int> handed = numbers_of_rows(p_);
    line(0, "float reduced[{}];", handed.size());
    line(0, "handover.take(reduced);");
    for (size_t i = 0; i < handed.size(); ++i) {
        line(0, "const float {} = reduced[{}];", w_.values.name(handed[i]), i);
        power_base(handed[i]);
        known.insert(handed[i]);
    }
    w_.line(0, "");
}

/// What only the last pass reads, and neither a slot nor the rest of shared memory has: every thread asks for
/// it a chunk ahead, over the ends of rows, so that its way passes while values are computed and reduced.
std::vector<int> RowsText::ahead_of_rows() const {
    std::vector<int> out;
    for (int i : loads_)
        if (epilogue_[size_t(i)] && !kept(i)) out.push_back(i);
    return out;
}

/// Whether any of them differs from row to row.
bool RowsText::of_rows(const std::vector<int>& loads) const {
    return std::any_of(loads.begin(), loads.end(), [&](int i) { return !w_.value(i).access.bands.empty(); });
}

void RowsText::open_ahead() {
    const std::vector<int> ahead = ahead_of_rows();
    if (ahead.empty()) return;
    w_.line(1, "// What no reduction reads, a chunk ahead.");
    for (int i : ahead) declare_pack(1, i);
    if (off()) {
        w_.line(1, "const RowSpan<vector_width> first_span(blockIdx.x / {}, size.columns);", c_.cluster);
        w_.line(1, "const unsigned end = begin + team.part_size(part, first_span.vectors);");
    }
    w_.line(1, "if (begin < end && blockIdx.x / {} < size.rows) {{", c_.cluster);
    if (of_rows(ahead)) w_.line(2, "const {} ahead = blockIdx.x / {};  // row", w_.index, c_.cluster);
    w_.line(2, "const unsigned first = begin + {};", stride_.lane);
    load_next(2, ahead, "pack", {"ahead", "first_span"});
    w_.line(1, "}}");
    w_.line(1, "");
}

/// Of each thread its vectors of the chunk at `first`; behind the row's end its last one. L2 is told nothing of them:
/// rows that it was asked for ahead are through with it here, and lose as those that go last (docs/facts.md 88).
void RowsText::load_next(int depth, const std::vector<int>& loads, std::string_view into,
                         const NamedRow& row) {
    w_.unroll();
    w_.line(depth, "for (int i = 0; i < vectors_per_thread; ++i) {{");
    if (!whole()) w_.line(depth + 1, "const unsigned at = min(first + i * step, end - 1);");
    for (int i : loads)
        w_.line(depth + 1, "{}",
                load_text(i, "load", fmt::format("{}_{}[i]", w_.values.base(i), into), row,
                          whole() ? "first, i * step" : "at", "at"));
    w_.line(depth, "}}");
}

/// What this pass takes from its threads' registers, and the next chunk of it.
void RowsText::take_next(const std::vector<int>& loads) {
    w_.unroll();
    line(1, "for (int i = 0; i < vectors_per_thread; ++i) {{");
    for (int i : loads) line(2, "{0}_pack[i] = {0}_next[i];", w_.values.base(i));
    line(1, "}}");
    line(1, "{{");
    // There is nothing to ask for behind the row's end: once more what lies in L2.
    line(2, "const unsigned first = (from + stride < end ? from + stride : begin) + {};", stride_.lane);
    load_next(body() + 2, loads, "next", {"row"});
    line(1, "}}");
}

/// Where the chunk behind this one begins, in this row or the next one of the CTA.
void RowsText::place_ahead(const std::vector<int>& loads) {
    if (loads.empty()) return;
    line(1, "const bool more = from + stride < end;");
    line(1, "const unsigned first_ahead = (more ? from + stride : begin) + {};", stride_.lane);
    if (off() || of_rows(loads))
        line(1, "const {} row_ahead = more ? row : {};", w_.index,
             dynamic() ? "slots.row_behind(row)" : "following");
    if (!off()) return;
    line(1, "const RowSpan<vector_width> span_ahead(row_ahead, size.columns);");
    line(1, "const unsigned end_ahead = begin + team.part_size(part, span_ahead.vectors);");
}

/// Vector i of that chunk, into the registers whose values are used up.
void RowsText::replace(const std::vector<int>& loads) {
    if (loads.empty()) return;
    if (!whole())
        line(2, "const unsigned at_ahead = min(first_ahead + i * step, {} - 1);",
             off() ? "end_ahead" : "end");
    const NamedRow row{of_rows(loads) ? "row_ahead" : "row", "span_ahead"};
    for (int i : loads)
        line(2, "{}",
             load_text(i, "load", w_.values.base(i) + "_pack[i]", row,
                       whole() ? "first_ahead, i * step" : "at_ahead", "at_ahead"));
}

/// Over the row's chunks: the first pass waits for each, the last one gives its slot back.
void RowsText::ring_pass(const std::vector<int>& loads, const PassText& text) {
    const bool first = passes_written_ == 1, last = specialised() ? storing_ : passes_written_ == passes_;
    const std::string cursor = last || specialised() ? "slots" : "here";
    std::vector<int> from_slots, from_kept, ahead, ahead_in_row;
    for (int i : loads) {
        if (kept(i)) from_kept.push_back(i);
        else if (epilogue_[size_t(i)]) ahead.push_back(i);
        else (w_.value(i).access.full() ? from_slots : ahead_in_row).push_back(i);
    }
    if (cursor == "here") line(0, "{}here = slots;", first ? "Slots " : "");
    if (!from_kept.empty()) line(0, "ptx::mbarrier_wait(kept_barrier, 0);");
    if (!ahead_in_row.empty()) {
        for (int i : ahead_in_row)  // every pass uses the same registers
            if (ahead_.insert(i).second)
                line(0, "{} {}_next[vectors_per_thread];", pack_type(i), w_.values.base(i));
        line(0, "if (begin < end) {{");
        line(1, "const unsigned first = begin + {};", stride_.lane);
        load_next(body() + 1, ahead_in_row, "next", {"row"});
        line(0, "}}");
    }
    if ((off() ? !ahead.empty() : of_rows(ahead)) && !dynamic()) {
        line(0, "{0} following = row + gridDim.x / {1} < size.rows ? row + gridDim.x / {1} : row;", w_.index,
             c_.cluster);
        line(0, "ptx::keep(following);  // else it is made again for every chunk");
    }
    line(0, "for (unsigned from = begin; from < end; from += stride, {}.next()) {{", cursor);
    line(1, "const unsigned first = from + {};", stride_.lane);
    for (int i : loads)
        if (in_array(i) && !epilogue_[size_t(i)]) declare_pack(body() + 1, i);
    if (!ahead_in_row.empty()) take_next(ahead_in_row);
    if (first && !last) spread_epilogue_rows(1);
    if (first) line(1, "{}.arrived();", cursor);
    if (last) line(1, "unsigned seen = 0;");
    const std::string within =
        clamped() ? "(at - from)" : fmt::format("{} + i * {}", stride_.lane, stride_.step);
    if (!from_slots.empty() && !seldom_) {
        vectors_head(1);
        for (int i : from_slots) {
            line(2, "{0}_pack[i] = waiting({0}_staged + {1}.slot() * chunk + {2});", w_.values.base(i),
                 cursor, within);
            if (last) line(2, "seen |= words_of({}_pack[i]);", w_.values.base(i));
        }
        line(1, "}}");
    }
    if (last) line(1, "slots.release(seen);");
    place_ahead(ahead);  // a row behind this one may need the slot that was given back
    if (text.before) text.before(1);
    vectors_head(1);
    const auto load_alone = [&](int i, std::string_view place, const std::string& chunk) {
        line(2, "const Pack<{}, vector_width> {}_pack = waiting({}_{} + {} + {});", w_.type_of_load(i),
             w_.values.base(i), w_.values.base(i), place, chunk, within);
    };
    for (int i : from_kept) load_alone(i, "kept", kept_place);
    if (seldom_)
        for (int i : from_slots) load_alone(i, "staged", cursor + ".slot() * chunk");
    text.body(body() + 2, loads);
    replace(ahead);
    line(1, "}}");
    line(0, "}}");
}

}  // namespace rooftile
