#include "rooftile/fuse/derivation.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "kernels/expression/row_meaning.hpp"

#include "rooftile/core/warp.hpp"
#include "rooftile/fuse/column_tiles.hpp"
#include "rooftile/fuse/formulas.hpp"
#include "rooftile/fuse/row_vectors.hpp"
#include "rooftile/fuse/staging.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

constexpr double microseconds = 1e6;

class Story {
  public:
    Story(const Machine& machine, const FuseHardware& hw, const ExpressionGraph& graph,
          const Program& program, const FuseCandidate& candidate)
        : d_(machine),
          hw_(hw),
          graph_(graph),
          p_(program),
          c_(candidate.config),
          f_(candidate.flow),
          held_back_(candidate.held_back),
          registers_(candidate.registers),
          shared_(candidate.shared_bytes),
          work_(program_work(graph, program, candidate.config.vector_width,
                             candidate.config.row_storage == RowStorage::shared)),
          bytes_(fused_bytes(graph)) {}

    std::vector<Step> tell(const std::vector<UnfusedOp>& ops, double unfused_seconds) {
        traffic(ops);
        vector_width();
        if (p_.form == FuseForm::row) row();
        if (p_.form == FuseForm::columns) columns();
        flight();
        vectors_per_thread();
        if (c_.row_storage == RowStorage::pipelined) ring();
        else if (shared_ > 0 && p_.form != FuseForm::columns) shared();
        residency();
        if (c_.row_storage == RowStorage::pipelined) ring_grid();
        else if (grid_resident_rows(c_)) resident_grid();
        else if (p_.form == FuseForm::columns) column_grid();
        else grid();
        issue();
        time();
        speedup(ops, unfused_seconds);
        return d_.take();
    }

  private:
    static Input given(std::string name, double value, std::string unit, std::string source) {
        return Derivation::given(std::move(name), value, std::move(unit), std::move(source));
    }

    void traffic(const std::vector<UnfusedOp>& ops) {
        double unfused = 0;
        for (const UnfusedOp& op : ops) unfused += double(op.bytes());
        d_.add(fuse_formula::moved_bytes,
               {given("inputs", double(bytes_.read_bytes), "B", "problem"),
                given("outputs", double(bytes_.written_bytes), "B", "problem")},
               double(bytes_.sum()),
               fmt::format("{} that store{} every intermediate move{} {:.0f} B{}   [M24]",
                           ops.size() == 1 ? "1 kernel" : fmt::format("{} kernels", ops.size()),
                           ops.size() == 1 ? "s" : "", ops.size() == 1 ? "s" : "", unfused,
                           bytes_.sum() > 0
                               ? fmt::format(": {:.3g} times as much", unfused / double(bytes_.sum()))
                               : ""));
    }

    void vector_width() {
        const std::string rows =
            p_.flat ? std::string("everything is one long row")
            : rows_off_vectors(p_, c_.vector_width)
                ? fmt::format("a row has {} elements, begins and ends within vectors", p_.columns)
                : fmt::format("a row has {} elements", p_.columns);
        d_.add(fuse_formula::vector_width,
               {given("element_bytes", work_.narrow_bytes, "B", "problem"),
                given("columns", double(p_.columns), "", "problem")},
               c_.vector_width,
               fmt::format("{}; {} B an access of the narrowest tensor", rows,
                           c_.vector_width * work_.narrow_bytes));
    }

    void row() {
        const double elements = double(c_.vectors_per_thread) * c_.vector_width;
        std::string where;
        if (c_.row_storage == RowStorage::shared)
            where = "shared memory: a warp's rows side by side, however they end, and its threads take elements";
        else if (c_.row_storage == RowStorage::registers)
            where = fmt::format("registers: {} elements a thread, packed, take {:.0f} of {:.0f}", elements,
                                elements * work_.full_bytes / 4, registers_);
        else if (c_.row_storage == RowStorage::pipelined)
            where = fmt::format(
                "chunks in shared memory, {:.0f} B of a CTA, that a producer warp brings row after row while "
                "the "
                "others reduce those that are there",
                shared_);
        else if (grid_resident_rows(c_))
            where =
                "L2: all rows are resident in the grid, so that memory rests for one reduction and not for "
                "one "
                "a "
                "round; each pass begins where the one before it ended";
        else
            where =
                "read again for every pass: no thread can hold its part, or holding it leaves too few loads "
                "in "
                "flight";
        if (reduces_across_grid(c_)) where += fmt::format("; {} CTAs of the grid share the row", c_.cluster);
        else if (c_.cluster > 1) where += fmt::format("; {} CTAs of a cluster share the row", c_.cluster);
        if (c_.row_storage == RowStorage::registers)
            d_.add(fuse_formula::elements_in_registers,
                   {given("columns", double(p_.columns), "", "problem"),
                    given("threads_per_row", c_.threads_per_row, "", "this plan"),
                    given("cluster", c_.cluster, "", "this plan"), d_.fact("sm.max_registers_per_thread")},
                   elements, where);
        else
            d_.add(fuse_formula::elements_in_rounds,
                   {given("vectors_per_thread", c_.vectors_per_thread, "", "this plan"),
                    given("vector_width", c_.vector_width, "elements", "this plan"),
                    d_.fact("sm.max_registers_per_thread")},
                   elements, where);
        const bool ring = c_.row_storage == RowStorage::pipelined;
        d_.add("rows_per_cta",
               c_.rows_per_thread > 1 ? fmt::format("threads x {} rows   [M22]", c_.rows_per_thread)
                                      : std::string(fuse_formula::rows_per_cta.text),
               {given("threads", ring ? c_.threads_per_row : c_.threads, "",
                      ring ? "this plan, without those that load or reduce ahead" : "this plan"),
                given("threads_per_row", c_.threads_per_row, "", "this plan")},
               c_.rows_per_cta(), "rows",
               c_.threads_per_row == 1 ? "a row is reduced by its thread alone"
               : c_.threads_per_row <= warp_threads
                   ? "a row is reduced by shuffles alone"
                   : "a row is reduced by shuffles, then through shared memory");
    }

    /// How the threads of a CTA lie over a tile of columns.
    void columns() {
        const ColumnTiles t = column_tiles(p_, c_);
        std::string why = "neighbours in a row are side by side: a warp reads whole lines";
        if (t.fold > 1)
            why = fmt::format("{} rows are whole vectors, and a CTA has them all: they are as one row of {} elements, of which the "
                              "parts are added at the end",
                              t.fold, t.row);
        if (t.period > 1)
            why = fmt::format("a row is no whole vectors; every {} rows they have the same columns again, so each thread keeps its own; "
                              "one thread more has what is pushed out of the tile",
                              t.period);
        d_.add("threads_per_row", "vectors of a row, in tiles that are alike, of at most threads / threads down   [M22]",
               {given("columns", double(p_.columns), "", "problem"),
                given("vector_width", c_.vector_width, "elements", "this plan"),
                given("threads", c_.threads, "", "this plan"), given("threads_down", t.down, "", "this plan")},
               t.across, "threads", why);
        d_.add("additions", "vectors a thread + turns + CTA + CTAs, one after the other",
               {given("rows", double(p_.rows), "", "problem"), given("threads_down", t.down, "", "this plan"),
                given("vectors_per_thread", c_.vectors_per_thread, "", "this plan"),
                given("row_splits", c_.row_splits, "", "below")},
               column_depth(p_, c_), "",
               fmt::format("at most {:.0f}, on which the reference's bound counts", meaning::column_roundings(double(p_.rows))));
    }

    void column_grid() {
        const ColumnTiles t = column_tiles(p_, c_);
        d_.add("row_splits", "SMs x CTAs an SM / tiles, at least 1, at most turns of the threads down the rows   [M20]",
               {given("tiles", double(t.tiles), "", "columns / a tile's, rounded up"), d_.fact("sm.count"),
                given("ctas_per_sm", c_.ctas_per_sm, "", "this plan"), d_.fact("l2.latency")},
               c_.row_splits, "CTAs",
               c_.row_splits == 1 ? "a CTA has all rows of its columns: nothing goes through the workspace"
                                  : unless_unknown(f_.waves, "share the rows of a tile, so that {:.3g} waves keep enough in flight; each leaves its sums in the "
                                                "workspace, the last of them adds all, in a fixed order",
                                                f_.waves));
        d_.add("grid", "tiles x row_splits",
               {given("tiles", double(t.tiles), "", "above"), given("row_splits", c_.row_splits, "", "above")},
               double(c_.grid), "CTAs", unless_unknown(f_.waves, "{:.3g} waves of resident CTAs hold the work   [M29]", f_.waves));
    }

    void flight() {
        d_.add(
            fuse_formula::bytes_in_flight_needed,
            {given("round", f_.round_cycles, "cycles",
                   "this plan: DRAM's and L2's latency, and what else it waits for"),
             given(
                 "rate", rate(), "B/cycle",
                 grid_resident_rows(c_) ? "what DRAM reads, of an SM" : "bytes read / DRAM's time, of an SM"),
             d_.fact("dram.latency"), d_.fact("l2.latency"), d_.fact("clock.boost"),
             d_.fact("dram.sustained_copy"), d_.fact(hw_.read_key), d_.fact("sm.count")},
            f_.bytes_in_flight_needed,
            "by Little's law: what a CTA takes besides DRAM's queue, its share of the issue slots among it");
    }

    /// Bytes that come into an SM a cycle.
    double rate() const {
        if (grid_resident_rows(c_)) return hw_.read_bandwidth / hw_.clock_hz / std::min(f_.ctas, hw_.sms);
        const double sms = c_.row_storage == RowStorage::pipelined ? f_.ctas / c_.ctas_per_sm : hw_.sms;
        return double(bytes_.read_bytes) / (f_.time.dram * hw_.clock_hz * sms);
    }

    std::string enough_in_flight() const {
        if (std::isnan(f_.bytes_in_flight_needed)) return "what is needed is unknown";
        if (!(f_.bytes_in_flight_needed > 0)) return "nothing is read";
        if (f_.bytes_in_flight >= f_.bytes_in_flight_needed)
            return fmt::format("{:.3g} times what is needed", f_.bytes_in_flight / f_.bytes_in_flight_needed);
        return fmt::format("{:.0f} % of what is needed: latency shows",
                           100 * f_.bytes_in_flight / f_.bytes_in_flight_needed);
    }

    void vectors_per_thread() {
        if (c_.row_storage == RowStorage::pipelined) return ring_vectors_per_thread();
        const bool grid_resident = grid_resident_rows(c_);
        std::vector<Input> inputs = {
            given("ctas_per_sm", grid_resident ? f_.resident : std::min(f_.resident, f_.ctas / hw_.sms), "",
                  "resident, as compiled"),
            given("threads", c_.threads, "", "this plan"),
            given("vectors_per_thread", c_.vectors_per_thread, "", "this plan"),
            given("vector_width", c_.vector_width, "elements", "this plan"),
            given("element_bytes", grid_resident ? slot_bytes(p_) : work_.full_bytes, "B", "problem")};
        if (grid_resident)
            inputs.push_back(given("unrolled_iterations", unrolled_iterations(c_), "", "this plan"));
        d_.add("bytes_in_flight",
               grid_resident
                   ? std::string("CTAs an SM x threads x vectors_per_thread x vector_width x unrolled iterations x bytes of the tensors that every pass "
                                 "reads   [M20]")
                   : std::string(fuse_formula::bytes_in_flight.text),
               std::move(inputs), f_.bytes_in_flight, "B", enough_in_flight());
    }

    void ring_vectors_per_thread() {
        const double chunk = double(c_.threads_per_row) * c_.vectors_per_thread * c_.vector_width;
        const double slots = c_.ctas_per_sm * c_.stages * chunk * slot_bytes(p_);
        const double epilogue = c_.ctas_per_sm * chunk * (work_.full_bytes - slot_bytes(p_));
        d_.add("bytes_in_flight",
               "the least of what slots hold and what comes before a chunk is wanted, + epilogue   [M20]",
               {given("slots", slots, "B", "ctas_per_sm x stages x chunk, below"),
                given("ahead", std::min(slots, f_.bytes_in_flight - epilogue), "B",
                      "from its slot's return on, at the rate above"),
                given("epilogue", epilogue, "B",
                      epilogue > 0 ? "ctas_per_sm x epilogue_bytes, below" : "no epilogue operands")},
               f_.bytes_in_flight, "B", enough_in_flight());
    }

    void shared() {
        if (grid_resident_rows(c_)) {
            d_.add("shared_bytes",
                   "iterations held x threads x vectors_per_thread x vector_width x bytes of the tensors "
                   "that every "
                   "pass reads   [M21]",
                   {given("iterations_held", c_.stages, "", "below"),
                    given("threads", c_.threads, "", "this plan"),
                    given("vectors_per_thread", c_.vectors_per_thread, "", "this plan"),
                    given("vector_width", c_.vector_width, "elements", "this plan"),
                    given("element_bytes", slot_bytes(p_), "B", "problem"), d_.fact("shared.per_cta")},
                   shared_, "B", "of a CTA, for the iterations that wait there");
            return;
        }
        const auto vectors = double(gathered_vectors(p_, c_)), warps = double(c_.threads) / warp_threads;
        d_.add("shared_bytes", "warps x vectors x vector_width x bytes of the full tensors, of results and of masks   [M21]",
               {given("warps", warps, "", "threads of this plan / 32"),
                given("vectors", vectors, "", "that a warp's rows touch together, wherever they begin"),
                given("vector_width", c_.vector_width, "elements", "this plan"),
                given("element_bytes", double(gathered_bytes(graph_, p_, c_)) / (warps * vectors * c_.vector_width), "B",
                      "problem"),
                d_.fact("shared.per_cta")},
               shared_, "B", "of a CTA, for the rows that wait there");
    }

    /// How a row is cut: cluster, chunk and slots.
    void ring() {
        const auto kept = double(staged_rows(p_, c_).kept_bytes);
        const double chunk = (shared_ - kept) / c_.stages,
                     part = double(ring_part(p_, c_)) * c_.vector_width * slot_bytes(p_);
        const auto chunks = double(ring_chunks(p_, c_));
        d_.add(
            "row_part_bytes", "columns x bytes of the tensors in the slots / cluster, in whole vectors",
            {given("columns", double(p_.columns), "", "problem"),
             given("element_bytes", slot_bytes(p_), "B", "problem"),
             given("cluster", c_.cluster, "", "this plan"), d_.fact("shared.per_cta")},
            part, "B",
            c_.cluster == 1
                ? "a CTA's shared memory holds the row: no other takes part"
                : fmt::format("{} CTAs: what each of them holds leaves slots for the next row{}", c_.cluster,
                              reduces_across_grid(c_) ? "; no cluster, so that every SM has one: "
                                                        "they reduce through device memory"
                                                      : ""));
        d_.add("chunk_bytes",
               "threads_per_row x vectors_per_thread x vector_width x bytes of the tensors in the slots",
               {given("threads_per_row", c_.threads_per_row, "", "this plan"),
                given("vectors_per_thread", c_.vectors_per_thread, "", "this plan"),
                given("vector_width", c_.vector_width, "elements", "this plan"),
                given("element_bytes", slot_bytes(p_), "B", "problem")},
               chunk, "B",
               fmt::format("{:.0f} chunks a row: smaller ones are more barriers, larger ones come late",
                           chunks));
        if (kept > 0)
            d_.add("kept_bytes", "columns x bytes of the tensors that rows share / cluster, in whole vectors",
                   {given("columns", double(p_.columns), "", "problem"),
                    given("element_bytes", work_.shared_bytes, "B", "problem"),
                    given("cluster", c_.cluster, "", "this plan")},
                   kept, "B", "stay in shared memory: rows after the first do not read them again");
        d_.add("stages", "least of (shared memory - kept) / chunk and two rows of chunks   [M21]",
               {given("chunk_bytes", chunk, "B", "above"), given("chunks", chunks, "", "above"),
                given("kept_bytes", kept, "B", kept > 0 ? "above" : "nothing is shared, or it is read again"),
                d_.fact("shared.per_cta")},
               c_.stages, "slots",
               fmt::format("{:.0f} are on their way while the values of a row are reduced",
                           c_.stages - chunks));
        if (c_.reduction_threads > 0)
            d_.add("reduction_threads", "warps of each partition of an SM x partitions",
                   {given("warps", c_.reduction_threads / hw_.issue_lanes, "", "this plan"),
                    d_.fact("sm.partitions")},
                   c_.reduction_threads, "threads",
                   "reduce a row while the others store the one before: no issue slot rests while a row's "
                   "values are reduced");
        if (const double epilogue = work_.full_bytes - slot_bytes(p_); epilogue > 0)
            d_.add("epilogue_bytes",
                   "threads_per_row x vectors_per_thread x vector_width x bytes of what no reduction reads",
                   {given("threads_per_row", c_.threads_per_row, "", "this plan"),
                    given("vectors_per_thread", c_.vectors_per_thread, "", "this plan"),
                    given("vector_width", c_.vector_width, "elements", "this plan"),
                    given("element_bytes", epilogue, "B", "problem")},
                   double(c_.threads_per_row) * c_.vectors_per_thread * c_.vector_width * epilogue, "B",
                   "not in the slots: the threads ask for it a chunk ahead, nothing waits for it before");
    }

    void ring_grid() {
        const double clusters = double(c_.grid) / c_.cluster;
        const double each = double(p_.rows) / clusters;
        d_.add("grid", "resident clusters, no more than rows, x cluster",
               {given("rows", double(p_.rows), "", "problem"), d_.fact("sm.count"),
                given("cluster", c_.cluster, "", "this plan")},
               c_.grid > 0 ? double(c_.grid) : std::nan(""), "CTAs",
               c_.grid == 0 ? "one wave that stays"
               : schedules_dynamically(p_, c_)
                   ? fmt::format("one wave that stays; {:.1f} rows for each of {:.0f}, scheduled dynamically",
                                 each, clusters)
                   : fmt::format("one wave that stays; {:.0f} rows at most for each of {:.0f}",
                                 std::ceil(each), clusters));
    }

    void residency() {
        std::vector<Input> inputs = {given("registers", registers_, "", "estimated for this kernel"),
                                     d_.fact("sm.registers"), d_.fact("sm.max_warps"),
                                     d_.fact("sm.max_ctas")};
        if (shared_ > 0) {
            inputs.push_back(given("shared_bytes", shared_, "B", "a CTA's"));
            inputs.push_back(d_.fact("shared.per_sm"));
        }
        d_.add("ctas_per_sm",
               std::string(c_.row_storage == RowStorage::pipelined
                               ? "as many as are meant to compute in turn; registers, threads and shared memory of an SM hold them   [M6]"
                           : grid_resident_rows(c_)
                               ? "CTAs of all rows / SMs, rounded up; registers, threads and shared memory of an SM hold them   [M6]"
                           : shared_ > 0 ? fuse_formula::ctas_per_sm_shared.text
                                         : fuse_formula::ctas_per_sm.text),
               std::move(inputs), c_.ctas_per_sm, "CTAs",
               fmt::format("{} of {} threads; the compiler likely leaves room for {:.3g}", c_.ctas_per_sm,
                           c_.threads, std::max(f_.resident, double(c_.ctas_per_sm))));
    }

    /// Why all rows can be resident in the grid.
    void resident_grid() {
        d_.add("held_in_l2", "l2.size / what the last pass reads and stores of all rows, at most 1",
               {d_.fact("l2.size"), given("rows", double(p_.rows), "", "problem"),
                given("columns", double(p_.columns), "", "problem"),
                given("element_bytes", work_.full_bytes, "B", "problem"),
                given("written", double(bytes_.written_bytes), "B", "problem")},
               f_.held, "",
               "each line is read by one SM, so both halves of L2 count; the pass goes backwards, and comes "
               "to a line after as much as was after it");
        const auto iterations = double(iterations_of_row(p_, c_));
        d_.add("held_iterations",
               "shared memory of a CTA / bytes that an iteration reads for later passes, at most all "
               "iterations; unless "
               "asked "
               "for, no more than leave L1 room for bytes_in_flight_needed, where what it has is known",
               {given("shared_bytes", shared_, "B", "this plan"),
                given("iterations", iterations, "", "this plan"), d_.fact("l1.unified"),
                d_.fact("shared.carveout_step"),
                given("bytes_in_flight_needed", f_.bytes_in_flight_needed, "B", "this plan")},
               c_.stages, "iterations",
               "what a thread has read once it keeps; the other iterations come again from L2, or from DRAM");
        d_.add("grid", "rows x CTAs a row, no more than SMs x CTAs an SM",
               {given("rows", double(p_.rows), "", "problem"), given("cluster", c_.cluster, "", "this plan"),
                d_.fact("sm.count"), given("ctas_per_sm", c_.ctas_per_sm, "", "this plan")},
               double(c_.grid), "CTAs", "all resident: they wait for one another in device memory");
    }

    void grid() {
        d_.add(
            c_.persistent ? fuse_formula::persistent_grid : fuse_formula::grid,
            {d_.fact("sm.count"), given("ctas_per_sm", c_.ctas_per_sm, "", "this plan")},
            c_.grid > 0 ? double(c_.grid) : std::nan(""),
            unless_unknown(f_.waves, "{:.3g} waves of resident CTAs hold the work   [M29]", f_.waves));
    }

    void issue() {
        const double share = f_.time.issue / f_.time.dram;
        const bool rounds = c_.row_storage == RowStorage::reload || c_.row_storage == RowStorage::pipelined;
        const OpCost& counted = rounds ? work_.online : work_.first;
        const double elements = double(p_.rows) * double(p_.columns);
        const double all = f_.time.issue * hw_.clock_hz * hw_.sms * hw_.issue_lanes / elements;
        d_.add(fuse_formula::issue_time,
               {given("instructions", counted.issue, "", "counted in our device functions"),
                given("beside", all - counted.issue, "",
                      "a thread's start and addresses, shared by its elements; what integers and logic wait "
                      "for their pipe"),
                given("elements", elements, "", "problem"),
                given("issue_lanes", hw_.issue_lanes, "", "32 x sm.partitions"), d_.fact("sm.partitions"),
                d_.fact("sm.count"), d_.fact("clock.boost"),
                given("special_functions", counted.mufu, "", "counted in our device functions"),
                d_.fact("rate.mufu")},
               f_.time.issue * microseconds,
               share < 1 ? fmt::format("{:.0f} % of DRAM's time", 100 * share)
                         : "more than DRAM takes: instructions are the roof");
    }

    void time() {
        const double working = f_.time.seconds - f_.time.launch - f_.ends;
        d_.add(fuse_formula::time_us,
               {given("working", working * microseconds, "us",
                      "DRAM's time and the SMs' own, which overlap in part, in whole waves"),
                given("ends", f_.ends * microseconds, "us",
                      "first CTAs' start, last stores: beside nothing else"),
                given("dram", f_.time.dram * microseconds, "us", "bytes / bandwidth"),
                given("l2", f_.time.l2 * microseconds, "us", "bytes / bandwidth"),
                given("issue", f_.time.issue * microseconds, "us", "above"),
                given("mufu", f_.time.mufu * microseconds, "us", "special functions / rate.mufu"),
                given("launch", f_.time.launch * microseconds, "us", "launch.gap_stream + dram.latency")},
               f_.time.seconds * microseconds,
               fmt::format("bound by {}", name_of(f_.time.bound))
                   + (held_back_ > 1 ? fmt::format("; the model alone says {} us: what a search leaves out lost where it was measured, and is predicted no sooner "
                                                   "than the best that it takes",
                                                   number_text(f_.time.seconds / held_back_ * microseconds))
                                     : std::string()));
    }

    void speedup(const std::vector<UnfusedOp>& ops, double unfused_seconds) {
        d_.add(fuse_formula::speedup,
               {given("unfused", unfused_seconds * microseconds, "us",
                      fmt::format("{} kernels, each max(bytes, instructions) + launch", ops.size())),
                given("fused", f_.time.seconds * microseconds, "us", "above")},
               unfused_seconds / f_.time.seconds, "");
    }

    Derivation d_;
    const FuseHardware& hw_;
    const ExpressionGraph& graph_;
    const Program& p_;
    const FuseConfig& c_;
    const FuseFlow& f_;
    double held_back_;
    double registers_, shared_;
    ProgramWork work_;
    FusedBytes bytes_;
};

}  // namespace

std::vector<Step> fuse_derivation(const Machine& machine, const FuseHardware& hw,
                                  const ExpressionGraph& graph, const Program& program,
                                  const FuseCandidate& candidate, const std::vector<UnfusedOp>& ops,
                                  double unfused_seconds) {
    return Story(machine, hw, graph, program, candidate).tell(ops, unfused_seconds);
}

}  // namespace rooftile
