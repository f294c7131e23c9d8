#include <algorithm>

#include "rooftile/fuse/column_tiles.hpp"
#include "rooftile/fuse/device/source_writer.hpp"

namespace rooftile {
namespace {

/// Reductions of columns. What is reduced is of elements; what follows has columns alone.
class ColumnsText {
  public:
    explicit ColumnsText(const FusePlan& plan) : w_(plan), p_(w_.program), tiles_(column_tiles(p_, w_.config)) {
        reduces_ = w_.values_where([](const ProgramValue& v) { return v.kind == ValueKind::reduce; });
        for (int r : reduces_) reduced_.push_back(w_.value(r).operands[0]);
        for (int i : w_.values.needed(reduced_, {})) {
            const ProgramValue& v = w_.value(i);
            if (v.kind == ValueKind::load) (v.level == Level::uniform ? uniform_loads_ : loads_).push_back(i);
            else if (v.op == Op::dropout) (v.level == Level::uniform ? uniform_dropouts_ : dropouts_).push_back(i);
        }
    }

    std::string text() {
        w_.preamble(story());
        element();
        kernel();
        w_.closing();
        return w_.take();
    }

  private:
    std::string story() const {
        const FuseConfig& c = w_.config;
        std::string out = fmt::format("Reductions of columns: {} threads are across a row, {} down the rows, each with {} vector{} of "
                                      "{} elements of every full tensor in flight",
                                      tiles_.across, tiles_.down, c.vectors_per_thread, c.vectors_per_thread == 1 ? "" : "s",
                                      c.vector_width);
        if (tiles_.fold > 1) out += fmt::format("; {} rows together are whole vectors and are as one", tiles_.fold);
        if (tiles_.period > 1) out += fmt::format("; vectors have the same columns every {} rows", tiles_.period);
        return out + (c.row_splits > 1 ? fmt::format("; {} CTAs share the rows of a tile.", c.row_splits) : ".");
    }

    bool all_rows_alike(int load) const { return w_.value(load).access.only_row() && w_.value(load).level == Level::element; }
    bool along_row(int load) const { return w_.value(load).level == Level::element; }
    std::string type(int value) const { return w_.values.is_bool(value) ? "bool" : "float"; }
    std::string accumulator(int r) const { return w_.value(r).reduction == Reduction::max ? "Max" : "Sum"; }

    /// What is reduced of one element.
    void element() {
        std::string parameters;
        const auto parameter = [&](const std::string& text) { parameters += (parameters.empty() ? "" : ", ") + text; };
        std::set<int> known;
        for (const auto* list : {&loads_, &uniform_loads_})
            for (int i : *list) {
                parameter(type(i) + " " + w_.values.name(i));
                known.insert(i);
            }
        for (const auto* list : {&dropouts_, &uniform_dropouts_})
            for (int i : *list) parameter("bool " + w_.values.keep(i));
        for (int r : reduces_) parameter(fmt::format("float& {}_result", w_.values.base(r)));
        w_.line(0, "/// What is reduced, of one element.");
        w_.line(0, "__device__ inline void element({}) {{", parameters);
        std::vector<std::string> expressions;
        w_.raw(w_.values.statements(reduced_, known, "    ", "", &expressions));
        for (size_t i = 0; i < reduces_.size(); ++i)
            w_.line(1, "{}_result = {};", w_.values.base(reduces_[i]), expressions[i]);
        w_.line(0, "}}\n");
    }

    void kernel() {
        const FuseConfig& c = w_.config;
        w_.kernel_head(fmt::format("{}, {}", c.threads, c.ctas_per_sm));
        w_.line(1, "constexpr int vector_width = {};  // elements of a vector", c.vector_width);
        w_.line(1, "constexpr int vectors_per_thread = {};  // vectors of a tensor in flight, one below the other",
                c.vectors_per_thread);
        w_.line(1, "using Tile = ColumnTile<ColumnLanes{{vector_width, vectors_per_thread, {}, {}, {}, {}}}>;", tiles_.across,
                tiles_.down, tiles_.fold, tiles_.period);
        w_.line(1, "const Tile tile(size);");
        for (int i : uniform_loads_) w_.line(1, "const {} {} = widened(*t.{});", type(i), w_.values.name(i), w_.values.input(i));
        for (int i : uniform_dropouts_) w_.keep_one(1, i, "0");
        for (int i : loads_) {
            if (!all_rows_alike(i)) continue;
            w_.line(1, "Pack<{}, vector_width> {}_pack;  // of all rows", w_.type_of_load(i), w_.values.base(i));
            w_.line(1, "for (int k = 0; k < vector_width; ++k) {}_pack.element[k] = t.{}[tile.column(k)];", w_.values.base(i),
                    w_.values.input(i));
        }
        for (int r : reduces_) w_.line(1, "{} {}[vector_width];", accumulator(r), w_.values.base(r));
        w_.line(1, "");
        turns();
        if (p_.rows % tiles_.fold != 0) rest();
        together();
        follow();
    }

    void turns() {
        w_.line(1, "long long at = tile.first_vector;");
        w_.line(1, "for (long long row = tile.first_row; row < tile.rows; row += tile.rows_a_turn, at += tile.vectors_a_turn) {{");
        for (int i : loads_) {
            if (all_rows_alike(i)) continue;
            if (along_row(i)) w_.line(2, "Pack<{}, vector_width> {}_pack[vectors_per_thread];", w_.type_of_load(i), w_.values.base(i));
            else w_.line(2, "{} {}[vectors_per_thread];", type(i), w_.values.name(i));
        }
        w_.unroll();
        w_.line(2, "for (int i = 0; i < vectors_per_thread; ++i) {{");
        guard();
        for (int i : loads_) {
            const Access& access = w_.value(i).access;
            const std::string own_row = w_.row_text(access, "(row + i * Tile::down)");
            if (all_rows_alike(i)) continue;
            if (!along_row(i)) w_.line(3, "{}[i] = widened(t.{}[{}]);", w_.values.name(i), w_.values.input(i), own_row);
            else if (access.full()) w_.line(3, "load({}_pack[i], t.{}, at + i * tile.vectors_down);", w_.values.base(i), w_.values.input(i));
            else
                w_.line(3, "load_again({}_pack[i], t.{}, ({} * size.columns + tile.column(0)) / vector_width);",
                        w_.values.base(i), w_.values.input(i), own_row);
        }
        w_.line(2, "}}");
        for (int r : reduces_) w_.line(2, "{} {}_turn[vector_width];", accumulator(r), w_.values.base(r));
        w_.unroll();
        w_.line(2, "for (int i = 0; i < vectors_per_thread; ++i) {{");
        guard();
        for (int i : dropouts_) {
            w_.line(3, "bool {}[vector_width];", w_.values.keep(i));
            w_.line(3, "kept({}, static_cast<unsigned long long>(at + i * tile.vectors_down) * vector_width, t.{});",
                    w_.values.keep(i), w_.values.key(i));
        }
        w_.unroll();
        w_.line(3, "for (int k = 0; k < vector_width; ++k) {{");
        add(4, "_turn", [&](int i) {
            if (!along_row(i)) return w_.values.name(i) + "[i]";
            return w_.values.base(i) + (all_rows_alike(i) ? "_pack[k]" : "_pack[i][k]");
        }, "[k]");
        w_.line(3, "}}");
        w_.line(2, "}}");
        // Of a turn first: fewer additions one after the other.
        w_.unroll();
        w_.line(2, "for (int k = 0; k < vector_width; ++k) {{");
        for (int r : reduces_) w_.line(3, "{0}[k].merge({0}_turn[k]);", w_.values.base(r));
        w_.line(2, "}}");
        w_.line(1, "}}");
    }

    void guard() { w_.line(3, "if (row + i * Tile::down >= tile.rows) break;"); }

    /// The values of element k, as `loaded` has them, to the accumulators.
    template <class Loaded>
    void add(int depth, std::string_view to, Loaded loaded, std::string_view kept) {
        std::string arguments;
        const auto argument = [&](const std::string& text) { arguments += (arguments.empty() ? "" : ", ") + text; };
        for (int i : loads_) argument(loaded(i));
        for (int i : uniform_loads_) argument(w_.values.name(i));
        for (int i : dropouts_) argument(fmt::format("{}{}", w_.values.keep(i), kept));
        for (int i : uniform_dropouts_) argument(w_.values.keep(i) + "[0]");
        for (int r : reduces_) {
            w_.line(depth, "float {}_value;", w_.values.base(r));
            argument(w_.values.base(r) + "_value");
        }
        w_.line(depth, "element({});", arguments);
        for (int r : reduces_) w_.line(depth, "{0}{1}[k].merge({{{0}_value}});", w_.values.base(r), to);
    }

    void rest() {
        w_.line(1, "// Elements of the last rows, which are fewer than are taken together.");
        w_.line(1, "long long first;");
        w_.line(1, "const int rest = tile.rest(size, first);");
        w_.unroll();
        w_.line(1, "for (int k = 0; k < vector_width; ++k) {{");
        w_.line(2, "if (k >= rest) break;");
        for (int i : dropouts_) {
            w_.line(2, "bool {}[1];", w_.values.keep(i));
            w_.line(2, "kept({}, first + k, t.{});", w_.values.keep(i), w_.values.key(i));
        }
        add(2, "", [&](int i) {
            if (all_rows_alike(i)) return w_.values.base(i) + "_pack[k]";
            return fmt::format("widened(t.{}[first + k])", w_.values.input(i));
        }, "[0]");
        w_.line(1, "}}");
    }

    /// All threads' columns, of all CTAs.
    void together() {
        w_.line(1, "");
        w_.line(1, "__shared__ float slab[Tile::slab_floats];");
        w_.line(1, "__shared__ float found[{}][Tile::found_floats];", reduces_.size());
        for (size_t slot = 0; slot < reduces_.size(); ++slot)
            w_.line(1, "tile.reduce({}, slab, found[{}]);", w_.values.base(reduces_[slot]), slot);
        if (w_.config.row_splits == 1) return;
        for (size_t slot = 0; slot < reduces_.size(); ++slot)
            w_.line(1, "tile.leave(size.workspace, {0}, found[{0}]);", slot);
        w_.line(1, "if (!tile.came_last(size.workspace)) return;");
        for (size_t slot = 0; slot < reduces_.size(); ++slot)
            w_.line(1, "tile.gather<{1}>(size.workspace, {0}, slab, found[{0}]);", slot, accumulator(reduces_[slot]));
    }

    /// What follows from the reductions, column by column.
    void follow() {
        w_.line(1, "for (int c = threadIdx.x; c < tile.columns; c += Tile::threads) {{");
        w_.line(2, "const long long column = tile.first_column + c;");
        std::set<int> known(uniform_loads_.begin(), uniform_loads_.end());
        for (size_t slot = 0; slot < reduces_.size(); ++slot) {
            const int r = reduces_[slot];
            w_.line(2, "const {} {}{{found[{}][c]}};", accumulator(r), w_.values.name(r), slot);
            known.insert(r);
        }
        std::vector<int> targets;
        for (const ProgramStore& s : p_.stores) targets.push_back(s.value);
        for (int i : w_.values.needed(targets, known)) {
            const ProgramValue& v = w_.value(i);
            const bool uniform = v.level == Level::uniform;
            if (v.kind == ValueKind::load) {
                w_.line(2, "const {} {} = widened(t.{}[{}]);", type(i), w_.values.name(i), w_.values.input(i), uniform ? "0" : "column");
                known.insert(i);
            } else if (v.op == Op::dropout && std::ranges::find(uniform_dropouts_, i) == uniform_dropouts_.end()) {
                w_.line(2, "bool {}[1];", w_.values.keep(i));
                w_.line(2, "kept({}, {}, t.{});", w_.values.keep(i), uniform ? "0" : "column", w_.values.key(i));
            }
        }
        w_.raw(w_.values.statements(targets, known, "        ", "[0]"));
        for (size_t s = 0; s < p_.stores.size(); ++s)
            w_.line(2, "t.{}[column] = narrowed<{}>({});", w_.values.output(int(s)), w_.type_of_store(int(s)),
                    w_.values.use(p_.stores[s].value, !w_.values.is_bool(p_.stores[s].value)));
        w_.line(1, "}}");
    }

    SourceWriter w_;
    const Program& p_;
    ColumnTiles tiles_;
    std::vector<int> reduces_, reduced_;  ///< reductions, and the values that they take
    std::vector<int> loads_, uniform_loads_, dropouts_, uniform_dropouts_;  ///< that those values need
};

}  // namespace

std::string columns_text(const FusePlan& plan) { return ColumnsText(plan).text(); }

}  // namespace rooftile
