#include "rooftile/machine/keys.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include <fmt/core.h>

#include "rooftile/error.hpp"

namespace rooftile {
namespace {

// The sane range of every unit a key can be given in. Wide enough for GPUs that do not exist; a slip of a
// prefix usually leaves it.
struct UnitRange {
    std::string_view unit;
    double least, most;
};
constexpr UnitRange unit_ranges[] = {
    {"B/clk/SM", 1e-3, 1e6},
    {"B/clk", 1e-3, 1e9},
    {"B/s", 1e6, 1e18},
    {"B/s/SM", 1e3, 1e16},
    {"clk", 0, 1e7},
    {"s", 0, 1},
    {"Hz", 1e6, 1e11},
    {"W", 0.1, 1e5},
    {"FLOP/clk/SM", 1e-2, 1e7},
    {"FLOP/s", 1e6, 1e20},
    {"op/clk/SM", 1e-2, 1e6},
    {"J/FLOP", 1e-18, 1e-6},
    {"J/B", 1e-16, 1e-3},
    {"J/op", 1e-16, 1e-6},
    {"1", 0, 10},
};

constexpr const UnitRange* unit_range(std::string_view unit) {
    for (const auto& range : unit_ranges)
        if (range.unit == unit) return &range;
    return nullptr;
}

constexpr Key count(std::string_view name, std::string_view units, double least, double most,
                    std::string_view meaning) {
    return {name, units, meaning, least, most};
}
constexpr Key bytes(std::string_view name, double least, double most, std::string_view meaning) {
    return {name, "B", meaning, least, most};
}
constexpr Key physical(std::string_view name, std::string_view units, std::string_view meaning) {
    const UnitRange* range = unit_range(units.substr(0, std::min(units.find(", "), units.find(" or "))));
    return {name, units, meaning, range->least, range->most};
}
constexpr Key ratio(std::string_view name, double least, double most, std::string_view meaning) {
    return {name, "1", meaning, least, most};
}

constexpr std::string_view whole_or_sm = "B/s, B/clk or B/clk/SM";
constexpr std::string_view cycles_or_time = "clk or s";
constexpr double GiB = 0x1p30, PiB = 0x1p50;

constexpr Key keys[] = {
    count("sm.count", "SMs", 1, 4096, "streaming multiprocessors that can be used"),
    count("sm.per_gpc", "SMs", 1, 4096, "SMs of a typical GPC; a cluster is within one"),
    count("sm.partitions", "partitions", 1, 64, "parts of an SM that issue on their own"),
    count("sm.max_warps", "warps", 1, 1024, "resident warps of one SM"),
    count("sm.max_ctas", "CTAs", 1, 1024, "resident CTAs of one SM"),
    count("sm.registers", "registers", 1, 1 << 24, "32-bit registers of one SM"),
    count("sm.max_registers_per_thread", "registers", 1, 65536, "most registers a thread can name"),
    count("sm.register_allocation_unit", "registers", 1, 65536, "registers of a warp are rounded up to this"),
    count("sm.max_threads_per_cta", "threads", 1, 65536, "most threads of one CTA"),
    count("sm.named_barriers", "barriers", 1, 4096, "named barriers of one SM"),
    count("cluster.max_portable", "CTAs", 1, 1024, "largest cluster every GPU of the architecture runs"),
    count("cluster.max", "CTAs", 1, 1024, "largest cluster with opt-in"),
    count("cluster.sms_2", "SMs", 1, 4096, "SMs that clusters of 2 large CTAs can use at once"),
    count("cluster.sms_3", "SMs", 1, 4096, "SMs that clusters of 3 large CTAs can use at once"),
    count("cluster.sms_4", "SMs", 1, 4096, "SMs that clusters of 4 large CTAs can use at once"),
    count("cluster.sms_6", "SMs", 1, 4096, "SMs that clusters of 6 large CTAs can use at once"),
    count("cluster.sms_8", "SMs", 1, 4096, "SMs that clusters of 8 large CTAs can use at once"),

    bytes("shared.per_sm", 1, GiB, "shared memory of one SM at its largest carve-out"),
    bytes("shared.per_cta", 1, GiB, "most shared memory a CTA may ask for, with opt-in"),
    bytes("shared.reserved_per_cta", 0, GiB, "what the driver adds to every CTA's request"),
    bytes("shared.allocation_unit", 1, GiB, "a CTA's shared memory is rounded up to this"),
    bytes("shared.carveout_step", 1, GiB,
          "what shared memory has of an SM beside L1 comes in such steps below the most"),
    bytes("l1.unified", 0, GiB, "L1 and shared memory of one SM together"),
    bytes("l2.size", 0, 1024 * GiB, "L2 cache of the GPU"),
    count("l2.partitions", "partitions", 1, 64, "parts of L2; the far ones answer later"),
    bytes("tmem.per_sm", 0, GiB, "tensor memory of one SM (tcgen05)"),
    bytes("dram.size", 1, PiB, "device memory, nominal"),

    physical("shared.bandwidth", "B/clk/SM", "shared memory, reads and writes together"),
    physical("l2.port", "B/clk/SM or B/s/SM",
             "most one SM can ask of L2; what others share with it by multicast not counted"),
    physical("l2.bandwidth", whole_or_sm, "L2 reads with every SM pulling"),
    physical("l2.coalesced", "1",
             "loads of one line by CTAs next to each other in the tile order, for each that reaches L2"),
    physical("l2.multicast", "1", "loads that reach L2 for each multicast one"),
    physical("dram.bandwidth", whole_or_sm, "device memory's peak"),
    physical("dram.sustained_read", whole_or_sm, "device memory, reads alone, as measured"),
    physical("dram.sustained_write", whole_or_sm, "device memory, writes alone, as measured"),
    physical("dram.sustained_copy", whole_or_sm, "device memory, read plus written bytes of a copy"),
    physical("dram.per_sm", "B/clk/SM",
             "most one SM streams from device memory, however much it has in flight"),
    physical("dram.per_sm_alone", "B/clk/SM", "the same where at most half of the SMs stream"),
    physical("sm.skew", "1",
             "share of a k-step by which the SMs of one GPC fall behind the others in a persistent kernel"),
    physical("dram.derate.streams", "1",
             "share of the read rate lost where each SM reads 64 rows side by side"),
    physical("dsmem.bandwidth", "B/clk/SM", "shared memory of another SM of the cluster"),
    physical("tma.rate_dram", "B/clk/SM or B/s/SM", "most that TMA brings one SM alone from device memory"),
    physical("tma.rate_l2", "B/clk/SM or B/s/SM", "most that TMA brings one SM alone from L2"),
    ratio("tma.off_line_16", 0.5, 10,
          "times L2 takes for TMA boxes of rows 16 B past a 128-byte line, all SMs loading rows of their own"),
    ratio("tma.off_line_32", 0.5, 10, "the same 32 B past it"),
    ratio("tma.off_line_64", 0.5, 10, "the same 64 B past it"),
    ratio("tma.off_line_shared_16", 0.5, 10,
          "times L2 takes for TMA boxes of rows 16 B past a line that all SMs load, rows of their own on the line being 1"),
    ratio("tma.off_line_shared_32", 0.5, 10, "the same 32 B past it"),
    ratio("tma.off_line_shared_64", 0.5, 10, "the same 64 B past it"),
    ratio("tma.image", 0.5, 10, "times L2 takes for TMA boxes of pixels of an image (im2col), rows of 128 B of a matrix being 1"),
    ratio("tma.image_outside", 0.5, 20, "the same of pixels outside the image, which arrive as zeros"),
    ratio("tma.image_outside_multicast", 0.5, 50, "the same where each SM of a cluster loads a part for all of them"),
    ratio("tma.image_clustered", 1, 10, "times that k-steps of pixels take of L2 where SMs of a cluster wait for each other's loads"),
    physical("tma.store", whole_or_sm, "stores of TMA boxes of 16 rows of 128 B, two of each of eight warps in flight"),
    physical("tma.store_amid_sector", whole_or_sm, "the same of rows that begin amid a 32-byte sector"),
    physical("store.rows", whole_or_sm, "bulk stores of rows staged in shared memory, their ends by element, of rows that begin 2 B off a line"),
    physical("store.element", whole_or_sm, "stores of 2-byte elements, a warp's in eight rows of eight, a thread's side by side"),
    physical("store.element_turned", whole_or_sm, "the same, a thread's one above the other"),
    physical("tma.outside", whole_or_sm,
             "rows of TMA boxes that are outside their tensor, with every SM asking for some"),
    bytes("tma.in_flight", 1, GiB, "most bytes that TMA keeps outstanding for one SM"),
    physical("load.rate", "B/clk/SM or B/s/SM", "v of one SM's load time t(b) = load.latency + b / v"),

    physical("arithmetic.latency", cycles_or_time, "from an arithmetic instruction to one that takes its result"),
    physical("shared.latency", cycles_or_time, "shared-memory load"),
    physical("l1.latency", cycles_or_time, "L1 hit"),
    physical("l2.latency", cycles_or_time, "L2 hit, in the SM's own partition where there are two"),
    physical("l2.latency_far", cycles_or_time, "L2 hit in the other partition"),
    physical("dram.latency", cycles_or_time, "device-memory load, unloaded"),
    physical("cta.interval", cycles_or_time, "between the starts of two CTAs on one SM"),
    physical("cluster.start", cycles_or_time, "what a cluster of 2 adds to it until all its places are free"),
    physical("dsmem.latency", cycles_or_time, "load from another SM of the cluster"),
    physical("load.latency", cycles_or_time, "t0 of one SM's load time t(b) = t0 + b / load.rate"),
    physical("tma.latency_extra", cycles_or_time, "what TMA adds to a plain load"),
    physical("tma.latency_dram", cycles_or_time, "one TMA box of 8 KiB from device memory, issue to arrival"),
    physical("tma.latency_l2", cycles_or_time, "one TMA box of 8 KiB from L2, issue to arrival"),
    physical("barrier.mbarrier", cycles_or_time, "two warps hand over and back by mbarriers"),
    physical("tma.latency_loaded", cycles_or_time,
             "from a TMA load of device memory to its arrival with every SM pulling"),
    physical("tma.latency_loaded_l2", cycles_or_time, "the same of a load that L2 answers"),
    physical("tma.store_latency", cycles_or_time, "from a TMA store to the reuse of what it read"),
    physical("store.rows_turn", cycles_or_time, "of a tile whose rows leave by a bulk copy each, beside its bytes"),
    physical("wgmma.step", cycles_or_time, "least time of one k-step: barrier, four wgmma, hand-back"),
    ratio("wgmma.stretch", 1, 10, "of products that several warpgroups issue with waits between: their time over what the instructions take"),
    physical("wgmma.latency", cycles_or_time, "from a warpgroup's wgmma to its sums in registers, beyond what the matrix units take"),
    physical("wgmma.turn", cycles_or_time, "from the last products of a tile to the first of the next"),
    physical("few.step", cycles_or_time, "of a block of a product of few rows by mma.sync, beside its copies"),
    physical("few.word", cycles_or_time, "of such a block, for each word of A that a thread brings by registers"),
    physical("few.start", cycles_or_time, "of a wave of such products' tiles, beside what all kernels begin and end with"),
    physical("gather.start", cycles_or_time, "of a wave of products whose rows cp.async gathers from an image, beside what all kernels begin with"),
    physical("gather.step", cycles_or_time, "of each of such a wave's steps, beside its copies and products"),
    physical("quantised.end", cycles_or_time, "of a product of few rows by packed weights, at its end"),
    physical("quantised.row", cycles_or_time, "of such an end for each row of 64 columns of a tile"),
    physical("quantised.tile", cycles_or_time, "of a tile of a product of many rows by packed weights, at its end"),
    physical("quantised.tile_row", cycles_or_time, "of such an end for each of the tile's rows"),
    physical("planes.start", cycles_or_time, "of a tile of a depthwise convolution by planes: loads, barriers and stores that nothing hides"),
    physical("barrier.cta", cycles_or_time, "__syncthreads of 8 warps"),
    physical("barrier.cluster", cycles_or_time, "cluster arrive and wait"),
    physical("launch.gap_stream", "s", "back-to-back small kernels of a stream, one to the next"),
    physical("launch.gap_graph", "s", "the same inside a CUDA graph"),
    physical("launch.programmatic_saving", "s",
             "what a launch takes less as a programmatic dependent: its start and set-up run during the one "
             "before"),
    physical("link.bandwidth", "B/s", "from one GPU of a host to the others, one direction"),
    physical("link.step", "s", "what an exchange between the GPUs of a host takes beside its bytes, each time that all wait for all"),

    ratio("wgmma.overlap_exponent", 1, 1000,
          "of a product by wgmma: t^n is the sum of the t^n of DRAM's time and of the longest of all else in a wave"),
    ratio("planes.stretch", 1, 10, "of such a tile: its time beside over what it issues"),
    ratio("direct.stretch", 1, 10, "of convolutions by CUDA cores: their time over that of their longest unit"),
    ratio("mma_sync.overlap_exponent", 1, 1000,
          "of kernels whose warps all copy and multiply: t^n is the sum of the t^n of products and of shared "
          "memory's port"),

    ratio("softmax.stretch", 1, 100,
          "of a softmax between two matrix products, by one warp of each partition: its time over what its special functions, maxima "
          "and conversions take one after the other"),
    physical("softmax.latency", cycles_or_time, "of such a softmax beside: shuffles, waits and barriers"),
    ratio("softmax.flops", 0, 10000, "of a score's softmax: its energy is that of so many FLOP of the products"),
    physical("softmax.turn", cycles_or_time, "from a tile of such blocks to the next, beside its first scores and its last product"),

    // What fits the model of memory-bound kernels to runs of them.
    ratio("stream.overlap_exponent", 1, 1000,
          "of rows: t^n is the sum of the t^n of DRAM's time and of what an SM's CTAs do one after the other"),
    ratio("stream.thread_instructions", 0, 10000, "instructions of a thread of rows beside its elements"),
    physical("stream.reduction", cycles_or_time, "a joint reduction of the threads of a row"),
    ratio("stream.grid.reduction", 0, 10000, "L2 latencies of a reduction across CTAs through device memory"),
    physical("stream.ring.chunk", cycles_or_time, "a chunk of a ring: waiting for its slot and giving it back"),

    physical("clock.boost", "Hz", "SM clock, highest rated"),
    physical("clock.tensor", "Hz", "SM clock rated under tensor load: the published FLOP/s use it"),
    physical("clock.memory", "Hz", "memory clock"),
    physical("clock.sustained.*", "Hz", "SM clock under sustained matrix work on random data of a type"),
    physical("clock.fitted.*", "Hz",
             "clock.sustained of a type that fitted numbers were fitted with, where that is another now"),

    physical("rate.mufu", "op/clk/SM", "special functions: exp2, reciprocal, ..."),
    physical("rate.alu", "op/clk/SM", "32-bit integers and logic: add, compare, select, shift, convert"),
    physical("rate.*.*.*", "FLOP/clk/SM or FLOP/s",
             "dense rate by instruction family, input and accumulator"),
    physical("peak.*.*.*", "FLOP/s", "stated peak of the GPU, where it is not SMs x rate x clock"),
    physical("matmul.sustained.*", "FLOP/s", "best sustained matrix product measured, by input type"),
    physical("power.tdp", "W", "power limit"),
    physical("power.idle", "W", "a context open and nothing running"),
    physical("power.sustained", "W", "mean power that the limit holds the GPU to under steady load"),
    physical("power.static", "W", "power that no operation accounts for, at work"),
    physical("energy.flop.*", "J/FLOP", "of the matrix units, at clock.sustained of the type, random data"),
    physical("energy.fill", "J/B", "of bytes that arrive in shared memory from L2, at the same clock; of bytes between L2 and registers, too"),
    physical("energy.instruction", "J/op", "of one lane's instruction outside the matrix units, at the same clock"),
    physical("energy.shared_read", "J/B", "of operands that matrix instructions read from shared memory"),
    physical("energy.dram", "J/B", "of bytes between device memory and L2"),
    ratio("interval.*.low", 0.01, 1, "of a kind of problems: least measured over predicted time, but for the 5 % below it"),
    ratio("interval.*.high", 1, 100, "the same, most, but for the 5 % above it"),
    physical("energy.exponent", "1", "energy of an operation grows with this power of the SM clock"),
};

constexpr Feature features[] = {
    {"mma_sync", "warp-wide mma.sync"},
    {"ldmatrix", "ldmatrix: shared memory to matrix fragments"},
    {"cp_async", "cp.async: global to shared memory without registers"},
    {"mbarrier", "mbarrier objects in shared memory"},
    {"tma", "bulk tensor copies, with transaction counts on mbarriers"},
    {"cluster", "clusters of CTAs and distributed shared memory"},
    {"setmaxnreg", "registers moved between warpgroups"},
    {"wgmma", "warpgroup-wide asynchronous wgmma"},
    {"special_async", "special functions by a unit that takes whole tiles while no thread waits"},
    {"tcgen05", "tcgen05 matrix instructions with tensor memory"},
    {"fp16", "the matrix units take fp16"},
    {"bf16", "the matrix units take bf16"},
    {"tf32", "the matrix units take tf32"},
    {"fp8", "the matrix units take fp8"},
};

constexpr std::string_view families[] = {"wgmma", "mma_sync", "tcgen05", "fma", "generic"};
constexpr std::string_view types[] = {"fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp6", "fp4"};
constexpr std::string_view accumulators[] = {"fp64", "fp32", "fp16", "int32"};

using Parts = std::vector<std::string_view>;

Parts split(std::string_view path) {
    Parts parts;
    for (std::size_t begin = 0; begin <= path.size();) {
        const std::size_t end = std::min(path.find('.', begin), path.size());
        parts.push_back(path.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

// The keys' names in parts, split once: every number that is asked for is looked up here.
std::span<const Parts> patterns() {
    static const std::vector<Parts> all = [] {
        std::vector<Parts> split_names;
        for (const auto& key : keys) split_names.push_back(split(key.name));
        return split_names;
    }();
    return all;
}

struct Star {
    std::string_view what;
    std::span<const std::string_view> names;
};

// The list that part `index` of a key with stars is checked against; no names: any, they are made of names of operations and laws.
Star star_at(const Parts& pattern, std::size_t index) {
    if (pattern[0] == "interval") return {"kind of problems", {}};
    if (pattern.size() == 4 && index == 1) return {"instruction family", families};
    if (pattern.size() == 4 && index == 3) return {"accumulator type", accumulators};
    return {"input type", types};
}

bool part_matches(const Parts& pattern, std::size_t index, std::string_view part) {
    if (pattern[index] != "*") return pattern[index] == part;
    const auto names = star_at(pattern, index).names;
    return names.empty() || std::find(names.begin(), names.end(), part) != names.end();
}

std::size_t edit_distance(std::string_view x, std::string_view y) {
    std::vector<std::size_t> row(y.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < x.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < y.size(); ++j) {
            const std::size_t change = diagonal + (x[i] != y[j]);
            diagonal = row[j + 1];
            row[j + 1] = std::min({change, diagonal + 1, row[j] + 1});
        }
    }
    return row.back();
}

std::string joined(std::span<const std::string_view> names) {
    std::string text;
    for (auto name : names) text += (text.empty() ? "" : ", ") + std::string(name);
    return text;
}

std::string nearest_clause(std::string_view name, std::span<const std::string> names) {
    const std::string nearest = nearest_name(name, names);
    return nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest);
}

// What is wrong with a path that is no key: the first part a family does not know, or the nearest key.
std::string key_problem(std::string_view path, const Parts& parts) {
    std::vector<std::string> names;
    for (const auto& key : keys) {
        const Parts pattern = split(key.name);
        std::size_t good = 0;
        while (good < std::min(pattern.size(), parts.size()) && part_matches(pattern, good, parts[good]))
            ++good;
        if (good > 0 && good < std::min(pattern.size(), parts.size()) && pattern[good] == "*") {
            const Star star = star_at(pattern, good);
            return fmt::format("no {} \"{}\"; accepted: {}", star.what, printable(parts[good], 40),
                               joined(star.names));
        }
        std::string name;  // with stars filled in as the path has them
        for (std::size_t i = 0; i < pattern.size(); ++i)
            name.append(i ? "." : "").append(pattern[i] == "*" && i < parts.size() ? parts[i] : pattern[i]);
        names.push_back(name);
        for (std::size_t dot = key.name.find('.'); dot != key.name.npos; dot = key.name.find('.', dot + 1))
            names.emplace_back(key.name.substr(0, dot));
    }
    return "unknown key" + nearest_clause(path, names);
}

std::string range_text(double least, double most, std::string_view unit) {
    return fmt::format("{} to {} {}", shortest_text(least), shortest_text(most), unit);
}

bool is_count(const Key& key) { return !std::get<Unit>(parse_unit(units_listed(key.units)[0])).word.empty(); }

}  // namespace

std::span<const Key> machine_keys() { return keys; }
std::span<const Feature> machine_features() { return features; }
std::span<const std::string_view> instruction_families() { return families; }
std::span<const std::string_view> input_types() { return types; }
std::span<const std::string_view> accumulator_types() { return accumulators; }

const Feature* find_feature(std::string_view name) {
    for (const auto& feature : features)
        if (feature.name == name) return &feature;
    return nullptr;
}

KeyMatch match_key(std::string_view path) {
    const Parts parts = split(path);
    KeyMatch match;
    for (std::size_t k = 0; k < std::size(keys); ++k) {
        const Parts& pattern = patterns()[k];
        if (parts.size() > pattern.size()) continue;
        bool matches = true;
        for (std::size_t i = 0; matches && i < parts.size(); ++i)
            matches = part_matches(pattern, i, parts[i]);
        if (!matches) continue;
        if (parts.size() == pattern.size()) return {&keys[k], false, {}};
        match.group = true;
    }
    if (!match.group) match.problem = key_problem(path, parts);
    return match;
}

std::string nearest_name(std::string_view name, std::span<const std::string> names) {
    std::string nearest;
    if (name.size() > 200) return nearest;  // no slip of a name
    // Two slips at most, one in a short name: what is further away is another word.
    std::size_t least = name.size() <= 4 ? 2 : 3;
    for (const auto& candidate : names) {
        // What somebody began to write is nearer than what looks alike: "h100" means "h100-sxm", not "b200".
        const bool begun = name.size() > 1 && candidate.starts_with(name);
        const std::size_t distance = begun ? 1 : edit_distance(name, candidate);
        const bool nearer = distance < least || (distance == least && candidate.size() < nearest.size());
        if (!nearer || distance >= std::max(name.size(), candidate.size())) continue;
        least = distance;
        nearest = candidate;
    }
    return nearest;
}

std::string accepted(const Key& key) {
    if (is_count(key)) return "a whole number, " + range_text(key.least, key.most, key.units);
    return fmt::format("{}; {}", key.units, range_text(key.least, key.most, units_listed(key.units)[0]));
}

std::variant<Fact, TextProblem> make_fact(const Key& key, const NumberText& number, std::string source) {
    const auto listed = units_listed(key.units);
    for (std::size_t i = 0; i < listed.size(); ++i) {
        const Unit unit = std::get<Unit>(parse_unit(listed[i]));
        if (unit.dimension != number.unit.dimension || unit.per != number.unit.per) continue;
        const bool bare = number.unit.text.empty(),
                   ratio = unit.word.empty() && unit.dimension == Dimension{};
        if (unit.word.empty() ? bare && !ratio : !bare && unit.word != number.unit.word) continue;
        const UnitRange* range = i == 0 ? nullptr : unit_range(listed[i]);
        const double least = range ? range->least : key.least, most = range ? range->most : key.most;
        if (number.value < least || number.value > most)
            return TextProblem{"out of range; accepted: " + range_text(least, most, listed[i])};
        const bool whole = !unit.word.empty() || unit.dimension == Bytes::dimension;
        if (whole && number.value != std::floor(number.value))
            return TextProblem{fmt::format("not a whole number of {}", listed[i])};
        return Fact{
            number.value,      number.unit.dimension,
            number.unit.per,   bare && ratio ? fmt::format("{} {}", number.text, listed[i]) : number.text,
            std::move(source), {}};
    }
    if (number.unit.text.empty()) return TextProblem{"no unit; accepted: " + accepted(key)};
    return TextProblem{fmt::format("\"{}\" is not this key's unit; accepted: {}",
                                   printable(number.unit.text, 40), accepted(key))};
}

}  // namespace rooftile
