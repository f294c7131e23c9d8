// NCCL's kernels, and copies as profilers name them.
#include "rooftile/names/families.hpp"

namespace rooftile::names {

bool read_nccl(const Text& text, KernelName& out) {
    const std::string_view function = text.signature.function;
    std::string_view rest;
    for (const std::string_view prefix : {"ncclDevKernel_", "ncclKernel_", "ncclDevFunc_", "ncclSymkDevKernel_", "ncclSymDevKernel_"})
        if (function.starts_with(prefix)) rest = function.substr(prefix.size());
    if (rest.empty() && !function.starts_with("oneRankReduce")) return false;
    out.family = "nccl", out.library = "NCCL", out.role = "collective";
    if (rest.empty()) {
        out.operation = "reduce, one rank";
        return true;
    }
    const std::vector<std::string_view> tokens = split(rest, '_');
    if (tokens[0] == "Generic") {
        out.uncertain.push_back("operation: one kernel that runs any of NCCL's; its arguments say which");
        return true;
    }
    static constexpr std::string_view reductions[] = {"sum", "prod", "min", "max", "minmax", "premulsum", "sumpostdiv"};
    static constexpr std::string_view ways[] = {"ring", "tree", "nvls", "pat", "collnet"}, protocols[] = {"ll", "ll128", "simple"};
    std::string reduction, way;
    for (const std::string_view token : std::span(tokens).subspan(1)) {
        const std::string word = lower(token);
        if (has(reductions, word)) reduction = " " + word;
        else if (has(ways, word)) way += ", " + word;
        else if (has(protocols, word)) way += ", " + (word == "simple" ? word : upper(word));
        else if (const std::string type = type_name(token); !type.empty()) out.types.a = type;
    }
    out.operation = words_of(tokens[0]) + reduction + way;
    return true;
}

bool read_copy(const Text& text, KernelName& out) {
    std::string word = lower(text.whole);
    if (word.starts_with("[cuda ")) word = word.substr(6);
    const bool copy = word.starts_with("memcpy"), set = word.starts_with("memset");
    if (!copy && !set) return false;
    out.family = "cuda", out.library = "CUDA", out.role = copy ? "copy" : "elementwise", out.operation = copy ? "" : "fill";
    struct Direction {
        std::string_view written, meant;
    };
    static constexpr Direction directions[] = {{"htod", "host to device"},
                                               {"dtoh", "device to host"},
                                               {"dtod", "device to device"},
                                               {"ptop", "device to another"},
                                               {"htoh", "host to host"}};
    for (const Direction& direction : directions)
        if (copy && (contains(word, direction.written) || contains(word, direction.meant))) out.operation = direction.meant;
    if (contains(word, "device-to-device")) out.operation = "device to device";
    else if (contains(word, "host-to-device")) out.operation = "host to device";
    else if (contains(word, "device-to-host")) out.operation = "device to host";
    return true;
}

}  // namespace rooftile::names
