// DeepGEMM: its kernels' template arguments are the plan.
#include <algorithm>
#include <array>

#include "rooftile/names/families.hpp"

namespace rooftile::names {

bool read_deep_gemm(const Text& text, KernelName& out) {
    const Signature& s = text.signature;
    const bool own = contains(s.path, "deep_gemm::");
    const bool first = s.function == "fp8_gemm_kernel" && s.arguments.size() >= 10;  // before it named the architecture
    if (!own && !first) return false;
    out.family = "deepgemm", out.library = "DeepGEMM";
    if (contains(s.function, "gemm") || contains(s.function, "bmk_bnk_mn")) out.role = "gemm";
    if (s.function.starts_with("sm") && s.function.size() > 2)
        out.arch = "sm_" + std::string(word_at(s.function, 2).substr(0, s.function.find('_') - 2));
    if (contains(s.function, "mqa_logits")) out.role = "attention", out.operation = "scores of an indexer";
    if (contains(s.function, "fp8_fp4")) out.types = {.a = "", .b = "", .c = "", .accumulate = "fp32"};
    else if (contains(s.function, "fp8")) out.types = {.a = "fp8_e4m3", .b = "fp8_e4m3", .c = "", .accumulate = "fp32"};
    else if (contains(s.function, "bf16")) out.types = {.a = "bf16", .b = "bf16", .c = "", .accumulate = "fp32"};
    else if (contains(s.function, "tf32")) out.types = {.a = "tf32", .b = "tf32", .c = "", .accumulate = "fp32"};
    std::vector<long> values;
    std::vector<bool> truth;
    std::vector<std::string> types;
    for (const std::string_view argument : s.arguments) {
        if (const auto value = number(argument)) {
            values.push_back(*value);
            truth.push_back(argument == "true" || argument == "false" || argument.starts_with("(bool)"));
        } else if (const std::string type = type_name(argument); !type.empty()) {
            types.push_back(type);
        }
    }
    const auto extent = [&](std::size_t at) {
        constexpr long most = 1 << 20;  // of a tile or a count
        return at < values.size() && values[at] > 0 && values[at] <= most ? std::optional<int>(int(values[at])) : std::nullopt;
    };
    const auto size = [&](std::size_t at) { return at < values.size() && values[at] > 0 ? std::optional<long>(values[at]) : std::nullopt; };
    if (first && !own) {  // N, K, tile, groups, stages, …
        out.role = "gemm", out.types = {.a = "fp8_e4m3", .b = "fp8_e4m3", .c = "", .accumulate = "fp32"};
        out.shape_n = size(0), out.shape_k = size(1);
        out.tile_m = extent(2), out.tile_n = extent(3), out.tile_k = extent(4), out.stages = extent(6);
        return true;
    }
    // Before the first truth value, which says whose multicast it is: … swizzles, stages, threads that load, threads that multiply, CTAs
    // that share. Before the swizzles: M, N, K, groups and the tile, or M, N, K, the tile and groups.
    const std::size_t shared = std::size_t(std::find(truth.begin(), truth.end(), true) - truth.begin());
    const bool two_swizzles = contains(s.function, "sm90_fp8_gemm_1d1d"), groups_last = contains(s.function, "sm100_fp8_fp4_gemm");
    const bool known = groups_last || two_swizzles || contains(s.function, "_fp8_gemm_1d2d") || contains(s.function, "_bf16_gemm");
    const std::size_t before = (two_swizzles ? 6 : 7) + 7;
    if (!known || shared == truth.size() || shared < before) return true;
    const std::size_t start = shared - before, tile = start + (groups_last ? 3 : 4);
    out.shape_m = size(start), out.shape_n = size(start + 1), out.shape_k = size(start + 2);
    out.tile_m = extent(tile), out.tile_n = extent(tile + 1), out.tile_k = extent(tile + 2);
    out.stages = extent(shared - 4);
    if (const auto loading = extent(shared - 3), multiplying = extent(shared - 2); loading && multiplying) {
        out.threads = threads_of(1, std::array{*loading + *multiplying});
        if (out.arch == "sm_90" && *multiplying >= 128) out.consumer_warpgroups = *multiplying / 128, out.schedule = "cooperative";
    }
    if (const auto ctas = extent(shared - 1)) {
        // Those that share A are neighbours along n.
        const bool on_a = values[shared] == 1;
        out.cluster_m = on_a ? 1 : *ctas, out.cluster_n = on_a ? *ctas : 1;
    }
    if (types.size() >= 3) out.types = {.a = types[0], .b = types[1], .c = types[2], .accumulate = "fp32"};
    else if (types.size() == 1) out.types.c = types[0];
    return true;
}

}  // namespace rooftile::names
