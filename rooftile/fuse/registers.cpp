#include "rooftile/fuse/registers.hpp"

#include <algorithm>
#include <cmath>

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/core/warp.hpp"
#include "rooftile/fuse/staging.hpp"

namespace rooftile {
namespace {

/// What a program asks of its threads, in 32-bit registers of one vector.
struct RegisterDemand : LoadWords {
    double dropout = 0;
    bool kept = false;     ///< a row is wanted again after its reductions
    bool exps = false;     ///< and its exponentials with it
    bool moments = false;  ///< its differences from the mean
    bool sums = false;
};

RegisterDemand demand_of(const Program& p, const ProgramWork& work, int vector_width) {
    RegisterDemand d = {load_words(p, vector_width)};
    d.kept = work.reductions > 0 && work.readings > 1;
    d.dropout = 8 * masks_of_vectors(p);
    for (const ProgramValue& v : p.values) {
        if (v.kind != ValueKind::reduce) continue;
        d.exps = d.exps || v.reduction == Reduction::exponentials;
        d.moments = d.moments || v.reduction == Reduction::moments;
        d.sums = d.sums || v.reduction == Reduction::sum;
    }
    return d;
}

/// Rows in registers. Loaded early, many weights stay widened: whatever there is.
double held_registers(const RegisterDemand& d, const FuseConfig& c, double bound) {
    constexpr int many = 4;
    if (c.early_weights && c.vectors_per_thread >= many && d.shared > 0) return bound;
    double need = (d.kept ? 16 : 12) + c.vectors_per_thread * d.full + (d.exps ? 8 : 0);
    if (c.vectors_per_thread > 1) need += d.dropout;
    need += d.shared * (c.early_weights ? c.vectors_per_thread : std::min(2, c.vectors_per_thread));
    if (d.kept) need += c.vector_width / 2.0 * std::min(d.moments ? 8 : 4, c.vectors_per_thread);
    if (c.early_weights && d.moments && c.vectors_per_thread > 1) need += 8;
    return need;
}

/// A warp of each partition; where their number is unknown, as if `threads` were spread over them evenly.
double lanes_of_round(const FuseHardware& hw, double threads) {
    return std::isnan(hw.issue_lanes) ? threads : hw.issue_lanes;
}

}  // namespace

LoadWords load_words(const Program& p, int vector_width) {
    LoadWords all;
    for (const ProgramValue& v : p.values) {
        if (v.kind != ValueKind::load || v.level != Level::element) continue;
        const double words = std::max(1.0, bytes_of(v.element) * vector_width / 4.0);
        (v.access.full() ? all.full : all.shared) += words;
        if (v.access.only_row()) all.only += words;
    }
    return all;
}

int masks_of_vectors(const Program& p) {
    return int(std::count_if(p.values.begin(), p.values.end(), [&](const ProgramValue& v) {
        return v.op == Op::dropout && (v.level == Level::element || p.form != FuseForm::row);
    }));
}

double registers_likely(const Program& p, const ProgramWork& work, const FuseConfig& c, double bound) {
    constexpr double unit = 8, least = 16;
    if (c.row_storage == RowStorage::none) return bound;
    if (c.row_storage == RowStorage::shared) return registers_likely(p, work, config_by_element(c, p), bound);
    const RegisterDemand d = demand_of(p, work, c.vector_width);
    double need = bound;
    if (c.row_storage == RowStorage::registers) need = held_registers(d, c, bound);
    else if (!d.kept) need = (d.sums && !in_whole_iterations(p, c) ? 20 : 16) + c.vectors_per_thread * d.full;
    return std::min(bound, std::max(least, whole_up(need / unit) * unit));
}

double even_threads(const FuseHardware& hw, double threads) {
    const double round = lanes_of_round(hw, threads);
    return whole_up(threads / round) * round;
}

double resident_ctas(const FuseHardware& hw, const FuseConfig& c, double registers, double shared_bytes) {
    double ctas = min_known(hw.ctas_per_sm, whole(hw.threads_per_sm / c.threads));
    // As many warps of each partition; a CTA's may lie anywhere.
    const double round = lanes_of_round(hw, c.threads);
    ctas = min_known(ctas, whole(whole(hw.registers_per_sm / (registers * round)) * round / c.threads));
    if (shared_bytes > 0)
        ctas = min_known(ctas, whole(hw.shared_per_sm / (shared_bytes + hw.shared_reserved)));
    return ctas;
}

}  // namespace rooftile
