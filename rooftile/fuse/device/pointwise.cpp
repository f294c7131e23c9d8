#include <algorithm>

#include "rooftile/fuse/device/source_writer.hpp"
#include "rooftile/fuse/row_vectors.hpp"
#include "rooftile/fuse/stacks.hpp"

namespace rooftile {
namespace {

/// Point-wise kernels, and reductions of everything, which read as they do and add up instead of storing.
class PointwiseText {
  public:
    explicit PointwiseText(const FusePlan& plan)
        : w_(plan),
          p_(w_.program),
          flat_(p_.flat),
          off_(rows_off_vectors(p_, w_.config.vector_width)),
          stacked_(stacks(p_, w_.config)) {
        if (off_ && !counts_in_32_bits(p_, 1)) w_.index = "long long";  // elements
        for (int i : w_.values_where([](const ProgramValue& v) { return v.kind == ValueKind::load; }))
            (w_.value(i).level == Level::uniform ? uniform_loads_ : loads_).push_back(i);
        reduces_ = w_.values_where([](const ProgramValue& v) { return v.kind == ValueKind::reduce; });
        std::vector<int> targets;
        for (const Result& r : results()) targets.push_back(r.value);
        for (int i : dropouts_for(targets, {}))
            (w_.value(i).level == Level::uniform ? uniform_dropouts_ : dropouts_).push_back(i);
    }

    std::string text() {
        w_.preamble(story());
        element();
        kernel();
        w_.closing();
        return w_.take();
    }

  private:
    bool whole() const { return p_.form == FuseForm::whole; }

    std::string story() const {
        const FuseConfig& c = w_.config;
        return fmt::format(
            "{}: a thread has {} vector{} of {} elements of every full tensor{} in flight before it uses "
            "the first; {}.",
            whole() ? "A reduction of everything" : "Point-wise", c.vectors_per_thread,
            c.vectors_per_thread == 1 ? "" : "s", c.vector_width, stacked_ ? ", one below the other," : "",
            c.persistent ? "one wave of CTAs goes through all of it" : "a CTA takes one piece");
    }

    /// What element() gives: an output's value, or what a reduction takes.
    struct Result {
        int value;
        std::string name, type;
    };
    std::vector<Result> results() const {
        std::vector<Result> out;
        for (int r : reduces_) out.push_back({w_.value(r).operands[0], w_.values.base(r), "float"});
        if (whole()) return out;
        for (size_t s = 0; s < p_.stores.size(); ++s) {
            const int v = p_.stores[s].value;
            const char* type = w_.values.is_bool(v) ? "bool" : "float";
            const int output = p_.stores[s].output;
            out.push_back({v, w_.plan.problem.outputs[size_t(output)].name, type});
        }
        return out;
    }

    std::vector<int> dropouts_for(const std::vector<int>& targets, const std::set<int>& known) const {
        std::vector<int> out = w_.values.needed(targets, known);
        std::erase_if(out, [&](int i) { return w_.value(i).op != Op::dropout; });
        return out;
    }

    void element() {
        std::string parameters;
        const auto parameter = [&](const std::string& text) {
            parameters += (parameters.empty() ? "" : ", ") + text;
        };
        std::set<int> known;
        for (const auto* list : {&loads_, &uniform_loads_})
            for (int i : *list) {
                parameter(fmt::format("{} {}", w_.values.is_bool(i) ? "bool" : "float", w_.values.name(i)));
                known.insert(i);
            }
        for (const auto* list : {&dropouts_, &uniform_dropouts_})
            for (int i : *list) parameter("bool " + w_.values.keep(i));
        std::vector<int> targets;
        for (const Result& r : results()) {
            parameter(fmt::format("{}& {}_result", r.type, r.name));
            targets.push_back(r.value);
        }
        w_.line(0, "/// One element.");
        w_.line(0, "__device__ inline void element({}) {{", parameters);
        std::vector<std::string> expressions;
        w_.raw(w_.values.statements(targets, known, "    ", "", &expressions));
        for (size_t i = 0; i < targets.size(); ++i)
            w_.line(1, "{}_result = {};", results()[i].name, expressions[i]);
        w_.line(0, "}}\n");
    }

    void kernel() {
        const FuseConfig& c = w_.config;
        w_.kernel_head(fmt::format("{}, {}", c.threads, c.ctas_per_sm));
        w_.line(1, "constexpr int vector_width = {};  // elements of a vector", c.vector_width);
        w_.line(1, "constexpr int vectors_per_thread = {};  // vectors of a tensor in flight",
                c.vectors_per_thread);
        w_.line(1, "constexpr {} threads = {};", w_.index, c.threads);
        w_.line(1, "const {} vectors = size.vectors;", w_.index);
        for (int i : uniform_loads_)
            w_.line(1, "const {} {} = widened(*t.{});", w_.values.is_bool(i) ? "bool" : "float",
                    w_.values.name(i), w_.values.input(i));
        for (int i : uniform_dropouts_) w_.keep_one(1, i, "0");
        for (int r : reduces_) w_.line(1, "{} {};", accumulator(r), w_.values.name(r));
        w_.line(1, "");
        if (c.persistent) {
            w_.line(1,
                    "for ({0} first = blockIdx.x * (threads * vectors_per_thread) + threadIdx.x; first < "
                    "vectors;",
                    w_.index);
            w_.line(1, "     first += gridDim.x * (threads * vectors_per_thread)) {{");
        } else if (stacked_) {
            stack_head();
        } else {
            w_.line(1, "const {0} first = blockIdx.x * (threads * vectors_per_thread) + threadIdx.x;",
                    w_.index);
        }
        for (int i : loads_) {
            if (w_.value(i).access.along_row || off_)
                line(0, "Pack<{}, vector_width> {}_pack{};", w_.type_of_load(i), w_.values.base(i),
                     shared_below(i) ? "" : "[vectors_per_thread]");
            else
                line(0, "{} {}[vectors_per_thread];", w_.values.is_bool(i) ? "bool" : "float",
                     w_.values.name(i));
        }
        load_loop();
        compute_loop();
        if (c.persistent) w_.line(1, "}}");
        if (flat_ && p_.columns % c.vector_width != 0) tail();
        if (whole()) finish();
    }

    int body() const { return w_.config.persistent ? 2 : 1; }
    /// A line of the block that takes one piece.
    template <class... Args>
    void line(int depth, fmt::format_string<Args...> text, Args&&... args) {
        w_.line(body() + depth, text, std::forward<Args>(args)...);
    }
    /// Every CTA's piece is full: no vector lies behind the end.
    bool whole_pieces() const {
        const std::int64_t vectors = vectors_of_all(p_, w_.config.vector_width);
        return vectors > 0 && vectors % (std::int64_t(w_.config.threads) * w_.config.vectors_per_thread) == 0;
    }

    /// The last vector reaches behind the tensors' end.
    bool ends_in_part() const { return off_ && p_.rows * p_.columns % w_.config.vector_width != 0; }

    /// A vector that every row has: of vectors that lie one below the other it is one.
    bool shared_below(int load) const { return stacked_ && w_.value(load).access.only_row(); }
    void stack_head() {
        w_.line(1, "const unsigned place = unsigned(blockIdx.x) * threads + threadIdx.x;");
        w_.line(1,
                "const unsigned stack = size.row_vectors.quotient(place);  // of `vectors_per_thread` rows");
        w_.line(1, "const unsigned column = place - stack * size.row_vectors.divisor;");
        w_.line(1, "const unsigned first = stack * vectors_per_thread * size.row_vectors.divisor + column;");
        if (!whole_pieces()) w_.line(1, "if (first >= vectors) return;");
    }

    std::string accumulator(int r) const {
        return w_.value(r).reduction == Reduction::max ? "Max" : only_for_means(p_, r) ? "SumAndRest" : "Sum";
    }

    /// Where vector i of a thread lies; row and column where one of `values` needs them.
    void place(const std::vector<int>& of) {
        if (stacked_) {
            line(1, "const unsigned at = first + i * size.row_vectors.divisor;");
            if (std::any_of(of.begin(), of.end(), [&](int i) { return needs_row(i); }))
                line(1, "const unsigned row = stack * vectors_per_thread + i;");
            return;
        }
        line(1, "const {} at = first + i * threads;", w_.index);
        if (!whole_pieces()) line(1, "if (at >= vectors) break;");
        bool row = false, column = false;
        for (int i : of) {
            const Access& access = w_.value(i).access;
            row = row || !access.full();
            column = column || (!access.full() && access.along_row);
        }
        if (flat_ || !row || off_) return;
        if (w_.index == "unsigned") line(1, "const unsigned row = size.row_vectors.quotient(at);");
        else line(1, "const long long row = at / size.row_vectors.divisor;");
        if (column) line(1, "const {} column = at - row * size.row_vectors.divisor;", w_.index);
    }

    /// Of vectors below one another: what differs from row to row and has not all of them.
    bool needs_row(int value) const { return !w_.value(value).access.full() && !shared_below(value); }

    /// The vector of a tensor that lies along the row.
    std::string vector_of(const Access& access) const {
        if (flat_ || access.full()) return "at";
        if (access.bands.empty()) return "column";
        return fmt::format("{} * size.row_vectors.divisor + column", w_.row_text(access, "row"));
    }

    void load_loop() {
        w_.unroll();
        line(0, "for (int i = 0; i < vectors_per_thread; ++i) {{");
        place(loads_);
        for (int i : loads_) {
            const Access& access = w_.value(i).access;
            if (shared_below(i) || (off_ && !access.full())) continue;
            if (access.along_row)
                line(1, "{}({}_pack[i], t.{}, {});",
                     !access.full() ? "load_again"
                     : whole()      ? "load"
                                    : fmt::format("load_cached{}", w_.read_policy()),
                     w_.values.base(i), w_.values.input(i), vector_of(access));
            else
                line(1, "{}[i] = widened(t.{}[{}]);", w_.values.name(i), w_.values.input(i),
                     w_.row_text(access, "row"));
        }
        if (off_) load_shared_operands();
        line(0, "}}");
        for (int i : loads_)
            if (shared_below(i))
                line(0, "load_again({}_pack, t.{}, column);", w_.values.base(i), w_.values.input(i));
    }

    /// What rows or columns share lies off the vectors of what has all rows. Mostly a vector lies in one row; else each of its
    /// elements has a place of its own.
    void load_shared_operands() {
        std::vector<int> shared;
        for (int i : loads_)
            if (!w_.value(i).access.full()) shared.push_back(i);
        const auto quotient = [&](const std::string& element) {
            return w_.index == "unsigned" ? fmt::format("size.row_vectors.quotient({})", element)
                                          : fmt::format("{} / size.columns", element);
        };
        const auto row_of = [&](int i, const std::string& row) {
            return w_.row_text(w_.value(i).access, row);
        };
        line(1, "const {} begin = at * vector_width;", w_.index);
        line(1, "const {} row = {};", w_.index, quotient("begin"));
        line(1, "const {0} column = begin - row * static_cast<{0}>(size.columns);", w_.index);
        line(1, "if (column + vector_width <= size.columns) {{");
        for (int i : shared)
            if (w_.value(i).access.along_row)
                line(2, "load_any({}_pack[i], t.{}, {} * size.columns + column);", w_.values.base(i),
                     w_.values.input(i), row_of(i, "row"));
            else
                line(2, "fill({}_pack[i], t.{}[{}]);", w_.values.base(i), w_.values.input(i),
                     row_of(i, "row"));
        line(1, "}} else {{");
        w_.unroll();
        line(2, "for (int k = 0; k < vector_width; ++k) {{");
        line(3, "const {0} own = min(begin + k, static_cast<{0}>(size.rows * size.columns - 1));", w_.index);
        line(3, "const {} own_row = {};", w_.index, quotient("own"));
        for (int i : shared) {
            const std::string from = row_of(i, "own_row");
            line(3, "{}_pack[i].element[k] = t.{}[{}];", w_.values.base(i), w_.values.input(i),
                 w_.value(i).access.along_row
                     ? fmt::format("{} * size.columns + (own - own_row * size.columns)", from)
                     : from);
        }
        line(2, "}}");
        line(1, "}}");
    }

    std::string call(const std::string& loaded_index, const std::string& keep_index,
                     const std::string& result_index, bool packs) const {
        std::string arguments;
        const auto argument = [&](const std::string& text) {
            arguments += (arguments.empty() ? "" : ", ") + text;
        };
        for (int i : loads_) {
            if (!packs) argument(fmt::format("widened(t.{}[{}])", w_.values.input(i), loaded_index));
            else if (w_.value(i).access.along_row || off_)
                argument(w_.values.base(i) + (shared_below(i) ? "_pack[k]" : "_pack[i][k]"));
            else argument(w_.values.name(i) + "[i]");
        }
        for (int i : uniform_loads_) argument(w_.values.name(i));
        for (int i : dropouts_)
            argument(w_.values.keep(i) + (w_.value(i).access.along_row ? keep_index : "[0]"));
        for (int i : uniform_dropouts_) argument(w_.values.keep(i) + "[0]");
        for (const Result& r : results()) argument(fmt::format("{}_values{}", r.name, result_index));
        return "element(" + arguments + ");";
    }

    void compute_loop() {
        w_.unroll();
        line(0, "for (int i = 0; i < vectors_per_thread; ++i) {{");
        place(dropouts_);
        for (int i : dropouts_) {
            if (!w_.value(i).access.along_row) {
                w_.keep_one(body() + 1, i, "row");
                continue;
            }
            line(1, "bool {}[vector_width];", w_.values.keep(i));
            line(1, "kept({}, static_cast<unsigned long long>({}) * vector_width, t.{});", w_.values.keep(i),
                 vector_of(w_.value(i).access), w_.values.key(i));
        }
        for (const Result& r : results()) line(1, "{} {}_values[vector_width];", r.type, r.name);
        w_.unroll();
        line(1, "for (int k = 0; k < vector_width; ++k)");
        line(2, "{}", call("", "[k]", "[k]", true));
        for (int r : reduces_) line(1, "{}.add({}_values, 0);", w_.values.name(r), w_.values.base(r));
        if (!whole())
            for (size_t s = 0; s < p_.stores.size(); ++s) {
                const std::string name = w_.plan.problem.outputs[size_t(p_.stores[s].output)].name;
                const std::string packed =
                    fmt::format("packed<{}>({}_values)", w_.type_of_store(int(s)), name);
                if (ends_in_part())
                    line(1,
                         "if (at + 1 == vectors) store_first(t.{}, at, {}, size.rows * size.columns - at * "
                         "vector_width);",
                         w_.values.output(int(s)), packed);
                line(1, "{}store(t.{}, at, {});", ends_in_part() ? "else " : "", w_.values.output(int(s)),
                     packed);
            }
        line(0, "}}");
    }

    void tail() {
        w_.line(1, "// Elements after the last whole vector.");
        w_.line(1, "const long long rest = size.columns - static_cast<long long>(vectors) * vector_width;");
        w_.line(1, "if (blockIdx.x == 0 && threadIdx.x < rest) {{");
        w_.line(2, "const long long at = size.columns - rest + threadIdx.x;");
        for (int i : dropouts_) {
            w_.line(2, "bool {}[1];", w_.values.keep(i));
            w_.line(2, "kept({}, at, t.{});", w_.values.keep(i), w_.values.key(i));
        }
        for (const Result& r : results()) w_.line(2, "{} {}_values[1];", r.type, r.name);
        w_.line(2, "{}", call("at", "[0]", "[0]", false));
        for (int r : reduces_) w_.line(2, "{}.add({}_values, 0);", w_.values.name(r), w_.values.base(r));
        if (!whole())
            for (size_t s = 0; s < p_.stores.size(); ++s)
                w_.line(2, "t.{}[at] = narrowed<{}>({}_values[0]);", w_.values.output(int(s)),
                        w_.type_of_store(int(s)), w_.plan.problem.outputs[size_t(p_.stores[s].output)].name);
        w_.line(1, "}}");
    }

    void finish() {
        w_.line(1, "");
        w_.line(1, "using WholeTeam = Team<threads, threads>;");
        w_.line(1, "__shared__ WholeTeam::Exchange exchange;");
        w_.line(1, "WholeTeam team(exchange);");
        for (size_t slot = 0; slot < reduces_.size(); ++slot)
            w_.line(1, "leave(size.workspace, {}, team.reduced({}));", slot, w_.values.name(reduces_[slot]));
        w_.line(1, "if (!came_last(size.workspace)) return;");
        std::set<int> known(uniform_loads_.begin(), uniform_loads_.end());
        for (size_t slot = 0; slot < reduces_.size(); ++slot) {
            const int r = reduces_[slot];
            w_.line(1, "{0} = gathered<{1}>(team, size.workspace, {2});", w_.values.name(r), accumulator(r),
                    slot);
            known.insert(r);
        }
        std::vector<int> targets;
        for (const ProgramStore& s : p_.stores) targets.push_back(s.value);
        // The masks that no element needed.
        for (int i : dropouts_for(targets, known))
            if (std::find(uniform_dropouts_.begin(), uniform_dropouts_.end(), i) == uniform_dropouts_.end())
                w_.keep_one(1, i, "0");
        w_.raw(w_.values.statements(targets, known, "    ", "[0]"));
        w_.line(1, "if (threadIdx.x > 0) return;");
        for (size_t s = 0; s < p_.stores.size(); ++s)
            w_.line(1, "*t.{} = narrowed<{}>({});", w_.values.output(int(s)), w_.type_of_store(int(s)),
                    w_.values.use(p_.stores[s].value, !w_.values.is_bool(p_.stores[s].value)));
    }

    SourceWriter w_;
    const Program& p_;
    bool flat_, off_,
        stacked_;  ///< off_: rows begin and end within vectors, which go over them as if they were one row
    std::vector<int> loads_, uniform_loads_, reduces_;
    std::vector<int> dropouts_, uniform_dropouts_;  ///< that elements, or what is added up, need
};

}  // namespace

std::string pointwise_text(const FusePlan& plan) { return PointwiseText(plan).text(); }

}  // namespace rooftile
