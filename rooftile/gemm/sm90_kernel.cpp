// sm90_gemm as the planning stations see it: TMA, mbarrier ring, wgmma.
#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "kernels/pipeline/tile_order.cuh"
#include "rooftile/gemm/derivation_choices.hpp"
#include "rooftile/gemm/formulas.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/quantised_model.hpp"
#include "rooftile/gemm/sm90_derivation.hpp"
#include "rooftile/gemm/sm90_family.hpp"

namespace rooftile {
namespace {

// Of an operand whose rows do not begin at whole sectors of L2 (docs/facts.md 46); empty where they do, and where
// there is not more than one row of tiles: nothing is read again.
std::string pitch_note(const char* name, std::int64_t pitch, std::int64_t rows, Type type) {
    const int sector = Sm90GemmConfig::sector_bytes / bytes_of(type);
    if (pitch % sector == 0 || rows <= Sm90GemmConfig::wgmma_m) return {};
    return fmt::format(
        "{} = {} is no multiple of {} elements: rows begin amid a 32-byte sector. Where that was counted, on "
        "an H200, operands that are read again cost 16 to 64 % more bytes from DRAM than padded ones, which "
        "this plan does not count; pad it to {}",
        name, pitch, sector, ceil_div(pitch, sector) * sector);
}

constexpr int largest_tile = 256;  ///< either way: what a box of TMA takes

/// As it lies: TMA can copy it, and wgmma multiply what comes.
bool taken_as_it_lies(Type type, Major major, std::int64_t leading, std::int64_t offset, std::int64_t stride) {
    return (!is_fp8(type) || major == Major::k) && taken_by_tma(leading, offset, stride, type);
}
bool a_taken(const GemmProblem& p) { return !p.narrow && taken_as_it_lies(p.a_type, p.a_major, p.lda, p.a_offset, p.a_stride); }
bool b_taken(const GemmProblem& p) { return !p.is_unpacked() && taken_as_it_lies(p.b_type, p.b_major, p.ldb, p.b_offset, p.b_stride); }

/// Operands of 8 bits that the request wants unpacked, though rows of K do not run along them.
std::optional<Refusal> refuse_bytes(const GemmProblem& p, const GemmRequest& request) {
    if (!is_fp8(p.a_type)) return std::nullopt;
    const bool a = p.a_major != Major::k && !request.pack_a.value_or(true), b = p.b_major != Major::k && !request.pack_b.value_or(true);
    if (!a && !b) return std::nullopt;
    return Refusal{Reason::instruction,
                   fmt::format("{} is {}-major in fp8 with {} off: wgmma takes 8-bit operands whose rows run along K alone; leave {} on "
                               "or give it k-major", a ? "A" : "B", a ? "m" : "n", a ? "pack_a" : "pack_b", a ? "pack_a" : "pack_b"), 1, 0};
}

/// An operand that TMA cannot take, and that the request wants unpacked.
std::optional<Refusal> refuse_unpacked(const GemmProblem& p, const GemmRequest& request) {
    struct Operand {
        const char *name, *leading_name, *offset_name, *flag;
        std::int64_t leading, offset, stride;
        const std::optional<bool>& packed;
    };
    for (const Operand& o : {Operand{"A", "lda", "a_offset", "pack_a", p.lda, p.a_offset, p.a_stride, request.pack_a},
                             Operand{"B", "ldb", "b_offset", "pack_b", p.ldb, p.b_offset, p.b_stride, request.pack_b}})
        if (!o.packed.value_or(true) && !taken_by_tma(o.leading, o.offset, o.stride, p.a_type))
            return Refusal{Reason::alignment,
                           fmt::format("{} = {}, {} = {}{} with {} off: TMA takes lines of {} that begin at multiples of {} "
                                       "elements (16 B); leave {} on or make {} multiples of {}",
                                       o.leading_name, o.leading, o.offset_name, o.offset,
                                       o.stride == 0 ? "" : fmt::format(", a stride of {}", o.stride), o.flag, o.name, tma_elements(p.a_type),
                                       o.flag, o.stride == 0 ? "both" : "all", tma_elements(p.a_type)),
                           double(tma_elements(p.a_type)), 0};
    return std::nullopt;
}

/// What needs to know on the host how many tiles there are.
std::optional<Refusal> refuse_groups(const GemmProblem& p, const GemmRequest& request) {
    if (!p.groups) return std::nullopt;
    // 8 bits are packed k-major first.
    if (p.a_major == Major::mn && !is_fp8(p.a_type))
        return Refusal{Reason::alignment,
                       fmt::format("groups with A m-major: TMA reads from multiples of {} elements (16 B) of a line on, and a group's rows begin "
                                   "anywhere; give A k-major", tma_elements(p.a_type)), double(tma_elements(p.a_type)), 1};
    if (request.grid_split_k.value_or(1) > 1)
        return Refusal{Reason::instruction,
                       fmt::format("grid_split_k = {}: how many tiles groups have is known on the device alone, and pieces of K must all run "
                                   "at once; take split_k", *request.grid_split_k), double(*request.grid_split_k), 1};
    if (request.order && ordered_by_table(*request.order))
        return Refusal{Reason::instruction,
                       fmt::format("order {}: its table is made on the host, and how many tiles groups have is known on the device alone; "
                                   "take row, column, grouped or serpentine", name_of(*request.order)), 1, 0};
    if (request.reverse.value_or(false))
        return Refusal{Reason::instruction,
                       "reverse: its table is made on the host, and how many tiles groups have is known on the device alone; leave it off", 1, 0};
    return std::nullopt;
}

/// Tiles are counted in 32 bits, and a CTA steps past the last one.
std::string groups_obstacle(const GemmProblem& p, const GemmConfig& c) {
    if (!p.groups) return {};
    constexpr std::int64_t room = std::int64_t{1} << 16;  // more than any GPU has CTAs at once
    const std::int64_t columns = cluster_grid(p, c.tile_m, c.tile_n, c.cluster_m, c.cluster_n).columns,
                       rows = p.groups->max_tiles(std::int64_t{c.tile_m} * c.cluster_m);
    if (rows <= (std::numeric_limits<std::int32_t>::max() - room) / columns) return {};
    return fmt::format("groups of {} rows have up to {} x {} tiles of {}x{}, 2^31 or more; take larger tiles, or launch parts of the groups", p.m,
                       rows, columns, c.tile_m, c.tile_n);
}

/// What of B or of the tiles is known only when the kernel in front has ended.
std::optional<Refusal> refuse_early_weights(const GemmProblem& p, const GemmRequest& request) {
    if (!request.early_weights.value_or(false)) return std::nullopt;
    const auto refused = [](const std::string& why) {
        return Refusal{Reason::instruction, fmt::format("early_weights: {}; leave it off", why), 1, 0};
    };
    if (p.groups) return refused("where groups begin is known on the device alone, when the kernel in front has ended");
    if (p.block_scales()) return refused("so far of products without scales of blocks");
    if (request.dynamic_scheduler.value_or(false)) return refused("with dynamic_scheduler roles hear of tiles from a counter");
    if (request.pack_b.value_or(!b_taken(p)))
        return refused("B is packed by the launch in front (pack_b), which has not ended by then");
    return std::nullopt;
}

/// Pieces of K that no tile has.
std::optional<Refusal> refuse_pieces(const Machine& machine, const GemmProblem& p, const GemmRequest& request) {
    const int pieces = request.grid_split_k.value_or(1);
    if (pieces == 1) return std::nullopt;
    const int span = Sm90GemmConfig::swizzle_bytes / bytes_of(p.a_type);
    const auto refused = [&](Reason reason, std::string why, double needed, double available) {
        return Refusal{reason, fmt::format("grid_split_k = {}: {}", pieces, why), needed, available};
    };
    const std::int64_t parts = std::int64_t{pieces} * request.split_k.value_or(1), steps = p.k_blocks(span);
    if (parts > steps) return refused(Reason::instruction, fmt::format("K has {} steps of {} for {} parts", steps, span, parts), double(parts), double(steps));
    if (request.ctas_per_sm.value_or(1) > 1)
        return refused(Reason::instruction, "K is cut where SMs idle; take one CTA an SM", *request.ctas_per_sm, 1);
    if (request.schedule == Schedule::pingpong)
        return refused(Reason::instruction, "a CTA has one tile, and in pingpong one warpgroup would have none; take cooperative", pieces, 1);
    if (request.dynamic_scheduler.value_or(false))
        return refused(Reason::instruction, "a CTA has one tile, and dynamic_scheduler no next one to take; leave it off", pieces, 1);
    const auto sms = machine.find("sm.count");
    const double ctas = double(ceil_div(p.m, std::int64_t{request.tile_m.value_or(largest_tile)})) * double(ceil_div(p.n, std::int64_t{request.tile_n.value_or(largest_tile)})) * double(parts);
    if (sms && ctas > sms->value)
        return refused(Reason::cluster, fmt::format("all pieces run at once, and {:.0f} CTAs are more than {:.0f} SMs", ctas, sms->value), ctas, sms->value);
    return std::nullopt;
}

/// Of pairs of B's columns, rows of K each, a box has a step of both kinds.
std::optional<Refusal> refuse_pairs(const GemmProblem& p) {
    constexpr int steps = 2 * Sm90GemmConfig::pair_step;
    if (p.pairs() == Pairs::none) return std::nullopt;
    if (p.b_major != Major::k && !is_fp8(p.b_type))
        return Refusal{Reason::alignment, fmt::format("pairs {} with B n-major: gates and ups are taken by rows of K; give B k-major", name_of(p.pairs())), 1, 0};
    if (p.n % steps != 0)
        return Refusal{Reason::alignment,
                       fmt::format("pairs {}: n = {} must be a multiple of {}, {} pairs at once", name_of(p.pairs()), p.n, steps, steps / 2),
                       double(steps), double(p.n)};
    return std::nullopt;
}

constexpr int box_channels = 64;  // a swizzle span of 16-bit elements

/// What loads of images cannot address, or the kernel of them does not have.
std::optional<Refusal> refuse_image(const GemmProblem& p, const GemmRequest& request) {
    if (!p.image) return std::nullopt;
    const auto refused = [](Reason reason, std::string why) { return Refusal{reason, std::move(why), 1, 0}; };
    if (std::string why = image_load_obstacle(*p.image, bytes_of(p.a_type)); !why.empty()) return refused(Reason::alignment, std::move(why));
    if (is_fp8(p.a_type)) return refused(Reason::instruction, "images of 8 bits are not planned yet; take bf16 or fp16");
    if (p.batch > 1 || p.groups || p.pairs() != Pairs::none || p.results() > 1)
        return refused(Reason::instruction, "of an image there is one product with one result");
    if (p.image_is_b()) {
        if (p.b_major == Major::k) return refused(Reason::alignment, "an image on the right is n-major: channels are innermost; give B n-major, or A k-major");
        if (p.image->channels % box_channels != 0)
            return refused(Reason::alignment, fmt::format("{} channels of an image on the right: a box has {} of one tap; pad them to {}", p.image->channels, box_channels,
                                                          ceil_div(p.image->channels, box_channels) * box_channels));
        if (request.early_weights.value_or(false)) return refused(Reason::instruction, "early_weights: B is the image, and no weights; leave it off");
    }
    if (p.a_major != Major::k || p.b_major != Major::k)
        if (const std::int64_t lines = p.image_is_b() ? p.m : p.n; lines % tma_elements(p.a_type) != 0)
            return refused(Reason::alignment, fmt::format("lines of {} elements beside an image: TMA takes multiples of {} (16 B); pad them", lines, tma_elements(p.a_type)));
    if (request.pack_a.value_or(false) || request.pack_b.value_or(false)) return refused(Reason::instruction, "pack_a, pack_b: nothing of an image's product is packed; leave them off");
    return std::nullopt;
}

/// Of A the launch that unpacks weights makes no copy.
std::optional<Refusal> refuse_copy_of_a(const GemmProblem& p, const GemmRequest& request) {
    if (!p.is_unpacked() || p.narrow || !request.pack_a.value_or(!a_taken(p))) return std::nullopt;
    return Refusal{Reason::instruction,
                   fmt::format("lda = {}, a_offset = {}{}: where weights are unpacked first A is read in place, in lines that begin at multiples "
                               "of {} elements (16 B); pad it", p.lda, p.a_offset, request.pack_a.value_or(false) ? " with pack_a on" : "",
                               tma_elements(p.a_type)),
                   1, 0};
}

/// From so many rows on it is planned beside the kernels of packed weights: below, unpacking alone takes longer than these do.
constexpr std::int64_t least_rows_behind_unpacking = 17;

class Sm90Gemm final : public GemmKernel {
  public:
    std::string_view name() const override { return "sm90_gemm"; }
    std::string instruction(const Machine&, Type) const override { return "wgmma"; }

    std::string missing_on(const Machine& machine) const override {
        std::string missing;
        for (const char* feature : {"wgmma", "tma", "mbarrier", "setmaxnreg"})
            if (!machine.has(feature)) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", feature);
        return missing;
    }
    std::optional<Refusal> refusal(const Machine& machine, const GemmProblem& problem,
                                   const GemmRequest& request) const override {
        if (auto why = refuse_type(machine, problem)) return why;
        if (auto why = refuse_packed_weights(problem, request)) return why;
        if (auto why = refuse_copy_of_a(problem, request)) return why;
        if (auto why = refuse_image(problem, request)) return why;
        if (auto why = refuse_groups(problem, request)) return why;
        if (request.dynamic_scheduler.value_or(false) && problem.batch == 1 && !problem.groups)
            return Refusal{Reason::instruction, "dynamic_scheduler: so far of groups, or of a batch that is not computed as one product, as one that shares B is; leave it off", 1, 0};
        if (auto why = refuse_following(machine, request)) return why;
        if (auto why = refuse_early_weights(problem, request)) return why;
        if (auto why = refuse_pieces(machine, problem, request)) return why;
        if (auto why = refuse_bytes(problem, request)) return why;
        if (auto why = refuse_pairs(problem)) return why;
        return refuse_unpacked(problem, request);
    }
    bool is_behind_unpacking() const override { return true; }
    bool joins(const GemmProblem& p) const override { return p.is_quantised() && !p.groups && p.m >= least_rows_behind_unpacking; }
    PackedOperands packs(const GemmProblem& problem, const GemmRequest& request) const override {
        if (problem.image) return {};
        return {request.pack_a.value_or(!a_taken(problem)), request.pack_b.value_or(!b_taken(problem))};
    }

    std::vector<PackedOperands> packings(const GemmProblem& problem, const GemmRequest& request,
                                         const GemmHardware& hw) const override {
        const PackedOperands needed = packs(problem, request);
        const GemmHardware as_needed = with_operands(hw, problem, needed);
        std::vector<PackedOperands> all{needed};
        if (is_fp8(problem.a_type) || problem.image || problem.is_unpacked()) return all;
        const auto add = [&](bool PackedOperands::*operand) {
            for (std::size_t i = 0, before = all.size(); i < before; ++i) {
                all.push_back(all[i]);
                all.back().*operand = true;
            }
        };
        const bool early = request.early_weights.value_or(false);  // B is taken as it lies
        if (!request.pack_b && !early && !as_needed.b_lines.on_line()) add(&PackedOperands::b);
        if (!request.pack_a && !as_needed.a_lines.on_line()) add(&PackedOperands::a);
        return all;
    }

    void enumerate(const GemmHardware& hw, const GemmProblem& problem, const GemmRequest& request,
                   GemmVisitor& visitor) const override {
        Sm90GemmFamily(hw, problem).enumerate(hw, problem, request, visitor);
    }
    Constraint examine(const GemmHardware& hw, const GemmProblem& problem, GemmCandidate& candidate) const override {
        return Sm90GemmFamily(hw, problem).examine(hw, problem, candidate);
    }

    void complete(const GemmContext& context, const Kept& kept, GemmConfig& config) const override {
        // Stores without TMA take no hint.
        config.evict_first.c &= stores_by_tma(context.problem);
        config.programmatic_launch = context.request.programmatic_launch.value_or(true);
        config.pack_a = context.packed.a, config.pack_b = context.packed.b;
        config.early_weights = context.request.early_weights.value_or(false);
        config.dynamic_scheduler = config.grid_split_k == 1 && !config.early_weights
                                   && context.request.dynamic_scheduler.value_or(schedules_dynamically(context, kept));
    }
    std::string why_not(const Machine&, const GemmProblem& problem, const GemmConfig& config,
                        const GemmHardware& hw) const override {
        if (std::isnan(hw.registers_per_sm) || std::isnan(hw.registers_per_thread))
            return "sm.registers or sm.max_registers_per_thread is unknown, so setmaxnreg cannot be chosen";
        if (std::string why = groups_obstacle(problem, config); !why.empty()) return why;
        return order_obstacle(problem, config);
    }
    std::vector<std::string> notes(const GemmProblem& problem, const GemmRequest& request,
                                   const GemmHardware& hw) const override {
        std::vector<std::string> out;
        if (problem.is_unpacked()) out = weight_notes(problem.as_asked(), hw);
        const PackedOperands packed = packs(problem, request);
        const auto add = [&out](std::string note) {
            if (!note.empty()) out.push_back(std::move(note));
        };
        if (!packed.a && !problem.image_is_a()) add(pitch_note("lda", problem.lda, problem.m, problem.a_type));
        if (!packed.b && !problem.image_is_b()) add(pitch_note("ldb", problem.ldb, problem.n, problem.b_type));
        return out;
    }

    GemmWords words(const GemmCandidate& c) const override {
        const bool own_tile = c.schedule == Schedule::pingpong;
        return {.tile_k = &gemm_formula::tile_k_sm90,
                .tile_k_limit = "a row of a tile is what TMA swizzles and wgmma reads at once",
                .accumulators = own_tile ? &gemm_formula::accumulators_pingpong : &gemm_formula::accumulators_cooperative,
                .sharers_name = "consumer_warpgroups",
                .sharers = own_tile ? 0 : c.consumer_warpgroups,
                .registers_source = "least clean value found by bisection with ptxas",
                .reserved_source = "C epilogue tiles and other barriers of this kernel"};
    }
    void explain_choices(const GemmContext& context, const Kept& kept, const GemmConfig& config,
                         Derivation& steps) const override {
        write_sm90_derivation(context, kept, config, steps);
    }
};

}  // namespace

const GemmKernel& sm90_gemm() {
    static const Sm90Gemm kernel;
    return kernel;
}

}  // namespace rooftile
