#include "rooftile/fuse/search_columns.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>

#include "kernels/expression/row_meaning.hpp"
#include "kernels/fuse/arguments.hpp"
#include "rooftile/core/arithmetic.hpp"
#include "rooftile/fuse/column_tiles.hpp"
#include "rooftile/fuse/registers.hpp"

namespace rooftile {
namespace {

class ColumnSearch : FuseSearchContext {
  public:
    ColumnSearch(const FuseSearchContext& context, FuseSearch& out) : FuseSearchContext(context), out_(out) {}

    void all() {
        for (const int threads : {128, 256, 512, 1024})
            for (int down = 1; down <= threads; down *= 2)
                for (const int vectors_per_thread : {1, 2, 4, 8}) tile(threads, down, vectors_per_thread);
    }

  private:
    void reject(Reason reason) { out_.rejected.add(reason); }

    /// Threads across a row that its vectors ask for, at most `most`, so that tiles are alike; 0: they do not fit.
    int across(int threads, int most, int period) const {
        const std::int64_t width = vector_width, columns = std::max<std::int64_t>(1, program.columns);
        // Rows that a CTA can have together lie together: then no vector is taken twice.
        if (const std::int64_t own = columns * period / width; period > 1 && own <= threads) return own <= most ? int(own) : 0;
        const std::int64_t extra = period > 1, shift = width - width / period;
        if (const std::int64_t own = ceil_div(shift + columns, width); own <= most) return int(own);
        // Of longer ones a tile has whole lines.
        constexpr int line_bytes = 128;
        const std::int64_t line = std::max<std::int64_t>(1, line_bytes / (width * work.narrow_bytes));
        const std::int64_t vectors = ceil_div(columns, width), tiles = ceil_div(vectors, most - extra);
        if (most - extra < line) return 0;
        return int(std::min<std::int64_t>(most, ceil_div(ceil_div(vectors, tiles), line) * line + extra));
    }

    void tile(int most_threads, int down, int vectors_per_thread) {
        const int rows_alike = column_period(program, vector_width);
        FuseConfig c{.form = program.form,
                     .vector_width = vector_width,
                     .vectors_per_thread = vectors_per_thread,
                     .threads_per_row = across(most_threads, most_threads / down, rows_alike)};
        if (c.threads_per_row == 0) return;
        c.threads = c.threads_per_row * down;
        const ColumnTiles t = column_tiles(program, c);
        // Twice as many rows of threads would fit as well, or some would have no row.
        if (2 * c.threads <= most_threads && t.tiles <= 1 && down < t.rows) return;
        if (down % t.period != 0) return;
        if (down * vectors_per_thread >= 2 * std::max<std::int64_t>(t.rows, t.period) && (down > t.period || vectors_per_thread > 1)) return;
        constexpr std::int64_t most = 65535;  // of a grid's second axis
        const std::int64_t turns = ceil_div(std::max<std::int64_t>(1, t.rows), std::int64_t(down) * vectors_per_thread);
        std::set<std::int64_t> splits;
        if (request.reduce_scope == "cta") splits.insert(1);
        if (request.row_splits && *request.row_splits <= turns) splits.insert(*request.row_splits);
        for (int ctas = 1; ctas <= max_known(hw.ctas_per_sm, 1); ++ctas) {
            const double wanted = known_or(whole(hw.sms * ctas / double(std::max<std::int64_t>(1, t.tiles))), 1);
            splits.insert(std::clamp(std::int64_t(wanted), std::int64_t(1), std::min(most, turns)));
            if (ctas * c.threads >= hw.threads_per_sm) break;
        }
        for (const std::int64_t of_rows : splits) {
            c.row_splits = int(of_rows);
            if (as_asked(request, c) && asked(request.stages, c.stages)) offer(c, t);
        }
    }

    void offer(FuseConfig c, const ColumnTiles& t) {
        FuseCandidate candidate;
        candidate.registers = registers_needed(program, c);
        if (c.threads > hw.threads_per_cta) return reject(Reason::threads);
        if (candidate.registers > hw.registers_per_thread
            || candidate.registers * even_threads(hw, c.threads) > hw.registers_per_sm)
            return reject(Reason::registers);
        candidate.shared_bytes = double(column_shared_bytes(program, c));
        constexpr double max_static = 49152 - 16;  // B of a CTA that code may declare
        if (candidate.shared_bytes > max_static) return reject(Reason::shared);
        // The reference counts on it.
        if (column_depth(program, c) > meaning::column_roundings(double(program.rows))) return reject(Reason::instruction);
        double resident = resident_ctas(hw, c, candidate.registers, candidate.shared_bytes);
        if (std::isnan(resident)) resident = 1;
        c.grid = t.tiles * c.row_splits;
        constexpr double max_ctas = 2147483647;
        if (double(t.tiles) > max_ctas) return reject(Reason::threads);
        const double meant = known_or(whole_up(double(c.grid) / hw.sms), resident);
        c.ctas_per_sm = request.ctas_per_sm.value_or(int(std::clamp(meant, 1.0, std::max(1.0, resident))));
        if (c.ctas_per_sm > resident || c.ctas_per_sm < 1) return reject(Reason::registers);
        const double rows = double(c.threads / c.threads_per_row) * c.vectors_per_thread * c.row_splits;
        const double elements = double(program.rows) * double(program.columns);
        const double taken = double(t.tiles) * t.across * vector_width * double(t.rows);
        const ColumnsLaunch l{.vectors_per_thread = double(c.vectors_per_thread),
                              .vector_width = double(vector_width),
                              .threads = double(c.threads),
                              .ctas_per_sm = double(c.ctas_per_sm),
                              .tiles = double(t.tiles),
                              .splits = double(c.row_splits),
                              .turns = whole_up(double(t.rows) / rows),
                              .useful = elements > 0 ? elements / taken : 1,
                              .gather_turns = c.row_splits > 1 ? whole_up(c.row_splits / double(fuse::gathered_splits * column_parts(program, c))) : 0,
                              .partial_bytes = c.row_splits > 1 ? double(column_partial_bytes(program, c)) : 0};
        candidate.launch = l;
        candidate.flow = columns_flow(hw, program, work, bytes, l);
        candidate.config = c;
        // Few columns ask for as many threads whatever a CTA may have.
        if (std::ranges::find(out_.kept, c, &FuseCandidate::config) != out_.kept.end()) return;
        out_.kept.push_back(candidate);
    }

    FuseSearch& out_;
};

}  // namespace

void search_columns(const FuseSearchContext& context, FuseSearch& out) { ColumnSearch(context, out).all(); }

}  // namespace rooftile
