// How a thread goes over its vectors of a row.
#include "rooftile/fuse/device/rows.hpp"

#include <algorithm>

namespace rooftile {

// Elements of a row that a thread may keep in fp32 from its first pass on: more of them spill.
constexpr int max_widened = 32;

/// Tensors read while a pass runs: what its targets need.
std::vector<int> RowsText::loads_of(const std::vector<int>& targets, const std::set<int>& known) const {
    std::vector<int> out;
    for (int i : w_.values.needed(targets, known))
        if (w_.value(i).kind == ValueKind::load && w_.value(i).level == Level::element) out.push_back(i);
    return out;
}

bool RowsText::in_array(int load) const {
    return reload() || (ring() && !kept(load) && !seldom_) || waits(load);
}

/// In registers from pass to pass, an array of packs.
bool RowsText::waits(int load) const {
    if (reload() || ring()) return false;
    return w_.value(load).access.full() ? held() : c_.early_weights;
}

/// Turns of a thread along its row at which loads through L1 were the faster (docs/facts.md 47).
bool RowsText::long_pass() const {
    constexpr std::int64_t iterations = 4;
    const std::int64_t iteration =
        std::int64_t(c_.threads_per_row) * c_.cluster * c_.vectors_per_thread * c_.vector_width;
    return reload() && p_.columns >= iterations * iteration;
}

/// Rows in registers of which no reduction reads some.
bool RowsText::in_order() const {
    return held() && std::any_of(loads_.begin(), loads_.end(), [&](int i) {
               return epilogue_[size_t(i)] && w_.value(i).access.full();
           });
}

/// Lanes of a warp reduce without a barrier, so nothing keeps weights that are loaded behind the row from being loaded
/// behind its reduction: the compiler saves registers so.
bool RowsText::weights_first() const { return held() && c_.early_weights; }

void RowsText::declare_pack(int depth, int i) {
    w_.line(depth, "{} {}_pack[{}];", pack_type(i), w_.values.base(i), stride_.vectors_per_thread);
}

/// As it is loaded.
std::string RowsText::pack_type(int i) const {
    return fmt::format("{}<{}, vector_width>", beside(i) ? "Beside" : "Pack", w_.type_of_load(i));
}
/// As elements are taken from it.
std::string RowsText::pack_name(int i) const {
    return w_.values.base(i) + (beside(i) ? "_here" : in_array(i) ? "_pack[i]" : "_pack");
}

void RowsText::shift_beside(int depth, const std::vector<int>& loads) {
    for (int i : loads)
        if (beside(i))
            w_.line(depth, "Pack<{0}, vector_width> {1}_here = {1}_pack{2}.shifted({1}_shift);",
                    w_.type_of_load(i), w_.values.base(i), in_array(i) ? "[i]" : "");
}

/// The first vector of row `row` and a plus, in a tensor that may have fewer rows; of an only row nothing.
std::string RowsText::start_of(const Access& access, const std::string& row) const {
    if (access.bands.empty()) return "";
    return fmt::format("static_cast<{}>({}) * vectors + ", w_.index, w_.row_text(access, row));
}

/// Where vector i of an iteration lies: what all of the iteration share, and what is constant.
std::string RowsText::place(const std::string& start, bool clamped) const {
    return start + (clamped ? "at" : fmt::format("first, i * {}", stride_.step));
}

/// A load of the vector `within` a row, by `function`. What is not full lies off the vectors of rows that do.
std::string RowsText::load_text(int i, const std::string& function, const std::string& pack,
                                const NamedRow& row, const std::string& within, const std::string& at) const {
    const Access& access = w_.value(i).access;
    const std::string tensor = "t." + w_.values.input(i);
    if (!off())
        return fmt::format("{}({}, {}, {}{});", function, pack, tensor, start_of(access, row.row), within);
    if (access.plain_rows())
        return fmt::format("{}({}, {}, {}.start + {});", function, pack, tensor, row.span, within);
    return fmt::format("load_beside({}, {}, {} * size.columns, {}, {});", pack, tensor,
                       w_.row_text(access, row.row), row.span, at);
}

/// Where all rows wait in L2, an SM's own part of them nearly fits into L1: nothing else goes there.
std::string RowsText::load_function(const Access& access) const {
    if (grid_resident() && !access.full()) return rows_gathered(p_, c_) > 1 ? "load_again" : "load";
    if (grid_resident()) return storing_ ? "load_streamed" : fmt::format("load_cached{}", w_.read_policy());
    if (!access.full()) return weights_first() ? "load_cached_in_order" : "load_again";
    // Rows that are written as well go through L1 as copies do; of rows that are only read, long passes
    // (docs/facts.md 47, 82).
    const bool cached = touches_parts_of_lines(p_, w_.config) || (held() ? stores_elements(p_) : long_pass());
    const bool ordered = in_order() || weights_first();
    return fmt::format("{}{}{}", cached ? "load_cached" : "load", ordered ? "_in_order" : "",
                       w_.read_policy());
}

void RowsText::load_vector(int depth, int i) {
    const Access& access = w_.value(i).access;
    const std::string pack = w_.values.base(i) + (in_array(i) ? "_pack[i]" : "_pack");
    if (shared() && access.full())
        return w_.line(depth, "{}.element[0] = {};", pack, w_.values.base(i) + "_mine[at]");
    const std::string within = fmt::format("first, i * {}", stride_.step);
    if (access.plain_rows())
        w_.line(depth, "{}({}, t.{}, start + {});", load_function(access), pack, w_.values.input(i), within);
    else
        w_.raw(std::string(size_t(depth) * 4, ' ')
               + load_text(i, load_function(access), pack, {"row"}, within, "at") + "\n");
}

/// The head of a loop over a thread's vectors: where vector i lies.
void RowsText::vectors_head(int depth) {
    if (seldom_) w_.line(0, "#pragma unroll 1");
    else w_.unroll();
    line(depth, "for (int i = 0; i < {}; ++i) {{", stride_.vectors_per_thread);
    // Behind the end of a ring's row threads store its last vector once more: no branch stands between loads.
    const std::string at = fmt::format("first + i * {}", stride_.step);
    line(depth + 1, "const unsigned at = {};", clamped() ? "min(" + at + ", end - 1)" : at);
    if (clamped()) return;
    if (ring() && !whole()) line(depth + 1, "if (at >= end) break;");
    else if (!whole())
        line(depth + 1, "if ({}at >= vectors) break;", guardless() > 0 ? fmt::format("i >= {} && ", guardless()) : "");
}

/// A thread's first vectors, of a row in registers, behind which no row ends.
int RowsText::guardless() const {
    if (!held()) return 0;
    return int(min_row_vectors(p_, c_.vector_width) / c_.threads_per_row);
}

/// Whether a row may begin or end in vector `at` of a thread.
std::string RowsText::cuts() const {
    if (!held()) return "span.cuts(at)";
    const std::int64_t before_end = (min_row_vectors(p_, c_.vector_width) - 1) / c_.threads_per_row;
    return before_end > 1 ? fmt::format("(i == 0 || i >= {}) && span.cuts(at)", before_end) : "span.cuts(at)";
}

/// What rows share, then what the passes wait for.
void RowsText::load_row() {
    if (weights_first()) load_held(false);
    load_held(true);
}

void RowsText::load_held(bool full) {
    std::vector<int> epilogue, mine;
    for (int i : loads_)
        if (waits(i) && w_.value(i).access.full() == full)
            (full && epilogue_[size_t(i)] ? epilogue : mine).push_back(i);
    for (int i : epilogue) declare_pack(body(), i);
    for (int i : mine) declare_pack(body(), i);
    // What no reduction reads is asked for first, all in order: the compiler would rather ask where it is used.
    for (const std::vector<int>& loads : {epilogue, mine}) {
        if (!loads.empty()) each_vector(0, loads, [&](int i) { load_vector(body() + 1, i); });
    }
}

/// The loop over a thread's vectors with what every pass needs; `body_text` fills in the rest.
void RowsText::row_pass(const std::vector<int>& targets, const std::set<int>& known, const PassText& text) {
    const std::vector<int> loads = loads_of(targets, known);
    ++passes_written_;
    if (ring()) ring_pass(loads, text);
    else if (reload()) reread_pass(loads, text);
    else held_pass(loads, text.body);
}

void RowsText::held_pass(const std::vector<int>& loads, const Body& body_text) {
    const int inside = body() + 1;
    vectors_head(0);
    for (int i : loads) {
        const std::string name = w_.values.base(i);
        if (!waits(i)) {
            w_.line(inside, "{} {}_pack;", pack_type(i), name);
            load_vector(inside, i);
        } else if (!beside(i) && bytes_of(w_.value(i).element) < 4 && !held_.insert(i).second
                   && c_.vectors_per_thread * c_.vector_width > max_widened) {
            w_.line(inside, "hold({}_pack[i]);", name);
        }
    }
    body_text(inside, loads);
    line(0, "}}");
}

/// Where all rows are resident in the grid, each pass begins with what the one before it read last: that L2 surely holds.
void RowsText::iterations_head() {
    if (!grid_resident()) {
        w_.line(0, "#pragma unroll 1");  // as many in flight as planned
        line(0, "for (unsigned first = team.lane(); first < vectors; first += step * vectors_per_thread) {{");
        return;
    }
    if (passes_written_ == 1) w_.line(0, "#pragma unroll {}", unrolled_iterations(c_));
    if (passes_written_ % 2 == 0) line(0, "for (unsigned iteration = iterations; iteration-- > 0;) {{");
    else line(0, "for (unsigned iteration = 0; iteration < iterations; ++iteration) {{");
    line(1, "const unsigned first = iteration * iteration_vectors + team.lane();");
}

/// Vectors of an iteration one after the other.
void RowsText::each_vector(int depth, const std::vector<int>& loads, const std::function<void(int)>& text) {
    vectors_head(depth);
    for (int i : loads) text(i);
    line(depth, "}}");
}

/// A thread's own place for vector i of an iteration in shared memory.
std::string RowsText::held_place(int load) const {
    return fmt::format("{}_staged + (iteration * vectors_per_thread + i) * {} + threadIdx.x",
                       w_.values.base(load), c_.threads_per_row);
}

/// What passes read again: as much as there is room for waits in shared memory from the pass on that reads it first.
void RowsText::load_iteration(const std::vector<int>& first, const std::vector<int>& again) {
    if (!first.empty()) each_vector(1, first, [&](int i) { load_vector(body() + 2, i); });
    if (again.empty()) return;
    line(1, "if (iteration < held) {{");
    each_vector(2, again,
                [&](int i) { line(3, "{}_pack[i] = waiting({});", w_.values.base(i), held_place(i)); });
    line(1, "}} else {{");
    each_vector(2, again, [&](int i) { load_vector(body() + 3, i); });
    line(1, "}}");
}

void RowsText::hold_iteration(const std::vector<int>& first) {
    line(1, "if (iteration < held) {{");
    each_vector(2, first, [&](int i) { line(3, "*({}) = {}_pack[i];", held_place(i), w_.values.base(i)); });
    line(1, "}}");
}

void RowsText::reread_pass(const std::vector<int>& loads, const PassText& text) {
    iterations_head();
    for (int i : loads) declare_pack(body() + 1, i);
    std::vector<int> first, again, others;
    for (int i : loads) {
        const bool holds = holds_iterations(p_, c_) && w_.value(i).access.full() && !epilogue_[size_t(i)];
        (!holds ? others : held_.insert(i).second ? first : again).push_back(i);
    }
    load_iteration(first, again);
    if (!others.empty()) each_vector(1, others, [&](int i) { load_vector(body() + 2, i); });
    if (text.before) text.before(1);
    vectors_head(1);
    text.body(body() + 2, loads);
    line(1, "}}");
    if (!first.empty()) hold_iteration(first);
    line(0, "}}");
}

/// Statements for one element inside `for (int k ...)`; the loads' names come first.
std::vector<std::string> RowsText::element(int depth, const std::vector<int>& targets,
                                           const std::vector<int>& loads, std::set<int> known) {
    for (int i : loads) {
        const bool folds = w_.value(i).element == Element::bf16 && c_.vector_width % 2 == 0;
        w_.line(depth, "const {} {} = {}{};", w_.values.is_bool(i) ? "bool" : "float", w_.values.name(i),
                pack_name(i), folds ? ".at(k, size.half_up)" : "[k]");
        known.insert(i);
    }
    std::vector<std::string> results;
    w_.raw(w_.values.statements(targets, known, std::string(size_t(depth) * 4, ' '), "[k]", &results));
    return results;
}

void RowsText::keeps(int depth, const std::vector<int>& targets, const std::set<int>& known) {
    for (int i : w_.values.needed(targets, known)) {
        const ProgramValue& v = w_.value(i);
        if (v.kind != ValueKind::compute || v.op != Op::dropout) continue;
        if (shared() && shares_masks(v)) {
            w_.line(depth, "const bool {}[1] = {{{} != 0}};", w_.values.keep(i), w_.values.keep(i) + "_mine[at]");
            continue;
        }
        if (off() && !v.access.plain_rows()) {
            w_.line(depth, "bool {}[vector_width];", w_.values.keep(i));
            w_.line(depth, "kept_beside({}, {} * size.columns + static_cast<int>(span.column(at)), t.{});",
                    w_.values.keep(i), w_.row_text(v.access, "row"), w_.values.key(i));
            continue;
        }
        const std::string vector = (v.access.plain_rows() ? "start + " : start_of(v.access, "row")) + "at";
        w_.line(depth, "bool {}[vector_width];", w_.values.keep(i));
        w_.line(depth, "kept({}, static_cast<unsigned long long>({}) * vector_width, t.{});",
                w_.values.keep(i), vector, w_.values.key(i));
    }
}

void RowsText::row_results() {
    w_.line(0, "");
    for (int s = 0; s < int(p_.stores.size()); ++s) {
        const int v = p_.stores[size_t(s)].value;
        if (p_.stores[size_t(s)].level == Level::element) continue;
        const std::string value =
            fmt::format("narrowed<{}>({})", w_.type_of_store(s),
                        w_.values.use(v, !w_.values.is_bool(v) && !w_.values.is_index(v)));
        line(0, "if (team.lane() == 0) t.{}[row] = {};", w_.values.output(s), value);
    }
}

void RowsText::result(const std::set<int>& known) {
    std::vector<int> stores, targets;
    for (size_t s = 0; s < p_.stores.size(); ++s)
        if (p_.stores[s].level == Level::element) {
            stores.push_back(int(s));
            targets.push_back(p_.stores[s].value);
        }
    if (stores.empty()) return;
    line(0, "// Result.");
    storing_ = true;
    const Body store = [&](int depth, const std::vector<int>& loads) {
        keeps(depth, targets, known);
        shift_beside(depth, loads);
        for (int s : stores)
            w_.line(depth, "{} {}_values[vector_width];",
                    w_.values.is_bool(p_.stores[size_t(s)].value) ? "bool" : "float", output_name(s));
        w_.unroll();
        w_.line(depth, "for (int k = 0; k < vector_width; ++k) {{");
        const std::vector<std::string> results = element(depth + 1, targets, loads, known);
        for (size_t s = 0; s < stores.size(); ++s)
            w_.line(depth + 1, "{}_values[k] = {};", output_name(stores[s]), results[s]);
        w_.line(depth, "}}");
        for (int s : stores) {
            if (shared()) {
                w_.line(depth, "{} = narrowed<{}>({}_values[0]);", w_.values.output(s) + "_mine[at]",
                        w_.type_of_store(s), output_name(s));
                continue;
            }
            w_.line(depth, "const Pack<{0}, vector_width> {1}_result = packed<{0}>({1}_values);",
                    w_.type_of_store(s), output_name(s));
            if (off())
                w_.line(depth, "if ({}) store_inside(t.{}, start + at, {}_result, span, at);",
                        cuts(), w_.values.output(s), output_name(s));
            w_.line(depth, "{}{}(t.{}, start + {}, {}_result{});", off() ? "else " : "",
                    grid_resident() || !epilogue_rows().empty() ? "store_streamed" : "store",
                    w_.values.output(s), clamped() ? "at" : "first", output_name(s),
                    clamped() ? "" : fmt::format(", i * {}", stride_.step));
        }
    };
    row_pass(targets, known, {store, {}});
}

const std::string& RowsText::output_name(int store) const {
    return w_.plan.problem.outputs[size_t(p_.stores[size_t(store)].output)].name;
}

}  // namespace rooftile
