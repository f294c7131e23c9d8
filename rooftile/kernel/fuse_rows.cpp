#include "rooftile/kernel/fuse_writer.hpp"
#include "rooftile/plan/fuse_staging.hpp"

namespace rooftile {
namespace {

constexpr std::string_view accumulators[] = {"Sum", "SquareSum", "Max", "ArgMax", "Exponentials", "Moments"};

/// Kernels with reductions along the row.
class RowsText {
  public:
    explicit RowsText(const FusePlan& plan) : w_(plan), p_(w_.program), c_(w_.config) {
        for (int i : w_.values_where([](const ProgramValue& v) { return v.kind == ValueKind::load; })) {
            const ProgramValue& v = w_.value(i);
            if (v.level == Level::element) loads_.push_back(i);
            else if (v.level == Level::row) row_loads_.push_back(i);
        }
    }

    std::string text() {
        w_.preamble(story());
        w_.kernel_head(fmt::format("{}, {}", c_.threads, c_.ctas_per_sm));
        constants();
        std::set<int> known;
        w_.uniform_values(1, known, all_targets());
        if (staged()) stage();
        w_.line(1, "for ({0} row = team.first_row<{0}>(); row < size.rows; row += team.all_rows<{0}>()) {{",
                w_.index);
        row(known);
        if (staged()) {
            w_.line(2, "fetch(row + stages * team.all_rows<{}>(), slot);", w_.index);
            w_.line(2, "slot = slot + 1 == stages ? 0 : slot + 1;");
        }
        w_.line(1, "}}");
        if (c_.cluster > 1) w_.line(1, "if (!met) team.wait();  // a cluster without a row");
        w_.closing();
        return w_.take();
    }

  private:
    bool held() const { return c_.home == FuseHome::registers; }
    bool staged() const { return c_.home == FuseHome::shared; }

    std::string story() const {
        const std::string who =
            c_.threads_per_row < 32    ? fmt::format("{} lanes share a row", c_.threads_per_row)
            : c_.threads_per_row == 32 ? std::string("A warp works on a row")
            : c_.cluster > 1           ? fmt::format("A cluster of {} CTAs works on a row", c_.cluster)
                                       : std::string("A CTA works on a row");
        const std::string where =
            held() ? std::string("which waits in registers between its passes")
            : staged()
                ? fmt::format("which waits in shared memory; {} rows are on their way there", c_.stages - 1)
                : std::string("which is read again for every pass");
        return fmt::format("{}, {}; a thread has {} vector{} of {} elements in flight.", who, where, c_.items,
                           c_.items == 1 ? "" : "s", c_.width);
    }

    std::vector<int> all_targets() const {
        std::vector<int> targets;
        for (size_t i = 0; i < p_.values.size(); ++i)
            if (p_.values[i].kind == ValueKind::compute || p_.values[i].kind == ValueKind::reduce)
                targets.insert(targets.end(), p_.values[i].operands.begin(), p_.values[i].operands.end());
        for (const ProgramStore& s : p_.stores) targets.push_back(s.value);
        return targets;
    }

    void constants() {
        w_.line(1, "using RowTeam = Team<{}, {}{}>;", c_.threads_per_row, c_.threads,
                c_.cluster > 1 ? fmt::format(", {}", c_.cluster) : "");
        w_.line(1, "constexpr int width = {};  // elements of a vector", c_.width);
        w_.line(1, "constexpr int items = {};  // vectors of a row that a thread takes at once", c_.items);
        w_.line(1, "constexpr unsigned step = {};  // threads of a row", c_.threads_per_row * c_.cluster);
        w_.line(1, "__shared__ RowTeam::Exchange exchange;");
        w_.line(1, "RowTeam team(exchange);");
        w_.line(1, "const unsigned vectors = size.vectors;  // of a row");
        if (held() || staged()) w_.line(1, "const unsigned first = team.lane();");
        if (staged())
            w_.line(
                1,
                "constexpr unsigned threads = {};\n    constexpr int stages = {};  // rows in shared memory",
                c_.threads, c_.stages);
        w_.line(1, "team.arrive();");
        if (c_.cluster > 1) w_.line(1, "bool met = false;  // the cluster's CTAs have all begun");
        w_.line(1, "");
    }

    /// Tensors read while `pass` runs: what its targets need.
    std::vector<int> loads_of(const std::vector<int>& targets, const std::set<int>& known) const {
        std::vector<int> out;
        for (int i : w_.values.needed(targets, known))
            if (w_.value(i).kind == ValueKind::load && w_.value(i).level == Level::element) out.push_back(i);
        return out;
    }
    bool waits(int load) const { return held() && (w_.value(load).access.full() || c_.early_weights); }

    std::vector<int> reduces_in(int pass) const {
        std::vector<int> out;
        for (size_t i = 0; i < p_.values.size(); ++i)
            if (p_.values[i].kind == ValueKind::reduce && p_.values[i].pass == pass) out.push_back(int(i));
        return out;
    }

    void declare_pack(int depth, int i) {
        w_.line(depth, "Pack<{}, width> {}_pack[items];", w_.type_of_load(i), w_.values.base(i));
    }
    void load_vector(int depth, int i, const std::string& place) {
        const Access& access = w_.value(i).access;
        std::string from = place;
        if (access.plain_rows()) from = "start + " + place;
        else if (!access.bands.empty())
            from = fmt::format("{}({}) * vectors + {}", w_.index, w_.row_text(access, "row"), place);
        w_.line(depth, "{}({}_pack{}, t.{}, {});", access.full() ? "load" : "load_again", w_.values.base(i),
                staged() ? "" : "[i]", w_.values.input(i), from);
    }

    void row(std::set<int> known) {
        w_.line(2, "const {0} start = row * vectors;  // its first vector", w_.index);
        for (int i : row_loads_) {
            w_.line(2, "const {} {} = widened(t.{}[{}]);", w_.values.is_bool(i) ? "bool" : "float",
                    w_.values.name(i), w_.values.input(i), w_.row_text(w_.value(i).access, "row"));
            known.insert(i);
        }
        if (held()) load_row();
        if (staged()) w_.line(2, "ptx::copy_async_wait<stages - 1>();");
        row_values(0, known);
        for (int pass = 0; pass < p_.passes; ++pass) {
            const std::vector<int> reduces = reduces_in(pass);
            if (reduces.empty()) continue;
            reduction_pass(pass, reduces, known);
            for (int r : reduces) known.insert(r);
            row_values(pass + 1, known);
        }
        result(known);
    }

    void load_row() {
        for (int i : loads_)
            if (waits(i)) declare_pack(2, i);
        w_.unroll();
        w_.line(2, "for (int i = 0; i < items; ++i) {{");
        w_.line(3, "const unsigned at = first + i * step;");
        w_.line(3, "if (at >= vectors) break;");
        for (int i : loads_)
            if (waits(i)) load_vector(3, i, "at");
        w_.line(2, "}}");
    }

    /// Values of the row that are known once `pass` reductions are.
    void row_values(int pass, std::set<int>& known) {
        std::vector<int> targets;
        for (int i : w_.values.needed(all_targets(), known)) {
            const ProgramValue& v = w_.value(i);
            const bool mine = v.kind == ValueKind::part || v.kind == ValueKind::compute;
            if (mine && v.level == Level::row && v.pass == pass) targets.push_back(i);
        }
        w_.raw(w_.values.statements(targets, known, "        ", ""));
    }

    /// Room for the rows in shared memory, and the copies that fill it ahead of time. A thread reads back
    /// only what it copied itself, so it waits for its own copies alone.
    void stage() {
        const StagedRows rows = staged_rows(p_, c_);
        w_.line(1, "extern __shared__ __align__(16) unsigned char staged[];  // {} B", rows.bytes);
        for (const StagedRows::Tensor& tensor : rows.tensors) {
            const std::string name = w_.values.base(tensor.load) + "_staged";
            w_.line(1, "auto* const {} = reinterpret_cast<Pack<{}, width>*>(staged + {});", name,
                    w_.type_of_load(tensor.load), tensor.offset);
            w_.line(1, "static_assert(stages * items * threads * sizeof(*{}) == {});", name, tensor.bytes);
        }
        w_.line(1, "const auto fetch = [&]({} row, int slot) {{", w_.index);
        w_.line(2, "if (row < size.rows) {{");
        w_.unroll();
        w_.line(3, "for (int i = 0; i < items; ++i) {{");
        w_.line(4, "const unsigned at = first + i * step;");
        w_.line(4, "if (at >= vectors) break;");
        w_.line(4, "const unsigned place = (slot * items + i) * threads + threadIdx.x;");
        for (int i : loads_)
            if (w_.value(i).access.full())
                w_.line(4, "load_ahead({}_staged[place], t.{}, row * vectors + at);", w_.values.base(i),
                        w_.values.input(i));
        w_.line(3, "}}");
        w_.line(2, "}}");
        w_.line(2, "ptx::copy_async_commit();");
        w_.line(1, "}};");
        w_.line(1, "for (int slot = 0; slot < stages; ++slot)");
        w_.line(2, "fetch(team.first_row<{0}>() + slot * team.all_rows<{0}>(), slot);", w_.index);
        w_.line(1, "int slot = 0;");
    }

    template <class Body>
    void staged_loop(const std::vector<int>& loads, Body&& body) {
        w_.raw("#pragma unroll 2\n");
        w_.line(2, "for (int i = 0; i < items; ++i) {{");
        w_.line(3, "const unsigned at = first + i * step;");
        w_.line(3, "if (at >= vectors) break;");
        w_.line(3, "const unsigned place = (slot * items + i) * threads + threadIdx.x;");
        for (int i : loads) {
            const std::string pack = fmt::format("Pack<{}, width>", w_.type_of_load(i));
            if (w_.value(i).access.full()) {
                w_.line(3, "const {} {}_pack = {}_staged[place];", pack, w_.values.base(i),
                        w_.values.base(i));
            } else {
                w_.line(3, "{} {}_pack;", pack, w_.values.base(i));
                load_vector(3, i, "at");
            }
        }
        body(3, loads);
        w_.line(2, "}}");
    }

    /// The loop over a thread's vectors with what every pass needs; `body` fills in the rest.
    template <class Body>
    void vectors_loop(const std::vector<int>& targets, const std::set<int>& known, Body&& body) {
        const std::vector<int> loads = loads_of(targets, known);
        if (staged()) return staged_loop(loads, std::forward<Body>(body));
        int depth = 2;
        if (!held()) {
            w_.line(2, "for (unsigned first = team.lane(); first < vectors; first += step * items) {{");
            ++depth;
        }
        bool any = false;
        for (int i : loads)
            if (!waits(i)) {
                declare_pack(depth, i);
                any = true;
            }
        if (any) {
            w_.unroll();
            w_.line(depth, "for (int i = 0; i < items; ++i) {{");
            w_.line(depth + 1, "const unsigned at = first + i * step;");
            w_.line(depth + 1, "if (at >= vectors) break;");
            for (int i : loads)
                if (!waits(i)) load_vector(depth + 1, i, "at");
            w_.line(depth, "}}");
        }
        w_.unroll();
        w_.line(depth, "for (int i = 0; i < items; ++i) {{");
        w_.line(depth + 1, "const unsigned at = first + i * step;");
        w_.line(depth + 1, "if (at >= vectors) break;");
        body(depth + 1, loads);
        w_.line(depth, "}}");
        if (!held()) w_.line(2, "}}");
    }

    /// Statements for one element inside `for (int k ...)`; the loads' names come first.
    std::vector<std::string> element(int depth, const std::vector<int>& targets,
                                     const std::vector<int>& loads, std::set<int> known) {
        for (int i : loads) {
            w_.line(depth, "const {} {} = {}_pack{}[k];", w_.values.is_bool(i) ? "bool" : "float",
                    w_.values.name(i), w_.values.base(i), staged() ? "" : "[i]");
            known.insert(i);
        }
        std::vector<std::string> results;
        w_.raw(w_.values.statements(targets, known, std::string(size_t(depth) * 4, ' '), "[k]", &results));
        return results;
    }

    void keeps(int depth, const std::vector<int>& targets, const std::set<int>& known) {
        for (int i : w_.values.needed(targets, known)) {
            const ProgramValue& v = w_.value(i);
            if (v.kind != ValueKind::compute || v.op != Op::dropout) continue;
            const std::string vector =
                v.access.plain_rows() ? "start + at"
                : v.access.bands.empty()
                    ? std::string("at")
                    : fmt::format("{}({}) * vectors + at", w_.index, w_.row_text(v.access, "row"));
            w_.line(depth, "bool {}[width];", w_.values.keep(i));
            w_.line(depth, "kept({}, static_cast<unsigned long long>({}) * width, t.{});", w_.values.keep(i),
                    vector, w_.values.key(i));
        }
    }

    void reduction_pass(int pass, const std::vector<int>& reduces, const std::set<int>& known) {
        w_.line(2, "");
        w_.line(2, "// Pass {}.", pass + 1);
        std::vector<int> targets;
        for (int r : reduces) {
            targets.push_back(w_.value(r).operands[0]);
            w_.line(2, "{} {};", accumulators[int(w_.value(r).reduction)], w_.values.name(r));
        }
        vectors_loop(targets, known, [&](int depth, const std::vector<int>& loads) {
            keeps(depth, targets, known);
            for (int r : reduces) w_.line(depth, "float {}_terms[width];", w_.values.base(r));
            w_.unroll();
            w_.line(depth, "for (int k = 0; k < width; ++k) {{");
            const std::vector<std::string> terms = element(depth + 1, targets, loads, known);
            for (size_t r = 0; r < reduces.size(); ++r)
                w_.line(depth + 1, "{}_terms[k] = {};", w_.values.base(reduces[r]), terms[r]);
            w_.line(depth, "}}");
            for (int r : reduces)
                w_.line(depth, "{}.add({}_terms, at * width);", w_.values.name(r), w_.values.base(r));
        });
        if (c_.cluster > 1) {
            w_.line(2, "if (!met) team.wait();");
            w_.line(2, "met = true;");
        }
        for (int r : reduces) w_.line(2, "{0} = team.reduced({0});", w_.values.name(r));
    }

    void result(std::set<int>& known) {
        std::vector<int> stores, row_stores, targets;
        for (size_t s = 0; s < p_.stores.size(); ++s) {
            if (p_.stores[s].level == Level::element) {
                stores.push_back(int(s));
                targets.push_back(p_.stores[s].value);
            } else {
                row_stores.push_back(int(s));
            }
        }
        w_.line(2, "");
        for (int s : row_stores) {
            const int v = p_.stores[size_t(s)].value;
            w_.line(2, "if (team.lane() == 0) t.{}[row] = narrowed<{}>({});", w_.values.output(s),
                    w_.type_of_store(s), w_.values.use(v, !w_.values.is_bool(v) && !w_.values.is_index(v)));
        }
        if (stores.empty()) return;
        w_.line(2, "// Result.");
        vectors_loop(targets, known, [&](int depth, const std::vector<int>& loads) {
            keeps(depth, targets, known);
            for (int s : stores)
                w_.line(depth, "{} {}_values[width];",
                        w_.values.is_bool(p_.stores[size_t(s)].value) ? "bool" : "float", output_name(s));
            w_.unroll();
            w_.line(depth, "for (int k = 0; k < width; ++k) {{");
            const std::vector<std::string> results = element(depth + 1, targets, loads, known);
            for (size_t s = 0; s < stores.size(); ++s)
                w_.line(depth + 1, "{}_values[k] = {};", output_name(stores[s]), results[s]);
            w_.line(depth, "}}");
            for (int s : stores)
                w_.line(depth, "store(t.{}, start + at, packed<{}>({}_values));", w_.values.output(s),
                        w_.type_of_store(s), output_name(s));
        });
    }

    const std::string& output_name(int store) const {
        return w_.plan.problem.outputs[size_t(p_.stores[size_t(store)].output)].name;
    }

    FuseWriter w_;
    const Program& p_;
    const FuseConfig& c_;
    std::vector<int> loads_, row_loads_;
};

}  // namespace

std::string rows_text(const FusePlan& plan) { return RowsText(plan).text(); }

}  // namespace rooftile
