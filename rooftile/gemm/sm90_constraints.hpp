// The constraints of the sm90_gemm family. They stand in three rows, by what they depend on: a search takes a row once
// for all candidates that it speaks of.
#pragma once

#include "rooftile/gemm/sm90_space.hpp"

namespace rooftile::sm90 {

/// First row, whatever the cluster and the parts of K. The instruction: 64 rows a wgmma, N in steps of 16 up to
/// 256, or 64 columns and rows in steps of 8 where A and B are swapped, one swizzle span along K; and how sums are promoted.
Constraint instruction_constraint(const GemmCandidate& candidate, const GemmProblem& problem);

/// One candidate that is checked against the second row of constraints, which depend on the parts of K, and the third, which
/// depend on the cluster. Whoever changes either takes it past that row again.
class ConstraintChecker {
    using Config = Sm90GemmConfig;

  public:
    ConstraintChecker(const GemmHardware& hw, const GemmProblem& problem, const TileFigures& figures,
                      const Residency& residency, GemmCandidate& candidate)
        : hw_(hw),
          problem_(problem),
          figures_(figures),
          residency_(residency),
          c_(candidate),
          config_(kernel_config(problem, candidate)) {
        config_.stages = 1;
        c_.tiles = figures.tile.tiles;
        c_.step = figures.tile.step;
        c_.promoting_warpgroups = problem.promoted() ? c_.consumer_warpgroups : 0;
        // Of what is unknown nothing is made known.
        if (problem.promoted()) c_.step.tensor = max_known(c_.step.tensor, promoting_step_cycles(hw, c_));
        c_.accumulators = config_.accumulator_registers();
        c_.threads = config_.threads();
        c_.stage_bytes = config_.stage_bytes();
        c_.stage_overhead = 2 * Config::barrier_bytes + config_.scale_bytes() + (config_.batched ? Config::told_tile_bytes : 0);
        c_.shared_limit = residency.shared_limit;
    }
    /// What stopped it.
    const Constraint& constraint() const { return constraint_; }

    bool second_row_stops(int split_k, int grid_split_k) {
        c_.split_k = config_.split_k = split_k;
        c_.grid_split_k = grid_split_k;
        config_.in_pieces = grid_split_k > 1;
        config_.operand_staged = operand_staged(problem_, c_.k_parts());
        if (problem_.epilogue) config_.epilogue_registers = problem_.epilogue->registers(config_.swap_ab, config_.operand_staged);
        c_.registers = c_.accumulators + config_.working_registers();
        if (parts_stop() || epilogue_tile_stops() || entry_stops()) return true;
        c_.overlapped_epilogue = config_.overlapped_epilogue =
            c_.asked.overlapped.value_or(true) && !bars_overlapped_epilogue(config_)
            && config_.overlapping_registers() <= residency_.registers.for_need(c_.registers).consumer;
        config_.epilogue_tile_n = c_.epilogue_tile_n = store_columns();
        c_.exchange = exchange_cycles(hw_, c_);
        const std::int64_t deep = figures_.tile.k_steps;
        c_.k_steps = c_.k_parts() == 1 ? deep : ceil_div(deep, c_.k_parts());
        c_.reserved_bytes = config_.reserved_bytes() - c_.stage_overhead;  // config was made with one stage
        c_.stages_min =
            std::max(min_stages, static_cast<int>(ceil_div(config_.exchange_bytes(), c_.stage_bytes)));
        c_.turn_overlapped = c_.schedule == Schedule::pingpong;
        c_.epilogue_overlapped = c_.turn_overlapped || c_.overlapped_epilogue;
        c_.by_element = !config_.tma_store;
        c_.by_rows = c_.by_element && !config_.swap_ab && config_.result_bytes() == 2;
        c_.turned = config_.swap_ab;
        c_.store_boxes = config_.tma_store ? config_.epilogue_tiles() * config_.results : 0;
        c_.operand_staged = config_.operand_staged;
        c_.operand_turns = problem_.epilogue ? operand_turns() : 0;
        return false;
    }

    /// Columns of C that one store may take, of the parts of K that the second row saw last; those of swapped operands are one number.
    std::vector<int> store_widths() const {
        if (!config_.tma_store || config_.swap_ab) return {0};
        const int share = config_.stored_n(), odd = config_.sector_columns();
        std::vector<int> widths{config_.swizzled_columns(share)};
        if (config_.adds_up() || config_.result_bytes() != 2) return widths;
        for (int columns = odd; columns <= share; columns += 2 * odd)
            if (share % columns == 0 && columns != widths.front()) widths.push_back(columns);
        return widths;
    }

    bool third_row_stops(const Cluster& cluster) {
        c_.cluster_m = cluster.m;
        c_.cluster_n = cluster.n;
        if (box_stops() || cluster_stops()) return true;
        // A producer that multicasts holds more than the tight one has registers for where K is in parts, or with a batch; so does one that
        // looks for a tile's group, one of a part of K whose operands come in several boxes each, and one of an image beside what comes in
        // several boxes.
        const bool parts = c_.k_parts() > 1, multicasts = c_.cluster_m * c_.cluster_n > 1,
                   boxes = problem_.a_major == Major::mn && problem_.b_major == Major::mn;
        const bool roomy = config_.grouped() || (problem_.image && problem_.b_major == Major::mn) || (multicasts && (parts || config_.batched)) || (parts && boxes);
        const RegisterSplit& split =
            roomy ? residency_.registers.roomy : residency_.registers.for_need(c_.registers);
        c_.producer_registers = split.producer;
        c_.consumer_registers = split.consumer;
        c_.registers_limit = split.consumer > 0  ? split.consumer
                             : split.launch >= 0 ? split.launch
                                                 : std::nan("");
        c_.step.l2 = cluster.l2_cycles;
        c_.step.port = cluster.port_cycles;
        c_.streamed = cluster.streamed_bytes / streaming_rate(hw_, c_.tiles, c_.cluster_m * c_.cluster_n, c_.k_parts());
        if (registers_stop()) return true;
        c_.slots = cta_slots(hw_, c_.cluster_m * c_.cluster_n * c_.split_k, c_.ctas_per_sm);
        return pieces_stop();
    }

  private:
    bool overlaps() const { return c_.asked.overlapped.value_or(false); }  // because the request says so
    bool stop(const Constraint& constraint) {
        constraint_ = constraint;
        return true;
    }

    bool parts_stop() {
        // Of 8 bits sixteen columns are the least that TMA stores.
        const int least = config_.result_bytes() == 1 ? 16 : 8, whole_columns = (config_.pairs && !config_.swap_ab ? 2 : 1) * least * c_.split_k;
        if (config_.mma_n() % whole_columns != 0)
            return stop(Constraint::at(
                Reason::instruction, whole_columns, config_.mma_n(),
                least > 8 ? "tile_n = {available} must be a multiple of {needed}: each part of K stores its share of the columns, sixteen "
                            "at a time"
                : config_.swap_ab
                    ? "with A and B swapped tile_m = {available} must be a multiple of {needed}: each "
                      "part of K stores its share of the rows, eight at a time"
                    : "tile_n = {available} must be a multiple of {needed}: each part of K stores its "
                      "share of the columns, eight at a time"));
        const char* bar = overlaps() ? bars_overlapped_epilogue(config_) : nullptr;
        return bar && stop(Constraint::at(Reason::instruction, 1, 0, bar));
    }

    // Operands with an element for each of C that do not come by TMA: as many pairs of them at once as registers hold.
    int operand_turns() const {
        const Epilogue& e = *problem_.epilogue;
        const auto full = std::ranges::count_if(e.operands, [](const EpilogueOperand& o) { return o.by_row && o.by_column; });
        if (full == (config_.operand_staged ? 1 : 0)) return 0;
        const int pairs = config_.result_columns(config_.accumulator_registers()) / 2 / config_.split_k * config_.results;
        return int(ceil_div(pairs, e.pairs_in_flight(config_.swap_ab, config_.operand_staged)));
    }

    // All pieces of a tile run side by side: of those that came later all but the last would add nothing but waiting.
    bool pieces_stop() {
        if (c_.grid_split_k == 1) return false;
        if (c_.ctas_per_sm > 1)
            return stop(Constraint::at(Reason::instruction, c_.ctas_per_sm, 1,
                                       "grid_split_k cuts K where SMs idle: {needed} CTAs an SM; take {available}"));
        if (c_.k_parts() > figures_.tile.k_steps)
            return stop(Constraint::at(Reason::instruction, c_.k_parts(), double(figures_.tile.k_steps),
                                       "split_k * grid_split_k = {needed}, but K has {available} steps"));
        const double ctas = cluster_grid(problem_, c_).count() * c_.cluster_m * c_.cluster_n * c_.k_parts();
        return ctas > c_.slots
               && stop(Constraint::at(Reason::cluster, ctas, c_.slots,
                                      "grid_split_k makes {needed} CTAs; {available} run at once, and pieces of K pay within "
                                      "one wave alone"));
    }

    // Epilogue tiles that the kernel can write.
    bool epilogue_tile_stops() {
        const int share = config_.stored_n(), odd = 2 * config_.sector_columns();
        if (c_.asked.tile_n == 0) return false;
        if (!config_.tma_store)
            return stop(
                Constraint::at(Reason::alignment, 8, c_.asked.tile_n,
                               "epilogue_tile_n = {available}, but C leaves by TMA only where N and ldc are "
                               "multiples of {needed}"));
        if (config_.swap_ab)
            return c_.asked.tile_n != config_.epilogue_columns()
                   && stop(Constraint::at(
                       Reason::instruction, config_.epilogue_columns(), c_.asked.tile_n,
                       "epilogue_tile_n = {available} must be {needed} with A and B swapped: the columns of "
                       "one wgmma"));
        if (c_.asked.tile_n == config_.swizzled_columns(share)) return false;
        if (!config_.adds_up() && config_.result_bytes() == 2 && share % c_.asked.tile_n == 0
            && c_.asked.tile_n % odd == config_.sector_columns())
            return false;
        return stop(Constraint::at(
            Reason::instruction, config_.swizzled_columns(share), c_.asked.tile_n,
            "epilogue_tile_n = {available} must be {needed}, or, with K in one piece, sixteen times an "
            "odd number that divides tile_n"));
    }

    // Wide epilogue tiles mean fewer stores to wait for; but not with a store that nobody waits for, and not at the
    // price of a stage. The ring has as many stages as fit.
    int store_columns() const {
        if (!config_.tma_store) return 0;
        if (config_.swap_ab) return config_.epilogue_columns();
        if (c_.asked.tile_n > 0) return c_.asked.tile_n;
        const int share = config_.stored_n(), narrow = config_.swizzled_columns(share),
                  wide = config_.odd_columns(share);
        if (wide <= narrow || config_.result_bytes() != 2 || config_.overlapped_epilogue || config_.adds_up()) return narrow;
        const auto stages = [&](int columns) {
            Config config = config_;
            config.epilogue_tile_n = columns;
            return whole((c_.shared_limit - config.reserved_bytes() + c_.stage_overhead)
                         / (c_.stage_bytes + c_.stage_overhead));
        };
        return stages(wide) >= stages(narrow) ? wide : narrow;
    }

    // Threads an SM holds; and one m64nN must fit the registers a thread has at entry, whatever setmaxnreg
    // gives later (ptxas C7602): 512 threads leave 128, which holds N = 192 and no more.
    bool entry_stops() {
        if (residency_.constraint) return stop(residency_.constraint);
        constexpr int beside_one_wgmma = 32;
        const int at_entry = config_.mma_n() / 2 + beside_one_wgmma,
                  launch = residency_.registers.tight.launch;
        return launch >= 0 && at_entry > launch
               && stop(Constraint::at(
                   Reason::instruction, at_entry, launch,
                   config_.swap_ab
                       ? "one wgmma of this tile_m needs {needed} registers a thread at entry, and so "
                         "many threads leave {available}"
                       : "one wgmma of this tile_n needs {needed} registers a thread at entry, and so "
                         "many threads leave {available}"));
    }

    // A box of an mn-major operand is one swizzle span, 64 elements, wide; a cluster cuts it in whole boxes, and a
    // k-major one where the swizzle begins anew.
    bool box_stops() {
        constexpr int swizzle_rows = 8;
        if (c_.tile_m % (swizzle_rows * c_.cluster_n) != 0)
            return stop(Constraint::at(Reason::alignment, swizzle_rows * c_.cluster_n, c_.tile_m,
                                       "tile_m = {available} must be a multiple of {needed}: each CTA of the "
                                       "cluster loads its slice"));
        constexpr int pair_steps = 2 * Config::pair_step;
        if (config_.pairs && c_.tile_n % (pair_steps * c_.cluster_m) != 0)
            return stop(Constraint::at(Reason::alignment, pair_steps * c_.cluster_m, c_.tile_n,
                                       "tile_n = {available} must be a multiple of {needed}: each CTA of the cluster loads its slice of "
                                       "gates and ups"));
        if (config_.a_major == Major::mn && c_.tile_m % (swizzle_span * c_.cluster_n) != 0)
            return stop(Constraint::at(
                Reason::alignment, swizzle_span * c_.cluster_n, c_.tile_m,
                "with A m-major tile_m = {available} must be a multiple of {needed} elements"));
        return config_.b_major == Major::mn && c_.tile_n % (swizzle_span * c_.cluster_m) != 0
               && stop(Constraint::at(
                   Reason::alignment, swizzle_span * c_.cluster_m, c_.tile_n,
                   "with B n-major tile_n = {available} must be a multiple of {needed} elements"));
    }

    bool cluster_stops() {
        const int peers = c_.cluster_m * c_.cluster_n, size = peers * c_.split_k;
        if (size == 1) return false;
        if (peers > 2)
            return stop(Constraint::at(Reason::cluster, peers, 2,
                                       "a cluster of {needed} CTAs; this kernel takes {available}"));
        if (size > hw_.cluster_ctas)
            return stop(Constraint::at(Reason::cluster, size, hw_.cluster_ctas,
                                       "a cluster of {needed} CTAs; the machine takes {available}"));
        // Of groups in the longest one: else a CTA of each cluster would have no rows.
        const std::int64_t rows = problem_.groups ? ceil_div(problem_.groups->longest(), std::int64_t{c_.tile_m}) : c_.tiles.rows;
        if (rows < c_.cluster_m)
            return stop(Constraint::at(Reason::cluster, c_.cluster_m, double(rows),
                                       "cluster_m = {needed}, but there is {available} row of tiles"));
        return c_.tiles.columns < c_.cluster_n
               && stop(Constraint::at(Reason::cluster, c_.cluster_n, double(c_.tiles.columns),
                                      "cluster_n = {needed}, but there is {available} column of tiles"));
    }

    bool registers_stop() {
        if (c_.registers > c_.registers_limit)
            return stop(Constraint::at(
                Reason::registers, c_.registers, c_.registers_limit,
                "accumulators and the rest are {needed} registers a thread > {available}; take a "
                "smaller tile or more warpgroups"));
        return overlaps() && !c_.overlapped_epilogue
               && stop(Constraint::at(
                   Reason::registers, config_.overlapping_registers(), c_.consumer_registers,
                   "with its store overlapped a tile needs {needed} registers a thread > {available}; "
                   "take a smaller tile or more warpgroups"));
    }

    const GemmHardware& hw_;
    const GemmProblem& problem_;
    const TileFigures& figures_;
    const Residency& residency_;
    GemmCandidate& c_;
    Config config_;
    Constraint constraint_{};
};

}  // namespace rooftile::sm90
