#include "cli/gemm_arguments.hpp"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/output.hpp"
#include "cli/values.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/live.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/machine/units_text.hpp"

namespace rooftile::cli {
namespace {

constexpr std::int64_t largest_extent = 2147483647;
constexpr std::string_view fallback_machine = "h100-sxm";

constexpr std::string_view types[] = {"bf16", "fp16"};
constexpr std::string_view a_majors[] = {"k", "m"};
constexpr std::string_view b_majors[] = {"k", "n"};
constexpr std::string_view schedules[] = {"cooperative", "pingpong"};
constexpr std::string_view orders[] = {"row", "column", "grouped", "serpentine", "morton", "hilbert"};
constexpr std::string_view switches[] = {"off", "on"};

void add(CLI::App& verb, const char* group, const char* name, std::string& value, const char* type_name,
         const char* meaning) {
    verb.add_option(name, value, meaning)->type_name(type_name)->check(refuse_empty)->group(group);
}

void add_problem_flags(CLI::App& verb, GemmFlags& f) {
    const char* group = "Problem, C[M,N] = A[M,K] B[K,N]";
    add(verb, group, "--m", f.m, "M", "Rows of A and C");
    add(verb, group, "--n", f.n, "N", "Columns of B and C");
    add(verb, group, "--k", f.k, "K", "Columns of A, rows of B");
    add(verb, group, "--shape", f.shape, "MxNxK", "All three at once");
    add(verb, group, "--type", f.type, "TYPE", "bf16 (default) or fp16, for A, B and C; fp32 accumulation");
    add(verb, group, "--a-major", f.a_major, "k|m",
        "Contiguous index of A: k (default, row-major M x K) or m");
    add(verb, group, "--b-major", f.b_major, "k|n",
        "Contiguous index of B: k (default, row-major N x K) or n");
    add(verb, group, "--lda", f.lda, "N", "Elements from one line of A to the next; default: dense");
    add(verb, group, "--ldb", f.ldb, "N", "The same of B");
    add(verb, group, "--ldc", f.ldc, "N", "The same of C, which is row-major");
    // Named so that a value other than the one supported is refused by name.
    add(verb, "", "--alpha", f.alpha, "X", "1 alone so far");
    add(verb, "", "--beta", f.beta, "X", "0 alone so far");
    add(verb, "", "--batch", f.batch, "N", "1 alone so far");
    add(verb, "", "--epilogue", f.epilogue, "NAME", "none alone so far");
    add(verb, "", "--layout", f.layout, "NAME", "Not offered");
}

void add_config_flags(CLI::App& verb, GemmFlags& f) {
    const char* group = "Fixed parameters (the rest is searched)";
    add(verb, group, "--tile", f.tile, "MxNxK", "Tile of one CTA: tile_m, tile_n, tile_k");
    add(verb, group, "--stages", f.stages, "N", "Tiles in flight");
    add(verb, group, "--consumer-warpgroups", f.consumer_warpgroups, "N", "Warpgroups that multiply");
    add(verb, group, "--schedule", f.schedule, "NAME", "cooperative or pingpong");
    add(verb, group, "--cluster", f.cluster, "MxN", "CTAs of a cluster");
    add(verb, group, "--order", f.order, "NAME", "row, column, grouped, serpentine, morton or hilbert");
    add(verb, group, "--group", f.group, "N",
        "Rows of tiles walked together by orders grouped and serpentine");
    add(verb, group, "--split-k", f.split_k, "N", "Parts that K is cut into");
    add(verb, group, "--ctas-per-sm", f.ctas_per_sm, "N", "Resident CTAs of an SM");
    add(verb, group, "--deferred-store", f.deferred_store, "on|off",
        "Store a tile between the next one's products; default: on where registers allow");
    add(verb, group, "--store-n", f.store_n, "N", "Columns of C that one store takes");
    add(verb, group, "--pdl", f.pdl, "on|off",
        "Start beside the end of the kernel before (programmatic dependent launch); default: on");
    add(verb, group, "--evict-first", f.evict_first, "none|LETTERS",
        "Operands, of a, b and c, that L2 drops first, as in bc; default: none");
}

std::optional<int> number_if(std::string_view flag, const std::string& text, int most) {
    if (text.empty()) return std::nullopt;
    return int(whole_number(flag, text, 1, most));
}

EvictFirst evict_first_of(const std::string& text) {
    EvictFirst operands;
    if (text == "none") return operands;
    for (char letter : text) {
        bool* operand = letter == 'a'   ? &operands.a
                        : letter == 'b' ? &operands.b
                        : letter == 'c' ? &operands.c
                                        : nullptr;
        if (!operand || *operand)
            throw RequestError(fmt::format(
                "--evict-first {}: accepted is none, or letters of a, b and c, each once, as in bc",
                printable(text)));
        *operand = true;
    }
    return operands;
}

struct Sizes {
    std::int64_t m, n, k;
};

Sizes sizes_of(const GemmFlags& f) {
    if (!f.shape.empty()) {
        if (!f.m.empty() || !f.n.empty() || !f.k.empty())
            throw RequestError("--shape and --m, --n, --k exclude each other; give one form");
        const auto sizes = whole_numbers("--shape", f.shape, "MxNxK", 1, largest_extent);
        return {sizes[0], sizes[1], sizes[2]};
    }
    std::string missing;
    auto size = [&](const char* flag, const std::string& text) -> std::int64_t {
        if (!text.empty()) return whole_number(flag, text, 1, largest_extent);
        missing += (missing.empty() ? "" : ", ") + std::string(flag);
        return 0;
    };
    const Sizes sizes{size("--m", f.m), size("--n", f.n), size("--k", f.k)};
    if (!missing.empty())
        throw RequestError(
            fmt::format("missing {}; a GEMM needs --m M --n N --k K, or --shape MxNxK", missing));
    return sizes;
}

}  // namespace

void add_gemm_flags(CLI::App& verb, GemmFlags& f, int default_top) {
    add_problem_flags(verb, f);
    const char* group = "Machine";
    add(verb, group, "--machine", f.machine, "ID|FILE",
        "One of `rooftile machine list`, or a machine file; default: the GPU here, else h100-sxm");
    verb.add_option("--set", f.set, "Replace one number, as in --set \"dram.bandwidth=4 TB/s\"; repeatable")
        ->type_name("KEY=VALUE")
        ->check(refuse_empty)
        ->take_all()
        ->expected(1)
        ->group(group);
    add_config_flags(verb, f);
    verb.add_option("--top", f.top, fmt::format("Plans to keep; default {}", default_top))
        ->type_name("N")
        ->check(refuse_empty)
        ->group("Output");
}

GemmProblem problem_of(const GemmFlags& f) {
    if (!f.layout.empty())
        throw RequestError(
            "--layout is not offered: libraries name the same layout differently; say which index "
            "is contiguous with --a-major k|m and --b-major k|n");
    const Sizes sizes = sizes_of(f);
    const Type type = f.type.empty() || one_of("--type", f.type, types) == 0 ? Type::bf16 : Type::fp16;
    auto major = [](std::string_view flag, const std::string& text, std::span<const std::string_view> names) {
        return text.empty() || one_of(flag, text, names) == 0 ? Major::k : Major::mn;
    };
    only_value("--alpha", f.alpha, "1");
    only_value("--beta", f.beta, "0");
    only_value("--batch", f.batch, "1");
    only_value("--epilogue", f.epilogue, "none");
    GemmProblem problem =
        gemm_problem(sizes.m, sizes.n, sizes.k, type, major("--a-major", f.a_major, a_majors),
                     major("--b-major", f.b_major, b_majors));
    if (!f.lda.empty()) problem.lda = whole_number("--lda", f.lda, 1, largest_extent);
    if (!f.ldb.empty()) problem.ldb = whole_number("--ldb", f.ldb, 1, largest_extent);
    if (!f.ldc.empty()) problem.ldc = whole_number("--ldc", f.ldc, 1, largest_extent);
    check(problem);
    return problem;
}

GemmRequest request_of(const GemmFlags& f, int default_top) {
    // Wider than any hardware: what is possible here but nowhere else is the planner's answer, not a typo.
    constexpr int most_tile = 65536, most_small = 1024, most_plans = 64;
    GemmRequest r;
    if (!f.tile.empty()) {
        const auto tile = whole_numbers("--tile", f.tile, "MxNxK", 1, most_tile);
        r.tile_m = int(tile[0]);
        r.tile_n = int(tile[1]);
        r.tile_k = int(tile[2]);
    }
    if (!f.cluster.empty()) {
        const auto cluster = whole_numbers("--cluster", f.cluster, "MxN", 1, most_small);
        r.cluster_m = int(cluster[0]);
        r.cluster_n = int(cluster[1]);
    }
    r.stages = number_if("--stages", f.stages, most_small);
    r.consumer_warpgroups = number_if("--consumer-warpgroups", f.consumer_warpgroups, most_small);
    r.group = number_if("--group", f.group, most_tile);
    r.split_k = number_if("--split-k", f.split_k, most_tile);
    r.ctas_per_sm = number_if("--ctas-per-sm", f.ctas_per_sm, most_small);
    r.store_n = number_if("--store-n", f.store_n, most_tile);
    if (!f.schedule.empty()) r.schedule = Schedule(one_of("--schedule", f.schedule, schedules));
    if (!f.order.empty()) r.order = Order(one_of("--order", f.order, orders));
    if (!f.deferred_store.empty())
        r.deferred_store = one_of("--deferred-store", f.deferred_store, switches) == 1;
    if (!f.evict_first.empty()) r.evict_first = evict_first_of(f.evict_first);
    if (!f.pdl.empty()) r.programmatic_launch = one_of("--pdl", f.pdl, switches) == 1;
    r.top = number_if("--top", f.top, most_plans).value_or(default_top);
    return r;
}

Target target_of(const GemmFlags& f) {
    Target target;
    if (!f.machine.empty()) {
        target.machine = machine_by_id(f.machine);
    } else if (auto live = find_live_machine()) {
        target = {std::move(live->machine), std::move(live->note)};
    } else {
        target.machine = machine_by_id(fallback_machine);
        target.note =
            fmt::format("no usable GPU here: planning for {}; --machine names another", fallback_machine);
    }
    for (const std::string& assignment : f.set) set_number(target.machine, assignment);
    return target;
}

}  // namespace rooftile::cli
