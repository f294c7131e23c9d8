#include "rooftile/fuse/device/rows.hpp"

#include <algorithm>

#include "rooftile/fuse/stacks.hpp"
#include "rooftile/fuse/staging.hpp"

namespace rooftile {

RowsText::RowsText(const FusePlan& plan)
    : w_(plan),
      p_(w_.program),
      c_(config_by_element(plan.config, plan.program)),
      vector_width_(plan.config.vector_width),
      epilogue_(epilogue_operands(p_)) {
    if (shared() && !counts_in_32_bits(p_, 1)) w_.index = "long long";
    for (int i : w_.values_where([](const ProgramValue& v) { return v.kind == ValueKind::load; })) {
        const ProgramValue& v = w_.value(i);
        if (v.level == Level::element) loads_.push_back(i);
        else if (v.level == Level::row) row_loads_.push_back(i);
    }
    for (int pass = 0; pass < p_.passes; ++pass) passes_ += !reduces_in(pass).empty();
    passes_ += stores_elements(p_);
}

std::string RowsText::text() {
    w_.preamble(story());
    w_.kernel_head(fmt::format("{}, {}", c_.threads, c_.ctas_per_sm));
    constants();
    std::set<int> known;
    if (ring()) open_ring();
    w_.uniform_values(1, known, all_targets());
    if (specialised()) reduce_in_own_warps(known);
    if (ring()) open_ahead();
    rows_head();
    row(known);
    if (ring() || shared()) line(-1, "}}");
    if (shared() && stores_elements(p_)) store_gathered();
    if (reduces_across_grid(c_)) w_.line(1, "team.part_for_good(size.rows);");
    w_.closing();
    return w_.take();
}

/// Every thread has all its vectors: none lies behind the row's end.
bool RowsText::whole() const {
    if (ring() || reload()) return in_whole_iterations(p_, c_);
    return p_.columns
           == std::int64_t(c_.vector_width) * c_.vectors_per_thread * c_.threads_per_row * c_.cluster;
}

/// Every team of the grid has one row, and none is without: nothing to ask, and a warp's lanes stay together.
bool RowsText::full_teams() const {
    if (ring() || p_.rows == 0) return false;
    return p_.rows % c_.rows_per_cta() == 0;
}

std::string RowsText::story() const {
    const std::string who =
        c_.threads_per_row < 32    ? fmt::format("{} threads share a row", c_.threads_per_row)
        : c_.threads_per_row == 32 ? std::string("A warp works on a row")
        : reduces_across_grid(c_)  ? fmt::format("{} CTAs of the grid work on a row", c_.cluster)
        : c_.cluster > 1           ? fmt::format("A cluster of {} CTAs works on a row", c_.cluster)
                                   : std::string("A CTA works on a row");
    if (shared())
        return fmt::format(
            "A warp brings {} rows into shared memory, {} elements at once; {} thread{} a row take its elements.",
            rows_of_warp(), vector_width_, c_.threads_per_row, c_.threads_per_row == 1 ? "" : "s of");
    const std::string where =
        held()                     ? "which waits in registers between its passes"
        : ring()                   ? "whose chunks a producer warp brings into a ring of slots, row after row"
        : grid_resident()          ? "which is read again for every pass, all rows resident in the grid"
                                   : "which is read again for every pass";
    return fmt::format("{}, {}; a thread has {} vector{} of {} elements at once.", who, where,
                       c_.vectors_per_thread, c_.vectors_per_thread == 1 ? "" : "s", c_.vector_width);
}

std::vector<int> RowsText::all_targets() const {
    std::vector<int> targets;
    for (const ProgramValue& v : p_.values)
        if (v.kind == ValueKind::compute || v.kind == ValueKind::reduce)
            targets.insert(targets.end(), v.operands.begin(), v.operands.end());
    for (const ProgramStore& s : p_.stores) targets.push_back(s.value);
    return targets;
}

std::vector<int> RowsText::reduces_in(int pass) const {
    std::vector<int> out;
    for (size_t i = 0; i < p_.values.size(); ++i)
        if (p_.values[i].kind == ValueKind::reduce && p_.values[i].pass == pass) out.push_back(int(i));
    return out;
}

void RowsText::constants() {
    const int joint = specialised() ? c_.reduction_threads : c_.threads_per_row;
    w_.line(1, "using RowTeam = Team<{}, {}{}{}>;", joint, ring() ? joint : c_.threads,
            c_.cluster > 1 || ring() ? fmt::format(", {}", c_.cluster) : "",
            grid_resident() ? ", false, true" : ring() ? ", true" : "");
    w_.line(1, "constexpr int vector_width = {};  // elements of a vector", c_.vector_width);
    w_.line(1, "constexpr int vectors_per_thread = {};  // vectors of a row that a thread takes at once",
            c_.vectors_per_thread);
    w_.line(1, "constexpr unsigned step = {};  // threads of {}",
            c_.threads_per_row * (reload() ? c_.cluster : 1),
            specialised() ? "a CTA that store" : ring() ? "a CTA that compute" : "a row");
    if (specialised())
        w_.line(1, "constexpr unsigned reduction_threads = {};  // threads of a CTA that reduce",
                c_.reduction_threads);
    w_.line(1, "__shared__ RowTeam::Exchange exchange;");
    if (rows_gathered(p_, c_) > 1)
        w_.line(1, "RowTeam team(exchange, gathered(blockIdx.x, ptx::sms(), {}, {}, gridDim.x));",
                rows_gathered(p_, c_), c_.cluster);
    else w_.line(1, "RowTeam team(exchange);");
    if (!off())
        w_.line(1, "const unsigned vectors = size.{};  // of a row", shared() ? "columns" : "vectors");
    if (ring()) return;
    if (!reload()) w_.line(1, "const unsigned first = team.lane();");
    if (grid_resident()) {
        w_.line(1, "constexpr unsigned iteration_vectors = step * vectors_per_thread;");
        w_.line(1, "constexpr unsigned iterations = {};  // over a row", iterations_of_row(p_, c_));
        if (holds_iterations(p_, c_)) {
            w_.line(1, "constexpr unsigned held = {};  // iterations whose vectors wait in shared memory",
                    c_.stages);
            tensors_in_shared();
        }
        w_.line(1, "team.reduce_in(size.workspace);");
    }
    w_.line(1, "");
}

void RowsText::rows_head() {
    if (dynamic()) {
        line(-1, "while (true) {{");
        line(0, "slots.arrived();  // a row's first chunk");
        line(0, "const {} row = slots.row();", w_.index);
        line(0, "if (row == no_tile) break;");
    } else if (ring()) {
        line(-1, "for ({0} row = blockIdx.x / {1}; row < size.rows; row += gridDim.x / {1}) {{", w_.index,
             c_.cluster);
    } else if (shared()) {
        bring_rows();
        line(0, "constexpr int rows = {};  // of a thread", w_.config.rows_per_thread);
        w_.unroll();
        line(0, "for (int r = 0; r < rows; ++r) {{");
        nested_ = 1;
        line(0, "// Behind the last row that one once more: all lanes stay, to reduce together.");
        line(0, "const {0} row = min(row_of_warp + r * {1} + lane / {2}, static_cast<{0}>(size.rows - 1));", w_.index,
             warp_threads / c_.threads_per_row, c_.threads_per_row);
        take_elements();
    } else if (c_.threads_per_row < warp_threads && !full_teams()) {
        warp_row();
        line(0, "const {0} row = min(team.first_row<{0}>(), static_cast<{0}>(size.rows - 1));", w_.index);
    } else {
        line(0, "const {0} row = team.first_row<{0}>();", w_.index);
        if (!full_teams()) line(0, "if (row >= size.rows) return;");
    }
}

/// A warp's first row.
void RowsText::warp_row() {
    w_.line(1, "const unsigned warp = threadIdx.x / {};", warp_threads);
    w_.line(1, "const {0} row_of_warp = (blockIdx.x * static_cast<{0}>({1}) + warp) * {2};", w_.index,
            c_.threads / warp_threads, rows_of_warp());
    w_.line(1, "if (row_of_warp >= size.rows) return;");
}

/// All vectors of a warp's rows into shared memory, and the masks of their elements.
void RowsText::bring_rows() {
    warp_row();
    const int rows = rows_of_warp(), warps = c_.threads / warp_threads;
    if (p_.rows % rows == 0) w_.line(1, "constexpr unsigned warp_rows = {};", rows);
    else
        w_.line(1, "const unsigned warp_rows = min(static_cast<long long>({}), size.rows - row_of_warp);", rows);
    w_.line(1, "const RowSpan<{}> warp_span(row_of_warp, size.columns, warp_rows);", vector_width_);
    w_.line(1, "constexpr unsigned gathered = {};  // vectors of a warp's rows", gathered_vectors(p_, w_.config));
    std::vector<int> full, masks;
    for (int i : loads_)
        if (w_.value(i).access.full()) full.push_back(i);
    for (size_t i = 0; i < p_.values.size(); ++i)
        if (shares_masks(p_.values[i])) masks.push_back(int(i));
    for (int i : full)
        w_.line(1, "__shared__ Pack<{}, {}> {}_gathered[{}][gathered];", w_.type_of_load(i), vector_width_,
                w_.values.base(i), warps);
    for (int i : masks)
        w_.line(1, "__shared__ Flags<{}> {}_gathered[{}][gathered];", vector_width_,
                w_.values.keep(i), warps);
    for (size_t s = 0; s < p_.stores.size(); ++s)
        if (p_.stores[s].level == Level::element)
            w_.line(1, "__shared__ Pack<{}, {}> {}_gathered[{}][gathered];", w_.type_of_store(int(s)), vector_width_,
                    w_.values.output(int(s)), warps);
    w_.line(1, "constexpr int turns = {};  // vectors that a thread brings", w_.config.vectors_per_thread);
    w_.line(1, "const unsigned lane = threadIdx.x % {};", warp_threads);
    for (int i : full) w_.line(1, "Pack<{}, {}> {}_way[turns];", w_.type_of_load(i), vector_width_, w_.values.base(i));
    const auto each = [&](const std::vector<int>& values, const std::function<void(int)>& text) {
        w_.unroll();
        w_.line(1, "for (int i = 0; i < turns; ++i) {{");
        w_.line(2, "const unsigned at = lane + i * {};", warp_threads);
        w_.line(2, "if (at >= warp_span.vectors) break;");
        for (int i : values) text(i);
        w_.line(1, "}}");
    };
    each(full, [&](int i) {
        w_.line(2, "load_cached{0}({1}_way[i], t.{2}, warp_span.start + at);", w_.read_policy(),
                w_.values.base(i), w_.values.input(i));
    });
    if (!masks.empty())
        each(masks, [&](int i) {
            const std::string keep = w_.values.keep(i);
            w_.line(2, "bool {}[{}];", keep, vector_width_);
            w_.line(2, "kept({}, (warp_span.start + at) * {}, t.{});", keep, vector_width_, w_.values.key(i));
            w_.line(2, "{0}_gathered[warp][at] = flags({0});", keep);
        });
    each(full, [&](int i) { w_.line(2, "{0}_gathered[warp][at] = {0}_way[i];", w_.values.base(i)); });
    w_.line(1, "__syncwarp();");
}

/// Where the thread's row begins in what its warp has of each tensor.
void RowsText::take_elements() {
    line(0, "const unsigned from = (row - row_of_warp) * vectors + warp_span.phase;  // element of the warp's vectors");
    const auto begin = [&](const std::string& type, const std::string& name) {
        line(0, "{0}* const {1}_mine = &{1}_gathered[warp][0].element[0] + from;", type, name);
    };
    for (int i : loads_)
        if (w_.value(i).access.full()) begin("const " + w_.type_of_load(i), w_.values.base(i));
    for (size_t i = 0; i < p_.values.size(); ++i)
        if (shares_masks(p_.values[i])) begin("const unsigned char", w_.values.keep(int(i)));
    for (size_t s = 0; s < p_.stores.size(); ++s)
        if (p_.stores[s].level == Level::element) begin(w_.type_of_store(int(s)), w_.values.output(int(s)));
}

/// Whole lines, by all lanes.
void RowsText::store_gathered() {
    w_.line(1, "__syncwarp();");
    w_.line(1, "for (unsigned at = threadIdx.x % 32; at < warp_span.vectors; at += 32) {{");
    for (size_t s = 0; s < p_.stores.size(); ++s) {
        if (p_.stores[s].level != Level::element) continue;
        const std::string name = w_.values.output(int(s));
        const bool cut = rows_off_vectors(p_, vector_width_);
        if (cut)
            w_.line(2,
                    "if (warp_span.cuts(at)) store_inside(t.{0}, warp_span.start + at, "
                    "{0}_gathered[warp][at], warp_span, at);",
                    name);
        w_.line(2, "{1}store(t.{0}, warp_span.start + at, {0}_gathered[warp][at]);", name,
                cut ? "else " : "");
    }
    w_.line(1, "}}");
}

/// What a row's passes begin with.
void RowsText::row_start(std::set<int>& known) {
    if (off()) {
        line(0, "const RowSpan<vector_width> span(row, size.columns);");
        line(0, "const {} start = span.start;  // its first vector", w_.index);
        line(0, "const unsigned vectors = span.vectors;");
        for (int i : loads_)
            if (beside(i))
                line(0, "const unsigned {}_shift = beside_shift(t.{}, {} * size.columns, span);",
                     w_.values.base(i), w_.values.input(i), w_.row_text(w_.value(i).access, "row"));
        if (ring()) line(0, "const unsigned mine = team.part_size(part, vectors), end = begin + mine;");
    } else {
        line(0, "const {0} start = row * vectors;  // its first vector", w_.index);
    }
    for (int i : row_loads_) {
        line(0, "const {} {} = widened(t.{}[{}]);", w_.values.is_bool(i) ? "bool" : "float",
             w_.values.name(i), w_.values.input(i), w_.row_text(w_.value(i).access, "row"));
        known.insert(i);
    }
    if (!reload() && !ring()) load_row();
    row_values(0, known);
}

void RowsText::reductions(std::set<int>& known) {
    for (int pass = 0; pass < p_.passes; ++pass) {
        const std::vector<int> reduces = reduces_in(pass);
        if (reduces.empty()) continue;
        reduction_pass(pass, reduces, known);
        for (int r : reduces) known.insert(r);
        row_values(pass + 1, known);
    }
    row_results();
}

void RowsText::row(std::set<int> known) {
    row_start(known);
    if (specialised()) take_handed(known);
    else reductions(known);
    result(known);
    if (specialised()) line(0, "handover.release();");
}

/// Values of the row that are known once `pass` reductions are.
void RowsText::row_values(int pass, std::set<int>& known) {
    std::vector<int> targets;
    for (int i : w_.values.needed(all_targets(), known)) {
        const ProgramValue& v = w_.value(i);
        const bool mine = v.kind == ValueKind::part || v.kind == ValueKind::compute;
        if (!mine || v.level != Level::row || v.pass != pass) continue;
        if (v.kind == ValueKind::compute && v.op == Op::dropout) w_.keep_one(body(), i, "row");
        targets.push_back(i);
    }
    w_.raw(w_.values.statements(targets, known, std::string(size_t(body()) * 4, ' '), "[0]"));
    for (int i : targets) power_base(i);
}

/// Once a row what each of its powers takes.
void RowsText::power_base(int i) {
    if (w_.values.is_power_base(i))
        line(0, "const PowerBase {}({});", w_.values.power_base(i), w_.values.name(i));
    else if (w_.values.is_greatest_of_powers(i))
        line(0, "const DifferencePowers {}_powers({});", w_.values.base(i), w_.values.name(i));
}

std::string rows_text(const FusePlan& plan) { return RowsText(plan).text(); }

}  // namespace rooftile
