// Formulas of a memory-bound kernel's derivation that its form has as well; steps of other ways to cut the work say theirs in
// derivation.cpp.
#pragma once

#include "rooftile/core/formula.hpp"

namespace rooftile::fuse_formula {

inline constexpr Formula moved_bytes{"moved_bytes", "", "B", "every input read once + every output written once   [M25]",
                                     {{{"inputs", "B", "the problem"}, {"outputs", "B", "the problem"}}}};
inline constexpr Formula vector_width{"vector_width", "", "elements", "elements of 16 B, halved until addresses are aligned",
                                      {{{"element_bytes", "B", "of the narrowest tensor"}, {"columns", "", "the problem"}}}};
inline constexpr Formula elements_in_registers{"elements_per_thread", "a row in registers", "elements",
                                               "columns / (threads_per_row x cluster), in whole vectors   [M21]",
                                               {{{"columns", "", "the problem"}, {"threads_per_row", "", "the plan"},
                                                 {"cluster", "", "the plan"},
                                                 machine_number("sm.max_registers_per_thread")}}};
inline constexpr Formula elements_in_rounds{"elements_per_thread", "a row in rounds", "elements",
                                            "vectors_per_thread x vector_width: its columns come in rounds of that many   [M21]",
                                            {{{"vectors_per_thread", "", "the plan"}, {"vector_width", "elements", "above"},
                                              machine_number("sm.max_registers_per_thread")}}};
inline constexpr Formula rows_per_cta{"rows_per_cta", "", "rows", "threads / threads_per_row   [M22]",
                                      {{{"threads", "", "of a CTA"}, {"threads_per_row", "", "the plan"}}}};
inline constexpr Formula bytes_in_flight_needed{
    "bytes_in_flight_needed", "", "B", "round x rate: cycles from a CTA's loads to its end x bytes that come into an SM a cycle   [M20]",
    {{{"round", "cycles", "dram.latency at least, and what else a CTA waits for"}, {"rate", "B/cycle", "bandwidth / (sm.count x clock)"},
      machine_number("dram.latency"), machine_number("l2.latency"), machine_number("clock.boost"), machine_number("dram.sustained_copy"),
      machine_number("bandwidth", "dram.sustained_read dram.bandwidth dram.sustained_copy"), machine_number("sm.count")}}};
inline constexpr Formula bytes_in_flight{
    "bytes_in_flight", "", "B", "CTAs an SM x threads x vectors_per_thread x vector_width x bytes of the full tensors; of a row what it "
    "has   [M20]",
    {{{"ctas_per_sm", "", "resident"}, {"threads", "", "of a CTA"}, {"vectors_per_thread", "", "independent loads before the first use"},
      {"vector_width", "elements", "above"}, {"element_bytes", "B", "of all tensors that are read"}}}};
inline constexpr Formula ctas_per_sm{"ctas_per_sm", "nothing in shared memory", "CTAs",
    "least of registers, threads and CTAs that an SM holds   [M6]",
                                     {{{"registers", "", "a thread's"}, machine_number("sm.registers"), machine_number("sm.max_warps"),
                                       machine_number("sm.max_ctas")}}};
inline constexpr Formula ctas_per_sm_shared{
    "ctas_per_sm", "rows in shared memory", "CTAs", "least of registers, threads, CTAs and shared memory that an SM holds   [M6]",
    {{{"registers", "", "a thread's"}, machine_number("sm.registers"), machine_number("sm.max_warps"), machine_number("sm.max_ctas"),
      {"shared_bytes", "B", "a CTA's"}, machine_number("shared.per_sm")}}};
inline constexpr Formula persistent_grid{"grid", "persistent", "CTAs", "SMs x CTAs an SM, or as many as there is work",
                                         {{machine_number("sm.count"), {"ctas_per_sm", "", "above"}}}};
inline constexpr Formula grid{"grid", "not persistent", "CTAs", "one CTA a piece of the work",
                              {{machine_number("sm.count"), {"ctas_per_sm", "", "above"}}}};
inline constexpr Formula issue_time{
    "issue_time", "", "us", "(instructions + beside) of an element x elements / (issue lanes x SMs x clock)   [M43]",
    {{{"instructions", "", "of an element"}, {"beside", "", "a thread's start and addresses, shared by its elements"},
      {"elements", "", "the problem"},
      {"issue_lanes", "", "32 x sm.partitions"}, machine_number("sm.partitions"), machine_number("sm.count"),
          machine_number("clock.boost"),
      {"special_functions", "", "of an element"}, machine_number("rate.mufu")}}};
inline constexpr Formula time_us{
    "time_us", "", "us", "working + launch + ends",
    {{{"working", "us", "the longest of dram, l2, issue and mufu, which overlap in part, in whole waves"},
      {"ends", "us", "first CTAs' start, last stores"},
      {"dram", "us", "bytes / bandwidth"}, {"l2", "us", "bytes / bandwidth"}, {"issue", "us", "above"},
          {"mufu", "us", "special functions / rate.mufu"},
      {"launch", "us", "launch.gap_stream + dram.latency"}}}};
inline constexpr Formula speedup{"speedup", "", "", "time of the operators one by one / time of this kernel   [M24]",
                                 {{{"unfused", "us", "the sum over its kernels of max(bytes / bandwidth, instructions) + launch"},
                                   {"fused", "us", "above"}}}};

}  // namespace rooftile::fuse_formula
