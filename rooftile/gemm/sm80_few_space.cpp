#include "rooftile/gemm/sm80_few_space.hpp"

#include <algorithm>
#include <span>

#include "rooftile/gemm/plain_space.hpp"
#include "rooftile/gemm/rules.hpp"

namespace rooftile {
namespace {

constexpr int few_warpgroups = Sm80FewConfig::warps() / 4;
// Along K a warp has 16 or 32 columns of one shift: more sums of 64 rows leave a thread no registers. Along N it has all columns, and of the
// 64 or 128 that are copied 8 are the neighbours', since lines of another shift begin earlier.
constexpr int few_tile_ns[] = {128, 256}, few_tile_ns_along_n[] = {56, 120};
// Threads cut lines evenly into copies of 16 B; along N each warp has 16 lines of a shift.
constexpr int few_tile_ks[] = {64, 128, 256}, few_tile_ks_along_n[] = {128, 256};

struct FewTiles {
    std::span<const int> n, k;
};
FewTiles few_tiles_of(const GemmProblem& p) {
    if (p.b_major == Major::k) return {few_tile_ns, few_tile_ks};
    return {few_tile_ns_along_n, few_tile_ks_along_n};
}
bool has(std::span<const int> values, int value) { return std::ranges::find(values, value) != values.end(); }

/// What all that says where a line of A or B begins has in common: bits that are 0.
std::int64_t a_bits(const GemmProblem& p) { return p.lda | p.a_offset | (p.a_matrices() > 1 ? p.a_stride : 0); }
std::int64_t b_bits(const GemmProblem& p) { return p.ldb | p.b_offset | (p.b_matrices() > 1 ? p.b_stride : 0); }

Constraint few_instruction_constraint(const GemmCandidate& c, const GemmProblem& p) {
    constexpr int step = Sm80FewConfig::mma_n;
    if (c.tile_m % step != 0 || c.tile_m > Sm80FewConfig::most_rows || c.tile_m < p.m)
        return Constraint::at(Reason::instruction, double(ceil_div(p.m, step) * step), c.tile_m,
                              "tile_m = {available}: a CTA has all rows of A, in steps of 8 up to 64; take {needed}");
    const FewTiles tiles = few_tiles_of(p);
    if (!has(tiles.n, c.tile_n))
        return Constraint::at(Reason::instruction, tiles.n[0], c.tile_n,
                              p.b_major == Major::k
                                  ? "tile_n = {available}: each of 8 warps has 16 or 32 columns; take {needed} or twice that"
                                  : "tile_n = {available}: of 64 or 128 columns that are copied 8 are neighbours'; take {needed} or 120");
    if (!has(tiles.k, c.tile_k))
        return Constraint::at(
            Reason::instruction, tiles.k[0], c.tile_k,
            "tile_k = {available}: threads cut blocks of {needed}, or of 2 or 4 times as many up to 256, evenly into copies of 16 B");
    if (c.consumer_warpgroups != few_warpgroups)
        return Constraint::at(Reason::instruction, few_warpgroups, c.consumer_warpgroups,
                              "{available} warpgroups; this kernel has {needed}: a warp for each of the 8 places where rows can begin");
    if (const std::int64_t blocks = ceil_div(p.k, c.tile_k); c.grid_split_k > blocks)
        return Constraint::at(Reason::instruction, c.grid_split_k, double(blocks),
                              "{needed} pieces of K; it has {available} blocks of tile_k");
    return Constraint::none();
}

}  // namespace

bool rows_on_chunks(const GemmProblem& p) { return (a_bits(p) | b_bits(p)) % copy_elements == 0; }

Sm80FewConfig sm80_few_config(const GemmProblem& p, const GemmConfig& c) {
    return {.tile_m = c.tile_m,
            .tile_n = c.tile_n,
            .tile_k = c.tile_k,
            .stages = c.stages,
            .ctas_per_sm = c.ctas_per_sm,
            .type = p.a_type,
            .a_major = p.a_major,
            .b_major = p.b_major,
            .odd_rows = b_bits(p) % 2 != 0,
            .batched = p.batch > 1,
            .in_pieces = c.grid_split_k > 1,
            .early_weights = c.early_weights,
            .expression = bool(p.epilogue),
            .epilogue_registers = p.epilogue ? p.epilogue->registers(false, false) : 0};
}

Constraint Sm80FewFamily::examine(const GemmHardware& hw, const GemmProblem& problem, GemmCandidate& c) const {
    if (const Constraint constraint = few_instruction_constraint(c, problem)) return constraint;
    const Sm80FewConfig config = sm80_few_config(problem, c);
    if (config.a_words() > config.most_a_words)
        return Constraint::at(Reason::instruction, c.tile_k / 2, c.tile_k,
                              "tile_k = {available}: A comes by registers, which hold half of such a block of so many rows; take {needed}");
    // Along K every warp reads all of A, and twice where pairs of its elements are put together from two words; along N each its eighth
    // of K, twice.
    c.warp_m = c.tile_m;
    c.warp_n = !config.along_k() ? c.tile_n / 2 : c.tile_n / (Sm80FewConfig::warps() * (config.odd_rows ? 2 : 1));
    c.set_work(hw, problem);
    // All warps meet before a step, copy, turn A's words, read what they multiply, and multiply: two a scheduler do little of the one beside the
    // other. Copies of 16 B by threads are what one of many SMs takes, however few there are.
    const double copies = max_known(config.b_bytes() / hw.dram_per_sm, 0), words = config.a_words() * max_known(hw.few_word, 0);
    c.step_floor = std::max(max_known(c.step.shared, 0) + max_known(c.step.tensor, 0), copies + words + max_known(hw.few_step, 0));
    c.start = max_known(hw.few_start, 0);
    c.exchange = exchange_cycles(hw, c);
    c.threads = Sm80FewConfig::threads();
    c.accumulators = config.accumulator_registers();
    c.registers = config.registers();
    c.registers_limit = launch_registers(hw, c.threads, c.ctas_per_sm);
    c.stage_bytes = (c.tile_m + c.tile_n) * c.tile_k * Sm80FewConfig::element_bytes;
    c.stage_overhead = config.stage_bytes() - c.stage_bytes;
    c.stages_min = std::max(min_stages, int(ceil_div(config.sums_bytes(), config.stage_bytes())));
    c.shared_limit = shared_limit(hw, c.ctas_per_sm);
    return plain_constraints(hw, c);
}

namespace {

/// Whether gemm_rules::pieces_of_idle_sms leaves it out; of CTAs an SM that the request fixes no number is left out, of pieces those that such a
/// wave has no room for. Of an unknown number of SMs none.
bool few_leaves_out(const GemmHardware& hw, const GemmProblem& p, const GemmCandidate& c, bool ctas_fixed) {
    const double tiles = cluster_grid(p, c).count(), ctas = tiles * c.grid_split_k;
    if (ctas_fixed) return c.grid_split_k > 1 && ctas > hw.sms * c.ctas_per_sm;
    const double wave = hw.sms * (tiles <= hw.sms ? 1 : c.ctas_per_sm);
    if (c.grid_split_k > 1 && (ctas > wave || (tiles <= hw.sms && c.ctas_per_sm > 1))) return true;
    return c.ctas_per_sm > 1 && ctas <= hw.sms * (c.ctas_per_sm - 1);
}

/// What the rule leaves of the candidates that the request does not fix.
class FewVisitor final : public GemmVisitor {
  public:
    FewVisitor(const GemmHardware& hw, const GemmProblem& problem, bool ctas_fixed, GemmVisitor& to) : hw_(hw), problem_(problem), ctas_fixed_(ctas_fixed), to_(to) {}
    void reject(const Constraint& constraint, const GemmCandidate& candidate, std::int64_t candidates) override {
        to_.reject(constraint, candidate, candidates);
    }
    void accept(const GemmCandidate& candidate) override {
        if (few_leaves_out(hw_, problem_, candidate, ctas_fixed_)) to_.leave_out(gemm_rules::pieces_of_idle_sms, 1);
        else to_.accept(candidate);
    }

  private:
    const GemmHardware& hw_;
    const GemmProblem& problem_;
    bool ctas_fixed_;
    GemmVisitor& to_;
};

}  // namespace

void Sm80FewFamily::enumerate(const GemmHardware& hw, const GemmProblem& problem, const GemmRequest& request, GemmVisitor& visitor) const {
    constexpr int step = Sm80FewConfig::mma_n;
    const int tile_ms[] = {int(std::min<std::int64_t>(ceil_div(problem.m, step) * step, Sm80FewConfig::most_rows))};
    // Of what takes the same time the first is kept: more SMs that read.
    const FewTiles tiles = few_tiles_of(problem);
    static constexpr int warpgroups[] = {few_warpgroups}, ctas[] = {1, 2, 3, 4},
                         pieces[] = {32, 28, 24, 20, 16, 14, 12, 10, 8, 7, 6, 5, 4, 3, 2, 1};
    FewVisitor by_rule(hw, problem, request.ctas_per_sm.has_value(), visitor);
    const bool fixed = request.exhaustive || request.grid_split_k;
    GemmRequest each = request;
    for (const int count : choices(request.grid_split_k, pieces)) {
        each.grid_split_k = count;
        enumerate_plain_tiles(*this, {tile_ms, tiles.n, tiles.k, warpgroups, ctas}, hw, problem, each,
                              fixed ? visitor : static_cast<GemmVisitor&>(by_rule));
    }
}

}  // namespace rooftile
