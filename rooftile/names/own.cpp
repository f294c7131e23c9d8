// Kernels that this program makes: rooftile::sm90_gemm<rooftile::MatrixConfig{128, 256, 64, 4, …}>. A demangled struct is its members'
// values in their order, of which a compiler may leave out the last where they are zero; members before them are named here, and
// a test compares them with what a plan has.
#include <algorithm>
#include <array>

#include "rooftile/names/families.hpp"

namespace rooftile::names {
namespace {

struct Config {
    std::string_view name;
    std::vector<std::string_view> members;
};

const std::vector<Config>& configs() {
    static const std::vector<Config> all = {
        {"MatrixConfig",
         {"tile_m", "tile_n", "tile_k", "stages", "consumer_warpgroups", "schedule", "swap_ab", "cluster_m", "cluster_n", "split_k",
          "in_pieces", "ctas_per_sm", "producer_registers", "consumer_registers", "type", "b_type", "c_type", "a_major", "b_major"}},
        {"Sm80GemmConfig", {"tile_m", "tile_n", "tile_k", "stages", "warps_m", "warps_n", "ctas_per_sm", "type", "a_major", "b_major"}},
        {"Sm80FewConfig",
         {"tile_m", "tile_n", "tile_k", "stages", "ctas_per_sm", "type", "b_major", "odd_rows", "batched", "in_pieces"}},
        {"Sm90AttentionConfig",
         {"tile_m", "tile_n", "tile_k", "dim_v", "stages", "turns", "producer_registers", "consumer_registers", "type", "mask"}},
        {"Sm90ChainConfig",
         {"tile_m", "tile_n", "tile_k", "stages", "x_stages", "resident", "turns", "producer_registers", "consumer_registers", "type"}}};
    return all;
}

std::string type_of_value(long value) {
    static constexpr std::string_view types[] = {"bf16", "fp16", "fp32", "fp8_e4m3", "fp8_e5m2"};
    return value >= 0 && value < long(std::size(types)) ? std::string(types[value]) : "";
}

void read_config(const Config& config, const std::vector<std::string_view>& values, KernelName& out) {
    const auto value = [&](std::string_view member) -> std::optional<long> {
        const auto found = std::find(config.members.begin(), config.members.end(), member);
        if (found == config.members.end()) return std::nullopt;
        const auto at = std::size_t(found - config.members.begin());
        return at < values.size() ? number(values[at]) : std::optional<long>(0);
    };
    const auto extent = [&](std::string_view member) {
        const auto v = value(member);
        constexpr long most = 1 << 20;  // of an extent or a count; more is no kernel of ours
        return v && *v > 0 && *v <= most ? std::optional<int>(int(*v)) : std::nullopt;
    };
    out.tile_m = extent("tile_m"), out.tile_n = extent("tile_n"), out.tile_k = extent("tile_k"), out.stages = extent("stages");
    out.cluster_m = extent("cluster_m"), out.cluster_n = extent("cluster_n");
    out.consumer_warpgroups = extent("consumer_warpgroups");
    if (out.consumer_warpgroups) out.threads = threads_of(128, std::array{1 + *out.consumer_warpgroups});
    else if (const auto m = extent("warps_m"), n = extent("warps_n"); m && n) out.threads = threads_of(32, std::array{*m, *n});
    if (const auto schedule = value("schedule")) out.schedule = *schedule == 0 ? "cooperative" : "pingpong";
    if (const auto split = value("split_k"), pieces = value("in_pieces"); split || pieces)
        out.split_k = split.value_or(1) > 1 || pieces == 1;
    if (const auto type = value("type")) {
        const std::string a = type_of_value(*type);
        out.types = {.a = a,
                     .b = value("b_type") ? type_of_value(*value("b_type")) : a,
                     .c = value("c_type") ? type_of_value(*value("c_type")) : a,
                     .accumulate = "fp32"};
    }
    // Row-major: a matrix whose k is contiguous is A as it is, and B transposed.
    if (const auto a = value("a_major"), b = value("b_major"); a && b)
        out.layout = std::string(*a == 0 ? "N" : "T") + (*b == 0 ? "T" : "N");
}

}  // namespace

bool read_own(const Text& text, KernelName& out) {
    const Signature& s = text.signature;
    if (!s.path.starts_with("rooftile::")) return false;
    out.family = "rooftile", out.library = "rooftile";
    std::string_view function = s.function;
    if (function.starts_with("sm") && function.find('_') != function.npos) {
        out.arch = "sm_" + std::string(function.substr(2, function.find('_') - 2));
        function.remove_prefix(function.find('_') + 1);
    }
    if (s.path.starts_with("rooftile::fuse::")) {
        out.role = "elementwise";
        std::string words(function.starts_with("fuse_") ? function.substr(5) : function);
        std::replace(words.begin(), words.end(), '_', ' ');
        out.operation = words;
        out.uncertain.push_back("role: an expression may reduce rows too");
        return true;
    }
    out.role = contains(function, "attention")                             ? "attention"
               : contains(function, "gemm") || contains(function, "chain") ? "gemm"
               : contains(function, "pack") || contains(function, "copy")  ? "copy"
                                                                           : "";
    if (contains(function, "epilogue")) out.epilogue = "expression";
    if (function.starts_with("two_gemms") || contains(function, "chain")) out.operation = "two products in a row";
    if (out.role.empty() && out.operation.empty()) {
        out.operation = function;
        std::replace(out.operation.begin(), out.operation.end(), '_', ' ');
    }
    if (s.arguments.empty()) return true;
    const std::string_view first = s.arguments[0];
    for (const Config& config : configs()) {
        const std::string start = std::string(config.name) + "{";
        const std::size_t at = first.find(start);
        if (at == first.npos) continue;
        const std::size_t open = at + start.size(), close = first.rfind('}');
        if (close == first.npos || close < open) continue;
        read_config(config, split(first.substr(open, close - open), ','), out);
        return true;
    }
    return true;
}

}  // namespace rooftile::names
