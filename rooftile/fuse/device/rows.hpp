// Kernels with reductions along the row, written in parts: what all have, how a thread goes over its vectors,
// how a row's values are reduced, and the two ways in which rows wait in shared memory. Internal to fuse_source.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/fuse/device/source_writer.hpp"
#include "rooftile/fuse/row_vectors.hpp"
#include "rooftile/fuse/staging.hpp"

namespace rooftile {

class RowsText {
  public:
    explicit RowsText(const FusePlan& plan);
    std::string text();

  private:
    using Body = std::function<void(int depth, const std::vector<int>& loads)>;
    /// Of a joint reduction: what is added up, under which name.
    struct Joint {
        int reduce;
        std::string accumulator, name;
    };
    using Term = std::function<std::string(const Joint&, const std::string& term)>;

    // fuse_rows.cpp: the frame.
    bool held() const { return c_.row_storage == RowStorage::registers; }
    bool long_pass() const;
    bool reload() const { return c_.row_storage == RowStorage::reload; }
    bool ring() const { return c_.row_storage == RowStorage::pipelined; }
    bool grid_resident() const { return grid_resident_rows(c_); }
    bool whole() const;
    int guardless() const;
    std::string cuts() const;
    /// Rows begin and end within vectors: each has a span.
    bool off() const { return rows_off_vectors(p_, c_.vector_width); }
    bool full_teams() const;
    /// Some warps reduce, others store.
    bool specialised() const { return c_.reduction_threads > 0; }
    int body() const { return (ring() ? 2 : 1) + nested_; }
    /// A line of the row's own block.
    template <class... Args>
    void line(int depth, fmt::format_string<Args...> text, Args&&... args) {
        w_.line(body() + depth, text, std::forward<Args>(args)...);
    }
    std::string story() const;
    void constants();
    void rows_head();
    bool shared() const { return w_.config.row_storage == RowStorage::shared; }
    int rows_of_warp() const { return warp_threads / c_.threads_per_row * w_.config.rows_per_thread; }
    void warp_row();
    void bring_rows();
    void take_elements();
    void store_gathered();
    void row_start(std::set<int>& known);
    void reductions(std::set<int>& known);
    void row(std::set<int> known);
    void row_values(int pass, std::set<int>& known);
    void power_base(int part);
    std::vector<int> all_targets() const;
    std::vector<int> reduces_in(int pass) const;

    // fuse_rows_pass.cpp: a thread's vectors.
    bool in_array(int load) const;
    bool waits(int load) const;
    bool kept(int load) const { return kept_in_ring(w_.value(load), c_); }
    std::vector<int> loads_of(const std::vector<int>& targets, const std::set<int>& known) const;
    bool in_order() const;
    bool weights_first() const;
    void declare_pack(int depth, int load);
    /// It lies off the vectors of the rows that are worked on.
    bool beside(int load) const { return off() && !w_.value(load).access.full(); }
    std::string pack_type(int load) const;
    std::string pack_name(int load) const;
    void shift_beside(int depth, const std::vector<int>& loads);
    std::string start_of(const Access& access, const std::string& row) const;
    std::string place(const std::string& start, bool clamped) const;
    /// A row that loads are written for, as the kernel calls it and its span.
    struct NamedRow {
        std::string row, span = "span";
    };
    std::string load_text(int load, const std::string& function, const std::string& pack, const NamedRow& row,
                          const std::string& within, const std::string& at) const;
    bool clamped() const { return ring() && storing_ && !whole(); }
    std::string load_function(const Access& access) const;
    void load_vector(int depth, int load);
    void load_row();
    void load_held(bool full);
    void vectors_head(int depth);
    /// `before` of an iteration's vectors: what all of them give together.
    struct PassText {
        Body body;
        std::function<void(int depth)> before;
    };
    void row_pass(const std::vector<int>& targets, const std::set<int>& known, const PassText& text);
    void held_pass(const std::vector<int>& loads, const Body& body_text);
    void iterations_head();
    void each_vector(int depth, const std::vector<int>& loads, const std::function<void(int)>& text);
    std::string held_place(int load) const;
    void load_iteration(const std::vector<int>& first, const std::vector<int>& again);
    void hold_iteration(const std::vector<int>& first);
    void reread_pass(const std::vector<int>& loads, const PassText& text);
    std::vector<std::string> element(int depth, const std::vector<int>& targets,
                                     const std::vector<int>& loads, std::set<int> known);
    void keeps(int depth, const std::vector<int>& targets, const std::set<int>& known);
    void row_results();
    void result(const std::set<int>& known);
    const std::string& output_name(int store) const;

    // fuse_rows_reduce.cpp: how a row's values are reduced.
    bool in_two(int reduce) const;
    bool takes_packs(const Joint& joint) const;
    Joint first_of(int reduce) const;
    Joint second_of(int reduce) const;
    void reduction_pass(int pass, const std::vector<int>& reduces, const std::set<int>& known);
    void centre(const Joint& joint);
    void row_value(const Joint& joint);
    void joint_reduction(const std::vector<Joint>& joints, const std::set<int>& known, const Term& term_of);
    /// How moments are added up, and whether their name is new.
    struct Way {
        const char* kind;
        bool declares;
    };
    bool few_elements() const;
    bool plain(int reduce) const;
    /// What each thread adds up, before it is merged with the others'.
    void reduce_once(const std::vector<Joint>& joints, const std::set<int>& known, const Term& term_of,
                     const Way& way);
    void leave_out(int depth, int load);
    void reach(int depth, const Joint& joint, const std::string& accumulator);
    void reduce_across_threads(const std::vector<Joint>& joints);

    // fuse_rows_shared.cpp: rows in shared memory.
    void tensors_in_shared();
    void open_ring();
    bool interleaves_chunks() const;
    bool dynamic() const { return schedules_dynamically(p_, c_); }
    void fetch_kept();
    std::vector<int> to_l2() const;
    bool by_bulk(int load) const { return vectors_by_bulk(w_.value(load), c_.vector_width); }
    std::vector<int> epilogue_rows() const;
    void spread_epilogue_rows(int depth);
    void produce();
    void reduce_in_own_warps(std::set<int> known);
    void take_handed(std::set<int>& known);
    std::vector<int> ahead_of_rows() const;
    bool of_rows(const std::vector<int>& loads) const;
    void open_ahead();
    void load_next(int depth, const std::vector<int>& loads, std::string_view into, const NamedRow& row);
    void take_next(const std::vector<int>& loads);
    void place_ahead(const std::vector<int>& loads);
    void replace(const std::vector<int>& loads);
    void ring_pass(const std::vector<int>& loads, const PassText& text);

    /// Who takes which vectors of a row: its place among its like, how many they are, and its vectors of an iteration; names in the kernel.
    struct Stride {
        const char *lane = "threadIdx.x", *step = "step", *vectors_per_thread = "vectors_per_thread";
    };

    SourceWriter w_;
    const Program& p_;
    const FuseConfig c_;      ///< of rows in shared memory: of one of them, element by element
    const int vector_width_;  ///< of what is read and written
    std::vector<int> loads_, row_loads_;
    std::vector<bool> epilogue_;  // of a value: epilogue_operands()
    std::set<int> held_;          // packs that a pass has used, or put into shared memory
    int passes_ = 0;              // over the row, in all
    int passes_written_ = 0;      // that are written
    bool storing_ = false;        // the pass that is written stores
    bool seldom_ = false;         // it hardly ever runs: short text, a vector at a time
    std::set<int> ahead_;         // loads whose next chunk has its registers already
    Stride stride_;
    int nested_ = 0;  // blocks around the loop over rows
};

}  // namespace rooftile
