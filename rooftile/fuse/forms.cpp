// The three inequalities as a form for memory-bound kernels [M20-M22, M24].
#include "rooftile/core/shared_formulas.hpp"
#include "rooftile/fuse/forms.hpp"
#include "rooftile/fuse/formulas.hpp"

namespace rooftile {
namespace {

namespace f = fuse_formula;

constexpr Formula intensity{"arithmetic_intensity", "", "FLOP/B", "I = flops / moved_bytes: below I_crit memory binds   [M1, M2]",
                            {{{"flops", "FLOP", "of all elements"}, {"moved_bytes", "B", "below"}}}};
constexpr Formula vectors_per_thread{"vectors_per_thread", "", "", "choose: 1, 2, 4 or 8 loads before the first use   [M20]", {}};
constexpr Formula threads{"threads", "", "", "choose: 128, 256 or 512 a CTA   [M20]", {}};
constexpr Formula threads_per_row{"threads_per_row", "a row is reduced", "",
    "choose: 1 to 32 shuffle alone, more go through shared memory, a cluster beyond a CTA   [M21, M22]", {}};
constexpr Formula load_registers{"load_registers", "", "registers",
    "vectors_per_thread * vector_width * element_bytes / 4: what loads in flight hold   [M20]",
                                 {{{"vectors_per_thread", "", "above"}, {"vector_width", "elements", "above"},
                                   {"element_bytes", "B", "of all tensors that are read"}}}};
constexpr Formula row_fits{"verdict", "", "",
                           "a thread's elements fit its registers; else the row is kept in shared memory, else across a cluster's, else "
                           "it is read twice and counts twice   [M21]",
                           {{{"elements_per_thread", "elements", "above"}, machine_number("sm.max_registers_per_thread")}}};
constexpr Formula unfused{"unfused_bytes", "", "B", "the sum over operators of what each reads and writes   [M24]",
    {{{"operators", "", "the expression"}}}};
constexpr Formula enough{"verdict", "", "",
    "bytes_in_flight >= bytes_in_flight_needed; else more items, wider loads, or more CTAs   [M20]",
                         {{{"bytes_in_flight", "B", "above"}, {"bytes_in_flight_needed", "B", "above"}}}};

}  // namespace

std::vector<FormulaPage> fuse_forms() {
    return {{"Form: a memory-bound kernel",
             "A queueing problem: how to issue loads so that the pipe is full. For point-wise chains, reductions, norms and softmax of "
             "your own; loaded "
             "latency decides, not idle latency.",
             {{"1 Bottleneck", {&intensity, &shared_formula::intensity_critical}},
              {"2 Unknowns", {&vectors_per_thread, &f::vector_width, &threads, &threads_per_row}},
              {"3 Capacity: does the row fit?", {&f::elements_in_registers, &f::elements_in_rounds, &load_registers, &row_fits,
                  &f::rows_per_cta, &f::ctas_per_sm, &f::ctas_per_sm_shared}},
              {"4 Intensity: count bytes, so that none is moved twice", {&f::moved_bytes, &unfused, &f::speedup}},
              {"5 Latency: is enough in flight?", {&f::bytes_in_flight_needed, &f::bytes_in_flight, &enough}},
              {"6 Output", {&f::persistent_grid, &f::grid, &f::issue_time, &f::time_us}}}}};
}

}  // namespace rooftile
