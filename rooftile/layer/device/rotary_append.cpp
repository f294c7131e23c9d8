#include "rooftile/layer/device/rotary_append.hpp"

#include <fmt/core.h>

#include "rooftile/units.hpp"

namespace rooftile {
namespace {

constexpr int access_bytes = 16, step = 16, most_dim = 512;

}  // namespace

Source rotary_source(const RotaryConfig& c, const std::string& arch) {
    if (c.dim < step || c.dim > most_dim || c.dim % step != 0)
        throw RequestError(fmt::format("a head of {} elements: rotary embedding takes multiples of {} up to {}", c.dim, step, most_dim));
    if (c.rotated < step || c.rotated > c.dim || c.rotated % step != 0)
        throw RequestError(
            fmt::format("{} of {} elements are rotated: rotary embedding takes multiples of {} up to all", c.rotated, c.dim, step));
    if (c.type != Type::bf16 && c.type != Type::fp16) throw RequestError("rotary embedding takes bf16 and fp16");
    return source_of_header("rotary_append", "kernels/layer/rotary_append.cuh", {fmt::format(
        "rooftile::rotary_append<rooftile::RotaryConfig{{.dim={}, .rotated={}, .type=rooftile::Type::{}, .normed={}, .paged={}}}>", c.dim,
        c.rotated, c.type == Type::bf16 ? "bf16" : "fp16", c.normed, c.paged)}, arch);
}

RotaryAppend::RotaryAppend(const RotaryConfig& config, const std::string& arch, const CompileOptions& options)
    : config_(config), arch_(arch) {
    Source source = rotary_source(config, arch);
    compiled_ = compile_as(options, source);
}

const Function& RotaryAppend::loaded() const {
    return contexts_.here(compiled_.compiled, arch_, [](Function function, int) { return function; });
}

void RotaryAppend::launch(Stream stream, const RotaryArguments& a) const {
    check_pointer("rows", a.rows, access_bytes), check_pointer("q", a.q, access_bytes);
    check_pointer("the cache of keys", a.k, access_bytes), check_pointer("the cache of values", a.v, access_bytes);
    check_pointer("turns", a.turns, access_bytes), check_pointer("lengths", a.lengths, sizeof(int));
    if (config_.paged) check_pointer("the table of pages", a.block_table, sizeof(int));
    if (config_.normed)
        check_pointer("the weights of queries", a.q_weight, access_bytes), check_pointer("the weights of keys", a.k_weight, access_bytes);
    const std::int64_t items = std::int64_t(a.tokens) * (a.heads + 2 * a.kv_heads);
    if (items == 0) return;
    Launch launch;
    launch.grid_x = unsigned(ceil_div(items, std::int64_t(config_.heads_of_cta())));
    launch.block_x = unsigned(RotaryConfig::threads);
    launch.programmatic_dependent = true;
    launch.stream = stream;
    rooftile::launch(loaded(), launch, a);
}

}  // namespace rooftile
